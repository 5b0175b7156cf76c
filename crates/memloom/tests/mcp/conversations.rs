//! `append_message`, `search_conversations`.

use crate::support::*;

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
fn long_passages_are_cut() {
    let mut agent = Home::new().agent(&[]);
    agent.ok(
        "append_message",
        json!({"role": "assistant", "text": format!("Harbour {}", "tide ".repeat(2000))}),
    );
    let found = agent.ok("search_conversations", json!({"query": "harbour tide"}));
    assert!(found.len() < 1000 && found.contains("more characters)"), "{found}");
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
