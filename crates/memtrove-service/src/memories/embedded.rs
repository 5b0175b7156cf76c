//! The embedded provider: entries in the store, found through indexes in memory.
//!
//! There are two of it. One is the primary store itself, which tells the journal in the same unit of work. The other keeps
//! what must not outlive the process, in a database in memory, and tells the journal of the primary store afterwards, as a
//! provider elsewhere would.

use super::journal::{self, Entry, Told};
use super::provider::{
    Capabilities, Health, Hits, MemoryProvider, NearQuery, Page, ProviderInfo, ScanQuery, Span, Status,
    Write, Written,
};
use super::recall::{self, Admission, ScopeCache};
use super::remember::stating_already;
use super::stream::Bus;
use crate::Context;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use memtrove_core::identity::Tenant;
use memtrove_core::memories::cursor::Position;
use memtrove_core::memories::{Code, Kind, Memory, MemoryId, Refusal};
use memtrove_core::recall::terms::{Terms, terms};
use memtrove_core::{Error, Result};
use memtrove_store::memories::entries::{self, Stored};
use memtrove_store::memories::writing::Writing;
use memtrove_store::memories::{ScopeNo, facts, scopes, upgrades};
use memtrove_store::{AllTenants, Store, Tx, meta};
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Entries that a page or a filter reads at a time.
const BATCH: i64 = 200;

/// The embedded provider.
pub struct Embedded {
    id: &'static str,
    store: Store,
    cache: Arc<ScopeCache>,
    /// Where the journal is, unless it is here.
    journal: Option<Store>,
    bus: Arc<Bus>,
    cx: Arc<Context>,
    /// Whether it was shut down.
    closed: AtomicBool,
}

/// What became of a batch: what was told of it, or why nothing was done.
enum Attempt {
    Done(Told),
    Conflict(Vec<MemoryId>),
    Replayed(String),
}

impl Attempt {
    fn publish(&self, bus: &Bus) {
        if let Self::Done(told) = self {
            journal::publish(bus, told);
        }
    }
}

impl Embedded {
    /// The primary store.
    pub(crate) fn durable(cx: Arc<Context>, cache: Arc<ScopeCache>, bus: Arc<Bus>) -> Self {
        Self {
            id: "embedded",
            store: cx.store.clone(),
            cache,
            journal: None,
            bus,
            cx,
            closed: AtomicBool::new(false),
        }
    }

    /// What must not outlive the process.
    pub(crate) fn volatile(cx: Arc<Context>, ram: Store, cache: Arc<ScopeCache>, bus: Arc<Bus>) -> Self {
        Self {
            id: "embedded-ram",
            store: ram,
            cache,
            journal: Some(cx.store.clone()),
            bus,
            cx,
            closed: AtomicBool::new(false),
        }
    }

    /// The store, unless this provider was shut down.
    fn open(&self) -> Result<&Store> {
        if !self.closed.load(Ordering::Acquire) {
            return Ok(&self.store);
        }
        let refusal = Refusal::new(Code::ProviderUnavailable, "this provider was shut down");
        Err(refusal.with("provider", self.id).into())
    }

    /// The words entries are found by: their content, title and tags.
    fn terms(&self, writes: &[Write]) -> Vec<Terms> {
        writes
            .iter()
            .map(|write| match write {
                Write::Remove(_) => Terms::default(),
                _ => terms_of(&self.cx, write.memory()),
            })
            .collect()
    }

    async fn write_all(&self, writes: Vec<Write>, entry: Entry) -> Result<Written> {
        let Some(tenant) = tenant_of(&writes) else { return Ok(Written::Done) };
        let terms = Arc::new(self.terms(&writes));
        let writes = Arc::new(writes);
        let bus = self.bus.clone();
        let attempt = match &self.journal {
            None => {
                let wanted = Wanted(self.cx.embeddings.preferred_model_id().map(str::to_owned));
                let work = move |tx: &mut dyn Tx| {
                    entry.take_turn(tx, &writes)?;
                    if let Some(answer) = replay(tx, &writes, &entry)? {
                        return Ok(Attempt::Replayed(answer));
                    }
                    if !entry.has_source(tx)? {
                        return Ok(Attempt::Conflict(ids(&writes)));
                    }
                    match apply(tx, &writes, &terms, Some(&wanted))? {
                        Some(conflicts) => Ok(Attempt::Conflict(conflicts)),
                        None => entry.tell(tx, &writes).map(Attempt::Done),
                    }
                };
                self.store
                    .write_then(tenant, "write_memories", work, move |attempt| attempt.publish(&bus))
                    .await?
            }
            Some(journal) => self.write_elsewhere((journal, &tenant), writes, terms, entry).await?,
        };
        Ok(match attempt {
            Attempt::Done(_) => Written::Done,
            Attempt::Conflict(ids) => Written::Conflict(ids),
            Attempt::Replayed(answer) => Written::Replayed(answer),
        })
    }

