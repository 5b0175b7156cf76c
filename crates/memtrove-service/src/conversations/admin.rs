//! What admins and auditors may do with any conversation of their tenant. Every call is in the audit log.

use super::entries::{EntryPage, ListEntries, Walk};
use super::lifecycle::delete_tree;
use super::search::{AdminSearch, SearchHit, SearchRequest};
use super::{ChannelFilter, Conversations, EpochFilter, forks, not_found, publish, sharing, text};
use crate::audit::{self, Call, Change, MembershipActor};
use crate::page::{self, Page};
use memtrove_core::conversations::{Channel, Conversation, ListMode, Membership};
use memtrove_core::identity::{MAX_USER_ID_CHARS, Principal, Tenant};
use memtrove_core::{ConversationId, EntryId, Error, GroupId, Result, Timestamp, UserId};
use memtrove_store::Tx;
use memtrove_store::changes::ChangeKind;
use memtrove_store::conversations::entries::{EntryFilter, MemoryFilter};
use memtrove_store::conversations::groups::{self, Counts};
use memtrove_store::conversations::listing::{self, AdminFilter, ListPosition};
use memtrove_store::conversations::{ancestry, rows};

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
    /// Runs an admin call between its two lines in the audit log, if it is admitted at all.
    async fn audited<T>(
        &self,
        principal: &Principal,
        call: Call<'_>,
        justification: Option<&str>,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        audit::admit(principal, &call, justification, self.cx.settings.require_justification)?;
        let result = work.await;
        audit::outcome(call.action, &result);
        result
    }

    /// A statistic of the service, which somebody else computes.
    pub async fn admin_stats<T>(
        &self,
        principal: &Principal,
        name: &str,
        justification: Option<&str>,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        self.audited(principal, Call::read("getStats", &[("name", name.to_owned())]), justification, work)
            .await
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
        let work = self.admin_list_page(principal, request);
        self.audited(principal, Call::read("listConversations", &detail), justification, work).await
    }

    async fn admin_list_page(&self, principal: &Principal, request: AdminList) -> Result<Page<Conversation>> {
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
        let (tenant, after) = (principal.tenant().clone(), request.after);
        self.cx
            .store
            .read(principal.tenant(), "admin_list_conversations", move |tx| {
                let place = match after {
                    None => ListPosition::TOP,
                    Some(id) => {
                        listing::place_of(tx, &tenant, id)?.ok_or_else(|| page::unknown_cursor("after"))?
                    }
                };
                let list = listing::all(tx, &tenant, &filter, place, limit + 1)?;
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
        let tenant = principal.tenant().clone();
        let work = self.cx.store.read(principal.tenant(), "admin_get_conversation", move |tx| {
            rows::get_any(tx, &tenant, id)?.ok_or_else(|| not_found(id))
        });
        let detail = [("id", id.to_string())];
        self.audited(principal, Call::read("getConversation", &detail), justification, work).await
    }

    /// Deletes any tree. Deleting it again changes nothing.
    pub async fn admin_delete(
        &self,
        principal: &Principal,
        id: ConversationId,
        justification: Option<&str>,
    ) -> Result<()> {
        let (tenant, now, user) = (principal.tenant().clone(), self.cx.clock.now(), principal.user.clone());
        let work = self.cx.store.write(principal.tenant(), "admin_delete_conversation", move |tx| {
            let group = tree(tx, &tenant, id)?;
            match groups::lock(tx, group)? {
                Some(locked) if locked.deleted_at.is_none() => {
                    let kind = ChangeKind::ConversationDeleted;
                    publish(tx, &tenant, kind, user.as_ref(), id, None, now)?;
                    Ok((group, delete_tree(tx, group, now)?))
                }
                _ => Ok((group, Vec::new())),
            }
        });
        let detail = [("target", id.to_string())];
        let (group, members) =
            self.audited(principal, Call::write("deleteConversation", &detail), justification, work).await?;
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
        let (tenant, now, user) = (principal.tenant().clone(), self.cx.clock.now(), principal.user.clone());
        let work = self.cx.store.write(principal.tenant(), "admin_restore_conversation", move |tx| {
            let group = tree(tx, &tenant, id)?;
            let locked = groups::lock(tx, group)?.ok_or_else(|| not_found(id))?;
            if locked.deleted_at.is_none() {
                return Err(Error::conflict("Conversation is not deleted"));
            }
            groups::set_deleted(tx, group, None)?;
            publish(tx, &tenant, ChangeKind::ConversationRestored, user.as_ref(), id, None, now)?;
            rows::get_any(tx, &tenant, id)?.ok_or_else(|| not_found(id))
        });
        let detail = [("target", id.to_string())];
        self.audited(principal, Call::write("restoreConversation", &detail), justification, work).await
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
        let work = self.admin_entries_page(principal, id, request);
        self.audited(principal, Call::read("getEntries", &detail), justification, work).await
    }

    async fn admin_entries_page(
        &self,
        principal: &Principal,
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
        let tenant = principal.tenant().clone();
        self.cx
            .store
            .read(principal.tenant(), "admin_list_entries", move |tx| {
                let conversation = rows::get_any(tx, &tenant, id)?.ok_or_else(|| not_found(id))?;
                let group = tree(tx, &tenant, id)?;
                let view = ancestry::view(tx, group, id, !conversation.is_root())?;
                Walk { group, view, reader: None, request: &list, limit }.page(tx, &filter, i64::MAX)
            })
            .await
    }

    /// The members of any conversation.
    pub async fn admin_memberships(
        &self,
        principal: &Principal,
        id: ConversationId,
        after: Option<UserId>,
        limit: Option<i64>,
        justification: Option<&str>,
    ) -> Result<Page<Membership>> {
        let tenant = principal.tenant().clone();
        let work = async {
            let limit = page::limit(limit, 50, 1000)?;
            let members = move |tx: &mut dyn Tx| {
                let group = tree(tx, &tenant, id)?;
                sharing::list(tx, group, after.as_ref(), limit)
            };
            self.cx.store.read(principal.tenant(), "admin_list_memberships", members).await
        };
        let detail = [("id", id.to_string())];
        self.audited(principal, Call::read("getMemberships", &detail), justification, work).await
    }

    /// The branches of any conversation's tree.
    pub async fn admin_forks(
        &self,
        principal: &Principal,
        id: ConversationId,
        after: Option<ConversationId>,
        limit: Option<i64>,
        justification: Option<&str>,
    ) -> Result<Page<Conversation>> {
        let tenant = principal.tenant().clone();
        let work = async {
            let limit = page::limit(limit, 50, 1000)?;
            let branches = move |tx: &mut dyn Tx| {
                let group = tree(tx, &tenant, id)?;
                forks::list(tx, &tenant, group, after, limit, true)
            };
            self.cx.store.read(principal.tenant(), "admin_list_forks", branches).await
        };
        let detail = [("id", id.to_string())];
        self.audited(principal, Call::read("listForks", &detail), justification, work).await
    }

    /// Searches every conversation of a tenant.
    pub async fn admin_search(
        &self,
        principal: &Principal,
        request: SearchRequest,
        admin: AdminSearch,
        justification: Option<&str>,
    ) -> Result<Page<SearchHit>> {
        let detail = [
            ("query", request.query.clone().unwrap_or_default()),
            ("userId", admin.owner.clone().unwrap_or_default()),
            ("includeDeleted", admin.include_deleted.to_string()),
        ];
        let work = self.search_as_admin(principal.tenant(), request, admin);
        self.audited(principal, Call::read("searchConversations", &detail), justification, work).await
    }

    /// How much there is in a tenant.
    pub async fn admin_counts(&self, principal: &Principal, justification: Option<&str>) -> Result<Counts> {
        let tenant = principal.tenant().clone();
        let work = self
            .cx
            .store
            .read(principal.tenant(), "admin_counts", move |tx| Ok(groups::counts(tx, &tenant)?));
        self.admin_stats(principal, "summary", justification, work).await
    }
}

fn tree(tx: &mut dyn Tx, tenant: &Tenant, id: ConversationId) -> Result<GroupId> {
    rows::group(tx, tenant, id)?.ok_or_else(|| not_found(id))
}
