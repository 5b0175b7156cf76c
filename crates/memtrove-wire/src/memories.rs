//! Memories, facts and what is done with them, as they go over the wire.
//!
//! Requests are described for readers and clients; the server reads them strictly, and says which member is wrong.

mod entries;
mod facts;
mod introspection;
mod lifecycle;
mod search;
mod words;

pub use entries::{
    AddMemoryRequest, AddedMemory, BulkAddRequest, BulkAddResult, BulkAdded, BulkDeleteFailure,
    BulkDeleteRequest, BulkDeleted, ClearMemoriesRequest, ClearedMemories, DeletedMemory, FactStatement,
    KnowledgePointer, Memory, MemoryAccessPolicy, MemoryAuthor, MemoryIdentifiers, MemoryLineage,
    MemoryMetadata, MemorySource, OneMemory, UpdateMemoryRequest, UpdatedMemory,
};
pub use facts::{AddFactRequest, AddedFact, Fact, FactPage, OneFact, QueryFactsRequest, UpdateFactRequest};
pub use introspection::{
    MemoryCapabilities, MemoryComponent, MemoryEmbedding, MemoryHealth, MemoryKindInfo, MemoryLayerInfo,
    MemoryProvider,
};
pub use lifecycle::{
    BlockedPromotion, ConsolidateRequest, Consolidated, ConsolidationGroup, DecayRequest, DecayedMemories,
    DecayedMemory, EndSessionRequest, EndedSession, PromoteRequest, PromotedMemory, SessionPromotion,
};
pub use search::{
    AskedTime, FoundMemory, ListMemoriesRequest, MemoryFilter, MemoryPage, MemoryTimeRange,
    SearchMemoriesRequest, SearchedMemories,
};
pub use words::{
    AccessPolicyWord, MemoryKind, MemoryLayer, MemoryRanking, MemorySearchMode, MemorySourceType, MemoryState,
};
