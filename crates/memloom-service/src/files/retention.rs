//! Removing what is older than somebody wants to keep: events and audit records, never files.

use super::{Files, audit as trail};
use crate::files_metrics;
use memloom_core::files::{Code, Refusal, Scope, ScopedCaller, body};
use memloom_core::{Error, Result, Timestamp};
use memloom_store::changes::{self, Change, ChangeKind};
use memloom_store::files::scopes::ScopeId;
use memloom_store::files::{audit, events, scopes};
use serde_json::{Map, Value};

const MAX_DAYS: i64 = 36_500;
const DAY_MICROS: i64 = 24 * 3600 * 1_000_000;
/// Rows that one unit of work removes: nobody else can write meanwhile.
const BATCH: i64 = 2_000;
const SCOPES_AT_ONCE: i64 = 100;

/// What retention removed, and up to when.
#[derive(Debug, Clone, Copy)]
pub struct RetentionReport {
    /// Events.
    pub events_deleted: u64,
    /// Records of the audit trail.
    pub audit_deleted: u64,
    /// Entries of the event index.
    pub search_documents_deleted: u64,
    /// Events before this went.
    pub cutoff_events: Timestamp,
    /// Audit records before this went.
    pub cutoff_audit: Timestamp,
    /// Snapshots before this would go.
    pub cutoff_snapshots: Timestamp,
}

impl Files {
    /// Applies the days that a request names to one scope.
    pub async fn apply_retention(
        &self,
        caller: &ScopedCaller,
        request: &Map<String, Value>,
    ) -> Result<RetentionReport> {
        let [events_days, audit_days, snapshots_days] = read_days(request)?;
        let as_of = body::instant(request, "as_of_utc")?.unwrap_or_else(|| self.cx.clock.now());
        let before = |days: i64| as_of.saturating_add_micros(-days * DAY_MICROS);
        let (cutoff_events, cutoff_audit) = (before(events_days), before(audit_days));
        let (events_deleted, audit_deleted) =
            self.expire(&caller.scope, Some(cutoff_events), Some(cutoff_audit)).await?;
        tracing::info!(
            target: "files.operator",
            principal = caller.principal, events_deleted, audit_deleted, "retention was applied"
        );
        Ok(RetentionReport {
            events_deleted,
            audit_deleted,
            search_documents_deleted: events_deleted,
            cutoff_events,
            cutoff_audit,
            cutoff_snapshots: before(snapshots_days),
        })
    }

    /// Applies the deployment's own days to every scope; says how many events and audit records went. A scope that cannot
    /// be worked on does not keep the others from it.
    pub async fn sweep(&self) -> Result<(u64, u64)> {
        let days = self.cx.settings.retention;
        let now = self.cx.clock.now();
        let before =
            |days: Option<u32>| days.map(|days| now.saturating_add_micros(-i64::from(days) * DAY_MICROS));
        let (cutoff_events, cutoff_audit) = (before(days.events_days), before(days.audit_days));
        let (mut all_events, mut all_audit) = (0, 0);
        if cutoff_events.is_none() && cutoff_audit.is_none() {
            return Ok((0, 0));
        }
        let (mut after, mut failed) = (ScopeId(0), None);
        loop {
            let from = after;
            let page = self
                .cx
                .store
                .read("list_scopes", move |tx| Ok::<_, Error>(scopes::after(tx, None, from, SCOPES_AT_ONCE)?))
                .await?;
            let Some((last, _)) = page.last() else {
                return failed.map_or(Ok((all_events, all_audit)), Err);
            };
            after = *last;
            for (_, scope) in page {
                match self.expire(&scope, cutoff_events, cutoff_audit).await {
                    Ok((events, audit)) => (all_events, all_audit) = (all_events + events, all_audit + audit),
                    Err(error) => failed = failed.or(Some(error)),
                }
            }
        }
    }

    /// Removes a scope's events and audit records from before these instants; says how many.
    async fn expire(
        &self,
        scope: &Scope,
        events_before: Option<Timestamp>,
        audit_before: Option<Timestamp>,
    ) -> Result<(u64, u64)> {
        let (mut events, mut audit) = (0, 0);
        while let Some(cutoff) = audit_before {
            let removed = self.expire_audit(scope.clone(), cutoff).await?;
            audit += removed;
            if removed < BATCH as u64 {
                break;
            }
        }
        while let Some(cutoff) = events_before {
            let removed = self.expire_events(scope.clone(), cutoff).await?;
            events += removed;
            if removed < BATCH as u64 {
                break;
            }
        }
        files_metrics::deleted("event", "retention", events);
        files_metrics::deleted("audit", "retention", audit);
        Ok((events, audit))
    }

    async fn expire_events(&self, scope: Scope, cutoff: Timestamp) -> Result<u64> {
        let now = self.cx.clock.now();
        self.cx
            .store
            .write("expire_events", move |tx| {
                let Some(_) = scopes::find(tx, &scope)? else { return Ok(0) };
                let counted = scopes::lock(tx, &scope)?;
                let removed = events::expire(tx, scope.tenant(), &counted, cutoff, BATCH)?;
                if removed > 0 {
                    changes::record(tx, scope.tenant(), now, &applied(&scope, "events"))?;
                }
                Ok::<_, Error>(removed)
            })
            .await
    }

    /// Before the record that a surviving one is proved from goes, that one gets an image of its own.
    async fn expire_audit(&self, scope: Scope, cutoff: Timestamp) -> Result<u64> {
        let now = self.cx.clock.now();
        self.cx
            .store
            .write("expire_audit", move |tx| {
                let Some(id) = scopes::find(tx, &scope)? else { return Ok(0) };
                for record in audit::heirs(tx, id, cutoff)? {
                    match trail::proved(tx, id, &record) {
                        Ok(image) => audit::set_image(tx, scope.tenant(), id, &record, &image)?,
                        // What cannot be proved now could not be proved later either.
                        Err(Error::Refused(_)) => files_metrics::audit_integrity_failure(),
                        Err(error) => return Err(error),
                    }
                }
                let removed = audit::expire(tx, id, cutoff, BATCH)?;
                if removed > 0 {
                    changes::record(tx, scope.tenant(), now, &applied(&scope, "audit"))?;
                }
                Ok(removed)
            })
            .await
    }
}

fn applied<'a>(scope: &'a Scope, what: &'a str) -> Change<'a> {
    Change {
        kind: ChangeKind::RetentionApplied,
        user: Some(scope.user().as_str()),
        resource: what,
        version: None,
    }
}

/// The three numbers of days, which are all required: one that is missing would otherwise mean "now".
fn read_days(request: &Map<String, Value>) -> Result<[i64; 3]> {
    let names = ["events_days", "audit_days", "snapshots_days"];
    let given = names.iter().filter(|name| body::member(request, name).is_some()).count();
    if given == 0 {
        let message = "give 'events_days', 'audit_days' and 'snapshots_days'";
        return Err(Error::refused(Code::MissingRetentionRules, message));
    }
    if given < names.len() {
        let message = "'events_days', 'audit_days' and 'snapshots_days' are required together";
        return Err(Error::refused(Code::IncompleteRetentionRules, message));
    }
    let mut days = [0; 3];
    for (slot, name) in days.iter_mut().zip(names) {
        *slot =
            body::integer(request, name)?.filter(|days| (0..=MAX_DAYS).contains(days)).ok_or_else(|| {
                let message = format!("'{name}' must be 0..{MAX_DAYS}");
                Error::from(Refusal::new(Code::InvalidRetentionValue, message).with("field", name))
            })?;
    }
    Ok(days)
}
