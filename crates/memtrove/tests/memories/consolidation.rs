//! Consolidation: entries of one scope that say the same become one, and nothing is lost.

use crate::instants::*;
use crate::lifecycle::create_without_embedding;
use crate::support::*;
use std::collections::{BTreeMap, BTreeSet};

/// Sends a request to consolidate this scope.
#[track_caller]
fn ask(tenant: &Tenant, place: &Place, members: Value) -> Answer {
    tenant.client.post("/v1/memories:consolidate", place.with(members))
}

/// Consolidates; each survivor with those it absorbed.
#[track_caller]
fn consolidate(tenant: &Tenant, place: &Place, members: Value) -> BTreeMap<String, BTreeSet<String>> {
    let answer = ask(tenant, place, members).expect(200);
    assert_members(&answer.json, &["groups", "merged", "examined"]);
    let groups: BTreeMap<_, BTreeSet<_>> = list(&answer.json["groups"])
        .iter()
        .map(|group| {
            assert_members(group, &["survivorId", "absorbedIds"]);
            (text(&group["survivorId"]), list(&group["absorbedIds"]).iter().map(text).collect())
        })
        .collect();
    let absorbed: usize = groups.values().map(BTreeSet::len).sum();
    assert_eq!(answer.json["merged"], absorbed, "{}", answer.describe());
    groups
}

/// One group.
fn group(survivor: &str, absorbed: &[&String]) -> BTreeMap<String, BTreeSet<String>> {
    [(survivor.to_owned(), absorbed.iter().map(|id| (*id).clone()).collect())].into()
}

fn nothing() -> BTreeMap<String, BTreeSet<String>> {
    BTreeMap::new()
}

#[test]
fn duplicates_become_one_that_keeps_what_all_of_them_knew() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let says = |content: &str, metadata: Value| {
        tenant.say_with(&place, json!({"content": content, "metadata": metadata}))
    };
    let oldest = says(
        "Deploys happen on Tuesdays",
        json!({"tags": ["ops", "week"], "importance": 0.9, "confidence": 0.2, "who": "oldest", "first": 1}),
    );
    let middle = says(
        "deploys happen  on tuesdays.",
        json!({"tags": ["week", "release"], "confidence": 0.8, "who": "middle", "second": 2}),
    );
    let newest = says(
        "Deploys happen on Tuesdays!",
        json!({"tags": ["new", "ops"], "importance": 0.3, "who": "newest"}),
    );
    let other = says("My dog is called Rex", json!({"tags": ["pets"]}));
    let before: BTreeMap<_, _> =
        [&oldest, &middle, &newest, &other].map(|id| (id.clone(), tenant.entry(id))).into();

    let rehearsal = consolidate(&tenant, &place, json!({"dryRun": true}));
    assert_eq!(rehearsal, group(&oldest, &[&middle, &newest]), "the most important one leads");
    for (id, entry) in &before {
        assert_eq!(&tenant.entry(id), entry, "a rehearsal changes nothing");
    }

    let groups = consolidate(&tenant, &place, json!({}));

    assert_eq!(groups, rehearsal);
    let survivor = tenant.entry(&oldest);
    assert_eq!(survivor["content"], "Deploys happen on Tuesdays");
    assert_eq!(
        survivor["metadata"],
        json!({
            "tags": ["ops", "week", "release", "new"], "importance": 0.9, "confidence": 0.8,
            "who": "oldest", "first": 1, "second": 2,
        })
    );
    assert_eq!(
        sorted(list(&survivor["lineage"]["consolidatedFrom"]).iter().map(text)),
        sorted([middle.clone(), newest.clone()])
    );
    assert_eq!((&survivor["version"], &survivor["state"]), (&json!(2), &json!("active")));
    assert_eq!(survivor["createdAt"], before[&oldest]["createdAt"]);
    for id in [&middle, &newest] {
        let absorbed = tenant.entry(id);
        assert_eq!(
            (&absorbed["state"], &absorbed["originKind"]),
            (&json!("archived"), &json!("user_personal"))
        );
        assert_eq!(absorbed["lineage"]["supersededBy"], oldest);
        for member in ["content", "metadata"] {
            assert_eq!(absorbed[member], before[id][member], "nothing is lost");
        }
    }
    assert_eq!(tenant.entry(&other), before[&other]);
    assert_eq!(tenant.page(place.with(json!({}))).total, 2);
}

