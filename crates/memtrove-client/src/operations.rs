//! Every operation of the service in one table: what it is called, where it is, and whether it may be sent again.
//!
//! A method of [`Client`](crate::Client) names its row, and gets its method, its address and its retries from it. To add an
//! operation, add a row here, list it in [`ALL`], and write the method: a test holds the table against the API's description.

use http::Method;

/// What sending an operation twice comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It changes nothing: it is retried.
    Read,
    /// It changes something, once per idempotency key: it is retried for those who send a key and ask for it.
    Keyed,
    /// It changes something: it is never retried.
    Change,
}

/// An operation of the service.
#[derive(Debug)]
pub struct Operation {
    /// Its name in the API's description.
    pub id: &'static str,
    /// Its HTTP method.
    pub method: Method,
    /// Its address, with names in braces for what a call fills in.
    pub path: &'static str,
    /// What sending it twice comes to.
    pub effect: Effect,
}

impl Operation {
    /// Whether a request of this method to this path is this operation.
    pub fn matches(&self, method: &Method, path: &str) -> bool {
        self.method == *method && fits(self.path, path)
    }
}

/// The operation that a request of this method to this path is. A name that is spelled out wins over one in braces.
pub fn find(method: &Method, path: &str) -> Option<&'static Operation> {
    let matching = ALL.iter().filter(|operation| operation.matches(method, path));
    matching.min_by_key(|operation| operation.path.matches('{').count()).copied()
}

/// Whether a path has the segments of a template. A file's path is the rest, however many segments that is.
fn fits(template: &str, path: &str) -> bool {
    let mut segments = path.split('/');
    for expected in template.split('/') {
        let Some(segment) = segments.next() else { return false };
        let fits = match expected {
            "{path}" => return !segment.is_empty(),
            _ if expected.starts_with('{') => !segment.is_empty(),
            _ => expected == segment,
        };
        if !fits {
            return false;
        }
    }
    segments.next().is_none()
}

const fn read(id: &'static str, method: Method, path: &'static str) -> Operation {
    Operation { id, method, path, effect: Effect::Read }
}

const fn keyed(id: &'static str, method: Method, path: &'static str) -> Operation {
    Operation { id, method, path, effect: Effect::Keyed }
}

const fn change(id: &'static str, method: Method, path: &'static str) -> Operation {
    Operation { id, method, path, effect: Effect::Change }
}

// The service itself.
/// What the service says about itself.
pub static STATUS: Operation = read("status", Method::GET, "/");
/// Says that the process is alive.
pub static LIVE: Operation = read("live", Method::GET, "/health/live");
/// Says whether requests can be served.
pub static READY: Operation = read("ready", Method::GET, "/health/ready");
/// Says that the service is there.
pub static HEALTH: Operation = read("health", Method::GET, "/v1/health");

// Files.
/// Assembles a context from files, in the order they are named, and from memories that are searched for, as far as the
/// budget goes.
pub static ASSEMBLE_CONTEXT: Operation =
    read("assemble_context", Method::POST, "/v1/tenants/{tenant_id}/users/{user_id}/context:assemble");
/// Reads a file.
pub static GET_FILE: Operation =
    read("get_file", Method::GET, "/v1/tenants/{tenant_id}/users/{user_id}/files/{path}");
/// Creates a file, or replaces it.
pub static PUT_FILE: Operation =
    keyed("put_file", Method::PUT, "/v1/tenants/{tenant_id}/users/{user_id}/files/{path}");
/// Changes parts of a file, by JSON Patch operations, by text edits, or both.
pub static PATCH_FILE: Operation =
    keyed("patch_file", Method::PATCH, "/v1/tenants/{tenant_id}/users/{user_id}/files/{path}");
/// Deletes a file.
pub static DELETE_FILE: Operation =
    keyed("delete_file", Method::POST, "/v1/tenants/{tenant_id}/users/{user_id}/files:delete");
/// Gives a file another path.
pub static MOVE_FILE: Operation =
    keyed("move_file", Method::POST, "/v1/tenants/{tenant_id}/users/{user_id}/files:move");
/// Lists files, by lower-cased path.
pub static LIST_FILES: Operation =
    read("list_files", Method::GET, "/v1/tenants/{tenant_id}/users/{user_id}/files:list");

