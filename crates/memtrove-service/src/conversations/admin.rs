//! What admins and auditors may do with any conversation of their tenant. Every call is in the audit log.

use super::access::open_any;
use super::entries::{EntryPage, ListEntries, Walk};
use super::lifecycle::delete_tree;
use super::search::{AdminSearch, SearchPage, SearchRequest};
use super::{ChannelFilter, Conversations, EpochFilter, forks, not_found, publish, sharing, text};
use crate::audit::{self, AsAdmin, AsAuditor, Call, Change, Grant, MembershipActor, audited};
use crate::page::{self, Page, PageRequest};
use memtrove_core::conversations::{Channel, Conversation, ListMode, Membership};
use memtrove_core::identity::{MAX_USER_ID_CHARS, Principal};
use memtrove_core::{ConversationId, EntryId, Error, Result, Timestamp, UserId};
use memtrove_store::Tx;
use memtrove_store::changes::ChangeKind;
use memtrove_store::conversations::entries::{EntryFilter, MemoryFilter};
use memtrove_store::conversations::groups::{self, Counts};
use memtrove_store::conversations::listing::{self, AdminFilter, ListPosition};
use memtrove_store::conversations::rows;

/// A request for an admin's list of conversations.
#[derive(Debug, Clone, Default)]
pub struct AdminList {
    /// Which conversations of each tree.
    pub mode: ListMode,
    /// Only this owner's.
    pub owner: Option<String>,
    /// Deleted ones too.
    pub include_deleted: bool,
    /// Deleted ones and no others.
    pub only_deleted: bool,
    /// Deleted at or after.
    pub deleted_after: Option<Timestamp>,
    /// Deleted before.
    pub deleted_before: Option<Timestamp>,
    /// Go on after this conversation.
    pub after: Option<ConversationId>,
    /// The size of the page.
    pub limit: Option<i64>,
}

/// A request for an admin's page of entries.
#[derive(Debug, Clone, Default)]
pub struct AdminEntries {
    /// Only this channel.
    pub channel: Option<Channel>,
    /// Only this epoch, in the memory channel.
    pub epoch: EpochFilter,
    /// Everything in the tree instead of one branch.
    pub all_forks: bool,
    /// Go on after this entry.
    pub after: Option<EntryId>,
    /// The size of the page.
    pub limit: Option<i64>,
}

impl Conversations {
    /// A statistic of the service, which somebody else computes.
    pub async fn admin_stats<T>(
        &self,
        principal: &Principal,
        name: &str,
        justification: Option<&str>,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let detail = [("name", name.to_owned())];
        let call = Call::read("getStats", &detail);
        audited(&self.cx, principal, call, justification, |_| work).await
    }

    /// The conversations of a tenant.
    pub async fn admin_list(
        &self,
        principal: &Principal,
        request: AdminList,
        justification: Option<&str>,
    ) -> Result<Page<Conversation>> {
        let detail = [
            ("mode", format!("{:?}", request.mode)),
            ("userId", request.owner.clone().unwrap_or_default()),
            ("includeDeleted", request.include_deleted.to_string()),
            ("onlyDeleted", request.only_deleted.to_string()),
        ];
        let call = Call::read("listConversations", &detail);
        let work = |grant| self.list_any(grant, request);
        audited(&self.cx, principal, call, justification, work).await
    }

    async fn list_any(&self, grant: Grant<AsAuditor>, request: AdminList) -> Result<Page<Conversation>> {
        let limit = page::limit(request.limit, 100, 1000)?;
        let owner = request.owner.filter(|owner| !owner.trim().is_empty());
        if let Some(owner) = &owner {
            text("userId", owner, MAX_USER_ID_CHARS)?;
        }
        let filter = AdminFilter {
            mode: request.mode,
            owner: owner.map(UserId),
            live: !request.only_deleted,
            deleted: request.include_deleted || request.only_deleted,
            deleted_from: request.deleted_after,
            deleted_before: request.deleted_before,
        };
        let after = request.after;
        self.cx
            .store
            .read(grant.tenant().clone(), "admin_list_conversations", move |tx| {
                let place = match after {
                    None => ListPosition::TOP,
                    Some(id) => listing::place_of(tx, grant.tenant(), id)?
                        .ok_or_else(|| page::unknown_cursor("after"))?,
                };
                let list = listing::all(tx, grant.tenant(), &filter, place, limit + 1)?;
                Ok(Page::cut(list, limit, |conversation| conversation.id.to_string()))
            })
            .await
    }

