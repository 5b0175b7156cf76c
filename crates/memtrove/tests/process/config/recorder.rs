//! Where responses are recorded, what cannot be combined, and that nobody is told the password of a Redis.

use crate::config::{given, stops};
use memtrove::config::Config;
use memtrove_service::recorder::{RecorderBackend, RecorderSettings};
use std::path::PathBuf;
use std::time::Duration;

fn settings(toml: &str) -> RecorderSettings {
    let Config { recorder, redis, .. } = given(toml).load().config;
    recorder.settings(&redis)
}

#[test]
fn the_defaults_are_those_of_the_use_cases() {
    let expected = RecorderSettings { backend: RecorderBackend::Store, ..RecorderSettings::default() };
    assert_eq!(settings(""), expected);
}

#[test]
fn every_key_reaches_the_recorder() {
    let folder = tempfile::tempdir().unwrap();
    let toml = format!(
        "[recorder]\nfinished_retention = \"5s\"\nmax_bytes = \"1MiB\"\ndisk = \"2MiB\"\ntemp_dir = {:?}\n\
         advertised_address = \"[2001:db8::1]:7077\"\n",
        folder.path()
    );
    assert_eq!(given(&toml).problems(), [""; 0]);
    let settings = settings(&toml);
    assert_eq!(settings.finished_retention, Duration::from_secs(5));
    assert_eq!((settings.max_bytes, settings.disk), (1 << 20, 2 << 20));
    assert_eq!(settings.temp_dir, Some(PathBuf::from(folder.path())));
    assert_eq!(
        settings.advertised_address.map(|address| address.to_string()).as_deref(),
        Some("[2001:db8::1]:7077")
    );
}

#[test]
fn a_redis_is_used_where_there_is_one_unless_somebody_says_otherwise() {
    let url = "redis://:hush@cache.example:6379/2";
    let backend = |lines: &str| settings(&format!("[redis]\nurl = \"{url}\"\n{lines}")).backend;
    let redis = || RecorderBackend::Redis(url.to_owned());
    assert!(backend("") == redis());
    assert!(backend("[recorder]\nbackend = \"redis\"\n") == redis());
    assert!(backend("[recorder]\nbackend = \"store\"\n") == RecorderBackend::Store);
    assert!(backend("[recorder]\nbackend = \"local\"\n") == RecorderBackend::Local);
    assert!(backend("[recorder]\nbackend = \"none\"\n") == RecorderBackend::Off);
}

#[test]
fn the_password_of_a_redis_is_never_shown() {
    for (url, shown) in [
        ("redis://:hush@cache.example:6379/2", "redis://[redacted]@cache.example:6379/2"),
        ("rediss://hush@cache.example", "rediss://[redacted]@cache.example"),
        ("redis://cache.example:6379?password=hush", "redis://cache.example:6379"),
        ("redis:/hush@cache.example", "[redacted]"),
        ("hush", "[redacted]"),
    ] {
        let loaded = given(&format!("[redis]\nurl = \"{url}\"\n")).load();
        let setting = loaded.settings().into_iter().find(|setting| setting.key == "redis.url").unwrap();
        assert_eq!(setting.value, shown);
        assert!(!format!("{loaded:?}{:?}", loaded.config.problems()).contains("hush"), "{url}");
    }
}

#[test]
fn what_contradicts_itself_is_refused() {
    stops(
        "[recorder]\nbackend = \"redis\"\n",
        &[
            "recorder.backend: is \"redis\", and redis.url is missing; set redis.url = \"redis://host:6379\", or remove the \
           key to note it in the database",
        ],
    );
    stops(
        "[redis]\nurl = \"http://cache.example\"\n",
        &[
            "redis.url: is not the address of a Redis; use redis://host:6379, or rediss:// with TLS; what is special in a \
           password is escaped: @ is %40",
        ],
    );
    stops(
        "[recorder]\nmax_bytes = \"2GiB\"\ndisk = \"1GiB\"\n",
        &["recorder.max_bytes: is 2GiB, and recorder.disk is 1GiB; raise recorder.disk, or lower it"],
    );
    stops(
        "[recorder]\nmax_bytes = 0\n",
        &["recorder.max_bytes: is 0, so nothing could be done; set at least 1, or remove the key"],
    );
    stops(
        "[recorder]\ntemp_dir = \"/nowhere/at/all\"\n",
        &["recorder.temp_dir: /nowhere/at/all is no folder; make it, or remove the key to use the system's"],
    );
    stops(
        "[recorder]\nadvertised_address = \"node-1\"\n",
        &[
            "recorder.advertised_address: 'node-1' is not an address with a port; use \"host:port\", with an IPv6 address in \
           brackets",
        ],
    );
}

#[test]
fn a_recorder_for_one_node_on_a_database_for_many_is_worth_a_word() {
    let warnings = |toml: &str| given(toml).load().config.warnings().join("\n");
    let shared = "[store]\nurl = \"postgres://m@localhost/m\"\n";
    assert!(
        warnings(&format!("{shared}[recorder]\nbackend = \"local\"\n"))
            .contains("recorder.backend is \"local\"")
    );
    for quiet in ["[recorder]\nbackend = \"local\"\n", shared] {
        assert!(!warnings(quiet).contains("recorder"), "{quiet}");
    }
    let unused = warnings("[redis]\nurl = \"redis://cache.example\"\n[recorder]\nbackend = \"store\"\n");
    assert!(unused.contains("redis.url is set, and recorder.backend says not to use it"), "{unused}");
}
