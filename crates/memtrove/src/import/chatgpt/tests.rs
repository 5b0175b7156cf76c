//! Every kind of message that an export may have.

use super::*;

fn said(author: &str, content: Value) -> Option<(Speaker, String, Vec<Value>)> {
    let message = json!({"id": "m", "author": {"role": author, "name": "python"}, "create_time": 1.0, "content": content});
    let found = message_of(&message)?;
    Some((found.role, found.text, found.events))
}

fn message_of(said: &Value) -> Option<Message> {
    message("node", said, &mut LeftOut::default())
}

#[test]
fn words_stay_words_and_the_rest_becomes_events() {
    let text = |words: &str| json!({"content_type": "text", "parts": [words]});
    assert_eq!(said("user", text("hi")), Some((Speaker::User, "hi".into(), vec![])));
    assert_eq!(said("user", text("")), None);
    assert_eq!(said("system", text("be nice")), None);
    let output = json!({"content_type": "execution_output", "text": "4"});
    let event = json!({"type": "tool_result", "name": "python", "output": "4"});
    assert_eq!(said("tool", output), Some((Speaker::Ai, String::new(), vec![event])));
    let picture = json!({"content_type": "multimodal_text", "parts": [
        {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-1"}, "what is this?"]});
    let event = json!({"type": "picture", "name": "file-service://file-1"});
    assert_eq!(said("user", picture), Some((Speaker::User, "what is this?".into(), vec![event])));
    let thoughts = json!({"content_type": "thoughts", "thoughts": [{"summary": "s", "content": "hm"}]});
    let event = json!({"type": "thinking", "text": "hm"});
    assert_eq!(said("assistant", thoughts), Some((Speaker::Ai, String::new(), vec![event])));
    let novel = json!({"content_type": "hologram"});
    assert_eq!(
        said("assistant", novel),
        Some((Speaker::Ai, String::new(), vec![json!({"type": "hologram"})]))
    );
}

#[test]
fn a_part_that_is_nothing_is_nothing_and_one_of_another_kind_is_no_file() {
    let mut left_out = LeftOut::default();
    let content =
        json!({"content_type": "multimodal_text", "parts": [null, "hi", {"content_type": "hologram"}]});
    let said = json!({"id": "m", "author": {"role": "user"}, "content": content});
    let found = message("node", &said, &mut left_out).unwrap();
    assert_eq!(found.text, "hi");
    assert_eq!(found.events, [json!({"type": "hologram", "name": null})]);
    assert_eq!(left_out.iter().collect::<Vec<_>>(), [(UNKNOWN_PARTS, 1)]);
}

#[test]
fn what_is_said_to_a_tool_is_a_call() {
    let call = json!({"id": "m", "author": {"role": "assistant"}, "recipient": "python",
        "content": {"content_type": "code", "text": "2+2"}});
    let found = message_of(&call).unwrap();
    assert_eq!(found.events, [json!({"type": "tool_call", "name": "python", "input": "2+2"})]);
    assert_eq!(found.text, "");
}

#[test]
fn what_is_left_out_is_counted() {
    let mut left_out = LeftOut::default();
    let context = json!({"author": {"role": "user"}, "content": {"content_type": "user_editable_context", "user_profile": "x"}});
    assert!(message("n", &context, &mut left_out).is_none());
    assert_eq!(left_out.iter().collect::<Vec<_>>(), [("custom instructions", 1)]);
}

#[test]
fn a_conversation_without_an_id_or_messages_says_so() {
    let refused = |item: Value| read(&item, &mut LeftOut::default()).unwrap_err();
    assert!(refused(json!({"mapping": {}})).contains("conversation_id"));
    assert!(refused(json!({"id": "c"})).contains("mapping"));
    assert!(refused(json!(7)).contains("conversation_id"));
}
