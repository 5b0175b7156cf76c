use super::*;
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::routing::get;
use memtrove_core::{Details, SystemClock};
use std::sync::Mutex;
use uuid::Uuid;

struct Noon;

impl Clock for Noon {
    fn now(&self) -> Timestamp {
        Timestamp::parse("2026-01-31T12:00:00Z").unwrap()
    }

    fn new_id(&self) -> Uuid {
        Uuid::nil()
    }
}

/// A stand-in for Prometheus' HTTP API that answers every range query with `status` and `body`.
struct Double {
    url: String,
    queries: Arc<Mutex<Vec<String>>>,
}

impl Double {
    async fn answering(status: u16, body: &'static str) -> Self {
        let queries = Arc::new(Mutex::new(Vec::new()));
        let handler = move |State(seen): State<Arc<Mutex<Vec<String>>>>, RawQuery(query): RawQuery| async move {
            seen.lock().unwrap().push(query.unwrap_or_default());
            (http::StatusCode::from_u16(status).unwrap(), body)
        };
        let router =
            Router::new().route("/prom/api/v1/query_range", get(handler)).with_state(queries.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/prom/", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, queries }
    }

    fn client(&self) -> Prometheus {
        Prometheus::new(Some(&self.url), Arc::new(Noon)).unwrap()
    }
}

const EMPTY: &str = r#"{"status":"success","data":{"resultType":"matrix","result":[]}}"#;

#[tokio::test]
async fn a_single_statistic_is_one_line_with_nulls_where_it_is_undefined() {
    let double = Double::answering(
        200,
        r#"{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[
            [1769860800,"0.5"],[1769860860.123,"NaN"],[1769860920,"+Inf"],[1769860980,"-Inf"],[1769861040,"2e-05"]]}]}}"#,
    )
    .await;
    let stats = double.client().stats("request-rate", None, None, None).await.unwrap();
    insta::assert_json_snapshot!(stats, @r#"
    {
      "metric": "request_rate",
      "unit": "requests/sec",
      "data": [
        {
          "timestamp": "2026-01-31T12:00:00.000000Z",
          "value": 0.5
        },
        {
          "timestamp": "2026-01-31T12:01:00.123000Z",
          "value": null
        },
        {
          "timestamp": "2026-01-31T12:02:00.000000Z",
          "value": null
        },
        {
          "timestamp": "2026-01-31T12:03:00.000000Z",
          "value": null
        },
        {
          "timestamp": "2026-01-31T12:04:00.000000Z",
          "value": 0.00002
        }
      ]
    }
    "#);
}

#[tokio::test]
async fn a_statistic_by_operation_is_a_line_per_operation() {
    let double = Double::answering(
        200,
        r#"{"status":"success","warnings":["partial"],"data":{"resultType":"matrix","result":[
            {"metric":{"operation":"sync"},"values":[[1769860800,"3"]]},
            {"metric":{"operation":"append"},"values":[[1769860800,"4"],[1769860860,"5"]]}]}}"#,
    )
    .await;
    let stats = double.client().stats("store-throughput", None, None, None).await.unwrap();
    insta::assert_json_snapshot!(stats, @r#"
    {
      "metric": "store_throughput",
      "unit": "operations/sec",
      "series": [
        {
          "label": "append",
          "data": [
            {
              "timestamp": "2026-01-31T12:00:00.000000Z",
              "value": 4.0
            },
            {
              "timestamp": "2026-01-31T12:01:00.000000Z",
              "value": 5.0
            }
          ]
        },
        {
          "label": "sync",
          "data": [
            {
              "timestamp": "2026-01-31T12:00:00.000000Z",
              "value": 3.0
            }
          ]
        }
      ]
    }
    "#);
}

