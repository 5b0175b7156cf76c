use super::*;
use crate::Timestamp;
use crate::memories::requests::{code, gateway, user};
use crate::memories::testing::{members, memory, scope};
use crate::memories::{AddMemory, Change, FactChange, Layer, Policy, Rules, State};

fn tenant() -> Tenant {
    Tenant::listed("acme".to_owned())
}

fn body(value: &Value) -> Members<'_> {
    Members::body(value).unwrap()
}

fn with(metadata: Value) -> Memory {
    Memory { metadata: members(metadata), ..memory(1, "text") }
}

/// Where a create of a user writes, given the layer object of its options.
fn target(layer: Value, user: Option<&str>) -> Result<(Layer, Kind)> {
    let layer = layer.as_object().map(|layer| Members::within(layer, "options.layer."));
    Target::read(layer, user, &tenant()).map(|target| (target.layer, target.kind))
}

#[test]
fn sources_of_the_other_surface_are_shown_by_their_type() {
    for (source, expected) in [
        (json!(null), "user_upload"),
        (json!({"type": "manual"}), "user_upload"),
        (json!({"type": "conversation"}), "agent_generated"),
        (json!({"type": "tool_result"}), "agent_generated"),
        (json!({"type": "knowledge_sync"}), "git_repository"),
        (json!({"type": "import"}), "api_import"),
        (json!({"type": "import", "origin": "dust_ai"}), "dust_ai"),
        (json!({"type": "import", "origin": "somewhere else"}), "api_import"),
    ] {
        let memory = with(if source.is_null() { json!({}) } else { json!({"source": source}) });
        let shown = KnowledgeSource::of(&memory);
        assert_eq!(shown.source_type, expected, "{source}");
        let itself = Some(memory.id.to_string());
        assert_eq!(shown.identifier, itself, "without a reference it is the entry itself");
    }
}

#[test]
fn sources_are_stored_by_the_table() {
    let stored = |source: Value| {
        let body = json!({"entry": {"content": "x", "source": source}});
        add(super::tests::body(&body), None, &tenant()).map(|add| add["metadata"]["source"].clone())
    };
    for (given, kind) in [
        ("user_upload", "import"),
        ("git_repository", "knowledge_sync"),
        ("notebooklm", "import"),
        ("dust_ai", "import"),
        ("perplexity", "import"),
        ("web_scrape", "import"),
        ("api_import", "import"),
        ("agent_generated", "conversation"),
        ("custom_provider", "manual"),
    ] {
        assert!(SOURCE_TYPES.contains(&given));
        let found =
            stored(json!({"type": given.to_uppercase(), "identifier": "i", "provider_id": "p"})).unwrap();
        assert_eq!(found, json!({"type": kind, "origin": given, "reference": "i", "provider_id": "p"}));
    }
    assert_eq!(
        stored(json!({"type": "user_upload"})).unwrap(),
        json!({"type": "import", "origin": "user_upload"})
    );
    assert_eq!(code(stored(json!({"type": "manual"}))), "INVALID_REQUEST entry.source.type");
    assert_eq!(code(stored(json!({"identifier": "i"}))), "INVALID_REQUEST entry.source.type");
    assert_eq!(
        code(stored(json!({"type": "dust_ai", "identifier": 5}))),
        "INVALID_REQUEST entry.source.identifier"
    );
}

#[test]
fn each_type_writes_to_its_place() {
    for (layer, expected) in [
        (
            json!({"type": "working", "user_id": "u", "session_id": "s", "agent_id": "a"}),
            (Layer::Session, Kind::Working),
        ),
        (json!({"type": "working", "user_id": "u", "agent_id": "a"}), (Layer::Agent, Kind::Working)),
        (json!({"type": "working", "user_id": "u"}), (Layer::User, Kind::Working)),
        (
            json!({"type": "session", "user_id": "u", "session_id": "s", "agent_id": "a"}),
            (Layer::Session, Kind::Session),
        ),
        (
            json!({"type": "episodic", "scope": "project", "user_id": "u", "agent_id": "a"}),
            (Layer::Project, Kind::Episodic),
        ),
        (
            json!({"type": "Semantic", "user_id": "u", "agent_id": "a", "session_id": "s"}),
            (Layer::Agent, Kind::Semantic),
        ),
        (json!({"type": "semantic", "user_id": "u", "session_id": "s"}), (Layer::Session, Kind::Semantic)),
        (json!({"type": "procedural", "user_id": "u", "project_id": "p"}), (Layer::User, Kind::Procedural)),
        (json!({"type": "archival", "project_id": "p", "team_id": "t"}), (Layer::Project, Kind::Archival)),
        (json!({"type": "semantic", "team_id": "t", "org_id": "o"}), (Layer::Team, Kind::Semantic)),
        (json!({"type": "semantic", "org_id": "o"}), (Layer::Org, Kind::Semantic)),
        (json!({"type": "semantic"}), (Layer::Company, Kind::Semantic)),
        (json!({"type": "user", "user_id": "u", "agent_id": "a"}), (Layer::User, Kind::UserPersonal)),
        (json!({"type": "organization", "team_id": "t", "org_id": "o"}), (Layer::Team, Kind::Semantic)),
        (json!({"type": "organization", "org_id": "o", "user_id": "u"}), (Layer::Org, Kind::Semantic)),
        (json!({"type": "organization", "project_id": "p"}), (Layer::Company, Kind::Semantic)),
        (json!({"scope": "user", "user_id": "u"}), (Layer::User, Kind::UserPersonal)),
        (json!({"project_id": "p"}), (Layer::Project, Kind::Semantic)),
        (json!(null), (Layer::Company, Kind::Semantic)),
    ] {
        assert_eq!(target(layer.clone(), None).unwrap(), expected, "{layer}");
    }
    assert_eq!(target(json!(null), Some("u")).unwrap(), (Layer::User, Kind::UserPersonal));
    assert_eq!(target(json!({"type": "episodic"}), Some("u")).unwrap(), (Layer::User, Kind::Episodic));
    assert_eq!(code(target(json!({"type": "secret"}), None)), "INVALID_REQUEST options.layer.type");
    assert_eq!(code(target(json!({"scope": "planet"}), None)), "INVALID_LAYER");
    assert_eq!(code(target(json!({"user_id": 5}), None)), "INVALID_REQUEST options.layer.user_id");
}

