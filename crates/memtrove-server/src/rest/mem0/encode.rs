//! Memories as mem0's clients read them.

use memtrove_core::memories::Memory;
use memtrove_core::memories::mem0::{Entities, Entity, SaidBy, all_metadata, expiration_date, said_by};
use memtrove_core::{Error, Result};
use memtrove_service::memories::{Hit, Saying, Subject};
use memtrove_wire::mem0 as wire;
use serde_json::{Map, Value};

/// One page of several, with the addresses of those beside it.
pub(super) struct Paging {
    pub address: &'static str,
    pub page: usize,
    pub size: usize,
}

impl Paging {
    /// How many come before it.
    pub fn offset(&self) -> usize {
        (self.page - 1).saturating_mul(self.size)
    }

    /// Where the next page is, if so many are on this one of so many altogether.
    pub fn next(&self, here: usize, total: usize) -> Option<String> {
        let more = here > 0 && self.offset().saturating_add(here) < total;
        more.then(|| self.address_of(self.page + 1))
    }

    /// Where the page before is.
    pub fn previous(&self) -> Option<String> {
        (self.page > 1).then(|| self.address_of(self.page - 1))
    }

    fn address_of(&self, page: usize) -> String {
        format!("{}?page={page}&page_size={}", self.address, self.size)
    }
}

pub(super) fn memory(memory: &Memory) -> wire::Mem0Memory {
    let entities = Entities::of(memory);
    let id = |entity| entities.get(entity).map(str::to_owned);
    let SaidBy { role, actor_id } = said_by(memory);
    let tags = memory.metadata.get("tags").and_then(Value::as_array).into_iter().flatten();
    wire::Mem0Memory {
        id: memory.id.0,
        memory: memory.content.clone(),
        hash: memory.content_hash(),
        user_id: id(Entity::User),
        agent_id: id(Entity::Agent),
        app_id: id(Entity::App),
        run_id: id(Entity::Run),
        actor_id: actor_id.map(str::to_owned),
        role: role.map(str::to_owned),
        metadata: all_metadata(memory),
        categories: tags.filter_map(Value::as_str).map(str::to_owned).collect(),
        created_at: memory.at().to_string(),
        updated_at: memory.updated_at.to_string(),
        expiration_date: expiration_date(memory),
    }
}

/// A memory that came about.
pub(super) fn added(memory: &Memory) -> wire::Mem0AddedMemory {
    let SaidBy { role, actor_id } = said_by(memory);
    wire::Mem0AddedMemory {
        id: memory.id.0,
        memory: memory.content.clone(),
        event: "ADD".to_owned(),
        role: role.map(str::to_owned),
        actor_id: actor_id.map(str::to_owned),
    }
}

/// A memory that was found, with the members that were asked for; its id and its score are always there.
pub(super) fn found(hit: &Hit, fields: Option<&[String]>) -> Result<Map<String, Value>> {
    let shown =
        serde_json::to_value(memory(&hit.memory)).map_err(|error| Error::internal(error.to_string()))?;
    let mut shown = match shown {
        Value::Object(shown) => shown,
        _ => Map::new(),
    };
    shown.retain(|name, _| name == "id" || fields.is_none_or(|fields| fields.contains(name)));
    shown.insert("score".to_owned(), hit.matched.score().into());
    Ok(shown)
}

pub(super) fn page(paging: &Paging, memories: &[Memory], total: usize) -> wire::Mem0Page {
    wire::Mem0Page {
        count: total as u64,
        next: paging.next(memories.len(), total),
        previous: paging.previous(),
        results: memories.iter().map(memory).collect(),
    }
}

pub(super) fn entity_page(paging: &Paging, subjects: Vec<Subject>, total: usize) -> wire::Mem0EntityPage {
    wire::Mem0EntityPage {
        count: total as u64,
        next: paging.next(subjects.len(), total),
        previous: paging.previous(),
        results: subjects.into_iter().map(entity).collect(),
    }
}

fn entity(subject: Subject) -> wire::Mem0Entity {
    wire::Mem0Entity {
        name: subject.id.clone(),
        id: subject.id,
        r#type: match subject.entity {
            Entity::User => wire::Mem0EntityType::User,
            Entity::Agent => wire::Mem0EntityType::Agent,
            Entity::App => wire::Mem0EntityType::App,
            Entity::Run => wire::Mem0EntityType::Run,
        },
        total_memories: u64::try_from(subject.memories).unwrap_or_default(),
    }
}

/// What happened to a memory, oldest first.
pub(super) fn events(memory: &Memory, sayings: Vec<Saying>) -> Vec<wire::Mem0Event> {
    let SaidBy { role, actor_id } = said_by(memory);
    let entities = Entities::of(memory);
    let event = |saying: Saying| wire::Mem0Event {
        id: format!("{}:{}", memory.id, saying.version),
        memory_id: memory.id.0,
        event: if saying.version == 1 { "ADD" } else { "UPDATE" }.to_owned(),
        old_memory: saying.before,
        new_memory: saying.text,
        user_id: entities.get(Entity::User).map(str::to_owned),
        created_at: memory.created_at.to_string(),
        updated_at: saying.at.to_string(),
        is_deleted: false,
        actor_id: actor_id.map(str::to_owned),
        role: role.map(str::to_owned),
    };
    sayings.into_iter().map(event).collect()
}
