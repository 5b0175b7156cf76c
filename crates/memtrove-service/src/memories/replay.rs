//! `Idempotency-Key`: a repetition of a request that succeeded gets the first answer again.

use super::Memories;
use super::journal::Remember;
use crate::idempotency::{oldest_answer, replayed};
use memtrove_core::memories::limits::MAX_IDEMPOTENCY_KEY_LENGTH;
use memtrove_core::memories::{Memory, MemoryCaller};
use memtrove_core::{Error, Json, Result};
use memtrove_store::Tx;
use memtrove_store::idempotency::{KeyPlace, RequestKey};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Makes of an answer what its transport gives.
pub type Render<A> = fn(&A) -> Result<Reply>;

/// A key under which a request is answered once.
#[derive(Debug, Clone)]
pub struct AnswerKey<A> {
    /// The key, as the caller chose it.
    pub text: String,
    /// What the request is for; keys of one collection are not those of another.
    pub collection: &'static str,
    /// A digest of the request: the same key on another request is a conflict.
    pub fingerprint: String,
    /// How the answer is kept: as its transport gives it.
    pub render: Render<A>,
}

/// An answer as its transport gives it. What was stored by older versions has these members, too.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Reply {
    /// The body.
    pub body: Json,
    /// Whether something came about.
    pub created: bool,
    /// The tag of the one entry in it.
    pub etag: Option<String>,
    /// The id of the entry that came about.
    pub id: Option<String>,
}

/// What a request is answered that may be repeated.
#[derive(Debug, Clone)]
pub enum Answered<A> {
    /// It was done.
    Now(A),
    /// It was done before.
    Before(Reply),
}

impl<A> Answered<A> {
    /// An earlier answer, as it was stored.
    pub(super) fn stored(text: &str) -> Result<Self> {
        let stored = serde_json::from_str(text);
        stored.map(Self::Before).map_err(|_| Error::internal("a remembered answer cannot be read"))
    }

    /// The answer, if it is no earlier one.
    pub fn now(self) -> Option<A> {
        match self {
            Self::Now(answer) => Some(answer),
            Self::Before(_) => None,
        }
    }
}

/// What makes a request the repetition of another.
pub(super) struct KeyedRequest<A> {
    key: Option<(RequestKey, Render<A>)>,
    /// Who calls: the key names it.
    user: Option<String>,
}

impl<A> KeyedRequest<A> {
    /// `for_user` is whom a trusted client acts for: each of its users has keys of its own.
    pub fn new(caller: &MemoryCaller, key: Option<AnswerKey<A>>, for_user: Option<&str>) -> Result<Self> {
        let user = caller.user().or(for_user).map(str::to_owned);
        let Some(AnswerKey { text, collection, fingerprint, render }) = key else {
            return Ok(Self { key: None, user });
        };
        if text.is_empty() || text.chars().count() > MAX_IDEMPOTENCY_KEY_LENGTH {
            let message = format!("must have 1 to {MAX_IDEMPOTENCY_KEY_LENGTH} characters");
            return Err(Error::field("Idempotency-Key", message));
        }
        let key = RequestKey {
            place: KeyPlace::Memories,
            principal: principal(&caller.principal, user.as_deref()),
            key: format!("{collection} {text}"),
            fingerprint: fingerprint.into_bytes(),
        };
        Ok(Self { key: Some((key, render)), user })
    }

    /// What the same request was answered before.
    pub async fn find(&self, memories: &Memories, caller: &MemoryCaller) -> Result<Option<Answered<A>>> {
        let Some((key, _)) = self.key.clone() else { return Ok(None) };
        let (tenant, since) = (caller.tenant().clone(), oldest_answer(&memories.cx));
        // What made a working memory alone is kept with it.
        for half in memories.parts.store.all() {
            let (tenant, key) = (tenant.clone(), key.clone());
            let find = move |tx: &mut dyn Tx| replayed(tx, &tenant, &key, since);
            if let Some(answer) = half.store().read(caller.tenant(), "find_answer", find).await? {
                return Answered::stored(&answer).map(Some);
            }
        }
        Ok(None)
    }

    /// Has an answer remembered that tells of these entries.
    pub fn remember<'a>(
        &self,
        memories: &Memories,
        answer: &A,
        told: impl IntoIterator<Item = &'a Memory>,
    ) -> Result<Option<Remember>> {
        let Some((key, render)) = &self.key else { return Ok(None) };
        let answer = Json::of(&render(answer)?).map_err(|error| Error::internal(error.to_string()))?;
        let users =
            told.into_iter().flat_map(|memory| [memory.scope.user(), memory.created_by.user.as_deref()]);
        let users: BTreeSet<&str> = users.chain([self.user.as_deref()]).flatten().collect();
        let users = users.into_iter().map(str::to_owned).collect();
        let answer = answer.get().to_owned();
        Ok(Some(Remember { key: key.clone(), users, since: oldest_answer(&memories.cx), answer }))
    }
}

/// Whose key it is. Names that hold the word between the two could be read in two ways; those say where the first ends.
fn principal(caller: &str, user: Option<&str>) -> String {
    const FOR: &str = " for ";
    let is_plain = !caller.contains(FOR) && !user.is_some_and(|user| user.contains(FOR));
    let joined = user.map_or(caller.to_owned(), |user| format!("{caller}{FOR}{user}"));
    match (is_plain, user) {
        (true, _) => joined,
        (false, Some(_)) => format!("{joined} #{}", caller.len()),
        (false, None) => format!("{joined} #"),
    }
}

#[cfg(test)]
mod tests {
    use super::principal;
    use std::collections::HashMap;

    #[test]
    fn no_two_callers_share_a_principal() {
        let names =
            ["c", "c for u", "c for u for v", "u", "v", "u for v", "c for u #1", "v #1", "u for v #1", "c #"];
        let users = names.iter().copied().map(Some).chain([None]);
        let mut seen = HashMap::new();
        for (caller, user) in names.iter().flat_map(|caller| users.clone().map(move |user| (*caller, user))) {
            let before = seen.insert(principal(caller, user), (caller, user));
            assert_eq!(before, None, "{caller} for {user:?}");
        }
        assert_eq!(principal("client:c", Some("u")), "client:c for u", "keys of earlier versions are found");
        assert_eq!(principal("client:c", None), "client:c");
    }
}
