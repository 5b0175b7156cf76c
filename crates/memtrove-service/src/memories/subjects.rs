//! Memories by whom they are about, over all scopes of a user at once: what mem0 asks for.

use super::listing::Onlooker;
use super::memory_store::{MemoryPage, ScanQuery};
use super::ranking::Hit;
use super::replay::Answered;
use super::scope_search::{ScopeQuery, Span};
use super::search::KnowledgeMode;
use super::{BulkAdded, Memories, count};
use crate::quota::CallKind;
use memtrove_core::memories::mem0::{self, Entities, Entity, Filters, Update, may_look_into};
use memtrove_core::memories::merge::Options;
use memtrove_core::memories::{
    Applied, Assertion, Author, BulkAdd, Code, Conditions, Identifier, Identifiers, Layer, Memory,
    MemoryCaller, MemoryId, Mode, Position, Precondition, Ranking, ScopeKey, Viewer,
};
use memtrove_core::{Error, Result};
use memtrove_store::Store;
use memtrove_store::memories::ScopeNo;
use memtrove_store::memories::scopes::{self, Whose};
use memtrove_store::memories::sessions::{self, Session};
use std::collections::{BTreeMap, BTreeSet};

/// Scopes that are searched together. Words are worth what they are worth among these; who has more has several searches, and
/// the best of them all.
const SEARCHED_TOGETHER: usize = 2_000;
/// The subjects that are told of at most.
const MOST_SUBJECTS: usize = 100_000;
/// Entries or scopes that are read at a time.
const STEP: usize = 500;

/// A search among the entries of some subjects.
#[derive(Debug, Clone, PartialEq)]
pub struct SubjectSearch {
    /// What to look for.
    pub query: String,
    /// Whose entries.
    pub filters: Filters,
    /// How many results at most.
    pub limit: usize,
    /// The least score.
    pub threshold: f64,
}

/// The scopes that a request reads, and for whom.
struct ViewedScopes {
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
    pub async fn search_about(&self, caller: &MemoryCaller, search: SubjectSearch) -> Result<Vec<Hit>> {
        let SubjectSearch { query, filters, limit, threshold } = search;
        self.rules().check_query(&query)?;
        let caller =
            &*self.charge(caller, CallKind::Read, |caller| caller.speaks_for(filters.user())).await?;
        let viewed = self.viewed_scopes(caller, &filters.places).await?;
        let conditions = filters.conditions(caller);
        let forms = self.query_forms(caller, &query, KnowledgeMode::Hybrid).await?;
        let mut all = Vec::new();
        for ViewedScopes { viewer, spans } in &viewed {
            for spans in spans.chunks(SEARCHED_TOGETHER) {
                let scope_query = ScopeQuery {
                    vectors: forms.vectors.clone(),
                    terms: forms.terms.clone(),
                    mode: Mode::Hybrid,
                    words_required: false,
                    threshold,
                    farthest: None,
                    time: None,
                    time_alone: false,
                    faint_terms: Vec::new(),
                    want: limit,
                    viewer: viewer.clone(),
                    conditions: conditions.clone(),
                    now: self.now(),
                };
                // Everything that was added is found: what says the same, too.
                let options = Options {
                    limit,
                    ranking: Ranking::Score,
                    dedupe: false,
                    include_overridden: true,
                    clusters: false,
                };
                all.extend(self.hits(spans, scope_query, options).await?.hits);
            }
        }
        all.sort_by(|a, b| b.matched.score().total_cmp(&a.matched.score()));
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
        let caller =
            &*self.charge(caller, CallKind::Read, |caller| caller.speaks_for(filters.user())).await?;
        let viewed = self.viewed_scopes(caller, &filters.places).await?;
        let conditions = filters.conditions(caller);
        let (mut before, mut after, mut total) = (offset, None, 0);
        loop {
            let wanted = if before > 0 { before.min(STEP) } else { limit };
            let page = self.page_about(&viewed, &conditions, after, wanted).await?;
            total = total.max(page.total);
            after = page.memories.last().map(Position::of);
            if before == 0 || after.is_none() {
                return Ok((if before == 0 { page.memories } else { Vec::new() }, total));
            }
            before -= page.memories.len().min(before);
        }
    }

    /// Stores what was said about these subjects, all or none.
    pub async fn add_about(
        &self,
        caller: &MemoryCaller,
        ids: &Entities,
        adds: BulkAdd,
    ) -> Result<Answered<BulkAdded>> {
        ids.authorise(caller)?;
        self.bulk_add(caller, adds, None).await
    }