    /// Writes here and tells there; if that fails, what was written here is taken back.
    async fn write_elsewhere(
        &self,
        (journal, tenant): (&Store, &Tenant),
        writes: Arc<Vec<Write>>,
        terms: Arc<Vec<Terms>>,
        entry: Entry,
    ) -> Result<Attempt> {
        let here = writes.clone();
        let conflicts =
            self.store.write(tenant, "write_memories", move |tx| apply(tx, &here, &terms, None)).await?;
        if let Some(conflicts) = conflicts {
            return Ok(Attempt::Conflict(conflicts));
        }
        let (bus, there) = (self.bus.clone(), writes.clone());
        let tell = move |tx: &mut dyn Tx| {
            entry.take_turn(tx, &there)?;
            match replay(tx, &there, &entry)? {
                Some(answer) => Ok(Attempt::Replayed(answer)),
                None if !entry.has_source(tx)? => Ok(Attempt::Conflict(ids(&there))),
                None => entry.tell(tx, &there).map(Attempt::Done),
            }
        };
        let told =
            journal.write_then(tenant, "tell_of_memories", tell, move |attempt| attempt.publish(&bus)).await;
        // Where nobody knows whether it was told, it stays: the answer under its key may be given again.
        if !matches!(told, Ok(Attempt::Done(_)) | Err(Error::Timeout)) {
            self.take_back(tenant, writes).await;
        }
        told
    }

    /// Removes what was inserted and not told of: nobody was answered that it is there.
    async fn take_back(&self, tenant: &Tenant, writes: Arc<Vec<Write>>) {
        let undone = self.store.write(tenant, "undo_memories", move |tx| {
            let mut writing = Writing::default();
            for write in writes.iter() {
                if let Write::Insert(memory) | Write::Remember { memory, .. } = write {
                    writing.remove(tx, memory, None)?;
                }
            }
            writing.finish(tx)?;
            Ok::<_, Error>(())
        });
        if let Err(error) = undone.await {
            tracing::warn!(%error, "a write could not be taken back");
        }
    }
}

/// The model that entries should end up with; none while nobody makes vectors.
struct Wanted(Option<String>);

impl Wanted {
    /// Whether an entry is to get another vector than it is written with. What is written while nobody makes vectors is to get
    /// one; otherwise an entry without one is meant to have none.
    fn is_another_than(&self, memory: &Memory) -> bool {
        match (&self.0, &memory.embedding) {
            (Some(model), Some(made)) => *made.model != **model,
            (wanted, made) => wanted.is_none() && made.is_none(),
        }
    }
}

/// The words an entry is found by.
pub(super) fn terms_of(cx: &Context, memory: &Memory) -> Terms {
    terms(&cx.analyzer, &searchable_text(memory))
}

/// What of an entry its words are taken from.
fn searchable_text(memory: &Memory) -> String {
    let mut text = memory.content.clone();
    let mut add = |more: &str| {
        text.push('\n');
        text.push_str(more);
    };
    if let Some(title) = memory.metadata.get("title").and_then(|title| title.as_str()) {
        add(title);
    }
    let tags = memory.metadata.get("tags").and_then(|tags| tags.as_array());
    tags.into_iter().flatten().filter_map(|tag| tag.as_str()).for_each(add);
    text
}

/// The tenant of some writes: all of them are of one.
fn tenant_of(writes: &[Write]) -> Option<Tenant> {
    writes.first().map(|write| write.memory().scope.tenant().clone())
}

/// The tenant that some spans are of: all of them are of one.
fn tenant_of_spans(spans: &[Span]) -> Option<Tenant> {
    spans.first().map(|span| span.scope.tenant().clone())
}

fn ids(writes: &[Write]) -> Vec<MemoryId> {
    writes.iter().map(|write| write.memory().id).collect()
}

fn replay(tx: &mut dyn Tx, writes: &[Write], entry: &Entry) -> Result<Option<String>> {
    let (Some(remember), Some(first)) = (&entry.remember, writes.first()) else { return Ok(None) };
    journal::replayed(tx, first.memory().scope.tenant(), &remember.key, remember.since)
}