    /// Any conversation, deleted or not.
    pub async fn admin_get(
        &self,
        principal: &Principal,
        id: ConversationId,
        justification: Option<&str>,
    ) -> Result<Conversation> {
        let detail = [("id", id.to_string())];
        let call = Call::read("getConversation", &detail);
        let work = |grant: Grant<AsAuditor>| {
            self.cx.store.read(grant.tenant().clone(), "admin_get_conversation", move |tx| {
                rows::get_any(tx, grant.tenant(), id)?.ok_or_else(|| not_found(id))
            })
        };
        audited(&self.cx, principal, call, justification, work).await
    }

    /// Deletes any tree. Deleting it again changes nothing.
    pub async fn admin_delete(
        &self,
        principal: &Principal,
        id: ConversationId,
        justification: Option<&str>,
    ) -> Result<()> {
        let now = self.cx.clock.now();
        let detail = [("target", id.to_string())];
        let call = Call::write("deleteConversation", &detail);
        let work = |grant: Grant<AsAdmin>| {
            self.cx.store.write(grant.tenant().clone(), "admin_delete_conversation", move |tx| {
                let access = open_any(tx, &grant, id)?;
                let group = access.group();
                match groups::lock(tx, group)? {
                    Some(locked) if locked.deleted_at.is_none() => {
                        let kind = ChangeKind::ConversationDeleted;
                        publish(tx, grant.tenant(), kind, grant.user(), id, now)?;
                        Ok((group, delete_tree(tx, &access, now)?))
                    }
                    _ => Ok((group, Vec::new())),
                }
            })
        };
        let (group, members) = audited(&self.cx, principal, call, justification, work).await?;
        self.cx.recorder.end_tree(group);
        let actor = MembershipActor::from(principal);
        members.iter().for_each(|member| audit::membership(&actor, id, member, &Change::Remove));
        Ok(())
    }

    /// Brings a deleted tree back, with everybody who was in it.
    pub async fn admin_restore(
        &self,
        principal: &Principal,
        id: ConversationId,
        justification: Option<&str>,
    ) -> Result<Conversation> {
        let now = self.cx.clock.now();
        let detail = [("target", id.to_string())];
        let call = Call::write("restoreConversation", &detail);
        let work = |grant: Grant<AsAdmin>| {
            self.cx.store.write(grant.tenant().clone(), "admin_restore_conversation", move |tx| {
                let group = open_any(tx, &grant, id)?.group();
                let locked = groups::lock(tx, group)?.ok_or_else(|| not_found(id))?;
                if locked.deleted_at.is_none() {
                    return Err(Error::conflict("Conversation is not deleted"));
                }
                groups::set_deleted(tx, group, None)?;
                publish(tx, grant.tenant(), ChangeKind::ConversationRestored, grant.user(), id, now)?;
                rows::get_any(tx, grant.tenant(), id)?.ok_or_else(|| not_found(id))
            })
        };
        audited(&self.cx, principal, call, justification, work).await
    }

    /// The entries of any conversation: every channel, every client, every epoch.
    pub async fn admin_entries(
        &self,
        principal: &Principal,
        id: ConversationId,
        request: AdminEntries,
        justification: Option<&str>,
    ) -> Result<EntryPage> {
        let channel = request.channel.map_or("all", Channel::as_str);
        let detail = [("id", id.to_string()), ("channel", channel.to_owned())];
        let call = Call::read("getEntries", &detail);
        let work = |grant| self.entries_of_any(grant, id, request);
        audited(&self.cx, principal, call, justification, work).await
    }