#[test]
fn running_it_again_changes_nothing() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    for n in 0..12 {
        tenant.say_with(&place, json!({"content": format!("Note of the {} kind", ["first", "second", "third"][n % 3]), "metadata": {"tags": [format!("t{n}")]}}));
    }
    let everything =
        || tenant.all(place.with(json!({"includeArchived": true}))).iter().map(settled).collect::<Vec<_>>();
    assert_eq!(consolidate(&tenant, &place, json!({})).len(), 3);
    let once = everything();
    for _ in 0..2 {
        assert_eq!(consolidate(&tenant, &place, json!({})), nothing());
    }
    assert_eq!(everything(), once);
}

#[test]
fn without_importance_the_latest_change_leads() {
    let tenant = Tenant::fresh();
    let place = Place::project("p");
    let ids: Vec<String> = (0..3).map(|_| tenant.say(&place, "Use tabs")).collect();
    tenant.changed(&ids[1], json!({"metadata": {"touched": true}}));
    assert_eq!(consolidate(&tenant, &place, json!({})), group(&ids[1], &[&ids[0], &ids[2]]));
}

#[test]
fn what_contradicts_is_never_merged_however_alike() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let pairs = [
        ("The timeout of the gateway is 30 seconds", "The timeout of the gateway is 60 seconds"),
        ("Always use MySQL for the new services", "Never use MySQL for the new services"),
        ("You may deploy on Fridays", "You may not deploy on Fridays"),
        ("Alice reports to Bob", "Bob reports to Alice"),
        ("The service can restart itself", "The service can't restart itself"),
        ("Deploy with a review", "Deploy without a review"),
    ];
    for (one, two) in pairs {
        for content in [one, two] {
            tenant.say(&place, content);
        }
    }
    assert_eq!(consolidate(&tenant, &place, json!({})), nothing());
    // Even where everything that has no veto is close enough.
    let groups = consolidate(&tenant, &place, json!({"similarityThreshold": 0.0, "dryRun": true}));
    let content = |id: &String| text(&tenant.entry(id)["content"]);
    for (survivor, absorbed) in groups {
        let leader = content(&survivor);
        for one in absorbed.iter().map(content) {
            let alike = pairs.iter().any(|(a, b)| (*a == leader && *b == one) || (*b == leader && *a == one));
            assert!(!alike, "{leader:?} absorbed {one:?}");
        }
    }
}

#[test]
fn only_entries_of_one_kind_and_one_scope_meet() {
    let tenant = Tenant::fresh();
    let place = Place::session("u", "s");
    let says = |place: &Place, kind: &str| {
        tenant.say_with(place, json!({"content": "the same words", "kind": kind}))
    };
    let kinds = ["session", "episodic", "semantic"];
    let here: Vec<[String; 2]> = kinds.iter().map(|kind| [says(&place, kind), says(&place, kind)]).collect();
    let elsewhere = [
        says(&Place::session("u", "t"), "session"),
        says(&Place::session("v", "s"), "session"),
        says(&Place::user("u"), "semantic"),
    ];
    let expected = here.iter().map(|[one, two]| (two.clone(), [one.clone()].into())).collect();

    assert_eq!(consolidate(&tenant, &place, json!({})), expected);

    for id in elsewhere {
        assert_eq!(tenant.entry(&id)["version"], 1);
    }
    let place = Place::user("u");
    let personal = [says(&place, "user_personal"), says(&place, "user_personal")];
    assert_eq!(consolidate(&tenant, &place, json!({})), group(&personal[1], &[&personal[0]]));
}

