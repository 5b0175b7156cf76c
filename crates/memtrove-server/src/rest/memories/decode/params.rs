//! Query parameters, read as the members of the body they stand for.

use memtrove_core::files::body;
use memtrove_core::memories::{Identifier, Identifiers};
use memtrove_core::{Error, Result};
use serde_json::{Map, Value};

/// The query parameters of a request, decoded.
#[derive(Debug, Clone, Copy)]
pub(in crate::rest) struct Params<'a>(&'a [(String, String)]);

impl<'a> Params<'a> {
    /// These parameters, in which nothing holds a NUL.
    pub fn new(pairs: &'a [(String, String)]) -> Result<Self> {
        match pairs.iter().find(|(_, value)| value.contains('\0')) {
            Some((name, _)) => Err(Error::field(name, "must not contain the character NUL")),
            None => Ok(Self(pairs)),
        }
    }

    /// Refuses parameters of the contract that nothing is done about yet: a caller who sends one counts on it.
    pub fn refuse_unsupported(&self, names: &[&str]) -> Result<()> {
        match names.iter().find(|name| self.many(name).next().is_some()) {
            None => Ok(()),
            Some(name) => Err(Error::field(*name, "is not supported yet: leave it out")),
        }
    }

    /// A parameter that may be given once.
    pub fn one(&self, name: &str) -> Result<Option<&'a str>> {
        let mut values = self.many(name);
        let first = values.next();
        match values.next() {
            Some(_) => Err(Error::field(name, "must be given once only")),
            None => Ok(first),
        }
    }

    /// A parameter that may be given more than once.
    pub fn many(&self, name: &str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    /// The seven identifiers; what is empty was not given.
    pub fn identifiers(&self) -> Result<Identifiers> {
        let mut identifiers = Identifiers::default();
        for identifier in Identifier::ALL {
            if let Some(text) = self.one(identifier.as_str())? {
                identifiers.set(identifier, identifier.as_str(), text)?;
            }
        }
        Ok(identifiers)
    }

    /// Some of them as the members of a body: `texts` as they are, `values` as the number or truth value they spell.
    pub fn members(&self, texts: &[&str], values: &[&str]) -> Result<Map<String, Value>> {
        let mut members = Map::new();
        for name in texts {
            if let Some(text) = self.one(name)? {
                members.insert((*name).to_owned(), text.into());
            }
        }
        for name in values {
            if let Some(text) = self.one(name)? {
                members.insert((*name).to_owned(), scalar(text));
            }
        }
        Ok(members)
    }

    /// One that is true or false; false unless given.
    pub fn flag(&self, name: &str) -> Result<bool> {
        match self.one(name)?.map(scalar) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(_) => Err(Error::field(name, "must be true or false")),
        }
    }

    /// The members of a filter that parameters can say: `tag`, `sourceType`, `hasKnowledgePointer`.
    pub fn filter(&self) -> Result<Map<String, Value>> {
        let mut filter = self.members(&["sourceType"], &["hasKnowledgePointer"])?;
        let tags: Vec<&str> = self.many("tag").collect();
        if !tags.is_empty() {
            filter.insert("tags".to_owned(), tags.into());
        }
        Ok(filter)
    }
}

/// The number or truth value that a text spells, else the text, which is refused where it is read.
fn scalar(text: &str) -> Value {
    match body::parse(text.as_bytes()) {
        // JSON allows white space around values; here it is part of the text.
        Ok(value @ (Value::Number(_) | Value::Bool(_))) if text.trim() == text => value,
        _ => Value::String(text.to_owned()),
    }
}

#[cfg(test)]
mod tests;
