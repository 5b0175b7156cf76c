//! `[embedding]`, and what of `[memories]` is for whoever makes vectors.

use super::{given, stops};
use memtrove::config::Config;
use memtrove::serve;
use memtrove_recall::embed::{CacheConfig, EmbeddingConfig, Provider, QueryModel, RetryConfig};
use std::path::PathBuf;
use std::time::Duration;

fn settings(toml: &str) -> EmbeddingConfig {
    let config = given(toml).load().config;
    assert_eq!(config.problems(), [], "{toml}");
    serve::settings(&config).embedding
}

#[test]
fn the_bundled_model_needs_no_configuration() {
    let EmbeddingConfig { provider, calibration, cache, retry } =
        serve::settings(&Config::default()).embedding;
    assert!(matches!(provider, Provider::Static) && calibration);
    assert_eq!((cache, retry), (CacheConfig::default(), RetryConfig::default()));
    assert_eq!(Config::default().warnings().iter().filter(|found| found.contains("embedding")).count(), 0);
}

#[test]
fn words_alone_can_be_searched() {
    let none = settings("[embedding]\nprovider = \"none\"\ncalibration = \"none\"\n");
    assert!(matches!(none.provider, Provider::None) && !none.calibration);
    let complaint = given("[embedding]\nprovider = \"voyage\"\n").complaint();
    let expected = "embedding.provider is 'voyage', but can only be one of: static, local, openai, none";
    assert!(complaint.ends_with(expected), "{complaint}");
    let complaint = given("[embedding]\ncalibration = \"full\"\n").complaint();
    assert!(complaint.ends_with("is 'full', but can only be one of: model, none"), "{complaint}");
}

#[test]
fn a_transformer_is_read_from_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let file =
        format!("[embedding]\nprovider = \"local\"\n[embedding.local]\ndirectory = {:?}\n", folder.path());
    let check = |toml: &str, expected: QueryModel| match settings(toml).provider {
        Provider::Local { directory, query } => {
            assert_eq!((directory.as_path(), query), (folder.path(), expected))
        }
        other => panic!("{other:?}"),
    };
    check(&file, QueryModel::Local);
    check(&file.replace("\"local\"\n", "\"local\"\nquery = \"static\"\n"), QueryModel::Static);

    let fix = "name the folder of a sentence encoder such as all-MiniLM-L6-v2, or set embedding.provider = \"static\"";
    stops(
        "[embedding]\nprovider = \"local\"\n",
        &[&format!("embedding.local.directory: is missing, and embedding.provider is \"local\"; {fix}")],
    );
    stops(
        "[embedding]\nprovider = \"local\"\nlocal = { directory = \"/nowhere\" }\n",
        &[&format!("embedding.local.directory: /nowhere is not a folder; {fix}")],
    );
}

const OPENAI: &str = "[embedding]\nprovider = \"openai\"\n[embedding.openai]\n";

#[test]
fn a_server_is_named_with_its_model() {
    let file = format!("{OPENAI}base_url = \"https://x.example/v1\"\nmodel = \"text-embedding-3-small\"\n");
    let Provider::OpenAi(usual) = settings(&file).provider else { panic!("another provider") };
    assert_eq!(
        (usual.base_url.as_str(), usual.model.as_str()),
        ("https://x.example/v1", "text-embedding-3-small")
    );
    assert_eq!((usual.dimensions, usual.send_dimensions, usual.batch), (None, true, 64));
    assert!(usual.api_key.is_none());

    let own = file.replace("text-embedding-3-small", "nomic-embed-text")
        + "dimensions = 768\nsend_dimensions = false\ntimeout = \"5s\"\nbatch_size = 8\nmax_input_chars = 2000\n";
    let loaded = given(&own).variable("MEMTROVE_EMBEDDING__OPENAI__API_KEY", "hush").load();
    assert_eq!(loaded.config.problems(), []);
    let Provider::OpenAi(own) = serve::settings(&loaded.config).embedding.provider else {
        panic!("another provider")
    };
    assert_eq!((own.dimensions, own.send_dimensions, own.batch), (Some(768), false, 8));
    assert_eq!((own.timeout, own.max_input_chars), (Duration::from_secs(5), 2000));
    assert!(own.api_key.is_some());
    let shown = format!("{:?}{:?}{own:?}", loaded.settings(), loaded.config);
    assert!(shown.contains("[redacted]") && !shown.contains("hush"), "{shown}");
}