    /// Deletes the entries with all of these ids that the caller sees, what was put away among them; says how many went.
    pub async fn delete_about(&self, caller: &MemoryCaller, ids: Entities) -> Result<usize> {
        let ids = ids.required()?;
        ids.authorise(caller)?;
        let caller =
            &*self.charge(caller, CallKind::Write, |caller| caller.speaks_for(ids.get(Entity::User))).await?;
        let scopes = match ids.get(Entity::User) {
            Some(user) => {
                authorise_user(caller, user)?;
                self.scopes_for(caller, &[Whose::User(user.to_owned())], true).await?
            }
            None => {
                let mut scopes = self.known_scopes(caller, true).await?;
                // What is nobody's own is where its ids say, whoever made it.
                if let Some(home) = ids.possible_home()? {
                    scopes.push((caller.scope(&home.identifiers, home.layer)?, 0));
                }
                scopes
            }
        };
        self.delete_in(caller, scopes, &ids).await
    }

    /// Deletes the entries about anybody, of whomever; says how many went.
    pub async fn delete_everything(&self, caller: &MemoryCaller) -> Result<usize> {
        if !caller.acts_for_all() {
            let message = "only a client that may act for all users may delete everything";
            return Err(Error::new(Code::Forbidden, message));
        }
        let caller = &*self.charge(caller, CallKind::Write, |caller| caller.speaks_for(None)).await?;
        let scopes = self.known_scopes(caller, true).await?;
        self.delete_in(caller, scopes, &Entities::default()).await
    }

    /// Changes an entry.
    pub async fn revise(&self, caller: &MemoryCaller, id: MemoryId, update: &Update) -> Result<Memory> {
        let caller = &*self.charge(caller, CallKind::Write, |caller| caller.speaks_for(None)).await?;
        let revised = |memory: &Memory| self.revised(memory, update);
        Ok(self.change(caller, id, &Assertion::default(), "update", revised).await?.memory)
    }

    /// Changes entries. All of them must be there, and all changes possible, before the first is touched.
    pub async fn revise_all(&self, caller: &MemoryCaller, updates: &[(MemoryId, Update)]) -> Result<()> {
        let caller = &*self.charge(caller, CallKind::Write, |caller| caller.speaks_for(None)).await?;
        for (id, update) in updates {
            let memory = self.reach_to_write(caller, *id, &Assertion::default()).await?;
            self.refuse_restated(&self.revised(&memory, update)?.memory).await?;
        }
        for (id, update) in updates {
            self.revise(caller, *id, update).await?;
        }
        Ok(())
    }

    /// Deletes entries. All of them must be there before the first goes.
    pub async fn delete_all(&self, caller: &MemoryCaller, ids: &BTreeSet<MemoryId>) -> Result<()> {
        let caller = &*self.charge(caller, CallKind::Write, |caller| caller.speaks_for(None)).await?;
        for id in ids {
            self.reach_to_write(caller, *id, &Assertion::default()).await?;
        }
        for id in ids {
            // Whoever deleted one meanwhile did what was asked for.
            self.delete(caller, *id, &Assertion::default(), &Precondition::default()).await?;
        }
        Ok(())
    }

    /// Deletes an entry that must be there; with those that it absorbed, and those that these absorbed, where that is wanted.
    pub async fn delete_linked(&self, caller: &MemoryCaller, id: MemoryId, linked: bool) -> Result<()> {
        let caller = &*self.charge(caller, CallKind::Write, |caller| caller.speaks_for(None)).await?;
        let (any, at_any) = (Assertion::default(), Precondition::default());
        let memory = self.get(caller, id, &any).await?;
        let mut absorbed = if linked { memory.lineage.consolidated_from } else { Vec::new() };
        if !self.delete(caller, id, &any, &at_any).await? {
            return Err(Error::no_such_memory());
        }
        while let Some(next) = absorbed.pop() {
            // One that was restored since is on its own again; one that is gone leads nowhere.
            let older = match self.get(caller, next, &any).await {
                Ok(older) => older,
                Err(Error { code: Code::MemoryNotFound, .. }) => continue,
                Err(error) => return Err(error),
            };
            if older.lineage.superseded_by.is_some() {
                absorbed.extend(&older.lineage.consolidated_from);
                self.delete(caller, next, &any, &at_any).await?;
            }
        }
        Ok(())
    }

    fn revised(&self, memory: &Memory, update: &Update) -> Result<Applied> {
        let change = update.change(memory)?;
        change.check(self.rules())?;
        change.apply(memory, self.now(), self.rules())
    }