// Events.
/// Writes an event; it can be found when this answers.
pub static WRITE_EVENT: Operation =
    keyed("write_event", Method::POST, "/v1/tenants/{tenant_id}/users/{user_id}/events");
/// Has the events of a user indexed anew.
pub static REINDEX_EVENTS: Operation =
    change("reindex_events", Method::POST, "/v1/tenants/{tenant_id}/users/{user_id}/events:reindex");
/// Searches events: filters that all must hold, and words to rank by.
pub static SEARCH_EVENTS: Operation =
    read("search_events", Method::POST, "/v1/tenants/{tenant_id}/users/{user_id}/events:search");

// What is done with a whole user.
/// Forgets a user: files, events, audit trail, conversations, memories, everything.
pub static FORGET_USER: Operation =
    change("forget_user", Method::DELETE, "/v1/tenants/{tenant_id}/users/{user_id}/memory");
/// Removes events and audit records that are older than so many days. Files stay.
pub static APPLY_RETENTION: Operation =
    change("apply_retention", Method::POST, "/v1/tenants/{tenant_id}/users/{user_id}/retention:apply");
/// Forgets a user of the caller's tenant whose id no path can hold.
pub static FORGET_USER_BY_ID: Operation = change("forget_user_by_id", Method::POST, "/v1/users:forget");

// The audit trail.
/// Lists the audit trail, in the order of its sequence.
pub static LIST_AUDIT: Operation =
    read("list_audit", Method::GET, "/v1/tenants/{tenant_id}/users/{user_id}/audit");
/// Reads the record of one change.
pub static GET_AUDIT: Operation =
    read("get_audit", Method::GET, "/v1/tenants/{tenant_id}/users/{user_id}/audit/{change_id}");
/// Makes a version of a file again from the audit trail, byte for byte, and proves it by its hashes.
pub static RECONSTRUCT_VERSION: Operation =
    read("reconstruct_version", Method::POST, "/v1/tenants/{tenant_id}/users/{user_id}/audit:reconstruct");

// Conversations.
/// Lists the conversations the caller can see, most recently updated first.
pub static LIST_CONVERSATIONS: Operation = read("list_conversations", Method::GET, "/v1/conversations");
/// Makes a conversation that the caller owns.
pub static CREATE_CONVERSATION: Operation = change("create_conversation", Method::POST, "/v1/conversations");
/// Reads a conversation.
pub static GET_CONVERSATION: Operation =
    read("get_conversation", Method::GET, "/v1/conversations/{conversationId}");
/// Deletes a conversation together with every fork of its tree.
pub static DELETE_CONVERSATION: Operation =
    change("delete_conversation", Method::DELETE, "/v1/conversations/{conversationId}");
/// Changes the title of a conversation.
pub static UPDATE_CONVERSATION: Operation =
    change("update_conversation", Method::PATCH, "/v1/conversations/{conversationId}");
/// Forks a conversation at an entry: the fork sees everything before that entry.
pub static FORK_CONVERSATION: Operation =
    change("fork_conversation", Method::POST, "/v1/conversations/{conversationId}/entries/{entryId}/fork");
/// Lists every conversation of the tree, the root and the one asked for included.
pub static LIST_FORKS: Operation =
    read("list_forks", Method::GET, "/v1/conversations/{conversationId}/forks");
/// Tells the response that is being given, from its beginning on and as it goes on.
pub static REPLAY_RESPONSE: Operation =
    read("replay_response", Method::GET, "/v1/conversations/{conversationId}/response");
/// Cancels the response that is being given.
pub static CANCEL_RESPONSE: Operation =
    change("cancel_response", Method::DELETE, "/v1/conversations/{conversationId}/response");

// Entries.
/// Lists the entries visible on a conversation, oldest first.
pub static LIST_ENTRIES: Operation =
    read("list_entries", Method::GET, "/v1/conversations/{conversationId}/entries");
/// Appends an entry, making the conversation if its id is unknown.
pub static APPEND_ENTRY: Operation =
    keyed("append_entry", Method::POST, "/v1/conversations/{conversationId}/entries");
/// Makes the stored memory of the calling agent equal to the content sent, writing only what is new.
pub static SYNC_ENTRIES: Operation =
    change("sync_entries", Method::POST, "/v1/conversations/{conversationId}/entries/sync");

