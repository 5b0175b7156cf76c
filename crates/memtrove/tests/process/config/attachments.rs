//! Where attachments are kept, what cannot be combined, and that nobody is told a key.

use crate::config::{given, stops};
use memtrove::config::{AttachmentStore, Config};
use memtrove_service::AttachmentSettings;
use memtrove_testkit::object_stores::{Bucket, Container};
use std::path::Path;
use std::time::Duration;

const S3: &str = "[attachments]\nstore = \"s3\"\n[attachments.s3]\nbucket = \"files\"\n";
const AZURE: &str =
    "[attachments]\nstore = \"azure\"\n[attachments.azure]\naccount = \"acme\"\ncontainer = \"files\"\n";

#[test]
fn the_defaults_are_those_of_the_use_cases() {
    let settings = Config::default().attachments.settings();
    assert_eq!(format!("{settings:?}"), format!("{:?}", AttachmentSettings::default()));
    let usual = AttachmentSettings::default();
    let spans = |settings: &AttachmentSettings| {
        [
            settings.default_expires_in,
            settings.max_expires_in,
            settings.upload_expires_in,
            settings.upload_refresh,
            settings.cleanup_interval,
            settings.download_url_expires_in,
        ]
    };
    assert_eq!(spans(&settings), spans(&usual));
    assert!(settings.download_url_secret.is_none());
}

#[test]
fn every_key_reaches_the_use_cases() {
    let secret = "0123456789abcdef0123456789abcdef";
    let settings = given(
        "[attachments]\nmax_size = \"1MiB\"\ndefault_expires_in = \"PT10M\"\nmax_expires_in = \"2h\"\n\
         upload_expires_in = \"20s\"\nupload_refresh_interval = \"5s\"\ncleanup_interval = \"1m\"\n\
         download_url_expires_in = \"30s\"\n",
    )
    .variable("MEMTROVE_ATTACHMENTS__DOWNLOAD_URL_SECRET", secret)
    .load()
    .config
    .attachments
    .settings();
    assert_eq!(settings.max_bytes, 1 << 20);
    assert_eq!(settings.default_expires_in, Duration::from_secs(600));
    assert_eq!(settings.max_expires_in, Duration::from_secs(7200));
    assert_eq!(
        (settings.upload_expires_in, settings.upload_refresh),
        (Duration::from_secs(20), Duration::from_secs(5))
    );
    assert_eq!(settings.cleanup_interval, Duration::from_secs(60));
    assert_eq!(settings.download_url_expires_in, Duration::from_secs(30));
    assert_eq!(settings.download_url_secret.unwrap().as_slice(), secret.as_bytes());
}

#[test]
fn they_are_in_the_data_folder_unless_a_directory_is_named() {
    let at = |toml: &str| given(toml).load().config.attachments.directory(Path::new("/data"));
    assert_eq!(at(""), Path::new("/data/attachments"));
    assert_eq!(at("[attachments]\ndirectory = \"/mnt/files\"\n"), Path::new("/mnt/files"));
}

#[test]
fn a_directory_is_made_and_none_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let made = Config::default().attachments.blobs(folder.path()).unwrap();
    assert!(made.is_some() && folder.path().join("attachments").is_dir());
    let none = given("[attachments]\nstore = \"none\"\n").load().config.attachments;
    assert_eq!(none.store, AttachmentStore::None);
    assert!(none.blobs(folder.path()).unwrap().is_none());
    assert!(none.fetcher().unwrap().is_none());
}

#[test]
fn sources_are_fetched_unless_somebody_says_otherwise() {
    assert!(Config::default().attachments.fetcher().unwrap().is_some());
    let off = given("[attachments]\nfetch_sources = false\n").load().config.attachments;
    assert!(off.fetcher().unwrap().is_none());
}

#[test]
fn sources_are_fetched_from_the_ports_of_the_web_unless_somebody_names_others() {
    let fetches = |toml: &str, url: &str| {
        let fetcher = given(toml).load().config.attachments.fetcher().unwrap().unwrap();
        fetcher.check(url).is_ok()
    };
    let (usual, other) = ("https://files.example/", "https://files.example:9443/");
    assert!(fetches("", usual) && !fetches("", other));
    let named = "[attachments]\nfetch_ports = [9443]\n";
    assert!(fetches(named, other) && !fetches(named, usual));
}

