use super::*;
use crate::memories::requests::{code, refusal};
use serde_json::json;

fn rules() -> Rules {
    Rules::default()
}

#[test]
fn items_are_taken_as_they_are_to_be_read_one_by_one() {
    let read = BulkAdd::read(json!({"memories": [{"content": 5}, "x\0", null], "atomic": true}), &rules());
    let items = vec![json!({"content": 5}), json!("x\0"), json!(null)];
    assert_eq!(read, Ok(BulkAdd { items, atomic: true }));
    assert!(!BulkAdd::read(json!({"memories": [{}]}), &rules()).unwrap().atomic);
}

#[test]
fn a_bulk_add_has_1_to_500_items() {
    let items = |count: usize| json!({"memories": vec![json!({}); count]});
    assert!(BulkAdd::read(items(500), &rules()).is_ok());
    let refusal = refusal(BulkAdd::read(items(501), &rules()));
    assert_eq!((refusal.code, &refusal.details["maxItems"]), (Code::BatchTooLarge, &json!(500)));
    for body in [items(0), json!({}), json!({"memories": null}), json!({"memories": {}})] {
        assert_eq!(code(BulkAdd::read(body, &rules())), "INVALID_REQUEST memories");
    }
    assert_eq!(code(BulkAdd::read(json!([]), &rules())), "INVALID_REQUEST");
    let atomic = BulkAdd::read(json!({"memories": [{}], "atomic": "yes"}), &rules());
    assert_eq!(code(atomic), "INVALID_REQUEST atomic");
}

#[test]
fn a_bulk_delete_has_1_to_1000_ids_and_counts_each_once() {
    let read = |ids: Value| BulkDelete::read(&json!({"ids": ids}), &rules());
    assert_eq!(read(json!(["b", "a", "b", "no id"])).unwrap().ids, ["b", "a", "no id"]);
    assert!(read(json!(vec!["x"; 1000])).is_ok());
    assert_eq!(code(read(json!(vec!["x"; 1001]))), "BATCH_TOO_LARGE");
    for ids in [json!([]), json!(null), json!("a"), json!([1])] {
        assert_eq!(code(read(ids)), "INVALID_REQUEST ids");
    }
}
