//! The domain of Memtrove: types, ids and every rule that can be written as a pure function.
//!
//! Nothing here knows a transport, a driver or a runtime: no HTTP, no SQL, no async, no clock. A rule that needs the
//! time or a fresh id is given one (see [`time::Clock`]). To add a rule, put it in the module of its surface and test it as
//! a function; a service calls it inside its unit of work.

pub mod attachments;
pub mod changes;
pub mod conversations;
mod error;
pub mod files;
mod id;
pub mod identity;
mod json;
pub mod legacy_labels;
pub mod memories;
pub mod period;
pub mod recall;
pub mod text;
mod time;

pub use error::{Code, Details, Error, ErrorKind, Quota, Resource, Result, Violation};
pub use id::{
    AttachmentId, ClientId, ConversationId, EntryId, GroupId, TransferId, UserId, derived_uuid, parse_uuid,
};
pub use json::{Json, JsonError};
pub use time::{Clock, SystemClock, Timestamp};
