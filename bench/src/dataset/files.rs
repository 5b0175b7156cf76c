//! Files, and the requests that read and change them.

use super::{Writer, request, request_with};
use crate::sender::Template;

/// A Markdown file: a list of about 100 bytes a line.
#[derive(Debug, Clone)]
pub struct Note {
    lines: Vec<String>,
}

impl Note {
    /// A note of this many kilobytes.
    pub fn new(kilobytes: usize, writer: &mut Writer) -> Self {
        Self { lines: (0..kilobytes * 10).map(|number| line(number, writer)).collect() }
    }

    /// The body of a request that stores it.
    fn document(&self) -> String {
        // The words are plain letters: only the line breaks have to be escaped.
        let text = self.lines.join(r"\n");
        format!(
            r#"{{"document":{{"doc_id":"note","schema_id":"bench.note","schema_version":"1.0.0","content":{{"content_type":"text/markdown","text":"{text}"}}}},"reason":"rewrite"}}"#
        )
    }

    /// Bodies of patches as an agent would send them: one line is replaced, one is added. Every second one takes back
    /// what the one before did, so that the note stays as long as it is, however often they go round.
    fn edits(&self, writer: &mut Writer) -> Vec<String> {
        let (last, others) =
            self.lines.split_last().map_or(("", &[][..]), |(last, others)| (last.as_str(), others));
        let mut bodies = Vec::new();
        for (number, before) in others.iter().enumerate().step_by(others.len() / 4 + 1) {
            let after = line(number, writer);
            let added = line(self.lines.len(), writer);
            bodies.push(edits([(before, &after), (last, &format!(r"{last}\n{added}"))]));
            bodies.push(edits([(&after, before), (&format!(r"\n{added}"), "")]));
        }
        bodies
    }
}

/// The number makes a line unique in its file.
fn line(number: usize, writer: &mut Writer) -> String {
    format!("- {number:03} {}", writer.text(93))
}

fn edits(edits: [(&str, &str); 2]) -> String {
    let edits = edits.map(|(old, new)| format!(r#"{{"old_text":"{old}","new_text":"{new}"}}"#));
    format!(r#"{{"edits":[{}],"reason":"edit"}}"#, edits.join(","))
}

fn target(user: &str, path: &str) -> String {
    format!("/v1/tenants/default/users/{user}/files/{path}")
}

/// A file.
pub fn get(user: &str, path: &str) -> Vec<u8> {
    request("GET", &target(user, path), user, None)
}

/// Creates a file.
pub fn create(user: &str, path: &str, note: &Note) -> Vec<u8> {
    request_with("If-Match: *\r\n", "PUT", &target(user, path), user, Some(&note.document()))
}

/// Replaces a file by one note and by another, in turns; the gap is for the ETag.
pub fn puts(user: &str, path: &str, notes: [&Note; 2]) -> Vec<Template> {
    notes.iter().map(|note| conditional("PUT", user, path, &note.document())).collect()
}

/// Edits a file that holds this note, in a circle; the gap is for the ETag.
pub fn patches(user: &str, path: &str, note: &Note, writer: &mut Writer) -> Vec<Template> {
    note.edits(writer).iter().map(|body| conditional("PATCH", user, path, body)).collect()
}

fn conditional(method: &str, user: &str, path: &str, body: &str) -> Template {
    const GAP: &str = "ETAG";
    let condition = format!("If-Match: \"{GAP}\"\r\n");
    Template::new(&request_with(&condition, method, &target(user, path), user, Some(body)), GAP)
}

/// Assembles a context of these files, with the budget that the agent SDK asks for.
pub fn assemble(user: &str, paths: &[String]) -> Vec<u8> {
    let files: Vec<String> = paths.iter().map(|path| format!(r#"{{"path":"{path}"}}"#)).collect();
    let body = format!(r#"{{"files":[{}],"max_docs":8,"max_chars_total":40000}}"#, files.join(","));
    request("POST", &format!("/v1/tenants/default/users/{user}/context:assemble"), user, Some(&body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn a_note_is_as_long_as_asked_for() {
        let body: Value = serde_json::from_str(&Note::new(20, &mut Writer::new(1)).document()).unwrap();
        let text = body["document"]["content"]["text"].as_str().unwrap();
        assert_eq!((text.len(), text.lines().count()), (20 * 1000 - 1, 200));
    }

    #[test]
    fn edits_that_went_round_leave_the_note_as_it_was() {
        let mut writer = Writer::new(1);
        let note = Note::new(20, &mut writer);
        let original = note.lines.join("\n");
        let mut text = original.clone();
        for (number, body) in note.edits(&mut writer).iter().enumerate() {
            let body: Value = serde_json::from_str(body).unwrap();
            for edit in body["edits"].as_array().unwrap() {
                let old = edit["old_text"].as_str().unwrap();
                assert_eq!(text.matches(old).count(), 1, "an edit must say which text it means");
                text = text.replacen(old, edit["new_text"].as_str().unwrap(), 1);
            }
            assert_eq!(text == original, number % 2 == 1);
        }
    }
}
