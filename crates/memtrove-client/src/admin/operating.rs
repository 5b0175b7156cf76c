//! Eviction, jobs and statistics.

use super::{Admin, EvictRequest, Job, JobStarted, ReindexRequest, StatsSummary};
use crate::error::ApiError;
use crate::files::{Retention, RetentionReport, Scope};
use crate::sse::{self, AtEnd, Event};
use crate::{Error, Result, Timestamp, operations};
use futures_util::{Stream, TryStreamExt, future, stream};
use http::StatusCode;
use serde::Deserialize;
use uuid::Uuid;

/// The stretch of time that a statistic is about; by default the last hour.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatsRange {
    /// From.
    pub start: Option<Timestamp>,
    /// To.
    pub end: Option<Timestamp>,
    /// How far its points lie apart, such as `60s`.
    pub step: Option<String>,
}

/// A statistic.
#[derive(Debug, Clone, PartialEq)]
pub struct Stats {
    /// Its name.
    pub metric: String,
    /// What its values count.
    pub unit: String,
    /// Its lines: one without a label, or one per operation.
    pub lines: Vec<StatsLine>,
}

/// A line of a statistic.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct StatsLine {
    /// The operation it is about.
    pub label: Option<String>,
    /// Its points, oldest first.
    pub data: Vec<StatsPoint>,
}

/// One value in time.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct StatsPoint {
    /// When.
    pub timestamp: Timestamp,
    /// How much; none where it is undefined, such as a share of nothing.
    pub value: Option<f64>,
}

/// A statistic as it is sent: with one line, or with many.
#[derive(Deserialize)]
struct StatsResponse {
    metric: String,
    unit: String,
    data: Option<Vec<StatsPoint>>,
    series: Option<Vec<StatsLine>>,
}

impl From<StatsResponse> for Stats {
    fn from(answer: StatsResponse) -> Self {
        let single = answer.data.map(|data| StatsLine { label: None, data });
        let lines = single.into_iter().chain(answer.series.into_iter().flatten()).collect();
        Self { metric: answer.metric, unit: answer.unit, lines }
    }
}

impl Admin {
    /// Removes, for good, the trees that were deleted longer ago than the retention period.
    pub async fn evict(&self, request: EvictRequest) -> Result<()> {
        self.call(&operations::EVICT, &[])?.json(&request)?.patiently().finish().await
    }

    /// The same, telling from 0 to 100 how far it is; a stream that ends before that ends with an error. Dropping it ends the
    /// eviction after its current batch.
    pub fn evict_with_progress(
        &self,
        request: EvictRequest,
    ) -> impl Stream<Item = Result<u8>> + Send + use<> {
        let admin = self.clone();
        let open = move |_: Option<&str>| {
            admin.call(&operations::EVICT, &[])?.query("async", Some(true)).json(&request)
        };
        // Between two batches it is silent for as long as a batch takes.
        let manner = self.client.silent_stream_manner(AtEnd::Stop);
        let told = sse::follow(manner, None, open, |_| false);
        to_the_end(told.and_then(|event| future::ready(progress(&event))))
    }

    /// Removes events and audit records that are older than this many days, of whatever user. With a reason (see
    /// [`Admin::because`]) also audit records that have to stay otherwise; the trail then tells of it.
    pub async fn apply_retention(&self, scope: &Scope, retention: Retention) -> Result<RetentionReport> {
        self.call(&operations::APPLY_RETENTION, &scope.names())?.json(&retention)?.patiently().receive().await
    }

    /// Has what searches look at made anew.
    pub async fn reindex_tenant(&self, request: ReindexRequest) -> Result<JobStarted> {
        self.call(&operations::REINDEX_TENANT, &[])?.json(&request)?.receive().await
    }

    /// How a job is doing.
    pub async fn get_job(&self, id: Uuid) -> Result<Job> {
        self.call(&operations::GET_JOB, &[&id.to_string()])?.receive().await
    }

    /// How much there is in the tenant.
    pub async fn stats_summary(&self) -> Result<StatsSummary> {
        self.call(&operations::STATS_SUMMARY, &[])?.receive().await
    }

    /// A statistic over time, such as `request-rate` or `latency-p95`, from the Prometheus that the service is told of.
    pub async fn stats(&self, name: &str, range: StatsRange) -> Result<Stats> {
        let answer: StatsResponse = self
            .call(&operations::STATS, &[name])?
            .query("start", range.start)
            .query("end", range.end)
            .query("step", range.step)
            .receive()
            .await?;
        Ok(answer.into())
    }
}

/// What is told of an eviction. That it is done is said by 100, not by an end, which a broken connection has too.
fn to_the_end(told: impl Stream<Item = Result<u8>> + Send) -> impl Stream<Item = Result<u8>> + Send {
    stream::try_unfold((Box::pin(told), None), |(mut told, last)| async move {
        match told.try_next().await? {
            Some(percent) => Ok(Some((percent, (told, Some(percent))))),
            None if last == Some(100) => Ok(None),
            None => {
                let ended = format!("it ended at {} of 100", last.unwrap_or(0));
                Err(Error::transport(operations::EVICT.id, ended))
            }
        }
    })
}

fn progress(event: &Event) -> Result<u8> {
    #[derive(Deserialize)]
    struct EvictionEvent {
        progress: Option<u8>,
        error: Option<String>,
    }
    let read = |error: crate::BoxError| Error::decode(operations::EVICT.id, error, event.data.as_bytes());
    let said: EvictionEvent = serde_json::from_str(&event.data).map_err(|error| read(error.into()))?;
    match (said.progress, said.error) {
        (Some(percent), None) => Ok(percent),
        // The stream had begun with 200, so the status is the one that it would have had.
        (_, Some(message)) => Err(Error::Api(Box::new(ApiError {
            status: StatusCode::INTERNAL_SERVER_ERROR,
            code: "eviction_failed".to_owned(),
            message,
            request_id: None,
            details: serde_json::Map::new(),
            raw_body: event.data.clone(),
        }))),
        (None, None) => Err(read("it says nothing of progress".into())),
    }
}