/// Does all writes or, if some of them cannot be done, none; answers those then.
fn apply(
    tx: &mut dyn Tx,
    writes: &[Write],
    terms: &[Terms],
    wanted: Option<&Wanted>,
) -> Result<Option<Vec<MemoryId>>> {
    // Looked at before anything is written: what was written would have to be undone.
    let mut conflicts = Vec::new();
    for write in writes {
        if !possible(tx, write)? {
            conflicts.push(write.memory().id);
        }
    }
    if !conflicts.is_empty() {
        return Ok(Some(conflicts));
    }
    let is_provisional = |memory: &Memory| wanted.is_some_and(|wanted| wanted.is_another_than(memory));
    let mut writing = Writing::default();
    for (write, terms) in writes.iter().zip(terms) {
        let done = match write {
            Write::Insert(memory) | Write::Remember { memory, .. } => {
                let no = match write {
                    Write::Remember { .. } => writing.insert_first(tx, memory, terms)?,
                    _ => writing.insert(tx, memory, terms)?,
                };
                if is_provisional(memory) {
                    upgrades::add(tx, no)?;
                }
                true
            }
            Write::Replace { memory, expected } => {
                let done = writing.replace(tx, memory, terms, *expected)?;
                if is_provisional(memory)
                    && let Some(stored) = entries::get(tx, memory.scope.tenant(), memory.id)?
                {
                    upgrades::add(tx, stored.no)?;
                }
                done
            }
            Write::Remove(memory) => writing.remove(tx, memory, None)?,
        };
        if !done {
            return Err(Error::Internal("an entry changed inside a unit of work".into()));
        }
    }
    writing.finish(tx)?;
    Ok(None)
}

/// Whether a write can be done as things are.
pub(super) fn possible(tx: &mut dyn Tx, write: &Write) -> Result<bool> {
    let memory = write.memory();
    let version = entries::version(tx, memory.scope.tenant(), memory.id)?;
    Ok(match write {
        Write::Insert(memory) => version.is_none() && states_anew(tx, memory)?,
        Write::Remember { memory, viewer } => {
            let span = Span { scope: memory.scope.clone(), until: None };
            version.is_none()
                && states_anew(tx, memory)?
                && stating_already(tx, &span, memory, viewer)?.is_none()
        }
        Write::Replace { memory, expected } => version == Some(*expected) && states_anew(tx, memory)?,
        Write::Remove(memory) => version == Some(memory.version),
    })
}

/// Whether no other entry of the scope states the same fact.
fn states_anew(tx: &mut dyn Tx, memory: &Memory) -> Result<bool> {
    let Some(fact) = memory.fact.as_ref().filter(|_| memory.kind == Kind::Procedural) else {
        return Ok(true);
    };
    let Some(scope) = scopes::find(tx, &memory.scope)? else { return Ok(true) };
    let hidden_by = facts::hidden_by(&memory.scope, &memory.policy, &memory.created_by);
    let Some(stated) = facts::stating(tx, scope.no, fact, hidden_by)? else { return Ok(true) };
    Ok(entries::by_no(tx, stated)?.is_none_or(|stored| stored.memory.id == memory.id))
}

impl MemoryProvider for Embedded {
    fn info(&self) -> ProviderInfo {
        let limits = &self.cx.settings.memories.rules.limits;
        ProviderInfo {
            id: self.id,
            version: env!("CARGO_PKG_VERSION"),
            capabilities: Capabilities {
                vector_search: self.cx.embeddings.space().is_some(),
                metadata_filtering: true,
                bulk: true,
                compare_and_swap: true,
                ttl: true,
                // Lists are; searches of large scopes are not, and each answer says so.
                exact_count: false,
                read_your_writes: true,
                durable: self.journal.is_none(),
                max_content_chars: limits.content_length,
                max_metadata_bytes: limits.metadata_bytes,
                dimensions: None,
                metrics: &["cosine"],
            },
        }
    }

