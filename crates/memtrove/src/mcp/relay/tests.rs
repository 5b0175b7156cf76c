use super::*;
use memtrove_core::{Clock, SystemClock};

fn relay(editor: &[u8]) -> Relay<&[u8], Vec<u8>> {
    let (user, tenant, session) = ("alice".to_owned(), "default".to_owned(), SystemClock.new_id());
    let local = Local { user, tenant, project: None, agent: None, session };
    Relay::new(Config::default(), local, editor, Vec::new())
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_answered_in_its_place() {
    let (ours, theirs) = tokio::io::duplex(MAX_MESSAGE);
    let mut relay = relay(br#"{"jsonrpc":"2.0","id":"a","method":"tools/list"}"#);
    let upstream = async {
        let (read, mut write) = tokio::io::split(theirs);
        // The editor's last line is one though it was not ended.
        assert!(
            matches!(Lines::new(read, MAX_MESSAGE).next().await, Line::Whole(line) if line.ends_with(b"}"))
        );
        let long = format!(r#"{{"jsonrpc":"2.0","id":"a","result":"{}"}}"#, "x".repeat(MAX_MESSAGE));
        write.write_all(long.as_bytes()).await.unwrap();
        write.write_all(b"\n{\"half\":").await.unwrap();
        write.shutdown().await.unwrap();
    };
    let (ended, ()) = tokio::join!(relay.pump(Upstream::new(ours, None)), upstream);
    assert!(ended.unwrap() == Ended::Editor && relay.pending.is_empty());
    let said: Value = serde_json::from_slice(&relay.output).unwrap();
    assert_eq!((&said["id"], &said["error"]["code"]), (&json!("a"), &json!(SERVER_ERROR)), "{said}");
}

fn request(id: u64, tool: &str) -> Vec<u8> {
    let call = json!({"name": tool, "arguments": {"digest": "a"}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call}).to_string().into_bytes()
}

fn ids(relay: &Relay<&[u8], Vec<u8>>) -> Vec<i64> {
    relay.pending.iter().filter_map(|request| request.id.as_i64()).collect()
}

/// What was said, as the ids and codes of errors.
fn refused(output: &[u8]) -> Vec<(i64, i64)> {
    let errors = serde_json::Deserializer::from_slice(output).into_iter::<Value>().map(Result::unwrap);
    errors.map(|said| (said["id"].as_i64().unwrap(), said["error"]["code"].as_i64().unwrap())).collect()
}

#[tokio::test]
async fn what_an_owner_did_not_take_before_it_went_is_sent_to_the_next() {
    let (ours, theirs) = tokio::io::duplex(MAX_MESSAGE);
    let editor: Vec<u8> =
        (1..=4).flat_map(|id| [request(id, "memory_log_event"), vec![b'\n']].concat()).collect();
    let mut relay = relay(&editor);
    let owner = async {
        let (read, mut write) = tokio::io::split(theirs);
        let mut lines = Lines::new(read, MAX_MESSAGE);
        for _ in 0..4 {
            assert!(matches!(lines.next().await, Line::Whole(_)));
        }
        // It answers the first, has no time for the second, and has not looked at the others.
        write.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n{\"taken\":2}\n").await.unwrap();
        write.shutdown().await.unwrap();
    };
    let (ended, ()) = tokio::join!(relay.pump(Upstream::new(ours, None)), owner);
    assert_eq!((ended.unwrap(), ids(&relay)), (Ended::Upstream(Some(2)), vec![2, 3, 4]));
    relay.output.clear();
    relay.tell_of_writes(Some(2)).await.unwrap();
    assert_eq!((refused(&relay.output), ids(&relay)), (vec![(2, -32000)], vec![3, 4]));

    let (ours, theirs) = tokio::io::duplex(MAX_MESSAGE);
    let next = async {
        let (read, mut write) = tokio::io::split(theirs);
        let mut lines = Lines::new(read, MAX_MESSAGE);
        for id in [3, 4] {
            assert_eq!(lines.next().await, Line::Whole(request(id, "memory_log_event")));
            write
                .write_all(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}\n").as_bytes())
                .await
                .unwrap();
        }
        assert_eq!(lines.next().await, Line::End);
    };
    let (ended, ()) = tokio::join!(relay.pump(Upstream::new(ours, None)), next);
    assert!(ended.unwrap() == Ended::Editor && relay.pending.is_empty());
}

#[tokio::test]
async fn of_an_owner_that_says_nothing_when_it_goes_every_write_is_open() {
    let mut relay = relay(b"");
    for (id, tool) in [(1, "recall"), (2, "memory_log_event")] {
        relay.note(&text(request(id, tool)), Some(id));
    }
    relay.tell_of_writes(None).await.unwrap();
    assert_eq!((refused(&relay.output), ids(&relay)), (vec![(2, -32000)], vec![1]));
}

#[test]
fn what_is_refused_without_an_id_is_not_kept() {
    let mut relay = relay(b"");
    for line in [
        r#"{"id":1,"method":"tools/call"}"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"tools/call"}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"method":"tools/call"}"#,
        r#"{"jsonrpc":"2.0","id":{},"method":"initialize"}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"tools/call"}"#,
        r#"{"method":"notifications/initialized"}"#,
    ] {
        relay.note(&text(line.into()), Some(1));
    }
    relay.note(&text(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"x\":\"\xff\"}".to_vec()), Some(1));
    assert!(relay.pending.is_empty() && relay.begun.is_none() && relay.initialized.is_none());
}

#[tokio::test]
async fn no_more_is_kept_than_may_be_and_what_is_not_is_told_of() {
    let mut relay = relay(b"");
    let long = |id: u64| {
        let text = "x".repeat(MAX_MESSAGE / 2);
        super::text(json!({"jsonrpc": "2.0", "id": id, "method": "ping", "x": text}).to_string().into_bytes())
    };
    for id in 0..12 {
        relay.note(&long(id), Some(id + 1));
    }
    assert!((MAX_KEPT / 2..=MAX_KEPT).contains(&relay.kept()), "{}", relay.kept());
    let kept = relay.pending.iter().filter(|request| request.line.is_some()).count();
    relay.tell_of_writes(None).await.unwrap();
    assert_eq!((relay.pending.len(), refused(&relay.output).len()), (kept, 12 - kept));
}

#[test]
fn the_id_of_a_message_is_its_own() {
    assert_eq!(id_at_first(br#"{"jsonrpc":"2.0","id": 7,"result":{"id":8"#), Some(json!(7)));
    assert_eq!(id_at_first(br#"{"id":"seven","jsonrpc":"2.0"#), Some(json!("seven")));
    assert_eq!(id_at_first(br#"{"params":{"a":"}{","id":8},"id":7,"x":"#), Some(json!(7)));
    for beginning in [
        r#"{"params":{"id":7,"#,
        r#"[{"id":7,"method":"a"#,
        r#"{"id":"cut o"#,
        r#"{"id":1"#,
        r#"{"id":null,"x":"#,
        r#"{"note":"\"id\":7,"#,
    ] {
        assert_eq!(id_at_first(beginning.as_bytes()), None, "{beginning}");
    }

    // As the TypeScript client writes it.
    assert_eq!(id_at_last(br#"xxx"}},"jsonrpc":"2.0","id":99}"#), Some(json!(99)));
    assert_eq!(id_at_last("\u{fffd}x\", \"id\" : \"a\\\"b\" } \r".as_bytes()), Some(json!("a\"b")));
    for end in [
        r#"xxx","id":99}}"#,
        r#"xxx","id":99}]"#,
        r#"xxx","id":99},"jsonrpc":"2.0"}"#,
        r#"xxx\"id":99}"#,
        r#"xxx,\"id\":99"}"#,
        r#"xxx","id":{"id":99}"#,
        r#"xxx","id":[1],"jsonrpc":"2.0"}"#,
        r#"xxx","id":null}"#,
        "99}",
        "",
    ] {
        assert_eq!(id_at_last(end.as_bytes()), None, "{end}");
    }
    let ends = |first: &str, last: &str| Ends { first: first.into(), last: last.into() };
    assert_eq!(id_in(&ends(r#"{"id":1,"#, r#","id":2}"#)), None);
    assert_eq!(id_in(&ends(r#"{"method":"#, r#","id":2}"#)), Some(json!(2)));
}
