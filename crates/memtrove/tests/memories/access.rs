//! Access policies: a second gate behind the scope, in every way of looking at an entry.

use crate::support::*;

/// Everything through which an entry of a project could be seen.
#[derive(Debug, PartialEq)]
struct Visible {
    read: bool,
    listed: usize,
    found: u64,
    facts: u64,
}

const ALL: Visible = Visible { read: true, listed: 2, found: 2, facts: 1 };
const NONE: Visible = Visible { read: false, listed: 0, found: 0, facts: 0 };

/// A note and a fact in a project, written by alice under one policy.
struct Guarded {
    tenant: Tenant,
    note: String,
}

impl Guarded {
    fn by(policy: Value) -> Self {
        let tenant = Tenant::fresh();
        let alice = tenant.as_user("alice");
        let place = Place::project("p");
        let note = alice.say_with(&place, json!({"content": "guarded", "accessPolicy": policy}));
        let fact = json!({"factType": "t", "subject": "s", "predicate": "p", "object": "o"});
        alice.added(place.with(json!({"kind": "procedural", "fact": fact, "accessPolicy": policy})));
        Self { tenant, note }
    }

    /// What this caller sees when its lists and searches name these further identifiers.
    #[track_caller]
    fn seen(&self, caller: &Tenant, further: Value) -> Visible {
        let identifiers = merged(json!({"projectId": "p"}), &further);
        let page = caller.page(json!({"layer": "project", "identifiers": identifiers}));
        assert_eq!(page.entries.len(), page.total, "counts tell no more than lists");
        let search =
            json!({"query": "guarded", "layers": ["project"], "identifiers": identifiers, "threshold": 0});
        let search = caller.search(search).expect(200).json;
        assert_eq!(search["totalCount"], list(&search["results"]).len(), "counts tell no more than searches");
        let facts = caller.facts(json!({"layers": ["project"], "identifiers": identifiers})).expect(200).json;
        assert_eq!(facts["totalCount"], list(&facts["facts"]).len(), "counts tell no more than facts");
        let team = further.get("teamId").map(|team| format!("?teamId={}", text(team))).unwrap_or_default();
        let answer = caller.get(&format!("{}{team}", self.note));
        let read = match answer.status {
            200 => true,
            _ => answer.not_found().status == 200,
        };
        Visible {
            read,
            listed: page.total,
            found: search["totalCount"].as_u64().unwrap(),
            facts: facts["totalCount"].as_u64().unwrap(),
        }
    }

    /// What a user with a credential of its own sees.
    #[track_caller]
    fn seen_by(&self, user: &str) -> Visible {
        let own = self.seen(&self.tenant.as_user(user), json!({}));
        let named = self.seen(&self.tenant.as_user(user), json!({"userId": user}));
        assert_eq!(own, named, "naming oneself changes nothing");
        let asserted = self.seen(&self.tenant.on_behalf_of(user), json!({}));
        assert_eq!(own, asserted, "an asserted user sees what the user sees");
        own
    }
}

#[test]
fn private_is_for_the_creator() {
    let guarded = Guarded::by(json!({"policy": "private"}));
    assert_eq!(guarded.seen_by("alice"), ALL);
    assert_eq!(guarded.seen_by("bob"), NONE);
    assert_eq!(guarded.seen_by("Alice"), NONE);
    let named = guarded.seen(&guarded.tenant, json!({"userId": "bob"}));
    assert_eq!(Visible { read: named.read, ..NONE }, named, "a trusted client for bob finds nothing");
}

#[test]
fn restricted_is_for_the_creator_and_those_it_approved() {
    let guarded = Guarded::by(json!({"policy": "restricted", "approvedUsers": ["bob", "dora"]}));
    assert_eq!(guarded.seen_by("alice"), ALL);
    assert_eq!(guarded.seen_by("bob"), ALL);
    assert_eq!(guarded.seen_by("dora"), ALL);
    assert_eq!(guarded.seen_by("carl"), NONE);
    assert_eq!(guarded.seen_by("BOB"), NONE);
    let nobody = Guarded::by(json!({"policy": "restricted"}));
    assert_eq!(nobody.seen_by("alice"), ALL);
    assert_eq!(nobody.seen_by("bob"), NONE);
}

