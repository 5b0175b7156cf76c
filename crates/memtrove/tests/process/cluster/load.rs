//! Agents that write everything there is to write, and remember what they were promised.

use crate::cluster::support::*;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The file that every agent keeps.
const FILE: &str = "log.md";
/// How long a request is repeated before it is clear that nobody will ever answer it.
const PATIENCE: Duration = Duration::from_secs(45);

/// What a node said to a request.
#[derive(Debug, Clone)]
pub enum Said {
    /// It is done.
    Yes(Box<Answer>),
    /// 503: nothing was written.
    No,
    /// 504: nobody knows.
    Perhaps,
    /// Nothing at all: the node is gone, and nobody knows.
    Nothing,
}

/// Asks once. Everything but the four answers that a failure may have is a defect.
#[track_caller]
pub fn ask(client: &Client, method: &str, path: &str, body: &Value) -> Said {
    match client.try_send(method, path, Body::Json(body.clone())) {
        Err(_) => Said::Nothing,
        Ok(answer) if (200..300).contains(&answer.status) => Said::Yes(Box::new(answer)),
        Ok(answer) if answer.status == 503 => {
            assert_ne!(answer.header("retry-after"), "", "503 says when to try again: {}", answer.describe());
            Said::No
        }
        Ok(answer) if answer.status == 504 => {
            assert_eq!(
                answer.header("retry-after"),
                "",
                "nothing should repeat it unasked: {}",
                answer.describe()
            );
            Said::Perhaps
        }
        Ok(answer) => panic!("neither done nor refused: {}", answer.describe()),
    }
}

/// How often something must be there in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Once,
    Never,
    AtMostOnce,
}

impl Fate {
    pub fn of(said: &Said) -> Self {
        match said {
            Said::Yes(_) => Self::Once,
            Said::No => Self::Never,
            Said::Perhaps | Said::Nothing => Self::AtMostOnce,
        }
    }
}

/// What was sent, by the label that it carries.
pub type Fates = BTreeMap<String, Fate>;

/// Requires that everything is there as often as it was promised, and that nothing else is there.
#[track_caller]
pub fn assert_fates(what: &str, fates: &Fates, found: &[String]) {
    let mut times: HashMap<&str, usize> = HashMap::new();
    for label in found {
        assert!(fates.contains_key(label), "{what} {label} was never sent");
        *times.entry(label).or_default() += 1;
    }
    for (label, fate) in fates {
        let times = times.get(label.as_str()).copied().unwrap_or_default();
        let right = match fate {
            Fate::Once => times == 1,
            Fate::Never => times == 0,
            Fate::AtMostOnce => times <= 1,
        };
        assert!(right, "{what} {label} is there {times} times and should be {fate:?}");
    }
}

/// One agent with a conversation, a file and memories of its own, and a conversation that all share.
pub struct Writer {
    pub person: Person,
    /// The node it talks to first, and those it turns to when that one is gone.
    nodes: Vec<Client>,
    own: String,
    shared: String,
    serial: usize,
    entries: Fates,
    memories: Fates,
    synced: Vec<Value>,
    file: Option<(String, Vec<String>)>,
    /// How many requests were acknowledged, refused, and left open.
    pub done: usize,
    pub refused: usize,
    pub open: usize,
}

impl Writer {
    /// One writer for each of the nodes that are named by their number, in one tenant.
    pub fn crew(nodes: &[TestServer], at: &[usize]) -> Vec<Self> {
        let host = Person::fresh(&nodes[0], "host");
        let shared = host.start();
        let crew = at.iter().map(|first| {
            let person = Person::of(&nodes[*first], &host.tenant, &fresh_name("writer"));
            let member = json!({"userId": person.user, "accessLevel": "writer"});
            host.client.post(&format!("/v1/conversations/{shared}/memberships"), member).expect(201);
            let others = (0..nodes.len()).map(|n| person.at(&nodes[(first + n) % nodes.len()]).client);
            Self {
                nodes: others.collect(),
                person,
                own: fresh_id(),
                shared: shared.clone(),
                serial: 0,
                entries: Fates::new(),
                memories: Fates::new(),
                synced: Vec::new(),
                file: None,
                done: 0,
                refused: 0,
                open: 0,
            }
        });
        crew.collect()
    }

    /// Writes until it is told to stop.
    pub fn work(&mut self, stop: &AtomicBool, acknowledged: &std::sync::atomic::AtomicUsize) {
        while !stop.load(Ordering::Relaxed) {
            let before = self.done;
            self.write();
            acknowledged.fetch_add(self.done - before, Ordering::Relaxed);
        }
    }

    /// Writes one thing.
    pub fn write(&mut self) {
        self.serial += 1;
        let label = format!("{}-{}", self.person.user, self.serial);
        let (own, shared) = (entries(&self.own), entries(&self.shared));
        match self.serial % 8 {
            0 => self.say(&own, &label),
            1 => self.say_once(&own, &label),
            2 => self.say(&shared, &label),
            3 => self.say_once(&shared, &label),
            4 => self.sync(&label),
            5 => self.patch(&label, self.serial % 16 < 8),
            6 => self.remember(&label),
            _ => self.remember_once(&label),
        }
    }

