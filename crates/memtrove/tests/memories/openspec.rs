//! The knowledge protocol: discovery, one entry in two shapes, writing it, and how it refuses.

use crate::instants::*;
use crate::support::*;

pub const KNOWLEDGE: &str = "/openspec/v1/knowledge";

pub const TYPES: [&str; 8] =
    ["working", "session", "episodic", "semantic", "procedural", "user", "organization", "archival"];

/// The sources of the protocol with what they are called in `/v1`.
const SOURCES: [(&str, &str); 9] = [
    ("user_upload", "import"),
    ("git_repository", "knowledge_sync"),
    ("notebooklm", "import"),
    ("dust_ai", "import"),
    ("perplexity", "import"),
    ("web_scrape", "import"),
    ("api_import", "import"),
    ("agent_generated", "conversation"),
    ("custom_provider", "manual"),
];

impl Tenant {
    /// Sends something to be created.
    #[track_caller]
    pub fn create(&self, entry: Value, options: Value) -> Answer {
        self.client.post(&format!("{KNOWLEDGE}/create"), json!({"entry": entry, "options": options}))
    }

    /// Creates an entry in this layer; as it was answered.
    #[track_caller]
    pub fn created(&self, entry: Value, layer: Value) -> Value {
        let answer = self.create(entry, json!({"layer": layer})).expect(201);
        assert_members(&answer.json, &["entry", "status"]);
        assert_eq!(answer.json["status"], "created");
        assert_headers(&answer);
        assert_knowledge(&answer.json["entry"]);
        answer.json["entry"].clone()
    }

    /// The entry as the protocol shows it now.
    #[track_caller]
    pub fn knowledge(&self, id: &str) -> Value {
        let answer = self.client.get(&format!("{KNOWLEDGE}/{id}")).expect(200);
        assert_members(&answer.json, &["entry"]);
        assert_headers(&answer);
        assert_knowledge(&answer.json["entry"]);
        answer.json["entry"].clone()
    }

    /// Sends what is to stand in the place of an entry.
    #[track_caller]
    pub fn replace(&self, id: &str, entry: Value) -> Answer {
        self.client.send("PUT", &format!("{KNOWLEDGE}/{id}"), Body::Json(json!({"entry": entry})))
    }
}

/// Requires what every answer of this surface carries.
#[track_caller]
pub fn assert_headers(answer: &Answer) {
    assert!(!answer.header("x-request-id").is_empty(), "{:?}", answer.headers);
    assert!(!answer.header("x-provider-version").is_empty(), "{:?}", answer.headers);
    assert_eq!(answer.header("cache-control"), "no-store");
}

/// Requires what every entry has, and nothing the protocol does not name.
#[track_caller]
pub fn assert_knowledge(entry: &Value) {
    let always =
        ["id", "metadata", "source", "access_policy", "created_at", "updated_at", "version", "layer"];
    let present = names(entry);
    for name in always {
        assert!(present.contains(name), "no {name} in {entry}");
    }
    for name in &present {
        assert!(always.contains(name) || matches!(*name, "content" | "embedding"), "{name} in {entry}");
        assert!(!entry[name].is_null(), "{name} is null in {entry}");
    }
    let metadata =
        ["title", "description", "tags", "language", "author", "confidence", "importance", "custom"];
    assert!(names(&entry["metadata"]).iter().all(|name| metadata.contains(name)), "{entry}");
    let source = ["type", "identifier", "version", "provider_id"];
    assert!(names(&entry["source"]).iter().all(|name| source.contains(name)), "{entry}");
    assert!(entry["source"]["type"].is_string() && entry["source"]["identifier"].is_string(), "{entry}");
    assert!(entry["access_policy"].is_string(), "the bare word: {entry}");
    assert!(TYPES.contains(&text(&entry["layer"]["type"]).as_str()), "{entry}");
    assert!(LAYERS.iter().any(|(name, _)| entry["layer"]["scope"] == *name), "{entry}");
    assert_timestamp(&entry["created_at"]);
    assert_timestamp(&entry["updated_at"]);
}

/// How this surface refuses.
pub trait OpenSpecAnswer {
    /// Requires the error shape, to the letter, with this status, number and name.
    #[track_caller]
    fn fails(self, status: u16, code: u16, name: &str) -> Answer;
}

impl OpenSpecAnswer for Answer {
    #[track_caller]
    fn fails(self, status: u16, code: u16, name: &str) -> Answer {
        let answer = self.expect(status);
        assert_members(&answer.json, &["error", "request_id", "timestamp"]);
        let error = &answer.json["error"];
        assert_members(error, &["code", "name", "message", "retryable", "operation", "details"]);
        assert_eq!((&error["code"], &error["name"]), (&json!(code), &json!(name)), "{}", answer.describe());
        assert!(error["details"].is_object() && error["retryable"].is_boolean(), "{}", answer.describe());
        assert!(!text(&error["message"]).is_empty() && !text(&error["operation"]).is_empty());
        assert_timestamp(&answer.json["timestamp"]);
        assert_eq!(answer.json["request_id"], answer.header("x-request-id"));
        assert_headers(&answer);
        answer
    }
}

