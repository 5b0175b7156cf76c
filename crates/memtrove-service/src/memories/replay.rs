//! `Idempotency-Key`: a repetition of a request that succeeded gets the first answer again.

use super::Memories;
use super::journal::{self, Remember};
use memtrove_core::files::canonical;
use memtrove_core::memories::{Memory, MemoryCaller};
use memtrove_core::{Error, Result};
use memtrove_store::Tx;
use memtrove_store::memories::idempotency::Key;
use serde_json::Value;
use std::collections::BTreeSet;

const MAX_KEY_CHARS: usize = 128;

/// What a request is answered that may be repeated.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The body.
    pub body: Value,
    /// Whether something came about.
    pub created: bool,
    /// The tag of the one entry in it.
    pub etag: Option<String>,
    /// The id of the entry that came about.
    pub id: Option<String>,
    /// Whether it is an earlier answer.
    pub replayed: bool,
}

impl Reply {
    fn to_stored(&self) -> String {
        let Self { body, created, etag, id, .. } = self;
        Value::from_iter([
            ("body", body.clone()),
            ("created", (*created).into()),
            ("etag", etag.clone().into()),
            ("id", id.clone().into()),
        ])
        .to_string()
    }

    /// An earlier answer, as it was stored.
    pub(super) fn stored(text: &str) -> Result<Self> {
        let broken = || Error::internal("a remembered answer cannot be read");
        let Value::Object(mut stored) = memtrove_core::files::body::parse(text.as_bytes())? else {
            return Err(broken());
        };
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        Ok(Self {
            created: stored.get("created").and_then(Value::as_bool).ok_or_else(broken)?,
            etag: text(stored.get("etag")),
            id: text(stored.get("id")),
            body: stored.remove("body").ok_or_else(broken)?,
            replayed: true,
        })
    }
}

/// What makes a request the repetition of another.
pub(super) struct Replay {
    key: Option<Key>,
    /// Who calls: the key names it.
    user: Option<String>,
}

impl Replay {
    /// Reads the key, if there is one.
    /// `for_user` is whom a trusted client acts for: each of its users has keys of its own.
    pub fn new(
        caller: &MemoryCaller,
        route: &str,
        key: Option<String>,
        body: &Value,
        for_user: Option<&str>,
    ) -> Result<Self> {
        let user = caller.user().or(for_user).map(str::to_owned);
        let Some(text) = key else { return Ok(Self { key: None, user }) };
        if text.is_empty() || text.chars().count() > MAX_KEY_CHARS {
            let message = format!("must have 1 to {MAX_KEY_CHARS} characters");
            return Err(Error::field("Idempotency-Key", message));
        }
        Ok(Self {
            key: Some(Key {
                principal: match &user {
                    Some(user) => format!("{} for {user}", caller.principal),
                    None => caller.principal.clone(),
                },
                key: format!("{route} {text}"),
                fingerprint: canonical::fingerprint("POST", route, body).into_bytes(),
            }),
            user,
        })
    }

    /// What the same request was answered before.
    pub async fn find(&self, memories: &Memories, caller: &MemoryCaller) -> Result<Option<Reply>> {
        let Some(key) = self.key.clone() else { return Ok(None) };
        let (tenant, since) = (caller.tenant().clone(), self.since(memories));
        // What made a working memory alone is kept with it.
        for half in memories.parts.store.all() {
            let (tenant, key) = (tenant.clone(), key.clone());
            let find = move |tx: &mut dyn Tx| journal::replayed(tx, &tenant, &key, since);
            if let Some(answer) = half.store().read(caller.tenant(), "find_answer", find).await? {
                return Reply::stored(&answer).map(Some);
            }
        }
        Ok(None)
    }

    /// Has an answer remembered that tells of these entries.
    pub fn remember<'a>(
        &self,
        memories: &Memories,
        reply: &Reply,
        told: impl IntoIterator<Item = &'a Memory>,
    ) -> Option<Remember> {
        let key = self.key.clone()?;
        let users =
            told.into_iter().flat_map(|memory| [memory.scope.user(), memory.created_by.user.as_deref()]);
        let users: BTreeSet<&str> = users.chain([self.user.as_deref()]).flatten().collect();
        let users = users.into_iter().map(str::to_owned).collect();
        Some(Remember { key, users, since: self.since(memories), answer: reply.to_stored() })
    }

    fn since(&self, memories: &Memories) -> memtrove_core::Timestamp {
        let retention = memories.cx.settings.idempotency_retention.as_micros() as i64;
        memories.now().saturating_add_micros(-retention)
    }
}
