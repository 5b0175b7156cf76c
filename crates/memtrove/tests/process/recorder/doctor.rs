//! Whether nodes can note who records what, before anybody needs to know.

use crate::recorder::support::*;
use std::process::Command;

fn doctor(url: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_memtrove"))
        .args(["doctor", "--listen", "127.0.0.1:0"])
        .current_dir(folder.path())
        .env("XDG_DATA_HOME", folder.path())
        .env("MEMTROVE_REDIS__URL", url)
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "a server could run, also without it: {text}");
    text
}

#[test]
fn the_doctor_says_whether_redis_answers() {
    let redis = Redis::start();
    let text = doctor(&redis.url());
    let line = text.lines().find(|line| line.contains("redis: ")).unwrap_or_else(|| panic!("{text}"));
    assert!(
        line.starts_with("✓ redis: ") && line.ends_with(&format!("answers at {}", redis.url())),
        "{line}"
    );

    redis.kill();
    let text = doctor(&redis.url().replace("redis://", "redis://:hush@"));
    assert!(text.contains("! redis: redis://[redacted]@127.0.0.1:"), "{text}");
    assert!(text.contains("does not answer, so no response can be recorded"), "{text}");
    assert!(!text.contains("hush"), "{text}");
}
