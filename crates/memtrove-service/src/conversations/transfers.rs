//! Handing a tree over to another owner, in two steps.

use super::access::{AsOwner, open, open_offered};
use super::sharing::required_user;
use super::{ConversationChange, Conversations};
use crate::audit::{self, Change, MembershipActor};
use crate::page::{self, Page, PageRequest};
use memtrove_core::conversations::{AccessLevel, Transfer};
use memtrove_core::identity::Caller;
use memtrove_core::{ConversationId, Error, Resource, Result, Timestamp, TransferId, UserId};
use memtrove_store::Tx;
use memtrove_store::changes::ChangeKind;
use memtrove_store::conversations::{groups, memberships, rows, transfers};
use uuid::Uuid;

/// From which side a list of transfers is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TransferRole {
    /// Those the caller sent.
    Sender,
    /// Those the caller may accept.
    Recipient,
    /// Both.
    #[default]
    All,
}

/// An offer of a tree to one of its members.
#[derive(Debug, Clone)]
pub struct NewTransfer {
    conversation: ConversationId,
    to: UserId,
}

impl NewTransfer {
    /// What a request says; both are required.
    pub fn new(conversation: Option<ConversationId>, new_owner: Option<String>) -> Result<Self> {
        let conversation = conversation.ok_or_else(|| Error::invalid("conversationId", "is required"))?;
        Ok(Self { conversation, to: required_user("newOwnerUserId", new_owner)? })
    }
}

impl Conversations {
    /// The pending transfers a caller takes part in.
    pub async fn list_transfers(
        &self,
        caller: &Caller,
        role: TransferRole,
        request: PageRequest<TransferId>,
    ) -> Result<Page<Transfer>> {
        let limit = page::limit(request.limit, 50, 200)?;
        let caller = caller.clone();
        self.cx
            .store
            .read(caller.tenant().clone(), "list_transfers", move |tx| {
                let from = match request.after {
                    None => Uuid::nil(),
                    Some(id) => {
                        let listed = |transfer: &Transfer| match role {
                            TransferRole::Sender => transfer.from_user_id == caller.user,
                            TransferRole::Recipient => transfer.to_user_id == caller.user,
                            TransferRole::All => true,
                        };
                        participant(tx, &caller, id)?
                            .filter(listed)
                            .ok_or_else(|| page::unknown_cursor("after"))?;
                        Uuid::from_u128(id.0.as_u128().saturating_add(1))
                    }
                };
                let fetch = limit as i64 + 1;
                let mut list = Vec::new();
                if role != TransferRole::Recipient {
                    list.append(&mut transfers::sent(tx, caller.tenant(), &caller.user, from, fetch)?);
                }
                if role != TransferRole::Sender {
                    list.append(&mut transfers::received(tx, caller.tenant(), &caller.user, from, fetch)?);
                }
                list.sort_unstable_by_key(|transfer| transfer.id);
                Ok(Page::cut(list, limit, |transfer| transfer.id.to_string()))
            })
            .await
    }

    /// Offers the ownership of a tree to one of its members.
    pub async fn create_transfer(&self, caller: &Caller, new: NewTransfer) -> Result<Transfer> {
        let NewTransfer { conversation: id, to } = new;
        let (transfer_id, now, caller) =
            (TransferId(self.cx.clock.new_id()), self.cx.clock.now(), caller.clone());
        self.cx
            .store
            .write(caller.tenant().clone(), "create_transfer", move |tx| {
                tx.lock(id.0.as_bytes())?;
                let group = open::<AsOwner>(tx, &caller, id)?.group();
                groups::lock(tx, group)?;
                if to == caller.user {
                    return Err(Error::bad_request("you already own this conversation"));
                }
                if memberships::get(tx, group, &to)?.is_none() {
                    return Err(Error::bad_request(
                        "the new owner must be a member of the conversation; share it first",
                    ));
                }
                let transfer = Transfer {
                    id: transfer_id,
                    conversation_id: id,
                    conversation_title: rows::title(tx, caller.tenant(), id)?,
                    from_user_id: caller.user.clone(),
                    to_user_id: to.clone(),
                    created_at: now,
                };
                if !transfers::insert_if_none(tx, caller.tenant(), group, &transfer)? {
                    let existing = transfers::of_group(tx, group)?.map_or(Uuid::nil(), |id| id.0);
                    return Err(Error::transfer_already_pending(existing));
                }
                tell(tx, &caller, ChangeKind::TransferCreated, &transfer, now)?;
                Ok(transfer)
            })
            .await
    }

