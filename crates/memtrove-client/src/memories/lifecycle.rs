//! Archiving, promotion, fading, merging, and the end of a session.

use super::{
    ConsolidateRequest, Consolidated, DecayRequest, DecayedMemories, EndSessionRequest, EndedSession, Memory,
    OneMemory, PromoteRequest, PromotedMemory,
};
use crate::{Client, Result, operations};
use uuid::Uuid;

impl Client {
    /// Puts a memory away; if a version is given, only that one.
    pub async fn archive_memory(&self, id: Uuid, version: Option<i64>) -> Result<Memory> {
        let call = self.call(&operations::ARCHIVE_MEMORY, &[&id.to_string()])?.version(version)?;
        call.receive::<OneMemory>().await.map(|one| one.memory)
    }

    /// Takes a memory out of the archive.
    pub async fn restore_memory(&self, id: Uuid, version: Option<i64>) -> Result<Memory> {
        let call = self.call(&operations::RESTORE_MEMORY, &[&id.to_string()])?.version(version)?;
        call.receive::<OneMemory>().await.map(|one| one.memory)
    }

    /// Copies a memory into another scope.
    pub async fn promote_memory(
        &self,
        id: Uuid,
        request: PromoteRequest,
        version: Option<i64>,
    ) -> Result<PromotedMemory> {
        let call = self.call(&operations::PROMOTE_MEMORY, &[&id.to_string()])?.version(version)?;
        call.json(&request)?.receive().await
    }

    /// Lets memories fade, or says what would.
    pub async fn decay_memories(&self, request: DecayRequest) -> Result<DecayedMemories> {
        self.call(&operations::DECAY_MEMORIES, &[])?.json(&request)?.patiently().receive().await
    }

    /// Merges memories that say the same, or says which would be.
    pub async fn consolidate_memories(&self, request: ConsolidateRequest) -> Result<Consolidated> {
        self.call(&operations::CONSOLIDATE_MEMORIES, &[])?.json(&request)?.patiently().receive().await
    }

    /// Ends a session: what matters outlives it, the rest goes.
    pub async fn end_session(&self, request: EndSessionRequest) -> Result<EndedSession> {
        self.call(&operations::END_SESSION, &[])?.json(&request)?.receive().await
    }
}
