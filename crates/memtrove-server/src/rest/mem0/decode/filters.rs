//! The filters of mem0: JSON that becomes a tree of conditions.

use super::entities;
use super::instant::Instant;
use memtrove_core::memories::filter::Comparison;
use memtrove_core::memories::mem0::{Entities, Entity, Field, Filters, Mem0Operator, Test, WhichTime};
use memtrove_core::memories::members::Members;
use memtrove_core::{Error, Result};
use serde_json::{Map, Value, json};

/// How deep a tree may be, and how many conditions it may have.
const MAX_DEPTH: usize = 16;
const MAX_CONDITIONS: usize = 200;
/// How many values its lists may have altogether: every entry that is looked at is compared with each.
const MAX_VALUES: usize = 1000;

/// What a body says about the entries it wants: ids, `filters`, `metadata`, `categories`, `start_date`, `end_date`.
pub(in crate::rest::mem0) fn filters(members: Members<'_>) -> Result<Filters> {
    let mut tests = Vec::new();
    for (entity, id) in entities(members)?.given() {
        tests.push(Test::On(Field::Entity(entity), Mem0Operator::Eq(json!(id))));
    }
    let mut reader = FilterReader::default();
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
    Filters::new(Test::All(tests))
}

/// Reads a tree, and counts.
#[derive(Default)]
struct FilterReader {
    conditions: usize,
    values: usize,
}

impl FilterReader {
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
