use super::*;
use serde_json::json;

fn read(body: Value) -> Result<(Operation, usize, bool)> {
    let rules = Rules::default();
    let batch = Batch::read(&body, &rules)?;
    Ok((batch.operation, batch.items.len(), batch.continue_on_error))
}

fn code(error: Error) -> Code {
    error.code
}

#[test]
fn a_batch_names_its_operation_and_has_one_to_five_hundred_items() {
    let body = json!({"operation": "Upsert", "entries": [{}, {}], "options": {"continue_on_error": true}});
    assert_eq!(read(body).unwrap(), (Operation::Upsert, 2, true));
    assert_eq!(read(json!({"operation": "delete", "entries": [{}]})).unwrap(), (Operation::Delete, 1, false));
    let items = vec![json!({}); 501];
    assert_eq!(
        code(read(json!({"operation": "create", "entries": items})).unwrap_err()),
        Code::BatchTooLarge
    );
    for wrong in [
        json!({"operation": "create", "entries": []}),
        json!({"operation": "create"}),
        json!({"operation": "merge", "entries": [{}]}),
        json!({"entries": [{}]}),
        json!({"operation": "create", "entries": [{}], "options": {"continue_on_error": 1}}),
    ] {
        assert_eq!(code(read(wrong.clone()).unwrap_err()), Code::InvalidRequest, "{wrong}");
    }
}

#[test]
fn a_report_tells_every_item_and_why_it_failed() {
    let mut report = Report::default();
    report.note(None, Ok(("a".to_owned(), "created")));
    report.note(Some("b"), Err(Error::no_such_memory()));
    report.stopped = true;
    report.skip();
    let finished = report.finish();
    assert_eq!(finished.status, "failed");
    assert_eq!(
        json!(finished.results),
        json!({
            "succeeded": 1,
            "failed": 1,
            "errors": [{"index": 1, "id": "b", "code": 404, "name": "MEMORY_NOT_FOUND", "message": "there is no such memory"}],
            "items": [
                {"index": 0, "id": "a", "status": "created"},
                {"index": 1, "id": "b", "status": "failed"},
                {"index": 2, "status": "skipped"}
            ]
        })
    );
}

#[test]
fn a_run_to_its_end_is_completed_if_anything_succeeded() {
    let failure = || Err(Error::no_such_memory());
    let mut some = Report::default();
    some.note(None, failure());
    some.note(None, Ok(("a".to_owned(), "deleted")));
    assert_eq!(some.finish().status, "completed");
    let mut none = Report::default();
    none.note(None, failure());
    assert_eq!(none.finish().status, "failed");
}
