//! Memories by whom they are about, over all scopes of a user at once: what mem0 asks for.

use super::provider::{NearQuery, Page, ScanQuery, Span};
use super::search::{Hit, KnowledgeMode};
use super::{Memories, count};
use memloom_core::memories::mem0::{self, Entities, Entity, Filters};
use memloom_core::memories::merge::Options;
use memloom_core::memories::{
    Applied, Assertion, Change, Code, Conditions, Identifier, Identifiers, Layer, Memory, MemoryCaller, Mode,
    Position, Precondition, Ranking, Refusal, ScopeKey, Viewer,
};
use memloom_core::{Error, Result};
use memloom_store::memories::ScopeNo;
use memloom_store::memories::scopes;
use memloom_store::memories::sessions::{self, Session};
use serde_json::Value;
use std::collections::BTreeMap;

/// The scopes of one user that a request looks into at most.
const MOST_SCOPES: usize = 2_000;
/// The subjects that are told of at most.
const MOST_SUBJECTS: usize = 100_000;
/// Entries or scopes that are read at a time.
const STEP: usize = 500;

/// Where somebody looks, and with whose eyes.
struct Sight {
    viewer: Viewer,
    spans: Vec<Span>,
}

/// Somebody or something that memories are about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// What it is.
    pub entity: Entity,
    /// Its id.
    pub id: String,
    /// How many memories are about it.
    pub memories: i64,
}

impl Memories {
    /// The best matches among entries of these subjects, strongest first.
    pub async fn search_about(
        &self,
        caller: &MemoryCaller,
        filters: Filters,
        query: &str,
        threshold: f64,
        limit: usize,
    ) -> Result<Vec<Hit>> {
        let sights = self.sights(caller, &filters.places).await?;
        let looked = self.look_for(caller, query, KnowledgeMode::Hybrid).await?;
        let mut all = Vec::new();
        for sight in sights {
            let near = NearQuery {
                vectors: looked.vectors.clone(),
                terms: looked.terms.clone(),
                mode: Mode::Hybrid,
                words_required: false,
                threshold,
                want: limit,
                viewer: sight.viewer,
                conditions: filters.conditions.clone(),
                now: self.now(),
            };
            // Everything that was added is found: what says the same, too.
            let options = Options { limit, ranking: Ranking::Score, dedupe: false, include_overridden: true };
            let (hits, ..) = self.walk(caller, &sight.spans, near, options, &|_| true).await?;
            all.extend(hits);
        }
        all.sort_by(|a, b| b.score.total_cmp(&a.score));
        all.truncate(limit);
        self.parts.uses.note(all.iter().map(|hit| hit.memory.id), self.now());
        for layer in
            Layer::ALL.into_iter().filter(|layer| all.iter().any(|hit| hit.memory.scope.layer() == *layer))
        {
            count("memory.search", layer);
        }
        Ok(all)
    }

    /// Entries of these subjects, newest first, from the `offset`th on; and how many there are altogether.
    pub async fn list_about(
        &self,
        caller: &MemoryCaller,
        filters: Filters,
        offset: usize,
        limit: usize,
    ) -> Result<(Vec<Memory>, usize)> {
        let sights = self.sights(caller, &filters.places).await?;
        let (mut before, mut after, mut total) = (offset, None, 0);
        loop {
            let wanted = if before > 0 { before.min(STEP) } else { limit };
            let page = self.page_about(&sights, &filters.conditions, after, wanted).await?;
            total = total.max(page.total);
            after = page.memories.last().map(Position::of);
            if before == 0 || after.is_none() {
                return Ok((if before == 0 { page.memories } else { Vec::new() }, total));
            }
            before -= page.memories.len().min(before);
        }
    }

    /// Deletes the entries of these subjects that the caller sees, what was put away among them; says how many went.
    pub async fn delete_about(&self, caller: &MemoryCaller, filters: Filters) -> Result<usize> {
        let conditions = Conditions { kinds: None, include_archived: true, ..filters.conditions };
        let mut deleted = 0;
        for sight in self.sights(caller, &filters.places).await? {
            deleted += self.delete_seen(caller, sight, &conditions).await?;
        }
        Ok(deleted)
    }

    /// Changes an entry by a body that is made from what it is: see [`Change`].
    pub async fn revise(
        &self,
        caller: &MemoryCaller,
        id: &str,
        body: impl Fn(&Memory) -> Value,
    ) -> Result<Memory> {
        let revised = self
            .change(caller, id, &Assertion::default(), "update", |memory| self.revised(memory, &body(memory)))
            .await?;
        Ok(revised.memory)
    }

    /// Refuses what [`Self::revise`] would refuse, and changes nothing.
    pub async fn check_revision(
        &self,
        caller: &MemoryCaller,
        id: &str,
        body: impl Fn(&Memory) -> Value,
    ) -> Result<()> {
        let memory = self.reach(caller, id, &Assertion::default()).await?;
        caller.authorise_write(memory.scope.layer())?;
        self.refuse_restated(&self.revised(&memory, &body(&memory))?.memory).await
    }

