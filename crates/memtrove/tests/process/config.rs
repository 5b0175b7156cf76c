//! What configures the server, what wins, and what the complaints say.
mod attachments;
mod embedding;
mod guides;
mod memories;
mod recorder;
mod search;
mod store;

use memtrove::config::{AutoDerive, Config, Database, Flag, Inputs, Loaded, Provider, known_keys};
use memtrove_server::auth::config::{Mode, RoleConfig};
use memtrove_service::quota::{QuotaLimits, QuotaSettings, Rate};
use std::time::Duration;

/// A configuration of a server for other machines, as people will paste it.
const DOCUMENTED: &str = r#"
[server]
listen = "127.0.0.1:7077"
data_dir = "/var/lib/memtrove"
[store]
url = "sqlite"
[auth]
mode = "jwt"
tenant_claim = "tenant"
[auth.jwt]
issuer = "https://idp.example"
audiences = ["memtrove"]
[auth.api_keys]
test-agent = ["test-agent-key"]
gateway = { keys = ["gateway-key"], tenant = "acme" }
[auth.trusted_clients]
clients = ["gateway"]
[roles.admin]
users = ["alice"]
[roles.auditor]
claim_values = ["audit"]
[roles.indexer]
clients = ["test-agent"]
"#;

struct Given {
    folder: tempfile::TempDir,
    inputs: Inputs,
}

fn given(toml: &str) -> Given {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("memtrove.toml");
    std::fs::write(&file, toml).unwrap();
    Given { folder, inputs: Inputs { file: Some(file), ..Inputs::default() } }
}

impl Given {
    fn variable(mut self, name: &str, value: &str) -> Self {
        self.inputs.environment.push((name.into(), value.into()));
        self
    }

    fn flag(mut self, name: &'static str, key: &'static str, value: &str) -> Self {
        self.inputs.flags.push(Flag { name, key, value: value.into() });
        self
    }

    #[track_caller]
    fn load(&self) -> Loaded {
        Config::load(&self.inputs).unwrap()
    }

    #[track_caller]
    fn complaint(&self) -> String {
        let text = Config::load(&self.inputs).unwrap_err().to_string();
        text.replace(&self.folder.path().display().to_string(), "")
    }

    #[track_caller]
    fn problems(&self) -> Vec<String> {
        self.load().config.problems().iter().map(ToString::to_string).collect()
    }
}

/// Reads a file and expects exactly these sentences to stop the start.
#[track_caller]
fn stops(toml: &str, expected: &[&str]) {
    assert_eq!(given(toml).problems(), expected, "{toml}");
}

#[test]
fn the_defaults_can_be_run_with() {
    let config = given("").load().config;
    assert_eq!(config, Config::default());
    assert_eq!(config.problems(), []);
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:7077");
    let Database::Sqlite(path) = config.database().unwrap() else { panic!("{:?}", config.store) };
    assert!(path.is_absolute() && path.ends_with("memtrove/memtrove.db"), "{}", path.display());
    assert_eq!(config.server.body_limit.0, 20 << 20);
    assert_eq!(config.limits.content_bytes.0, 16 << 20);
    assert_eq!(config.tasks.retry_delay.0, Duration::from_secs(600));
    assert_eq!(config.eviction.batch_delay.0, Duration::from_millis(100));
    assert_eq!((config.auto_derive(), config.encryption.is_on()), (AutoDerive::Text, false));
    assert_eq!(config.quotas.settings(), QuotaSettings::default());
    assert_eq!(config.idempotency.retention.0, Duration::from_secs(24 * 3600));
    assert_eq!((config.retention.events_days, config.retention.audit_days), (None, None));
    assert_eq!((config.retention.audit_min_days, config.retention.audit_floor()), (None, 365));
    assert_eq!(config.retention.interval.0, Duration::from_secs(24 * 3600));
    assert_eq!((&config.roles.reader, &config.roles.writer), (&None, &None));
}

