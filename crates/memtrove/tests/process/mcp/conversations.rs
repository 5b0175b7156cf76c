//! `append_message`, `search_conversations`.

use crate::mcp::support::*;
use std::sync::LazyLock;

#[test]
fn messages_of_a_session_are_one_conversation_and_are_found_later() {
    let home = Home::new();
    let mut agent = home.agent(&[]);
    let asked =
        agent.ok("append_message", json!({"role": "user", "text": "Which tram goes to the harbour?"}));
    let said =
        agent.ok("append_message", json!({"role": "assistant", "text": "Tram 28 goes to the harbour."}));
    assert_eq!(id_in(&asked), id_in(&said));
    drop(agent);

    let mut later = home.agent(&[]);
    let found = later.ok("search_conversations", json!({"query": "tram to the harbour"}));
    assert!(found.contains(&id_in(&said)) && found.contains("harbour"), "{found}");
    assert_eq!(found.lines().count(), 1, "one passage of each conversation: {found}");
    let other = later.ok("append_message", json!({"role": "user", "text": "And back?"}));
    assert_ne!(id_in(&other), id_in(&said), "a session has a conversation of its own");
    let same = later
        .ok("append_message", json!({"role": "user", "text": "And back?", "conversation_id": id_in(&said)}));
    assert_eq!(id_in(&same), id_in(&said));
}

#[test]
fn of_long_messages_the_passage_is_shown_that_matched() {
    let mut agent = Home::new().agent(&[]);
    let long = format!("{}At last we moored in the harbour of Lisbon.", "Waves and wind. ".repeat(300));
    agent.ok("append_message", json!({"role": "assistant", "text": long}));
    let found = agent.ok("search_conversations", json!({"query": "harbour of Lisbon"}));
    assert!(found.contains(": …") && found.contains("**Lisbon**. (of 4843 characters)"), "{found}");
    assert!(found.len() < 1000, "{} characters", found.len());
}

/// Servers that find what was said in different ways.
static SERVERS: LazyLock<[TestServer; 2]> = LazyLock::new(|| {
    ["", "[search]\nsemantic_enabled = false\nauto_mode = \"fallback\"\n"]
        .map(|search| Setup::new(env!("CARGO_BIN_EXE_memtrove")).toml(search).start())
});

/// Makes a conversation in which a user says this, shared with another one.
fn shared(owner: &Client, with: &Client, text: &str) -> String {
    let id = owner.post("/v1/conversations", json!({"title": "Plans"})).expect(201).id();
    let entry =
        json!({"channel": "history", "contentType": "history", "content": [{"role": "USER", "text": text}]});
    owner.post(&format!("/v1/conversations/{id}/entries"), entry).expect(201);
    let membership = json!({"userId": with.user(), "accessLevel": "writer"});
    owner.post(&format!("/v1/conversations/{id}/memberships"), membership).expect(201);
    id
}

#[test]
fn what_others_share_is_neither_found_nor_written_to() {
    for server in SERVERS.iter() {
        let (alice, bob) = (server.someone("alice"), server.someone("bob"));
        let id = shared(&bob, &alice, "Send the harbour keys to Bob");
        let editor = Caller::of(&alice);
        let found = editor.ok("search_conversations", json!({"query": "harbour keys"}));
        assert_eq!(found, "nothing found in earlier conversations");
        let message = json!({"role": "user", "text": "Here are the harbour keys", "conversation_id": id});
        let refused = editor.failure("append_message", message.clone());
        assert_eq!(refused["code"], "NOT_FOUND", "{refused}");
        assert!(refused["hint"].as_str().unwrap().contains("Leave out 'conversation_id'"), "{refused}");
        let entries = bob.get(&format!("/v1/conversations/{id}/entries")).expect(200);
        assert_eq!(entries.json["data"].as_array().unwrap().len(), 1, "{}", entries.text);

        let owner = Caller::of(&bob);
        assert!(owner.ok("search_conversations", json!({"query": "harbour keys"})).contains(&id));
        assert_eq!(id_in(&owner.ok("append_message", message)), id);
    }
}

#[test]
fn words_of_others_in_ones_own_conversation_are_said_to_be_theirs() {
    let (alice, bob) = (SERVERS[0].someone("alice"), SERVERS[0].someone("bob"));
    let id = shared(&alice, &bob, "Shall we meet on Tuesday?");
    let entry = json!({"channel": "history", "contentType": "history",
        "content": [{"role": "USER", "text": "The lighthouse suits me better"}]});
    bob.post(&format!("/v1/conversations/{id}/entries"), entry).expect(201);
    let found = Caller::of(&alice).ok("search_conversations", json!({"query": "lighthouse"}));
    assert!(found.contains(&format!("user ({}): The lighthouse", bob.user())), "{found}");
}

#[test]
fn what_is_no_message_is_refused() {
    let mut agent = Home::new().agent(&[]);
    for wrong in [
        json!({"role": "system", "text": "a"}),
        json!({"role": "user"}),
        json!({"role": "user", "text": "a", "conversation_id": "mine"}),
    ] {
        let error = agent.failure("append_message", wrong);
        assert_eq!(error["code"], "INVALID_ARGUMENTS", "{error}");
    }
    assert_eq!(
        agent.ok("search_conversations", json!({"query": "a"})),
        "nothing found in earlier conversations"
    );
}