    fn revised(&self, memory: &Memory, body: &Value) -> Result<Applied> {
        Change::read(body, None, self.rules())?.apply(memory, self.now(), self.rules())
    }

    /// Whom there are memories about, as far as the caller may know.
    pub async fn subjects(&self, caller: &MemoryCaller) -> Result<Vec<Subject>> {
        let mut counted: BTreeMap<(Entity, String), i64> = BTreeMap::new();
        for (scope, entries) in self.known_scopes(caller).await? {
            for (entity, id) in Entities::of_scope(&scope).given().filter(|_| entries > 0) {
                *counted.entry((entity, id.to_owned())).or_default() += entries;
            }
            if counted.len() > MOST_SUBJECTS {
                let message =
                    format!("there are memories about more than {MOST_SUBJECTS} subjects; name one");
                return Err(Refusal::new(Code::InvalidRequest, message).into());
            }
        }
        let subject = |((entity, id), memories)| Subject { entity, id, memories };
        Ok(counted.into_iter().map(subject).collect())
    }

    /// Deletes every entry about a subject, of whomever else it is; `None` is everything about anybody. Says how many went.
    pub async fn delete_subject(
        &self,
        caller: &MemoryCaller,
        subject: Option<(Entity, &str)>,
    ) -> Result<usize> {
        let for_all = acts_for_all(caller);
        if subject.is_none() && !for_all {
            let message = "only a client that may act for all users may delete everything";
            return Err(Refusal::new(Code::Forbidden, message).into());
        }
        // Everything in a scope that stands for the subject; in others, the entries that the id is kept with.
        let what_goes = |scope: &ScopeKey| {
            let entities = Entities::of_scope(scope);
            let everything = Conditions { include_archived: true, ..Conditions::default() };
            match subject {
                Some((entity, id)) if entities.get(entity) == Some(id) => Some(everything),
                Some((entity, id)) if Entities::may_be_kept_in(entity, scope) => {
                    Some(Conditions { kinds: None, include_archived: true, ..mem0::with_id(entity, id) })
                }
                Some(_) => None,
                None => (!entities.is_empty()).then_some(everything),
            }
        };
        let mut deleted = 0;
        for (scope, _) in self.known_scopes(caller).await? {
            let Some(conditions) = what_goes(&scope) else { continue };
            let identifiers = scope.identifiers();
            let mut viewer = caller.viewer(&identifiers);
            viewer.all = for_all;
            let sight = Sight { viewer, spans: self.own_span(&scope).await? };
            deleted += self.delete_seen(caller, sight, &conditions).await?;
        }
        Ok(deleted)
    }

    /// The scopes that subjects are found in: those of users and projects that the caller may name, with the number of their
    /// entries.
    async fn known_scopes(&self, caller: &MemoryCaller) -> Result<Vec<(ScopeKey, i64)>> {
        let mut known = Vec::new();
        let mut last = ScopeNo(0);
        loop {
            let (tenant, after) = (caller.tenant().clone(), last);
            let step = self
                .cx
                .store
                .read("list_scopes", move |tx| {
                    tx.confine(tenant.as_str())?;
                    Ok::<_, Error>(scopes::after(tx, Some(&tenant), after, STEP as i64)?)
                })
                .await?;
            let Some((row, _)) = step.last() else { return Ok(known) };
            last = row.no;
            let may_name = |scope: &ScopeKey| caller.scope(&scope.identifiers(), scope.layer()).is_ok();
            let mine = step.into_iter().map(|(row, scope)| (scope, row.entries));
            known.extend(mine.filter(|(scope, _)| !Entities::of_scope(scope).is_empty() && may_name(scope)));
        }
    }

    /// Deletes what is seen, page by page: of one user at a time, since whoever writes takes turns with that user's forgetting.
    async fn delete_seen(
        &self,
        caller: &MemoryCaller,
        sight: Sight,
        conditions: &Conditions,
    ) -> Result<usize> {
        let (mut deleted, mut after) = (0, None);
        let sights = [sight];
        loop {
            let page = self.page_about(&sights, conditions, after, STEP).await?;
            let Some(last) = page.memories.last() else { return Ok(deleted) };
            after = Some(Position::of(last));
            let (mirrors, own): (Vec<_>, Vec<_>) =
                page.memories.into_iter().partition(|memory| memory.lineage.mirror_of.is_some());
            own.iter().chain(&mirrors).try_for_each(|memory| caller.authorise_write(memory.scope.layer()))?;
            for memory in &own {
                self.cx.embeddings.forget(caller.tenant().as_str(), &memory.content);
            }
            deleted += self.remove(caller, own, "delete").await?;
            for mirror in mirrors {
                let (assertion, any) = (Assertion::default(), Precondition::default());
                let gone = self.delete_if(caller, mirror.id, &assertion, &any, |_| true).await?;
                deleted += usize::from(gone);
            }
        }
    }