#[test]
fn shared_is_for_the_teams_it_names() {
    let guarded = Guarded::by(json!({"policy": "shared", "allowedTeams": ["blue", "red"]}));
    let bob = guarded.tenant.as_user("bob");
    assert_eq!(guarded.seen(&bob, json!({"teamId": "blue"})), ALL);
    assert_eq!(guarded.seen(&bob, json!({"teamId": "red"})), ALL);
    assert_eq!(guarded.seen(&bob, json!({"teamId": "Blue"})), NONE);
    assert_eq!(guarded.seen(&bob, json!({"teamId": "green"})), NONE);
    assert_eq!(guarded.seen(&bob, json!({})), NONE);
    let everybody = Guarded::by(json!({"policy": "shared", "allowedTeams": []}));
    assert_eq!(everybody.seen_by("bob"), ALL);
}

#[test]
fn organization_and_public_are_for_everybody_with_the_scope() {
    for policy in ["organization", "public"] {
        let guarded = Guarded::by(json!({"policy": policy}));
        for user in ["alice", "bob"] {
            assert_eq!(guarded.seen_by(user), ALL, "{policy}");
        }
        assert_eq!(guarded.seen(&guarded.tenant, json!({})), ALL, "{policy}");
        // Never a widening: the scope is still asked for.
        let elsewhere = guarded.tenant.page(Place::project("q").with(json!({})));
        assert_eq!(elsewhere.total, 0);
        Tenant::fresh().get(&guarded.note).not_found();
    }
}

#[test]
fn a_public_personal_entry_stays_personal() {
    let tenant = Tenant::fresh();
    for place in [Place::user("alice"), Place::session("alice", "s"), Place::agent("a", "alice")] {
        let body = json!({"content": "mine", "accessPolicy": {"policy": "public"}});
        let id = tenant.as_user("alice").say_with(&place, body);
        tenant.as_user("alice").entry(&id);
        tenant.as_user("bob").get(&id).not_found();
        tenant.as_user("bob").list(place.with(json!({}))).refused(403, "FORBIDDEN");
    }
}

#[test]
fn a_trusted_client_without_a_user_reads_by_id_and_finds_what_has_no_owner() {
    for policy in [json!({"policy": "private"}), json!({"policy": "restricted", "approvedUsers": ["bob"]})] {
        let guarded = Guarded::by(policy.clone());
        assert_eq!(guarded.seen(&guarded.tenant, json!({})), Visible { read: true, ..NONE }, "{policy}");
        let place = Place::project("p");
        let own =
            guarded.tenant.say_with(&place, json!({"content": "the agent's own", "accessPolicy": policy}));
        assert_eq!(guarded.tenant.page(place.with(json!({}))).ids(), [own.as_str()], "{policy}");
        let found = guarded.tenant.found_ids(place.everything(json!({})));
        assert_eq!(found, [own.as_str()], "{policy}");
        assert_eq!(guarded.tenant.entry(&own)["createdBy"], json!({"clientId": AGENT}));
        assert_eq!(guarded.tenant.changed(&guarded.note, json!({"metadata": {"seen": true}}))["version"], 2);
    }
}

#[test]
fn who_may_not_see_may_not_change_or_delete() {
    let guarded = Guarded::by(json!({"policy": "private"}));
    let (alice, bob) = (guarded.tenant.as_user("alice"), guarded.tenant.as_user("bob"));
    let note = &guarded.note;
    bob.change(note, json!({"content": "taken"})).not_found();
    bob.with_header("if-match", "\"v9\"").change(note, json!({"content": "taken"})).not_found();
    assert_eq!(bob.delete(note).expect(200).json["deleted"], false);
    assert_eq!(bob.with_header("if-match", "\"v9\"").delete(note).expect(200).json["deleted"], false);
    for verb in ["archive", "restore"] {
        bob.client.post(&format!("/v1/memories/{note}/{verb}"), json!({})).not_found();
    }
    let answer = bob.client.post("/v1/memories:bulkDelete", json!({"ids": [note]})).expect(200);
    assert_eq!(answer.json["deleted"], 0);
    assert_eq!(alice.entry(note)["version"], 1);
    // The creator opens it; from then on bob may do what everybody in the project may.
    alice.changed(note, json!({"accessPolicy": {"policy": "organization"}}));
    assert_eq!(bob.changed(note, json!({"content": "agreed"}))["version"], 3);
    alice.changed(note, json!({"accessPolicy": {"policy": "private"}}));
    bob.get(note).not_found();
}

