//! Random histories against a model: after every step the server holds what the model holds, and in the end the audit
//! trail alone tells every version letter by letter.
//!
//! The model is the contract's definition of edits and patches written down as plainly as possible.

use crate::support::*;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::sync::LazyLock;

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

// ---- the model

/// Why the contract refuses a step.
type Refused = &'static str;

const NOWHERE: Refused = "INVALID_PATCH_PATH";

fn tokens(pointer: &str) -> Result<Vec<String>, Refused> {
    let rest = pointer.strip_prefix('/').ok_or(NOWHERE)?;
    Ok(rest.split('/').map(|token| token.replace("~1", "/").replace("~0", "~")).collect())
}

/// The place of an array that a token names, if it is below `end`.
fn index(token: &str, end: usize) -> Result<usize, Refused> {
    let digits = token == "0" || !token.starts_with('0') && token.bytes().all(|b| b.is_ascii_digit());
    let index: usize = if digits { token.parse().map_err(|_| NOWHERE)? } else { return Err(NOWHERE) };
    if index < end { Ok(index) } else { Err(NOWHERE) }
}

fn find<'a>(root: &'a mut Value, tokens: &[String]) -> Result<&'a mut Value, Refused> {
    tokens.iter().try_fold(root, |value, token| match value {
        Value::Object(members) => members.get_mut(token).ok_or(NOWHERE),
        Value::Array(items) => {
            let at = index(token, items.len())?;
            Ok(&mut items[at])
        }
        _ => Err(NOWHERE),
    })
}

fn insert(root: &mut Value, tokens: &[String], value: Value) -> Result<(), Refused> {
    let (last, parents) = tokens.split_last().ok_or(NOWHERE)?;
    match find(root, parents)? {
        Value::Object(members) => {
            members.insert(last.clone(), value);
        }
        Value::Array(items) if last == "-" => items.push(value),
        Value::Array(items) => items.insert(index(last, items.len() + 1)?, value),
        _ => return Err(NOWHERE),
    }
    Ok(())
}

fn take(root: &mut Value, tokens: &[String]) -> Result<Value, Refused> {
    let (last, parents) = tokens.split_last().ok_or(NOWHERE)?;
    match find(root, parents)? {
        Value::Object(members) => members.shift_remove(last).ok_or(NOWHERE),
        Value::Array(items) => {
            let at = index(last, items.len())?;
            Ok(items.remove(at))
        }
        _ => Err(NOWHERE),
    }
}

fn operate(root: &mut Value, op: &Value) -> Result<(), Refused> {
    let path = tokens(op["path"].as_str().unwrap())?;
    let value = || op["value"].clone();
    let from = || tokens(op["from"].as_str().unwrap());
    match op["op"].as_str().unwrap() {
        "add" => insert(root, &path, value()),
        "remove" => take(root, &path).map(drop),
        "replace" => find(root, &path).map(|place| *place = value()),
        "test" if *find(root, &path)? == value() => Ok(()),
        "test" => Err("PATCH_TEST_FAILED"),
        "copy" => {
            let copied = find(root, &from()?)?.clone();
            insert(root, &path, copied)
        }
        _ => {
            let from = from()?;
            if path.len() > from.len() && path.starts_with(&from) {
                return Err(NOWHERE);
            }
            let moved = take(root, &from)?;
            insert(root, &path, moved)
        }
    }
}

fn edit(document: &mut Value, edit: &Value) -> Result<(), Refused> {
    let Value::String(text) = &mut document["content"]["text"] else { return Err("PATCH_TEXT_NOT_FOUND") };
    let (old, new) = (edit["old_text"].as_str().unwrap(), edit["new_text"].as_str().unwrap());
    let places: Vec<usize> = text.match_indices(old).map(|(at, _)| at).collect();
    let at = match (places.len(), edit["occurrence"].as_i64()) {
        (0, _) => return Err("PATCH_MATCH_NOT_FOUND"),
        (_, Some(n)) => {
            usize::try_from(n - 1).ok().and_then(|n| places.get(n)).ok_or("PATCH_OCCURRENCE_OUT_OF_RANGE")?
        }
        (1, None) => &places[0],
        (_, None) => return Err("PATCH_MATCH_AMBIGUOUS"),
    };
    text.replace_range(*at..*at + old.len(), new);
    Ok(())
}

