//! `[memories]`.

use super::{given, stops};
use memtrove::config::Config;
use memtrove::serve;
use memtrove_core::memories::{ConsolidationRules, DecayRules, Kind, Layer, Limits, Rules, SessionRules};
use memtrove_service::MemorySettings;
use std::collections::HashMap;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);

fn settings(toml: &str) -> MemorySettings {
    let config = given(toml).load().config;
    assert_eq!(config.problems(), [], "{toml}");
    serve::settings(&config).memories
}

#[test]
fn the_defaults_are_those_of_the_contract() {
    assert_eq!(serve::settings(&Config::default()).memories, MemorySettings::default());
}

#[test]
fn everything_can_be_set() {
    let file = r#"
[memories]
enabled_layers = ["company", "user", "session", "user"]
bind_agent_id = true
[memories.provider]
working = "embedded"
semantic = "embedded"
[memories.search]
default_limit = 5
default_threshold = 0.5
max_limit = 20
[memories.decay]
enabled = true
rate_per_day = 0.05
archive_threshold = 0.2
decayed_below = 0.4
exempt_layers = ["team"]
interval = "12h"
[memories.consolidation]
enabled = true
similarity_threshold = 0.9
max_memories_before_trigger = 50
target_layers = ["user"]
[memories.session]
default_ttl = "2h"
auto_delete = true
retention_period = "1d"
promote_important = false
promotion_threshold = 0.6
[memories.working]
default_ttl = "10m"
[memories.retention]
episodic = "90d"
archival = "P365D"
[memories.write_roles]
org = ["writer", "admin"]
company = []
[memories.limits]
max_content_length = 1000
max_query_length = 100
max_metadata_bytes = "1KiB"
max_list_limit = 10
max_fact_limit = 30
max_bulk_add = 7
max_bulk_delete = 8
max_working_entries = 9
[limits]
memories_body = "1MiB"
"#;
    let expected = MemorySettings {
        rules: Rules {
            limits: Limits {
                content_length: 1000,
                query_length: 100,
                metadata_bytes: 1024,
                search_limit: 20,
                list_limit: 10,
                fact_limit: 30,
                bulk_add: 7,
                bulk_delete: 8,
                body_bytes: 1 << 20,
                working_entries: 9,
            },
            enabled_layers: vec![Layer::User, Layer::Session, Layer::Company],
            working_ttl_seconds: 600,
            session_ttl_seconds: 7200,
            search_limit: 5,
            search_threshold: 0.5,
            list_limit: 10,
            fact_limit: 30,
            decay: DecayRules {
                enabled: true,
                rate_per_day: 0.05,
                archive_threshold: 0.2,
                decayed_below: 0.4,
                exempt_layers: vec![Layer::Team],
            },
            consolidation: ConsolidationRules {
                enabled: true,
                similarity_threshold: 0.9,
                max_memories_before_trigger: 50,
                target_layers: vec![Layer::User],
            },
            session: SessionRules {
                auto_delete: true,
                retention_seconds: 86_400,
                promote_important: false,
                promotion_threshold: 0.6,
            },
        },
        write_roles: HashMap::from([
            (Layer::Org, vec!["writer".to_owned(), "admin".to_owned()]),
            (Layer::Company, vec![]),
        ]),
        bind_agent_id: true,
        retention: HashMap::from([(Kind::Episodic, 90 * DAY), (Kind::Archival, 365 * DAY)]),
        decay_interval: DAY / 2,
        ..MemorySettings::default()
    };
    assert_eq!(settings(file), expected);
    assert_eq!(given(file).load().config.shell().unwrap().memories_body_limit, 1 << 20);
}

#[test]
fn layers_kinds_roles_and_providers_are_known_words() {
    let check = |toml: &str, expected: &str| {
        let complaint = given(toml).complaint();
        assert!(complaint.ends_with(expected), "{complaint}");
    };
    let layers = "'galaxy' is not a layer: agent, user, session, project, team, org or company";
    check("[memories]\nenabled_layers = [\"galaxy\"]\n", layers);
    check("[memories.decay]\nexempt_layers = [\"galaxy\"]\n", layers);
    check("[memories.consolidation]\ntarget_layers = [\"galaxy\"]\n", layers);
    check(
        "[memories.provider]\nsemantic = \"qdrant\"\n",
        "memories.provider.semantic is 'qdrant', but can only be one of: embedded",
    );
    check(
        "[memories.provider]\nsemantics = \"embedded\"\n",
        "memories.provider.semantics is not a setting; did you mean memories.provider.semantic?",
    );
    check(
        "[memories.retention]\nepisodes = \"1d\"\n",
        "memories.retention.episodes is not a setting; did you mean memories.retention.episodic?",
    );
    check(
        "[memories.write_roles]\norg = [\"boss\"]\n",
        "is 'boss', but can only be one of: admin, auditor, indexer, reader, writer",
    );
    // A user's own memories are the user's, whatever its roles.
    check("[memories.write_roles]\nuser = [\"admin\"]\n", "lists every key");
}