    /// Whom there are memories about, as far as the caller may know, from the `offset`th on; and how many there are altogether.
    pub async fn subjects(
        &self,
        caller: &MemoryCaller,
        offset: usize,
        limit: usize,
    ) -> Result<(Vec<Subject>, usize)> {
        let caller = &*self.charge(caller, CallKind::Read, |caller| caller.speaks_for(None)).await?;
        let mut known: BTreeMap<(Entity, String), (i64, Vec<ScopeKey>)> = BTreeMap::new();
        for (scope, entries) in
            self.known_scopes(caller, false).await?.into_iter().filter(|(_, entries)| *entries > 0)
        {
            // Of what it shares with others, it may not see everything.
            let is_shared = scope.user().is_none() && !caller.acts_for_all();
            for (entity, id) in Entities::of_scope(&scope).given() {
                let (counted, shared) = known.entry((entity, id.to_owned())).or_default();
                if is_shared {
                    shared.push(scope.clone());
                } else {
                    *counted += entries;
                }
            }
            if known.len() > MOST_SUBJECTS {
                let message =
                    format!("there are memories about more than {MOST_SUBJECTS} subjects; name one");
                return Err(Error::new(Code::InvalidRequest, message));
            }
        }
        let total = known.len();
        let mut page = Vec::new();
        // What is shared has to be looked at, so only where it is told.
        for ((entity, id), (mut memories, shared)) in known.into_iter().skip(offset).take(limit) {
            for scope in &shared {
                memories += self.visible(caller, scope).await?;
            }
            page.push(Subject { entity, id, memories });
        }
        Ok((page, total))
    }

    /// How many entries of a scope the caller sees.
    async fn visible(&self, caller: &MemoryCaller, scope: &ScopeKey) -> Result<i64> {
        let query = ScanQuery {
            viewer: caller.viewer(&scope.identifiers()),
            conditions: Conditions { include_archived: true, ..Conditions::default() },
            after: None,
            limit: 1,
            with_embeddings: false,
            now: self.now(),
        };
        let page = self.parts.store.scan(self.own_span(Onlooker::of(caller), scope).await?, query).await?;
        Ok(i64::try_from(page.total).unwrap_or(i64::MAX))
    }

    /// The scopes in which there is something about somebody, as far as the caller may know of them: all, if it acts for all;
    /// else its own, and the projects in which it made something. It may look into others, but has to name them.
    async fn known_scopes(&self, caller: &MemoryCaller, working: bool) -> Result<Vec<(ScopeKey, i64)>> {
        let whose = match caller.user() {
            _ if caller.acts_for_all() => vec![Whose::Anybody],
            user => {
                let author =
                    Author { user: user.map(str::to_owned), client: caller.client().map(str::to_owned) };
                let own = user.map(|user| Whose::User(user.to_owned()));
                own.into_iter().chain([Whose::MadeIn(Layer::Project, author)]).collect()
            }
        };
        self.scopes_for(caller, &whose, working).await
    }

    /// Scopes that have entries and that the caller may look into, with the number of these; where working memory is wanted,
    /// too, those that have something there as well.
    async fn scopes_for(
        &self,
        caller: &MemoryCaller,
        whose: &[Whose],
        working: bool,
    ) -> Result<Vec<(ScopeKey, i64)>> {
        let mut found = Vec::new();
        for whose in whose {
            found.extend(self.stored_scopes(&self.cx.store, caller, whose).await?);
            if working {
                found.extend(self.stored_scopes(self.parts.store.volatile.store(), caller, whose).await?);
            }
        }
        Ok(found)
    }

    async fn stored_scopes(
        &self,
        store: &Store,
        caller: &MemoryCaller,
        whose: &Whose,
    ) -> Result<Vec<(ScopeKey, i64)>> {
        let mut known = Vec::new();
        let mut last = ScopeNo(0);
        loop {
            let (tenant, whose, after) = (caller.tenant().clone(), whose.clone(), last);
            let step = store
                .read(caller.tenant(), "list_scopes", move |tx| {
                    Ok::<_, Error>(scopes::with_entries(tx, &tenant, &whose, after, STEP as i64)?)
                })
                .await?;
            let Some((row, _)) = step.last() else { return Ok(known) };
            last = row.no;
            let is_last = step.len() < STEP;
            let step = step.into_iter().map(|(row, scope)| (scope, row.entries));
            known.extend(
                step.filter(|(scope, _)| {
                    !Entities::of_scope(scope).is_empty() && may_look_into(caller, scope)
                }),
            );
            if is_last {
                return Ok(known);
            }
        }
    }