// Sharing.
/// Lists the members of a conversation, who are those of its whole tree.
pub static LIST_MEMBERSHIPS: Operation =
    read("list_memberships", Method::GET, "/v1/conversations/{conversationId}/memberships");
/// Gives somebody access, or another level of it.
pub static SHARE_CONVERSATION: Operation =
    change("share_conversation", Method::POST, "/v1/conversations/{conversationId}/memberships");
/// Takes somebody's access away. Members may take away their own.
pub static DELETE_MEMBERSHIP: Operation =
    change("delete_membership", Method::DELETE, "/v1/conversations/{conversationId}/memberships/{userId}");
/// Changes what a member may do.
pub static UPDATE_MEMBERSHIP: Operation =
    change("update_membership", Method::PATCH, "/v1/conversations/{conversationId}/memberships/{userId}");
/// Lists the pending transfers the caller takes part in.
pub static LIST_TRANSFERS: Operation = read("list_transfers", Method::GET, "/v1/ownership-transfers");
/// Offers the ownership of a tree to one of its members.
pub static CREATE_TRANSFER: Operation = change("create_transfer", Method::POST, "/v1/ownership-transfers");
/// Reads a transfer the caller takes part in.
pub static GET_TRANSFER: Operation =
    read("get_transfer", Method::GET, "/v1/ownership-transfers/{transferId}");
/// Takes a transfer back (its sender) or turns it down (its recipient).
pub static DELETE_TRANSFER: Operation =
    change("delete_transfer", Method::DELETE, "/v1/ownership-transfers/{transferId}");
/// Accepts a transfer: the caller owns the tree, the former owner manages it.
pub static ACCEPT_TRANSFER: Operation =
    change("accept_transfer", Method::POST, "/v1/ownership-transfers/{transferId}/accept");

// Search.
/// Gives entries the text that search finds them by: all of them, or none. Needs the indexer role.
pub static INDEX_CONVERSATIONS: Operation =
    change("index_conversations", Method::POST, "/v1/conversations/index");
/// Searches every conversation the caller can see.
pub static SEARCH_CONVERSATIONS: Operation =
    read("search_conversations", Method::POST, "/v1/conversations/search");
/// Lists history entries that nobody has given a text yet, oldest first. Needs the indexer role.
pub static LIST_UNINDEXED: Operation = read("list_unindexed", Method::GET, "/v1/conversations/unindexed");

// Attachments.
/// Stores a file, or has it fetched from the web.
pub static CREATE_ATTACHMENT: Operation = change("create_attachment", Method::POST, "/v1/attachments");
/// Reads a file at an address that `download-url` made, without credentials.
pub static DOWNLOAD_SIGNED: Operation =
    read("download_signed", Method::GET, "/v1/attachments/download/{token}/{filename}");
/// Reads a file.
pub static GET_ATTACHMENT: Operation = read("get_attachment", Method::GET, "/v1/attachments/{attachmentId}");
/// Deletes a file that no entry refers to; for whoever uploaded it.
pub static DELETE_ATTACHMENT: Operation =
    change("delete_attachment", Method::DELETE, "/v1/attachments/{attachmentId}");
/// Makes an address at which a file can be read without credentials, for a short time.
pub static DOWNLOAD_URL: Operation =
    read("download_url", Method::GET, "/v1/attachments/{attachmentId}/download-url");

// The change feed.
/// Tells what happened in the tenant, in order.
pub static LIST_CHANGES: Operation = read("list_changes", Method::GET, "/v1/changes");

