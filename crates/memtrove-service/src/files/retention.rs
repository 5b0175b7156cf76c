//! Removing events and audit records that are older than asked for; never files.

use super::{Admitted, Files, Writer, audit as trail};
use crate::audit::checked_justification;
use crate::files_metrics;
use crate::memories::journal::Told;
use crate::memories::mirror;
use memtrove_core::files::retention::{Authority, Retention, before};
use memtrove_core::files::{ETag, Scope, ScopedCaller, canonical};
use memtrove_core::{Error, Result, Timestamp};
use memtrove_store::AllTenants;
use memtrove_store::Tx;
use memtrove_store::changes::{self, Change, ChangeKind};
use memtrove_store::files::audit::{FileVersion, LIFECYCLE_PATH, NewRecord, PruneEnd};
use memtrove_store::files::scopes::ScopeId;
use memtrove_store::files::{STEP_BYTES, audit, events, scopes};
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;
use uuid::Uuid;

/// Rows that one unit of work removes at most: other writes wait meanwhile.
const STEP_ROWS: i64 = 500;
/// Events that one unit of work removes at most: each is a memory, too.
const STEP_EVENTS: i64 = 200;
/// Files that one unit of work makes an image for at most: each is a proof of up to 32 versions.
const STEP_PROOFS: usize = 32;
const SCOPES_AT_ONCE: i64 = 100;

/// What retention removed, and up to when.
#[derive(Debug, Clone)]
pub struct RetentionReport {
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
    /// The days that were not what was asked for.
    pub adjusted: Vec<&'static str>,
}

/// Which audit records go.
#[derive(Clone, Copy)]
struct AuditCutoff {
    /// Those from before this.
    all: Timestamp,
    /// Those that tell of truncations, from before this: the floor keeps them, for every caller.
    of_truncations: Timestamp,
}

impl Files {
    /// Applies the days that a request names to one scope. An admin's justification lets it go below the floor of the audit
    /// trail, and stays there with what went.
    pub async fn apply_retention(
        &self,
        admitted: &Admitted<Writer>,
        request: Retention,
        justification: Option<&str>,
    ) -> Result<RetentionReport> {
        let caller = admitted.caller();
        let justification = checked_justification(justification)?;
        let authority = match (caller.is_admin(), justification) {
            (false, _) => Authority::Writer,
            (true, None) => Authority::Admin,
            (true, Some(_)) => Authority::JustifiedAdmin,
        };
        let (now, floor) = (self.cx.clock.now(), self.cx.settings.retention.audit_min_days);
        let cutoffs = request.cutoffs(authority, floor, now)?;
        let truncation = justification.filter(|_| cutoffs.is_below_floor).map(|justification| {
            Arc::new(Truncation {
                caller: caller.clone(),
                justification: justification.to_owned(),
                change: self.cx.clock.new_id(),
                cutoff: cutoffs.audit,
            })
        });
        let audit_cutoff = AuditCutoff {
            all: cutoffs.audit,
            of_truncations: cutoffs.audit.min(before(now, i64::from(floor))),
        };
        let scope = caller.scope.clone();
        let known = self
            .cx
            .store
            .read(caller.scope.tenant(), "find_scope", move |tx| Ok::<_, Error>(scopes::find(tx, &scope)?))
            .await?;
        let (events_deleted, audit_deleted) = match known {
            Some(id) => {
                let audit = self.expire_audit(id, &caller.scope, audit_cutoff, truncation).await?;
                (self.expire_events(id, &caller.scope, cutoffs.events).await?, audit)
            }
            None => (0, 0),
        };
        tracing::info!(
            target: "files.operator",
            principal = caller.principal, events_deleted, audit_deleted, below_floor = cutoffs.is_below_floor,
            "retention was applied"
        );
        Ok(RetentionReport {
            events_deleted,
            audit_deleted,
            search_documents_deleted: events_deleted,
            cutoff_events: cutoffs.events,
            cutoff_audit: cutoffs.audit,
            cutoff_snapshots: cutoffs.snapshots,
            adjusted: cutoffs.adjusted,
        })
    }