#[tokio::test]
async fn nothing_recorded_is_an_empty_array() {
    let double = Double::answering(200, EMPTY).await;
    let client = double.client();
    let single = client.stats("latency-p95", None, None, None).await.unwrap();
    let multi = client.stats("store-latency-p95", None, None, None).await.unwrap();
    let text = |stats: &StatsResponse| serde_json::to_string(stats).unwrap();
    assert_eq!(text(&single), r#"{"metric":"latency_p95","unit":"seconds","data":[]}"#);
    assert_eq!(text(&multi), r#"{"metric":"store_latency_p95","unit":"seconds","series":[]}"#);
}

#[tokio::test]
async fn the_range_defaults_to_the_last_hour_by_the_minute() {
    let double = Double::answering(200, EMPTY).await;
    double.client().stats("request-rate", None, None, None).await.unwrap();
    let asked: Vec<(String, String)> =
        serde_urlencoded::from_str(&double.queries.lock().unwrap()[0]).unwrap();
    insta::assert_debug_snapshot!(asked, @r#"
    [
        (
            "query",
            "sum(rate(http_server_requests_seconds_count[300s]))",
        ),
        (
            "start",
            "1769857200.000000",
        ),
        (
            "end",
            "1769860800.000000",
        ),
        (
            "step",
            "60",
        ),
    ]
    "#);
}

#[tokio::test]
async fn a_given_range_is_passed_on() {
    let double = Double::answering(200, EMPTY).await;
    double
        .client()
        .stats("error-rate", Some("2026-01-30T00:00:00.5Z"), Some("2026-01-30T02:00:00+01:00"), Some("10m"))
        .await
        .unwrap();
    let asked: Vec<(String, String)> =
        serde_urlencoded::from_str(&double.queries.lock().unwrap()[0]).unwrap();
    insta::assert_debug_snapshot!(asked, @r#"
    [
        (
            "query",
            "100 * (sum(rate(http_server_requests_seconds_count{status=~\"5..\"}[600s])) or vector(0)) / sum(rate(http_server_requests_seconds_count[600s]))",
        ),
        (
            "start",
            "1769731200.500000",
        ),
        (
            "end",
            "1769734800.000000",
        ),
        (
            "step",
            "600",
        ),
    ]
    "#);
}

#[tokio::test]
async fn what_is_not_an_answer_is_unavailable() {
    let garbage = [
        (200, ""),
        (200, "<html>It works!</html>"),
        (200, "null"),
        (200, r#"{"status":"success"}"#),
        (200, r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#),
        (200, r#"{"status":"error","errorType":"execution","error":"query timed out"}"#),
        (
            200,
            r#"{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1,"x"]]}]}}"#,
        ),
        (
            200,
            r#"{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[["a","1"]]}]}}"#,
        ),
        (
            200,
            r#"{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1]]}]}}"#,
        ),
        (422, r#"{"status":"error","errorType":"execution","error":"too many samples"}"#),
        (503, EMPTY),
        (302, EMPTY),
    ];
    for (status, body) in garbage {
        let double = Double::answering(status, body).await;
        let stats = double.client().stats("request-rate", None, None, None).await;
        assert_eq!(stats, Err(Error::PROMETHEUS_UNAVAILABLE), "{status} {body}");
    }
}

#[tokio::test]
async fn nobody_listening_is_unavailable() {
    let unused = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let client = Prometheus::new(Some(&format!("http://{unused}")), Arc::new(Noon)).unwrap();
    assert_eq!(client.stats("request-rate", None, None, None).await, Err(Error::PROMETHEUS_UNAVAILABLE));
}

#[tokio::test]
async fn without_a_server_there_are_no_statistics_but_names_are_still_checked() {
    for url in [None, Some(""), Some("  ")] {
        let client = Prometheus::new(url, Arc::new(SystemClock)).unwrap();
        let stats = client.stats("request-rate", Some("garbage"), None, None).await;
        assert_eq!(stats, Err(Error::PROMETHEUS_NOT_CONFIGURED));
        let unknown = client.stats("requests", None, None, None).await.unwrap_err();
        assert_eq!(unknown, Error::not_found(Resource::Route, "/v1/admin/stats/requests"));
    }
}

#[test]
fn every_complaint_about_a_range_names_its_field() {
    let complaints = |start, end, step| match Range::parse(Noon.now(), start, end, step) {
        Err(Error { details: Details::Violations(violations), .. }) => {
            violations.into_iter().map(|v| v.field).collect::<Vec<_>>()
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(
        complaints(Some("yesterday"), Some("2026-13-01T00:00:00Z"), Some("fast")),
        ["end", "start", "step"]
    );
    assert_eq!(complaints(Some("2026-01-31T12:00:01Z"), None, None), ["start"]);
    assert_eq!(complaints(Some("2026-01-01T00:00:00Z"), None, Some("1s")), ["step"]);
    for step in
        ["0", "0s", "-5s", "5x", "s", "1m 5s", "500ms", "1.5m", "99999999999999999999s", "9999999999999999w"]
    {
        assert_eq!(complaints(None, None, Some(step)), ["step"], "{step}");
    }
}

#[test]
fn steps_are_read_with_units_or_as_seconds() {
    let seconds = |text| parse_step(text).map(|step| step.as_secs());
    assert_eq!(seconds("60s"), Some(60));
    assert_eq!(seconds("5m"), Some(300));
    assert_eq!(seconds("1h30m"), Some(5_400));
    assert_eq!(seconds("1d"), Some(86_400));
    assert_eq!(seconds("15"), Some(15));
    assert_eq!(seconds("1h30"), None);
    assert_eq!(seconds("ä"), None);
}

#[test]
fn the_questions() {
    let names = [
        "request-rate",
        "error-rate",
        "latency-p95",
        "cache-hit-rate",
        "db-pool-utilization",
        "store-latency-p95",
        "store-throughput",
    ];
    let questions: Vec<_> =
        names.iter().map(|name| Stat::named(name).unwrap().query(Duration::from_secs(300))).collect();
    insta::assert_snapshot!(questions.join("\n"), @r#"
    sum(rate(http_server_requests_seconds_count[300s]))
    100 * (sum(rate(http_server_requests_seconds_count{status=~"5.."}[300s])) or vector(0)) / sum(rate(http_server_requests_seconds_count[300s]))
    histogram_quantile(0.95, sum by (le) (rate(http_server_requests_seconds_bucket[300s])))
    100 * (sum(rate(memory_entries_cache_hits_total[300s])) or vector(0)) / ((sum(rate(memory_entries_cache_hits_total[300s])) + (sum(rate(memory_entries_cache_misses_total[300s])) or vector(0))) or sum(rate(memory_entries_cache_misses_total[300s])))
    100 * sum(db_pool_active) / (sum(db_pool_active) + sum(db_pool_available))
    histogram_quantile(0.95, sum by (le, operation) (rate(memory_store_operation_seconds_bucket[300s])))
    sum by (operation) (rate(memory_store_operation_seconds_count[300s]))
    "#);
}
