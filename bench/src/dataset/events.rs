//! Events, and the requests that write and search them.

use super::{Random, Writer, request, two_words};
use crate::sender::{FRESH_ID, Template};
use memtrove_core::Timestamp;

/// Bytes of a digest.
const DIGEST: usize = 240;

/// Writes the event of a user that has this number, always the same one.
pub fn write(user: &str, number: usize) -> Vec<u8> {
    write_as(user, &format!("event-{number:06}"), number)
}

/// Writes an event of a user; the gap is for its id.
pub fn fresh(user: &str, number: usize) -> Template {
    Template::new(&write_as(user, FRESH_ID, number), FRESH_ID)
}

fn write_as(user: &str, id: &str, number: usize) -> Vec<u8> {
    // A minute from each to the next, from the beginning of 2026.
    let timestamp = Timestamp::from_micros((1_767_225_600 + 60 * number as i64) * 1_000_000);
    let digest = digest(user, number);
    let keywords: Vec<String> =
        digest.split(' ').step_by(9).take(4).map(|word| format!(r#""{word}""#)).collect();
    let body = format!(
        r#"{{"event":{{"event_id":"{id}","tenant_id":"default","user_id":"{user}","service_id":"bench-agent","source_type":"conversation","timestamp":"{timestamp}","digest":"{digest}","keywords":[{}],"project_ids":["project-{:02}"],"evidence":{{"message_ids":[{number}]}}}}}}"#,
        keywords.join(","),
        number % 10
    );
    request("POST", &format!("/v1/tenants/default/users/{user}/events"), user, Some(&body))
}

/// Searches a user's events for two words of the one that has this number.
pub fn search(user: &str, number: usize, random: &mut Random) -> Vec<u8> {
    let body = format!(r#"{{"query":"{}"}}"#, two_words(&digest(user, number), random));
    request("POST", &format!("/v1/tenants/default/users/{user}/events:search"), user, Some(&body))
}

/// What an event says follows from its user and number alone, so that several servers can be given the same.
fn digest(user: &str, number: usize) -> String {
    let seed = user.bytes().fold(number as u64, |seed, byte| Random::new(seed ^ u64::from(byte)).next());
    Writer::new(seed).text(DIGEST)
}
