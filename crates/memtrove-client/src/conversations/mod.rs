//! Conversations: entries in order, forks, sharing, search, and the response that is being given.

mod entries;
mod listing;
mod response;
mod search;
mod sharing;

pub use entries::ListEntries;
pub use listing::{ListConversations, PageRequest};
pub use memtrove_wire::{
    AccessLevel, Channel, ChannelFilter, Conversation, ConversationForkSummary, ConversationMembership,
    ConversationSummary, CreateConversationRequest, CreateEntryRequest, EntriesPage, Entry,
    ForkFromEntryRequest, Forks, IndexConversationsResponse, IndexEntryRequest, ListMode, OwnershipTransfer,
    Page, SearchConversationsRequest, SearchExplanation, SearchPage, SearchResult, SearchType, SearchWeights,
    SyncEntryResponse, TransferRole, UnindexedEntry,
};
pub use response::ResponseEvent;
pub use search::ListUnindexed;
pub use sharing::ListTransfers;
