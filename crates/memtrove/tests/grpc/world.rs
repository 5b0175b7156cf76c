//! People who use a server over one transport, and what they were told, written down so that two worlds compare.

use crate::support::*;
use crate::surface::{Grpc, Op, Outcome, Refusal, Rest, Surface};
use std::collections::BTreeMap;

/// The agents that people in a world use.
pub const AGENTS: [&str; 2] = ["agent-a", "agent-b"];

/// A world: who is in it, how they reach the server, and what has been said.
pub struct World<'a> {
    server: &'a TestServer,
    surface: Box<dyn Surface + 'a>,
    tenant: Option<String>,
    people: BTreeMap<String, String>,
    names: Names,
    /// Every question with its answer, under names that every world gives in the same order.
    pub said: Vec<(String, Value)>,
}

impl<'a> World<'a> {
    pub fn over_rest(server: &'a TestServer) -> Self {
        Self::new(server, Box::new(Rest(server)))
    }

    pub fn over_grpc(server: &'a TestServer) -> Self {
        Self::new(server, Box::new(Grpc(channel(server))))
    }

    pub fn new(server: &'a TestServer, surface: Box<dyn Surface + 'a>) -> Self {
        let (people, names, said) = (BTreeMap::new(), Names::default(), Vec::new());
        Self { server, surface, tenant: None, people, names, said }
    }

    /// Everything happens in a tenant that no other test knows. Everybody needs a key to choose it.
    pub fn in_a_tenant(mut self) -> Self {
        self.tenant = Some(fresh_name("tenant"));
        self
    }

    /// The name somebody has on the server.
    pub fn user(&mut self, role: &str) -> String {
        let name = self.people.entry(role.to_owned()).or_insert_with(|| match role {
            // In local mode this one has every role.
            "admin" => role.to_owned(),
            _ => fresh_name(role),
        });
        self.names.learn(role, name);
        name.clone()
    }

    /// Gives somebody the name that they have in another world.
    pub fn call_somebody(&mut self, role: &str, name: &str) {
        self.people.insert(role.to_owned(), name.to_owned());
    }

    /// `alice`, or `alice@agent-a` for the agent that acts for her.
    pub fn who(&mut self, who: &str) -> Who {
        let (role, key) = who.split_once('@').map_or((who, None), |(role, key)| (role, Some(key)));
        let mut caller = Who::user(&self.user(role));
        if let Some(key) = key {
            caller = caller.with_key(key);
        }
        match &self.tenant {
            Some(tenant) => caller.with("x-tenant-id", tenant),
            None => caller,
        }
    }

    /// Asks, and writes down what came of it.
    pub fn ask(&mut self, who: &str, op: Op, asked: Value) -> Outcome {
        let caller = self.who(who);
        let outcome = self.surface.call(&caller, op, &asked);
        let asked = self.names.plain(&asked);
        let told = match &outcome {
            Ok(answer) => self.names.plain(&in_order(op, answer)),
            Err(refusal) => self.names.plain(&json!(format!("{refusal:?}"))),
        };
        self.said.push((format!("{who} {op:?} {asked}"), told));
        outcome
    }

    /// Asks for something that must be done.
    #[track_caller]
    pub fn done(&mut self, who: &str, op: Op, asked: Value) -> Value {
        match self.ask(who, op, asked.clone()) {
            Ok(answer) => answer,
            Err(refusal) => panic!("{} {who} {op:?} {asked} was refused: {refusal:?}", self.surface.name()),
        }
    }

    /// Asks for something that must be refused.
    #[track_caller]
    pub fn refused(&mut self, who: &str, op: Op, asked: Value, code: Code) -> Refusal {
        match self.ask(who, op, asked.clone()) {
            Err(refusal) if refusal.code == code => refusal,
            other => panic!("{} {who} {op:?} {asked} should be {code:?}: {other:?}", self.surface.name()),
        }
    }

    /// Everything that everybody can read over a transport.
    pub fn state_over(&mut self, surface: &dyn Surface) -> Value {
        let people: Vec<String> = self.people.keys().cloned().collect();
        let mut state = serde_json::Map::new();
        for person in people {
            let all = json!({"mode": "all", "limit": 200});
            let caller = self.who(&format!("{person}@{}", AGENTS[0]));
            let list = surface.call(&caller, Op::ListConversations, &all).expect("a list");
            let mut seen = json!({
                "conversations": list,
                "latest": surface.call(&caller, Op::ListConversations, &json!({})).expect("a list"),
                "roots": surface.call(&caller, Op::ListConversations, &json!({"mode": "roots"})).expect("a list"),
                "transfers": surface.call(&caller, Op::ListOwnershipTransfers, &json!({})).expect("a list"),
            });
            for conversation in list["data"].as_array().into_iter().flatten() {
                let id = conversation["id"].as_str().expect("an id").to_owned();
                seen[&id] = self.conversation_over(surface, &person, &id);
            }
            state.insert(person, seen);
        }
        Value::Object(state)
    }

