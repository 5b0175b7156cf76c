//! The request and response types of Memtrove's REST API, shared by server and client.
//!
//! Requests are lenient (every member may be missing), because the service says what is wrong with one, in the contract's
//! words. Responses are exact: clients compare bodies member by member, so no member is added in passing.
#![warn(missing_docs)]

mod attachments;
mod building;
mod changes;
mod conversations;
mod enums;
pub mod files;
pub mod mem0;
pub mod memories;
pub mod openspec;
mod requests;
pub mod tools;

pub use attachments::{
    AdminAttachment, AdminAttachmentSummary, Attachment, AttachmentFilter, AttachmentStatus,
    CreateAttachmentRequest, DownloadUrl,
};
pub use changes::{Change, ChangesGap, ChangesPage};
pub use conversations::{
    AdminConversation, AdminConversationSummary, AdminEntry, Conversation, ConversationForkSummary,
    ConversationMembership, ConversationSummary, EntriesPage, Entry, OwnershipTransfer, Page,
    SearchExplanation, SearchPage, SearchResult, SyncEntryResponse, UnindexedEntry,
};
pub use enums::{AccessLevel, Channel, ChannelFilter, Forks, ListMode, SearchType, TransferRole};
pub use requests::{
    AdminSearchRequest, CreateConversationRequest, CreateEntryRequest, CreateOwnershipTransferRequest,
    EvictRequest, ForkFromEntryRequest, IndexConversationsResponse, IndexEntryRequest, JustificationRequest,
    SearchConversationsRequest, SearchWeights, ShareConversationRequest, StatsSummary, StatsSummaryCount,
    StatsSummaryGroups, UpdateConversationRequest, UpdateMembershipRequest,
};