#[test]
fn the_documented_file_is_read() {
    let loaded = given(DOCUMENTED).load();
    assert_eq!(loaded.config.problems(), []);
    let auth = &loaded.config.auth;
    assert_eq!(auth.mode, Mode::Jwt);
    assert_eq!(auth.jwt.issuer.as_deref(), Some("https://idp.example"));
    assert_eq!(auth.api_keys["gateway"].tenant.as_deref(), Some("acme"));
    assert_eq!(auth.roles.admin.users, ["alice"]);
}

#[test]
fn defaults_lose_to_the_file_it_loses_to_variables_and_they_lose_to_flags() {
    let file = "[server]\nlisten = \"127.0.0.1:1\"\nshutdown_grace = \"1s\"\nrequest_timeout = 7\n";
    let loaded = given(file)
        .variable("MEMTROVE_SERVER__LISTEN", "127.0.0.1:2")
        .variable("MEMTROVE_SERVER__SHUTDOWN_GRACE", "PT2S")
        .flag("--listen", "server.listen", "127.0.0.1:3")
        .load();
    let server = &loaded.config.server;
    assert_eq!(server.listen.to_string(), "127.0.0.1:3");
    assert_eq!(server.shutdown_grace.0, Duration::from_secs(2));
    assert_eq!(server.request_timeout.0, Duration::from_secs(7));

    assert_eq!(loaded.source("server.listen"), "flag --listen");
    assert_eq!(
        loaded.source("server.shutdown_grace"),
        "environment variable MEMTROVE_SERVER__SHUTDOWN_GRACE"
    );
    assert!(loaded.source("server.request_timeout").ends_with("memtrove.toml"));
    assert_eq!(loaded.source("server.compression"), "default");
}

