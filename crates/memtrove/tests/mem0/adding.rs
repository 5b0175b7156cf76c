//! Messages become memories, as they are.

use crate::support::*;

#[test]
fn each_message_is_a_memory_and_instructions_are_none() {
    let mem0 = Mem0::fresh();
    let messages = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "I live in Lisbon.", "name": "alice"},
        {"role": "assistant", "content": [{"type": "text", "text": "Noted:"}, {"type": "text", "text": "Lisbon."}]},
    ]);
    let added = mem0.add(messages, json!({"user_id": "alice"})).expect(200);
    let results = added.json["results"].as_array().unwrap();
    assert_eq!(texts(&added.json), ["I live in Lisbon.", "Noted:\nLisbon."]);
    assert_eq!((&results[0]["event"], &results[0]["role"]), (&json!("ADD"), &json!("user")));
    assert_eq!((&results[0]["actor_id"], &results[1]["actor_id"]), (&json!("alice"), &Value::Null));
    assert!(added.json["message"].as_str().unwrap().starts_with("1 system message"), "{}", added.json);

    let memory = mem0.get(results[1]["id"].as_str().unwrap());
    assert_eq!((&memory["memory"], &memory["role"]), (&json!("Noted:\nLisbon."), &json!("assistant")));
    assert_eq!((&memory["user_id"], &memory["agent_id"]), (&json!("alice"), &Value::Null));
    assert_eq!(memory["metadata"], json!({}));
}

#[test]
fn messages_in_which_nobody_says_anything_are_left_out_and_the_answer_says_so() {
    let mem0 = Mem0::fresh();
    let call =
        json!([{"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}]);
    let messages = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "How warm is it in Lisbon?"},
        {"role": "assistant", "content": null, "tool_calls": call},
        {"role": "tool", "tool_call_id": "call_1", "content": "21 degrees"},
        {"role": "assistant", "tool_calls": call},
        {"role": "tool", "tool_call_id": "call_1", "content": ""},
        {"role": "assistant", "content": []},
        {"content": "nobody knows who said this"},
        {"role": "assistant", "content": "It has 21 degrees."},
    ]);
    let added = mem0.add(messages, json!({"user_id": "u"})).expect(200).json;
    assert_eq!(texts(&added), ["How warm is it in Lisbon?", "21 degrees", "It has 21 degrees."]);
    assert_eq!(added["results"][1]["role"], "tool");
    let message = added["message"].as_str().unwrap();
    assert!(message.starts_with("1 system message(s)") && message.contains("5 message(s)"), "{message}");
}

#[test]
fn what_an_add_does_not_know_it_refuses() {
    let mem0 = Mem0::fresh();
    for member in ["metadat", "expires", "categories", "org_id", "user"] {
        mem0.add(json!("a"), json!({"user_id": "u", member: "x"}))
            .refused(400, "is not known here; nothing was stored");
    }
    assert_eq!(mem0.texts(json!({"user_id": "u"})), Vec::<String>::new());
    let harmless = json!({
        "user_id": "u", "version": "v2", "output_format": "v1.1", "async_mode": false, "enable_graph": false,
        "includes": null, "immutable": false, "custom_categories": [],
    });
    mem0.add(json!("a"), harmless).expect(200);
}

#[test]
fn a_text_or_one_message_will_do() {
    let mem0 = Mem0::fresh();
    mem0.add(json!("a text"), json!({"user_id": "u"})).expect(200);
    mem0.add(json!({"role": "user", "content": "a message"}), json!({"filters": {"user_id": "u"}}))
        .expect(200);
    assert_eq!(mem0.texts(json!({"user_id": "u"})), ["a message", "a text"]);
}

#[test]
fn all_messages_are_stored_or_none() {
    let mem0 = Mem0::fresh();
    let long = "x".repeat(100_001);
    let messages = json!([{"role": "user", "content": "short"}, {"role": "user", "content": long}]);
    mem0.add(messages, json!({"user_id": "u"})).refused(422, "at most 100000 characters");
    let messages = json!([{"role": "user", "content": "short"}, {"role": "user", "content": 7}]);
    mem0.add(messages, json!({"user_id": "u"})).refused(400, "must be a string");
    for nothing in
        [json!([]), json!(" "), json!([{"role": "user", "content": " "}]), json!({"content": "who?"})]
    {
        mem0.add(nothing, json!({"user_id": "u"})).refused(400, "nothing to remember");
    }
    assert_eq!(mem0.texts(json!({"user_id": "u"})), Vec::<String>::new());
}