#[test]
fn discovery_tells_the_truth() {
    let tenant = Tenant::fresh();
    let answer = tenant.client.get(KNOWLEDGE).expect(200);
    assert_headers(&answer);
    assert_members(&answer.json, &["provider"]);
    let provider = &answer.json["provider"];
    let members =
        ["name", "version", "description", "capabilities", "supported_sources", "limits", "features"];
    assert_members(provider, &members);
    let capabilities = &provider["capabilities"];
    let words = |value: &Value| sorted(list(value).iter().map(text));
    assert_eq!(words(&capabilities["query"]["modes"]), ["hybrid", "keyword", "semantic"]);
    assert_eq!(words(&capabilities["query"]["distance_metrics"]), ["cosine", "dot", "euclidean"]);
    for part in ["query", "storage"] {
        assert_eq!(words(&capabilities[part]["layers"]), sorted(TYPES.map(str::to_owned)));
    }
    assert_eq!(words(&capabilities["storage"]["batch_operations"]), ["create", "delete", "update", "upsert"]);
    assert_eq!(capabilities["metadata"], json!({"custom": true, "version_history": true}));
    assert_eq!(words(&capabilities["streaming"]["formats"]), ["sse"]);
    assert_eq!(words(&capabilities["streaming"]["types"]), ["notifications", "query", "updates"]);
    assert_eq!(words(&provider["supported_sources"]), sorted(SOURCES.map(|(name, _)| name.to_owned())));
    assert_members(
        &provider["limits"],
        &["max_entry_size", "max_batch_size", "max_embeddings_dim", "query_rate_limit"],
    );
    assert_eq!(provider["limits"]["max_batch_size"], 500);
    assert_eq!(provider["limits"]["query_rate_limit"], json!(null));
    assert_eq!(provider["features"]["reranking"], false);
    for feature in ["semantic_search", "hybrid_search", "cross_layer_query", "versioning", "promotion"] {
        assert_eq!(provider["features"][feature], true, "{feature}");
    }

    // What it promises, it does.
    let entry =
        tenant.created(json!({"content": "the heron waits"}), json!({"type": "user", "user_id": "u"}));
    let id = id_of(&entry);
    let shown = tenant.get(&format!("{id}?includeEmbedding=true")).expect(200).json;
    assert_eq!(
        list(&shown["memory"]["embedding"]).len() as u64,
        provider["limits"]["max_embeddings_dim"].as_u64().unwrap()
    );
    for mode in list(&capabilities["query"]["modes"]) {
        for metric in list(&capabilities["query"]["distance_metrics"]) {
            let body = json!({"query": "heron", "mode": mode, "options": {"distance_metric": metric}, "layer": {"user_id": "u"}});
            let found = tenant.client.post(&format!("{KNOWLEDGE}/query"), body).expect(200).json;
            assert_eq!(list(&found["results"]).len(), 1, "{mode} {metric}");
        }
    }
}

#[test]
fn without_a_credential_there_is_nothing() {
    let anonymous = SERVER.anonymous();
    anonymous.get(KNOWLEDGE).fails(401, 401, "UNAUTHORIZED");
    anonymous.get(&format!("{KNOWLEDGE}/{}", fresh_id())).fails(401, 401, "UNAUTHORIZED");
    anonymous.post(&format!("{KNOWLEDGE}/query"), json!({"query": "x"})).fails(401, 401, "UNAUTHORIZED");
    anonymous.get(&format!("{KNOWLEDGE}/stream")).fails(401, 401, "UNAUTHORIZED");
}

