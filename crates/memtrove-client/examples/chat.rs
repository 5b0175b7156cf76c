//! A chat that takes another turn: entries, a fork, and a search over both branches.
//!
//! Start a server (`memtrove`), then `cargo run --example chat`.

#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use memtrove_client::conversations::{
    CreateConversationRequest, CreateEntryRequest, Entry, ForkFromEntryRequest, ListEntries,
    SearchConversationsRequest,
};
use memtrove_client::futures_util::TryStreamExt;
use memtrove_client::{Client, Result};

#[tokio::main]
async fn main() -> Result<()> {
    let url = std::env::var("MEMTROVE_URL").unwrap_or_else(|_| "http://127.0.0.1:7077".into());
    let client = Client::builder().base_url(url).bearer_token("dana").build()?;
    println!("{} entries in the fork", run(&client).await?);
    Ok(())
}

/// Talks, forks, searches; says how many entries the fork has.
pub async fn run(client: &Client) -> Result<usize> {
    let chat = client.create_conversation(CreateConversationRequest::titled("Trip to Lisbon")).await?;
    let question = CreateEntryRequest::message("USER", "Which month is best for Lisbon?");
    client.append_entry(chat.id, question).await?;
    let may = CreateEntryRequest::message("AI", "May, before the heat.");
    let answer = client.append_entry(chat.id, may).await?;

    // The fork sees everything before the answer, and goes on in its own way.
    let fork = client.fork_conversation(chat.id, answer.id, ForkFromEntryRequest::default()).await?;
    let october = CreateEntryRequest::message("AI", "October: warm, and half the crowd.");
    client.append_entry(fork.id, october).await?;

    let found = client.search_conversations(SearchConversationsRequest::new("when is Lisbon warm?")).await?;
    let best = found.data.first().and_then(|found| found.highlights.as_deref());
    println!("found: {}", best.unwrap_or("nothing to show"));

    let entries: Vec<Entry> = client.list_entries_all(fork.id, ListEntries::default()).try_collect().await?;
    Ok(entries.len())
}