    /// A transfer the caller takes part in.
    pub async fn get_transfer(&self, caller: &Caller, id: TransferId) -> Result<Transfer> {
        let caller = caller.clone();
        self.cx
            .store
            .read(caller.tenant().clone(), "get_transfer", move |tx| {
                participant(tx, &caller, id)?.ok_or_else(|| missing(id))
            })
            .await
    }

    /// Takes a transfer back, or turns it down.
    pub async fn delete_transfer(&self, caller: &Caller, id: TransferId) -> Result<()> {
        let (now, caller) = (self.cx.clock.now(), caller.clone());
        self.cx
            .store
            .write(caller.tenant().clone(), "delete_transfer", move |tx| {
                let pending = transfers::get(tx, caller.tenant(), id)?.ok_or_else(|| missing(id))?;
                let transfer = pending.transfer;
                if transfer.from_user_id != caller.user && transfer.to_user_id != caller.user {
                    return Err(Error::forbidden("only the sender or the recipient may end a transfer"));
                }
                transfers::delete(tx, id)?;
                tell(tx, &caller, ChangeKind::TransferDeleted, &transfer, now)
            })
            .await
    }

    /// Accepts a transfer: the caller owns the tree, the former owner manages it.
    pub async fn accept_transfer(&self, caller: &Caller, id: TransferId) -> Result<()> {
        let (actor, now, caller) = (MembershipActor::from(caller), self.cx.clock.now(), caller.clone());
        let recipient = caller.user.clone();
        let accepted = self
            .cx
            .store
            .write(caller.tenant().clone(), "accept_transfer", move |tx| {
                let (transfer, access) = open_offered(tx, &caller, id)?;
                let group_id = access.group();
                let group = groups::lock(tx, group_id)?.filter(|group| group.deleted_at.is_none());
                let stands = group.is_some_and(|group| group.owner == transfer.from_user_id)
                    && memberships::get(tx, group_id, &transfer.to_user_id)?.is_some();
                transfers::delete(tx, id)?;
                if !stands {
                    // Committed all the same: a stale transfer must not stay pending.
                    tell(tx, &caller, ChangeKind::TransferDeleted, &transfer, now)?;
                    return Ok::<_, Error>(None);
                }
                memberships::set_level(tx, group_id, &transfer.from_user_id, AccessLevel::Manager)?;
                memberships::upsert(
                    tx,
                    caller.tenant(),
                    group_id,
                    &transfer.to_user_id,
                    AccessLevel::Owner,
                    now,
                )?;
                groups::set_owner(tx, group_id, &transfer.to_user_id)?;
                tell(tx, &caller, ChangeKind::OwnershipTransferred, &transfer, now)?;
                Ok(Some(transfer.conversation_id))
            })
            .await?;
        let conversation = accepted.ok_or_else(|| Error::conflict("the transfer no longer stands"))?;
        audit::membership(&actor, conversation, &recipient, &Change::TransferOwnership);
        Ok(())
    }
}

fn participant(tx: &mut dyn Tx, caller: &Caller, id: TransferId) -> Result<Option<Transfer>> {
    let found = transfers::get(tx, caller.tenant(), id)?.map(|pending| pending.transfer);
    Ok(found.filter(|transfer| transfer.from_user_id == caller.user || transfer.to_user_id == caller.user))
}

/// Tells the change feed what became of a transfer.
fn tell(
    tx: &mut dyn Tx,
    caller: &Caller,
    kind: ChangeKind,
    transfer: &Transfer,
    now: Timestamp,
) -> Result<()> {
    let (user, id, part) = (Some(&transfer.to_user_id), transfer.conversation_id, Some(transfer.id.0));
    ConversationChange { kind, user, id, part }.publish(tx, caller.tenant(), now)
}

fn missing(id: TransferId) -> Error {
    Error::not_found(Resource::Transfer, id)
}