/// What one cannot see takes part in nothing: it beats, hides and shadows nobody.
#[test]
fn what_is_hidden_hides_nothing_else() {
    let tenant = Tenant::fresh();
    let (alice, bob) = (tenant.as_user("alice"), tenant.as_user("bob"));
    let place = Place::project("p");
    let private = json!({"policy": "private"});
    let said = |caller: &Tenant, content: &str, policy: &Value| {
        let metadata = json!({"conflictKey": "indent"});
        caller.say_with(&place, json!({"content": content, "metadata": metadata, "accessPolicy": policy}))
    };
    let open = json!({"policy": "organization"});
    let visible = said(&bob, "use tabs", &open);
    // Newer, so it would win the key; equal, so it would be the one that is kept.
    said(&alice, "use tabs", &private);
    let search = json!({"query": "use tabs", "identifiers": place.identifiers, "threshold": 0, "includeOverridden": true});
    let results = bob.results(search);
    assert_eq!(results.len(), 1);
    assert_eq!(id_of(&results[0]["memory"]), visible);
    assert!(results[0]["overriddenBy"].is_null(), "{results:?}");

    let fact = |caller: &Tenant, object: &str, confidence: f64, policy: &Value| {
        let fact = json!({"factType": "t", "subject": "s", "predicate": "p", "object": object, "confidence": confidence});
        caller.added(place.with(json!({"kind": "procedural", "fact": fact, "accessPolicy": policy})));
    };
    fact(&bob, "open", 0.5, &open);
    fact(&alice, "hidden", 0.9, &private);
    let resolved = json!({"identifiers": place.identifiers, "resolve": true});
    let objects = |caller: &Tenant| {
        let answer = caller.facts(resolved.clone()).expect(200);
        list(&answer.json["facts"]).iter().map(|fact| text(&fact["object"])).collect::<Vec<_>>()
    };
    assert_eq!(objects(&bob), ["open"]);
    assert_eq!(objects(&alice), ["hidden"]);
}

#[test]
fn stating_what_somebody_else_hides_shows_and_changes_nothing_of_it() {
    let tenant = Tenant::fresh();
    let (alice, bob) = (tenant.as_user("alice"), tenant.as_user("bob"));
    let place = Place::project("p");
    let fact = json!({"factType": "t", "subject": "s", "predicate": "p", "object": "o"});
    let body = json!({"kind": "procedural", "fact": fact, "accessPolicy": {"policy": "private"}, "metadata": {"secret": 1}});
    let hers = alice.added(place.with(body));

    let body =
        |fact: &Value| place.with(merged(fact.clone(), &json!({"confidence": 0.1, "metadata": {"his": 1}})));
    let answer = bob.fact(body(&fact));

    assert!(!answer.text.contains("secret") && !answer.text.contains(&id_of(&hers)), "{}", answer.describe());
    assert_eq!(alice.entry(&id_of(&hers)), hers);
    let never_said = bob.fact(body(&merged(fact, &json!({"object": "never said"}))));
    assert_eq!(
        answer.status,
        never_said.status,
        "the answer tells that somebody said so: {}",
        answer.describe()
    );
}

#[test]
fn the_creator_is_shown_to_those_who_may_know() {
    let project = Place::project(&fresh_name("project"));
    let (alice, bob) = (SERVER.someone("alice"), SERVER.someone("bob"));
    let default = Tenant::of(&SERVER, "default");
    let (hers, his) = (default.seen_by(&alice), default.seen_by(&bob));
    let admin = default.seen_by(&SERVER.as_user("admin"));
    let agent = default.seen_by(&SERVER.anonymous().with_key(AGENT));

    let entry = hers.added(project.with(json!({"content": "a"})));
    let id = id_of(&entry);
    assert_eq!(entry["createdBy"], json!({"userId": alice.user()}));
    for able in [&hers, &admin, &agent] {
        assert_eq!(able.entry(&id)["createdBy"]["userId"], alice.user());
        assert_eq!(able.page(project.with(json!({}))).entries[0]["createdBy"]["userId"], alice.user());
    }
    assert!(!names(&his.entry(&id)).contains("createdBy"), "{}", his.entry(&id));
    assert!(!names(&his.page(project.with(json!({}))).entries[0]).contains("createdBy"));
    assert!(!names(&his.results(project.everything(json!({})))[0]["memory"]).contains("createdBy"));

    let both = default.seen_by(&alice.with_key(AGENT)).added(project.with(json!({"content": "b"})));
    assert_eq!(both["createdBy"], json!({"userId": alice.user(), "clientId": AGENT}));
    let named = json!({"projectId": project.identifiers["projectId"], "userId": bob.user()});
    let asserted = agent.added(json!({"content": "c", "layer": "project", "identifiers": named}));
    assert_eq!(asserted["createdBy"], json!({"userId": bob.user(), "clientId": AGENT}));
    assert_eq!(asserted["identifiers"], project.identifiers);
}
