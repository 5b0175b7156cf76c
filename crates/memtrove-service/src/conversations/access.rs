//! Who is let into a conversation, and to do what.
//!
//! A tree is reached through its group, and of what serves callers only an [`Access`] has one. It is made inside the unit of work
//! that uses it, from the row that the operation reads anyway. What reads or writes a tree takes the access it needs, so an
//! operation that asked for nothing does not compile. Every level hands out the group: that it is the right level is read where it
//! is asked for. Work in the background, which has no caller, finds groups by itself.

use super::not_found;
use crate::audit::{AdminRole, Grant};
use memtrove_core::conversations::forks::View;
use memtrove_core::conversations::{AccessLevel, Transfer};
use memtrove_core::identity::{Caller, Tenant};
use memtrove_core::{ConversationId, Error, GroupId, Resource, Result, TransferId};
use memtrove_store::Tx;
use memtrove_store::conversations::rows::{self, ConversationHead};
use memtrove_store::conversations::{ancestry, transfers};
use std::fmt;
use std::marker::PhantomData;

pub use crate::audit::{AsAdmin, AsAuditor};

/// Reads the tree.
#[derive(Debug)]
pub enum AsReader {}

/// Also appends, syncs, forks and renames.
#[derive(Debug)]
pub enum AsWriter {}

/// Also shares.
#[derive(Debug)]
pub enum AsManager {}

/// Also deletes and hands over.
#[derive(Debug)]
pub enum AsOwner {}

/// Takes the tree over, which was offered to it.
#[derive(Debug)]
pub enum AsRecipient {}

/// Who sees what is in a tree. Members do, and auditors and admins:
/// ```
/// use memtrove_service::conversations::access::{AsAuditor, AsReader, AsWriter, Reads};
/// fn sees<L: Reads>() {}
/// (sees::<AsReader>(), sees::<AsWriter>(), sees::<AsAuditor>());
/// ```
/// Somebody whom a tree was offered does not:
/// ```compile_fail
/// use memtrove_service::conversations::access::{AsRecipient, Reads};
/// fn sees<L: Reads>() {}
/// sees::<AsRecipient>();
/// ```
pub trait Reads: sealed::Sealed {}

/// Who may delete a tree. Writers may not, nor do auditors:
/// ```
/// use memtrove_service::conversations::access::{AsAdmin, AsManager, AsOwner, Deletes};
/// fn deletes<L: Deletes>() {}
/// (deletes::<AsManager>(), deletes::<AsOwner>(), deletes::<AsAdmin>());
/// ```
/// ```compile_fail
/// use memtrove_service::conversations::access::{AsWriter, Deletes};
/// fn deletes<L: Deletes>() {}
/// deletes::<AsWriter>();
/// ```
/// ```compile_fail
/// use memtrove_service::conversations::access::{AsAuditor, Deletes};
/// fn deletes<L: Deletes>() {}
/// deletes::<AsAuditor>();
/// ```
pub trait Deletes: sealed::Sealed {}

/// What a member can be let in as.
pub trait Member: Reads {
    /// The level that it takes.
    const NEEDED: AccessLevel;
}

impl Reads for AsReader {}
impl Reads for AsWriter {}
impl Reads for AsManager {}
impl Reads for AsOwner {}
impl Reads for AsAuditor {}
impl Reads for AsAdmin {}

/// Where the settings let managers delete.
impl Deletes for AsManager {}
impl Deletes for AsOwner {}
impl Deletes for AsAdmin {}

impl Member for AsReader {
    const NEEDED: AccessLevel = AccessLevel::Reader;
}

impl Member for AsWriter {
    const NEEDED: AccessLevel = AccessLevel::Writer;
}

impl Member for AsManager {
    const NEEDED: AccessLevel = AccessLevel::Manager;
}

impl Member for AsOwner {
    const NEEDED: AccessLevel = AccessLevel::Owner;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::AsReader {}
    impl Sealed for super::AsWriter {}
    impl Sealed for super::AsManager {}
    impl Sealed for super::AsOwner {}
    impl Sealed for super::AsAuditor {}
    impl Sealed for super::AsAdmin {}
}

/// A conversation that somebody was let into.
///
/// Only this module makes one:
/// ```compile_fail
/// use memtrove_core::{ConversationId, GroupId, identity::Tenant};
/// use memtrove_service::conversations::access::{Access, AsOwner};
/// fn forge(tenant: Tenant, id: ConversationId, group: GroupId) -> Access<AsOwner> {
///     Access { tenant, id, group, is_fork: false, has_history: false, level: None, by: std::marker::PhantomData }
/// }
/// ```
pub struct Access<L> {
    tenant: Tenant,
    id: ConversationId,
    group: GroupId,
    is_fork: bool,
    has_history: bool,
    /// What the caller may do, where it was let in as a member.
    level: Option<AccessLevel>,
    by: PhantomData<fn() -> L>,
}

