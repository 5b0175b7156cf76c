//! Deleting: once, for good, and without telling anybody what was there.

use crate::support::*;

#[test]
fn what_is_deleted_is_gone_everywhere() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let kept = tenant.say(&place, "stays");
    let id = tenant.say(&place, "goes");

    let answer = tenant.delete(&id).expect(200);

    assert_eq!(answer.json, json!({"success": true, "deleted": true}));
    tenant.get(&id).not_found();
    tenant.change(&id, json!({"content": "back"})).not_found();
    let page = tenant.page(place.with(json!({})));
    assert_eq!((page.ids(), page.total), (vec![kept.clone()], 1));
    let found = tenant.search(place.everything(json!({"query": "goes"}))).expect(200);
    assert_eq!(found.json["totalCount"], 1);
    assert_eq!(found.json["results"][0]["memory"]["id"], json!(kept));
}

#[test]
fn deleting_again_or_what_never_was_succeeds_and_does_nothing() {
    let tenant = Tenant::fresh();
    let id = tenant.say(&Place::user("u"), "a");
    tenant.delete(&id).expect(200);
    for unknown in [id.as_str(), &fresh_id(), "nonsense"] {
        for caller in [tenant.clone(), tenant.with_header("if-match", "\"v1\""), tenant.as_user("u")] {
            let answer = caller.delete(unknown).expect(200);
            assert_eq!(answer.json, json!({"success": true, "deleted": false}));
        }
    }
}

#[test]
fn of_many_deletions_one_deletes() {
    let tenant = Tenant::fresh();
    for round in 0..5 {
        let id = tenant.say(&Place::user("u"), &format!("round {round}"));
        let answers = at_once(6, |_| tenant.delete(&id).expect(200).json["deleted"].clone());
        assert_eq!(answers.iter().filter(|deleted| **deleted == true).count(), 1, "{answers:?}");
    }
}

#[test]
fn the_version_that_was_read_is_the_version_that_is_deleted() {
    let tenant = Tenant::fresh();
    let id = tenant.say(&Place::user("u"), "one");
    tenant.changed(&id, json!({"content": "two"}));

    let refused = tenant.with_header("if-match", "\"v1\"").delete(&id).refused(412, "ETAG_MISMATCH");
    assert_eq!(refused.details()["latest_etag"], "\"v2\"");
    assert_eq!(refused.details()["latestVersion"], 2);
    assert_eq!(tenant.entry(&id)["content"], "two");
    let gone = tenant.with_header("if-match", "\"v2\"").delete(&id).expect(200);
    assert_eq!(gone.json["deleted"], true);
}

#[test]
fn other_tenants_and_other_users_delete_nothing() {
    let (tenant, other) = (Tenant::fresh(), Tenant::fresh());
    let mut ids = vec![tenant.say(&Place::project("p"), "shared")];
    ids.extend(tenant.every_layer()[..3].iter().map(|place| tenant.say(place, "personal")));

    for id in &ids {
        assert_eq!(other.delete(id).expect(200).json["deleted"], false);
    }
    for id in &ids[1..] {
        assert_eq!(tenant.as_user("u2").delete(id).expect(200).json["deleted"], false);
    }
    for id in &ids {
        tenant.entry(id);
        assert_eq!(tenant.as_user("u1").delete(id).expect(200).json["deleted"], true, "one's own");
    }
}
