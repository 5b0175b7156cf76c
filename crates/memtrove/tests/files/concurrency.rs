//! Many callers at once: exactly one wins each version, nobody sees half of one, and the audit trail tells it in order.

use crate::support::*;
use std::collections::HashMap;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

/// Tells the readers that it is over, also when a writer's test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Content in which a torn write would show: two members that always say the same.
fn halves(mark: &str) -> Value {
    json!({"text": mark.repeat(200), "copy": mark.repeat(200)})
}

/// Requires that the document is whole.
#[track_caller]
fn assert_whole(stored: &Stored) {
    let content = stored.content();
    assert_eq!(content["text"], content["copy"], "a torn document: {}", stored.text);
}

/// Splits the answers to requests that all expected one version: the single winner, and the losers, who were told
/// about it.
#[track_caller]
fn single_winner(answers: Vec<Answer>) -> (usize, Stored) {
    let mut winner = None;
    let mut told = Vec::new();
    for (n, answer) in answers.into_iter().enumerate() {
        if answer.status == 200 {
            assert!(winner.is_none(), "a second winner: {}", answer.describe());
            winner = Some((n, answer.stored()));
        } else {
            let answer = answer.refused(412, "ETAG_MISMATCH");
            told.push(answer.detail("latest_etag").map(str::to_owned));
        }
    }
    let (n, stored) = winner.expect("somebody wins");
    assert!(told.iter().all(|etag| etag.as_deref() == Some(stored.etag.as_str())), "{stored:?} {told:?}");
    (n, stored)
}

#[test]
fn of_32_writers_with_one_etag_exactly_one_wins_each_round() {
    const WRITERS: usize = 32;
    const ROUNDS: usize = 60;
    let scope = Scope::fresh(&SERVER);
    let created = scope.create("a.md", halves("start"));
    let mut versions = HashMap::from([(created.etag.clone(), created.text.clone())]);
    let mut chain = vec![created.etag];
    let over = AtomicBool::new(false);

    let seen = std::thread::scope(|threads| {
        let readers: Vec<_> = (0..3)
            .map(|_| {
                threads.spawn(|| {
                    let mut seen: HashMap<String, String> = HashMap::new();
                    while !over.load(Ordering::Relaxed) {
                        let stored = scope.get("a.md").stored();
                        assert_whole(&stored);
                        let known = seen.entry(stored.etag).or_insert_with(|| stored.text.clone());
                        assert_eq!(*known, stored.text, "one ETag, two documents");
                    }
                    seen
                })
            })
            .collect();
        let stop = Stop(&over);
        for round in 0..ROUNDS {
            let current = chain.last().unwrap();
            let answers = at_once(WRITERS, |n| {
                let mark = format!("{round}.{n} ");
                match n % 3 {
                    0 => scope.put("a.md", current, envelope(halves(&mark))),
                    1 => {
                        let ops = json!([
                            {"op": "replace", "path": "/content/copy", "value": mark.repeat(200)},
                            {"op": "copy", "from": "/content/copy", "path": "/content/text"},
                        ]);
                        scope.patch("a.md", current, json!({"ops": ops}))
                    }
                    _ => {
                        let old = versions[current].clone();
                        let old: Value = serde_json::from_str(&old).unwrap();
                        let edits =
                            json!([{"old_text": old["content"]["text"], "new_text": mark.repeat(200)}]);
                        let ops =
                            json!([{"op": "replace", "path": "/content/copy", "value": mark.repeat(200)}]);
                        scope.patch("a.md", current, json!({"ops": ops, "edits": edits}))
                    }
                }
            });
            let (n, stored) = single_winner(answers);
            assert_eq!(stored.content(), halves(&format!("{round}.{n} ")));
            assert!(versions.insert(stored.etag.clone(), stored.text).is_none(), "an ETag twice");
            chain.push(stored.etag);
        }
        drop(stop);
        readers.into_iter().flat_map(|reader| reader.join().unwrap()).collect::<Vec<_>>()
    });

    for (etag, text) in seen {
        assert_eq!(versions.get(&etag), Some(&text), "a reader saw a version that nobody wrote");
    }
    let trail = scope.audit();
    assert_eq!(trail.len(), ROUNDS + 1, "one record per winner and one for the creation");
    assert_eq!(trail[0]["previous_etag"], json!(null));
    for (n, record) in trail.iter().enumerate() {
        assert_eq!(record["new_etag"], chain[n]);
        if n > 0 {
            assert_eq!(record["previous_etag"], chain[n - 1], "a gap in the chain: {record}");
            let before = trail[n - 1]["sequence"].as_u64().unwrap();
            assert_eq!(record["sequence"].as_u64().unwrap(), before + 1);
        }
    }
}

#[test]
fn of_many_creators_exactly_one_creates() {
    let scope = Scope::fresh(&SERVER);
    for round in 0..10 {
        let path = format!("{round}.md");
        let answers = at_once(16, |n| scope.put(&path, "*", envelope(halves(&n.to_string()))));

        let (n, stored) = single_winner(answers);

        assert_eq!(stored.content(), halves(&n.to_string()));
        assert_eq!(scope.read(&path), stored);
    }
    assert_eq!(scope.audit().len(), 10);
}

