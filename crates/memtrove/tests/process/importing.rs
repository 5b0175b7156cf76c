//! `memtrove import` of what people have elsewhere, as they run it, read back through a server.

mod support;

mod broken_off;
mod chats;
mod files;
mod hostile;
mod memories;