#[test]
fn pointers_facts_scratch_and_what_is_not_alive_take_no_part() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let content = "the same words";
    let pointer = json!({"sourceType": "adr", "sourceId": "a", "contentHash": "sha256:0", "syncedAt": "2026-01-01T00:00:00Z"});
    for _ in 0..2 {
        tenant.say_with(&place, json!({"content": content, "kind": "working"}));
        tenant.say_with(&place, json!({"content": content, "kind": "archival"}));
        tenant.say_with(
            &place,
            json!({"content": content, "kind": "semantic", "metadata": {"knowledgePointer": pointer}}),
        );
        create_without_embedding(&tenant, "u", content);
        let object = fresh_name("object");
        tenant.stated(
            &place,
            json!({"factType": "t", "subject": "s", "predicate": "p", "object": object, "content": content}),
        );
    }
    let answer = ask(&tenant, &place, json!({})).expect(200);
    assert_eq!(answer.json, json!({"groups": [], "merged": 0, "examined": 0}));
    tenant.say(&place, content);
    let answer = ask(&tenant, &place, json!({})).expect(200);
    assert_eq!(answer.json, json!({"groups": [], "merged": 0, "examined": 1}));
}

#[test]
fn the_absorbed_can_be_restored() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let (one, two) = (tenant.say(&place, "the same words"), tenant.say(&place, "The same words."));
    assert_eq!(consolidate(&tenant, &place, json!({})), group(&two, &[&one]));

    let restored = tenant.client.post_nothing(&format!("/v1/memories/{one}/restore")).expect(200).json;

    assert_eq!(restored["memory"]["content"], "the same words");
    assert_eq!(
        (&restored["memory"]["state"], &restored["memory"]["kind"]),
        (&json!("active"), &json!("user_personal"))
    );
    assert_eq!(sorted(tenant.all(place.with(json!({}))).iter().map(id_of)), sorted([one, two]));
}

#[test]
fn what_is_out_of_range_is_refused() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    for threshold in [json!(1.1), json!(-0.1), json!("0.9")] {
        ask(&tenant, &place, json!({"similarityThreshold": threshold})).invalid("similarityThreshold");
    }
    ask(&tenant, &place, json!({"dryRun": "yes"})).invalid("dryRun");
    ask(&tenant, &place, json!({"layer": "galaxy"})).refused(400, "INVALID_LAYER");
    ask(&tenant, &place, json!({"layer": "session"})).refused(400, "MISSING_IDENTIFIER");
    ask(&tenant.as_user("v"), &place, json!({})).refused(403, "FORBIDDEN");
    tenant
        .client
        .post("/v1/memories:consolidate", json!({"identifiers": {"userId": "u"}}))
        .refused(400, "INVALID_LAYER");
}

/// An entry as the model below knows it.
struct Known {
    id: String,
    content: String,
    vector: Vec<f64>,
    importance: f64,
    updated_at: i64,
}

/// The raw cosine: vectors have unit length.
fn cosine(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Whether two texts of plain words have the same words in another order.
fn reordered(a: &str, b: &str) -> bool {
    let (a, b): (Vec<&str>, Vec<&str>) = (a.split(' ').collect(), b.split(' ').collect());
    let longer = a.len().max(b.len()) as f64;
    let mut left = b.clone();
    let overlap = a
        .iter()
        .filter(|word| left.iter().position(|w| w == *word).map(|at| left.remove(at)).is_some())
        .count();
    let mut lengths = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, word) in a.iter().enumerate() {
        for (j, other) in b.iter().enumerate() {
            lengths[i + 1][j + 1] =
                if word == other { lengths[i][j] + 1 } else { lengths[i][j + 1].max(lengths[i + 1][j]) };
        }
    }
    overlap as f64 >= 0.8 * longer && f64::from(lengths[a.len()][b.len()]) < 0.8 * longer
}

