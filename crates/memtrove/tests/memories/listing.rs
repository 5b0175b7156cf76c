//! Listing: one order, exact counts, and what narrows a list.

use crate::support::*;

/// The order of every list: when it happened or was written, then the id, the newest first.
#[track_caller]
fn assert_newest_first(entries: &[Value]) {
    let key = |entry: &Value| {
        let at = entry.get("occurredAt").unwrap_or(&entry["createdAt"]);
        (text(at), id_of(entry))
    };
    for pair in entries.windows(2) {
        assert!(key(&pair[0]) > key(&pair[1]), "{} before {}", pair[0], pair[1]);
    }
}

/// Episodes with equal, past and future times between entries without any, some of them in working memory.
fn timeline() -> (Tenant, Place) {
    let (tenant, place) = (Tenant::fresh(), Place::user("u"));
    let mut dice = Dice(0x5EED_0005);
    let mut bodies = Vec::new();
    for n in 0..90 {
        let content = format!("entry {n}");
        let tag = ["red", "green", "blue"][n % 3];
        let mut body = place.with(json!({"content": content, "metadata": {"tags": [tag], "n": n}}));
        if n % 7 == 1 {
            body["kind"] = json!("working");
        }
        if n % 2 == 0 {
            let year = [1970, 2025, 2025, 2090][dice.roll(4)];
            let month = 1 + dice.roll(3);
            body["kind"] = json!("episodic");
            body["occurredAt"] = json!(format!("{year}-0{month}-01T00:00:00Z"));
        }
        bodies.push(body);
    }
    tenant.add_all(bodies);
    (tenant, place)
}

#[test]
fn every_page_size_gives_the_same_list() {
    let (tenant, place) = timeline();
    let all = tenant.all(place.with(json!({"limit": 100})));
    assert_eq!(all.len(), 90);
    assert_newest_first(&all);
    let ids: Vec<String> = all.iter().map(id_of).collect();

    for limit in [1, 7, 30, 45, 89, 90, 91] {
        let mut seen = Vec::new();
        let mut body = place.with(json!({"limit": limit}));
        loop {
            let page = tenant.page(body.clone());
            assert_eq!(page.total, 90, "every page knows the total");
            seen.extend(page.ids());
            // Exactly when nothing follows there is no cursor.
            assert_eq!(page.next.is_none(), seen.len() == 90, "{limit}");
            match page.next {
                Some(cursor) => {
                    assert_eq!(page.entries.len(), limit);
                    body["cursor"] = json!(cursor);
                }
                None => break,
            }
        }
        assert_eq!(seen, ids, "{limit}");
    }
    assert_eq!(tenant.page(place.with(json!({}))).entries.len(), 50, "the default limit");
    let empty = tenant.page(Place::user("nobody").with(json!({})));
    assert_eq!((empty.entries.len(), empty.total, empty.next), (0, 0, None));
}

#[test]
fn what_is_asked_in_the_address_and_in_the_body_is_the_same() {
    let (tenant, place) = timeline();
    for (query, body) in [
        ("", json!({})),
        ("&limit=3", json!({"limit": 3})),
        ("&tag=red", json!({"filter": {"tags": ["red"]}})),
        ("&tag=red&tag=blue", json!({"filter": {"tags": ["red", "blue"]}})),
        ("&kind=episodic", json!({"kinds": ["episodic"]})),
        ("&kind=working&kind=episodic", json!({"kinds": ["working", "episodic"]})),
        (
            "&kind=episodic&kind=user_personal&limit=5",
            json!({"kinds": ["episodic", "user_personal"], "limit": 5}),
        ),
        (
            "&from=2025-01-01T00:00:00Z&to=2025-02-01T00:00:00Z",
            json!({"from": "2025-01-01T00:00:00Z", "to": "2025-02-01T00:00:00Z"}),
        ),
        ("&state=active&includeArchived=true", json!({"state": "active", "includeArchived": true})),
        ("&hasKnowledgePointer=false", json!({"filter": {"hasKnowledgePointer": false}})),
        ("&hasKnowledgePointer=true", json!({"filter": {"hasKnowledgePointer": true}})),
        ("&sourceType=manual", json!({"filter": {"sourceType": "manual"}})),
    ] {
        let got = Page::of(&tenant.client.get(&format!("/v1/memories?{}{query}", place.query())));
        let posted = tenant.page(place.with(body));
        assert_eq!((got.ids(), got.total), (posted.ids(), posted.total), "{query}");
    }
}

