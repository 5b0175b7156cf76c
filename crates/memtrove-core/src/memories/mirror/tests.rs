use super::*;
use crate::UserId;
use crate::identity::Tenant;

const NOW: Timestamp = Timestamp::from_micros(7_000_000);
const LIMIT: usize = 65_536;

fn scope(tenant: &str, user: &str) -> Scope {
    Scope::listed(Tenant::listed(tenant.into()), UserId(user.into()))
}

fn event(more: Value) -> String {
    let mut event = json!({
        "event_id": "evt_1", "tenant_id": "acme", "user_id": "dana", "timestamp": "2026-01-30T18:00:00+01:00",
        "digest": "Dana booked a train.", "service_id": "planner", "source_type": "chat", "keywords": [],
        "project_ids": []
    });
    event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    event.to_string()
}

fn mirror(more: Value) -> Memory {
    memory(&scope("acme", "dana"), &event(more), LIMIT, NOW).unwrap()
}

#[test]
fn an_event_becomes_an_episodic_memory_of_its_user() {
    let mirror = mirror(
        json!({"keywords": ["train", "booking"], "project_ids": ["porto"], "evidence": {"m": [1.10]}}),
    );
    assert_eq!((mirror.scope.layer(), mirror.scope.values()), (Layer::User, &["dana".to_owned()][..]));
    assert_eq!((mirror.kind, mirror.content.as_str()), (Kind::Episodic, "Dana booked a train."));
    assert_eq!(mirror.occurred_at, Timestamp::parse("2026-01-30T17:00:00Z"));
    assert_eq!(mirror.created_by.user.as_deref(), Some("dana"));
    assert_eq!(mirror.lineage.mirror_of.as_deref(), Some("evt_1"));
    assert_eq!(
        Value::Object(mirror.metadata),
        json!({
            "source": {"type": "conversation", "reference": "evt_1"}, "tags": ["train", "booking"],
            "serviceId": "planner", "sourceType": "chat", "projectIds": ["porto"], "evidence": {"m": [1.10]}
        })
    );
}

#[test]
fn what_comes_from_elsewhere_is_imported_and_what_is_empty_is_left_out() {
    let mirror = mirror(json!({"source_type": "mail", "evidence": null}));
    assert_eq!(
        Value::Object(mirror.metadata),
        json!({"source": {"type": "import", "reference": "evt_1"}, "serviceId": "planner", "sourceType": "mail"})
    );
}

#[test]
fn what_metadata_cannot_hold_stays_in_the_event() {
    let deep = (0..70).fold(json!(1), |inner, _| json!([inner]));
    let cases = [
        (json!({"keywords": ["a", "", "b".repeat(129), "a", "c"]}), json!({"tags": ["a", "c"]})),
        (json!({"evidence": deep}), json!({})),
        (json!({"evidence": "x".repeat(LIMIT)}), json!({})),
        (json!({"service_id": "x".repeat(LIMIT), "evidence": 1}), json!({"serviceId": null, "evidence": 1})),
    ];
    for (given, expected) in cases {
        let mut metadata = mirror(json!({}));
        let members = &mut metadata.metadata;
        for (name, value) in expected.as_object().unwrap() {
            if value.is_null() {
                members.remove(name)
            } else {
                members.insert(name.clone(), value.clone())
            };
        }
        let names = |memory: &Memory| memory.metadata.clone();
        assert_eq!(names(&mirror(given)), names(&metadata));
    }
}

#[test]
fn the_id_tells_every_scope_and_event_apart_and_never_changes() {
    let of = |tenant: &str, user: &str, event: &str| id(&scope(tenant, user), event);
    assert_eq!(of("acme", "dana", "evt_1"), of("acme", "dana", "evt_1"));
    let ids = [
        of("acme", "dana", "evt_1"),
        of("acme", "danae", "vt_1"),
        of("acm", "edana", "evt_1"),
        of("a", "b", "c"),
    ];
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
    assert_eq!(of("acme", "dana", "evt_1").0.get_version_num(), 8);
}

#[test]
fn an_event_written_again_is_the_next_version_of_its_mirror() {
    let mut old = mirror(json!({}));
    old.lineage.promoted_to = Some(MemoryId(uuid::Uuid::from_u128(9)));
    old.archive(NOW);
    let new = memory(&scope("acme", "dana"), &event(json!({"digest": "She did not."})), LIMIT, NOW).unwrap();
    let renewed = renewed(new, &old);
    assert_eq!((renewed.version, renewed.created_at), (3, old.created_at));
    assert!(renewed.updated_at > old.updated_at);
    assert_eq!((renewed.kind, renewed.content.as_str()), (Kind::Episodic, "She did not."));
    assert_eq!(renewed.lineage, old.lineage);
}

#[test]
fn what_cannot_be_read_is_not_mirrored() {
    let scope = scope("acme", "dana");
    assert_eq!(memory(&scope, "damaged", LIMIT, NOW), None);
    assert_eq!(memory(&scope, &event(json!({"timestamp": "yesterday"})), LIMIT, NOW), None);
}