#[test]
fn a_query_for_a_type_covers_its_kinds_in_its_layers() {
    use Kind::{Archival, Episodic, Procedural, Semantic, Session, UserPersonal, Working};
    let of = |word: &str, layer| kinds(&[Type::parse(word).unwrap()], layer);
    for layer in Layer::ALL {
        let working = if layer.is_personal() { vec![Working] } else { Vec::new() };
        assert_eq!(of("working", layer), working);
        for kind in [Episodic, Semantic, Procedural, Archival] {
            assert_eq!(of(kind.as_str(), layer), [kind]);
        }
        let session = [Working, Session, Episodic, Semantic, Procedural];
        assert_eq!(of("session", layer), if layer == Layer::Session { &session[..] } else { &[] });
        let user = [Episodic, Semantic, Procedural, UserPersonal];
        assert_eq!(of("user", layer), if layer == Layer::User { &user[..] } else { &[] });
        let organization = [Episodic, Semantic, Procedural];
        assert_eq!(of("organization", layer), if layer.is_personal() { &[] } else { &organization[..] });
    }
    assert_eq!(kinds(&[Type::Working, Type::Session], Layer::Agent), [Working]);
    assert_eq!(kinds(&Type::ALL, Layer::User).len(), 6, "everything but what cannot stand there");
}

#[test]
fn each_entry_shows_one_type() {
    let shown = |layer, kind| Type::of(&Memory { scope: scope(layer), kind, ..memory(1, "x") }).as_str();
    for layer in Layer::ALL {
        assert_eq!(shown(layer, Kind::Episodic), "episodic");
        assert_eq!(shown(layer, Kind::Procedural), "procedural");
        let archived =
            Memory { scope: scope(layer), kind: Kind::Archival, state: State::Archived, ..memory(1, "x") };
        assert_eq!(Type::of(&archived).as_str(), "archival");
    }
    assert_eq!(shown(Layer::Session, Kind::Working), "working");
    for (layer, expected) in Layer::ALL.into_iter().zip([
        "semantic",
        "user",
        "session",
        "semantic",
        "organization",
        "organization",
        "organization",
    ]) {
        assert_eq!(shown(layer, Kind::Semantic), expected, "{layer:?}");
    }
}

#[test]
fn a_create_is_read_as_an_add() {
    let create = json!({
        "entry": {"id": "ignored", "content": "Anna likes tea", "access_policy": "public",
                  "metadata": {"title": "T", "nonsense": 1, "custom": {"colour": "red", "custom": [1]}}},
        "options": {"layer": {"type": "semantic", "project_id": "p"}}
    });
    let add = add(body(&create), None, &tenant()).unwrap();
    let new = AddMemory::read(&add, &Rules::default())
        .and_then(|add| add.check(&Rules::default(), &gateway()))
        .unwrap();
    assert_eq!(
        (new.scope.layer(), new.kind, new.content.as_str()),
        (Layer::Project, Kind::Semantic, "Anna likes tea")
    );
    assert_eq!(Value::Object(new.metadata), json!({"title": "T", "colour": "red", "custom": [1]}));
    assert_eq!(new.policy, AccessPolicy::new(Policy::Public));
}

#[test]
fn a_create_without_a_layer_is_for_its_user_else_for_the_company() {
    let create = json!({"entry": {"content": "x"}});
    let read = |caller: &crate::memories::MemoryCaller| {
        let add = add(body(&create), caller.user(), caller.tenant()).unwrap();
        AddMemory::read(&add, &Rules::default()).and_then(|add| add.check(&Rules::default(), caller)).unwrap()
    };
    assert_eq!(read(&user("alice")).scope.user(), Some("alice"));
    assert_eq!(read(&gateway()).scope.layer(), Layer::Company);
}

