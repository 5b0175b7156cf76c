//! What the guide shows, run; and a check that it shows nothing else.

use crate::support::*;
use memtrove_client::changes::FeedEvent;
use memtrove_client::conversations::{CreateConversationRequest, CreateEntryRequest, ListEntries};
use memtrove_client::files::AuditQuery;
use memtrove_client::memories::{
    AddMemoryRequest, EndSessionRequest, MemoryFilter, MemoryIdentifiers, MemoryLayer, SearchMemoriesRequest,
};
use memtrove_client::{
    Assemble, CallOptions, DeleteRequest, Envelope, ListFiles, PatchOp, PatchRequest, Precondition, Result,
};

const GUIDE: &str = include_str!("../../../../docs/rust.md");

/// The program that the guide begins with.
const FIRST: &str = include_str!("../../../memtrove-client/examples/first.rs");

/// Where the guide's code is.
const SOURCES: [&str; 5] = [
    include_str!("guide.rs"),
    FIRST,
    include_str!("../../../memtrove-client/examples/chat.rs"),
    include_str!("../../../memtrove-client/examples/files.rs"),
    include_str!("../../../memtrove-client/examples/remember_and_recall.rs"),
];

/// A text without the indentation of its lines.
fn flat(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_guide_shows_what_is_run() {
    let blocks: Vec<&str> =
        GUIDE.split("```rust\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(blocks.len() >= 10, "the guide was read: {} blocks", blocks.len());
    let fences = GUIDE.matches("```rust").count();
    assert_eq!(blocks.len(), fences, "a block of Rust begins with ```rust and nothing behind it");
    // The first is a whole program, all but what an example says about itself.
    let program = FIRST.split_once("\n\nuse ").expect("the program begins with what it uses").1;
    assert_eq!(blocks[0], format!("use {program}"));
    let sources = SOURCES.map(flat);
    for block in blocks {
        let found = sources.iter().any(|source| source.contains(&flat(block.trim_end())));
        assert!(found, "nobody runs this block of docs/rust.md:\n{block}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guide_on_files() -> Result<()> {
    let world = World::new();
    let (client, scope) = (world.agent("dana"), world.scope("dana"));
    let path: FilePath = "projects/lisbon.md".parse()?;
    let document = Envelope::markdown("lisbon", "# Lisbon\n\n- book the hotel\n");
    let file = client.write_file(&scope, &path, document, Precondition::CreateNew).await?;

    let patch = PatchRequest::ops([
        PatchOp::add("/content/status", "booked"),
        PatchOp::replace("/content/text", "# Lisbon\n\n- pack\n"),
    ]);
    let file = client.patch_file(&scope, &path, patch, &file.etag).await?;
    assert_eq!(file.text(), Some("# Lisbon\n\n- pack\n"));

    let files: Vec<_> = client.list_files_all(&scope, ListFiles::under("projects/")).try_collect().await?;
    assert_eq!(files.len(), 1);

    let dana = MemoryIdentifiers::user("dana");
    client
        .add_memory(AddMemoryRequest::new(MemoryLayer::User, dana.clone(), "Dana prefers window seats"))
        .await?;
    let mut search = SearchMemoriesRequest::new(dana, "which seats does Dana prefer?");
    search.threshold = Some(0.5);
    let request = Assemble { memories: Some(search), ..Assemble::files([path.clone()]) };
    let context = client.assemble_context(&scope, request).await?;
    for file in &context.files {
        println!("{}\n{}", file.path, file.document.content["text"]);
    }
    assert_eq!(context.memories.expect("memories were asked for").len(), 1);

    let to: FilePath = "archive/lisbon.md".parse()?;
    let moved = client.move_file(&scope, &path, to.clone(), &file.etag).await?;
    client.delete_file(&scope, &to, DeleteRequest::default(), &moved.etag).await?;

    let query = AuditQuery { path: Some("projects/lisbon.md".into()), ..AuditQuery::default() };
    let trail: Vec<_> = client.list_audit_all(&scope, query).try_collect().await?;
    for record in &trail {
        println!("{} {} by {}", record.timestamp, record.action, record.actor);
    }
    assert!(trail.len() >= 2, "{trail:?}");
    match client.get_file(&scope, &path).await {
        Ok(file) => panic!("still at {}", file.etag),
        Err(error) if error.is_not_found() => println!("{path} is gone"),
        Err(error) => return Err(error),
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guide_on_conversations() -> Result<()> {
    let world = World::new();
    let client = world.agent("dana");
    let chat = client.create_conversation(CreateConversationRequest::titled("Trip to Lisbon")).await?;

    let once = client.with_options(CallOptions::idempotent("message-17"));
    let entry = once.append_entry(chat.id, CreateEntryRequest::message("USER", "Hello!")).await?;
    let again = once.append_entry(chat.id, CreateEntryRequest::message("USER", "Hello!")).await?;
    assert_eq!(entry.id, again.id);

    let page = client.list_entries(chat.id, ListEntries::newest(50)).await?;
    assert_eq!(page.data.len(), 1);

    let mut changes = std::pin::pin!(world.admin().follow_changes(Some(0)));
    while let Some(event) = changes.try_next().await? {
        match event {
            FeedEvent::Change(change) if change.kind == "entry.appended" => break,
            FeedEvent::Change(change) => println!("{} {}", change.sequence, change.kind),
            FeedEvent::Gap(gap) => println!("begin anew at {}", gap.oldest),
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guide_on_memories() -> Result<()> {
    let world = World::new();
    let client = world.agent("dana");
    let session = MemoryIdentifiers::session("dana", "trip-1");
    let mut note =
        AddMemoryRequest::new(MemoryLayer::Session, session.clone(), "Dana asked for a hotel near the river");
    note.metadata = Some(
        serde_json::from_value(json!({"tags": ["hotel"], "importance": 0.9})).expect("metadata as they are"),
    );
    client.add_memory(note).await?;

    let search = SearchMemoriesRequest {
        filter: Some(MemoryFilter { tags: Some(vec!["hotel".into()]), ..MemoryFilter::default() }),
        threshold: Some(0.3),
        ..SearchMemoriesRequest::new(session.clone(), "where does she want to stay?")
    };
    let found = client.search_memories(search).await?.results;
    let found: Vec<&str> = found.iter().map(|found| found.memory.content.as_str()).collect();
    assert_eq!(found, ["Dana asked for a hotel near the river"]);

    let ended =
        client.end_session(EndSessionRequest { identifiers: Some(session), ..Default::default() }).await?;
    assert_eq!(ended.promoted.len(), 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_guide_on_errors() -> Result<()> {
    let world = World::new();
    let (client, scope) = (world.agent("dana"), world.scope("dana"));
    let path: FilePath = "none.md".parse()?;
    let said = match client.get_file(&scope, &path).await {
        Ok(file) => format!("at {}", file.etag),
        Err(Error::Api(refusal)) => {
            let request = refusal.request_id.as_deref().unwrap_or("unknown");
            format!("{} {}: {} (request {request})", refusal.status, refusal.code, refusal.message)
        }
        Err(Error::Transport { operation, source }) => format!("{operation} got no answer: {source}"),
        Err(other) => return Err(other),
    };
    assert!(said.starts_with("404 Not Found DOCUMENT_NOT_FOUND: ") && !said.contains("unknown"), "{said}");

    let url = world.server.url();
    let builder = Client::builder()
        .base_url(url)
        .api_key("planner")
        .service_id("planner")
        .retry(RetryPolicy { max_retries: 5, ..RetryPolicy::default() })
        .timeout(Duration::from_secs(10))
        .on_response(|response| println!("{} {}", response.status(), response.url().path()));
    let client = builder.build()?;
    assert_eq!(client.status().await?.status, "ok");
    Ok(())
}
