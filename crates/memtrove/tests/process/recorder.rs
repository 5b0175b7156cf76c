//! Responses that survive a reconnect, from outside: agents that record, readers that come and go, over gRPC and over
//! REST with server-sent events, on one node and on several.

mod access;
mod cancelling;
mod doctor;
mod events;
mod nodes;
mod recording;
mod replaying;
mod secrecy;
mod support;
