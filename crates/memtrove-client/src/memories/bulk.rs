//! Many memories at once.

use super::{
    BulkAddRequest, BulkAdded, BulkDeleteRequest, BulkDeleted, ClearMemoriesRequest, ClearedMemories,
};
use crate::{Client, Result, operations};
use uuid::Uuid;

impl Client {
    /// Remembers many things: each by itself, or all or none.
    pub async fn bulk_add(&self, request: BulkAddRequest) -> Result<BulkAdded> {
        self.call(&operations::BULK_ADD, &[])?.json(&request)?.receive().await
    }

    /// Deletes many memories.
    pub async fn bulk_delete(&self, ids: impl IntoIterator<Item = Uuid>) -> Result<BulkDeleted> {
        let request = BulkDeleteRequest { ids: ids.into_iter().map(|id| id.to_string()).collect() };
        self.call(&operations::BULK_DELETE, &[])?.json(&request)?.receive().await
    }

    /// Clears a scope of memories of some kinds.
    pub async fn clear_memories(&self, request: ClearMemoriesRequest) -> Result<ClearedMemories> {
        self.call(&operations::CLEAR_MEMORIES, &[])?.json(&request)?.receive().await
    }
}
