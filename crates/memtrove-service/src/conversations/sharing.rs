//! Who may see and do what: memberships.

use super::{Conversations, authorise, open, publish};
use crate::audit::{self, Change, MembershipActor};
use crate::page::{self, Page};
use memtrove_core::conversations::{AccessLevel, Membership};
use memtrove_core::identity::{Caller, is_user_id};
use memtrove_core::{ConversationId, Error, GroupId, Resource, Result, UserId};
use memtrove_store::Tx;
use memtrove_store::changes::ChangeKind;
use memtrove_store::conversations::rows::ConversationHead;
use memtrove_store::conversations::{groups, memberships, transfers};

impl Conversations {
    /// The members of a conversation's tree.
    pub async fn list_memberships(
        &self,
        caller: &Caller,
        id: ConversationId,
        after: Option<UserId>,
        limit: Option<i64>,
    ) -> Result<Page<Membership>> {
        let limit = page::limit(limit, 50, 200)?;
        let caller = caller.clone();
        self.cx
            .store
            .read(caller.tenant().clone(), "list_memberships", move |tx| {
                let head = open(tx, &caller, id, AccessLevel::Reader)?;
                list(tx, head.group, after.as_ref(), limit)
            })
            .await
    }

    /// Makes somebody a member, or changes a member's level.
    pub async fn share(
        &self,
        caller: &Caller,
        id: ConversationId,
        user: Option<String>,
        level: Option<AccessLevel>,
    ) -> Result<Membership> {
        let user = required_user("userId", user)?;
        let level = required_level(level)?;
        let (now, actor) = (self.cx.clock.now(), MembershipActor::from(caller));
        let (caller, managers_may) = (caller.clone(), self.cx.settings.managers_may_grant_manager);
        let (membership, change) = self
            .cx
            .store
            .write(caller.tenant().clone(), "share_conversation", move |tx| {
                tx.lock(id.0.as_bytes())?;
                let head = open(tx, &caller, id, AccessLevel::Manager)?;
                let own = authorise(&head, AccessLevel::Manager)?;
                groups::lock(tx, head.group)?;
                let before = memberships::get(tx, head.group, &user)?.map(|member| member.access_level);
                check_change(own, before, Some(level), managers_may)?;
                let membership = memberships::upsert(tx, caller.tenant(), head.group, &user, level, now)?;
                let change = before.map_or(Change::Add(level), |from| Change::Update { from, to: level });
                if before != Some(level) {
                    let kind = match before {
                        None => ChangeKind::MembershipAdded,
                        Some(_) => ChangeKind::MembershipUpdated,
                    };
                    publish(tx, caller.tenant(), kind, Some(&user), id, None, now)?;
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
        user: UserId,
        level: Option<AccessLevel>,
    ) -> Result<Membership> {
        let level = required_level(level)?;
        let (now, actor) = (self.cx.clock.now(), MembershipActor::from(caller));
        let (caller, managers_may) = (caller.clone(), self.cx.settings.managers_may_grant_manager);
        let (membership, from) = self
            .cx
            .store
            .write(caller.tenant().clone(), "update_membership", move |tx| {
                tx.lock(id.0.as_bytes())?;
                let head = open(tx, &caller, id, AccessLevel::Manager)?;
                let own = authorise(&head, AccessLevel::Manager)?;
                groups::lock(tx, head.group)?;
                let before = existing(tx, &head, &user)?;
                let lowers_itself = user == caller.user && level < own;
                check_change(own, Some(before.access_level), Some(level), managers_may || lowers_itself)?;
                memberships::set_level(tx, head.group, &user, level)?;
                let from = before.access_level;
                if from != level {
                    let kind = ChangeKind::MembershipUpdated;
                    publish(tx, caller.tenant(), kind, Some(&user), id, None, now)?;
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
                let leaving = user == caller.user;
                let needed = if leaving { AccessLevel::Reader } else { AccessLevel::Manager };
                let head = open(tx, &caller, id, needed)?;
                let own = authorise(&head, needed)?;
                groups::lock(tx, head.group)?;
                let before = existing(tx, &head, &user)?;
                check_change(own, Some(before.access_level), None, managers_may || leaving)?;
                memberships::delete(tx, head.group, &user)?;
                transfers::delete_to(tx, head.group, &user)?;
                publish(tx, caller.tenant(), ChangeKind::MembershipRemoved, Some(&user), id, None, now)
            })
            .await?;
        audit::membership(&actor, id, &removed, &Change::Remove);
        Ok(())
    }
}

/// A page of a tree's members.
pub(super) fn list(
    tx: &mut dyn Tx,
    group: GroupId,
    after: Option<&UserId>,
    limit: usize,
) -> Result<Page<Membership>> {
    if let Some(after) = after {
        memberships::get(tx, group, after)?.ok_or_else(|| page::unknown_cursor("after"))?;
    }
    let list = memberships::list(tx, group, after, limit as i64 + 1)?;
    Ok(Page::cut(list, limit, |member| member.user_id.0.clone()))
}

fn existing(tx: &mut dyn Tx, head: &ConversationHead, user: &UserId) -> Result<Membership> {
    memberships::get(tx, head.group, user)?.ok_or_else(|| Error::not_found(Resource::Membership, user))
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

fn required_level(level: Option<AccessLevel>) -> Result<AccessLevel> {
    match level {
        None => Err(Error::invalid("accessLevel", "is required")),
        Some(AccessLevel::Owner) => Err(Error::bad_request(
            "ownership cannot be granted; transfer it with POST /v1/ownership-transfers",
        )),
        Some(level) => Ok(level),
    }
}