// Memories.
/// Lists the memories of one scope, newest first.
pub static LIST_MEMORIES: Operation = read("list_memories", Method::GET, "/v1/memories");
/// Remembers something.
pub static ADD_MEMORY: Operation = keyed("add_memory", Method::POST, "/v1/memories");
/// Reads a memory, archived ones too.
pub static GET_MEMORY: Operation = read("get_memory", Method::GET, "/v1/memories/{id}");
/// Deletes a memory. It is gone at once; deleting it again succeeds, too.
pub static DELETE_MEMORY: Operation = change("delete_memory", Method::DELETE, "/v1/memories/{id}");
/// Changes a memory. Metadata are merged, member by member.
pub static UPDATE_MEMORY: Operation = change("update_memory", Method::PATCH, "/v1/memories/{id}");
/// Puts a memory away: it is hidden unless asked for.
pub static ARCHIVE_MEMORY: Operation = change("archive_memory", Method::POST, "/v1/memories/{id}/archive");
/// Copies a memory into another scope, unless that says the same already.
pub static PROMOTE_MEMORY: Operation = change("promote_memory", Method::POST, "/v1/memories/{id}/promote");
/// Takes a memory out of the archive, as fresh as when it was new.
pub static RESTORE_MEMORY: Operation = change("restore_memory", Method::POST, "/v1/memories/{id}/restore");
/// Remembers many things at once, each by itself or all or none.
pub static BULK_ADD: Operation = keyed("bulk_add", Method::POST, "/v1/memories:bulkAdd");
/// Deletes many memories at once.
pub static BULK_DELETE: Operation = change("bulk_delete", Method::POST, "/v1/memories:bulkDelete");
/// Says what memories there can be here, and how much of everything.
pub static MEMORY_CAPABILITIES: Operation =
    read("memory_capabilities", Method::GET, "/v1/memories:capabilities");
/// Removes all memories of some kinds from one scope.
pub static CLEAR_MEMORIES: Operation = change("clear_memories", Method::POST, "/v1/memories:clear");
/// Merges memories of one scope that say the same.
pub static CONSOLIDATE_MEMORIES: Operation =
    change("consolidate_memories", Method::POST, "/v1/memories:consolidate");
/// Has memories fade that nobody renewed, in some scopes or, for admins, everywhere.
pub static DECAY_MEMORIES: Operation = change("decay_memories", Method::POST, "/v1/memories:decay");
/// Says whether memories can be stored and found.
pub static MEMORY_HEALTH: Operation = read("memory_health", Method::GET, "/v1/memories:health");
/// Lists the memories of one scope, newest first, with every filter there is.
pub static FILTER_MEMORIES: Operation = read("filter_memories", Method::POST, "/v1/memories:list");
/// Searches memories by meaning and words, in every layer that the identifiers open.
pub static SEARCH_MEMORIES: Operation = read("search_memories", Method::POST, "/v1/memories:search");
/// Ends a session: what matters outlives it with its user.
pub static END_SESSION: Operation = change("end_session", Method::POST, "/v1/sessions:end");

// Facts.
/// Lists the facts of one layer that are as wanted, the surest first.
pub static LIST_FACTS: Operation = read("list_facts", Method::GET, "/v1/facts");
/// States a fact; one that is stated already is changed.
pub static ADD_FACT: Operation = keyed("add_fact", Method::POST, "/v1/facts");
/// Reads a fact.
pub static GET_FACT: Operation = read("get_fact", Method::GET, "/v1/facts/{id}");
/// Deletes a fact. It is gone at once; deleting it again succeeds, too.
pub static DELETE_FACT: Operation = change("delete_fact", Method::DELETE, "/v1/facts/{id}");
/// Changes a fact. Metadata are merged, member by member.
pub static UPDATE_FACT: Operation = change("update_fact", Method::PATCH, "/v1/facts/{id}");
/// Lists the facts of several layers that are as wanted: by layer, the surest first.
pub static QUERY_FACTS: Operation = read("query_facts", Method::POST, "/v1/facts:query");

// The knowledge protocol.
/// Says what this provider can do.
pub static DISCOVER_KNOWLEDGE: Operation = read("discover_knowledge", Method::GET, "/openspec/v1/knowledge");
/// Creates, replaces or deletes many entries, one after the other.
pub static BATCH_KNOWLEDGE: Operation =
    change("batch_knowledge", Method::POST, "/openspec/v1/knowledge/batch");
/// Creates an entry.
pub static CREATE_KNOWLEDGE: Operation =
    change("create_knowledge", Method::POST, "/openspec/v1/knowledge/create");
/// Finds entries, best first.
pub static QUERY_KNOWLEDGE: Operation = read("query_knowledge", Method::POST, "/openspec/v1/knowledge/query");
/// Tells what happens to entries, or the results of a query.
pub static STREAM_KNOWLEDGE: Operation =
    read("stream_knowledge", Method::GET, "/openspec/v1/knowledge/stream");
