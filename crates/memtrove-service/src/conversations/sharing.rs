//! Who may see and do what: memberships.

use super::access::{Access, AsManager, AsReader, Member, Reads, open};
use super::{Conversations, publish};
use crate::audit::{self, Change, MembershipActor};
use crate::page::{self, Page, PageRequest};
use memtrove_core::conversations::{AccessLevel, Membership};
use memtrove_core::identity::{Caller, is_user_id};
use memtrove_core::{ConversationId, Error, Resource, Result, Timestamp, UserId};
use memtrove_store::Tx;
use memtrove_store::changes::ChangeKind;
use memtrove_store::conversations::{groups, memberships, transfers};

/// The level that somebody is to have in a tree: any but that of its owner.
#[derive(Debug, Clone)]
pub struct MemberLevel {
    user: UserId,
    level: AccessLevel,
}

impl MemberLevel {
    /// What a request to share says; both are required.
    pub fn share(user: Option<String>, level: Option<AccessLevel>) -> Result<Self> {
        Self::change(required_user("userId", user)?, level)
    }

    /// What a request to change a member's level says; the level is required.
    pub fn change(user: UserId, level: Option<AccessLevel>) -> Result<Self> {
        match level {
            None => Err(Error::invalid("accessLevel", "is required")),
            Some(AccessLevel::Owner) => Err(Error::bad_request(
                "ownership cannot be granted; transfer it with POST /v1/ownership-transfers",
            )),
            Some(level) => Ok(Self { user, level }),
        }
    }
}

impl Conversations {
    /// The members of a conversation's tree.
    pub async fn list_memberships(
        &self,
        caller: &Caller,
        id: ConversationId,
        request: PageRequest<UserId>,
    ) -> Result<Page<Membership>> {
        let limit = page::limit(request.limit, 50, 200)?;
        let caller = caller.clone();
        self.cx
            .store
            .read(caller.tenant().clone(), "list_memberships", move |tx| {
                let access = open::<AsReader>(tx, &caller, id)?;
                list(tx, &access, request.after.as_ref(), limit)
            })
            .await
    }

    /// Makes somebody a member, or changes a member's level.
    pub async fn share(
        &self,
        caller: &Caller,
        id: ConversationId,
        member: MemberLevel,
    ) -> Result<Membership> {
        let MemberLevel { user, level } = member;
        let (now, actor) = (self.cx.clock.now(), MembershipActor::from(caller));
        let (caller, managers_may) = (caller.clone(), self.cx.settings.managers_may_grant_manager);
        let (membership, change) = self
            .cx
            .store
            .write(caller.tenant().clone(), "share_conversation", move |tx| {
                tx.lock(id.0.as_bytes())?;
                let access = open::<AsManager>(tx, &caller, id)?;
                groups::lock(tx, access.group())?;
                let before = memberships::get(tx, access.group(), &user)?.map(|member| member.access_level);
                check_change(access.level(), before, Some(level), managers_may)?;
                let membership = memberships::upsert(tx, caller.tenant(), access.group(), &user, level, now)?;
                let change = before.map_or(Change::Add(level), |from| Change::Update { from, to: level });
                if before != Some(level) {
                    let kind = match before {
                        None => ChangeKind::MembershipAdded,
                        Some(_) => ChangeKind::MembershipUpdated,
                    };
                    publish(tx, caller.tenant(), kind, Some(&user), id, now)?;
                }
                Ok::<_, Error>((membership, change))
            })
            .await?;
        audit::membership(&actor, id, &membership.user_id, &change);
        Ok(membership)
    }