    /// Deletes what is seen in these scopes and has all of these ids; refused before the first goes, if some of it is where the
    /// caller may not write.
    async fn delete_in(
        &self,
        caller: &MemoryCaller,
        scopes: Vec<(ScopeKey, i64)>,
        ids: &Entities,
    ) -> Result<usize> {
        let mut scopes: Vec<ScopeKey> = scopes.into_iter().map(|(scope, _)| scope).collect();
        each_once(&mut scopes);
        let (open, closed): (Vec<_>, Vec<_>) =
            scopes.into_iter().partition(|scope| caller.authorise_write(scope.layer()).is_ok());
        for scope in closed {
            let layer = scope.layer();
            for alike in deleted_alike(caller, vec![scope], ids) {
                let viewed = self.viewed(caller, alike.viewer, alike.scopes).await?;
                if !self.page_about(&[viewed], &alike.conditions, None, 1).await?.memories.is_empty() {
                    caller.authorise_write(layer)?;
                }
            }
        }
        let mut deleted = 0;
        for alike in deleted_alike(caller, open, ids) {
            let viewed = self.viewed(caller, alike.viewer, alike.scopes).await?;
            deleted += self.delete_seen(caller, viewed, &alike.conditions).await?;
        }
        Ok(deleted)
    }

    /// These scopes by themselves, as somebody sees them.
    async fn viewed(
        &self,
        caller: &MemoryCaller,
        viewer: Viewer,
        scopes: Vec<ScopeKey>,
    ) -> Result<ViewedScopes> {
        Ok(ViewedScopes { viewer, spans: self.own_spans(caller, scopes).await? })
    }

    /// Deletes what is seen, page by page.
    async fn delete_seen(
        &self,
        caller: &MemoryCaller,
        viewed: ViewedScopes,
        conditions: &Conditions,
    ) -> Result<usize> {
        let (mut deleted, mut after) = (0, None);
        loop {
            let page = self.page_about(std::slice::from_ref(&viewed), conditions, after, STEP).await?;
            let Some(last) = page.memories.last() else { return Ok(deleted) };
            after = Some(Position::of(last));
            let (mirrors, own): (Vec<_>, Vec<_>) =
                page.memories.into_iter().partition(|memory| memory.lineage.mirror_of.is_some());
            for memory in &own {
                self.forget_vectors(caller.tenant().as_str(), &memory.content);
            }
            let mut left: Vec<MemoryId> = mirrors.iter().map(|memory| memory.id).collect();
            let ids: Vec<MemoryId> = own.iter().map(|memory| memory.id).collect();
            let removed = self.remove(caller, own, "delete").await?;
            deleted += removed;
            // Some were changed since they were read, and go as they are now; which ones, nobody said.
            if removed < ids.len() {
                left.extend(ids);
            }
            for id in left {
                let is_right = |memory: &Memory| {
                    conditions.admits(memory) && viewed.viewer.sees(&memory.policy, &memory.created_by)
                };
                let (assertion, any) = (Assertion::default(), Precondition::default());
                let gone = self.delete_if(caller, id, &assertion, &any, is_right).await?;
                deleted += usize::from(gone);
            }
        }
    }

    /// A page of what is seen, newest first.
    async fn page_about(
        &self,
        viewed: &[ViewedScopes],
        conditions: &Conditions,
        after: Option<Position>,
        limit: usize,
    ) -> Result<MemoryPage> {
        let mut all = MemoryPage::default();
        for one in viewed {
            for spans in one.spans.chunks(STEP) {
                let query = ScanQuery {
                    viewer: one.viewer.clone(),
                    conditions: conditions.clone(),
                    after,
                    limit,
                    with_embeddings: false,
                    now: self.now(),
                };
                let page = self.parts.store.scan(spans.to_vec(), query).await?;
                all.memories.extend(page.memories);
                all.total += page.total;
                all.memories.sort_by(|a, b| Position::of(a).compare(&Position::of(b)));
                all.memories.truncate(limit);
            }
        }
        Ok(all)
    }

    /// Where these ids lead: for each user one look at everything that is meant, and one at what is nobody's own.
    async fn viewed_scopes(&self, caller: &MemoryCaller, places: &[Entities]) -> Result<Vec<ViewedScopes>> {
        let mut by_user: BTreeMap<Option<&str>, Vec<ScopeKey>> = BTreeMap::new();
        for place in places {
            place.authorise(caller)?;
            let user = place.get(Entity::User);
            let scopes = match (user, place.get(Entity::Run)) {
                (Some(user), None) => self.scopes_of_user(caller, user, place.get(Entity::Agent)).await?,
                // Of a run there is one scope, and one of what is nobody's own.
                _ => {
                    let home = place.home()?;
                    vec![caller.scope(&home.identifiers, home.layer)?]
                }
            };
            by_user.entry(user).or_default().extend(scopes);
        }
        let mut viewed = Vec::with_capacity(by_user.len());
        for (user, mut scopes) in by_user {
            each_once(&mut scopes);
            let mut identifiers = Identifiers::default();
            identifiers.set(Identifier::User, Entity::User.member(), user.unwrap_or_default())?;
            viewed.push(self.viewed(caller, caller.viewer(&identifiers), scopes).await?);
        }
        Ok(viewed)
    }

