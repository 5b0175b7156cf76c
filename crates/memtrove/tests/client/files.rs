//! Files, events, retention, audit, forgetting.

use crate::support::*;
use memtrove_client::files::{AuditQuery, DeleteRequest, MoveRequest, Reconstruct};
use memtrove_client::{
    Assemble, CallOptions, DropReason, Envelope, EventQuery, ListFiles, PatchOp, PatchRequest, Precondition,
    Retention, TextEdit,
};

pub async fn chapter(world: &World) {
    let (client, scope) = (world.agent("alice"), world.scope("alice"));
    documents(&client, &scope).await;
    removal(&client, &scope).await;
    events(world, &client, &scope).await;
    audit(&client, &scope).await;
    lifecycle(world, &client, &scope).await;
}

async fn documents(client: &Client, scope: &Scope) {
    let plan = path("projects/ünï & co/50% plan.md");
    let missing = client.get_file(scope, &plan).await.unwrap_err();
    assert!(missing.is_not_found() && missing.api().unwrap().code == "DOCUMENT_NOT_FOUND", "{missing}");
    assert!(missing.api().unwrap().request_id.is_some());

    let document = Envelope::markdown("plan", "one two two");
    let first = client.write_file(scope, &plan, document.clone(), Precondition::CreateNew).await.unwrap();
    let error = client.write_file(scope, &plan, document, Precondition::CreateNew).await.unwrap_err();
    assert!(error.is_conflict(), "{error}");
    assert_eq!(error.latest_etag().as_ref(), Some(&first.etag));

    let patch = PatchRequest {
        ops: Some(vec![PatchOp::add("/content/n", 1), PatchOp::test("/content/n", 1)]),
        ..PatchRequest::edits([TextEdit::new("two", "three").at(2)])
    };
    let writer = client
        .with_options(CallOptions { service_id: Some("planner".into()), ..CallOptions::idempotent("k1") });
    let second = writer.patch_file(scope, &plan, patch.clone(), &first.etag).await.unwrap();
    assert_eq!(
        (second.text(), second.document.updated_by.as_deref()),
        (Some("one two three"), Some("planner"))
    );
    assert_eq!(second.document.content["n"], 1);
    let again = writer.patch_file(scope, &plan, patch, &first.etag).await.unwrap();
    assert!(again.idempotency_replay && again.etag == second.etag);

    assert!(client.get_file_if_changed(scope, &plan, &second.etag).await.unwrap().is_none());
    assert!(client.get_file_if_changed(scope, &plan, &first.etag).await.unwrap().is_some());

    for name in ["a.md", "b.md"] {
        let document = Envelope::markdown(name, "x".repeat(300));
        client.write_file(scope, &path(name), document, Precondition::CreateNew).await.unwrap();
    }
    let list = client.list_files(scope, ListFiles { limit: Some(2), ..ListFiles::default() }).await.unwrap();
    assert_eq!((list.files.len(), list.next_after.as_deref()), (2, Some("b.md")));
    let request = ListFiles { limit: Some(1), ..ListFiles::default() };
    let all: Vec<_> = client.list_files_all(scope, request).try_collect().await.unwrap();
    assert_eq!(all.iter().map(|file| &file.path).collect::<Vec<_>>(), [&path("a.md"), &path("b.md"), &plan]);

    let files = [path("a.md"), path("none.md"), path("b.md"), plan];
    let request = Assemble { max_docs: Some(1), ..Assemble::files(files.clone()) };
    let context = client.assemble_context(scope, request).await.unwrap();
    assert_eq!(context.files[0].path, files[0]);
    assert_eq!(context.files[0].etag, client.get_file(scope, &files[0]).await.unwrap().etag);
    assert!(context.dropped_files.iter().all(|file| file.reason == DropReason::MaxDocs), "{context:?}");
    let request = Assemble { max_chars_total: Some(10), ..Assemble::files(files) };
    let context = client.assemble_context(scope, request).await.unwrap();
    assert_eq!(context.dropped_files[0].reason, DropReason::MaxCharsTotal);
}

async fn removal(client: &Client, scope: &Scope) {
    let (draft, final_path) = (path("drafts/x.md"), path("final/x.md"));
    let document = Envelope::markdown("x", "text");
    let file = client.write_file(scope, &draft, document, Precondition::CreateNew).await.unwrap();
    let request = MoveRequest { reason: Some("done".into()), ..final_path.clone().into() };
    let moved = client.move_file(scope, &draft, request, &file.etag).await.unwrap();
    assert_eq!((&moved.path, &moved.document.content["text"]), (&final_path, &json!("text")));
    let stale =
        client.delete_file(scope, &final_path, DeleteRequest::default(), &file.etag).await.unwrap_err();
    assert!(stale.is_conflict(), "{stale}");
    let deleted =
        client.delete_file(scope, &final_path, DeleteRequest::default(), &moved.etag).await.unwrap();
    assert_eq!((&deleted.path, &deleted.etag), (&final_path, &moved.etag));
    assert!(client.get_file(scope, &final_path).await.unwrap_err().is_not_found());
}

