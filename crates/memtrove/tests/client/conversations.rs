//! Conversations, forks, sharing, search, the change feed, and a response that nobody gives.

use crate::support::*;
use memtrove_client::conversations::*;
use memtrove_client::{CallOptions, ConversationId};

pub async fn chapter(world: &World) {
    let alice = world.agent("alice");
    let chat = talking(&alice).await;
    forking(&alice, chat).await;
    finding(world, &alice, chat).await;
    sharing(world, &alice, chat).await;
    response(&alice, chat).await;
    changes(world).await;
    alice.delete_conversation(chat).await.unwrap_err();
    world.agent("bob").delete_conversation(chat).await.unwrap();
    assert!(world.agent("bob").get_conversation(chat).await.unwrap_err().is_not_found());
}

async fn talking(alice: &Client) -> ConversationId {
    let mut request = CreateConversationRequest::titled("Trip to Lisbon");
    request.metadata = Some(memtrove_client::Json::of(&json!({"source": "test"})).unwrap());
    let chat = alice.create_conversation(request).await.unwrap();
    let read = alice.get_conversation(chat.id).await.unwrap();
    assert_eq!(read.metadata.unwrap().value().unwrap()["source"], "test");
    let renamed = alice.update_conversation(chat.id, Some("Lisbon".into())).await.unwrap();
    assert_eq!(renamed.title.as_deref(), Some("Lisbon"));

    let keyed = alice.with_options(CallOptions::idempotent("first-message"));
    let first = keyed
        .append_entry(chat.id, CreateEntryRequest::message("USER", "When is Lisbon warm?"))
        .await
        .unwrap();
    let again = keyed
        .append_entry(chat.id, CreateEntryRequest::message("USER", "When is Lisbon warm?"))
        .await
        .unwrap();
    assert_eq!(first.id, again.id, "one key, one entry");
    for text in ["In May.", "In October."] {
        alice.append_entry(chat.id, CreateEntryRequest::message("AI", text)).await.unwrap();
    }
    let newest = alice.list_entries(chat.id, ListEntries::newest(1)).await.unwrap();
    assert_eq!(newest.data[0].content.value().unwrap()[0]["text"], "In October.");
    let request = ListEntries { limit: Some(2), ..ListEntries::default() };
    let all: Vec<Entry> = alice.list_entries_all(chat.id, request).try_collect().await.unwrap();
    assert_eq!(all.len(), 3);

    let state = || CreateEntryRequest::memory("LC4J", [json!({"step": 1})]);
    let synced = alice.sync_entries(chat.id, state()).await.unwrap();
    assert!(!synced.no_op && synced.entry.is_some());
    assert!(alice.sync_entries(chat.id, state()).await.unwrap().no_op);
    let request = ListEntries { channel: Some(ChannelFilter::Memory), ..ListEntries::default() };
    assert_eq!(alice.list_entries(chat.id, request).await.unwrap().data[0].channel, Channel::Memory);
    chat.id
}

async fn forking(alice: &Client, chat: ConversationId) {
    let entries = alice.list_entries(chat, ListEntries::default()).await.unwrap().data;
    let request = ForkFromEntryRequest { title: Some("Another way".into()) };
    let fork = alice.fork_conversation(chat, entries[2].id, request).await.unwrap();
    assert_eq!(fork.forked_at_conversation_id, Some(chat));
    assert_eq!(alice.list_entries(fork.id, ListEntries::default()).await.unwrap().data.len(), 2);
    assert_eq!(alice.list_forks(chat, PageRequest::default()).await.unwrap().data.len(), 2);
    let request = ListConversations { mode: Some(ListMode::All), ..ListConversations::default() };
    assert_eq!(alice.list_conversations(request).await.unwrap().data.len(), 2);
    let request =
        ListConversations { mode: Some(ListMode::All), limit: Some(1), ..ListConversations::default() };
    let all: Vec<ConversationSummary> = alice.list_conversations_all(request).try_collect().await.unwrap();
    assert_eq!(all.len(), 2);
}

async fn finding(world: &World, alice: &Client, chat: ConversationId) {
    let request = SearchConversationsRequest::new("october");
    let found = alice.search_conversations(request).await.unwrap();
    assert_eq!(found.data[0].conversation_id, chat);
    assert!(found.data[0].highlights.as_ref().unwrap().contains("**October**"), "{found:?}");

    let page = PageRequest { limit: Some(1), ..PageRequest::default() };
    let indexer = world.admin();
    let unindexed = indexer.list_unindexed(page).await.unwrap();
    let entry = &unindexed.data[0];
    let request = IndexEntryRequest {
        conversation_id: Some(entry.conversation_id),
        entry_id: Some(entry.entry.id),
        indexed_content: Some("about zeppelins".into()),
    };
    assert_eq!(indexer.index_conversations(vec![request]).await.unwrap().indexed, 1);
    let found = alice.search_conversations(SearchConversationsRequest::new("zeppelins")).await.unwrap();
    assert_eq!(found.data[0].entry_id, entry.entry.id);
}

async fn sharing(world: &World, alice: &Client, chat: ConversationId) {
    let bob = world.agent("bob");
    let refused = bob.get_conversation(chat).await.unwrap_err();
    assert_eq!(refused.api().unwrap().code, "forbidden");
    let member = alice.share_conversation(chat, "bob", AccessLevel::Reader).await.unwrap();
    assert_eq!(member.access_level, AccessLevel::Reader);
    let member = alice.update_membership(chat, "bob", AccessLevel::Writer).await.unwrap();
    assert_eq!(member.access_level, AccessLevel::Writer);
    assert_eq!(alice.list_memberships(chat, PageRequest::default()).await.unwrap().data.len(), 2);
    alice.share_conversation(chat, "carol", AccessLevel::Reader).await.unwrap();
    alice.delete_membership(chat, "carol").await.unwrap();

    let transfer = alice.create_transfer(chat, "bob").await.unwrap();
    let twice = alice.create_transfer(chat, "bob").await.unwrap_err();
    assert_eq!(twice.api().unwrap().details["existingTransferId"], transfer.id.to_string());
    assert_eq!(bob.get_transfer(transfer.id).await.unwrap().from_user_id.as_str(), "alice");
    bob.delete_transfer(transfer.id).await.unwrap();
    let transfer = alice.create_transfer(chat, "bob").await.unwrap();
    let request = ListTransfers { role: Some(TransferRole::Recipient), ..ListTransfers::default() };
    assert_eq!(bob.list_transfers(request).await.unwrap().data[0].id, transfer.id);
    bob.accept_transfer(transfer.id).await.unwrap();
    assert_eq!(bob.get_conversation(chat).await.unwrap().owner_user_id.as_str(), "bob");
}

/// A response that is being given stands with the streams; here there is none.
async fn response(alice: &Client, chat: ConversationId) {
    let told: Vec<ResponseEvent> = alice.replay_response(chat, None).try_collect().await.unwrap();
    assert_eq!(told, []);
    alice.cancel_response(chat).await.unwrap();
}

async fn changes(world: &World) {
    let page = world.admin().list_changes(Some(0), Some(1)).await.unwrap();
    assert_eq!((page.changes[0].sequence, page.next_after), (1, Some(1)));
    let refused = world.agent("alice").list_changes(Some(-1), None).await.unwrap_err();
    assert!(refused.api().is_some(), "{refused}");
}
