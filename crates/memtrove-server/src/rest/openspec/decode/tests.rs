use super::*;
use crate::rest::testing::{client, code, members, memory_with, user};
use memtrove_core::Timestamp;
use memtrove_core::memories::NewMemory;
use serde_json::json;

fn created(body: &Value, caller: &MemoryCaller) -> Result<NewMemory> {
    create(Members::body(body)?, caller)?.add.check(&Rules::default(), caller)
}

fn replaced(stored: &Memory, entry: Value) -> Result<NextEntry> {
    let body = json!({"entry": entry});
    replacement(Members::body(&body)?, stored, &Precondition::default())
}

fn filtered(filters: Value) -> Result<Filter> {
    filter(Some(Members::within(&members(filters), "filters.")))
}

#[test]
fn a_create_is_read_as_an_add() {
    let create = json!({
        "entry": {"id": "ignored", "content": "Anna likes tea", "access_policy": "public",
                  "metadata": {"title": "T", "nonsense": 1, "custom": {"colour": "red", "custom": [1]}}},
        "options": {"layer": {"type": "semantic", "project_id": "p"}}
    });
    let new = created(&create, &client("gateway")).unwrap();
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
    assert_eq!(created(&create, &user("alice")).unwrap().scope.user(), Some("alice"));
    assert_eq!(created(&create, &client("gateway")).unwrap().scope.layer(), Layer::Company);
}

#[test]
fn a_create_that_is_not_right_is_refused() {
    let layer = |layer: Value| json!({"entry": {"content": "x"}, "options": {"layer": layer}});
    let source = |source: Value| json!({"entry": {"content": "x", "source": source}});
    let custom = |key: &str| json!({"entry": {"content": "x", "metadata": {"custom": {(key): "y"}}}});
    for (body, expected) in [
        (json!({}), "INVALID_REQUEST entry"),
        (json!({"entry": {}}), "INVALID_REQUEST content"),
        (json!({"entry": {"content": " "}}), "INVALID_REQUEST content"),
        (layer(json!({"type": "secret"})), "INVALID_REQUEST options.layer.type"),
        (layer(json!({"scope": "planet"})), "INVALID_LAYER"),
        (layer(json!({"user_id": 5})), "INVALID_REQUEST options.layer.user_id"),
        (source(json!({"type": "manual"})), "INVALID_REQUEST entry.source.type"),
        (source(json!({"identifier": "i"})), "INVALID_REQUEST entry.source.type"),
        (source(json!({"type": "dust_ai", "identifier": 5})), "INVALID_REQUEST entry.source.identifier"),
        (custom("source"), "INVALID_REQUEST entry.metadata.custom.source"),
        (custom("title"), "INVALID_REQUEST entry.metadata.custom.title"),
        (custom("tags"), "INVALID_REQUEST entry.metadata.custom.tags"),
    ] {
        assert_eq!(code(created(&body, &client("gateway"))), expected, "{body}");
    }
    let upper = source(json!({"type": "WEB_SCRAPE", "provider_id": "p"}));
    let stored = created(&upper, &client("gateway")).unwrap().metadata;
    assert_eq!(stored["source"], json!({"type": "import", "origin": "web_scrape", "provider_id": "p"}));
}

#[test]
fn a_policy_with_lists_travels_in_the_options() {
    let read = |entry: Value, options: Value, stored: Option<&Memory>| {
        let body = json!({"entry": entry, "options": options});
        let body = Members::body(&body)?;
        policy(body, body.required("entry", body.object("entry", "entry."))?, stored)
    };
    let with_user =
        |policy| AccessPolicy { approved_users: vec!["u".to_owned()], ..AccessPolicy::new(policy) };
    let word = |word: &str| json!({"access_policy": word});
    let lists = json!({"access_policy": {"policy": "restricted", "approved_users": ["u"]}});
    assert_eq!(read(json!({}), json!({}), None).unwrap(), None);
    assert_eq!(read(word("public"), json!({}), None).unwrap(), Some(AccessPolicy::new(Policy::Public)));
    assert_eq!(read(word("public"), lists, None).unwrap(), Some(with_user(Policy::Restricted)));
    let stored = Memory { policy: with_user(Policy::Restricted), ..memory_with(Map::new()) };
    let given = |text: &str| read(word(text), json!({}), Some(&stored)).unwrap();
    assert_eq!(given("Restricted"), Some(with_user(Policy::Restricted)), "given back as it was shown");
    assert_eq!(given("private"), Some(AccessPolicy::new(Policy::Private)));
    assert_eq!(code(read(word("secret"), json!({}), None)), "INVALID_REQUEST accessPolicy.policy");
}

