use super::*;
use std::io::Write;
use std::sync::{Arc, Mutex};

#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The lines that `work` logs under `filter`.
fn logged(format: LogFormat, filter: &str, work: impl FnOnce()) -> String {
    let buffer = Buffer::default();
    let config = TelemetryConfig { format, filter: filter.to_owned(), ..TelemetryConfig::default() };
    let writer = {
        let buffer = buffer.clone();
        move || buffer.clone()
    };
    let (subscriber, _guard) = subscriber(&config, writer, false).unwrap();
    tracing::subscriber::with_default(subscriber, work);
    let bytes = buffer.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn audit_lines_are_logged_even_when_everything_is_off() {
    let lines = logged(LogFormat::Json, "off,admin.audit=off", || {
        tracing::info!(target: "admin.audit", "ADMIN_READ user=alice");
        tracing::info!(target: "membership.audit", "MEMBERSHIP_ADD user=bob");
        tracing::info!(target: "files.operator", "a user was forgotten");
        tracing::error!("anything else");
    });
    assert!(lines.contains("ADMIN_READ user=alice"), "{lines}");
    assert!(lines.contains("MEMBERSHIP_ADD user=bob"), "{lines}");
    assert!(lines.contains("a user was forgotten"), "{lines}");
    assert_eq!(lines.lines().count(), 3, "{lines}");
}

#[test]
fn the_filter_selects_by_level_and_target() {
    let lines = logged(LogFormat::Json, "warn,chatty=debug", || {
        tracing::debug!(target: "chatty", "one");
        tracing::info!(target: "quiet", "two");
        tracing::warn!(target: "quiet", "three");
    });
    let seen: Vec<_> = ["one", "two", "three"].into_iter().filter(|word| lines.contains(word)).collect();
    assert_eq!(seen, ["one", "three"]);
}

#[test]
fn a_json_line_is_one_object_whatever_is_logged() {
    let lines = logged(LogFormat::Json, "info", || {
        tracing::info!(target: "t", number = 7, flag = true, text = "a\nb\"c", "hello\nworld");
    });
    assert_eq!(lines.lines().count(), 1, "{lines}");
    let line: serde_json::Value = serde_json::from_str(&lines).unwrap();
    assert!(memtrove_core::Timestamp::parse(line["timestamp"].as_str().unwrap()).is_some());
    insta::assert_json_snapshot!(line, { ".timestamp" => "[now]" }, @r#"
    {
      "timestamp": "[now]",
      "level": "INFO",
      "target": "t",
      "message": "hello\nworld",
      "number": {
        "$serde_json::private::Number": "7"
      },
      "flag": true,
      "text": "a\nb\"c"
    }
    "#);
}

#[test]
fn a_pretty_line_reads_from_left_to_right() {
    let line = logged(LogFormat::Pretty, "info", || tracing::info!(target: "t", number = 7, "hello"));
    let (_, rest) = line.split_once(' ').unwrap();
    assert_eq!(rest, " INFO t: hello number=7\n");
}

#[test]
fn a_filter_that_is_none_is_refused_with_its_text() {
    let config = TelemetryConfig { filter: "memtrove=loud".to_owned(), ..TelemetryConfig::default() };
    let error = subscriber(&config, std::io::stderr, false).err().unwrap().to_string();
    assert!(error.contains("memtrove=loud"), "{error}");
}

#[test]
fn lines_of_a_request_carry_its_id_even_when_spans_are_off() {
    use crate::shell::{ShellConfig, shell};
    use axum::{Router, body::Body, routing::get};
    use tower::ServiceExt;

    async fn handler() -> &'static str {
        tracing::info!(target: "t", "first");
        tokio::task::yield_now().await;
        tracing::info!(target: "t", "second");
        "done"
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for format in [LogFormat::Json, LogFormat::Pretty] {
        let lines = logged(format, "info", || {
            let router = shell(Router::new().route("/", get(handler)), &ShellConfig::default());
            let request =
                http::Request::get("/").header("x-request-id", "abc-123").body(Body::empty()).unwrap();
            runtime.block_on(router.oneshot(request)).unwrap();
            tracing::info!(target: "t", "afterwards");
        });
        let with_id: Vec<bool> = lines.lines().map(|line| line.contains("abc-123")).collect();
        assert_eq!(with_id, [true, true, false], "{lines}");
    }
}

#[test]
fn a_line_per_request_appears_when_asked_for() {
    use crate::shell::{ShellConfig, shell};
    use axum::{Router, body::Body, routing::get};
    use tower::ServiceExt;

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ask = |filter: &str| {
        logged(LogFormat::Json, filter, || {
            let router =
                shell(Router::new().route("/things/{id}", get(async || "ok")), &ShellConfig::default());
            let request = http::Request::get("/things/7").body(Body::empty()).unwrap();
            runtime.block_on(router.oneshot(request)).unwrap();
        })
    };
    assert_eq!(ask("info"), "");
    let line: serde_json::Value = serde_json::from_str(&ask("info,memtrove::access=debug")).unwrap();
    assert_eq!((&line["route"], &line["status"]), (&"/things/{id}".into(), &200.into()));
    assert!(line["request_id"].is_string());
}
