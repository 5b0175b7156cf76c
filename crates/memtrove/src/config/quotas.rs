//! `[quotas]`: how much users and services may ask about files and memories.

use super::Span;
use memtrove_server::auth::config::ConfigProblem;
use memtrove_service::quota::{self, QuotaLimits, QuotaSettings};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

/// `[quotas]`. Nothing is limited unless it is set.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quotas {
    /// Reads of what one user has stored, by any caller that names that user alone.
    pub user_reads: Option<Rate>,
    /// Writes to what one user has stored, by any caller that names that user alone.
    pub user_writes: Option<Rate>,
    /// Reads by one service in one tenant, whosever they are for.
    pub service_reads: Option<Rate>,
    /// Writes by one service in one tenant, whosever they are for.
    pub service_writes: Option<Rate>,
    /// How many files one user may have.
    pub max_files: Option<u64>,
    /// How many events one user may have.
    pub max_events: Option<u64>,
    /// Tenants that differ, by name: `[quotas.tenants."acme"]`.
    pub tenants: BTreeMap<String, TenantQuotas>,
}

/// `[quotas.tenants."…"]`: what is set here replaces what is set for everybody.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TenantQuotas {
    /// See [`Quotas::user_reads`].
    pub user_reads: Option<Rate>,
    /// See [`Quotas::user_writes`].
    pub user_writes: Option<Rate>,
    /// See [`Quotas::service_reads`].
    pub service_reads: Option<Rate>,
    /// See [`Quotas::service_writes`].
    pub service_writes: Option<Rate>,
    /// See [`Quotas::max_files`].
    pub max_files: Option<u64>,
    /// See [`Quotas::max_events`].
    pub max_events: Option<u64>,
}

/// So many calls in so much time: `{ limit = 600, window = "1m" }`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "so many calls in so much time: { limit = 600, window = \"1m\" }")]
pub struct Rate {
    /// How many.
    pub limit: u64,
    /// In how much time, in whole seconds up to a day.
    pub window: Span,
}

/// Callers are told the window in seconds, and buckets do not outlive the process.
const WINDOWS: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(24 * 3600);

impl Quotas {
    /// What cannot stand, each with what to do about it.
    pub(super) fn problems(&self) -> Vec<ConfigProblem> {
        let mut found = self.everywhere().problems("quotas");
        for (tenant, quotas) in &self.tenants {
            found.extend(quotas.problems(&format!("quotas.tenants.{tenant}")));
        }
        found
    }

    /// The same, as the use cases take it.
    pub fn settings(&self) -> QuotaSettings {
        let tenants = self.tenants.iter().map(|(name, quotas)| (name.clone(), quotas.limits()));
        QuotaSettings { everywhere: self.everywhere().limits(), tenants: tenants.collect() }
    }

    fn everywhere(&self) -> TenantQuotas {
        let Self {
            user_reads,
            user_writes,
            service_reads,
            service_writes,
            max_files,
            max_events,
            tenants: _,
        } = *self;
        TenantQuotas { user_reads, user_writes, service_reads, service_writes, max_files, max_events }
    }
}

impl TenantQuotas {
    fn problems(&self, section: &str) -> Vec<ConfigProblem> {
        let rates = [
            ("user_reads", self.user_reads),
            ("user_writes", self.user_writes),
            ("service_reads", self.service_reads),
            ("service_writes", self.service_writes),
        ];
        let caps = [("max_files", self.max_files), ("max_events", self.max_events)];
        let counts = rates
            .iter()
            .map(|(key, rate)| (format!("{section}.{key}.limit"), rate.map(|rate| rate.limit)))
            .chain(caps.iter().map(|(key, cap)| (format!("{section}.{key}"), *cap)));
        let mut found: Vec<ConfigProblem> = counts
            .filter(|(_, count)| *count == Some(0))
            .map(|(key, _)| {
                ConfigProblem::new(
                    key,
                    "is 0, so everything would be refused",
                    "set at least 1, or remove the quota",
                )
            })
            .collect();
        for (key, rate) in rates {
            let Some(Rate { window, .. }) = rate else { continue };
            if !WINDOWS.contains(&window.0) || window.0.subsec_nanos() != 0 {
                found.push(ConfigProblem::new(
                    format!("{section}.{key}.window"),
                    format!("is {window}, which is not a window to count calls in"),
                    "use whole seconds between 1s and 1d",
                ));
            }
        }
        found
    }

    fn limits(&self) -> QuotaLimits {
        let rate =
            |rate: Option<Rate>| rate.map(|Rate { limit, window }| quota::Rate { limit, window: window.0 });
        QuotaLimits {
            user_reads: rate(self.user_reads),
            user_writes: rate(self.user_writes),
            service_reads: rate(self.service_reads),
            service_writes: rate(self.service_writes),
            max_files: self.max_files,
            max_events: self.max_events,
        }
    }
}
