use super::*;
use crate::identity::Tenant;
use crate::memories::testing::{members, memory, scope};
use crate::memories::{Identifier, Identifiers, Kind, Layer, Memory, State};
use serde_json::{Value, json};

fn with(metadata: Value) -> Memory {
    Memory { metadata: members(metadata), ..memory(1, "text") }
}

/// The identifiers that stand in a layer object.
pub(super) fn identifiers(layer: &Value) -> Identifiers {
    let mut identifiers = Identifiers::default();
    for identifier in Identifier::ALL {
        let name = identifier.as_str().replace("Id", "_id");
        identifiers.set(identifier, &name, layer[&name].as_str().unwrap_or_default()).unwrap();
    }
    identifiers
}

/// Where a create of a user writes, given the layer object of its options.
fn target(layer: Value, user: Option<&str>) -> (Layer, Kind) {
    let given = LayerRequest {
        of: layer["type"].as_str().and_then(Type::parse),
        scope: layer["scope"].as_str().and_then(Layer::parse),
        identifiers: identifiers(&layer),
    };
    let target = Target::new(given, user, &Tenant::listed("acme".to_owned())).unwrap();
    (target.layer, target.kind)
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
    let stored = |source_type, identifier: Option<&str>, further: Value| {
        let identifier = identifier.map(str::to_owned);
        let source = KnowledgeSource { source_type, identifier, further: members(further) };
        source.into_stored(None).map(Value::Object)
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
        let found = stored(given, Some("i"), json!({"provider_id": "p"}));
        let expected = json!({"type": kind, "origin": given, "reference": "i", "provider_id": "p"});
        assert_eq!(found, Some(expected));
    }
    let bare = json!({"type": "import", "origin": "user_upload"});
    assert_eq!(stored("user_upload", None, json!({})), Some(bare));
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
        assert_eq!(target(layer.clone(), None), expected, "{layer}");
    }
    assert_eq!(target(json!(null), Some("u")), (Layer::User, Kind::UserPersonal));
    assert_eq!(target(json!({"type": "episodic"}), Some("u")), (Layer::User, Kind::Episodic));
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