    /// A page of what is seen, newest first.
    async fn page_about(
        &self,
        sights: &[Sight],
        conditions: &Conditions,
        after: Option<Position>,
        limit: usize,
    ) -> Result<Page> {
        let mut all = Page::default();
        for sight in sights {
            let query = ScanQuery {
                viewer: sight.viewer.clone(),
                conditions: conditions.clone(),
                after,
                limit,
                with_embeddings: false,
                now: self.now(),
            };
            let page = self.scan(sight.spans.clone(), query).await?;
            all.memories.extend(page.memories);
            all.total += page.total;
        }
        all.memories.sort_by(|a, b| Position::of(a).compare(&Position::of(b)));
        all.memories.truncate(limit);
        Ok(all)
    }

    /// Where these ids lead: for each user one look at everything that is meant, and one at what is nobody's own.
    async fn sights(&self, caller: &MemoryCaller, places: &[Entities]) -> Result<Vec<Sight>> {
        let mut by_user: BTreeMap<Option<&str>, Vec<ScopeKey>> = BTreeMap::new();
        for place in places {
            let user = place.get(Entity::User);
            let scopes = match (user, place.get(Entity::Run)) {
                (Some(user), None) => self.scopes_of_user(caller, user, place.get(Entity::Agent)).await?,
                // Of a run there is one scope, and one of what is nobody's own.
                _ => {
                    let home = place.home()?;
                    vec![caller.scope(&home.identifiers, home.layer)?]
                }
            };
            let known = by_user.entry(user).or_default();
            for scope in scopes {
                if !known.contains(&scope) {
                    known.push(scope);
                }
            }
        }
        let mut sights = Vec::with_capacity(by_user.len());
        for (user, scopes) in by_user {
            let mut identifiers = Identifiers::default();
            identifiers.set(Identifier::User, Entity::User.member(), user.unwrap_or_default())?;
            sights.push(Sight {
                viewer: caller.viewer(&identifiers),
                spans: self.own_spans(caller, scopes).await?,
            });
        }
        Ok(sights)
    }

    /// Every scope of a user; with an agent, those in which something of that agent can be.
    async fn scopes_of_user(
        &self,
        caller: &MemoryCaller,
        user: &str,
        agent: Option<&str>,
    ) -> Result<Vec<ScopeKey>> {
        let mut identifiers = Identifiers::default();
        identifiers.set(Identifier::User, Entity::User.member(), user)?;
        // Whether the caller may name this user at all.
        caller.scope(&identifiers, Layer::User)?;
        let (tenant, of) = (caller.tenant().clone(), user.to_owned());
        let found = self
            .cx
            .store
            .read("list_scopes", move |tx| {
                Ok::<_, Error>(scopes::of_user(tx, &tenant, &of, MOST_SCOPES as i64 + 1)?)
            })
            .await?;
        if found.len() > MOST_SCOPES {
            let message =
                format!("this user has memories in more than {MOST_SCOPES} runs; name the run_id, too");
            return Err(Refusal::new(Code::InvalidRequest, message).into());
        }
        let may_be_of = |scope: &ScopeKey| match scope.layer() {
            Layer::Agent => agent.is_none_or(|agent| scope.get(Identifier::Agent) == Some(agent)),
            Layer::User => agent.is_none(),
            _ => true,
        };
        Ok(found.into_iter().map(|(_, scope)| scope).filter(may_be_of).collect())
    }

    /// These scopes by themselves, without those of conversations that were deleted.
    async fn own_spans(&self, caller: &MemoryCaller, scopes: Vec<ScopeKey>) -> Result<Vec<Span>> {
        if scopes.iter().all(|scope| scope.layer() != Layer::Session) {
            return Ok(scopes.into_iter().map(|scope| Span { scope, until: None }).collect());
        }
        let tenant = caller.tenant().clone();
        self.cx
            .store
            .read("look_up_sessions", move |tx| {
                let mut spans = Vec::with_capacity(scopes.len());
                for scope in &scopes {
                    let deleted = match scope.get(Identifier::Session) {
                        Some(session) => sessions::look_up(tx, &tenant, session)? == Session::Deleted,
                        None => false,
                    };
                    if !deleted {
                        spans.push(Span { scope: scope.clone(), until: None });
                    }
                }
                Ok::<_, Error>(spans)
            })
            .await
    }
}

/// Whether a caller acts for all users of its tenant: one that speaks for a user, or is one, does not.
fn acts_for_all(caller: &MemoryCaller) -> bool {
    caller.is_admin() || (caller.user().is_none() && caller.is_trusted())
}