#[test]
fn variables_hold_numbers_lists_tables_and_keys() {
    let config = given("")
        .variable("MEMTROVE_AUTH__MODE", "jwt")
        .variable("MEMTROVE_AUTH__JWT__AUDIENCES", r#"["a", "b"]"#)
        .variable("MEMTROVE_AUTH__API_KEYS__MY_AGENT", "key-one,key-two")
        .variable("MEMTROVE_ROLES__ADMIN__USERS", "[alice, bob]")
        .variable("MEMTROVE_SERVER__BODY_LIMIT", "1MiB")
        .variable("MEMTROVE_SERVER__WORKERS", "3")
        .variable("MEMTROVE_ADMIN__REQUIRE_JUSTIFICATION", "true")
        .load()
        .config;
    assert_eq!(config.auth.jwt.audiences, ["a", "b"]);
    assert_eq!(config.auth.api_keys["my_agent"].keys.len(), 2);
    assert_eq!(config.auth.roles.admin.users, ["alice", "bob"]);
    assert_eq!(config.server.body_limit.0, 1 << 20);
    assert_eq!(config.server.workers, Some(3));
    assert!(config.admin.require_justification);
    assert_eq!(config.problems(), []);
}

#[test]
fn a_variable_can_name_the_file_and_others_are_left_alone() {
    let given = given("[server]\nworkers = 5\n");
    let file = given.inputs.file.clone().unwrap().display().to_string();
    let named = Inputs { file: None, ..given.inputs.clone() };
    let named = Given { folder: given.folder, inputs: named }
        .variable("MEMTROVE_CONFIG", &file)
        .variable("MEMTROVE_BIN", "/usr/bin/memtrove")
        .variable("PATH", "/usr/bin");
    assert_eq!(named.load().config.server.workers, Some(5));
    let missing = given_missing("/nowhere/memtrove.toml");
    assert!(missing.contains("/nowhere/memtrove.toml named by --config is not there"), "{missing}");
}

fn given_missing(file: &str) -> String {
    Config::load(&Inputs { file: Some(file.into()), ..Inputs::default() }).unwrap_err().to_string()
}

#[test]
fn a_mistyped_key_is_told_the_closest_one() {
    let check = |toml: &str, wrong: &str, right: &str| {
        let complaint = given(toml).complaint();
        let expected = format!("{wrong} is not a setting; did you mean {right}?");
        assert!(complaint.contains(&expected) && complaint.contains("memtrove.toml"), "{complaint}");
    };
    check("[server]\nlisten_on = 1\n", "server.listen_on", "server.listen");
    check("[server]\ndatadir = \"x\"\n", "server.datadir", "server.data_dir");
    check("listen = \"127.0.0.1:1\"\n", "listen", "server.listen");
    check("[auth]\nissuer = \"https://x\"\n", "auth.issuer", "auth.jwt.issuer");
    check("[auth.jwt]\naudience = [\"x\"]\n", "auth.jwt.audience", "auth.jwt.audiences");
    check("[severs]\nlisten = \"127.0.0.1:1\"\n", "severs", "server");
    check("[roles.admin]\nuser = [\"x\"]\n", "roles.admin.user", "roles.admin.users");

    let variable = given("").variable("MEMTROVE_SERVER__LISTNE", "127.0.0.1:1").complaint();
    assert_eq!(
        variable,
        "environment variable MEMTROVE_SERVER__LISTNE: server.listne is not a setting; did you mean server.listen?"
    );
    let flat = given("").variable("MEMTROVE_SERVER_DATA_DIR", "x").complaint();
    assert!(flat.contains("write MEMTROVE_SERVER__DATA_DIR"), "{flat}");
}

#[test]
fn a_wrong_value_is_told_what_would_be_right() {
    let check = |toml: &str, expected: &str| {
        let complaint = given(toml).complaint();
        assert!(complaint.contains(expected), "{complaint}");
    };
    check("[server]\nlisten = \"7077\"\n", "server.listen: '7077' is not an address with a port");
    check("[server]\nbody_limit = \"20 megs\"\n", "server.body_limit: '20 megs' is not a number of bytes");
    check("[server]\nrequest_timeout = \"soon\"\n", "server.request_timeout: 'soon' is not a length of time");
    check("[server]\ncompression = \"yes\"\n", "server.compression must be true or false, not \"yes\"");
    check("[quotas]\nmax_files = \"10\"\n", "quotas.max_files must be a whole number from 0 on, not \"10\"");
    check("[server]\nworkers = -1\n", "server.workers must be a whole number from 0 on, not -1");
    check("[server]\nworkers = 1.5\n", "server.workers must be a whole number from 0 on, not 1.5");
    check(
        "[retention]\nevents_days = 9999999999\n",
        "must be a whole number from 0 to 4294967295, not 9999999999",
    );
    check("[search]\nmin_score = \"high\"\n", "search.min_score must be a number, not \"high\"");
    check("[search]\nlanguage = 2\n", "search.language must be a text in quotes, not 2");
    check("server = true\n", "server must be a section, not true");
    check("[server]\nlisten = [1]\n", "such as \"127.0.0.1:7077\" or \"[::]:7077\", not a list");
    check("[search]\nlanguage = { is = 1 }\n", "search.language must be a text in quotes, not a table");
    check(
        "[encryption.dek]\ndecryption_keys = \"k\"\n",
        "decryption_keys must be a list such as [\"a\", \"b\"]",
    );
    check("[auth]\nmode = \"open\"\n", "auth.mode is 'open', but can only be one of: local, jwt");
    check("[log]\nformat = \"xml\"\n", "log.format is 'xml', but can only be one of: pretty, json");
    check(
        "[roles.admin]\nusers = \"alice\"\n",
        "roles.admin.users must be a list such as [\"a\", \"b\"], not \"alice\"",
    );
    check("[server\n", "memtrove.toml");
}

#[test]
fn complaints_and_settings_never_show_a_secret() {
    for toml in [
        "[auth.jwt]\nhmac_secret = 987654321\n",
        "[auth]\napi_keys = \"987654321\"\n",
        "[auth.api_keys]\na = 987654321\n",
        "[auth.api_keys]\na = [\"x\", 987654321]\n",
        "[auth.api_keys]\na = { keys = \"987654321\" }\n",
        "[embedding.openai]\napi_key = 987654321\n",
        "[attachments]\ndownload_url_secret = 987654321\n",
        "[attachments.s3]\nsecret_access_key = 987654321\n",
        "[attachments.azure]\naccess_key = 987654321\n",
        "[encryption.dek]\nkey = 987654321\n",
        "[encryption.dek]\ndecryption_keys = [987654321]\n",
        "[redis]\nurl = 987654321\n",
        "[store]\nurl = 987654321\n",
        "store = \"postgres://u:987654321@localhost/db\"\n",
        "redis = \"redis://:987654321@localhost\"\n",
        "[embedding]\nopenai = \"987654321\"\n",
    ] {
        let complaint = given(toml).complaint();
        let section = toml.trim_start_matches('[').split([']', ' ']).next().unwrap();
        assert!(!complaint.contains("987654321") && complaint.contains(section), "{complaint}");
    }
    let loaded =
        given(&DOCUMENTED.replace("issuer = \"https://idp.example\"", "hmac_secret = \"hush\"")).load();
    let shown = format!("{:?}{}", loaded, serde_json::to_string(&loaded.settings()).unwrap());
    assert!(!shown.contains("hush") && !shown.contains("test-agent-key") && !shown.contains("gateway-key"));
}

#[test]
fn every_effective_key_is_listed_with_its_source() {
    let loaded = given(DOCUMENTED).variable("MEMTROVE_LOG__LEVEL", "debug").load();
    let settings = loaded.settings();
    let source = |key: &str| &settings.iter().find(|setting| setting.key == key).unwrap().source;
    assert_eq!(source("log.level"), "environment variable MEMTROVE_LOG__LEVEL");
    assert!(source("auth.api_keys.test-agent.keys").ends_with("memtrove.toml"));
    assert!(source("auth.jwt.audiences").ends_with("memtrove.toml"));
    assert_eq!(source("search.language"), "default");
    for key in known_keys().iter().filter(|key| *key != "auth.api_keys") {
        assert!(settings.iter().any(|setting| setting.key == *key), "{key} is not listed");
    }
}

/// Where operators choose the names, or a table of the same keys stands for many.
const NAMED_BY_OTHERS: [&str; 5] =
    ["auth.api_keys", "quotas.tenants", "roles.", "memories.retention.", "memories.write_roles."];

#[test]
fn every_key_is_documented_with_its_default() {
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md")).unwrap();
    for setting in given("").load().settings() {
        let key = &setting.key;
        if NAMED_BY_OTHERS.iter().any(|prefix| key.starts_with(prefix))
            || key.starts_with("memories.provider.")
        {
            continue;
        }
        let name = format!("`{key}`");
        let row = page
            .lines()
            .find(|line| line.starts_with('|') && line.split('|').nth(1).unwrap_or("").trim() == name);
        let row = row.unwrap_or_else(|| panic!("{name} is not in docs/configuration.md"));
        let documented = row.split('|').nth(2).unwrap_or("").trim();
        let literal = documented.strip_prefix('`').and_then(|text| text.strip_suffix('`'));
        // A default that depends on others is described in words, and none is nothing to compare with.
        let Some(literal) = literal.filter(|text| !text.contains('`') && !setting.value.is_null()) else {
            continue;
        };
        let default = match &setting.value {
            serde_json::Value::String(text) => text.clone(),
            value => value.to_string().replace("\",\"", "\", \""),
        };
        assert_eq!(literal, default, "{key}");
    }
}

#[test]
fn contradictions_are_found_and_say_how_to_fix_them() {
    let check = |toml: &str, expected: &[&str]| {
        let problems = given(toml).problems();
        for expected in expected {
            assert!(problems.iter().any(|problem| problem.contains(expected)), "{expected}: {problems:?}");
        }
    };
    check(
        "[server]\nlisten = \"0.0.0.0:7077\"\n",
        &["server.listen: 0.0.0.0:7077", "set auth.mode = \"jwt\""],
    );
    check("[server]\nlisten = \"[::]:7077\"\n", &["listen on 127.0.0.1"]);
    check("[auth]\nmode = \"jwt\"\n", &["no one could call this server"]);
    check("[auth.jwt]\nissuer = \"https://x.example\"\n", &["auth.mode = \"local\" verifies nothing"]);
    check(
        "[auth]\nmode = \"jwt\"\n[auth.jwt]\nissuer = \"https://x.example\"\nhmac_secret = \"s\"\n",
        &["auth.jwt.hmac_secret: is set next to auth.jwt.issuer"],
    );
    check("[auth.api_keys]\na = [\"k\"]\nb = [\"k\"]\n", &["shares a key with client 'a'"]);
    check(
        "[auth]\nmode = \"jwt\"\n[auth.api_keys]\na = [\"k\"]\n[auth.trusted_clients]\nclients = [\"b\"]\n",
        &["'b' has no key"],
    );
    check("[cors]\nenabled = true\norigins = [\"*\"]\nallow_credentials = true\n", &["name the origins"]);
    check("[cors]\nenabled = true\n", &["cors.origins is empty"]);
    check("[cors]\nenabled = true\norigins = [\"/[/\"]\n", &["not a regular expression"]);
    check("[search]\nlanguage = \"klingon\"\n", &["search.language: 'klingon'"]);
    check("[prometheus]\nurl = \"localhost:9090\"\n", &["prometheus.url: 'localhost:9090'"]);
    check("[eviction]\nbatch_size = 0\n[server]\nworkers = 0\n", &["eviction.batch_size", "server.workers"]);
    check(
        "[quotas]\nmax_files = 0\nuser_reads = { limit = 0, window = \"1m\" }\n",
        &["quotas.max_files: is 0", "quotas.user_reads.limit: is 0", "set at least 1, or remove the quota"],
    );
    check(
        "[quotas]\nservice_reads = { limit = 1, window = \"0s\" }\n\
         [quotas.tenants.\"acme\"]\nuser_writes = { limit = 1, window = \"1500ms\" }\n",
        &[
            "quotas.service_reads.window: is 0ms",
            "quotas.tenants.acme.user_writes.window: is 1500ms",
            "use whole seconds between 1s and 1d",
        ],
    );
    check("[quotas]\nuser_reads = { limit = 1, window = \"25h\" }\n", &["quotas.user_reads.window: is 25h"]);
    check("[idempotency]\nretention = \"59m\"\n", &["idempotency.retention: is 59m; use 1h to 7d"]);
    check("[idempotency]\nretention = \"8d\"\n", &["idempotency.retention: is 8d"]);
    check(
        "[retention]\nevents_days = 0\naudit_days = 36501\ninterval = 0\n",
        &["retention.events_days: is 0", "retention.audit_days: is 36501", "retention.interval: is 0"],
    );
    check(
        "[retention]\naudit_min_days = 36501\n",
        &["retention.audit_min_days: is 36501; use 0 to 36500 days"],
    );
    check(
        "[retention]\naudit_days = 90\naudit_min_days = 91\n",
        &["retention.audit_days: is 90, and retention.audit_min_days = 91 keeps audit records longer; \
             set retention.audit_days to 91 or more, or retention.audit_min_days to 90 or less"],
    );
}

#[test]
fn the_floor_of_the_audit_trail_is_what_was_configured_before_there_was_one() {
    for (file, floor) in [
        ("", 365),
        ("audit_days = 90", 90),
        ("audit_days = 364", 364),
        ("audit_days = 400", 365),
        ("audit_min_days = 400", 400),
        ("audit_min_days = 0", 0),
        ("audit_days = 90\naudit_min_days = 90", 90),
        ("audit_days = 90\naudit_min_days = 10", 10),
    ] {
        let config = given(&format!("[retention]\n{file}\n")).load().config;
        assert_eq!(config.retention.audit_floor(), floor, "{file}");
        assert!(config.problems().is_empty(), "{file}: {:?}", config.problems());
    }
}

#[test]
fn quotas_are_for_all_and_for_tenants() {
    let file = "[quotas]\nuser_reads = { limit = 600, window = \"1m\" }\nmax_files = 100\n\
                [quotas.tenants.\"acme.example\"]\nuser_reads = { limit = 6, window = 1 }\nmax_events = 7\n";
    let loaded = given(file).variable("MEMTROVE_QUOTAS__SERVICE_WRITES", "{limit=5,window=\"10s\"}").load();
    assert_eq!(loaded.config.problems(), []);
    let rate = |limit, seconds| Some(Rate { limit, window: Duration::from_secs(seconds) });
    let acme = QuotaLimits { user_reads: rate(6, 1), max_events: Some(7), ..QuotaLimits::default() };
    let expected = QuotaSettings {
        everywhere: QuotaLimits {
            user_reads: rate(600, 60),
            service_writes: rate(5, 10),
            max_files: Some(100),
            ..QuotaLimits::default()
        },
        tenants: [("acme.example".to_owned(), acme)].into(),
    };
    assert_eq!(loaded.config.quotas.settings(), expected);

    let settings = loaded.settings();
    let shown = |key: &str| settings.iter().find(|setting| setting.key == key).unwrap();
    assert_eq!(shown("quotas.user_reads.window").value, "1m");
    assert!(shown("quotas.tenants.acme.example.max_events").source.ends_with("memtrove.toml"));
    assert!(shown("quotas.service_writes.limit").source.contains("MEMTROVE_QUOTAS__SERVICE_WRITES"));
    let complaint = given("[quotas]\nuser_reads = 600\n").complaint();
    assert!(
        complaint.contains("quotas.user_reads must be so many calls in so much time: { limit = 600,"),
        "{complaint}"
    );
    let complaint = given("[quotas]\nuser_reads = { limit = 600 }\n").complaint();
    assert!(complaint.contains("quotas.user_reads lacks 'window'"), "{complaint}");
}

#[test]
fn readers_and_writers_are_everybody_until_somebody_is_named() {
    let config = given("[roles.writer]\nclients = [\"agent\"]\n[roles.reader]\n").load().config;
    assert_eq!(config.auth.roles.writer.unwrap().clients, ["agent"]);
    assert_eq!(config.auth.roles.reader, Some(RoleConfig::default()));
    assert!(!given("[roles.writer]\n[roles.reader]\n").load().config.warnings().join("").contains("[roles."));
    let only_reader = given("[roles.reader]\nclients = [\"viewer\"]\n").load().config.warnings();
    assert!(
        only_reader.iter().any(|found| found.contains("[roles.reader] is set without [roles.writer]: only"))
    );
    let unknown = given(&format!("{DOCUMENTED}[roles.writer]\nclients = [\"ghost\"]\n")).load().config;
    assert!(unknown.warnings().iter().any(|warning| warning.contains("roles.writer.clients names 'ghost'")));
}

#[test]
fn jwt_mode_may_listen_everywhere() {
    let toml = DOCUMENTED.replace("127.0.0.1:7077", "0.0.0.0:7077") + "[encryption]\nallow_plain = true\n";
    assert_eq!(given(&toml).problems(), Vec::<String>::new());
}

#[test]
fn one_key_turns_encryption_on() {
    let key = "A".repeat(43) + "=";
    let config = given("").variable("MEMTROVE_ENCRYPTION__DEK__KEY", &key).load().config;
    assert_eq!(config.problems(), []);
    assert_eq!(config.encryption.providers(), [Provider::Dek]);
    assert_eq!((config.encryption.is_on(), config.auto_derive()), (true, AutoDerive::Off));
    let unsearchable = |config: &Config| {
        let warnings = config.warnings();
        warnings.into_iter().find(|warning| warning.contains("found only by their indexedContent"))
    };
    assert!(unsearchable(&config).unwrap().contains("set indexing.auto_derive = \"text\""));
    assert_eq!(unsearchable(&Config::default()), None);
    let meant = given("[indexing]\nauto_derive = \"off\"\n").variable("MEMTROVE_ENCRYPTION__DEK__KEY", &key);
    assert_eq!(unsearchable(&meant.load().config), None);

    let chosen = format!(
        "[encryption]\nproviders = [\"plain\", \"dek\"]\n[encryption.dek]\nkey = \"{key}\"\ndecryption_keys = [\"{key}\"]\n\
         [indexing]\nauto_derive = \"text\"\n"
    );
    let loaded = given(&chosen).load();
    assert_eq!(loaded.config.problems(), []);
    assert_eq!((loaded.config.encryption.is_on(), loaded.config.auto_derive()), (false, AutoDerive::Text));
    assert!(!format!("{:?}{:?}", loaded.settings(), loaded.config).contains(&key), "a key is a secret");

    let on = chosen.replace("[\"plain\", \"dek\"]", "[\"dek\", \"plain\"]");
    let warnings = given(&on).load().config.warnings();
    assert!(warnings.iter().any(|warning| warning.contains("auto_derive")), "{warnings:?}");
}

#[test]
fn encryption_that_cannot_work_stops_the_start() {
    let check = |toml: &str, expected: &[&str]| {
        let problems = given(toml).problems().join("\n");
        for part in expected {
            assert!(problems.contains(part), "{toml}\n{part:?} is not in:\n{problems}");
        }
    };
    let key = "A".repeat(43) + "=";
    check(
        "[encryption]\nproviders = [\"dek\"]\n",
        &["encryption.dek.key: is missing", "openssl rand -base64 32"],
    );
    check("[encryption]\nproviders = [\"plain\", \"dek\"]\n", &["encryption.dek.key: is missing"]);
    check("[encryption]\nproviders = []\n", &["encryption.providers: is empty"]);
    check("[encryption.dek]\nkey = \"hush!\"\n", &["encryption.dek.key: is not base64"]);
    check("[encryption.dek]\nkey = \"aHVzaA==\"\n", &["encryption.dek.key: has 4 bytes instead of 32"]);
    check(
        &format!("[encryption.dek]\nkey = \"{key}\"\ndecryption_keys = [\"aHVzaA==\"]\n"),
        &["encryption.dek.decryption_keys: has 4 bytes"],
    );
    check(
        &format!("[encryption]\nproviders = [\"plain\"]\n[encryption.dek]\nkey = \"{key}\"\n"),
        &["encryption.providers: does not name \"dek\""],
    );
    let complaint = given("[encryption.dek]\nkey = 12345\n").complaint();
    assert!(complaint.contains("encryption.dek.key") && !complaint.contains("12345"), "{complaint}");

    let public = "[server]\nlisten = \"0.0.0.0:7077\"\n[auth]\nmode = \"jwt\"\n[auth.jwt]\nissuer = \"https://idp.example\"\n";
    check(public, &["plain text by a server on 0.0.0.0:7077", "encryption.allow_plain = true"]);
    for allowed in
        ["[encryption]\nallow_plain = true\n".into(), format!("[encryption.dek]\nkey = \"{key}\"\n")]
    {
        assert_eq!(given(&format!("{public}{allowed}")).problems(), [""; 0]);
    }
}
