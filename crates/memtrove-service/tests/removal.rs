//! Files that come, change, move and go, on a clock that sometimes runs backwards, while retention takes what is old:
//! whatever happened, the store holds what a map would, and the records that are left prove every version they tell of.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod world;

use memtrove_core::Error;
use memtrove_core::files::retention::Retention;
use memtrove_core::files::{Code, FilePath, ScopedCaller};
use memtrove_service::files::{Headers, ListAudit, ListFiles};
use memtrove_service::{RetentionSettings, Settings};
use memtrove_store::TxExt;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use world::{World, principal};

const PATHS: [&str; 3] = ["a.md", "b/c.md", "d.md"];

#[derive(Debug, Clone)]
enum Step {
    Put { path: usize, text: String },
    Patch { path: usize, text: String },
    Delete { path: usize, star: bool },
    Move { from: usize, to: usize, star: bool },
    Time { micros: i64 },
    Retain,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let path = || 0..PATHS.len();
    let text = || "[a-c]{0,4}";
    let step = prop_oneof![
        4 => (path(), text()).prop_map(|(path, text)| Step::Put { path, text }),
        4 => (path(), text()).prop_map(|(path, text)| Step::Patch { path, text }),
        3 => (path(), any::<bool>()).prop_map(|(path, star)| Step::Delete { path, star }),
        4 => (path(), path(), any::<bool>()).prop_map(|(from, to, star)| Step::Move { from, to, star }),
        3 => (-2_000_000i64..2_000_000).prop_map(|micros| Step::Time { micros }),
        1 => Just(Step::Retain),
    ];
    prop::collection::vec(step, 1..60)
}

fn alice() -> ScopedCaller {
    let alice = principal("alice", Some("agent"));
    ScopedCaller::enter(&alice, "alice".to_owned(), None, "request".to_owned()).unwrap()
}

fn path(index: usize) -> FilePath {
    FilePath::parse(PATHS[index]).unwrap()
}

fn if_match(etag: &str) -> Headers {
    Headers { if_match: Some(etag.to_owned()), ..Headers::default() }
}

/// What must be there: the files with their ETags, and under each ETag the document that it ever named.
#[derive(Default)]
struct Model {
    files: BTreeMap<usize, String>,
    versions: HashMap<String, String>,
}

impl Model {
    /// Notes a version, whose ETag no other has.
    fn note(&mut self, path: usize, etag: String, document: String) -> TestCaseResult {
        prop_assert!(self.versions.insert(etag.clone(), document).is_none(), "an ETag twice: {}", etag);
        self.files.insert(path, etag);
        Ok(())
    }
}

fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> Code {
    match result {
        Err(Error::Refused(refusal)) => refusal.code,
        other => panic!("not refused: {other:?}"),
    }
}

/// An envelope without what the server writes into it.
fn lasting(document: &str) -> Value {
    let mut document: Value = serde_json::from_str(document).unwrap();
    for name in ["updated_at", "updated_by"] {
        document.as_object_mut().unwrap().shift_remove(name);
    }
    document
}