fn patch(document: &Value, body: &Value) -> Result<Value, Refused> {
    let mut document = document.clone();
    for op in body["ops"].as_array().into_iter().flatten() {
        operate(&mut document, op)?;
    }
    if !document["content"].is_object() {
        // Edits would say so first, in their own words.
        return match body["edits"].as_array() {
            Some(edits) if !edits.is_empty() => Err("PATCH_TEXT_NOT_FOUND"),
            _ => Err("INVALID_DOCUMENT"),
        };
    }
    for step in body["edits"].as_array().into_iter().flatten() {
        edit(&mut document, step)?;
    }
    Ok(document)
}

// ---- chance

const WORDS: [&str; 6] = ["a", "ab", "漢", "😀", "\n", "e\u{301}"];
const NAMES: [&str; 8] = ["a", "b", "", "0", "-", "x/y", "m~n", "é"];
/// No two of them have the same value, so that the model may compare their spelling.
const NUMBERS: [&str; 7] =
    ["0", "1", "2.50", "-7", "0.000001", "123456789012345678901234567890", "3.141592653589793238462643"];

fn pick<'a>(dice: &mut Dice, among: &[&'a str]) -> &'a str {
    among[dice.roll(among.len())]
}

fn text(dice: &mut Dice) -> String {
    (0..dice.roll(8)).map(|_| pick(dice, &WORDS)).collect()
}

fn value(dice: &mut Dice, depth: usize) -> Value {
    match dice.roll(if depth == 0 { 4 } else { 7 }) {
        0 => json!(null),
        1 => json!(dice.roll(2) == 0),
        2 => serde_json::from_str(pick(dice, &NUMBERS)).unwrap(),
        3 => json!(text(dice)),
        4 => (0..dice.roll(4)).map(|_| value(dice, depth - 1)).collect(),
        _ => Value::Object(
            (0..dice.roll(4)).map(|_| (pick(dice, &NAMES).to_owned(), value(dice, depth - 1))).collect(),
        ),
    }
}

fn content(dice: &mut Dice) -> Value {
    let mut content = json!({"z": value(dice, 2), "text": text(dice), "list": [], "a": value(dice, 3)});
    if dice.roll(12) == 0 {
        content["text"] = json!(7);
    }
    content
}

/// A pointer that mostly leads somewhere.
fn pointer(dice: &mut Dice, document: &Value) -> String {
    let mut pointer = String::from("/content");
    let mut place = &document["content"];
    for _ in 0..dice.roll(4) {
        let token = match place {
            Value::Object(members) if !members.is_empty() && dice.roll(8) > 0 => {
                members.keys().nth(dice.roll(members.len())).unwrap().clone()
            }
            Value::Array(items) => match dice.roll(12) {
                0 | 1 => "-".to_owned(),
                2 => "01".to_owned(),
                _ => dice.roll(items.len() + 1).to_string(),
            },
            // Nothing can be below a text or a number; try it now and then.
            Value::Object(_) => pick(dice, &NAMES).to_owned(),
            _ if dice.roll(8) > 0 => break,
            _ => pick(dice, &NAMES).to_owned(),
        };
        pointer.push('/');
        pointer.push_str(&token.replace('~', "~0").replace('/', "~1"));
        place = match place {
            Value::Object(members) => members.get(&token).unwrap_or(&Value::Null),
            Value::Array(items) => {
                token.parse().ok().and_then(|n: usize| items.get(n)).unwrap_or(&Value::Null)
            }
            _ => &Value::Null,
        };
    }
    pointer
}

fn operation(dice: &mut Dice, document: &Value) -> Value {
    if !document["content"]["text"].is_string() && dice.roll(3) == 0 {
        return json!({"op": "add", "path": "/content/text", "value": text(dice)});
    }
    let path = match pointer(dice, document) {
        // The content itself is worth a visit now and then, not every time.
        root if root == "/content" && dice.roll(6) > 0 => {
            format!("/content/{}", pick(dice, &["a", "list", "new"]))
        }
        path => path,
    };
    let there = document.pointer(&path).cloned();
    match dice.roll(9) {
        0..=2 => json!({"op": "add", "path": path, "value": value(dice, 2)}),
        3 => json!({"op": "remove", "path": path}),
        4 => json!({"op": "replace", "path": path, "value": value(dice, 2)}),
        5 => json!({"op": "move", "from": pointer(dice, document), "path": path}),
        6 => json!({"op": "copy", "from": pointer(dice, document), "path": path}),
        7 => json!({"op": "test", "path": path, "value": value(dice, 1)}),
        _ => json!({"op": "test", "path": path, "value": there}),
    }
}