impl<L> Access<L> {
    pub(crate) fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    pub(crate) fn id(&self) -> ConversationId {
        self.id
    }

    /// The tree.
    pub(crate) fn group(&self) -> GroupId {
        self.group
    }

    /// Whether an entry was ever appended to the history of the conversation.
    pub(super) fn has_history(&self) -> bool {
        self.has_history
    }
}

impl<L: Reads> Access<L> {
    /// What is visible on the conversation. One that is no fork costs no query.
    pub(super) fn view(&self, tx: &mut dyn Tx) -> Result<View> {
        Ok(ancestry::view(tx, self.group, self.id, self.is_fork)?)
    }
}

impl<L: Member> Access<L> {
    /// What the caller may do here: what the operation needs, or more.
    pub(super) fn level(&self) -> AccessLevel {
        self.level.unwrap_or(L::NEEDED)
    }
}

impl Access<AsWriter> {
    /// The same access to a conversation of the tree: this one, or a fork that was made or found below it.
    pub(super) fn to(&self, id: ConversationId, has_history: bool) -> Self {
        let is_fork = self.is_fork || id != self.id;
        Self { tenant: self.tenant.clone(), id, is_fork, has_history, ..*self }
    }
}

#[cfg(test)]
impl Access<AsWriter> {
    /// For tests of what happens after somebody was let in.
    pub(crate) fn granted(tenant: Tenant, id: ConversationId, group: GroupId) -> Self {
        let (is_fork, has_history, level) = (false, false, None);
        Self { tenant, id, group, is_fork, has_history, level, by: PhantomData }
    }
}

impl<L> fmt::Debug for Access<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Access").field(&self.id).finish()
    }
}

/// Opens a conversation for a caller: it is there and live (else 404), the caller is a member (else 403) with the level that
/// the operation needs (else 403).
pub(crate) fn open<L: Member>(tx: &mut dyn Tx, caller: &Caller, id: ConversationId) -> Result<Access<L>> {
    find(tx, caller, id)?.ok_or_else(|| not_found(id))
}

/// The same, for who has another word for what is not there, or for what was deleted.
pub(crate) fn find<L: Member>(
    tx: &mut dyn Tx,
    caller: &Caller,
    id: ConversationId,
) -> Result<Option<Access<L>>> {
    let head = rows::head(tx, caller.tenant(), &caller.user, id)?.filter(|head| !head.deleted);
    head.map(|head| admit(caller, id, &head)).transpose()
}

/// The same, for who makes what is not there. An id that was deleted is never used again.
pub(super) fn open_existing<L: Member>(
    tx: &mut dyn Tx,
    caller: &Caller,
    id: ConversationId,
) -> Result<Option<Access<L>>> {
    match rows::head(tx, caller.tenant(), &caller.user, id)? {
        Some(head) if head.deleted => Err(not_found(id)),
        Some(head) => admit(caller, id, &head).map(Some),
        None => Ok(None),
    }
}

/// Opens any conversation, deleted or not, for an admin call that was let in.
#[expect(clippy::disallowed_methods, reason = "the role was asked for instead: only it makes a grant")]
pub(super) fn open_any<R: AdminRole + Reads>(
    tx: &mut dyn Tx,
    grant: &Grant<R>,
    id: ConversationId,
) -> Result<Access<R>> {
    let (group, is_fork) = rows::tree_of_any(tx, grant.tenant(), id)?.ok_or_else(|| not_found(id))?;
    let tenant = grant.tenant().clone();
    // Admins append nothing.
    let (has_history, level) = (false, None);
    Ok(Access { tenant, id, group, is_fork, has_history, level, by: PhantomData })
}

/// Opens the tree that was offered to a caller, together with the offer.
pub(super) fn open_offered(
    tx: &mut dyn Tx,
    caller: &Caller,
    id: TransferId,
) -> Result<(Transfer, Access<AsRecipient>)> {
    let pending =
        transfers::get(tx, caller.tenant(), id)?.ok_or_else(|| Error::not_found(Resource::Transfer, id))?;
    let group = pending
        .group(&caller.user)
        .ok_or_else(|| Error::forbidden("only the recipient may accept a transfer"))?;
    let (tenant, id) = (caller.tenant().clone(), pending.transfer.conversation_id);
    // It neither reads nor appends.
    let (is_fork, has_history, level) = (false, false, None);
    Ok((pending.transfer, Access { tenant, id, group, is_fork, has_history, level, by: PhantomData }))
}

fn admit<L: Member>(caller: &Caller, id: ConversationId, head: &ConversationHead) -> Result<Access<L>> {
    let (group, tenant, level) = (head.group(L::NEEDED)?, caller.tenant().clone(), head.access);
    let ConversationHead { is_fork, has_history, .. } = *head;
    Ok(Access { tenant, id, group, is_fork, has_history, level, by: PhantomData })
}