    /// Everything that somebody can read of a conversation.
    pub fn conversation_over(&mut self, surface: &dyn Surface, person: &str, id: &str) -> Value {
        let mut seen = serde_json::Map::new();
        for agent in AGENTS {
            let caller = self.who(&format!("{person}@{agent}"));
            for (name, op, asked) in [
                ("conversation", Op::GetConversation, json!({})),
                ("history", Op::ListEntries, json!({"limit": 200})),
                ("memory", Op::ListEntries, json!({"channel": "memory", "limit": 1000})),
                ("epochs", Op::ListEntries, json!({"channel": "memory", "epoch": "all", "limit": 1000})),
                ("tree", Op::ListEntries, json!({"forks": "all", "limit": 200})),
                ("members", Op::ListMemberships, json!({})),
                ("forks", Op::ListForks, json!({})),
            ] {
                let mut asked = asked;
                asked["conversationId"] = json!(id);
                let told = match surface.call(&caller, op, &asked) {
                    Ok(answer) => in_order(op, &answer),
                    Err(refusal) => json!(format!("{refusal:?}")),
                };
                seen.insert(format!("{agent} {name}"), told);
            }
        }
        Value::Object(seen)
    }

    /// What is stored, under the names of this world; both transports must read it alike.
    #[track_caller]
    pub fn state(&mut self) -> Value {
        let (rest, grpc) = (Rest(self.server), Grpc(channel(self.server)));
        let (over_rest, over_grpc) = (self.state_over(&rest), self.state_over(&grpc));
        assert_same("what REST reads", &over_rest, "what gRPC reads", &over_grpc);
        self.names.plain(&over_rest)
    }
}

/// Requires two values to be the same, and shows where they are not.
#[track_caller]
pub fn assert_same(one: &str, left: &Value, other: &str, right: &Value) {
    let mut found = Vec::new();
    differences("", left, right, &mut found);
    assert!(found.is_empty(), "{one} and {other} differ:\n{}", found[..found.len().min(20)].join("\n"));
}

fn differences(path: &str, left: &Value, right: &Value, found: &mut Vec<String>) {
    match (left, right) {
        (Value::Object(l), Value::Object(r)) => {
            for (name, value) in l {
                differences(&format!("{path}/{name}"), value, r.get(name).unwrap_or(&Value::Null), found);
            }
            let more = r.iter().filter(|(name, _)| !l.contains_key(*name));
            found.extend(more.map(|(name, value)| format!("{path}/{name}: only the second has {value}")));
        }
        (Value::Array(l), Value::Array(r)) if l.len() == r.len() => {
            for (at, (l, r)) in l.iter().zip(r).enumerate() {
                differences(&format!("{path}/{at}"), l, r, found);
            }
        }
        _ if left == right => {}
        _ => found.push(format!("{path}: {left} and {right}")),
    }
}

/// Forks are listed by their ids. Those that callers chose and those that the server made within the same millisecond
/// come in either order, so they are compared by age.
fn in_order(op: Op, answer: &Value) -> Value {
    let mut answer = answer.clone();
    if op == Op::ListForks
        && let Some(forks) = answer["data"].as_array_mut()
    {
        forks.sort_by_key(|fork| fork["createdAt"].to_string());
    }
    if op == Op::SearchConversations {
        for hit in answer["data"].as_array_mut().into_iter().flatten() {
            // Scores are floats over gRPC and doubles over REST.
            hit["score"] = json!(format!("{:.4}", hit["score"].as_f64().unwrap_or_default()));
        }
    }
    answer
}

/// Names in place of what no two worlds have in common: ids, times, people, cursors.
#[derive(Default)]
struct Names {
    people: BTreeMap<String, String>,
    given: BTreeMap<String, String>,
}

impl Names {
    fn learn(&mut self, role: &str, name: &str) {
        self.people.insert(name.to_owned(), role.to_owned());
    }

    fn plain(&mut self, value: &Value) -> Value {
        match value {
            Value::Object(members) => {
                // In an order that does not depend on who wrote them.
                let mut names: Vec<&String> = members.keys().collect();
                names.sort();
                let mut plain = serde_json::Map::new();
                for name in names {
                    let value = match (name.as_str(), &members[name]) {
                        ("after" | "afterCursor", Value::String(text)) if is_opaque(text) => {
                            json!("a cursor")
                        }
                        (_, value) => self.plain(value),
                    };
                    plain.insert(self.text(name), value);
                }
                Value::Object(plain)
            }
            Value::Array(items) => items.iter().map(|item| self.plain(item)).collect(),
            Value::String(text) => Value::String(self.text(text)),
            other => other.clone(),
        }
    }

    fn text(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, role) in &self.people {
            text = text.replace(name, role);
        }
        let mut plain = String::new();
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let (kind, length) = if is_like(rest, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx") {
                ("id", 36)
            } else if is_like(rest, "0000-00-00T00:00:00.000000Z") {
                ("time", 27)
            } else {
                let character = rest.chars().next().map_or(1, char::len_utf8);
                plain.push_str(&rest[..character]);
                rest = &rest[character..];
                continue;
            };
            let next = format!("<{kind} {}>", self.given.len());
            plain.push_str(self.given.entry(rest[..length].to_owned()).or_insert(next));
            rest = &rest[length..];
        }
        plain
    }
}

/// Whether a text begins like this: `0` stands for a digit, `x` for one in hexadecimal.
fn is_like(text: &str, shape: &str) -> bool {
    text.len() >= shape.len()
        && text.bytes().zip(shape.bytes()).all(|(byte, like)| match like {
            b'0' => byte.is_ascii_digit(),
            b'x' => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
            _ => byte == like,
        })
}

fn is_opaque(cursor: &str) -> bool {
    !is_like(cursor, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx") && cursor.len() > 30
}