async fn events(world: &World, client: &Client, scope: &Scope) {
    let mut event = scope.event("evt 1", "Prefers concise answers");
    event.keywords = vec!["style".into()];
    event.evidence = Some(json!({"message": 7}));
    event.extra.insert("mood".into(), json!("calm"));
    client.write_event(scope, &event).await.unwrap();
    let query = EventQuery { query: Some("CONCISE".into()), top_k: Some(5), ..EventQuery::default() };
    let found = client.search_events(scope, query).await.unwrap();
    assert_eq!((found.len(), found[0].digest.as_str()), (1, "Prefers concise answers"));
    assert_eq!((&found[0].evidence, &found[0].extra["mood"]), (&event.evidence, &json!("calm")));
    let none = EventQuery { query: Some("verbose".into()), ..EventQuery::default() };
    assert!(client.search_events(scope, none).await.unwrap().is_empty());

    let job = world.admin().reindex_events(scope).await.unwrap();
    finished(world, job.job_id).await;
}

/// Waits until a job succeeded.
pub async fn finished(world: &World, job: uuid::Uuid) {
    let deadline = std::time::Instant::now() + PATIENCE;
    loop {
        let job = world.admin().admin().get_job(job).await.unwrap();
        match job.status.as_str() {
            "succeeded" => return,
            "failed" => panic!("{job:?}"),
            _ => assert!(std::time::Instant::now() < deadline, "{job:?}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn audit(client: &Client, scope: &Scope) {
    let query = AuditQuery { path: Some("a.md".into()), ..AuditQuery::default() };
    let page = client.list_audit(scope, query).await.unwrap();
    assert_eq!((page.records.len(), page.records[0].action.as_str()), (1, "create"));
    let record = client.get_audit(scope, &page.records[0].change_id).await.unwrap();
    assert_eq!(record.path, "a.md");
    let request = AuditQuery { limit: Some(2), ..AuditQuery::default() };
    let all: Vec<_> = client.list_audit_all(scope, request).try_collect().await.unwrap();
    assert!(all.len() > 4 && all.windows(2).all(|pair| pair[0].sequence < pair[1].sequence), "{}", all.len());
    let version = Reconstruct::Change(record.change_id.clone());
    let made = client.reconstruct_version(scope, &path("a.md"), version).await.unwrap();
    assert_eq!(Some(made.etag.as_str()), record.new_etag.as_deref());
    assert_eq!(made.document.content["text"], "x".repeat(300));
}

async fn lifecycle(world: &World, client: &Client, scope: &Scope) {
    let keep = Retention { events_days: 1, audit_days: 1, snapshots_days: 1, as_of_utc: None };
    let report = client.apply_retention(scope, keep.clone()).await.unwrap();
    assert_eq!((report.events_deleted, report.audit_deleted), (0, 0));
    assert_eq!(report.adjusted, ["audit_days"]);
    let later = report.cutoff_events_utc.saturating_add_micros(10 * 86_400_000_000);
    let keep = Retention { as_of_utc: Some(later), ..keep };
    let refused = client.apply_retention(scope, keep.clone()).await.unwrap_err();
    assert_eq!(refused.api().map(|error| error.code.as_str()), Some("INVALID_RETENTION_VALUE"));
    let report = world.admin().admin().because("a test").apply_retention(scope, keep).await.unwrap();
    assert_eq!((report.events_deleted, report.adjusted.len()), (1, 0));
    assert_eq!(later.as_micros() - report.cutoff_events_utc.as_micros(), 86_400_000_000);
    let left = client.list_audit(scope, AuditQuery::default()).await.unwrap().records;
    assert_eq!((left.len(), left[0].action.as_str()), (1, "audit_truncated"));
    assert_eq!(
        (left[0].count, left[0].justification.as_deref()),
        (Some(report.audit_deleted), Some("a test"))
    );

    let report = client.forget_user(scope).await.unwrap();
    assert_eq!(report.documents_deleted, 3);
    assert!(client.list_files(scope, ListFiles::default()).await.unwrap().files.is_empty());
    let odd = world.admin().forget_user_by_id("a/b").await.unwrap();
    assert_eq!(odd.documents_deleted, 0);
}