    /// The scopes of a user that have entries and that the caller may look into; with an agent, those in which something of that
    /// agent can be.
    async fn scopes_of_user(
        &self,
        caller: &MemoryCaller,
        user: &str,
        agent: Option<&str>,
    ) -> Result<Vec<ScopeKey>> {
        authorise_user(caller, user)?;
        let found = self.scopes_for(caller, &[Whose::User(user.to_owned())], false).await?;
        let may_be_of = |scope: &ScopeKey| match agent {
            None => true,
            Some(agent) => {
                scope.get(Identifier::Agent) == Some(agent) || Entities::may_be_kept_in(Entity::Agent, scope)
            }
        };
        Ok(found.into_iter().map(|(scope, _)| scope).filter(may_be_of).collect())
    }

    /// These scopes by themselves, without those of conversations that were deleted.
    async fn own_spans(&self, caller: &MemoryCaller, scopes: Vec<ScopeKey>) -> Result<Vec<Span>> {
        let mut spans = Vec::with_capacity(scopes.len());
        for step in scopes.chunks(STEP) {
            if step.iter().all(|scope| scope.layer() != Layer::Session) {
                spans.extend(step.iter().cloned().map(|scope| Span { scope, until: None }));
                continue;
            }
            let (tenant, step) = (caller.tenant().clone(), step.to_vec());
            let onlooker = Onlooker::of(caller);
            let look_up = self.cx.store.read(caller.tenant(), "look_up_sessions", move |tx| {
                let mut there = Vec::with_capacity(step.len());
                for scope in &step {
                    let deleted = match scope.get(Identifier::Session) {
                        Some(session) => {
                            sessions::look_up(tx, &tenant, onlooker.member(scope), session)?
                                == Session::Deleted
                        }
                        None => false,
                    };
                    if !deleted {
                        there.push(Span { scope: scope.clone(), until: None });
                    }
                }
                Ok::<_, Error>(there)
            });
            spans.extend(look_up.await?);
        }
        Ok(spans)
    }
}

/// Refuses a user that the caller may not act for.
fn authorise_user(caller: &MemoryCaller, user: &str) -> Result<()> {
    let mut identifiers = Identifiers::default();
    identifiers.set(Identifier::User, Entity::User.member(), user)?;
    caller.scope(&identifiers, Layer::User).map(drop)
}

/// Scopes of one owner whose entries are deleted together.
struct DeletedAlike {
    viewer: Viewer,
    conditions: Conditions,
    scopes: Vec<ScopeKey>,
}

/// What a caller that deletes sees in these scopes, and which of it has all of these ids. The scopes of a user are put together,
/// because there may be thousands; those of others stand alone, because a write takes turns with the forgetting of one owner.
fn deleted_alike(caller: &MemoryCaller, scopes: Vec<ScopeKey>, ids: &Entities) -> Vec<DeletedAlike> {
    let mut alone = Vec::new();
    let mut by_user: BTreeMap<String, Vec<DeletedAlike>> = BTreeMap::new();
    for scope in scopes {
        let Some(conditions) = mem0::in_scope(ids, &scope, caller) else { continue };
        let viewer = Viewer { all: caller.acts_for_all(), ..caller.viewer(&scope.identifiers()) };
        let together = match scope.user() {
            Some(user) => by_user.entry(user.to_owned()).or_default(),
            None => &mut alone,
        };
        let is_personal = scope.user().is_some();
        match together
            .iter_mut()
            .find(|one| is_personal && one.viewer == viewer && one.conditions == conditions)
        {
            Some(alike) => alike.scopes.push(scope),
            None => together.push(DeletedAlike { viewer, conditions, scopes: vec![scope] }),
        }
    }
    alone.into_iter().chain(by_user.into_values().flatten()).collect()
}

/// Leaves each scope once, in no particular order.
fn each_once(scopes: &mut Vec<ScopeKey>) {
    scopes.sort_unstable_by_key(ScopeKey::hash);
    scopes.dedup();
}