#[test]
fn object_stores_can_be_opened_with_what_is_configured() {
    let folder = tempfile::tempdir().unwrap();
    let keys = "access_key_id = \"id\"\nsecret_access_key = \"hush\"\nregion = \"eu-central-1\"\nprefix = \"memtrove/\"\n\
                endpoint = \"http://127.0.0.1:1\"\nallow_http = true\ndirect_download = true\n";
    let s3 = given(&format!("{S3}{keys}"));
    assert_eq!(s3.problems(), [""; 0]);
    let s3 = s3.load().config.attachments;
    assert!(s3.blobs(folder.path()).unwrap().is_some());
    assert!(s3.settings().direct_download);

    let azure = given(&format!("{AZURE}access_key = \"aHVzaA==\"\n"));
    assert_eq!(azure.problems(), [""; 0]);
    let azure = azure.load().config.attachments;
    assert!(azure.blobs(folder.path()).unwrap().is_some());
    assert!(!azure.settings().direct_download);
    assert!(!folder.path().join("attachments").exists());
}

#[test]
fn nobody_is_told_a_key() {
    let loaded = given(
        "[attachments]\ndownload_url_secret = \"hush-hush-hush-hush-hush-hush-hush\"\n\
         [attachments.s3]\nsecret_access_key = \"hush\"\nendpoint = \"hush\"\n[attachments.azure]\naccess_key = \"hush\"\n",
    )
    .load();
    let keys = [
        "attachments.download_url_secret",
        "attachments.s3.secret_access_key",
        "attachments.azure.access_key",
    ];
    let settings = loaded.settings();
    for key in keys {
        let shown = settings.iter().find(|setting| setting.key == key).unwrap();
        assert_eq!(shown.value, "[redacted]", "{key}");
    }
    let told = format!("{:?} {:?}", loaded.config.problems(), loaded.config.attachments.settings());
    assert!(!told.contains("hush"), "{told}");
}

#[test]
fn what_cannot_work_stops_the_start() {
    stops(
        "[attachments]\nstore = \"s3\"\n",
        &["attachments.s3.bucket: is missing, and attachments.store is \"s3\"; name the bucket"],
    );
    stops(
        "[attachments]\nstore = \"azure\"\n",
        &[
            "attachments.azure.account: is missing, and attachments.store is \"azure\"; name the storage account",
            "attachments.azure.container: is missing, and attachments.store is \"azure\"; name the container",
        ],
    );
    stops(
        &format!("{S3}access_key_id = \"id\"\n"),
        &[
            "attachments.s3.secret_access_key: is missing, and attachments.s3.access_key_id is set; set both, or none to use \
           those of the environment",
        ],
    );
    stops(
        &format!("{S3}endpoint = \"http://minio.example:9000\"\nexternal_endpoint = \"minio.example\"\n"),
        &[
            "attachments.s3.endpoint: is not https: attachments would go there readable; use https://…, or set \
             attachments.s3.allow_http = true if the way there is safe",
            "attachments.s3.external_endpoint: is not an http(s) address; use https://…",
        ],
    );
    stops(
        "[attachments]\ndownload_url_expires_in = \"8d\"\nmax_size = \"49GiB\"\nuploads = 0\nfetch_ports = [80, 0]\n",
        &[
            "attachments.uploads: is 0, so nothing could be done; set at least 1, or remove the key",
            "attachments.download_url_expires_in: is 8d, and no link lasts longer than 7d; lower it; a caller who needs a link \
             for longer asks for another",
            "attachments.max_size: is 49GiB, and an object store takes no upload of more than 48GiB in the parts it is sent in; \
             lower it",
            "attachments.fetch_ports: names no port, or 0, which is none; name ports such as [80, 443], or set \
             attachments.fetch_sources = false",
        ],
    );
    let most = given("[attachments]\ndownload_url_expires_in = \"7d\"\nmax_size = \"48GiB\"\n");
    assert_eq!(most.problems(), [""; 0]);
    stops(
        "[attachments]\nmax_size = 0\ndownload_url_secret = \"short\"\n",
        &[
            "attachments.max_size: is 0, so nothing could be done; set at least 1, or remove the key",
            "attachments.download_url_secret: is shorter than 32 characters; use the output of `openssl rand -base64 32`",
        ],
    );
    stops(
        "[attachments]\ndefault_expires_in = \"2d\"\nupload_expires_in = \"30s\"\n",
        &[
            "attachments.default_expires_in: is 2d, and attachments.max_expires_in is 1d; raise \
             attachments.max_expires_in, or lower it",
            "attachments.upload_refresh_interval: is 30s, and uploads expire after 30s, so they would expire while they \
             run; use half of attachments.upload_expires_in",
        ],
    );
}

