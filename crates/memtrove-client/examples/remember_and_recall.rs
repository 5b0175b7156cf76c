//! Remembers what a user likes, and recalls it by meaning.
//!
//! Start a server (`memtrove`), then `cargo run --example remember_and_recall`.

#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use memtrove_client::memories::{
    AddFactRequest, AddMemoryRequest, Expect, FactStatement, MemoryIdentifiers, MemoryLayer,
    QueryFactsRequest, SearchMemoriesRequest, UpdateMemoryRequest,
};
use memtrove_client::{Client, Result};

#[tokio::main]
async fn main() -> Result<()> {
    let url = std::env::var("MEMTROVE_URL").unwrap_or_else(|_| "http://127.0.0.1:7077".into());
    let client = Client::builder().base_url(url).api_key("planner").build()?;
    println!("now the best says: {}", run(&client, "dana").await?);
    Ok(())
}

/// Remembers, recalls, corrects; says what was recalled in the end.
pub async fn run(client: &Client, user: &str) -> Result<String> {
    let dana = MemoryIdentifiers::user(user);
    let request = AddMemoryRequest::new(MemoryLayer::User, dana.clone(), "Dana prefers window seats");
    let added = client.add_memory(request).await?;

    let mut search = SearchMemoriesRequest::new(dana.clone(), "which seats does Dana prefer?");
    search.threshold = Some(0.5);
    let found = client.search_memories(search.clone()).await?;
    println!("{} memories, the best says: {}", found.total_count, found.results[0].memory.content);

    let change = UpdateMemoryRequest {
        content: Some("Dana prefers aisle seats since her knee surgery".into()),
        ..UpdateMemoryRequest::default()
    };
    client.update_memory(added.memory.id, change, Expect::version(added.memory.version)).await?;

    let fact = FactStatement::new("preference", "dana", "drinks", "green tea");
    client.add_fact(AddFactRequest::new(MemoryLayer::User, dana.clone(), fact)).await?;
    let facts = client.query_facts(QueryFactsRequest::new(dana)).await?;
    println!("Dana drinks {}", facts.facts[0].object);

    let found = client.search_memories(search).await?;
    Ok(found.results[0].memory.content.clone())
}
