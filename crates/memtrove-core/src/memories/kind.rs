//! How an entry is kept: seven kinds, their lifetimes and the layers they may stand in.

use super::{Code, Layer};
use crate::{Error, Result};
use serde_json::Value;

/// The storage tier of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Scratch context of one running operation; never on disk.
    Working,
    /// Context of one conversation.
    Session,
    /// Events with a time.
    Episodic,
    /// General knowledge.
    Semantic,
    /// Facts: subject, predicate, object.
    Procedural,
    /// Personal profile and preferences.
    UserPersonal,
    /// Faded or cold memory.
    Archival,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::Working,
        Self::Session,
        Self::Episodic,
        Self::Semantic,
        Self::Procedural,
        Self::UserPersonal,
        Self::Archival,
    ];

    /// The contract's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::Session => "session",
            Self::Episodic => "episodic",
            Self::Semantic => "semantic",
            Self::Procedural => "procedural",
            Self::UserPersonal => "user_personal",
            Self::Archival => "archival",
        }
    }

    /// The kind a word stands for, in any letter case.
    pub fn parse(word: &str) -> Option<Self> {
        let word = word.to_ascii_lowercase();
        match word.as_str() {
            "userpersonal" | "user-personal" | "personal" => Some(Self::UserPersonal),
            _ => Self::ALL.into_iter().find(|kind| kind.as_str() == word),
        }
    }

    /// The number it is stored as.
    pub fn code(self) -> i64 {
        self as i64
    }

    /// The kind that is stored as a number.
    pub fn from_code(code: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }

    /// The layers it may stand in.
    pub fn layers(self) -> &'static [Layer] {
        match self {
            Self::Working => &[Layer::Agent, Layer::User, Layer::Session],
            Self::Session => &[Layer::Session],
            Self::UserPersonal => &[Layer::User],
            Self::Episodic | Self::Semantic | Self::Procedural | Self::Archival => &Layer::ALL,
        }
    }

    /// Refuses a layer that it cannot stand in.
    pub fn check_layer(self, layer: Layer) -> Result<()> {
        if self.layers().contains(&layer) {
            return Ok(());
        }
        let allowed: Value = self.layers().iter().map(|layer| layer.as_str()).collect();
        let message =
            format!("a memory of kind {} cannot stand in the {} layer", self.as_str(), layer.as_str());
        Err(Error::new(Code::InvalidKind, message)
            .with("layer", layer.as_str())
            .with("kind", self.as_str())
            .with("allowedLayers", allowed))
    }

    /// The kind of an entry that names none.
    pub fn default_in(layer: Layer) -> Self {
        match layer {
            Layer::User => Self::UserPersonal,
            Layer::Session => Self::Session,
            _ => Self::Semantic,
        }
    }

    /// Whether entries of this kind expire unless something else is said.
    pub fn expires(self) -> bool {
        matches!(self, Self::Working | Self::Session)
    }
}

#[cfg(test)]
mod tests;