#[test]
fn groups_are_those_of_the_plain_algorithm() {
    let words = ["harbour", "ship", "sails", "crew", "storm", "captain", "anchor", "cargo"];
    let mut dice = Dice(0x5eed);
    for round in 0..6 {
        let tenant = Tenant::fresh();
        let place = Place::agent("a", "u");
        let bodies: Vec<Value> = (0..40)
            .map(|_| {
                let content: Vec<&str> = (0..2 + dice.roll(4)).map(|_| *dice.pick(&words)).collect();
                let importance = json!(dice.roll(3) as f64 / 4.0);
                place.with(json!({"content": content.join(" "), "metadata": {"importance": importance}}))
            })
            .collect();
        tenant.add_all(bodies);
        let mut known: Vec<Known> = tenant
            .all(place.with(json!({"includeEmbedding": true})))
            .iter()
            .map(|entry| Known {
                id: id_of(entry),
                content: text(&entry["content"]),
                vector: list(&entry["embedding"]).iter().map(number).collect(),
                importance: number(&entry["metadata"]["importance"]),
                updated_at: instant(&entry["updatedAt"]).as_micros(),
            })
            .collect();
        known.sort_by(|a, b| {
            b.importance.total_cmp(&a.importance).then(b.updated_at.cmp(&a.updated_at)).then(b.id.cmp(&a.id))
        });
        // A threshold that no pair is so close to that the last bit decides.
        let pairs = || known.iter().flat_map(|a| known.iter().map(|b| cosine(&a.vector, &b.vector)));
        let threshold = (0..)
            .map(|n| 0.6 + 0.05 * f64::from(round) + 1e-4 * f64::from(n))
            .find(|threshold| pairs().all(|cosine| (cosine - threshold).abs() > 1e-5))
            .expect("a threshold");
        let mut expected = nothing();
        let mut assigned = BTreeSet::new();
        for leader in &known {
            if !assigned.insert(&leader.id) {
                continue;
            }
            for one in &known {
                let same = leader.content == one.content
                    || (cosine(&leader.vector, &one.vector) >= threshold
                        && !reordered(&leader.content, &one.content));
                if same && assigned.insert(&one.id) {
                    expected.entry(leader.id.clone()).or_default().insert(one.id.clone());
                }
            }
        }
        let members = json!({"similarityThreshold": threshold});
        assert_eq!(consolidate(&tenant, &place, members.clone()), expected, "threshold {threshold}");
        assert_eq!(consolidate(&tenant, &place, members), nothing());
    }
}

#[test]
fn a_scope_that_grows_too_large_is_consolidated_by_itself() {
    let server = server_with("[memories.consolidation]\nenabled = true\nmax_memories_before_trigger = 5\n");
    let tenant = Tenant::of(&server, "acme");
    let (target, project) = (Place::user("u"), Place::project("p"));
    for place in [&target, &project] {
        for _ in 0..5 {
            tenant.say(place, "the same words");
        }
    }
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(tenant.page(target.with(json!({}))).total, 5, "as many as there may be");

    for place in [&target, &project] {
        tenant.say(place, "the same words");
    }

    eventually("consolidation", || (tenant.page(target.with(json!({}))).total == 1).then_some(()));
    assert_eq!(tenant.page(target.with(json!({"includeArchived": true}))).total, 6);
    assert_eq!(tenant.page(project.with(json!({}))).total, 6, "projects are no target");
}

#[test]
fn consolidation_beside_changes_loses_neither() {
    let tenant = Tenant::fresh();
    let place = Place::user("u");
    let ids: Vec<String> = (0..8).map(|_| tenant.say(&place, "the same words")).collect();

    at_once(4, |n| match n {
        0 | 1 => _ = ask(&tenant, &place, json!({})).expect(200),
        _ => {
            for id in &ids {
                tenant.change(id, json!({"metadata": {format!("by{n}"): true}})).expect(200);
            }
        }
    });

    consolidate(&tenant, &place, json!({}));
    let live = tenant.all(place.with(json!({})));
    assert_eq!(live.len(), 1, "{live:?}");
    for id in &ids {
        let metadata = &tenant.entry(id)["metadata"];
        assert_eq!((&metadata["by2"], &metadata["by3"]), (&json!(true), &json!(true)), "no change was lost");
    }
}