async fn apply(world: &World, model: &mut Model, step: Step) -> TestCaseResult {
    let (files, caller) = (&world.services.files, alice());
    match step {
        Step::Time { micros } => world.clock.advance_micros(micros),
        Step::Retain => {
            let rules = Retention { events_days: 0, audit_days: 0, snapshots_days: 0, as_of: None };
            files.apply_retention(&caller, rules, None).await.unwrap();
        }
        Step::Put { path: at, text } => {
            let document = json!({
                "doc_id": "d", "schema_id": "s", "schema_version": "1", "content": {"text": text},
            });
            let current = model.files.get(&at).map_or("*", String::as_str);
            let body = json!({"document": document});
            let written = files.put(&caller, path(at), body, if_match(current)).await.unwrap();
            model.note(at, written.etag, written.document)?;
        }
        Step::Patch { path: at, text } => {
            let ops = json!([{"op": "replace", "path": "/content/text", "value": text}]);
            let current = model.files.get(&at).cloned();
            let headers = if_match(current.as_deref().unwrap_or("\"1-none\""));
            let patched = files.patch(&caller, path(at), json!({"ops": ops}), headers).await;
            match current {
                None => prop_assert_eq!(code(patched), Code::DocumentNotFound),
                Some(_) => {
                    let written = patched.unwrap();
                    model.note(at, written.etag, written.document)?;
                }
            }
        }
        Step::Delete { path: at, star } => {
            let current = model.files.remove(&at);
            let headers = if_match(if star { "*" } else { current.as_deref().unwrap_or("\"1-none\"") });
            let deleted = files.delete(&caller, json!({"path": PATHS[at]}), headers).await;
            match current {
                None => prop_assert_eq!(code(deleted), Code::DocumentNotFound),
                Some(etag) => prop_assert_eq!(deleted.unwrap().etag, etag),
            }
        }
        Step::Move { from, to, star } => {
            let current = model.files.get(&from).cloned();
            let headers = if_match(if star { "*" } else { current.as_deref().unwrap_or("\"1-none\"") });
            let body = json!({"from": PATHS[from], "to": PATHS[to]});
            let moved = files.move_file(&caller, body, headers).await;
            match current {
                _ if from == to => prop_assert_eq!(code(moved), Code::InvalidRequest),
                None => prop_assert_eq!(code(moved), Code::DocumentNotFound),
                Some(_) if model.files.contains_key(&to) => {
                    prop_assert_eq!(code(moved), Code::DocumentExists);
                }
                Some(etag) => {
                    let file = moved.unwrap().file;
                    prop_assert_eq!(lasting(&file.document), lasting(&model.versions[&etag]));
                    model.files.remove(&from);
                    model.note(to, file.etag, file.document)?;
                }
            }
        }
    }
    Ok(())
}

/// Holds the store against the model.
async fn compare(world: &World, model: &Model) -> TestCaseResult {
    let (files, caller) = (&world.services.files, alice());
    let listed = files.list(&caller, ListFiles::default()).await.unwrap().files;
    let listed: Vec<&str> = listed.iter().map(|file| file.path.as_str()).collect();
    let expected: Vec<&str> = model.files.keys().map(|at| PATHS[*at]).collect();
    prop_assert_eq!(&listed, &expected);
    for (at, etag) in &model.files {
        let stored = files.get(&caller, path(*at)).await.unwrap();
        prop_assert_eq!(&stored.etag.to_string(), etag);
        prop_assert_eq!(&stored.document, &model.versions[etag]);
    }
    let counted = world
        .store
        .read("test", |tx| {
            let sql = "SELECT file_count FROM scopes WHERE user_id = 'alice'";
            Ok::<_, Error>(tx.first(sql, &[], |row| row.int(0))?.unwrap_or(0))
        })
        .await;
    prop_assert_eq!(counted.unwrap(), model.files.len() as i64);

    let request = ListAudit { limit: Some(500), ..ListAudit::default() };
    let records = files.list_audit(&caller, request).await.unwrap().records;
    let mut times = HashMap::new();
    for record in records {
        let record = serde_json::to_value(record).unwrap();
        let text = |member: &str| record[member].as_str().unwrap().to_owned();
        let (at, last) = (text("timestamp"), times.insert(text("path"), text("timestamp")));
        prop_assert!(last.is_none_or(|last| last <= at), "times descend: {}", record);
        let wanted = json!({"path": record["path"], "change_id": record["change_id"]});
        let proved = files.reconstruct(&caller, wanted.as_object().unwrap()).await;
        match record["new_etag"].as_str() {
            Some(etag) => prop_assert_eq!(&proved.unwrap().document, &model.versions[etag]),
            None => prop_assert_eq!(code(proved), Code::AuditNotFound),
        }
    }
    // What the trail says of now is what is there, unless retention took all it knew.
    for (at, name) in PATHS.iter().enumerate().filter(|(_, name)| times.contains_key(**name)) {
        let wanted = json!({"path": name, "as_of_utc": "9999-01-01T00:00:00Z"});
        let proved = files.reconstruct(&caller, wanted.as_object().unwrap()).await;
        match model.files.get(&at) {
            Some(etag) => prop_assert_eq!(&proved.unwrap().etag.to_string(), etag),
            None => prop_assert_eq!(code(proved), Code::AuditNotFound),
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn whatever_comes_and_goes_the_trail_proves_every_version_it_tells_of(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let retention = RetentionSettings { audit_min_days: 0, ..RetentionSettings::default() };
            let settings = Settings { retention, ..Settings::default() };
            let (world, mut model) = (World::new(settings).await, Model::default());
            for step in steps {
                apply(&world, &mut model, step).await?;
            }
            compare(&world, &model).await
        })?;
    }
}