/// An edit that mostly finds what it looks for.
fn text_edit(dice: &mut Dice, document: &Value) -> Value {
    let text: Vec<char> = document["content"]["text"].as_str().unwrap_or_default().chars().collect();
    let old: String = match dice.roll(6) {
        0 => pick(dice, &WORDS).to_owned(),
        _ if text.is_empty() => pick(dice, &WORDS).to_owned(),
        _ => text.iter().skip(dice.roll(text.len())).take(1 + dice.roll(3)).collect(),
    };
    let mut edit = json!({"old_text": old, "new_text": self::text(dice)});
    if dice.roll(3) > 0 {
        edit["occurrence"] = json!(1 - i64::from(dice.roll(12) == 0) + i64::from(dice.roll(6) == 0));
    }
    edit
}

fn step(dice: &mut Dice, document: &Value) -> Value {
    let ops =
        |dice: &mut Dice| -> Value { (0..1 + dice.roll(5) / 3).map(|_| operation(dice, document)).collect() };
    let edits =
        |dice: &mut Dice| -> Value { (0..1 + dice.roll(4) / 3).map(|_| text_edit(dice, document)).collect() };
    match dice.roll(5) {
        0 | 1 => json!({"ops": ops(dice)}),
        2 | 3 => json!({"edits": edits(dice)}),
        _ => json!({"ops": ops(dice), "edits": edits(dice), "evidence": value(dice, 2)}),
    }
}

// ---- the history

/// What the server keeps by itself is no business of the model.
fn without_times(mut document: Value) -> Value {
    let members = document.as_object_mut().unwrap();
    for name in ["created_at", "updated_at", "updated_by"] {
        assert!(members.shift_remove(name).is_some(), "{name} is missing");
    }
    document
}

/// A history of so many steps, of which one in `replaced` writes the file anew.
fn run(seed: u64, steps: usize, replaced: usize) {
    let mut dice = Dice(seed);
    let scope = Scope::fresh(&SERVER);
    let mut model = envelope(content(&mut dice));
    let mut current = scope.put("a.md", "*", model.clone()).stored();
    let mut versions = vec![current.clone()];
    for number in 0..steps {
        // Copies of the content into itself would grow without end.
        let (answer, expected, asked) = if dice.roll(replaced) == 0 || model.to_string().len() > 50_000 {
            let document = envelope(content(&mut dice));
            (scope.put("a.md", &current.etag, document.clone()), Ok(document.clone()), document)
        } else {
            let body = step(&mut dice, &model);
            (scope.patch("a.md", &current.etag, body.clone()), patch(&model, &body), body)
        };
        let context = format!("seed {seed}, step {number}: {asked}\nto {model}\n{}", answer.describe());
        match expected {
            Ok(document) => {
                assert_eq!(answer.status, 200, "{context}");
                current = answer.stored();
                assert_eq!(without_times(current.document()), document, "{context}");
                model = document;
                versions.push(current.clone());
            }
            Err(code) => {
                assert_eq!(answer.status, 422, "{context}");
                assert_eq!(answer.json["error"]["code"], code, "{context}");
            }
        }
        assert_eq!(scope.read("a.md"), current, "{context}");
    }

    assert!(versions.len() > steps / 3, "seed {seed}: only {} of {steps} steps succeeded", versions.len());
    let changes: HashMap<String, String> = scope
        .audit()
        .iter()
        .map(|record| {
            let text = |member: &str| record[member].as_str().unwrap().to_owned();
            (text("new_etag"), text("change_id"))
        })
        .collect();
    assert_eq!(changes.len(), versions.len(), "seed {seed}: a record for every version and for nothing else");
    for (number, version) in versions.iter().enumerate() {
        let change = &changes[&version.etag];
        assert_eq!(reconstructed(&scope, change), *version, "seed {seed}, version {number}");
    }
}

/// The version that a change led to, letter by letter.
fn reconstructed(scope: &Scope, change: &str) -> Stored {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Version {
        change_id: String,
        etag: String,
        document: Box<RawValue>,
    }
    let answer = scope.reconstruct("a.md", change).expect(200);
    let version: Version = serde_json::from_str(&answer.text)
        .unwrap_or_else(|e| panic!("not a change, an etag and a document ({e}): {}", answer.describe()));
    assert_eq!(version.change_id, change);
    Stored { etag: version.etag, text: version.document.get().to_owned() }
}

#[test]
fn every_version_of_a_random_history_is_as_the_model_says_and_can_be_reconstructed() {
    std::thread::scope(|threads| {
        for seed in 1..=8 {
            // Half of them patch for so long that the trail must hold an image of its own accord.
            let replaced = if seed % 2 == 0 { 8 } else { 200 };
            threads.spawn(move || run(0x9e37_79b9_7f4a_7c15 ^ (seed << 20), 150, replaced));
        }
    });
}
