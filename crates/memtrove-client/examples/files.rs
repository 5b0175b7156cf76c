//! A file that several agents change at once, and nobody's change is lost.
//!
//! Start a server (`memtrove`), then `cargo run --example files`.

#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use memtrove_client::{
    Assemble, Client, Envelope, EventQuery, FilePath, FileUpdate, PatchRequest, Precondition, Result, Scope,
    TextEdit, UpdateOptions, WriteRequest,
};

#[tokio::main]
async fn main() -> Result<()> {
    let url = std::env::var("MEMTROVE_URL").unwrap_or_else(|_| "http://127.0.0.1:7077".into());
    let client = Client::builder().base_url(url).api_key("planner").service_id("planner").build()?;
    println!("in the end it says:\n{}", run(&client, &Scope::new("default", "dana")).await?);
    Ok(())
}

/// Writes a file, changes it twice, assembles a context; says what the file holds in the end.
pub async fn run(client: &Client, scope: &Scope) -> Result<String> {
    let profile: FilePath = "profile.md".parse()?;
    let document = Envelope::markdown("profile", "# Dana\n\n- lives in Lisbon\n");
    let written = match client.write_file(scope, &profile, document, Precondition::CreateNew).await {
        Err(error) if error.is_conflict() => client.get_file(scope, &profile).await?,
        written => written?,
    };
    println!("{profile} is at {}", written.etag);

    // Somebody else may change the file meanwhile: then the closure is called again with what they left.
    let options = UpdateOptions::default();
    let moved = client.update_with_retry(scope, &profile, options.clone(), |file| async move {
        let city = if file.text().is_some_and(|text| text.contains("Lisbon")) { "Lisbon" } else { "Porto" };
        Ok(FileUpdate::Patch(PatchRequest::edits([TextEdit::new(city, "Porto")]).because("Dana moved")))
    });
    moved.await?;

    let longer = client.update_with_retry(scope, &profile, options, |file| async move {
        let text = format!("{}- drinks green tea\n", file.text().unwrap_or_default());
        let document = Envelope::markdown(file.document.doc_id, text);
        Ok(FileUpdate::Write(WriteRequest::new(document)))
    });
    longer.await?;

    client.write_event(scope, &scope.event("chat-17", "Dana moved from Lisbon to Porto")).await?;
    let query = EventQuery { query: Some("moved".into()), ..EventQuery::default() };
    println!("{} events about moving", client.search_events(scope, query).await?.len());

    let context = client.assemble_context(scope, Assemble::files([profile])).await?;
    let text = &context.files[0].document.content["text"];
    Ok(text.as_str().unwrap_or_default().to_owned())
}