    /// Applies the deployment's own days to every scope; says how many events and audit records went. A scope that cannot
    /// be worked on does not keep the others from it.
    pub async fn sweep(&self) -> Result<(u64, u64)> {
        let days = self.cx.settings.retention;
        let now = self.cx.clock.now();
        let cutoff_events = days.events_days.map(|days| before(now, i64::from(days)));
        let cutoff_audit = days.audit_days.map(|kept| {
            let all = before(now, i64::from(kept.max(days.audit_min_days)));
            AuditCutoff { all, of_truncations: all }
        });
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
                .read(AllTenants, "list_scopes", move |tx| {
                    Ok::<_, Error>(scopes::after(tx, None, from, SCOPES_AT_ONCE)?)
                })
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
        audit_before: Option<AuditCutoff>,
    ) -> Result<(u64, u64)> {
        let audit = match audit_before {
            Some(cutoff) => self.expire_audit(id, scope, cutoff, None).await?,
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
            let left = self.cx.store.read(scope.tenant(), "outdated_events", move |tx| {
                Ok::<_, Error>(scopes::find(tx, &looked)? == Some(id) && events::any_before(tx, id, cutoff)?)
            });
            if !left.await? {
                return Ok(all);
            }
            let (now, of) = (self.cx.clock.now(), scope.clone());
            let (journal, publish) = (self.memories.unaudited("retention"), self.memories.publish());
            let work = move |tx: &mut dyn Tx| {
                let Some(counted) = scopes::lock_known(tx, id)? else { return Ok((0, Told::new())) };
                let removed = events::expire(tx, of.tenant(), &counted, cutoff, STEP_EVENTS)?;
                changes::record(tx, of.tenant(), now, &applied(&of, "events"))?;
                Ok::<_, Error>((removed.len() as u64, mirror::remove(tx, &of, &removed, &journal)?))
            };
            let expired =
                self.cx
                    .store
                    .write_then(scope.tenant(), "expire_events", work, move |(_, told)| publish(told));
            let (removed, told) = expired.await?;
            self.memories.forget_texts(&told);
            files_metrics::deleted("event", "retention", removed);
            all += removed;
        }
    }

    async fn expire_audit(
        &self,
        id: ScopeId,
        scope: &Scope,
        cutoff: AuditCutoff,
        truncation: Option<Arc<Truncation>>,
    ) -> Result<u64> {
        let (mut gone, mut after) = (Gone::default(), PruneEnd::default());
        loop {
            let (looked, from) = (scope.clone(), after.clone());
            let step = self.cx.store.read(scope.tenant(), "outdated_audit", move |tx| {
                if scopes::find(tx, &looked)? != Some(id) {
                    return Ok(Vec::new());
                }
                outdated(tx, id, cutoff, &from)
            });
            let step = Arc::new(step.await?);
            let Some(last) = step.last() else { return Ok(gone.count) };
            let reached = last.end.clone();
            let (now, scope, truncation) = (self.cx.clock.now(), scope.clone(), truncation.clone());
            let removed = self.cx.store.write(scope.tenant().clone(), "expire_audit", move |tx| {
                remove(tx, Trail { id, scope: &scope }, &step, now, gone, truncation.as_deref())
            });
            // Otherwise somebody was faster: what may go has to be looked at again.
            if let Some(now_gone) = removed.await? {
                files_metrics::deleted("audit", "retention", now_gone.count - gone.count);
                (gone, after) = (now_gone, reached);
            }
        }
    }
}

/// Whose audit trail.
#[derive(Clone, Copy)]
struct Trail<'a> {
    id: ScopeId,
    scope: &'a Scope,
}

/// What has gone so far, and where the trail says so.
#[derive(Debug, Clone, Copy, Default)]
struct Gone {
    count: u64,
    /// The place of the record of the truncation, once something went.
    told_at: Option<i64>,
}

/// Audit records go that the floor would have kept: who did that, and why.
struct Truncation {
    caller: ScopedCaller,
    justification: String,
    /// The id of the record.
    change: Uuid,
    cutoff: Timestamp,
}

/// What the audit trail says of a truncation of itself.
#[derive(Serialize)]
struct TruncationBody<'a> {
    layer: &'a str,
    action: &'a str,
    actor: &'a str,
    principal: &'a str,
    justification: &'a str,
    cutoff: String,
    count: u64,
    ops: [(); 0],
    edits: [(); 0],
    document_sha256: String,
    ops_hash: String,
    request_id: &'a str,
}

