//! Everything it takes to begin: a client, something to remember, and a search for it.
//!
//! Start a server (`memtrove`), then `cargo run --example first`.

#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use memtrove_client::memories::{AddMemoryRequest, MemoryIdentifiers, MemoryLayer, SearchMemoriesRequest};
use memtrove_client::{Client, Result};

#[tokio::main]
async fn main() -> Result<()> {
    let url = std::env::var("MEMTROVE_URL").unwrap_or_else(|_| "http://127.0.0.1:7077".into());
    let client = Client::builder().base_url(url).api_key("planner").build()?;
    println!("Alice's seat: {}", run(&client).await?);
    Ok(())
}

/// Remembers something, and says what is found of it.
pub async fn run(client: &Client) -> Result<String> {
    let alice = MemoryIdentifiers::user("alice");
    let memory = AddMemoryRequest::new(MemoryLayer::User, alice.clone(), "Alice prefers window seats");
    client.add_memory(memory).await?;
    let search = SearchMemoriesRequest::new(alice, "which seats does Alice prefer?");
    let found = client.search_memories(search).await?;
    let best = found.results.first().map(|found| found.memory.content.clone());
    Ok(best.unwrap_or_else(|| "nothing is known of it".to_owned()))
}
