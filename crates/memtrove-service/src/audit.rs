//! The audit log: one line per admin call and per change of a membership, on targets of their own.
//!
//! Every value is escaped, so that nothing a caller sends can look like a line or a field of its own.

use crate::quota::CallKind;
use memtrove_core::conversations::AccessLevel;
use memtrove_core::identity::{Caller, Principal, Role};
use memtrove_core::{ConversationId, Error, Result, UserId};
use std::fmt::Write as _;

const MAX_JUSTIFICATION_CHARS: usize = 1000;

/// An admin call as its line in the log names it.
pub(crate) struct Call<'a> {
    kind: CallKind,
    pub action: &'static str,
    detail: &'a [(&'static str, String)],
}

impl<'a> Call<'a> {
    /// A call that auditors may make too, with its parameters.
    pub fn read(action: &'static str, detail: &'a [(&'static str, String)]) -> Self {
        Self { kind: CallKind::Read, action, detail }
    }

    /// A call that only admins may make, with its target.
    pub fn write(action: &'static str, detail: &'a [(&'static str, String)]) -> Self {
        Self { kind: CallKind::Write, action, detail }
    }
}

/// Admits an admin call: the role, then the justification, then its line in the log.
pub(crate) fn admit(
    principal: &Principal,
    call: &Call<'_>,
    justification: Option<&str>,
    required: bool,
) -> Result<()> {
    principal.require(match call.kind {
        CallKind::Read => Role::Auditor,
        CallKind::Write => Role::Admin,
    })?;
    let justification = checked_justification(justification)?;
    if justification.is_none() && required {
        return Err(Error::JUSTIFICATION_REQUIRED);
    }
    let line = admin_line(principal, call, justification);
    tracing::info!(target: "admin.audit", "{line}");
    Ok(())
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

fn admin_line(principal: &Principal, call: &Call<'_>, justification: Option<&str>) -> String {
    let user = principal.user.as_ref().map_or("-", |user| user.as_str());
    let role = if principal.roles.admin { "admin" } else { "auditor" };
    let verb = match call.kind {
        CallKind::Read => "ADMIN_READ",
        CallKind::Write => "ADMIN_WRITE",
    };
    let mut line = format!("{verb} user={} role={role}", bare(user));
    // Writing to a `String` cannot fail, here and below.
    if let Some(client) = &principal.client {
        let _ = write!(line, " client={}", bare(client.as_str()));
    }
    let _ = write!(line, " action={}", call.action);
    match call.kind {
        CallKind::Read => {
            let params: Vec<String> =
                call.detail.iter().map(|(name, value)| format!("{name}=\"{}\"", escape(value))).collect();
            let _ = write!(line, " params={{{}}}", params.join(", "));
        }
        CallKind::Write => {
            for (name, value) in call.detail {
                let _ = write!(line, " {name}={}", bare(value));
            }
        }
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
