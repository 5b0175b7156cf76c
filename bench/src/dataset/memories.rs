//! Memories: short statements as people and agents write them, each about something of its own.

use super::{Random, request};
use crate::sender::{FRESH_ID, Template};
use serde_json::json;

const WHO: [&str; 24] = [
    "Dana",
    "The customer",
    "Our team",
    "Alice",
    "The billing service",
    "Bob",
    "The backend",
    "Priya",
    "The new hire",
    "Marketing",
    "The nightly job",
    "Chen",
    "The mobile app",
    "Support",
    "Maria",
    "The data team",
    "Ivan",
    "The landlord",
    "My brother",
    "The search service",
    "Aisha",
    "The vendor",
    "The gateway",
    "Tom",
];
const DOES: [&str; 24] = [
    "prefers",
    "decided to use",
    "is allergic to",
    "deploys",
    "moved to",
    "asked for",
    "depends on",
    "was late with",
    "recommends",
    "stopped using",
    "is learning",
    "reviews",
    "bought",
    "forgot",
    "plans",
    "postponed",
    "migrated",
    "tests",
    "dislikes",
    "owns",
    "documented",
    "cancelled",
    "renewed",
    "is looking for",
];
const WHAT: [&str; 40] = [
    "window seats",
    "PostgreSQL",
    "peanuts",
    "the release",
    "Lisbon",
    "a refund",
    "the message queue",
    "the invoice",
    "dark roast coffee",
    "the old framework",
    "Portuguese",
    "pull requests",
    "a bicycle",
    "the password",
    "a holiday",
    "the interview",
    "the customer table",
    "error handling",
    "spicy food",
    "the staging cluster",
    "the API",
    "a meeting",
    "the subscription",
    "a larger flat",
    "unit tests",
    "green tea",
    "the contract",
    "night trains",
    "a piano",
    "the budget",
    "vegetarian menus",
    "the firewall",
    "a passport",
    "TypeScript",
    "the garden",
    "a marathon",
    "the roof",
    "jazz records",
    "the quarterly report",
    "a dentist",
];
const WHEN: [&str; 20] = [
    "on Tuesdays",
    "since March",
    "before the audit",
    "next week",
    "after lunch",
    "in winter",
    "every morning",
    "because it is cheaper",
    "for the children",
    "until further notice",
    "with the whole family",
    "during the outage",
    "at the weekend",
    "when it rains",
    "for new services",
    "in the second quarter",
    "on the way home",
    "without telling anybody",
    "according to the policy",
    "as a birthday present",
];

/// The statement with a number: always the same one.
pub fn statement(number: u64) -> String {
    let mut random = Random::new(number.wrapping_mul(0x9E37_79B9));
    let mut pick = |words: &[&'static str]| words[random.below(words.len())];
    let (who, does, what, when) = (pick(&WHO), pick(&DOES), pick(&WHAT), pick(&WHEN));
    let (other, reason) = (pick(&WHAT), pick(&WHEN));
    format!("{who} {does} {what} {when}, not {other} {reason} (note {number})")
}

/// A question that some statement answers.
pub fn question(number: u64) -> String {
    let mut random = Random::new(!number);
    let mut pick = |words: &[&'static str]| words[random.below(words.len())];
    let (who, what, when) = (pick(&WHO), pick(&WHAT), pick(&WHEN));
    format!("What did {who} say about {what} {when}?")
}

/// Adds one statement to a scope.
pub fn add(layer: &str, identifiers: &serde_json::Value, number: u64) -> Vec<u8> {
    let body = json!({"content": statement(number), "layer": layer, "identifiers": identifiers});
    request("POST", "/v1/memories", "bench", Some(&body.to_string()))
}

/// Adds one statement to a scope, each time another one: the gap is where its number stands.
pub fn fresh(layer: &str, kind: &str, identifiers: &serde_json::Value, number: u64) -> Template {
    let content = format!("{} [{FRESH_ID}]", statement(number));
    let body = json!({"content": content, "layer": layer, "kind": kind, "identifiers": identifiers});
    Template::new(&request("POST", "/v1/memories", "bench", Some(&body.to_string())), FRESH_ID)
}

/// Reads one by its id.
pub fn get(id: &str) -> Vec<u8> {
    request("GET", &format!("/v1/memories/{id}"), "bench", None)
}

/// Adds statements to a scope, in one request.
pub fn bulk_add(layer: &str, identifiers: &serde_json::Value, numbers: std::ops::Range<u64>) -> Vec<u8> {
    let items: Vec<_> = numbers
        .map(|number| json!({"content": statement(number), "layer": layer, "identifiers": identifiers}))
        .collect();
    request("POST", "/v1/memories:bulkAdd", "bench", Some(&json!({"memories": items}).to_string()))
}

/// Searches some layers as an agent would, or by meaning alone and without a threshold.
pub fn search(layers: &[&str], identifiers: &serde_json::Value, number: u64, exact: bool) -> Vec<u8> {
    let mut body = json!({"query": question(number), "layers": layers, "identifiers": identifiers});
    if exact {
        body["mode"] = "semantic".into();
        body["threshold"] = 0.into();
        body["dedupe"] = false.into();
    }
    request("POST", "/v1/memories:search", "bench", Some(&body.to_string()))
}