#[test]
fn a_procedural_entry_needs_its_fact() {
    let fact = json!({"fact_type": "t", "subject": "s", "predicate": "p", "object": "o"});
    let create = |custom: Value| {
        let body = json!({"entry": {"content": "s p o", "metadata": {"custom": custom}},
                          "options": {"layer": {"type": "procedural", "user_id": "u"}}});
        created(&body, &client("gateway"))
    };
    let new = create(json!({"fact": fact, "colour": "red"})).unwrap();
    assert_eq!(new.fact.as_ref().map(|fact| (fact.fact_type.as_str(), fact.confidence)), Some(("t", 1.0)));
    assert_eq!(Value::Object(new.metadata.clone()), json!({"colour": "red"}));
    assert_eq!(code(create(json!({}))), "INVALID_REQUEST fact");
    assert_eq!(code(create(json!({"fact": "s p o"}))), "INVALID_REQUEST fact");
    assert_eq!(code(create(json!({"fact": {"subject": "s"}}))), "INVALID_REQUEST fact.factType");

    let own = members(json!({"fact": "of the caller's own", "title": "T"}));
    let stored = Memory { fact: new.fact, kind: Kind::Procedural, ..memory_with(own) };
    let replace =
        |custom: Value| match replaced(&stored, json!({"content": "s p q", "metadata": {"custom": custom}}))?
        {
            NextEntry::Fact(change) => change.apply(&stored, Timestamp::from_micros(1), &Rules::default()),
            NextEntry::Text(with) => panic!("{with:?}"),
        };
    let after = replace(json!({"fact": {"object": "q"}, "colour": "red"})).unwrap().memory;
    assert_eq!(after.fact.map(|fact| (fact.subject, fact.object)), Some(("s".to_owned(), "q".to_owned())));
    assert_eq!(Value::Object(after.metadata), json!({"fact": "of the caller's own", "colour": "red"}));
    assert_eq!(code(replace(json!({}))), "INVALID_REQUEST entry.metadata.custom.fact");
}

#[test]
fn a_replacement_has_what_it_says_and_nothing_else() {
    let stored = memory_with(members(json!({"title": "T", "colour": "red", "source": {"type": "manual"}})));
    let said = json!({"content": "new", "metadata": {"custom": {"size": 3}}});
    let NextEntry::Text(with) = replaced(&stored, said).unwrap() else { panic!("no fact") };
    assert_eq!((with.content.as_str(), with.policy), ("new", None));
    assert_eq!(Value::Object(with.metadata.as_map().clone()), json!({"size": 3}));
    assert_eq!(code(replaced(&stored, json!({"metadata": {}}))), "INVALID_REQUEST entry.content");
}

#[test]
fn types_are_words_in_a_list_each_once() {
    let read = |layer: Value| {
        reach(Some(Members::within(&members(layer), "layer.")), &Rules::default(), &user("alice"))
    };
    let asked = read(json!({"types": ["user", "USER", "archival"]})).unwrap();
    assert_eq!(asked.types(), [Type::User, Type::Archival]);
    for wrong in
        [json!({"types": []}), json!({"types": ["team"]}), json!({"types": "user"}), json!({"types": [1]})]
    {
        assert_eq!(code(read(wrong.clone())), "INVALID_REQUEST layer.types", "{wrong}");
    }
}

#[test]
fn filters_hold_all_together() {
    let entry = memory_with(members(json!({
        "tags": ["a"], "author": "ann", "rank": 2, "source": {"type": "import", "origin": "web_scrape"}
    })));
    let at = entry.created_at.to_string();
    for (filters, expected) in [
        (json!({}), true),
        (json!({"source_type": "Web_Scrape"}), true),
        (json!({"source_type": "api_import"}), false),
        (json!({"access_policy": "private", "tags": ["b", "a"], "author": "ann"}), true),
        (json!({"access_policy": "public"}), false),
        (json!({"author": "bob"}), false),
        (json!({"created_after": at, "created_before": at}), true),
        (json!({"created_after": "2000-01-01T00:00:00Z"}), false),
        (json!({"custom_filters": {"rank": {"$gte": 2}}}), true),
        (json!({"custom_filters": {"rank": {"$gt": 2}}}), false),
    ] {
        assert_eq!(filtered(filters.clone()).unwrap().matches(&entry), expected, "{filters}");
    }
}

#[test]
fn a_filter_that_is_not_known_is_refused() {
    for (wrong, field) in [
        (json!({"colour": "red"}), "filters.colour"),
        (json!({"source_type": "manual"}), "filters.source_type"),
        (json!({"access_policy": "secret"}), "filters.access_policy"),
        (json!({"created_after": "yesterday"}), "filters.created_after"),
        (json!({"tags": "a"}), "filters.tags"),
        (json!({"author": "ann", "custom_filters": {"author": "bob"}}), "filters.author"),
        (json!({"custom_filters": {"rank": {"$near": 2}}}), "filter.custom.rank.$near"),
    ] {
        assert_eq!(code(filtered(wrong)), format!("INVALID_REQUEST {field}"));
    }
}
