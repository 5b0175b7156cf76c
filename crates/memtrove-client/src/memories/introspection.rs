//! What the service can do with memories, and whether it can do it now.

use super::{MemoryCapabilities, MemoryHealth};
use crate::{Client, Result, operations};

impl Client {
    /// What the service can do with memories.
    pub async fn memory_capabilities(&self) -> Result<MemoryCapabilities> {
        self.call(&operations::MEMORY_CAPABILITIES, &[])?.receive().await
    }

    /// Whether memories can be stored and found now.
    pub async fn memory_health(&self) -> Result<MemoryHealth> {
        self.call(&operations::MEMORY_HEALTH, &[])?.receive().await
    }
}
