//! The few sentences that nearly every test begins with.

pub use memtrove_testkit::server::{Answer, Body, Client, Page, Setup, TestServer, assert_members};
pub use memtrove_testkit::server::{fresh_id, fresh_name};
pub use memtrove_testkit::steps::{Dice, assert_timestamp, at_once, spread, until};
pub use serde_json::{Value, json};

/// The binary under test with its defaults (local mode), plus these lines of configuration.
pub fn server_with(toml: &str) -> TestServer {
    Setup::new(env!("CARGO_BIN_EXE_memtrove")).toml(toml).start()
}

/// The binary under test with its defaults: local mode.
pub fn local_server() -> TestServer {
    server_with("")
}

/// A user that no other test knows, in a tenant that no other test knows. Its key is needed to choose the tenant.
pub fn someone_in(server: &TestServer, role: &str, tenant: &str) -> Client {
    server.someone(role).with_key("gateway").in_tenant(tenant)
}

/// The local mode's admin, in this tenant.
pub fn admin_in(server: &TestServer, tenant: &str) -> Client {
    server.as_user("admin").with_key("gateway").in_tenant(tenant)
}

/// A history entry by the user.
pub fn history(text: &str) -> Value {
    json!({"channel": "history", "contentType": "history", "content": [{"role": "USER", "text": text}]})
}

/// A memory entry with these items.
pub fn memory(items: Value) -> Value {
    json!({"channel": "memory", "contentType": "LC4J", "content": items})
}

/// A new conversation with this title; its id.
#[track_caller]
pub fn start(owner: &Client, title: &str) -> String {
    owner.post("/v1/conversations", json!({"title": title})).expect(201).id()
}

/// Appends to the transcript; the entry's id.
#[track_caller]
pub fn say(who: &Client, conversation: &str, text: &str) -> String {
    who.post(&format!("/v1/conversations/{conversation}/entries"), history(text)).expect(201).id()
}

/// Appends to the agent's memory; the entry's id.
#[track_caller]
pub fn remember(agent: &Client, conversation: &str, items: Value) -> String {
    agent.post(&format!("/v1/conversations/{conversation}/entries"), memory(items)).expect(201).id()
}

/// Synchronises the agent's memory; the whole answer.
#[track_caller]
pub fn sync(agent: &Client, conversation: &str, items: Value) -> Answer {
    agent.post(&format!("/v1/conversations/{conversation}/entries/sync"), memory(items))
}

/// Forks at this entry, which the fork no longer sees; the fork's id.
#[track_caller]
pub fn fork(who: &Client, conversation: &str, entry: &str) -> String {
    who.post_nothing(&format!("/v1/conversations/{conversation}/entries/{entry}/fork")).expect(201).id()
}

/// Lets somebody in at this level.
#[track_caller]
pub fn share(owner: &Client, conversation: &str, with: &Client, level: &str) {
    owner
        .post(
            &format!("/v1/conversations/{conversation}/memberships"),
            json!({"userId": with.user(), "accessLevel": level}),
        )
        .expect(201);
}

/// A page of entries; `query` comes after the `?`.
#[track_caller]
pub fn entries(who: &Client, conversation: &str, query: &str) -> Page {
    who.get(&format!("/v1/conversations/{conversation}/entries?{query}")).expect_page()
}

/// What the entries of a page say: the text of a history entry, the items of a memory entry joined by `+`.
pub fn said(page: &Page) -> Vec<String> {
    page.data.iter().map(label).collect()
}

/// What one entry says.
pub fn label(entry: &Value) -> String {
    let items = entry["content"].as_array().cloned().unwrap_or_default();
    let label = |item: &Value| match (item["text"].as_str(), item.as_str()) {
        (Some(text), _) | (None, Some(text)) => text.to_owned(),
        (None, None) => item.to_string(),
    };
    items.iter().map(label).collect::<Vec<_>>().join("+")
}

/// The transcript of a conversation.
#[track_caller]
pub fn transcript(who: &Client, conversation: &str) -> Vec<String> {
    said(&entries(who, conversation, "limit=200"))
}

/// Transcript and own memory of all epochs, in order.
#[track_caller]
pub fn view(agent: &Client, conversation: &str) -> Vec<String> {
    said(&entries(agent, conversation, "channel=all&limit=200"))
}

/// The agent's current memory as the items it is made of.
#[track_caller]
pub fn current_memory(agent: &Client, conversation: &str) -> Vec<Value> {
    let page = entries(agent, conversation, "channel=memory&limit=1000");
    page.data.iter().flat_map(|entry| entry["content"].as_array().cloned().unwrap_or_default()).collect()
}

/// Follows `afterCursor` to the end; `path` must already have a query.
#[track_caller]
pub fn walk(who: &Client, path: &str) -> Vec<Value> {
    let mut all = Vec::new();
    let mut page = who.get(path).expect_page();
    loop {
        all.append(&mut page.data);
        let Some(after) = page.after else { return all };
        assert!(all.len() < 10_000, "{path} never ends");
        page = who.get(&format!("{path}&after={after}")).expect_page();
    }
}

/// Requires the lower-case 8-4-4-4-12 form.
#[track_caller]
pub fn assert_uuid(value: &Value) {
    let text = value.as_str().unwrap_or_default();
    let shape: String =
        text.chars().map(|c| if matches!(c, '0'..='9' | 'a'..='f') { 'x' } else { c }).collect();
    assert_eq!(shape, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", "not a lower-case UUID: {value}");
}

/// The names in a tree of conversations that a list returned, in its order.
pub fn titles(page: &Page) -> Vec<String> {
    page.all("title")
}
