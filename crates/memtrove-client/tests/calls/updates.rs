//! Changing a file that others change too.

use crate::support::*;
use memtrove_client::{FileUpdate, PatchRequest, StoredFile, TextEdit, UpdateOptions, WriteRequest};

fn conflict() -> Act {
    refusal(412, "ETAG_MISMATCH")
}

fn edit(file: &StoredFile) -> FileUpdate {
    PatchRequest::edits([TextEdit::new(file.text().unwrap(), "changed")]).into()
}

#[tokio::test]
async fn a_conflict_starts_again_with_the_fresh_version() {
    let stage = Stage::playing([file("\"1\""), conflict(), file("\"2\""), file("\"3\"")]);
    let updated = stage
        .client()
        .update_with_retry(&alice(), &path("a.md"), UpdateOptions::default(), |file| async move {
            Ok(edit(&file))
        })
        .await
        .unwrap();
    assert_eq!(updated.etag.as_str(), "\"3\"");
    let seen = stage.seen();
    assert_eq!([seen[1].header("if-match"), seen[3].header("if-match")], ["\"1\"", "\"2\""]);
    assert!(seen[3].body.contains(r#"\"2\""#), "made from what was read then: {}", seen[3].body);
}

#[tokio::test]
async fn the_last_conflict_comes_back() {
    for (retries, requests) in [(0, 2), (3, 8)] {
        let script = (0..9).flat_map(|_| [file("\"1\""), conflict()]);
        let stage = Stage::playing(script);
        let options = UpdateOptions { max_conflict_retries: retries, ..UpdateOptions::default() };
        let update = |file: StoredFile| async move { Ok(WriteRequest::new(file.document).into()) };
        let error =
            stage.client().update_with_retry(&alice(), &path("a.md"), options, update).await.unwrap_err();
        assert!(error.is_conflict(), "{error}");
        assert_eq!(stage.count(), requests);
    }
    assert_eq!(UpdateOptions::default().max_conflict_retries, 3);
}

#[tokio::test]
async fn everything_else_comes_back_at_once() {
    let update = |file: StoredFile| async move { Ok(edit(&file)) };
    let options = UpdateOptions::default;
    let stage = Stage::playing([refusal(404, "DOCUMENT_NOT_FOUND")]);
    let error =
        stage.client().update_with_retry(&alice(), &path("a.md"), options(), update).await.unwrap_err();
    assert!(error.is_not_found() && stage.count() == 1, "{error}");

    let stage = Stage::playing([file("\"1\""), refusal(422, "PATCH_MATCH_NOT_FOUND")]);
    let error =
        stage.client().update_with_retry(&alice(), &path("a.md"), options(), update).await.unwrap_err();
    assert!(error.api().unwrap().code == "PATCH_MATCH_NOT_FOUND" && stage.count() == 2, "{error}");

    // Another 412 is no conflict of versions.
    let stage = Stage::playing([file("\"1\""), refusal(412, "SOMETHING_ELSE")]);
    let error =
        stage.client().update_with_retry(&alice(), &path("a.md"), options(), update).await.unwrap_err();
    assert!(!error.is_conflict() && stage.count() == 2, "{error}");
}

#[tokio::test]
async fn an_update_that_is_given_up_writes_nothing() {
    let stage = Stage::playing([file("\"1\"")]);
    let update = |_| async { Err(Error::update("the plan has no such section")) };
    let options = UpdateOptions::default();
    let error = stage.client().update_with_retry(&alice(), &path("a.md"), options, update).await.unwrap_err();
    assert!(matches!(error, Error::Update(_)) && error.to_string().contains("no such section"), "{error}");
    assert_eq!(stage.count(), 1);
}

#[tokio::test]
async fn an_update_can_run_on_another_thread_and_says_who_acts() {
    let stage = Stage::playing([file("\"1\""), file("\"2\"")]);
    let client = stage.builder().service_id("planner").build().unwrap();
    let options = UpdateOptions { service_id: Some("importer".into()), ..UpdateOptions::default() };
    let work = tokio::spawn(async move {
        let (scope, file) = (alice(), path("a.md"));
        client.update_with_retry(&scope, &file, options, |file| async move { Ok(edit(&file)) }).await
    });
    work.await.unwrap().unwrap();
    assert_eq!(stage.seen()[1].header("x-service-id"), "importer");
}

#[tokio::test]
async fn a_file_that_may_not_be_there_is_written_over_what_is() {
    let missing = || refusal(404, "DOCUMENT_NOT_FOUND");
    // It appears, goes away and appears again, each time just before it is written.
    let stage = Stage::playing([
        missing(),
        conflict(),
        file("\"1\""),
        conflict(),
        missing(),
        conflict(),
        file("\"2\""),
        file("\"3\""),
    ]);
    let client = stage.client().with_options(CallOptions::idempotent("once"));
    let options = UpdateOptions { service_id: Some("importer".into()), ..UpdateOptions::default() };
    let write = |found: Option<StoredFile>| async move {
        let text = found.map(|file| file.text().unwrap().to_owned());
        Ok(WriteRequest::new(memtrove_client::Envelope::markdown("d", text.as_deref().unwrap_or("new"))))
    };
    let written = client.write_with_retry(&alice(), &path("a.md"), options, write).await.unwrap();
    assert_eq!(written.etag.as_str(), "\"3\"");
    let seen = stage.seen();
    let versions: Vec<&str> = seen.iter().skip(1).step_by(2).map(|seen| seen.header("if-match")).collect();
    assert_eq!(versions, ["*", "\"1\"", "*", "\"2\""]);
    assert_eq!((seen[7].header("x-service-id"), seen[7].header("idempotency-key")), ("importer", "once"));
    assert!(seen[5].body.contains("new") && seen[7].body.contains(r#"\"2\""#), "{seen:?}");
}