#[test]
fn a_policy_with_lists_travels_in_the_options() {
    let policy = |entry: Value, options: Value, stored: Option<&Memory>| {
        let body = json!({"entry": entry, "options": options});
        let said = said(super::tests::body(&body), false, stored).unwrap();
        said.get("accessPolicy").cloned()
    };
    let word = |word: &str, users: &[&str]| {
        Some(json!({"policy": word, "approvedUsers": users, "allowedTeams": []}))
    };
    let lists = json!({"access_policy": {"policy": "restricted", "approved_users": ["u"]}});
    assert_eq!(policy(json!({}), json!({}), None), None);
    assert_eq!(policy(json!({"access_policy": "public"}), json!({}), None), word("public", &[]));
    assert_eq!(
        policy(json!({"access_policy": "public"}), lists, None),
        Some(json!({"policy": "restricted", "approvedUsers": ["u"]}))
    );
    let mut stored = memory(1, "x");
    stored.policy =
        AccessPolicy { approved_users: vec!["u".to_owned()], ..AccessPolicy::new(Policy::Restricted) };
    let given = |word: &str| policy(json!({"access_policy": word}), json!({}), Some(&stored));
    assert_eq!(given("Restricted"), word("Restricted", &["u"]), "given back as it was shown");
    assert_eq!(given("private"), word("private", &[]));
}

#[test]
fn what_has_a_place_of_its_own_is_not_custom() {
    for key in ["source", "title", "tags"] {
        let create = json!({"entry": {"content": "x", "metadata": {"custom": {(key): "y"}}}});
        let refused = format!("INVALID_REQUEST entry.metadata.custom.{key}");
        assert_eq!(code(add(body(&create), None, &tenant())), refused);
    }
    assert_eq!(code(add(body(&json!({})), None, &tenant())), "INVALID_REQUEST entry");
}

#[test]
fn a_procedural_entry_needs_its_fact() {
    let fact = json!({"fact_type": "t", "subject": "s", "predicate": "p", "object": "o"});
    let create = |custom: Value| {
        let body = json!({"entry": {"content": "s p o", "metadata": {"custom": custom}},
                          "options": {"layer": {"type": "procedural", "user_id": "u"}}});
        let add = add(super::tests::body(&body), None, &tenant())?;
        AddMemory::read(&add, &Rules::default()).and_then(|add| add.check(&Rules::default(), &gateway()))
    };
    let new = create(json!({"fact": fact, "colour": "red"})).unwrap();
    assert_eq!(new.fact.as_ref().map(|fact| (fact.fact_type.as_str(), fact.confidence)), Some(("t", 1.0)));
    assert_eq!(Value::Object(new.metadata.clone()), json!({"colour": "red"}));
    assert_eq!(code(create(json!({}))), "INVALID_REQUEST fact");
    assert_eq!(code(create(json!({"fact": "s p o"}))), "INVALID_REQUEST fact");

    let stored =
        Memory { fact: new.fact, kind: Kind::Procedural, ..with(json!({"fact": "of the caller's own"})) };
    let replace = |custom: Value| {
        let body = json!({"entry": {"content": "s p q", "metadata": {"custom": custom}}});
        let change = change(super::tests::body(&body), &stored)?;
        let change = FactChange::read(&change, None, &Rules::default())?;
        change.apply(&stored, Timestamp::from_micros(1), &Rules::default()).map(|applied| applied.memory)
    };
    let replaced = replace(json!({"fact": {"object": "q"}, "colour": "red"})).unwrap();
    assert_eq!(replaced.fact.map(|fact| (fact.subject, fact.object)), Some(("s".to_owned(), "q".to_owned())));
    assert_eq!(Value::Object(replaced.metadata), json!({"fact": "of the caller's own", "colour": "red"}));
    assert_eq!(code(replace(json!({}))), "INVALID_REQUEST entry.metadata.custom.fact");
}

/// An entry after a replacement.
fn replaced(stored: &Memory, entry: Value) -> Result<Memory> {
    let body = json!({"entry": entry});
    let change = Change::read(&change(super::tests::body(&body), stored)?, None, &Rules::default())?;
    change.apply(stored, Timestamp::from_micros(9), &Rules::default()).map(|applied| applied.memory)
}

#[test]
fn a_replacement_removes_what_it_does_not_say() {
    let stored = Memory {
        policy: AccessPolicy::new(Policy::Public),
        ..with(json!({"title": "T", "colour": "red", "source": {"type": "manual"}}))
    };
    let after = replaced(&stored, json!({"content": "new", "metadata": {"custom": {"size": 3}}})).unwrap();
    assert_eq!(after.content, "new");
    assert_eq!(Value::Object(after.metadata), json!({"size": 3}));
    assert_eq!(after.policy, AccessPolicy::new(Policy::Private));
    assert_eq!(code(replaced(&stored, json!({"metadata": {}}))), "INVALID_REQUEST entry.content");
}
