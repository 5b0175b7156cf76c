//! Removing what is older than somebody wants to keep: events and audit records, never files.

use super::{Files, audit as trail};
use crate::files_metrics;
use crate::memories::journal::Told;
use crate::memories::mirror;
use memtrove_core::files::{Code, Refusal, Scope, ScopedCaller, body};
use memtrove_core::{Error, Result, Timestamp};
use memtrove_store::Tx;
use memtrove_store::changes::{self, Change, ChangeKind};
use memtrove_store::files::audit::{End, Version};
use memtrove_store::files::scopes::ScopeId;
use memtrove_store::files::{STEP_BYTES, audit, events, scopes};
use serde_json::{Map, Value};
use std::sync::Arc;

const MAX_DAYS: i64 = 36_500;
const DAY_MICROS: i64 = 24 * 3600 * 1_000_000;
/// Rows that one unit of work removes at most: nobody else can write meanwhile.
const STEP_ROWS: i64 = 500;
/// Events that one unit of work removes at most: each is a memory, too.
const STEP_EVENTS: i64 = 200;
/// Files that one unit of work makes an image for at most: each is a proof of up to 32 versions.
const STEP_PROOFS: usize = 32;
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
        let scope = caller.scope.clone();
        let known =
            self.cx.store.read("find_scope", move |tx| Ok::<_, Error>(scopes::find(tx, &scope)?)).await?;
        let (events_deleted, audit_deleted) = match known {
            Some(id) => self.expire(id, &caller.scope, Some(cutoff_events), Some(cutoff_audit)).await?,
            None => (0, 0),
        };
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
            for (id, scope) in page {
                match self.expire(id, &scope, cutoff_events, cutoff_audit).await {
                    Ok((events, audit)) => (all_events, all_audit) = (all_events + events, all_audit + audit),
                    Err(error) => failed = failed.or(Some(error)),
                }
            }
        }
    }

    /// Removes a scope's events and audit records from before these instants; says how many. Readers look for them, so that
    /// where there are none nothing is written.
    async fn expire(
        &self,
        id: ScopeId,
        scope: &Scope,
        events_before: Option<Timestamp>,
        audit_before: Option<Timestamp>,
    ) -> Result<(u64, u64)> {
        let audit = match audit_before {
            Some(cutoff) => self.expire_audit(id, scope, cutoff).await?,
            None => 0,
        };
        let events = match events_before {
            Some(cutoff) => self.expire_events(id, scope, cutoff).await?,
            None => 0,
        };
        Ok((events, audit))
    }

    async fn expire_events(&self, id: ScopeId, scope: &Scope, cutoff: Timestamp) -> Result<u64> {
        let mut all = 0;
        loop {
            let looked = scope.clone();
            let left = self.cx.store.read("outdated_events", move |tx| {
                Ok::<_, Error>(scopes::find(tx, &looked)? == Some(id) && events::any_before(tx, id, cutoff)?)
            });
            if !left.await? {
                return Ok(all);
            }
            let (now, scope) = (self.cx.clock.now(), scope.clone());
            let (journal, publish) = (self.memories.unaudited("retention"), self.memories.publish());
            let work = move |tx: &mut dyn Tx| {
                let Some(counted) = scopes::lock_known(tx, id)? else { return Ok((0, Told::new())) };
                let removed = events::expire(tx, scope.tenant(), &counted, cutoff, STEP_EVENTS)?;
                changes::record(tx, scope.tenant(), now, &applied(&scope, "events"))?;
                Ok::<_, Error>((removed.len() as u64, mirror::remove(tx, &scope, &removed, &journal)?))
            };
            let expired = self.cx.store.write_then("expire_events", work, move |(_, told)| publish(told));
            let (removed, told) = expired.await?;
            self.memories.forget_texts(&told);
            files_metrics::deleted("event", "retention", removed);
            all += removed;
        }
    }

    async fn expire_audit(&self, id: ScopeId, scope: &Scope, cutoff: Timestamp) -> Result<u64> {
        let (mut all, mut after) = (0, End::default());
        loop {
            let (looked, from) = (scope.clone(), after.clone());
            let step = self.cx.store.read("outdated_audit", move |tx| {
                if scopes::find(tx, &looked)? != Some(id) {
                    return Ok(Vec::new());
                }
                outdated(tx, id, cutoff, &from)
            });
            let step = Arc::new(step.await?);
            let Some(last) = step.last() else { return Ok(all) };
            let reached = last.end.clone();
            let (now, scope) = (self.cx.clock.now(), scope.clone());
            let removed = self.cx.store.write("expire_audit", move |tx| remove(tx, id, &scope, &step, now));
            // Otherwise somebody was faster: what may go has to be looked at again.
            if let Some(removed) = removed.await? {
                files_metrics::deleted("audit", "retention", removed);
                (all, after) = (all + removed, reached);
            }
        }
    }
}

/// Records of one file that are too old, and what remains to be proved without them.
struct Outdated {
    end: End,
    /// The first version that stays.
    heir: Option<Version>,
    /// The heir's document, where its record does not keep it yet.
    image: Option<String>,
}

/// What the next step removes. Proofs are made here, on a reader: records never change, so they hold on the writer too.
fn outdated(tx: &mut dyn Tx, id: ScopeId, cutoff: Timestamp, after: &End) -> Result<Vec<Outdated>> {
    let (mut step, mut proofs, mut bytes) = (Vec::new(), 0, 0);
    for end in audit::outdated(tx, id, cutoff, after, STEP_ROWS)? {
        let heir = audit::version_after(tx, id, &end.path, end.sequence)?;
        let mut image = None;
        if let Some(heir) = heir.as_ref().filter(|heir| !heir.has_image) {
            proofs += 1;
            image = match trail::proved(tx, id, heir) {
                Ok(document) => document,
                // What cannot be proved now could not be proved later either.
                Err(Error::Refused(_)) => None,
                Err(error) => return Err(error),
            };
            match &image {
                Some(document) => bytes += document.len(),
                None => files_metrics::audit_integrity_failure(),
            }
        }
        step.push(Outdated { end, heir, image });
        if proofs == STEP_PROOFS || bytes >= STEP_BYTES {
            break;
        }
    }
    Ok(step)
}

/// Removes records, after those that were proved from them have images of their own. `None`, and nothing is removed, if the
/// user was forgotten, or a file was changed since it was looked at: the change counts on what is about to go.
fn remove(
    tx: &mut dyn Tx,
    id: ScopeId,
    scope: &Scope,
    step: &[Outdated],
    now: Timestamp,
) -> Result<Option<u64>> {
    if scopes::lock_known(tx, id)?.is_none() {
        return Ok(None);
    }
    for Outdated { end, heir, .. } in step {
        if audit::version_after(tx, id, &end.path, end.sequence)? != *heir {
            return Ok(None);
        }
    }
    let mut removed = 0;
    for Outdated { end, heir, image } in step {
        if let (Some(heir), Some(image)) = (heir, image) {
            audit::set_image(tx, scope.tenant(), id, heir, image)?;
        }
        removed += audit::remove(tx, id, end)?;
    }
    changes::record(tx, scope.tenant(), now, &applied(scope, "audit"))?;
    Ok(Some(removed))
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
