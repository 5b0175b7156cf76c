//! Admin statistics: a few questions an operator asks, put to the Prometheus server that scrapes us.

use crate::telemetry::metrics::{DB_POOL_ACTIVE, DB_POOL_AVAILABLE, HTTP_SERVER_REQUESTS, STORE_OPERATION};
use memtrove_core::{Clock, Error, Resource, Result, Timestamp, Violation};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use utoipa::ToSchema;

const QUERY_TIMEOUT: Duration = Duration::from_secs(5);
const DEFAULT_RANGE_MICROS: i64 = 3_600_000_000;
const DEFAULT_STEP: Duration = Duration::from_secs(60);
/// Prometheus refuses to answer with more points than this per series.
const MOST_POINTS: u64 = 11_000;
/// Rates are taken over at least this long, so that a scrape every minute still gives a rate.
const SHORTEST_WINDOW: Duration = Duration::from_secs(300);

/// A statistic over time.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum StatsResponse {
    /// One line.
    Single(SingleStats),
    /// One line per operation.
    Multi(MultiStats),
}

/// A statistic with one line.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct SingleStats {
    /// Its name.
    #[schema(example = "request_rate")]
    pub metric: &'static str,
    /// What its values count.
    #[schema(example = "requests/sec")]
    pub unit: &'static str,
    /// The line, oldest point first; empty where nothing was recorded.
    pub data: Vec<StatsPoint>,
}

/// A statistic with a line per operation.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct MultiStats {
    /// Its name.
    #[schema(example = "store_throughput")]
    pub metric: &'static str,
    /// What its values count.
    #[schema(example = "operations/sec")]
    pub unit: &'static str,
    /// The lines, ordered by label.
    pub series: Vec<StatsSeries>,
}

/// One of several lines.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct StatsSeries {
    /// The operation it is about.
    pub label: String,
    /// The line, oldest point first.
    pub data: Vec<StatsPoint>,
}

/// One value in time.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct StatsPoint {
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub timestamp: Timestamp,
    /// How much; null where it is undefined, such as a share of nothing.
    pub value: Option<f64>,
}

/// The statistics there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stat {
    RequestRate,
    ErrorRate,
    LatencyP95,
    CacheHitRate,
    DbPoolUtilization,
    StoreLatencyP95,
    StoreThroughput,
}

impl Stat {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "request-rate" => Stat::RequestRate,
            "error-rate" => Stat::ErrorRate,
            "latency-p95" => Stat::LatencyP95,
            "cache-hit-rate" => Stat::CacheHitRate,
            "db-pool-utilization" => Stat::DbPoolUtilization,
            "store-latency-p95" => Stat::StoreLatencyP95,
            "store-throughput" => Stat::StoreThroughput,
            _ => return None,
        })
    }

    fn metric(self) -> &'static str {
        match self {
            Stat::RequestRate => "request_rate",
            Stat::ErrorRate => "error_rate",
            Stat::LatencyP95 => "latency_p95",
            Stat::CacheHitRate => "cache_hit_rate",
            Stat::DbPoolUtilization => "db_pool_utilization",
            Stat::StoreLatencyP95 => "store_latency_p95",
            Stat::StoreThroughput => "store_throughput",
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Stat::RequestRate => "requests/sec",
            Stat::ErrorRate | Stat::CacheHitRate | Stat::DbPoolUtilization => "percent",
            Stat::LatencyP95 | Stat::StoreLatencyP95 => "seconds",
            Stat::StoreThroughput => "operations/sec",
        }
    }

    fn is_per_operation(self) -> bool {
        matches!(self, Stat::StoreLatencyP95 | Stat::StoreThroughput)
    }

    /// The question in PromQL, with rates taken over `window`.
    ///
    /// `or vector(0)` stands where a series that was never incremented means zero; without it a server that has not
    /// failed yet would have no error rate at all.
    fn query(self, window: Duration) -> String {
        let w = format!("{}s", window.as_secs());
        let http = HTTP_SERVER_REQUESTS;
        let store = STORE_OPERATION;
        match self {
            Stat::RequestRate => format!("sum(rate({http}_count[{w}]))"),
            Stat::ErrorRate => format!(
                "100 * (sum(rate({http}_count{{status=~\"5..\"}}[{w}])) or vector(0)) / sum(rate({http}_count[{w}]))"
            ),
            Stat::LatencyP95 => format!("histogram_quantile(0.95, sum by (le) (rate({http}_bucket[{w}])))"),
            Stat::CacheHitRate => {
                let hits = format!("sum(rate(memory_entries_cache_hits_total[{w}]))");
                let misses = format!("sum(rate(memory_entries_cache_misses_total[{w}]))");
                format!("100 * ({hits} or vector(0)) / (({hits} + ({misses} or vector(0))) or {misses})")
            }
            Stat::DbPoolUtilization => {
                format!("100 * sum({DB_POOL_ACTIVE}) / (sum({DB_POOL_ACTIVE}) + sum({DB_POOL_AVAILABLE}))")
            }
            Stat::StoreLatencyP95 => {
                format!("histogram_quantile(0.95, sum by (le, operation) (rate({store}_bucket[{w}])))")
            }
            Stat::StoreThroughput => format!("sum by (operation) (rate({store}_count[{w}]))"),
        }
    }

    fn response(self, mut series: Vec<StatsSeries>) -> StatsResponse {
        let (metric, unit) = (self.metric(), self.unit());
        if self.is_per_operation() {
            series.sort_by(|a, b| a.label.cmp(&b.label));
            return StatsResponse::Multi(MultiStats { metric, unit, series });
        }
        let data = series.into_iter().next().map(|only| only.data).unwrap_or_default();
        StatsResponse::Single(SingleStats { metric, unit, data })
    }
}

