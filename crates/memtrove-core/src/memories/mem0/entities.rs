//! Whom an entry is about: mem0's four ids, and the scope they lead to.
//!
//! With a user the entry is personal: of a run in the session layer, of an agent in the agent layer, else in the user layer.
//! Without one it is shared: in the project of its run, agent or app, the narrowest that is named. Ids that the scope has no
//! place for are kept with the entry.

use super::OWN;
use crate::memories::{Code, Identifier, Identifiers, Kind, Layer, Memory, MemoryCaller, ScopeKey};
use crate::{Error, Result};
use serde_json::{Map, Value};

/// What stands before the id of an agent or a run in the id of its project; the id of an app is the project's own.
const AGENT_PROJECT: &str = "agent:";
const RUN_PROJECT: &str = "run:";

/// What memories can be about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Entity {
    /// `user_id`
    User,
    /// `agent_id`
    Agent,
    /// `app_id`
    App,
    /// `run_id`
    Run,
}

impl Entity {
    /// Every entity.
    pub const ALL: [Self; 4] = [Self::User, Self::Agent, Self::App, Self::Run];

    /// The member of bodies that names one.
    pub fn member(self) -> &'static str {
        match self {
            Self::User => "user_id",
            Self::Agent => "agent_id",
            Self::App => "app_id",
            Self::Run => "run_id",
        }
    }

    /// The word for its type.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Agent => "agent",
            Self::App => "app",
            Self::Run => "run",
        }
    }

    /// The entity a word stands for.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|entity| entity.as_str() == word)
    }
}

/// The ids that a request or an entry has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entities([Option<String>; 4]);

/// Where entries with some ids live.
#[derive(Debug, Clone, PartialEq)]
pub struct Home {
    /// The layer.
    pub layer: Layer,
    /// How they are kept: for good, also those of a run.
    pub kind: Kind,
    /// What names the scope.
    pub identifiers: Identifiers,
    /// The ids that the scope has no place for, by their members.
    pub rest: Map<String, Value>,
}

impl Entities {
    /// One id that something is listed by. Where it is not one that could be given here, as that of a user whom our own routes
    /// call `*`, it leads to what it names all the same.
    pub fn listed(entity: Entity, id: &str) -> Self {
        let mut entities = Self::default();
        entities.0[entity as usize] = (!id.is_empty()).then(|| id.to_owned());
        entities
    }

    /// Gives one id after checking it; `""` gives none.
    pub fn set(&mut self, entity: Entity, text: &str) -> Result<()> {
        // The rules of identifiers are the same for all of them.
        Identifiers::default().set(Identifier::User, entity.member(), text)?;
        if text == "*" {
            let problem = "must be one id: '*' stands for any value in conditions of filters alone";
            return Err(Error::field(entity.member(), problem));
        }
        if entity == Entity::App && [AGENT_PROJECT, RUN_PROJECT].iter().any(|own| text.starts_with(own)) {
            let problem = "must not begin with 'agent:' or 'run:', which stand for agents and runs";
            return Err(Error::field(entity.member(), problem));
        }
        self.0[entity as usize] = (!text.is_empty()).then(|| text.to_owned());
        Ok(())
    }

    /// One of them.
    pub fn get(&self, entity: Entity) -> Option<&str> {
        self.0[entity as usize].as_deref()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.given().next().is_none()
    }

    /// Those there are.
    pub fn given(&self) -> impl Iterator<Item = (Entity, &str)> {
        Entity::ALL.into_iter().filter_map(|entity| Some((entity, self.get(entity)?)))
    }

    /// These and others; `None` if they contradict each other.
    pub fn and(&self, others: &Self) -> Option<Self> {
        let mut all = self.clone();
        for (own, other) in all.0.iter_mut().zip(&others.0) {
            match (&own, other) {
                (Some(one), Some(another)) if one != another => return None,
                (None, Some(_)) => own.clone_from(other),
                _ => {}
            }
        }
        Some(all)
    }

    /// Refuses an agent that a caller may not speak for, also where it names no scope of the agent layer: as a project, and kept
    /// with an entry.
    pub fn authorise(&self, caller: &MemoryCaller) -> Result<()> {
        let Some(agent) = self.get(Entity::Agent) else { return Ok(()) };
        let mut identifiers = Identifiers::default();
        identifiers.set(Identifier::Agent, Entity::Agent.member(), agent)?;
        caller.authorise(&identifiers, &[])
    }

    /// Requires at least one.
    pub fn required(self) -> Result<Self> {
        if !self.is_empty() {
            return Ok(self);
        }
        let message = "at least one of user_id, agent_id, app_id and run_id is required";
        Err(Error::new(Code::MissingIdentifier, message))
    }