    fn initialize(&self) -> BoxFuture<'_, Result<()>> {
        async { Ok(self.open()?.read(AllTenants, "readiness", |tx| meta::probe(tx)).await?) }.boxed()
    }

    fn shutdown(&self) -> BoxFuture<'_, Result<()>> {
        async {
            self.closed.store(true, Ordering::Release);
            // The primary store is closed by whoever opened it.
            if self.journal.is_some() {
                let store = self.store.clone();
                let closed = tokio::task::spawn_blocking(move || store.close()).await;
                closed.map_err(|error| Error::Internal(error.to_string()))?;
            }
            Ok(())
        }
        .boxed()
    }

    fn health(&self) -> BoxFuture<'_, Health> {
        async {
            let pulse = match self.open() {
                Ok(store) => store.pulse().await.map_err(Error::from),
                Err(closed) => Err(closed),
            };
            match pulse {
                Ok(()) => Health { status: Status::Healthy, message: None },
                Err(reason) => {
                    tracing::warn!(%reason, provider = self.id, "not healthy");
                    Health { status: Status::Unhealthy, message: Some("the store is not available".into()) }
                }
            }
        }
        .boxed()
    }

    fn write(&self, writes: Vec<Write>, journal: Entry) -> BoxFuture<'_, Result<Written>> {
        async {
            self.open()?;
            self.write_all(writes, journal).await
        }
        .boxed()
    }

    fn get<'a>(&'a self, tenant: &'a Tenant, id: MemoryId) -> BoxFuture<'a, Result<Option<Memory>>> {
        let tenant = tenant.clone();
        let of = tenant.clone();
        let get = move |tx: &mut dyn Tx| Ok(entries::get(tx, &tenant, id)?.map(|stored| stored.memory));
        async move { self.open()?.read(of, "get_memory", get).await }.boxed()
    }

    fn load<'a>(&'a self, tenant: &'a Tenant, ids: &'a [MemoryId]) -> BoxFuture<'a, Result<Vec<Memory>>> {
        let (tenant, ids) = (tenant.clone(), ids.to_vec());
        let of = tenant.clone();
        let load = move |tx: &mut dyn Tx| {
            let mut found = Vec::with_capacity(ids.len());
            for id in &ids {
                found.extend(entries::get(tx, &tenant, *id)?.map(|stored| stored.memory));
            }
            Ok(found)
        };
        async move { self.open()?.read(of, "load_memories", load).await }.boxed()
    }

    fn scan(&self, spans: Vec<Span>, query: ScanQuery) -> BoxFuture<'_, Result<Page>> {
        let cache = self.cache.clone();
        let tenant = tenant_of_spans(&spans);
        let work = move |tx: &mut dyn Tx| scan(tx, &cache, &spans, &query);
        async move {
            let (store, Some(tenant)) = (self.open()?, tenant) else { return Ok(Page::default()) };
            store.read(tenant, "list_memories", work).await
        }
        .boxed()
    }

    fn nearest(&self, spans: Vec<Span>, query: NearQuery) -> BoxFuture<'_, Result<Hits>> {
        let (cache, cx) = (self.cache.clone(), self.cx.clone());
        let tenant = tenant_of_spans(&spans);
        let search = move |tx: &mut dyn Tx| {
            let decay = &cx.settings.memories.rules.decay;
            let mut only = |tx: &mut dyn Tx, scope: ScopeNo| filtered(tx, scope, &query);
            recall::search(tx, &cache, &spans, &query, decay, &mut only)
        };
        async move {
            let (store, Some(tenant)) = (self.open()?, tenant) else { return Ok(Hits::default()) };
            store.read(tenant, "search_memories", search).await
        }
        .boxed()
    }
}

/// The entries of a scope that pass the query's filter, if it has one.
fn filtered(tx: &mut dyn Tx, scope: ScopeNo, query: &NearQuery) -> Result<Option<HashSet<u64>>> {
    if query.conditions.filter.is_empty() {
        return Ok(None);
    }
    let mut passed = HashSet::new();
    entries::newest(tx, scope, None, BATCH, |stored| {
        if query.conditions.filter.matches(&stored.memory) {
            passed.insert(stored.no.0 as u64);
        }
        ControlFlow::Continue(())
    })?;
    Ok(Some(passed))
}

fn scan(tx: &mut dyn Tx, cache: &ScopeCache, spans: &[Span], query: &ScanQuery) -> Result<Page> {
    let mut page = Vec::new();
    let mut total = 0;
    for span in spans {
        let Some(row) = scopes::find(tx, &span.scope)? else { continue };
        let before = query.after.as_ref().map(|position| (position.at, position.id));
        let admits = |stored: &Stored| {
            let memory = &stored.memory;
            memory.is_live(query.now)
                && span.until.is_none_or(|until| memory.created_at <= until)
                && query.viewer.sees(&memory.policy, &memory.created_by)
                && query.conditions.admits(memory)
        };
        let mut taken = 0;
        entries::newest(tx, row.no, before, BATCH.min(query.limit as i64 + 1), |stored| {
            if admits(&stored) {
                taken += 1;
                page.push(stored);
            }
            if taken == query.limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        total += if query.conditions.filter.is_empty() {
            let admission = Admission {
                viewer: &query.viewer,
                conditions: &query.conditions,
                until: span.until,
                now: query.now,
                only: None,
            };
            recall::count(tx, cache, row, &admission)?
        } else {
            let mut count = 0;
            entries::newest(tx, row.no, None, BATCH, |stored| {
                count += usize::from(admits(&stored));
                ControlFlow::Continue(())
            })?;
            count
        };
    }
    page.sort_unstable_by(|a, b| Position::of(&a.memory).compare(&Position::of(&b.memory)));
    page.truncate(query.limit);
    if query.with_embeddings {
        entries::add_embeddings(tx, &mut page)?;
    }
    Ok(Page { memories: page.into_iter().map(|stored| stored.memory).collect(), total })
}
