//! Cursors: they belong to one question in one scope, cannot be edited, and never choose the scope.

use crate::support::*;

fn three() -> (Tenant, Place) {
    let (tenant, place) = (Tenant::fresh(), Place::user("u"));
    tenant.add_all(
        (0..3).map(|n| place.with(json!({"content": format!("entry {n}"), "metadata": {"tags": ["t"]}}))),
    );
    (tenant, place)
}

#[test]
fn a_cursor_of_another_question_is_refused() {
    let (tenant, place) = three();
    let next = |members: Value| tenant.page(place.with(members)).next.expect("more follows");
    let plain = next(json!({"limit": 1}));
    let variants = [
        json!({"filter": {"tags": ["t"]}}),
        json!({"filter": {"custom": {"a": {"$exists": false}}}}),
        json!({"kinds": ["user_personal"]}),
        json!({"from": "2001-01-01T00:00:00Z"}),
        json!({"to": "2101-01-01T00:00:00Z"}),
        json!({"state": "active"}),
        json!({"includeArchived": true}),
    ];
    for variant in &variants {
        let cursor = next(merged(json!({"limit": 1}), variant));
        let own = merged(json!({"limit": 2, "cursor": cursor, "includeEmbedding": true}), variant);
        assert_eq!(tenant.page(place.with(own)).entries.len(), 2, "limit and vectors may change: {variant}");
        let foreign = merged(json!({"limit": 1, "cursor": plain}), variant);
        tenant.list(place.with(foreign)).refused(400, "INVALID_CURSOR");
        tenant.list(place.with(json!({"cursor": cursor}))).refused(400, "INVALID_CURSOR");
    }
    tenant.page(place.with(json!({"limit": 100, "cursor": plain})));
}

#[test]
fn a_cursor_of_another_scope_is_refused() {
    let (tenant, place) = three();
    let cursor = tenant.page(place.with(json!({"limit": 1}))).next.expect("more follows");
    let others = [
        Place::user("U"),
        Place::user("u2"),
        Place::project("u"),
        Place::team("u"),
        Place::session("u", "s"),
        Place::agent("a", "u"),
        tenant.company(),
    ];
    for other in others {
        tenant.say(&other, "something is there");
        tenant.list(other.with(json!({"cursor": cursor}))).refused(400, "INVALID_CURSOR");
        let query = format!("/v1/memories?{}&cursor={cursor}", other.query());
        tenant.client.get(&query).refused(400, "INVALID_CURSOR");
    }
    Tenant::fresh().list(place.with(json!({"cursor": cursor}))).refused(400, "INVALID_CURSOR");
    let facts = json!({"identifiers": place.identifiers, "cursor": cursor});
    tenant.facts(facts).refused(400, "INVALID_CURSOR");
}

#[test]
fn an_edited_cursor_is_refused() {
    let (tenant, place) = three();
    let cursor = tenant.page(place.with(json!({"limit": 1}))).next.expect("more follows");
    let mut broken = vec![
        "x".to_owned(),
        "!".to_owned(),
        " ".to_owned(),
        fresh_id(),
        cursor[1..].to_owned(),
        cursor[..cursor.len() - 1].to_owned(),
        format!("{cursor}A"),
        format!("{cursor}="),
        format!("{cursor}{cursor}"),
        cursor.to_uppercase(),
        "A".repeat(512),
        "A".repeat(513),
        "🦭".to_owned(),
    ];
    for (n, old) in cursor.char_indices() {
        let new = if old == 'A' { 'B' } else { 'A' };
        broken.push(format!("{}{new}{}", &cursor[..n], &cursor[n + 1..]));
    }
    for broken in broken {
        assert_ne!(broken, cursor);
        tenant.list(place.with(json!({"cursor": broken}))).refused(400, "INVALID_CURSOR");
    }
    for wrong in [json!(5), json!(["x"]), json!({})] {
        let answer = tenant.list(place.with(json!({"cursor": wrong})));
        assert_eq!(answer.status, 400, "{}", answer.describe());
    }
    assert_eq!(tenant.page(place.with(json!({"cursor": null}))).entries.len(), 3);
    assert_eq!(tenant.page(place.with(json!({"cursor": cursor}))).entries.len(), 2);
}

#[test]
fn address_and_body_take_each_others_cursors() {
    let (tenant, place) = three();
    let got = Page::of(&tenant.client.get(&format!("/v1/memories?{}&limit=1&tag=t", place.query())));
    let filter = json!({"filter": {"tags": ["t"]}, "limit": 1});
    let second = tenant.page(place.with(merged(filter.clone(), &json!({"cursor": got.next}))));
    let cursor = second.next.clone().expect("more follows");
    let third = format!("/v1/memories?{}&limit=1&tag=t&cursor={cursor}", place.query());
    let third = Page::of(&tenant.client.get(&third));

    let all = tenant.page(place.with(json!({}))).ids();
    assert_eq!([got.ids(), second.ids(), third.ids()].concat(), all);
    assert_eq!(third.next, None);
}

#[test]
fn a_cursor_outlives_the_entry_it_stands_on() {
    let (tenant, place) = three();
    let all = tenant.page(place.with(json!({}))).ids();
    let first = tenant.page(place.with(json!({"limit": 1})));
    tenant.delete(&all[0]).expect(200);

    let rest = tenant.page(place.with(json!({"cursor": first.next})));

    assert_eq!((rest.ids(), rest.total), (all[1..].to_vec(), 2));
}