    /// Where entries with these ids live.
    pub fn home(&self) -> Result<Home> {
        let mut identifiers = Identifiers::default();
        let mut put =
            |identifier, entity: Entity, text: &str| identifiers.set(identifier, entity.member(), text);
        let [user, agent, app, run] = Entity::ALL.map(|entity| self.get(entity));
        let (layer, kind, placed): (_, _, &[Entity]) = match (user, agent, app, run) {
            (Some(user), _, _, Some(run)) => {
                put(Identifier::User, Entity::User, user)?;
                put(Identifier::Session, Entity::Run, run)?;
                (Layer::Session, Kind::Semantic, &[Entity::User, Entity::Run])
            }
            (Some(user), Some(agent), _, None) => {
                put(Identifier::User, Entity::User, user)?;
                put(Identifier::Agent, Entity::Agent, agent)?;
                (Layer::Agent, Kind::Semantic, &[Entity::User, Entity::Agent])
            }
            (Some(user), None, _, None) => {
                put(Identifier::User, Entity::User, user)?;
                (Layer::User, Kind::UserPersonal, &[Entity::User])
            }
            (None, _, _, Some(run)) => {
                put(Identifier::Project, Entity::Run, &format!("{RUN_PROJECT}{run}"))?;
                (Layer::Project, Kind::Semantic, &[Entity::Run])
            }
            (None, Some(agent), _, None) => {
                put(Identifier::Project, Entity::Agent, &format!("{AGENT_PROJECT}{agent}"))?;
                (Layer::Project, Kind::Semantic, &[Entity::Agent])
            }
            (None, None, Some(app), None) => {
                put(Identifier::Project, Entity::App, app)?;
                (Layer::Project, Kind::Semantic, &[Entity::App])
            }
            (None, None, None, None) => {
                self.clone().required()?;
                (Layer::User, Kind::UserPersonal, &[])
            }
        };
        let rest = self.given().filter(|(entity, _)| !placed.contains(entity));
        let rest = rest.map(|(entity, text)| (entity.member().to_owned(), text.into()));
        Ok(Home { layer, kind, identifiers, rest: rest.collect() })
    }

    /// The same, where there can be any: the project of a run or an agent has a longer id than these themselves.
    pub fn possible_home(&self) -> Result<Option<Home>> {
        for (entity, id) in self.given() {
            Identifiers::default().set(Identifier::User, entity.member(), id)?;
        }
        Ok(self.home().ok())
    }

    /// The ids that a scope stands for.
    pub fn of_scope(scope: &ScopeKey) -> Self {
        let mut entities = Self::default();
        for (name, value) in scope.named() {
            let (entity, id) = match name {
                Identifier::User => (Entity::User, value),
                Identifier::Agent => (Entity::Agent, value),
                Identifier::Session => (Entity::Run, value),
                Identifier::Project => {
                    match (value.strip_prefix(AGENT_PROJECT), value.strip_prefix(RUN_PROJECT)) {
                        (Some(agent), _) => (Entity::Agent, agent),
                        (_, Some(run)) => (Entity::Run, run),
                        _ => (Entity::App, value),
                    }
                }
                Identifier::Team | Identifier::Org | Identifier::Company => continue,
            };
            entities.0[entity as usize] = Some(id.to_owned());
        }
        entities
    }

    /// Whether entries of a scope may have an id of this kind that is kept with them, because the scope has no place for it. With
    /// another one they would live elsewhere.
    pub fn may_be_kept_in(entity: Entity, scope: &ScopeKey) -> bool {
        let placed = Self::of_scope(scope);
        let has_room = placed.get(entity).is_none();
        match entity {
            Entity::App => has_room && !placed.is_empty(),
            Entity::Agent => has_room && placed.get(Entity::Run).is_some(),
            Entity::User | Entity::Run => false,
        }
    }

    /// The ids of an entry: those of its scope, and those kept with it. Whatever else stands where those are was put there by
    /// somebody who uses the same member, and says nothing about whose the entry is.
    pub fn of(memory: &Memory) -> Self {
        let mut entities = Self::of_scope(&memory.scope);
        let own = memory.metadata.get(OWN);
        for entity in Entity::ALL.into_iter().filter(|entity| Self::may_be_kept_in(*entity, &memory.scope)) {
            let kept = own.and_then(|own| own.get(entity.member())).and_then(Value::as_str);
            // What no add would take is no id.
            if let Some(id) = kept {
                let _ = entities.set(entity, id);
            }
        }
        entities
    }
}

/// Whether a caller may look into a scope, and into what it stands for.
pub fn may_look_into(caller: &MemoryCaller, scope: &ScopeKey) -> bool {
    caller.scope(&scope.identifiers(), scope.layer()).is_ok()
        && Entities::of_scope(scope).authorise(caller).is_ok()
}