#[test]
fn a_created_entry_is_the_same_memory_in_both_surfaces() {
    let tenant = Tenant::fresh();
    let metadata = json!({
        "title": "Herons", "description": "birds", "tags": ["bird", "water"], "language": "en", "author": "ann",
        "confidence": 0.5, "importance": 0.25,
        "custom": {"relevance": 0.5, "custom": {"deep": [null]}, "own": 1, "conflictKey": "k"},
    });
    let source = json!({"type": "web_scrape", "identifier": "https://example.org/herons", "version": "3", "provider_id": "w"});
    let created = tenant.created(
        json!({"content": "the heron waits", "metadata": metadata, "source": source, "id": fresh_id(), "created_at": "1999-01-01T00:00:00Z"}),
        json!({"type": "user", "user_id": "u"}),
    );

    assert_eq!(
        (&created["content"], &created["metadata"], &created["source"]),
        (&json!("the heron waits"), &metadata, &source)
    );
    assert_eq!((&created["version"], &created["access_policy"]), (&json!(1), &json!("private")));
    assert!(instant(&created["created_at"]).as_micros() > 1_700_000_000_000_000, "its own time: {created}");
    assert_eq!(created["layer"], json!({"type": "user", "scope": "user", "user_id": "u"}));
    assert_eq!(tenant.knowledge(&id_of(&created)), created);

    let memory = tenant.entry(&id_of(&created));
    assert_eq!((&memory["layer"], &memory["kind"]), (&json!("user"), &json!("user_personal")));
    assert_eq!(memory["state"], "active");
    let mut stored = memory["metadata"].clone();
    let stored_source = stored.as_object_mut().unwrap().shift_remove("source").unwrap();
    assert_eq!((&stored_source["type"], &stored_source["origin"]), (&json!("import"), &json!("web_scrape")));
    assert_eq!(stored_source["reference"], "https://example.org/herons");
    let flat = json!({
        "title": "Herons", "description": "birds", "tags": ["bird", "water"], "language": "en", "author": "ann",
        "confidence": 0.5, "importance": 0.25, "relevance": 0.5, "custom": {"deep": [null]}, "own": 1, "conflictKey": "k",
    });
    assert_eq!(stored, flat);
}

#[test]
fn sources_are_translated_both_ways() {
    let tenant = Tenant::fresh();
    let layer = json!({"type": "user", "user_id": "u"});
    for (origin, stored) in SOURCES {
        let source = json!({"type": origin, "identifier": "x"});
        let entry = tenant.created(json!({"content": "a", "source": source}), layer.clone());
        assert_eq!(entry["source"], source);
        let memory = tenant.entry(&id_of(&entry));
        assert_eq!(
            (&memory["metadata"]["source"]["type"], &memory["metadata"]["source"]["origin"]),
            (&json!(stored), &json!(origin))
        );
    }
    let shown = [
        ("conversation", "agent_generated"),
        ("tool_result", "agent_generated"),
        ("knowledge_sync", "git_repository"),
        ("manual", "user_upload"),
        ("import", "api_import"),
    ];
    for (stored, origin) in shown {
        let source = json!({"type": stored, "reference": "r"});
        let id = tenant.say_with(&Place::user("u"), json!({"content": "a", "metadata": {"source": source}}));
        assert_eq!(tenant.knowledge(&id)["source"], json!({"type": origin, "identifier": "r"}));
        let id = tenant
            .say_with(&Place::user("u"), json!({"content": "a", "metadata": {"source": {"type": stored}}}));
        assert_eq!(tenant.knowledge(&id)["source"], json!({"type": origin, "identifier": id}));
    }
    tenant
        .create(
            json!({"content": "a", "source": {"type": "rumour", "identifier": "x"}}),
            json!({"layer": layer}),
        )
        .fails(400, 400, "INVALID_REQUEST");
}

