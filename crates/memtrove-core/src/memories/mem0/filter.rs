//! Filters: trees of conditions, and the ids in them that say where to look.
//!
//! Every way through a tree must name at least one id: without one, a filter would be about everybody.

use super::instant::Instant;
use super::{Entities, Entity, conditions, metadata};
use crate::Result;
use crate::memories::filter::{Comparison, compare, contains, is};
use crate::memories::members::Members;
use crate::memories::{Code, Conditions, Memory, MemoryCaller, ScopeKey};
use crate::{Error, Timestamp};
use serde_json::{Map, Value, json};

/// How deep a tree may be, and how many conditions it may have.
const MAX_DEPTH: usize = 16;
const MAX_CONDITIONS: usize = 200;
/// How many values its lists may have altogether: every entry that is looked at is compared with each.
const MAX_VALUES: usize = 1000;
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
    /// Reads what a body says about the entries it wants: ids, `filters`, `metadata`, `categories`, `start_date`, `end_date`.
    pub fn read(members: Members<'_>) -> Result<Self> {
        let mut tests = Vec::new();
        for (entity, id) in Entities::read(members)?.given() {
            tests.push(Test::On(Field::Entity(entity), Mem0Operator::Eq(json!(id))));
        }
        let mut reader = Reader::default();
        if let Some(filters) = members.object("filters", "filters.")? {
            tests.push(reader.all(&filters.to_map(), 0)?);
        }
        if let Some(given) = members.object("metadata", "metadata.")? {
            tests.push(reader.metadata(&given.to_map())?);
        }
        if let Some(categories) = members.items("categories")? {
            reader.count_values(categories)?;
            tests.push(Test::On(Field::Categories, Mem0Operator::In(categories.to_vec())));
        }
        for (name, comparison) in [("start_date", Comparison::Gte), ("end_date", Comparison::Lte)] {
            if let Some(value) = members.get(name) {
                tests.push(at(WhichTime::Created, name, comparison, value)?);
            }
        }
        Self::of(Test::All(tests))
    }

    /// What a tree asks for, and where.
    fn of(test: Test) -> Result<Self> {
        let places = test.places()?;
        if places.iter().any(Entities::is_empty) {
            let message = "filters must name at least one of user_id, agent_id, app_id and run_id in every branch, \
                           each with a value of its own: filters={\"user_id\": \"...\"}";
            return Err(Error::new(Code::MissingIdentifier, message));
        }
        let implied = matches!(&places[..], [place] if test.is_nothing_but_ids() && is_a_scope(place));
        Ok(Self { test: (!implied).then_some(test), places })
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
    // Of two names, whoever is bound to one is refused the other.
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

/// Reads a tree, and counts.
#[derive(Default)]
struct Reader {
    conditions: usize,
    values: usize,
}

impl Reader {
    fn all(&mut self, members: &Map<String, Value>, depth: usize) -> Result<Test> {
        if depth > MAX_DEPTH {
            return Err(refuse("", &format!("must be nested at most {MAX_DEPTH} levels")));
        }
        let tests = members.iter().map(|(name, value)| match name.as_str() {
            "AND" => Ok(Test::All(self.list(name, value, depth)?)),
            "OR" => Ok(Test::Any(self.list(name, value, depth)?)),
            "NOT" => Ok(Test::None(self.list(name, value, depth)?)),
            "metadata" => match value {
                Value::Object(members) => self.metadata(members),
                _ => Err(refuse(name, "must be an object")),
            },
            _ => self.condition(name, value),
        });
        Ok(Test::All(tests.collect::<Result<_>>()?))
    }

    fn list(&mut self, name: &str, value: &Value, depth: usize) -> Result<Vec<Test>> {
        let mut one = |value: &Value| match value {
            Value::Object(members) if !members.is_empty() => self.all(members, depth + 1),
            _ => Err(refuse(name, "must hold conditions")),
        };
        match value {
            Value::Array(items) if !items.is_empty() => items.iter().map(one).collect(),
            Value::Object(_) if name == "NOT" => Ok(vec![one(value)?]),
            _ => Err(refuse(name, "must be a list of conditions, with something in it")),
        }
    }

    fn metadata(&mut self, members: &Map<String, Value>) -> Result<Test> {
        let tests = members.iter().map(|(key, value)| self.on(Field::Metadata(key.clone()), key, value));
        Ok(Test::All(tests.collect::<Result<_>>()?))
    }

    fn condition(&mut self, name: &str, value: &Value) -> Result<Test> {
        let clock = match name {
            "created_at" | "timestamp" => Some(WhichTime::Created),
            "updated_at" => Some(WhichTime::Updated),
            _ => None,
        };
        if let Some(clock) = clock {
            return self.on_time(clock, name, value);
        }
        let field = match name {
            "memory_ids" | "id" => Field::Id,
            "keywords" | "memory" => Field::Text,
            "categories" => Field::Categories,
            _ => match Entity::ALL.into_iter().find(|entity| entity.member() == name) {
                Some(entity) => Field::Entity(entity),
                None => Field::Metadata(name.to_owned()),
            },
        };
        self.on(field, name, value)
    }

    fn on(&mut self, field: Field, name: &str, value: &Value) -> Result<Test> {
        let entity = match &field {
            Field::Entity(entity) => Some(*entity),
            _ => None,
        };
        let mut read = |operator: Mem0Operator| {
            self.count()?;
            if let Mem0Operator::In(values) | Mem0Operator::Nin(values) = &operator {
                self.count_values(values)?;
            }
            if let Some(entity) = entity {
                check_ids(entity, &operator)?;
            }
            Ok(Test::On(field.clone(), operator))
        };
        match value {
            Value::String(text) if text == "*" => read(Mem0Operator::Exists),
            Value::Array(items) if !matches!(field, Field::Metadata(_)) => {
                read(Mem0Operator::In(items.clone()))
            }
            Value::Array(_) => {
                Err(refuse(name, "is a list: say {\"in\": […]} for one of them, {\"eq\": […]} for all"))
            }
            Value::Object(operators) if !operators.is_empty() => {
                let tests = operators.iter().map(|(word, operand)| read(operator(name, word, operand)?));
                Ok(Test::All(tests.collect::<Result<_>>()?))
            }
            Value::Object(_) => Err(refuse(name, "must name an operator")),
            scalar => read(Mem0Operator::Eq(scalar.clone())),
        }
    }

    fn on_time(&mut self, clock: WhichTime, name: &str, value: &Value) -> Result<Test> {
        let day = |value: &Value| {
            let from = at(clock, name, Comparison::Gte, value)?;
            Ok::<_, Error>(Test::All(vec![from, at(clock, name, Comparison::Lte, value)?]))
        };
        let Value::Object(operators) = value else {
            self.count()?;
            return day(value);
        };
        let tests = operators.iter().map(|(word, operand)| {
            self.count()?;
            match word.as_str() {
                "gt" => at(clock, name, Comparison::Gt, operand),
                "gte" => at(clock, name, Comparison::Gte, operand),
                "lt" => at(clock, name, Comparison::Lt, operand),
                "lte" => at(clock, name, Comparison::Lte, operand),
                "eq" => day(operand),
                "ne" => Ok(Test::None(vec![day(operand)?])),
                _ => Err(refuse(
                    &format!("{name}.{word}"),
                    "is no operator on times; there are gt, gte, lt, lte, eq, ne",
                )),
            }
        });
        Ok(Test::All(tests.collect::<Result<_>>()?))
    }

    fn count(&mut self) -> Result<()> {
        self.conditions += 1;
        if self.conditions > MAX_CONDITIONS {
            return Err(refuse("", &format!("must have at most {MAX_CONDITIONS} conditions")));
        }
        Ok(())
    }

    fn count_values(&mut self, values: &[Value]) -> Result<()> {
        self.values += values.len();
        if self.values > MAX_VALUES {
            return Err(refuse("", &format!("must have at most {MAX_VALUES} values in lists")));
        }
        Ok(())
    }
}

fn operator(name: &str, word: &str, operand: &Value) -> Result<Mem0Operator> {
    let field = || format!("{name}.{word}");
    let list = || match operand {
        Value::Array(items) => Ok(items.clone()),
        _ => Err(refuse(&field(), "must be a list")),
    };
    Ok(match word {
        "eq" if *operand == json!("*") => Mem0Operator::Exists,
        "eq" => Mem0Operator::Eq(operand.clone()),
        "ne" => Mem0Operator::Ne(operand.clone()),
        "gt" => Mem0Operator::Ordered(Comparison::Gt, operand.clone()),
        "gte" => Mem0Operator::Ordered(Comparison::Gte, operand.clone()),
        "lt" => Mem0Operator::Ordered(Comparison::Lt, operand.clone()),
        "lte" => Mem0Operator::Ordered(Comparison::Lte, operand.clone()),
        "in" => Mem0Operator::In(list()?),
        "nin" => Mem0Operator::Nin(list()?),
        "contains" => Mem0Operator::Contains(operand.clone()),
        "icontains" => match operand {
            Value::String(part) => Mem0Operator::Icontains(part.clone()),
            _ => return Err(refuse(&field(), "must be a string")),
        },
        _ => {
            let known = "eq, ne, gt, gte, lt, lte, in, nin, contains, icontains";
            return Err(refuse(&field(), &format!("is no operator; there are {known}")));
        }
    })
}

/// Refuses ids that no entry can have: a number instead of a text would find nothing, and nobody would know why.
fn check_ids(entity: Entity, operator: &Mem0Operator) -> Result<()> {
    let check = |value: &Value| match value {
        Value::String(text) if !text.is_empty() => Entities::default().set(entity, text),
        Value::Null => Ok(()),
        _ => Err(refuse(entity.member(), "must be a string with something in it")),
    };
    match operator {
        Mem0Operator::Eq(value) | Mem0Operator::Ne(value) => check(value),
        Mem0Operator::In(values) | Mem0Operator::Nin(values) => values.iter().try_for_each(check),
        Mem0Operator::Ordered(..)
        | Mem0Operator::Contains(_)
        | Mem0Operator::Icontains(_)
        | Mem0Operator::Exists => Ok(()),
    }
}

/// A condition on a time. A whole day is after its first moment and before its last one.
fn at(clock: WhichTime, name: &str, comparison: Comparison, value: &Value) -> Result<Test> {
    let problem = "must be a date, an RFC 3339 timestamp, or seconds since 1970";
    let instant = Instant::read(value).ok_or_else(|| refuse(name, problem))?;
    let at = match comparison {
        Comparison::Gte | Comparison::Lt => instant.first(),
        Comparison::Gt | Comparison::Lte => instant.last(),
    };
    Ok(Test::At(clock, comparison, at))
}

fn refuse(name: &str, problem: &str) -> Error {
    let field = if name.is_empty() { "filters".to_owned() } else { format!("filters.{name}") };
    Error::field(field, problem)
}