#[test]
fn writers_that_start_again_after_a_conflict_lose_nothing() {
    const WRITERS: usize = 8;
    const ADDITIONS: usize = 10;
    let scope = Scope::fresh(&SERVER);
    scope.create("a.md", json!({"text": "", "list": []}));

    at_once(WRITERS, |n| {
        for addition in 0..ADDITIONS {
            let ops = json!([{"op": "add", "path": "/content/list/-", "value": format!("{n}.{addition}")}]);
            let mut etag = scope.read("a.md").etag;
            loop {
                let answer = scope.patch("a.md", &etag, json!({"ops": ops}));
                if answer.status == 200 {
                    break;
                }
                etag = answer.refused(412, "ETAG_MISMATCH").detail("latest_etag").unwrap().to_owned();
            }
        }
    });

    let list = scope.read("a.md").content()["list"].as_array().unwrap().clone();
    assert_eq!(list.len(), WRITERS * ADDITIONS);
    for n in 0..WRITERS {
        let mine: Vec<&Value> =
            list.iter().filter(|item| item.as_str().unwrap().starts_with(&format!("{n}."))).collect();
        let expected: Vec<String> = (0..ADDITIONS).map(|addition| format!("{n}.{addition}")).collect();
        assert_eq!(mine, expected.iter().collect::<Vec<_>>(), "in the order they were added");
    }
}

#[test]
fn different_files_do_not_contend() {
    let scope = Scope::fresh(&SERVER);

    at_once(16, |n| {
        let path = format!("{n}.md");
        let mut etag = scope.create(&path, halves("0")).etag;
        for round in 1..10 {
            etag = scope.put(&path, &etag, envelope(halves(&round.to_string()))).stored().etag;
        }
    });

    let trail = scope.audit();
    assert_eq!(trail.len(), 160);
    let sequences: Vec<u64> = trail.iter().map(|record| record["sequence"].as_u64().unwrap()).collect();
    assert!(sequences.windows(2).all(|pair| pair[1] == pair[0] + 1), "{sequences:?}");
    for n in 0..16 {
        let path = format!("{n}.md");
        let mut previous = json!(null);
        for record in trail.iter().filter(|record| record["path"] == path) {
            assert_eq!(record["previous_etag"], previous, "a gap in the chain: {record}");
            previous = record["new_etag"].clone();
        }
        assert_eq!(previous, scope.read(&path).etag);
    }
}

#[test]
fn lists_and_reads_go_on_while_files_are_written() {
    let scope = Scope::fresh(&SERVER);
    scope.create("a.md", halves("0"));
    let over = AtomicBool::new(false);

    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    assert_whole(&scope.get("a.md").stored());
                    let paths = scope.paths("limit=500");
                    assert!(paths.is_sorted(), "{paths:?}");
                }
            });
        }
        let _stop = Stop(&over);
        let mut etag = scope.read("a.md").etag;
        for n in 0..60 {
            etag = scope.put("a.md", &etag, envelope(halves(&n.to_string()))).stored().etag;
            scope.create(&format!("b{n:02}.md"), json!({}));
        }
    });

    assert_eq!(scope.paths("limit=500").len(), 61);
}

#[test]
fn what_was_acknowledged_survives_a_kill() {
    let mut server = local_server();
    let (tenant, user) = (fresh_name("tenant"), fresh_name("user"));
    let scope = Scope::of(&server, &tenant, &user);
    let mut current = scope.create("a.md", halves("0"));
    for n in 1..20 {
        current = scope.put("a.md", &current.etag, envelope(halves(&n.to_string()))).stored();
    }

    server.kill();
    server.restart();

    let scope = Scope::of(&server, &tenant, &user);
    assert_eq!(scope.read("a.md"), current);
    let trail = scope.audit();
    assert_eq!(trail.len(), 20);
    assert_eq!(trail[19]["new_etag"], current.etag);
    scope.put("a.md", &current.etag, envelope(halves("after"))).stored();
}

#[test]
fn a_second_process_on_the_same_data_folder_refuses_to_start() {
    let server = local_server();
    let scope = Scope::fresh(&server);
    let before = scope.create("a.md", json!({"text": "a"}));

    let failed = Setup::new(env!("CARGO_BIN_EXE_memtrove"))
        .data_dir(server.data_dir())
        .try_start()
        .expect_err("two processes on one folder would not see each other's writes");

    assert!(failed.status.is_some_and(|status| !status.success()), "{}", failed.reason);
    assert!(failed.log.contains("another memtrove process uses this data folder"), "{}", failed.log);
    assert!(failed.log.contains(&*server.data_dir().to_string_lossy()), "does not name it: {}", failed.log);
    assert!(!failed.log.contains("panicked"), "{}", failed.log);
    assert_eq!(scope.read("a.md"), before);
    scope.put("a.md", &before.etag, note("b")).stored();
}
