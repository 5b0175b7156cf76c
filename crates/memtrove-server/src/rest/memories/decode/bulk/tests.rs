use super::*;
use crate::rest::testing::{code, refusal};
use serde_json::json;

fn rules() -> Rules {
    Rules::default()
}

fn add(body: Value) -> Result<BulkAdd> {
    let add = bulk_add(&body, &rules())?;
    add.check(&rules()).map(|()| add)
}

#[test]
fn items_are_read_one_by_one() {
    let good = json!({"content": "x", "layer": "user", "identifiers": {"userId": "alice"}});
    let read = add(json!({"memories": [{"content": 5}, good, "x\0", null], "atomic": true})).unwrap();
    assert!(read.atomic);
    assert_eq!(read.items.iter().map(Result::is_ok).collect::<Vec<_>>(), [false, true, false, false]);
    assert!(!add(json!({"memories": [{}]})).unwrap().atomic);
}

#[test]
fn a_bulk_add_has_1_to_500_items() {
    let items = |count: usize| json!({"memories": vec![json!({}); count]});
    assert!(add(items(500)).is_ok());
    let refusal = refusal(add(items(501)));
    assert_eq!((refusal.code, &refusal.details["maxItems"]), (Code::BatchTooLarge, &json!(500)));
    assert_eq!(bulk_add(&items(100_000), &rules()).unwrap().items.len(), 500, "what is refused is not read");
    for body in [items(0), json!({}), json!({"memories": null}), json!({"memories": {}})] {
        assert_eq!(code(add(body)), "INVALID_REQUEST memories");
    }
    assert_eq!(code(add(json!([]))), "INVALID_REQUEST");
    assert_eq!(code(add(json!({"memories": [{}], "atomic": "yes"}))), "INVALID_REQUEST atomic");
}

#[test]
fn a_bulk_delete_has_1_to_1000_ids_and_counts_each_once() {
    let ids = |ids: Value| bulk_delete(&json!({"ids": ids}))?.check(&rules());
    assert_eq!(ids(json!(["b", "a", "b", "no id"])).unwrap(), ["b", "a", "no id"]);
    assert!(ids(json!(vec!["x"; 1000])).is_ok());
    assert_eq!(code(ids(json!(vec!["x"; 1001]))), "BATCH_TOO_LARGE");
    for bad in [json!([]), json!(null), json!("a"), json!([1])] {
        assert_eq!(code(ids(bad)), "INVALID_REQUEST ids");
    }
}