#[test]
fn a_time_range_is_inclusive_on_both_sides() {
    let (tenant, place) = timeline();
    let all = tenant.all(place.with(json!({})));
    let at = |entry: &Value| text(entry.get("occurredAt").unwrap_or(&entry["createdAt"]));
    for (from, to) in [
        (Some("2025-01-01T00:00:00Z"), Some("2025-02-01T00:00:00Z")),
        (Some("2025-01-01T00:00:00.000001Z"), Some("2025-02-28T23:59:59.999999Z")),
        (Some("2025-02-01T00:00:00Z"), Some("2025-02-01T00:00:00Z")),
        (Some("2026-01-01T00:00:00Z"), None),
        (None, Some("1970-02-01T00:00:00Z")),
        (Some("2091-01-01T00:00:00Z"), None),
    ] {
        let mut body = place.with(json!({}));
        let padded =
            |time: &str| if time.len() == 20 { time.replace('Z', ".000000Z") } else { time.to_owned() };
        from.into_iter().for_each(|from| body["from"] = json!(from));
        to.into_iter().for_each(|to| body["to"] = json!(to));
        let expected: Vec<String> = all
            .iter()
            .filter(|entry| from.is_none_or(|from| at(entry) >= padded(from)))
            .filter(|entry| to.is_none_or(|to| at(entry) <= padded(to)))
            .map(id_of)
            .collect();
        let listed: Vec<String> = tenant.all(body).iter().map(id_of).collect();
        assert_eq!(listed, expected, "{from:?} {to:?}");
    }
    for (member, value) in
        [("from", json!("yesterday")), ("to", json!(5)), ("from", json!("2026-13-01T00:00:00Z"))]
    {
        let mut body = place.with(json!({}));
        body[member] = value;
        tenant.list(body).invalid(member);
    }
    let backwards = json!({"from": "2026-02-01T00:00:00Z", "to": "2026-01-01T00:00:00Z"});
    tenant.list(place.with(backwards)).refused(400, "INVALID_REQUEST");
}

#[test]
fn states_are_listed_by_name() {
    let tenant = Tenant::fresh();
    let place = Place::project("p");
    let live = tenant.say(&place, "live");
    let cold = tenant.say(&place, "cold");
    tenant.client.post(&format!("/v1/memories/{cold}/archive"), json!({})).expect(200);
    let ids = |members: Value| sorted(tenant.page(place.with(members)).ids());

    assert_eq!(ids(json!({})), [live.as_str()]);
    assert_eq!(ids(json!({"includeArchived": true})), sorted([live.clone(), cold.clone()]));
    assert_eq!(ids(json!({"state": "archived"})), [cold.as_str()]);
    assert_eq!(ids(json!({"state": "active"})), [live.as_str()]);
    assert_eq!(ids(json!({"kinds": ["archival"]})), [cold.as_str()]);
    assert_eq!(ids(json!({"kinds": ["archival", "semantic"]})), sorted([live, cold]));
    assert_eq!(ids(json!({"state": "decayed"})), Vec::<String>::new());
    assert_eq!(ids(json!({"state": "created"})), Vec::<String>::new());
    for wrong in [json!("updated"), json!("deleted"), json!(""), json!(5), json!(["active"])] {
        tenant.list(place.with(json!({"state": wrong}))).invalid("state");
    }
    for wrong in [json!("true"), json!(1), json!([])] {
        tenant.list(place.with(json!({"includeArchived": wrong}))).invalid("includeArchived");
        tenant.list(place.with(json!({"includeEmbedding": wrong}))).invalid("includeEmbedding");
    }
}

#[test]
fn what_comes_and_goes_between_pages_repeats_and_hides_nothing() {
    let tenant = Tenant::fresh();
    let place = Place::project("p");
    let old = tenant.add_all((0..40).map(|n| place.with(json!({"content": format!("old {n}")}))));
    let mut body = place.with(json!({"limit": 6}));
    let mut seen: Vec<String> = Vec::new();
    let mut deleted = Vec::new();
    let mut round = 0;
    loop {
        let page = tenant.page(body.clone());
        seen.extend(page.ids());
        let Some(cursor) = &page.next else { break };
        body["cursor"] = json!(cursor);
        // The entry the cursor stands on goes, one that was seen goes, one that was not seen goes, new ones come.
        let unseen = old.iter().find(|id| !seen.contains(id) && !deleted.contains(*id)).cloned();
        for id in [page.ids().last().cloned(), page.ids().first().cloned(), unseen].into_iter().flatten() {
            tenant.delete(&id).expect(200);
            deleted.push(id);
        }
        tenant.say(&place, &format!("new {round}"));
        let past = json!({"content": format!("older than all {round}"), "kind": "episodic", "occurredAt": "2001-01-01T00:00:00Z"});
        tenant.added(place.with(past));
        round += 1;
    }
    let untouched: Vec<String> = old.iter().filter(|id| !deleted.contains(id)).cloned().collect();
    for id in &untouched {
        assert_eq!(seen.iter().filter(|other| *other == id).count(), 1, "each untouched entry once");
    }
    let mut once = seen.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), seen.len(), "nothing twice");
}