/// Where a layer of the protocol writes to: its members, then layer, kind and the type that is shown.
#[test]
fn the_eight_types_write_where_the_table_says() {
    let tenant = Tenant::fresh();
    let company = tenant.name.clone();
    let cases = [
        (
            json!({"type": "working", "user_id": "u", "agent_id": "a", "session_id": "s"}),
            "session",
            "working",
            "working",
        ),
        (json!({"type": "working", "user_id": "u", "agent_id": "a"}), "agent", "working", "working"),
        (json!({"type": "working", "user_id": "u"}), "user", "working", "working"),
        (json!({"type": "session", "user_id": "u", "session_id": "s"}), "session", "session", "session"),
        (
            json!({"type": "episodic", "user_id": "u", "agent_id": "a", "session_id": "s"}),
            "agent",
            "episodic",
            "episodic",
        ),
        (json!({"type": "episodic", "user_id": "u", "session_id": "s"}), "session", "episodic", "episodic"),
        (json!({"type": "semantic", "user_id": "u", "project_id": "p"}), "user", "semantic", "user"),
        (json!({"type": "semantic", "user_id": "u", "agent_id": "a"}), "agent", "semantic", "semantic"),
        (json!({"type": "semantic", "project_id": "p", "team_id": "t"}), "project", "semantic", "semantic"),
        (json!({"type": "semantic", "team_id": "t", "org_id": "o"}), "team", "semantic", "organization"),
        (json!({"type": "semantic", "org_id": "o"}), "org", "semantic", "organization"),
        (json!({"type": "semantic"}), "company", "semantic", "organization"),
        (
            json!({"type": "semantic", "scope": "project", "user_id": "u", "project_id": "p"}),
            "project",
            "semantic",
            "semantic",
        ),
        (json!({"type": "archival", "user_id": "u"}), "user", "archival", "archival"),
        (json!({"type": "user", "user_id": "u", "session_id": "s"}), "user", "user_personal", "user"),
        (json!({"type": "organization", "team_id": "t", "org_id": "o"}), "team", "semantic", "organization"),
        (json!({"type": "organization", "org_id": "o", "user_id": "u"}), "org", "semantic", "organization"),
        (json!({"type": "organization"}), "company", "semantic", "organization"),
        (
            json!({"type": "Semantic", "scope": "ORG", "org_id": "o", "company_id": company}),
            "org",
            "semantic",
            "organization",
        ),
    ];
    for (layer, scope, kind, shown) in cases {
        let entry = tenant.created(json!({"content": "a rule"}), layer.clone());
        assert_eq!(
            (&entry["layer"]["scope"], &entry["layer"]["type"]),
            (&json!(scope), &json!(shown)),
            "{layer}"
        );
        let memory = tenant.entry(&id_of(&entry));
        assert_eq!((&memory["layer"], &memory["kind"]), (&json!(scope), &json!(kind)), "{layer}");
        let wire = |name: &str| format!("{}_id", name.trim_end_matches("Id"));
        for (name, value) in memory["identifiers"].as_object().unwrap() {
            assert_eq!(&entry["layer"][wire(name)], value, "{layer}");
        }
        assert_eq!(names(&entry["layer"]).len(), 2 + names(&memory["identifiers"]).len(), "{entry}");
    }
    let fact = json!({"fact_type": "rule", "subject": "build", "predicate": "runs_on", "object": "linux"});
    let entry = tenant.created(
        json!({"content": "Builds run on Linux", "metadata": {"custom": {"fact": fact}}}),
        json!({"type": "procedural", "project_id": "p"}),
    );
    let memory = tenant.entry(&id_of(&entry));
    assert_eq!((&memory["kind"], &memory["fact"]["subject"]), (&json!("procedural"), &json!("build")));
    assert_eq!(entry["layer"]["type"], "procedural");
    tenant
        .create(json!({"content": "no fact"}), json!({"layer": {"type": "procedural", "project_id": "p"}}))
        .fails(400, 400, "INVALID_REQUEST");
    for missing in [
        json!({"type": "session", "user_id": "u"}),
        json!({"type": "session"}),
        json!({"type": "user"}),
        json!({"type": "semantic", "scope": "project"}),
    ] {
        tenant.create(json!({"content": "a"}), json!({"layer": missing})).fails(
            400,
            400,
            "MISSING_IDENTIFIER",
        );
    }
    tenant.create(json!({"content": "a"}), json!({"layer": {"type": "galaxy"}})).expect(400);
}

#[test]
fn without_a_layer_an_entry_belongs_to_the_user_if_there_is_one() {
    let tenant = Tenant::fresh();
    let create = |tenant: &Tenant| {
        let body = json!({"entry": {"content": "a rule"}});
        tenant.client.post(&format!("{KNOWLEDGE}/create"), body).expect(201).json["entry"]["layer"].clone()
    };
    assert_eq!(
        create(&tenant),
        json!({"type": "organization", "scope": "company", "company_id": tenant.name})
    );
    let expected = json!({"type": "user", "scope": "user", "user_id": "u"});
    assert_eq!(create(&tenant.as_user("u")), expected);
    let entry = tenant.as_user("u").created(json!({"content": "mine"}), json!({"type": "user"}));
    assert_eq!(entry["layer"], expected, "user_id defaults to the authenticated user");
    tenant
        .as_user("u")
        .create(json!({"content": "a"}), json!({"layer": {"type": "user", "user_id": "v"}}))
        .fails(403, 403, "FORBIDDEN");
}

#[test]
fn an_embedding_is_made_unless_it_is_not_wanted_and_shown_if_it_is() {
    let tenant = Tenant::fresh();
    let layer = json!({"type": "user", "user_id": "u"});
    let create = |options: Value| {
        let options = merged(json!({"layer": layer}), &options);
        tenant.create(json!({"content": "the heron waits"}), options).expect(201).json["entry"].clone()
    };
    assert!(!names(&create(json!({}))).contains("embedding"));
    let shown = create(json!({"generate_embedding": true}));
    assert_eq!(list(&shown["embedding"]).len(), 256);
    let without = create(json!({"generate_embedding": false}));
    assert!(!names(&without).contains("embedding"));
    assert_eq!(tenant.entry(&id_of(&without))["state"], "created");
    tenant.create(json!({"content": "a"}), json!({"layer": layer, "generate_embedding": "yes"})).fails(
        400,
        400,
        "INVALID_REQUEST",
    );
}