    async fn entries_of_any(
        &self,
        grant: Grant<AsAuditor>,
        id: ConversationId,
        request: AdminEntries,
    ) -> Result<EntryPage> {
        let limit = page::limit(request.limit, 50, 1000)?;
        let epoch = match request.epoch {
            EpochFilter::Number(epoch) if request.channel == Some(Channel::Memory) => Some(epoch),
            _ => None,
        };
        let everybody = MemoryFilter { client: None, epoch, from_ord: 0 };
        let filter = EntryFilter {
            history: request.channel != Some(Channel::Memory),
            memory: (request.channel != Some(Channel::History)).then_some(everybody),
        };
        let list = ListEntries {
            channel: ChannelFilter::All,
            all_forks: request.all_forks,
            after: request.after,
            ..ListEntries::default()
        };
        self.cx
            .store
            .read(grant.tenant().clone(), "admin_list_entries", move |tx| {
                let access = open_any(tx, &grant, id)?;
                Walk::new(tx, &access, None, &list, limit)?.page(tx, &filter, i64::MAX)
            })
            .await
    }

    /// The members of any conversation.
    pub async fn admin_memberships(
        &self,
        principal: &Principal,
        id: ConversationId,
        request: PageRequest<UserId>,
        justification: Option<&str>,
    ) -> Result<Page<Membership>> {
        let detail = [("id", id.to_string())];
        let call = Call::read("getMemberships", &detail);
        let work = |grant: Grant<AsAuditor>| async {
            let limit = page::limit(request.limit, 50, 1000)?;
            let (tenant, after) = (grant.tenant().clone(), request.after);
            let members = move |tx: &mut dyn Tx| {
                let access = open_any(tx, &grant, id)?;
                sharing::list(tx, &access, after.as_ref(), limit)
            };
            self.cx.store.read(tenant, "admin_list_memberships", members).await
        };
        audited(&self.cx, principal, call, justification, work).await
    }

    /// The branches of any conversation's tree.
    pub async fn admin_forks(
        &self,
        principal: &Principal,
        id: ConversationId,
        request: PageRequest<ConversationId>,
        justification: Option<&str>,
    ) -> Result<Page<Conversation>> {
        let detail = [("id", id.to_string())];
        let call = Call::read("listForks", &detail);
        let work = |grant: Grant<AsAuditor>| async {
            let limit = page::limit(request.limit, 50, 1000)?;
            let (tenant, after) = (grant.tenant().clone(), request.after);
            let branches = move |tx: &mut dyn Tx| {
                let access = open_any(tx, &grant, id)?;
                forks::list(tx, &access, after, limit, true)
            };
            self.cx.store.read(tenant, "admin_list_forks", branches).await
        };
        audited(&self.cx, principal, call, justification, work).await
    }

    /// Searches every conversation of a tenant.
    pub async fn admin_search(
        &self,
        principal: &Principal,
        request: SearchRequest,
        admin: AdminSearch,
        justification: Option<&str>,
    ) -> Result<SearchPage> {
        let detail = [
            ("query", request.query.clone().unwrap_or_default()),
            ("userId", admin.owner.clone().unwrap_or_default()),
            ("includeDeleted", admin.include_deleted.to_string()),
        ];
        let call = Call::read("searchConversations", &detail);
        let work = |grant| self.search_any(grant, request, admin);
        audited(&self.cx, principal, call, justification, work).await
    }

    /// How much there is in a tenant.
    pub async fn admin_counts(&self, principal: &Principal, justification: Option<&str>) -> Result<Counts> {
        let detail = [("name", "summary".to_owned())];
        let call = Call::read("getStats", &detail);
        let work = |grant: Grant<AsAuditor>| {
            self.cx.store.read(grant.tenant().clone(), "admin_counts", move |tx| {
                Ok(groups::counts(tx, grant.tenant())?)
            })
        };
        audited(&self.cx, principal, call, justification, work).await
    }
}