#[test]
fn what_cannot_be_remembered_with_stops_the_start() {
    stops(
        "[memories]\nenabled_layers = []\n",
        &[
            "memories.enabled_layers: is empty, so nothing could be remembered; name some, or remove the key to have all seven",
        ],
    );
    let without_users = "[memories]\nenabled_layers = [\"session\"]\n";
    stops(
        without_users,
        &[
            "memories.enabled_layers: lacks \"user\", where the end of a session copies what matters; add it, or set \
           memories.session.promote_important = false",
        ],
    );
    stops(&format!("{without_users}[memories.session]\npromote_important = false\n"), &[]);
    stops(
        "[memories.search]\ndefault_limit = 30\nmax_limit = 20\n",
        &[
            "memories.search.default_limit: is 30, more than memories.search.max_limit, which is 20; lower the one or raise \
           the other",
        ],
    );
    stops(
        "[memories.decay]\narchive_threshold = 0.6\n",
        &[
            "memories.decay.archive_threshold: is 0.6, more than memories.decay.decayed_below, which is 0.5; lower the one \
           or raise the other: memories decay before they are archived",
        ],
    );
    stops(
        "[memories.retention]\nworking = \"1d\"\nsemantic = 0\n",
        &[
            "memories.retention.working: working memory lives for its ttl anyway; set memories.working.default_ttl",
            "memories.retention.semantic: is 0, so nothing would be kept; set how long, or remove the key to keep them",
        ],
    );
    for key in ["working.default_ttl", "session.default_ttl"] {
        for (written, shown) in [("0s", "0ms"), ("1500ms", "1500ms"), ("366d", "366d")] {
            stops(
                &format!("memories.{key} = \"{written}\"\n"),
                &[&format!("memories.{key}: is {shown}; use whole seconds from 1s to 365d")],
            );
        }
    }
    stops(
        "[memories.session]\nretention_period = \"1ms\"\n",
        &["memories.session.retention_period: is 1ms; use whole seconds up to 365d"],
    );
    stops("[memories.session]\nretention_period = 0\n", &[]);
}

#[test]
fn shares_are_from_0_to_1_and_numbers_of_things_above_0() {
    for key in [
        "search.default_threshold",
        "decay.rate_per_day",
        "decay.decayed_below",
        "consolidation.similarity_threshold",
        "session.promotion_threshold",
    ] {
        let toml = format!("memories.{key} = 1.01\n");
        stops(&toml, &[&format!("memories.{key}: is 1.01; use 0 to 1")]);
    }
    for key in [
        "decay.interval",
        "consolidation.max_memories_before_trigger",
        "limits.max_content_length",
        "limits.max_query_length",
        "limits.max_metadata_bytes",
        "limits.max_list_limit",
        "limits.max_fact_limit",
        "limits.max_bulk_add",
        "limits.max_bulk_delete",
        "limits.max_working_entries",
    ] {
        let zero = "is 0, so nothing could be done; set at least 1, or remove the key";
        stops(&format!("memories.{key} = 0\n"), &[&format!("memories.{key}: {zero}")]);
    }
    let zero = |key| format!("{key}: is 0, so nothing could be done; set at least 1, or remove the key");
    stops("[memories.search]\ndefault_limit = 0\n", &[&zero("memories.search.default_limit")]);
    stops("[limits]\nmemories_body = 0\n", &[&zero("limits.memories_body")]);
}

#[test]
fn a_page_that_does_not_say_is_no_longer_than_the_longest() {
    let rules = settings("[memories.limits]\nmax_list_limit = 20\nmax_fact_limit = 2000\n").rules;
    assert_eq!((rules.list_limit, rules.limits.list_limit), (20, 20));
    assert_eq!((rules.fact_limit, rules.limits.fact_limit), (100, 2000));
}