/// Reads an entry, archived ones too.
pub static GET_KNOWLEDGE: Operation = read("get_knowledge", Method::GET, "/openspec/v1/knowledge/{id}");
/// Replaces an entry: what the request does not say is gone.
pub static REPLACE_KNOWLEDGE: Operation =
    change("replace_knowledge", Method::PUT, "/openspec/v1/knowledge/{id}");
/// Deletes an entry. Its content is gone at once, whichever way.
pub static DELETE_KNOWLEDGE: Operation =
    change("delete_knowledge", Method::DELETE, "/openspec/v1/knowledge/{id}");
/// Says what is known about an entry, without what it says.
pub static KNOWLEDGE_METADATA: Operation =
    read("knowledge_metadata", Method::GET, "/openspec/v1/knowledge/{id}/metadata");

// Administration.
/// Lists the files of the tenant, newest first.
pub static ADMIN_LIST_ATTACHMENTS: Operation =
    read("admin_list_attachments", Method::GET, "/v1/admin/attachments");
/// Reads what is known of any file.
pub static ADMIN_GET_ATTACHMENT: Operation =
    read("admin_get_attachment", Method::GET, "/v1/admin/attachments/{attachmentId}");
/// Deletes any file, whether an entry refers to it or not.
pub static ADMIN_DELETE_ATTACHMENT: Operation =
    change("admin_delete_attachment", Method::DELETE, "/v1/admin/attachments/{attachmentId}");
/// Reads any file.
pub static ADMIN_GET_ATTACHMENT_CONTENT: Operation =
    read("admin_get_attachment_content", Method::GET, "/v1/admin/attachments/{attachmentId}/content");
/// Makes an address at which any file can be read without credentials, for a short time.
pub static ADMIN_GET_ATTACHMENT_DOWNLOAD_URL: Operation = read(
    "admin_get_attachment_download_url",
    Method::GET,
    "/v1/admin/attachments/{attachmentId}/download-url",
);
/// Lists the conversations of the tenant.
pub static ADMIN_LIST_CONVERSATIONS: Operation =
    read("admin_list_conversations", Method::GET, "/v1/admin/conversations");
/// Searches every conversation of the tenant.
pub static ADMIN_SEARCH_CONVERSATIONS: Operation =
    read("admin_search_conversations", Method::POST, "/v1/admin/conversations/search");
/// Reads any conversation, deleted or not.
pub static ADMIN_GET_CONVERSATION: Operation =
    read("admin_get_conversation", Method::GET, "/v1/admin/conversations/{conversationId}");
/// Deletes any conversation together with every fork of its tree.
pub static ADMIN_DELETE_CONVERSATION: Operation =
    change("admin_delete_conversation", Method::DELETE, "/v1/admin/conversations/{conversationId}");
/// Lists the entries of any conversation: every channel, every client, every epoch.
pub static ADMIN_LIST_ENTRIES: Operation =
    read("admin_list_entries", Method::GET, "/v1/admin/conversations/{conversationId}/entries");
/// Lists every conversation of any tree, deleted or not.
pub static ADMIN_LIST_FORKS: Operation =
    read("admin_list_forks", Method::GET, "/v1/admin/conversations/{conversationId}/forks");
/// Lists the members of any conversation.
pub static ADMIN_LIST_MEMBERSHIPS: Operation =
    read("admin_list_memberships", Method::GET, "/v1/admin/conversations/{conversationId}/memberships");
/// Brings a deleted tree back, with all its members and entries.
pub static RESTORE_CONVERSATION: Operation =
    change("restore_conversation", Method::POST, "/v1/admin/conversations/{conversationId}/restore");
/// Removes, for good, the trees that were deleted longer ago than the retention period.
pub static EVICT: Operation = change("evict", Method::POST, "/v1/admin/evict");
/// Says how a job is doing.
pub static GET_JOB: Operation = read("get_job", Method::GET, "/v1/admin/jobs/{job_id}");
/// Has the events of a tenant indexed anew, or the vectors that another model made.
pub static REINDEX_TENANT: Operation = change("reindex_tenant", Method::POST, "/v1/admin/reindex");
/// Counts what is stored in the tenant.
pub static STATS_SUMMARY: Operation = read("stats_summary", Method::GET, "/v1/admin/stats/summary");
/// A statistic of the service over time, from the Prometheus server that scrapes it.
pub static STATS: Operation = read("stats", Method::GET, "/v1/admin/stats/{name}");

