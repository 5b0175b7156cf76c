//! What an entry states: by this `remember` knows what was said already.

use super::{Author, Kind, Memory, Policy};
use crate::Timestamp;
use serde_json::json;

/// An entry as a statement. A scope needs each of them once; entries of another kind, of another time or for other people say
/// something else with the same words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement<'a> {
    kind: Kind,
    /// When it happened, if somebody said so.
    occurred_at: Option<Timestamp>,
    /// Whose it is, unless it is for everybody who has the scope.
    creator: Option<&'a Author>,
}

impl<'a> Statement<'a> {
    /// What an entry states.
    pub fn of(memory: &'a Memory) -> Self {
        let creator = match memory.policy.policy {
            Policy::Private | Policy::Restricted | Policy::Shared => Some(&memory.created_by),
            Policy::Organization | Policy::Public => None,
        };
        Self { kind: memory.kind, occurred_at: memory.stated_time(), creator }
    }

    /// Whether both are of one kind and one time; for whom they are is for the viewer to decide.
    pub fn is_like(&self, other: &Statement<'_>) -> bool {
        self.kind == other.kind && self.occurred_at == other.occurred_at
    }

    /// Bytes that only equal statements share.
    pub fn to_bytes(&self) -> Vec<u8> {
        // The client counts where no user is known.
        let creator = self.creator.map(|Author { user, client }| match user {
            Some(_) => [user.as_ref(), None],
            None => [None, client.as_ref()],
        });
        json!([self.kind.code(), self.occurred_at.map(Timestamp::as_micros), creator])
            .to_string()
            .into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memories::AccessPolicy;
    use crate::memories::testing::memory;

    fn bytes(change: impl Fn(&mut Memory)) -> Vec<u8> {
        let mut memory = memory(1, "said");
        change(&mut memory);
        Statement::of(&memory).to_bytes()
    }

    fn by(memory: &mut Memory, policy: Policy, user: Option<&str>, client: Option<&str>) {
        memory.policy = AccessPolicy::new(policy);
        memory.created_by = Author { user: user.map(str::to_owned), client: client.map(str::to_owned) };
    }

    #[test]
    fn kinds_and_times_are_told_apart() {
        let plain = bytes(|_| {});
        let episodic = bytes(|memory| memory.kind = Kind::Episodic);
        let yesterday = bytes(|memory| memory.occurred_at = Some(Timestamp::from_micros(7)));
        let untimed = bytes(|memory| memory.occurred_at = Some(memory.created_at));
        assert_ne!(plain, episodic);
        assert_ne!(plain, yesterday);
        assert_eq!(plain, untimed, "the time of its making is none that somebody gave");
    }

    #[test]
    fn what_everybody_sees_is_one_statement_and_what_somebody_hides_is_its_creators() {
        let said = |policy, user, client| bytes(move |memory| by(memory, policy, user, client));
        let everybodys = said(Policy::Organization, Some("alice"), None);
        assert_eq!(everybodys, said(Policy::Public, Some("bob"), Some("agent")));
        let private = said(Policy::Private, Some("alice"), Some("agent"));
        assert_ne!(everybodys, private);
        for policy in [Policy::Private, Policy::Restricted, Policy::Shared] {
            assert_eq!(private, said(policy, Some("alice"), Some("another")));
            assert_ne!(private, said(policy, Some("bob"), Some("agent")));
        }
        // A client is no user of the same name, and no author is no client.
        let clients = said(Policy::Private, None, Some("alice"));
        assert_ne!(said(Policy::Private, Some("alice"), None), clients);
        assert_ne!(clients, said(Policy::Private, None, None));
        assert_ne!(everybodys, said(Policy::Private, None, None));
    }
}