impl Truncation {
    /// Says in the trail how many records went: in a record of its own, which grows with every step. So it is true however far
    /// the work gets. Answers the record's place.
    fn tell(&self, tx: &mut dyn Tx, id: ScopeId, now: Timestamp, gone: Gone) -> Result<i64> {
        let Truncation { caller, justification, change, cutoff } = self;
        let body = TruncationBody {
            layer: "lifecycle",
            action: "audit_truncated",
            actor: &caller.actor,
            principal: &caller.principal,
            justification,
            cutoff: cutoff.to_string(),
            count: gone.count,
            ops: [],
            edits: [],
            document_sha256: canonical::canonical_sha256(&Value::Null),
            ops_hash: canonical::ops_hash(&[], &[]),
            request_id: &caller.request_id,
        };
        let record = serde_json::to_string(&body).map_err(|e| Error::internal(e.to_string()))?;
        let tenant = caller.scope.tenant();
        if let Some(sequence) = gone.told_at {
            audit::rewrite(tx, tenant, id, sequence, *change, &record)?;
            return Ok(sequence);
        }
        let sequence = scopes::take_sequence(tx, id, 0)?;
        // Times along a path never descend, and truncations share one.
        let at = audit::last_at(tx, id, LIFECYCLE_PATH)?.map_or(now, |last| last.max(now));
        let etag = ETag { revision: 0, change: *change };
        let new = NewRecord {
            sequence,
            at,
            path: LIFECYCLE_PATH,
            etag,
            previous: None,
            record: &record,
            image: None,
        };
        audit::insert(tx, tenant, id, &new)?;
        Ok(sequence)
    }
}

/// Records of one file that are too old, and what remains to be proved without them.
struct Outdated {
    end: PruneEnd,
    /// The first version that stays.
    heir: Option<FileVersion>,
    /// The heir's document, where its record does not keep it yet.
    image: Option<String>,
}

/// What the next step removes. Proofs are made here, on a reader: records never change, so they hold on the writer too.
fn outdated(tx: &mut dyn Tx, id: ScopeId, cutoff: AuditCutoff, after: &PruneEnd) -> Result<Vec<Outdated>> {
    let (mut step, mut proofs, mut bytes) = (Vec::new(), 0, 0);
    for end in audit::outdated(tx, id, cutoff.all, cutoff.of_truncations, after, STEP_ROWS)? {
        let heir = audit::version_after(tx, id, &end.path, end.sequence)?;
        let mut image = None;
        if let Some(heir) = heir.as_ref().filter(|heir| !heir.has_image) {
            proofs += 1;
            image = match trail::proved(tx, id, heir) {
                Ok(document) => document,
                // What cannot be proved now could not be proved later either.
                Err(error) if error.code.is_of_files() => None,
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

/// Removes records, after those that were proved from them have images of their own, and says so in the trail where that has
/// to be; answers what has gone by then. `None`, and nothing is removed, if the user was forgotten, or a file was changed since
/// it was looked at: the change counts on what is about to go.
fn remove(
    tx: &mut dyn Tx,
    Trail { id, scope }: Trail<'_>,
    step: &[Outdated],
    now: Timestamp,
    mut gone: Gone,
    truncation: Option<&Truncation>,
) -> Result<Option<Gone>> {
    if scopes::lock_known(tx, id)?.is_none() {
        return Ok(None);
    }
    for Outdated { end, heir, .. } in step {
        if audit::version_after(tx, id, &end.path, end.sequence)? != *heir {
            return Ok(None);
        }
    }
    for Outdated { end, heir, image } in step {
        if let (Some(heir), Some(image)) = (heir, image) {
            audit::set_image(tx, scope.tenant(), id, heir, image)?;
        }
        gone.count += audit::remove(tx, id, end)?;
    }
    if let Some(truncation) = truncation {
        gone.told_at = Some(truncation.tell(tx, id, now, gone)?);
    }
    changes::record(tx, scope.tenant(), now, &applied(scope, "audit"))?;
    Ok(Some(gone))
}

fn applied<'a>(scope: &'a Scope, what: &'a str) -> Change<'a> {
    Change {
        kind: ChangeKind::RetentionApplied,
        user: Some(scope.user().as_str()),
        resource: what,
        version: None,
    }
}