#[test]
fn metadata_come_back_as_they_were_given() {
    let mem0 = Mem0::fresh();
    // Some of these have other rules elsewhere: a source is an object there, and importance a number.
    let metadata = json!({
        "source": "chat", "importance": "high", "tags": ["food"], "score": 7, "nested": {"a": [1, null]}, "_own": true,
    });
    let id = mem0.say("likes pizza", json!({"user_id": "u", "metadata": metadata}));
    let memory = mem0.get(&id);
    assert_eq!(memory["metadata"], metadata);
    assert_eq!(memory["categories"], json!(["food"]));
    for filter in
        [json!({"source": "chat"}), json!({"importance": "high"}), json!({"metadata": {"score": {"gte": 7}}})]
    {
        let both = json!({"AND": [{"user_id": "u"}, filter]});
        assert_eq!(mem0.texts(both.clone()), ["likes pizza"], "{both}");
    }
    assert_eq!(mem0.texts(json!({"user_id": "u", "source": "mail"})), Vec::<String>::new());
    mem0.add(json!("a"), json!({"user_id": "u", "metadata": {"mem0": {}}}))
        .refused(400, "is used by the server");
}

#[test]
fn a_timestamp_says_when_it_happened() {
    let mem0 = Mem0::fresh();
    let id = mem0.say("moved house", json!({"user_id": "u", "timestamp": 1_700_000_000}));
    mem0.say("today", json!({"user_id": "u"}));
    assert_eq!(mem0.get(&id)["created_at"], "2023-11-14T22:13:20.000000Z");
    let in_2023 = json!({"user_id": "u", "created_at": {"gte": "2023-11-14", "lte": "2023-11-14"}});
    assert_eq!(mem0.texts(in_2023), ["moved house"]);
    mem0.add(json!("a"), json!({"user_id": "u", "timestamp": true})).refused(400, "'timestamp' must be");
}

#[test]
fn what_expires_does_so_at_the_end_of_its_day_and_no_change_puts_it_off() {
    let mem0 = Mem0::fresh();
    let day =
        mem0.get(&mem0.say("now", json!({"user_id": "u"})))["created_at"].as_str().unwrap()[..10].to_owned();
    let id = mem0.say("until tonight", json!({"user_id": "u", "expiration_date": day}));
    assert_eq!(mem0.get(&id)["expiration_date"], *day);
    let expires =
        |id: &str| mem0.0.get(&format!("/v1/memories/{id}")).expect(200).json["memory"]["expiresAt"].clone();
    let first = expires(&id).as_str().unwrap()[..16].to_owned();
    mem0.put(&format!("/v1/memories/{id}/"), json!({"text": "until tonight, surely"})).expect(200);
    // Within the minute of midnight, since lifetimes are whole seconds.
    assert_eq!(expires(&id).as_str().unwrap()[..16], first);
    mem0.put(&format!("/v1/memories/{id}/"), json!({"expiration_date": null})).expect(200);
    assert_eq!((expires(&id), &mem0.get(&id)["expiration_date"]), (Value::Null, &Value::Null));

    for (date, problem) in
        [("2001-01-01", "in the past"), ("2999-01-01", "within a year"), ("tomorrow", "a date")]
    {
        mem0.add(json!("a"), json!({"user_id": "u", "expiration_date": date})).refused(400, problem);
    }
}

#[test]
fn a_run_does_not_expire_by_itself() {
    let mem0 = Mem0::fresh();
    let id = mem0.say("of a run", json!({"user_id": "u", "run_id": "r"}));
    let ours = mem0.0.get(&format!("/v1/memories/{id}")).expect(200).json;
    assert_eq!(ours["memory"]["layer"], "session");
    assert_eq!(ours["memory"].get("expiresAt"), None, "{ours}");
}
