//! Who may change or delete an entry.
//!
//! Every write that changes or deletes an entry takes a [`Writable`] of it, so an operation that asked for nothing does not compile.

use memtrove_core::Result;
use memtrove_core::memories::{Memory, MemoryCaller};
use std::ops::Deref;
use std::sync::Arc;

/// An entry that may be changed or deleted, as it was read:
/// ```
/// use memtrove_service::memories::access::Writable;
/// use memtrove_service::memories::writing::Write;
/// fn delete(memory: Writable) -> Write { Write::Remove(memory) }
/// ```
/// An entry by itself may not:
/// ```compile_fail
/// use memtrove_core::memories::Memory;
/// use memtrove_service::memories::writing::Write;
/// fn delete(memory: std::sync::Arc<Memory>) -> Write { Write::Remove(memory) }
/// ```
/// Only this module makes one:
/// ```compile_fail
/// use memtrove_core::memories::Memory;
/// use memtrove_service::memories::access::Writable;
/// fn forge(memory: std::sync::Arc<Memory>) -> Writable { Writable(memory) }
/// ```
#[derive(Debug, Clone)]
pub struct Writable(Arc<Memory>);

impl Writable {
    /// For a caller, who must be allowed to write in the entry's layer.
    pub fn by(caller: &MemoryCaller, memory: impl Into<Arc<Memory>>) -> Result<Self> {
        let memory = memory.into();
        caller.authorise_write(memory.scope.layer())?;
        Ok(Self(memory))
    }

    /// For work that is about a whole scope: of a task, which has no caller, or of a request, whose `check` asked for the scope.
    pub fn by_task(memory: impl Into<Arc<Memory>>) -> Self {
        Self(memory.into())
    }
}

impl Deref for Writable {
    type Target = Arc<Memory>;

    fn deref(&self) -> &Arc<Memory> {
        &self.0
    }
}
