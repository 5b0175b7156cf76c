//! The audit log: one line per admin call and per change of a membership, on targets of their own.
//!
//! Every value is escaped, so that nothing a caller sends can look like a line or a field of its own.

use crate::Context;
use memtrove_core::conversations::AccessLevel;
use memtrove_core::identity::{Caller, Principal, Role, Tenant};
use memtrove_core::{ConversationId, Error, Result, UserId};
use std::fmt::Write as _;
use std::marker::PhantomData;

const MAX_JUSTIFICATION_CHARS: usize = 1000;

/// Reads anything of a tenant.
#[derive(Debug)]
pub enum AsAuditor {}

/// Changes anything of a tenant.
#[derive(Debug)]
pub enum AsAdmin {}

/// Gives entries the text that search finds them by.
#[derive(Debug)]
pub enum AsIndexer {}

/// What an admin call is let in as.
pub(crate) trait AdminRole {
    const ROLE: Role;
}

impl AdminRole for AsAuditor {
    const ROLE: Role = Role::Auditor;
}

impl AdminRole for AsAdmin {
    const ROLE: Role = Role::Admin;
}

/// An admin call as its line in the log names it.
pub(crate) struct Call<'a, R> {
    action: &'static str,
    detail: &'a [(&'static str, String)],
    by: PhantomData<fn() -> R>,
}