#[test]
fn nodes_that_share_a_database_are_told_to_share_the_directory() {
    let warnings = |toml: &str| given(toml).load().config.warnings().join("\n");
    let shared = "[store]\nurl = \"postgres://m@db.example/m\"\n";
    assert!(
        warnings(shared).contains("set attachments.directory to one that all nodes see"),
        "{}",
        warnings(shared)
    );
    for toml in [
        String::new(),
        format!("{shared}[attachments]\ndirectory = \"/mnt/files\"\n"),
        format!("{shared}{S3}"),
        format!("{shared}{AZURE}"),
        format!("{shared}[attachments]\nstore = \"none\"\n"),
    ] {
        assert!(!warnings(&toml).contains("attachments"), "{toml}: {}", warnings(&toml));
    }
}

#[test]
fn settings_that_have_no_effect_are_told() {
    let warnings = |toml: &str| given(toml).load().config.warnings().join("\n");
    let unused = warnings("[attachments.s3]\nbucket = \"files\"\n");
    assert!(unused.contains("attachments.s3 is set, and attachments.store says not to use it"), "{unused}");
    let sealed =
        warnings(&format!("{S3}direct_download = true\n[encryption.dek]\nkey = \"{}=\"\n", "A".repeat(43)));
    assert!(sealed.contains("direct_download is on, and content is encrypted"), "{sealed}");
}

/// What the doctor says of the place where attachments are kept; it changes nothing there.
fn doctor(toml: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("memtrove.toml"), toml).unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_memtrove"))
        .args(["doctor", "--listen", "127.0.0.1:0"])
        .current_dir(folder.path())
        .env("XDG_DATA_HOME", folder.path())
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["memtrove.toml"], "the doctor changes nothing");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().skip_while(|line| !line.contains(" attachments: ")).take(2).collect();
    lines.join("\n")
}

fn says(toml: &str, expected: &str) {
    let said = doctor(toml);
    assert!(said.contains(expected), "{toml}\n{said}");
}

#[test]
fn the_doctor_looks_at_the_directory() {
    says("", "/memtrove/attachments is not there yet and will be created");
    says("[attachments]\nstore = \"none\"\n", "✓ attachments: attachments.store is none, so there are none");
    let denied = doctor("[attachments]\ndirectory = \"/proc/attachments\"\n");
    assert!(denied.starts_with("✗ attachments: /proc cannot be written: "), "{denied}");
    assert!(denied.ends_with("or choose another folder with attachments.directory"), "{denied}");
}

#[test]
fn the_doctor_looks_at_the_bucket() {
    let place = Bucket::fresh();
    let at = |bucket: &str, secret: &str, endpoint: &str| {
        format!(
            "[attachments]\nstore = \"s3\"\n[attachments.s3]\nbucket = \"{bucket}\"\nregion = \"{}\"\n\
             endpoint = \"{endpoint}\"\naccess_key_id = \"{}\"\nsecret_access_key = \"{secret}\"\nallow_http = true\n",
            place.region, place.access_key_id
        )
    };
    let (name, secret, endpoint) = (&place.bucket, place.secret_access_key, &place.endpoint);
    says(&at(name, secret, endpoint), &format!("✓ attachments: the bucket {name} can be read"));
    let fix = "→ check attachments.s3: bucket, region, endpoint and keys";
    for (toml, why) in [
        (
            at("nowhere", secret, endpoint),
            "! attachments: the bucket nowhere cannot be used now: the store is not available",
        ),
        (at(name, "hush", endpoint), "cannot be used now: the store denies access"),
        (at(name, secret, "http://127.0.0.1:1"), "cannot be used now: "),
    ] {
        let said = doctor(&toml);
        assert!(said.contains(why) && said.contains(fix) && !said.contains("hush"), "{toml}\n{said}");
    }
}

#[test]
fn the_doctor_looks_at_the_container() {
    let place = Container::fresh();
    let at = |container: &str, key: &str| {
        format!(
            "[attachments]\nstore = \"azure\"\n[attachments.azure]\naccount = \"{}\"\ncontainer = \"{container}\"\n\
             endpoint = \"{}\"\naccess_key = \"{key}\"\nallow_http = true\n",
            place.account, place.endpoint
        )
    };
    let name = &place.container;
    says(&at(name, place.access_key), &format!("✓ attachments: the container {name} can be read"));
    says(&at("nowhere", place.access_key), "! attachments: the container nowhere cannot be used now");
    says(&at(name, "aHVzaA=="), "cannot be used now: the store denies access");
    says(
        &at(name, "hush!"),
        "✗ attachments: the container memtrove cannot be used: the access key of the account is not base64",
    );
}