/// The stretch of time a caller asks about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    start: Timestamp,
    end: Timestamp,
    step: Duration,
}

impl Range {
    fn parse(now: Timestamp, start: Option<&str>, end: Option<&str>, step: Option<&str>) -> Result<Self> {
        let mut violations = Vec::new();
        let mut complain = |field: &str, message: String| {
            violations.push(Violation { field: field.to_owned(), message });
        };
        let given =
            |text: Option<&str>| text.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
        let rfc3339 = "must be an RFC 3339 timestamp such as 2026-01-31T12:00:00Z";

        let end = given(end).map_or(Some(now), |text| Timestamp::parse(&text));
        if end.is_none() {
            complain("end", rfc3339.to_owned());
        }
        let default_start = end.unwrap_or(now).saturating_add_micros(-DEFAULT_RANGE_MICROS);
        let start = given(start).map_or(Some(default_start), |text| Timestamp::parse(&text));
        if start.is_none() {
            complain("start", rfc3339.to_owned());
        }
        let step = given(step).map_or(Some(DEFAULT_STEP), |text| parse_step(&text));
        if step.is_none() {
            complain("step", "must be a duration of at least one second such as 60s or 5m".to_owned());
        }
        if let (Some(start), Some(end), Some(step)) = (start, end, step) {
            let length = end.as_micros().saturating_sub(start.as_micros());
            let points = u128::from(length.unsigned_abs()) / step.as_micros().max(1);
            if length < 0 {
                complain("start", "must not be after end".to_owned());
            } else if points > u128::from(MOST_POINTS) {
                complain("step", format!("gives {points} points, at most {MOST_POINTS} are possible"));
            } else {
                return Ok(Self { start, end, step });
            }
        }
        Err(Error::violations(violations))
    }

    fn rate_window(self) -> Duration {
        self.step.max(SHORTEST_WINDOW)
    }
}

/// Reads `60s`, `5m`, `1h30m`, or bare seconds.
fn parse_step(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut seconds: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number: u64 = rest[..digits].parse().ok()?;
        let unit_and_more = &rest[digits..];
        let unit_length = unit_and_more.find(|c: char| c.is_ascii_digit()).unwrap_or(unit_and_more.len());
        let factor = match &unit_and_more[..unit_length] {
            "" if digits == text.len() => 1,
            "s" => 1,
            "m" => 60,
            "h" => 3_600,
            "d" => 86_400,
            "w" => 604_800,
            _ => return None,
        };
        seconds = seconds.checked_add(number.checked_mul(factor)?)?;
        rest = &unit_and_more[unit_length..];
    }
    (seconds > 0).then(|| Duration::from_secs(seconds))
}

/// The Prometheus server that scrapes us, if there is one.
#[derive(Clone)]
pub struct Prometheus {
    server: Option<PrometheusServer>,
    clock: Arc<dyn Clock>,
}

#[derive(Clone)]
struct PrometheusServer {
    endpoint: String,
    client: reqwest::Client,
}

