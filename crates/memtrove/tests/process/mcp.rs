//! The MCP server from outside: the real binary, over standard input and output and over HTTP.
//!
//! [`support`] has an agent that speaks the protocol line by line; [`sharing`] has several of them on one folder.

mod conversations;
mod facts;
mod files;
mod http;
mod memories;
mod resources;
mod scope;
mod sharing;
mod stdio;
mod support;
