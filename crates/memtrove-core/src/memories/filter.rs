//! Filters over metadata. A condition that is not known is refused: ignoring it would widen the result.

use super::openspec::KnowledgeFilter;
use super::{Memory, mem0};
use crate::files::patch::equality::{compare_numbers, equal};
use crate::{Error, Result};
use serde_json::{Map, Value, json};
use std::cmp::Ordering;

/// Conditions on metadata, all of which must hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    /// At least one of these; none is no condition.
    pub tags: Vec<String>,
    /// Where it comes from: one of [`SOURCE_TYPES`](super::metadata::SOURCE_TYPES).
    pub source_type: Option<&'static str>,
    /// Whether it points to a document.
    pub has_knowledge_pointer: Option<bool>,
    /// What is asked of single members.
    pub custom: MemberConditions,
    /// What only the knowledge protocol asks.
    pub knowledge: KnowledgeFilter,
    /// What only mem0 asks.
    pub mem0: Option<mem0::Test>,
}

impl Filter {
    /// Whether it admits everything.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether an entry passes.
    pub fn matches(&self, memory: &Memory) -> bool {
        self.admits(&memory.metadata)
            && self.knowledge.admits(memory)
            && self.mem0.as_ref().is_none_or(|test| test.matches(memory))
    }

    fn admits(&self, metadata: &Map<String, Value>) -> bool {
        let has_tag = || {
            let stored = metadata.get("tags").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            stored.iter().filter_map(Value::as_str).any(|tag| self.tags.iter().any(|wanted| wanted == tag))
        };
        let source = || metadata.get("source").and_then(|source| source.get("type")).and_then(Value::as_str);
        (self.tags.is_empty() || has_tag())
            && self.source_type.is_none_or(|wanted| source() == Some(wanted))
            && self.has_knowledge_pointer.is_none_or(|has| metadata.contains_key("knowledgePointer") == has)
            && self.custom.conditions.iter().all(|(key, condition)| condition.admits(metadata.get(key)))
    }

    /// What it asks, as one value whoever asked it how.
    pub(super) fn fingerprint(&self) -> Value {
        json!([self.tags, self.source_type, self.has_knowledge_pointer, self.custom.given])
    }
}

/// Conditions on members of the metadata, by their keys: `{"size": {"$gte": 2}}`. They are JSON in every transport, so they are read
/// where it is said what they mean.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MemberConditions {
    conditions: Vec<(String, Condition)>,
    /// As they were given, for the fingerprint of a query.
    given: Map<String, Value>,
}

impl MemberConditions {
    /// Checks conditions.
    pub fn new(given: Map<String, Value>) -> Result<Self> {
        let conditions = given.iter().map(|(key, given)| Ok((key.clone(), Condition::read(key, given)?)));
        Ok(Self { conditions: conditions.collect::<Result<_>>()?, given })
    }
}

/// What is asked of one member of the metadata.
#[derive(Debug, Clone, PartialEq)]
enum Condition {
    /// A value: the member is it, or holds it where the value is a scalar.
    Is(Value),
    /// All of these.
    All(Vec<Operator>),
}

#[derive(Debug, Clone, PartialEq)]
enum Operator {
    Eq(Value),
    Ne(Value),
    Ordered(Comparison, Value),
    In(Vec<Value>),
    Contains(Value),
    Exists(bool),
}

/// Which order is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// After.
    Gt,
    /// After, or the same.
    Gte,
    /// Before.
    Lt,
    /// Before, or the same.
    Lte,
}

impl Condition {
    fn read(key: &str, given: &Value) -> Result<Self> {
        match given {
            Value::Array(_) => Err(refuse(key, "must be a scalar or an object; for a whole list use $eq")),
            Value::Object(members) if members.keys().any(|name| name.starts_with('$')) => {
                let operators = members.iter().map(|(name, operand)| Operator::read(key, name, operand));
                Ok(Self::All(operators.collect::<Result<_>>()?))
            }
            value => Ok(Self::Is(value.clone())),
        }
    }