impl Prometheus {
    /// With the base address of the server (`prometheus.url`), or none; then every statistic is
    /// [`Error::PROMETHEUS_NOT_CONFIGURED`]. Fails when no HTTP client can be made.
    pub fn new(url: Option<&str>, clock: Arc<dyn Clock>) -> Result<Self, reqwest::Error> {
        let server = match url.map(str::trim).filter(|url| !url.is_empty()) {
            Some(url) => Some(PrometheusServer {
                endpoint: format!("{}/api/v1/query_range", url.trim_end_matches('/')),
                client: reqwest::Client::builder().timeout(QUERY_TIMEOUT).build()?,
            }),
            None => None,
        };
        Ok(Self { server, clock })
    }

    /// The statistic `name` from `start` (default: an hour before `end`) to `end` (default: now), a point every `step`
    /// (default: a minute).
    pub async fn stats(
        &self,
        name: &str,
        start: Option<&str>,
        end: Option<&str>,
        step: Option<&str>,
    ) -> Result<StatsResponse> {
        let stat = Stat::named(name)
            .ok_or_else(|| Error::not_found(Resource::Route, format!("/v1/admin/stats/{name}")))?;
        let server = self.server.as_ref().ok_or(Error::PROMETHEUS_NOT_CONFIGURED)?;
        let range = Range::parse(self.clock.now(), start, end, step)?;
        match server.query(&stat.query(range.rate_window()), range).await {
            Ok(series) => Ok(stat.response(series)),
            Err(failure) => {
                tracing::warn!(endpoint = server.endpoint, %failure, "Prometheus did not answer");
                Err(Error::PROMETHEUS_UNAVAILABLE)
            }
        }
    }
}

/// Why there is no answer; for the log only.
#[derive(Debug, thiserror::Error)]
enum QueryFailure {
    #[error("{}", with_causes(.0))]
    Transport(#[from] reqwest::Error),
    #[error("status {status}: {text}")]
    Refused { status: u16, text: String },
    #[error("not an answer to a range query: {0}")]
    Garbage(String),
}

/// reqwest says what it was doing; what went wrong stands in the causes.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

impl PrometheusServer {
    async fn query(&self, query: &str, range: Range) -> Result<Vec<StatsSeries>, QueryFailure> {
        let parameters = [
            ("query", query.to_owned()),
            ("start", unix_seconds(range.start)),
            ("end", unix_seconds(range.end)),
            ("step", range.step.as_secs().to_string()),
        ];
        let response = self.client.get(&self.endpoint).query(&parameters).send().await?;
        let status = response.status();
        let body = response.bytes().await?;
        if !status.is_success() {
            let text = String::from_utf8_lossy(&body).chars().take(200).collect();
            return Err(QueryFailure::Refused { status: status.as_u16(), text });
        }
        parse_matrix(&body)
    }
}

fn unix_seconds(timestamp: Timestamp) -> String {
    let micros = timestamp.as_micros();
    format!("{}.{:06}", micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000))
}

#[derive(Deserialize)]
struct PrometheusResponse {
    status: String,
    data: Option<PrometheusData>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PrometheusData {
    result_type: String,
    result: Vec<AnswerSeries>,
}

#[derive(Deserialize)]
struct AnswerSeries {
    metric: BTreeMap<String, String>,
    values: Vec<(f64, String)>,
}

fn parse_matrix(body: &[u8]) -> Result<Vec<StatsSeries>, QueryFailure> {
    let answer: PrometheusResponse =
        serde_json::from_slice(body).map_err(|error| QueryFailure::Garbage(error.to_string()))?;
    let data = match answer.data {
        Some(data) if answer.status == "success" && data.result_type == "matrix" => data,
        _ => return Err(QueryFailure::Garbage(format!("status {}, no matrix", answer.status))),
    };
    data.result
        .into_iter()
        .map(|AnswerSeries { mut metric, values }| {
            let label = metric.remove("operation").unwrap_or_else(|| "unknown".to_owned());
            let data = values.into_iter().map(point).collect::<Result<_, _>>()?;
            Ok(StatsSeries { label, data })
        })
        .collect()
}

fn point((seconds, text): (f64, String)) -> Result<StatsPoint, QueryFailure> {
    let value: f64 = text.parse().map_err(|_| QueryFailure::Garbage(format!("value {text:?}")))?;
    Ok(StatsPoint {
        timestamp: Timestamp::from_micros((seconds * 1e6).round() as i64),
        value: value.is_finite().then_some(value),
    })
}

#[cfg(test)]
mod tests;
