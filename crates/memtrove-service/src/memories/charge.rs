//! What requests cost of the quotas: one call of the user whom they are for, and one of the service that calls.
//!
//! Every operation that callers ask for charges its request once it may be carried out, before it does anything. What is refused
//! before costs nothing. An operation that is a step of another one finds its caller charged.

use super::Memories;
use crate::quota::{self, CallKind};
use memtrove_core::memories::{Identifier, Identifiers, MemoryCaller};
use memtrove_core::{Details, Error, Result};
use std::borrow::Cow;

/// Requests that were refused, by `scope`.
const QUOTA_REJECTIONS: &str = "memory_quota_rejections_total";

/// Describes the number of refusals to the recorder and begins it at zero: an alert on an increase would overlook the first.
pub fn announce_metrics() {
    metrics::describe_counter!(
        QUOTA_REJECTIONS,
        "Requests about memories refused because a quota was used up."
    );
    for scope in quota::SCOPES {
        metrics::counter!(QUOTA_REJECTIONS, "scope" => scope).increment(0);
    }
}

impl Memories {
    /// Charges a request, unless it was charged already; gives back the caller whose further steps are free. The user is the one
    /// whom the request is for, as far as the caller may speak for that one; it is asked for only where there are quotas.
    pub(super) async fn charge<'a>(
        &self,
        caller: &'a MemoryCaller,
        kind: CallKind,
        user: impl FnOnce(&MemoryCaller) -> Option<String> + Send,
    ) -> Result<Cow<'a, MemoryCaller>> {
        let quotas = &self.cx.quotas;
        if !quotas.is_on() || caller.is_charged() {
            return Ok(Cow::Borrowed(caller));
        }
        let user = user(caller);
        let (tenant, service) = (caller.tenant().as_str(), caller.service());
        quotas.spend(tenant, user.as_deref(), &service, kind).await.inspect_err(count_refusal)?;
        Ok(Cow::Owned(caller.clone().charged()))
    }

    /// How many reads a second quotas let a caller go on with for one user; rounded down.
    pub fn reads_per_second(&self, caller: &MemoryCaller) -> Option<u64> {
        self.cx.quotas.reads_per_second(caller.tenant().as_str())
    }

    /// Charges a request that takes several operations, so that none of them charges it again.
    pub async fn charge_once<'a>(
        &self,
        caller: &'a MemoryCaller,
        identifiers: &Identifiers,
        kind: CallKind,
    ) -> Result<Cow<'a, MemoryCaller>> {
        self.charge(caller, kind, |caller| caller.speaks_for(identifiers.get(Identifier::User))).await
    }
}

fn count_refusal(error: &Error) {
    if let Details::Quota(quota) = &error.details {
        metrics::counter!(QUOTA_REJECTIONS, "scope" => quota.scope).increment(1);
    }
}