    /// Everything that was promised is there, seen through any node.
    #[track_caller]
    pub fn verify(&self, node: &TestServer) {
        let person = self.person.at(node);
        let mut said = person.transcript(&self.shared);
        said.retain(|label| label.starts_with(&self.person.user));
        let own = person.client.get(&format!("/v1/conversations/{}", self.own));
        if own.status != 404 {
            said.extend(person.transcript(&self.own));
            assert_eq!(person.memory(&self.own), self.synced);
        }
        assert_fates("the entry", &self.entries, &said);
        assert_fates("the memory", &self.memories, &person.remembered());
        if let Some((etag, log)) = &self.file {
            let file = person.read(FILE).expect(200);
            assert_eq!((&lines(&file), file.header("etag")), (log, etag.as_str()));
        }
    }

    fn say(&mut self, path: &str, label: &str) {
        let said = self.ask_once("POST", path, &history(label), &[]);
        self.entries.insert(label.to_owned(), Fate::of(&said));
    }

    fn say_once(&mut self, path: &str, label: &str) {
        let answer = self.ask_until("POST", path, &history(label), &[("idempotency-key", label)]);
        assert_eq!(answer.json["content"][0]["text"], label, "{}", answer.describe());
        self.entries.insert(label.to_owned(), Fate::Once);
    }

    fn remember(&mut self, label: &str) {
        let said = self.ask_once("POST", "/v1/memories", &self.person.note(label), &[]);
        self.memories.insert(label.to_owned(), Fate::of(&said));
    }

    fn remember_once(&mut self, label: &str) {
        let note = self.person.note(label);
        let answer = self.ask_until("POST", "/v1/memories", &note, &[("idempotency-key", label)]);
        assert_eq!(answer.json["memory"]["content"], label, "{}", answer.describe());
        self.memories.insert(label.to_owned(), Fate::Once);
    }

    /// A sync is repeated as it is.
    fn sync(&mut self, label: &str) {
        if self.serial % 40 > 32 {
            self.synced.clear();
        }
        self.synced.push(json!({"note": label}));
        let path = format!("{}/sync", entries(&self.own));
        self.ask_until("POST", &path, &memory(&self.synced), &[]);
    }

    fn patch(&mut self, label: &str, keyed: bool) {
        let path = self.person.path(&format!("/files/{FILE}"));
        let Some((etag, log)) = self.file.take() else {
            let made = self.make_file(FILE);
            self.file = Some((made.header("etag").to_owned(), Vec::new()));
            return;
        };
        let said = if keyed {
            let headers = [("if-match", etag.as_str()), ("idempotency-key", label)];
            Said::Yes(Box::new(self.ask_until("PATCH", &path, &line_patch(label), &headers)))
        } else {
            self.ask_once("PATCH", &path, &line_patch(label), &[("if-match", &etag)])
        };
        let fate = Fate::of(&said);
        let answer = match said {
            Said::Yes(answer) => *answer,
            _ => {
                // A commit may still be under way in the database. Who writes after it waits for it, or makes it impossible.
                self.make_file(&format!("after-{label}.md"));
                self.ask_until("GET", &path, &Value::Null, &[])
            }
        };
        let (found, longer) = (lines(&answer), [log.as_slice(), &[label.to_owned()]].concat());
        let right = match fate {
            Fate::Once => found == longer,
            Fate::Never => found == log,
            Fate::AtMostOnce => found == log || found == longer,
        };
        assert!(right, "{label} should be there {fate:?} after {log:?}: {}", answer.describe());
        self.file = Some((answer.header("etag").to_owned(), found));
    }

    fn make_file(&mut self, name: &str) -> Answer {
        let document = json!({"doc_id": "doc-1", "schema_id": "notes", "schema_version": "1.0.0",
                              "content": {"lines": []}});
        let (path, key) = (self.person.path(&format!("/files/{name}")), format!("make-{name}"));
        let headers = [("if-match", "*"), ("idempotency-key", key.as_str())];
        self.ask_until("PUT", &path, &json!({"document": document}), &headers)
    }

    fn ask_once(&mut self, method: &str, path: &str, body: &Value, headers: &[(&str, &str)]) -> Said {
        let client = headers
            .iter()
            .fold(self.nodes[0].clone(), |client, (name, value)| client.with_header(name, value));
        let said = match method {
            "GET" => match client.try_send(method, path, Body::None) {
                Ok(answer) if answer.status == 200 => Said::Yes(Box::new(answer)),
                Ok(_) => Said::No,
                Err(_) => Said::Nothing,
            },
            _ => ask(&client, method, path, body),
        };
        match &said {
            Said::Yes(_) => self.done += 1,
            Said::No => self.refused += 1,
            Said::Perhaps => self.open += 1,
            Said::Nothing => {
                self.open += 1;
                self.nodes.rotate_left(1);
            }
        }
        said
    }

    /// Repeats a request that may be repeated until it is done.
    #[track_caller]
    fn ask_until(&mut self, method: &str, path: &str, body: &Value, headers: &[(&str, &str)]) -> Answer {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Said::Yes(answer) = self.ask_once(method, path, body, headers) {
                return *answer;
            }
            assert!(Instant::now() < deadline, "{method} {path} is never done");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