impl<'a> Call<'a, AsAuditor> {
    /// A call that auditors may make too, with its parameters.
    pub fn read(action: &'static str, detail: &'a [(&'static str, String)]) -> Self {
        Self { action, detail, by: PhantomData }
    }
}

impl<'a> Call<'a, AsAdmin> {
    /// A call that only admins may make, with its target.
    pub fn write(action: &'static str, detail: &'a [(&'static str, String)]) -> Self {
        Self { action, detail, by: PhantomData }
    }
}

/// A call that the role of its principal lets in. What reaches into a tenant without being a member of anything takes one; only
/// [`admit`] and [`Grant::indexer`] make it.
pub(crate) struct Grant<R> {
    tenant: Tenant,
    /// Who made the call, if it was a user.
    user: Option<UserId>,
    by: PhantomData<fn() -> R>,
}

impl Grant<AsIndexer> {
    /// Admits who keeps current what search finds entries by. That is no admin call: it says why to nobody.
    pub fn indexer(principal: &Principal) -> Result<Self> {
        principal.require(Role::Indexer)?;
        Ok(Self::of(principal))
    }
}

impl<R> Grant<R> {
    fn of(principal: &Principal) -> Self {
        Self { tenant: principal.tenant().clone(), user: principal.user.clone(), by: PhantomData }
    }

    pub fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    pub fn user(&self) -> Option<&UserId> {
        self.user.as_ref()
    }
}

/// Admits an admin call: the role, then the justification, then its line in the log.
pub(crate) fn admit<R: AdminRole>(
    principal: &Principal,
    call: &Call<'_, R>,
    justification: Option<&str>,
    required: bool,
) -> Result<Grant<R>> {
    principal.require(R::ROLE)?;
    let justification = checked_justification(justification)?;
    if justification.is_none() && required {
        return Err(Error::JUSTIFICATION_REQUIRED);
    }
    let line = admin_line(principal, call, justification);
    tracing::info!(target: "admin.audit", "{line}");
    Ok(Grant::of(principal))
}

/// Runs an admin call between its two lines in the log, if it is admitted at all.
pub(crate) async fn audited<R: AdminRole, T, W: Future<Output = Result<T>>>(
    cx: &Context,
    principal: &Principal,
    call: Call<'_, R>,
    justification: Option<&str>,
    work: impl FnOnce(Grant<R>) -> W,
) -> Result<T> {
    let grant = admit(principal, &call, justification, cx.settings.require_justification)?;
    let result = work(grant).await;
    outcome(call.action, &result);
    result
}

/// A justification, trimmed; none where it is blank.
pub(crate) fn checked_justification(text: Option<&str>) -> Result<Option<&str>> {
    let text = text.map(str::trim).filter(|text| !text.is_empty());
    if text.is_some_and(|text| text.chars().count() > MAX_JUSTIFICATION_CHARS) {
        return Err(Error::invalid("justification", "must have at most 1000 characters"));
    }
    Ok(text)
}

/// Notes how an admitted call ended.
pub(crate) fn outcome<T>(action: &'static str, result: &Result<T>) {
    match result {
        Ok(_) => tracing::info!(target: "admin.audit", "ADMIN_RESULT action={action} outcome=ok"),
        Err(error) => {
            let reason = escape(&error.to_string());
            tracing::info!(target: "admin.audit", "ADMIN_RESULT action={action} outcome=refused reason=\"{reason}\"");
        }
    }
}

/// Notes that a call was left by its caller before it was done.
pub(crate) fn interrupted(action: &'static str, done: usize) {
    tracing::info!(target: "admin.audit", "ADMIN_RESULT action={action} outcome=interrupted done={done}");
}

fn admin_line<R: AdminRole>(
    principal: &Principal,
    call: &Call<'_, R>,
    justification: Option<&str>,
) -> String {
    let user = principal.user.as_ref().map_or("-", |user| user.as_str());
    let role = if principal.roles.admin { "admin" } else { "auditor" };
    let writes = R::ROLE == Role::Admin;
    let verb = if writes { "ADMIN_WRITE" } else { "ADMIN_READ" };
    let mut line = format!("{verb} user={} role={role}", bare(user));
    // Writing to a `String` cannot fail, here and below.
    if let Some(client) = &principal.client {
        let _ = write!(line, " client={}", bare(client.as_str()));
    }
    let _ = write!(line, " action={}", call.action);
    if writes {
        for (name, value) in call.detail {
            let _ = write!(line, " {name}={}", bare(value));
        }
    } else {
        let params: Vec<String> =
            call.detail.iter().map(|(name, value)| format!("{name}=\"{}\"", escape(value))).collect();
        let _ = write!(line, " params={{{}}}", params.join(", "));
    }
    let _ = match justification {
        Some(text) => write!(line, " justification=\"{}\"", escape(text)),
        None => write!(line, " justification=\"<none>\""),
    };
    line
}

/// What happened to a membership.
pub(crate) enum Change {
    Add(AccessLevel),
    Update { from: AccessLevel, to: AccessLevel },
    Remove,
    TransferOwnership,
}

/// Notes a change of a membership, after it was committed.
pub(crate) fn membership(
    actor: &MembershipActor,
    conversation: ConversationId,
    target: &UserId,
    change: &Change,
) {
    let (action, levels) = match change {
        Change::Add(level) => ("add", format!(" accessLevel={}", level.as_str())),
        Change::Update { from, to } => {
            ("update", format!(" fromLevel={} toLevel={}", from.as_str(), to.as_str()))
        }
        Change::Remove => ("remove", String::new()),
        Change::TransferOwnership => ("transfer_ownership", String::new()),
    };
    let client = actor.client.as_ref().map(|client| format!(" client={}", bare(client))).unwrap_or_default();
    tracing::info!(
        target: "membership.audit",
        "MEMBERSHIP_CHANGE actor={}{client} action={action} conversation={conversation} target={}{levels}",
        bare(&actor.user),
        bare(target.as_str()),
    );
}

/// Who changed a membership.
pub(crate) struct MembershipActor {
    user: String,
    client: Option<String>,
}

impl MembershipActor {
    /// Somebody whom the log had better not name.
    pub fn unnamed() -> Self {
        Self { user: "-".to_owned(), client: None }
    }
}

impl From<&Caller> for MembershipActor {
    fn from(caller: &Caller) -> Self {
        Self { user: caller.user.0.clone(), client: caller.client.as_ref().map(|c| c.0.clone()) }
    }
}

impl From<&Principal> for MembershipActor {
    fn from(principal: &Principal) -> Self {
        let user = principal.user.as_ref().map_or_else(|| "-".to_owned(), |user| user.0.clone());
        Self { user, client: principal.client.as_ref().map(|c| c.0.clone()) }
    }
}

/// A value as it stands without quotes; quoted where it could be mistaken for something else.
fn bare(value: &str) -> String {
    let plain = !value.is_empty() && value.chars().all(|c| c.is_alphanumeric() || "-_.@:/+".contains(c));
    if plain { value.to_owned() } else { format!("\"{}\"", escape(value)) }
}

fn escape(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => {
                let _ = write!(out, "\\u{{{:x}}}", c as u32);
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_can_forge_a_line() {
        assert_eq!(bare("alice@example.org"), "alice@example.org");
        assert_eq!(bare("eve\nADMIN_WRITE user=admin"), "\"eve\\u{a}ADMIN_WRITE user=admin\"");
        assert_eq!(escape("say \"hi\" \\ \u{2028}"), "say \\\"hi\\\" \\\\ \\u{2028}");
        assert_eq!(bare(""), "\"\"");
    }
}
