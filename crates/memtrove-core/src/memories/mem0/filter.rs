//! Filters: trees of conditions, and the ids in them that say where to look.
//!
//! Every way through a tree must name at least one id: without one, a filter would be about everybody.

use super::{Entities, Entity, conditions, metadata};
use crate::Result;
use crate::memories::bulk::one_of;
use crate::memories::filter::{Comparison, compare, contains, is};
use crate::memories::{Code, Conditions, Memory, MemoryCaller, ScopeKey};
use crate::{Error, Timestamp};
use serde_json::{Value, json};

/// How many combinations of ids a tree may ask about.
const MAX_PLACES: usize = 32;

/// Which entries a request is about.
#[derive(Debug, Clone, PartialEq)]
pub struct Filters {
    /// The ids that every entry has of at least one of these: where to look.
    pub places: Vec<Entities>,
    /// Which of the entries there, unless the places say it all.
    test: Option<Test>,
}

impl Filters {
    /// What a tree asks for, and where.
    pub fn new(test: Test) -> Result<Self> {
        let places = test.places()?;
        if places.iter().any(Entities::is_empty) {
            let message = "filters must name at least one of user_id, agent_id, app_id and run_id in every branch, \
                           each with a value of its own: filters={\"user_id\": \"...\"}";
            return Err(Error::new(Code::MissingIdentifier, message));
        }
        let implied = matches!(&places[..], [place] if test.is_nothing_but_ids() && is_a_scope(place));
        Ok(Self { test: (!implied).then_some(test), places })
    }

    /// The user whom all places name, if that is one.
    pub fn user(&self) -> Option<&str> {
        one_of(self.places.iter().map(|place| place.get(Entity::User)))
    }

    /// Which of the entries in these places a caller asks for, as far as it may speak for the agents that are kept with them.
    pub fn conditions(&self, caller: &MemoryCaller) -> Conditions {
        // Only entries of runs keep an agent, and a user may have runs.
        let leads_to_runs =
            |place: &Entities| [Entity::User, Entity::Run].iter().any(|entity| place.get(*entity).is_some());
        let own = of_own_agent(caller).filter(|_| self.places.iter().any(leads_to_runs));
        conditions(all_of(self.test.iter().cloned().chain(own).collect()))
    }
}

/// Which entries of a scope have all of these ids, of whatever kind they are and put away or not; `None` where none can have
/// them. Without an id it is every entry that is about somebody. What is kept for agents that the caller may not speak for is
/// none of them.
pub fn in_scope(ids: &Entities, scope: &ScopeKey, caller: &MemoryCaller) -> Option<Conditions> {
    let placed = Entities::of_scope(scope);
    if placed.is_empty() {
        return None;
    }
    let mut kept = Vec::new();
    for (entity, id) in ids.given() {
        match placed.get(entity) {
            Some(own) if own == id => {}
            None if Entities::may_be_kept_in(entity, scope) => {
                kept.push(Test::On(Field::Entity(entity), Mem0Operator::Eq(json!(id))));
            }
            _ => return None,
        }
    }
    if Entities::may_be_kept_in(Entity::Agent, scope) {
        kept.extend(of_own_agent(caller));
    }
    Some(Conditions { kinds: None, include_archived: true, ..conditions(all_of(kept)) })
}

/// What entries must be for a caller that may speak for one agent only: of that one, or of none.
fn of_own_agent(caller: &MemoryCaller) -> Option<Test> {
    let speaks_for = |agent| Entities::listed(Entity::Agent, agent).authorise(caller).is_ok();
    // Of two names, a caller that is bound to one is refused the other.
    if speaks_for("a") && speaks_for("b") {
        return None;
    }
    let is = |id: Value| Test::On(Field::Entity(Entity::Agent), Mem0Operator::Eq(id));
    let own = caller.client().map(|client| is(json!(client)));
    Some(Test::Any(own.into_iter().chain([is(Value::Null)]).collect()))
}

fn all_of(tests: Vec<Test>) -> Option<Test> {
    (!tests.is_empty()).then_some(Test::All(tests))
}

/// Whether looking where these ids lead finds exactly the entries that have them.
fn is_a_scope(place: &Entities) -> bool {
    let named: Vec<Entity> = place.given().map(|(entity, _)| entity).collect();
    matches!(
        named[..],
        [Entity::User] | [Entity::User, Entity::Run] | [Entity::Agent] | [Entity::App] | [Entity::Run]
    )
}

/// A condition on an entry.
#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    /// All of these hold.
    All(Vec<Test>),
    /// At least one of these holds.
    Any(Vec<Test>),
    /// None of these holds.
    None(Vec<Test>),
    /// Something of the entry is as it should be.
    On(Field, Mem0Operator),
    /// It came about, or changed, before or after an instant.
    At(WhichTime, Comparison, Timestamp),
}

/// What of an entry a condition looks at.
#[derive(Debug, Clone, PartialEq)]
pub enum Field {
    /// One of its ids.
    Entity(Entity),
    /// Its own id.
    Id,
    /// Its text.
    Text,
    /// Its tags.
    Categories,
    /// A member of its metadata.
    Metadata(String),
}

/// Which time of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhichTime {
    /// When it happened or was made.
    Created,
    /// When it was last changed.
    Updated,
}

