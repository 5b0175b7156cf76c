//! The seven scope layers and the identifiers that name a scope in each.

use super::Code;
use crate::{Error, Result};
use serde_json::{Map, Value};

/// The longest identifier, in characters.
pub const MAX_IDENTIFIER_CHARS: usize = 255;

/// Whose memory an entry is. In the order of precedence: the first is strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// What one agent learned about one user.
    Agent,
    /// The person, across sessions.
    User,
    /// One conversation of one user.
    Session,
    /// A repository or project.
    Project,
    /// A team.
    Team,
    /// An organisation.
    Org,
    /// The tenant.
    Company,
}

impl Layer {
    /// Every layer, strongest first.
    pub const ALL: [Self; 7] =
        [Self::Agent, Self::User, Self::Session, Self::Project, Self::Team, Self::Org, Self::Company];

    /// The contract's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::User => "user",
            Self::Session => "session",
            Self::Project => "project",
            Self::Team => "team",
            Self::Org => "org",
            Self::Company => "company",
        }
    }

    /// The layer a word stands for, in any letter case.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|layer| layer.as_str().eq_ignore_ascii_case(word))
    }

    /// 1 is strongest.
    pub fn precedence(self) -> u8 {
        self as u8 + 1
    }

    /// The layer with this precedence: how the store keeps it.
    pub fn from_precedence(precedence: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|layer| i64::from(layer.precedence()) == precedence)
    }

    /// The identifiers that make a scope in this layer, and nothing else does.
    pub fn required(self) -> &'static [Identifier] {
        match self {
            Self::Agent => &[Identifier::Agent, Identifier::User],
            Self::User => &[Identifier::User],
            Self::Session => &[Identifier::User, Identifier::Session],
            Self::Project => &[Identifier::Project],
            Self::Team => &[Identifier::Team],
            Self::Org => &[Identifier::Org],
            Self::Company => &[Identifier::Company],
        }
    }

    /// Whether a scope of this layer belongs to one user.
    pub fn is_personal(self) -> bool {
        self.required().contains(&Identifier::User)
    }
}

/// What a scope is named by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Identifier {
    /// `agentId`
    Agent,
    /// `userId`
    User,
    /// `sessionId`
    Session,
    /// `projectId`
    Project,
    /// `teamId`
    Team,
    /// `orgId`
    Org,
    /// `companyId`
    Company,
}

impl Identifier {
    /// Every identifier, in the order of the matrix.
    pub const ALL: [Self; 7] =
        [Self::Agent, Self::User, Self::Session, Self::Project, Self::Team, Self::Org, Self::Company];

    /// Its name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agentId",
            Self::User => "userId",
            Self::Session => "sessionId",
            Self::Project => "projectId",
            Self::Team => "teamId",
            Self::Org => "orgId",
            Self::Company => "companyId",
        }
    }
}

/// The identifiers a request gives; what is empty was not given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identifiers([Option<String>; 7]);

impl Identifiers {
    /// Gives one identifier after checking it; `field` is how the request calls it. `""` gives none.
    pub fn set(&mut self, identifier: Identifier, field: &str, text: &str) -> Result<()> {
        if text.chars().count() > MAX_IDENTIFIER_CHARS {
            let message = format!("must have at most {MAX_IDENTIFIER_CHARS} characters");
            return Err(Error::field(field, message));
        }
        if text.chars().any(|c| matches!(c, '\0'..='\u{1f}' | '\u{7f}')) {
            return Err(Error::field(field, "must not contain control characters"));
        }
        self.0[identifier as usize] = (!text.is_empty()).then(|| text.to_owned());
        Ok(())
    }

    /// These identifiers, completed by others where they name none.
    pub fn or(mut self, others: &Self) -> Self {
        for (own, other) in self.0.iter_mut().zip(&others.0) {
            if own.is_none() {
                own.clone_from(other);
            }
        }
        self
    }

    /// One of them.
    pub fn get(&self, identifier: Identifier) -> Option<&str> {
        self.0[identifier as usize].as_deref()
    }

    /// Those that were given, in the order of the matrix.
    pub fn given(&self) -> impl Iterator<Item = (Identifier, &str)> {
        Identifier::ALL.into_iter().filter_map(|identifier| Some((identifier, self.get(identifier)?)))
    }

    /// Whether none was given.
    pub fn is_empty(&self) -> bool {
        self.given().next().is_none()
    }

    /// What a layer still needs, in the order of the matrix.
    pub fn missing(&self, layer: Layer) -> Vec<Identifier> {
        layer.required().iter().copied().filter(|identifier| self.get(*identifier).is_none()).collect()
    }

    /// The layers that these identifiers open, strongest first.
    pub fn accessible(&self) -> Vec<Layer> {
        Layer::ALL.into_iter().filter(|layer| self.missing(*layer).is_empty()).collect()
    }

    /// Refuses unless everything is there that these layers need.
    pub fn require(&self, layers: &[Layer]) -> Result<()> {
        let missing: Vec<_> = layers
            .iter()
            .map(|layer| (*layer, self.missing(*layer)))
            .filter(|(_, missing)| !missing.is_empty())
            .collect();
        let Some((first, _)) = missing.first() else { return Ok(()) };
        let names = |identifiers: &[Identifier]| -> Value {
            identifiers.iter().map(|identifier| identifier.as_str()).collect()
        };
        let mut all: Vec<Identifier> = missing.iter().flat_map(|(_, missing)| missing.clone()).collect();
        all.sort_unstable();
        all.dedup();
        let words: Vec<&str> = all.iter().map(|identifier| identifier.as_str()).collect();
        let message = format!("the {} layer needs {}", first.as_str(), words.join(" and "));
        let mut refusal = Error::new(Code::MissingIdentifier, message)
            .with("layer", first.as_str())
            .with("missing", names(&all));
        if layers.len() > 1 {
            let by_layer: Map<String, Value> =
                missing.iter().map(|(layer, missing)| (layer.as_str().to_owned(), names(missing))).collect();
            refusal = refusal.with("layers", by_layer);
        }
        Err(refusal)
    }
}

#[cfg(test)]
mod tests;