#[test]
fn a_server_that_cannot_be_asked_stops_the_start() {
    let base = |more: &str| format!("{OPENAI}base_url = \"https://x.example/v1\"\n{more}");
    stops(
        OPENAI,
        &[
            "embedding.openai.base_url: is missing, and embedding.provider is \"openai\"; name the server, e.g. \
             \"https://api.openai.com/v1\"",
            "embedding.openai.model: is missing, and embedding.provider is \"openai\"; name one, e.g. \
             \"text-embedding-3-small\"",
        ],
    );
    for wrong in ["localhost:8080", "ftp://x.example", "u:hush@x.example"] {
        stops(
            &format!("{OPENAI}base_url = \"{wrong}\"\nmodel = \"text-embedding-3-small\"\n"),
            &["embedding.openai.base_url: is not an http(s) address; use e.g. \"https://api.openai.com/v1\""],
        );
    }
    stops(
        &base("model = \"nomic-embed-text\"\n"),
        &[
            "embedding.openai.dimensions: is missing, and how long the vectors of nomic-embed-text are is not known here; \
           set what the model's makers say, e.g. 768",
        ],
    );
    stops(
        &base("model = \"text-embedding-3-small\"\ndimensions = 3072\n"),
        &[
            "embedding.openai.dimensions: is 3072, and the vectors of text-embedding-3-small have 1536; use at most 1536",
        ],
    );
    stops(
        &base("model = \"text-embedding-3-small\"\ndimensions = 256\nsend_dimensions = false\n"),
        &[
            "embedding.openai.dimensions: is 256, and the vectors of text-embedding-3-small have 1536 unless asked \
           otherwise; use 1536, or set embedding.openai.send_dimensions = true",
        ],
    );
    stops(
        &base("model = \"text-embedding-3-small\"\napi_key = \"line\\nbreak\"\n"),
        &[
            "embedding.openai.api_key: has characters that no header can carry; write the key and nothing else",
        ],
    );
    for key in ["dimensions", "timeout", "batch_size", "max_input_chars"] {
        let zero = "is 0, so nothing could be done; set at least 1, or remove the key";
        stops(
            &base(&format!("model = \"text-embedding-3-small\"\n{key} = 0\n")),
            &[&format!("embedding.openai.{key}: {zero}")],
        );
    }
}

#[test]
fn what_is_set_and_not_used_is_told() {
    let warned = |toml: &str, expected: &str| {
        let warnings = given(toml).load().config.warnings();
        assert!(warnings.iter().any(|warning| warning == expected), "{expected}\n{warnings:?}");
    };
    warned(
        "[embedding.local]\ndirectory = \"model\"\n",
        "[embedding.local] is set and not used: that takes embedding.provider = \"local\"",
    );
    warned(
        "[embedding]\nquery = \"static\"\n",
        "embedding.query is set and not used: that takes embedding.provider = \"local\"",
    );
    warned(
        "[embedding.openai]\nmodel = \"m\"\n",
        "[embedding.openai] is set and not used: that takes embedding.provider = \"openai\"",
    );
    let plain = |url: &str| format!("{OPENAI}base_url = \"{url}\"\nmodel = \"text-embedding-3-small\"\n");
    warned(
        &plain("http://models.example/v1"),
        "embedding.openai.base_url is not https: texts, and the key if there is one, go to models.example readable",
    );
    for fine in [
        "https://models.example/v1",
        "http://localhost:11434/v1",
        "http://127.0.0.1:1/v1",
        "http://[::1]:1/v1",
    ] {
        let warnings = given(&plain(fine)).load().config.warnings();
        assert!(!warnings.iter().any(|warning| warning.contains("embedding")), "{warnings:?}");
    }
}

#[test]
fn the_cache_and_the_attempts_are_those_of_memories() {
    let file = "[memories.cache.embeddings]\nsize = 7\nttl = \"1h\"\n\
                [memories.retry]\nmax_attempts = 5\ninitial_delay = \"50ms\"\nmax_delay = \"2s\"\nbackoff_multiplier = 3\n\
                deadline = \"9s\"\n";
    let EmbeddingConfig { cache, retry, .. } = settings(file);
    assert_eq!(cache, CacheConfig { size: 7, ttl: Duration::from_secs(3600) });
    let expected = RetryConfig {
        max_attempts: 5,
        initial_delay: Duration::from_millis(50),
        max_delay: Duration::from_secs(2),
        backoff_multiplier: 3.0,
        deadline: Duration::from_secs(9),
    };
    assert_eq!(retry, expected);
    stops(
        "[memories.retry]\nmax_attempts = 0\nbackoff_multiplier = 0.5\ndeadline = \"2h\"\n",
        &[
            "memories.retry.max_attempts: is 0, so nothing could be done; set at least 1, or remove the key",
            "memories.retry.backoff_multiplier: is 0.5; use 1 to 10; 1 makes all pauses equal",
            "memories.retry.deadline: is 2h; use up to 1h; callers wait for server.request_timeout at most",
        ],
    );
}

/// A key of a table in a variable, as people write it.
#[test]
fn variables_set_nested_keys() {
    let config = given("")
        .variable("MEMTROVE_EMBEDDING__PROVIDER", "local")
        .variable("MEMTROVE_EMBEDDING__LOCAL__DIRECTORY", "/models/minilm")
        .variable("MEMTROVE_MEMORIES__CACHE__EMBEDDINGS__SIZE", "3")
        .load()
        .config;
    assert_eq!(config.embedding.local.directory, Some(PathBuf::from("/models/minilm")));
    assert_eq!(config.memories.cache.embeddings.size, 3);
}
