//! Memory for an agent, on top of [`memtrove_client`].
//!
//! [`AgentMemory`] has what an agent does with its memory: load, write and patch files as texts, recall events, prepare a
//! turn from the slots of a [`MemoryPolicy`]. [`tools`] are the same for a language model: definitions that
//! [`ToolFormat`] renders for each vendor, and [`AgentMemory::call_tool`], whose failures are data that a model can act
//! on. [`AgentMemory::call_memory_tool`] answers the commands of Anthropic's memory tool. A [`Session`] keeps what a
//! model has seen of the memory, and says when to show it again.
//!
//! ```no_run
//! use memtrove_agent::{AgentMemory, Result, Scope, ToolFormat, tools};
//! use memtrove_client::Client;
//! use serde_json::json;
//!
//! #[tokio::main]
//! async fn main() -> Result<()> {
//!     let client = Client::builder().base_url("http://127.0.0.1:7077").api_key("planner").build()?;
//!     let (memory, alice) = (AgentMemory::new(client), Scope::new("default", "alice"));
//!     let declared = ToolFormat::Anthropic.render(&tools()); // goes into the request to the model
//!     let call = json!({"path": "profile.md", "content": "Likes tea."}); // comes back from it
//!     let output = memory.call_tool(&alice, "memory_write_file", &call).await?;
//!     println!("{} of {} tools: {}", 1, declared.len(), output.text());
//!     Ok(())
//! }
//! ```
//!
//! This crate knows the client and nothing of the service behind it. The host's [`Scope`] says whose memory it is; what a
//! model sends cannot change that. To add a tool, add an arm in `dispatch.rs` and its definition in `memtrove_wire::tools`,
//! which every host uses.
#![warn(missing_docs)]

mod dispatch;
mod files;
mod memory;
mod memory_tool;
mod policy;
mod render;
mod rules;
mod session;
mod slots;
mod turn;

// Their types are in signatures of this crate: programs that name them have the same versions from here.
pub use {memtrove_client, serde_json};

pub use dispatch::{ToolOutput, tools};
pub use files::{MemoryFile, PatchFileOptions, WriteFileOptions, WriteMode};
pub use memory::{AgentMemory, AgentMemoryOptions, Recall};
pub use memory_tool::memory_tool;
pub use memtrove_client::{
    DroppedFile, ETag, Envelope, Error, EventDigest, FileEntry as MemoryFileEntry, ForgetReport, PatchOp,
    Precondition, Result, Scope, TextEdit as MemoryEdit, Timestamp,
};
pub use memtrove_wire::tools::ToolDefinition;
pub use policy::{MemoryPolicy, SlotPath, SlotPolicy, TemplateVariables};
pub use render::ToolFormat;
pub use rules::SlotRules;
pub use session::{Session, SessionOptions};
pub use slots::{SlotDocument, SlotPatch, SlotReplace};
pub use turn::{PrepareTurn, PreparedTurn};
