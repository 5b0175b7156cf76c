//! Files that come, change, move and go, on a clock that sometimes runs backwards, while retention takes what is old:
//! whatever happened, the store holds what a map would, and the records that are left prove every version they tell of.

use crate::world::{World, principal};
use memtrove_core::files::retention::Retention;
use memtrove_core::files::{Code, FilePath, FilePrecondition, MovePaths, Patch, Reasons, ScopedCaller};
use memtrove_core::{Error, Timestamp};
use memtrove_service::files::{
    Admitted, ChangeId, DeleteFile, ListAudit, ListFiles, MoveFile, PatchFile, PutFile, Reconstruct, Role,
    WantedVersion,
};
use memtrove_service::{RetentionSettings, Settings};
use memtrove_store::AllTenants;
use memtrove_store::TxExt;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

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

async fn alice<R: Role>(world: &World) -> Admitted<R> {
    let alice = principal("alice", Some("agent"));
    let alice = ScopedCaller::enter(&alice, "alice".to_owned(), None, "request".to_owned()).unwrap();
    world.services.files.admit(alice).await.unwrap()
}

fn path(index: usize) -> FilePath {
    FilePath::parse(PATHS[index]).unwrap()
}

fn if_match(etag: &str) -> FilePrecondition {
    FilePrecondition::read(Some(etag)).unwrap()
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
        Err(refusal) => refusal.code,
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
    let (files, writer) = (&world.services.files, &alice(world).await);
    let (reasons, key) = (Reasons::default(), None);
    match step {
        Step::Time { micros } => world.clock.advance_micros(micros),
        Step::Retain => {
            let rules = Retention { events_days: 0, audit_days: 0, snapshots_days: 0, as_of: None };
            files.apply_retention(writer, rules, None).await.unwrap();
        }
        Step::Put { path: at, text } => {
            let document = json!({
                "doc_id": "d", "schema_id": "s", "schema_version": "1", "content": {"text": text},
            });
            let precondition = if_match(model.files.get(&at).map_or("*", String::as_str));
            let envelope = document.as_object().unwrap().clone();
            let request = PutFile { path: path(at), precondition, envelope, reasons, key };
            let written = files.put(writer, request).await.unwrap();
            model.note(at, written.etag, written.document)?;
        }
        Step::Patch { path: at, text } => {
            let ops = json!([{"op": "replace", "path": "/content/text", "value": text}]);
            let current = model.files.get(&at).cloned();
            let precondition = if_match(current.as_deref().unwrap_or("\"1-none\""));
            let patch = Patch::read(Some(&ops), None).unwrap();
            let request = PatchFile { path: path(at), precondition, patch, reasons, key };
            let patched = files.patch(writer, request).await;
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
            let precondition = if_match(if star { "*" } else { current.as_deref().unwrap_or("\"1-none\"") });
            let deleted =
                files.delete(writer, DeleteFile { path: path(at), precondition, reasons, key }).await;
            match current {
                None => prop_assert_eq!(code(deleted), Code::DocumentNotFound),
                Some(etag) => prop_assert_eq!(deleted.unwrap().etag, etag),
            }
        }
        Step::Move { from, to, star } => {
            let current = model.files.get(&from).cloned();
            let precondition = if_match(if star { "*" } else { current.as_deref().unwrap_or("\"1-none\"") });
            let moved = match MovePaths::new(path(from), path(to)) {
                Ok(paths) => files.move_file(writer, MoveFile { paths, precondition, reasons, key }).await,
                Err(refused) => Err(refused),
            };
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
    let (files, reader, auditor) = (&world.services.files, &alice(world).await, &alice(world).await);
    let listed = files.list(reader, ListFiles::default()).await.unwrap().files;
    let listed: Vec<&str> = listed.iter().map(|file| file.path.as_str()).collect();
    let expected: Vec<&str> = model.files.keys().map(|at| PATHS[*at]).collect();
    prop_assert_eq!(&listed, &expected);
    for (at, etag) in &model.files {
        let stored = files.get(reader, path(*at)).await.unwrap();
        prop_assert_eq!(&stored.etag.to_string(), etag);
        prop_assert_eq!(&stored.document, &model.versions[etag]);
    }
    let counted = world
        .store
        .read(AllTenants, "test", |tx| {
            let sql = "SELECT file_count FROM scopes WHERE user_id = 'alice'";
            Ok::<_, Error>(tx.first(sql, &[], |row| row.int(0))?.unwrap_or(0))
        })
        .await;
    prop_assert_eq!(counted.unwrap(), model.files.len() as i64);

    let request = ListAudit { limit: Some(500), ..ListAudit::default() };
    let records = files.list_audit(auditor, request).await.unwrap().records;
    let mut times = HashMap::new();
    for record in records {
        let record = serde_json::to_value(record).unwrap();
        let text = |member: &str| record[member].as_str().unwrap().to_owned();
        let (at, last) = (text("timestamp"), times.insert(text("path"), text("timestamp")));
        prop_assert!(last.is_none_or(|last| last <= at), "times descend: {}", record);
        let path = FilePath::parse(&text("path")).unwrap();
        let version = WantedVersion::Of(ChangeId::parse(&text("change_id")).unwrap());
        let proved = files.reconstruct(auditor, Reconstruct { path, version }).await;
        match record["new_etag"].as_str() {
            Some(etag) => prop_assert_eq!(&proved.unwrap().document, &model.versions[etag]),
            None => prop_assert_eq!(code(proved), Code::AuditNotFound),
        }
    }
    // What the trail says of now is what is there, unless retention took all it knew.
    for at in (0..PATHS.len()).filter(|at| times.contains_key(PATHS[*at])) {
        let version = WantedVersion::AsOf(Timestamp::parse("9999-01-01T00:00:00Z").unwrap());
        let proved = files.reconstruct(auditor, Reconstruct { path: path(at), version }).await;
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