/// How a condition looks.
#[derive(Debug, Clone, PartialEq)]
pub enum Mem0Operator {
    /// It is this, or holds it; `null` is what is not there.
    Eq(Value),
    /// It is not.
    Ne(Value),
    /// It comes before or after this.
    Ordered(Comparison, Value),
    /// It is one of these.
    In(Vec<Value>),
    /// It is none of these.
    Nin(Vec<Value>),
    /// It has this in it.
    Contains(Value),
    /// So in any letter case.
    Icontains(String),
    /// It is there.
    Exists,
}

impl Test {
    /// Whether an entry passes.
    pub fn matches(&self, memory: &Memory) -> bool {
        match self {
            Self::All(tests) => tests.iter().all(|test| test.matches(memory)),
            Self::Any(tests) => tests.iter().any(|test| test.matches(memory)),
            Self::None(tests) => !tests.iter().any(|test| test.matches(memory)),
            Self::On(field, operator) => operator.admits(field.of(memory).as_ref()),
            Self::At(clock, comparison, instant) => {
                let at = match clock {
                    WhichTime::Created => memory.at(),
                    WhichTime::Updated => memory.updated_at,
                };
                comparison.holds(at.cmp(instant))
            }
        }
    }

    /// The ids that every entry which passes has of at least one of these. What contradicts itself leads nowhere.
    fn places(&self) -> Result<Vec<Entities>> {
        let anywhere = || vec![Entities::default()];
        let one = |entity: &Entity, id: &str| {
            let mut place = Entities::default();
            place.set(*entity, id).map(|()| place)
        };
        let places = match self {
            Self::On(Field::Entity(entity), Mem0Operator::Eq(Value::String(id))) => vec![one(entity, id)?],
            Self::On(Field::Entity(entity), Mem0Operator::In(ids)) => {
                let mut places = Vec::new();
                for id in ids {
                    let place = id.as_str().map_or_else(|| Ok(Entities::default()), |id| one(entity, id));
                    add(&mut places, place?)?;
                }
                places
            }
            Self::All(tests) => {
                let mut places = anywhere();
                for test in tests {
                    let (further, mut both) = (test.places()?, Vec::new());
                    for place in &places {
                        further
                            .iter()
                            .filter_map(|more| place.and(more))
                            .try_for_each(|place| add(&mut both, place))?;
                    }
                    places = both;
                }
                places
            }
            Self::Any(tests) => {
                let mut places = Vec::new();
                for test in tests {
                    test.places()?.into_iter().try_for_each(|place| add(&mut places, place))?;
                }
                places
            }
            Self::None(_) | Self::On(..) | Self::At(..) => anywhere(),
        };
        Ok(places)
    }

    /// Whether it asks for ids and for nothing else.
    fn is_nothing_but_ids(&self) -> bool {
        match self {
            Self::All(tests) => tests.iter().all(Self::is_nothing_but_ids),
            Self::On(Field::Entity(_), Mem0Operator::Eq(Value::String(_))) => true,
            _ => false,
        }
    }
}

/// One more place, unless it is among them. Refused as soon as there are too many: each is compared with all before it.
fn add(places: &mut Vec<Entities>, place: Entities) -> Result<()> {
    if places.contains(&place) {
        return Ok(());
    }
    if places.len() == MAX_PLACES {
        let message =
            format!("filters ask about more than {MAX_PLACES} combinations of ids; ask in several requests");
        return Err(Error::new(Code::InvalidRequest, message));
    }
    places.push(place);
    Ok(())
}

impl Field {
    fn of(&self, memory: &Memory) -> Option<Value> {
        match self {
            Self::Entity(entity) => Entities::of(memory).get(*entity).map(|id| json!(id)),
            Self::Id => Some(json!(memory.id.to_string())),
            Self::Text => Some(json!(memory.content)),
            Self::Categories => memory.metadata.get("tags").cloned(),
            Self::Metadata(key) => metadata::get(memory, key).cloned(),
        }
    }
}

impl Mem0Operator {
    fn admits(&self, stored: Option<&Value>) -> bool {
        match (self, stored) {
            (Self::Eq(Value::Null), stored) => stored.is_none_or(Value::is_null),
            (Self::Ne(Value::Null) | Self::Exists, stored) => stored.is_some_and(|stored| !stored.is_null()),
            (Self::Ne(_) | Self::Nin(_), None) => true,
            (_, None) => false,
            (Self::Eq(value), Some(stored)) => is(stored, value),
            (Self::Ne(value), Some(stored)) => !is(stored, value),
            (Self::Ordered(comparison, value), Some(stored)) => {
                compare(stored, value).is_some_and(|ordering| comparison.holds(ordering))
            }
            (Self::In(values), Some(stored)) => values.iter().any(|value| is(stored, value)),
            (Self::Nin(values), Some(stored)) => !values.iter().any(|value| is(stored, value)),
            (Self::Contains(part), Some(stored)) => contains(stored, part),
            (Self::Icontains(part), Some(stored)) => icontains(stored, &part.to_lowercase()),
        }
    }
}

fn icontains(stored: &Value, part: &str) -> bool {
    match stored {
        Value::String(text) => text.to_lowercase().contains(part),
        Value::Array(items) => items.iter().any(|item| icontains(item, part)),
        _ => false,
    }
}