    fn admits(&self, stored: Option<&Value>) -> bool {
        match self {
            Self::Is(value) => stored.is_some_and(|stored| is(stored, value)),
            Self::All(operators) => operators.iter().all(|operator| operator.admits(stored)),
        }
    }
}

impl Operator {
    fn read(key: &str, name: &str, operand: &Value) -> Result<Self> {
        let field = || format!("{key}.{name}");
        Ok(match name {
            "$eq" => Self::Eq(operand.clone()),
            "$ne" => Self::Ne(operand.clone()),
            "$gt" => Self::Ordered(Comparison::Gt, operand.clone()),
            "$gte" => Self::Ordered(Comparison::Gte, operand.clone()),
            "$lt" => Self::Ordered(Comparison::Lt, operand.clone()),
            "$lte" => Self::Ordered(Comparison::Lte, operand.clone()),
            "$in" => match operand {
                Value::Array(items) => Self::In(items.clone()),
                _ => return Err(refuse(&field(), "must be an array")),
            },
            "$contains" => Self::Contains(operand.clone()),
            "$exists" => match operand {
                Value::Bool(exists) => Self::Exists(*exists),
                _ => return Err(refuse(&field(), "must be true or false")),
            },
            _ => {
                let known = "$eq, $ne, $gt, $gte, $lt, $lte, $in, $contains, $exists";
                return Err(refuse(&field(), &format!("is no operator; there are {known}")));
            }
        })
    }

    fn admits(&self, stored: Option<&Value>) -> bool {
        match (self, stored) {
            (Self::Exists(exists), stored) => stored.is_some() == *exists,
            (Self::Ne(_), None) => true,
            (_, None) => false,
            (Self::Eq(value), Some(stored)) => is(stored, value),
            (Self::Ne(value), Some(stored)) => !is(stored, value),
            (Self::Ordered(comparison, value), Some(stored)) => {
                compare(stored, value).is_some_and(|ordering| comparison.holds(ordering))
            }
            (Self::In(values), Some(stored)) => values.iter().any(|value| is(stored, value)),
            (Self::Contains(part), Some(stored)) => contains(stored, part),
        }
    }
}

impl Comparison {
    /// Whether two things that are so ordered are as wanted.
    pub(super) fn holds(self, ordering: Ordering) -> bool {
        match self {
            Self::Gt => ordering.is_gt(),
            Self::Gte => ordering.is_ge(),
            Self::Lt => ordering.is_lt(),
            Self::Lte => ordering.is_le(),
        }
    }
}

/// Whether a stored value is the wanted one, or a list that holds it where that is a scalar.
pub(super) fn is(stored: &Value, wanted: &Value) -> bool {
    let scalar = !matches!(wanted, Value::Array(_) | Value::Object(_));
    equal(stored, wanted) || (scalar && holds_item(stored, wanted))
}

/// Whether a stored text or list has this in it.
pub(super) fn contains(stored: &Value, part: &Value) -> bool {
    match (stored, part) {
        (Value::String(text), Value::String(part)) => text.contains(part.as_str()),
        _ => holds_item(stored, part),
    }
}

fn holds_item(stored: &Value, wanted: &Value) -> bool {
    stored.as_array().is_some_and(|items| items.iter().any(|item| equal(item, wanted)))
}

/// Numbers compare with numbers and texts, by their code points, with texts; nothing else does.
pub(super) fn compare(stored: &Value, wanted: &Value) -> Option<Ordering> {
    match (stored, wanted) {
        (Value::Number(stored), Value::Number(wanted)) => compare_numbers(stored, wanted),
        (Value::String(stored), Value::String(wanted)) => Some(stored.cmp(wanted)),
        _ => None,
    }
}

fn refuse(key: &str, problem: &str) -> Error {
    Error::field(format!("filter.custom.{key}"), problem)
}

#[cfg(test)]
mod tests;