    /// Changes a member's level.
    pub async fn update_membership(
        &self,
        caller: &Caller,
        id: ConversationId,
        member: MemberLevel,
    ) -> Result<Membership> {
        let MemberLevel { user, level } = member;
        let (now, actor) = (self.cx.clock.now(), MembershipActor::from(caller));
        let (caller, managers_may) = (caller.clone(), self.cx.settings.managers_may_grant_manager);
        let (membership, from) = self
            .cx
            .store
            .write(caller.tenant().clone(), "update_membership", move |tx| {
                tx.lock(id.0.as_bytes())?;
                let access = open::<AsManager>(tx, &caller, id)?;
                let own = access.level();
                groups::lock(tx, access.group())?;
                let before = existing(tx, &access, &user)?;
                let lowers_itself = user == caller.user && level < own;
                check_change(own, Some(before.access_level), Some(level), managers_may || lowers_itself)?;
                memberships::set_level(tx, access.group(), &user, level)?;
                let from = before.access_level;
                if from != level {
                    publish(tx, caller.tenant(), ChangeKind::MembershipUpdated, Some(&user), id, now)?;
                }
                Ok::<_, Error>((Membership { access_level: level, ..before }, from))
            })
            .await?;
        audit::membership(&actor, id, &membership.user_id, &Change::Update { from, to: level });
        Ok(membership)
    }

    /// Takes somebody out. Everybody but the owner may take out themselves.
    pub async fn delete_membership(&self, caller: &Caller, id: ConversationId, user: UserId) -> Result<()> {
        let (now, actor) = (self.cx.clock.now(), MembershipActor::from(caller));
        let (caller, managers_may) = (caller.clone(), self.cx.settings.managers_may_grant_manager);
        let removed = user.clone();
        self.cx
            .store
            .write(caller.tenant().clone(), "delete_membership", move |tx| {
                tx.lock(id.0.as_bytes())?;
                if user == caller.user {
                    let access = open::<AsReader>(tx, &caller, id)?;
                    take_out(tx, &access, &user, true, now)
                } else {
                    let access = open::<AsManager>(tx, &caller, id)?;
                    take_out(tx, &access, &user, managers_may, now)
                }
            })
            .await?;
        audit::membership(&actor, id, &removed, &Change::Remove);
        Ok(())
    }
}

/// A page of a tree's members.
pub(super) fn list<L: Reads>(
    tx: &mut dyn Tx,
    access: &Access<L>,
    after: Option<&UserId>,
    limit: usize,
) -> Result<Page<Membership>> {
    let group = access.group();
    if let Some(after) = after {
        memberships::get(tx, group, after)?.ok_or_else(|| page::unknown_cursor("after"))?;
    }
    let list = memberships::list(tx, group, after, limit as i64 + 1)?;
    Ok(Page::cut(list, limit, |member| member.user_id.0.clone()))
}

fn existing<L: Member>(tx: &mut dyn Tx, access: &Access<L>, user: &UserId) -> Result<Membership> {
    memberships::get(tx, access.group(), user)?.ok_or_else(|| Error::not_found(Resource::Membership, user))
}

fn take_out<L: Member>(
    tx: &mut dyn Tx,
    access: &Access<L>,
    user: &UserId,
    may_be_manager: bool,
    now: Timestamp,
) -> Result<()> {
    let group = access.group();
    groups::lock(tx, group)?;
    let before = existing(tx, access, user)?;
    check_change(access.level(), Some(before.access_level), None, may_be_manager)?;
    memberships::delete(tx, group, user)?;
    transfers::delete_to(tx, group, user)?;
    publish(tx, access.tenant(), ChangeKind::MembershipRemoved, Some(user), access.id(), now)
}

/// The rules about who may turn which level into which. `after` is none for a removal.
fn check_change(
    own: AccessLevel,
    before: Option<AccessLevel>,
    after: Option<AccessLevel>,
    managers_may_grant_manager: bool,
) -> Result<()> {
    if before == Some(AccessLevel::Owner) {
        return Err(Error::bad_request(
            "the owner's membership cannot be changed; transfer the ownership with POST /v1/ownership-transfers",
        ));
    }
    let about_manager = before == Some(AccessLevel::Manager) || after == Some(AccessLevel::Manager);
    if about_manager && own < AccessLevel::Owner && !managers_may_grant_manager {
        return Err(Error::forbidden("only the owner may handle managers on this server"));
    }
    Ok(())
}

pub(super) fn required_user(field: &str, user: Option<String>) -> Result<UserId> {
    match user {
        Some(user) if is_user_id(&user) => Ok(UserId(user)),
        Some(_) => Err(Error::invalid(field, "must have 1..255 characters, not all blank, and no NUL")),
        None => Err(Error::invalid(field, "is required")),
    }
}