/// All of them.
pub static ALL: &[&Operation] = &[
    &STATUS,
    &LIVE,
    &READY,
    &HEALTH,
    &ASSEMBLE_CONTEXT,
    &GET_FILE,
    &PUT_FILE,
    &PATCH_FILE,
    &DELETE_FILE,
    &MOVE_FILE,
    &LIST_FILES,
    &WRITE_EVENT,
    &REINDEX_EVENTS,
    &SEARCH_EVENTS,
    &FORGET_USER,
    &APPLY_RETENTION,
    &FORGET_USER_BY_ID,
    &LIST_AUDIT,
    &GET_AUDIT,
    &RECONSTRUCT_VERSION,
    &LIST_CONVERSATIONS,
    &CREATE_CONVERSATION,
    &GET_CONVERSATION,
    &DELETE_CONVERSATION,
    &UPDATE_CONVERSATION,
    &FORK_CONVERSATION,
    &LIST_FORKS,
    &REPLAY_RESPONSE,
    &CANCEL_RESPONSE,
    &LIST_ENTRIES,
    &APPEND_ENTRY,
    &SYNC_ENTRIES,
    &LIST_MEMBERSHIPS,
    &SHARE_CONVERSATION,
    &DELETE_MEMBERSHIP,
    &UPDATE_MEMBERSHIP,
    &LIST_TRANSFERS,
    &CREATE_TRANSFER,
    &GET_TRANSFER,
    &DELETE_TRANSFER,
    &ACCEPT_TRANSFER,
    &INDEX_CONVERSATIONS,
    &SEARCH_CONVERSATIONS,
    &LIST_UNINDEXED,
    &CREATE_ATTACHMENT,
    &DOWNLOAD_SIGNED,
    &GET_ATTACHMENT,
    &DELETE_ATTACHMENT,
    &DOWNLOAD_URL,
    &LIST_CHANGES,
    &LIST_MEMORIES,
    &ADD_MEMORY,
    &GET_MEMORY,
    &DELETE_MEMORY,
    &UPDATE_MEMORY,
    &ARCHIVE_MEMORY,
    &PROMOTE_MEMORY,
    &RESTORE_MEMORY,
    &BULK_ADD,
    &BULK_DELETE,
    &MEMORY_CAPABILITIES,
    &CLEAR_MEMORIES,
    &CONSOLIDATE_MEMORIES,
    &DECAY_MEMORIES,
    &MEMORY_HEALTH,
    &FILTER_MEMORIES,
    &SEARCH_MEMORIES,
    &END_SESSION,
    &LIST_FACTS,
    &ADD_FACT,
    &GET_FACT,
    &DELETE_FACT,
    &UPDATE_FACT,
    &QUERY_FACTS,
    &DISCOVER_KNOWLEDGE,
    &BATCH_KNOWLEDGE,
    &CREATE_KNOWLEDGE,
    &QUERY_KNOWLEDGE,
    &STREAM_KNOWLEDGE,
    &GET_KNOWLEDGE,
    &REPLACE_KNOWLEDGE,
    &DELETE_KNOWLEDGE,
    &KNOWLEDGE_METADATA,
    &ADMIN_LIST_ATTACHMENTS,
    &ADMIN_GET_ATTACHMENT,
    &ADMIN_DELETE_ATTACHMENT,
    &ADMIN_GET_ATTACHMENT_CONTENT,
    &ADMIN_GET_ATTACHMENT_DOWNLOAD_URL,
    &ADMIN_LIST_CONVERSATIONS,
    &ADMIN_SEARCH_CONVERSATIONS,
    &ADMIN_GET_CONVERSATION,
    &ADMIN_DELETE_CONVERSATION,
    &ADMIN_LIST_ENTRIES,
    &ADMIN_LIST_FORKS,
    &ADMIN_LIST_MEMBERSHIPS,
    &RESTORE_CONVERSATION,
    &EVICT,
    &GET_JOB,
    &REINDEX_TENANT,
    &STATS_SUMMARY,
    &STATS,
];
