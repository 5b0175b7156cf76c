//! The protocol's eight layer types: where each writes, what a query for it covers, and which one an entry shows.

use crate::Result;
use crate::identity::Tenant;
use crate::memories::{Identifier, Identifiers, Kind, Layer, Memory};

/// A layer type of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Type {
    /// Scratch context.
    Working,
    /// One conversation.
    Session,
    /// Events.
    Episodic,
    /// General knowledge.
    Semantic,
    /// Facts.
    Procedural,
    /// What is put away.
    Archival,
    /// One person.
    User,
    /// What people share.
    Organization,
}

impl Type {
    /// Every type, in the protocol's order.
    pub const ALL: [Self; 8] = [
        Self::Working,
        Self::Session,
        Self::Episodic,
        Self::Semantic,
        Self::Procedural,
        Self::Archival,
        Self::User,
        Self::Organization,
    ];

    /// The protocol's word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::Session => "session",
            Self::Episodic => "episodic",
            Self::Semantic => "semantic",
            Self::Procedural => "procedural",
            Self::Archival => "archival",
            Self::User => "user",
            Self::Organization => "organization",
        }
    }

    /// The type a word stands for, in any letter case.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|of| of.as_str().eq_ignore_ascii_case(word))
    }

    /// The type that an entry shows.
    pub fn of(memory: &Memory) -> Self {
        match (memory.kind, memory.scope.layer()) {
            (Kind::Archival, _) => Self::Archival,
            (Kind::Working, _) => Self::Working,
            (Kind::Episodic, _) => Self::Episodic,
            (Kind::Procedural, _) => Self::Procedural,
            (_, Layer::Session) => Self::Session,
            (_, Layer::User) => Self::User,
            (_, Layer::Team | Layer::Org | Layer::Company) => Self::Organization,
            (_, Layer::Agent | Layer::Project) => Self::Semantic,
        }
    }

    /// Where it writes, given the identifiers of a request and the layer it names, if it names one.
    pub fn writes_to(self, scope: Option<Layer>, identifiers: &Identifiers) -> (Layer, Kind) {
        let first = |choices: &[(Identifier, Layer)], otherwise| first_named(identifiers, choices, otherwise);
        let anywhere = || scope.unwrap_or_else(|| narrowest(identifiers));
        match self {
            Self::Working => {
                let choices = [(Identifier::Session, Layer::Session), (Identifier::Agent, Layer::Agent)];
                (first(&choices, Layer::User), Kind::Working)
            }
            Self::Session => (Layer::Session, Kind::Session),
            Self::Episodic => (anywhere(), Kind::Episodic),
            Self::Semantic => (anywhere(), Kind::Semantic),
            Self::Procedural => (anywhere(), Kind::Procedural),
            Self::Archival => (anywhere(), Kind::Archival),
            Self::User => (Layer::User, Kind::UserPersonal),
            Self::Organization => {
                let choices = [(Identifier::Team, Layer::Team), (Identifier::Org, Layer::Org)];
                (first(&choices, Layer::Company), Kind::Semantic)
            }
        }
    }

    /// The layer it is, if it is one.
    pub(super) fn layer(self) -> Option<Layer> {
        match self {
            Self::Session => Some(Layer::Session),
            Self::User => Some(Layer::User),
            _ => None,
        }
    }

    /// Whether a query for it covers entries of a kind in a layer. What is archived is covered by [`Type::Archival`] only.
    pub fn covers(self, layer: Layer, kind: Kind) -> bool {
        let is_live = kind != Kind::Archival;
        match self {
            Self::Working => kind == Kind::Working,
            Self::Session => layer == Layer::Session && is_live,
            Self::Episodic => kind == Kind::Episodic,
            Self::Semantic => kind == Kind::Semantic,
            Self::Procedural => kind == Kind::Procedural,
            Self::Archival => kind == Kind::Archival,
            Self::User => layer == Layer::User && is_live && kind != Kind::Working,
            Self::Organization => !layer.is_personal() && is_live,
        }
    }
}

/// The kinds that a query for these types covers in a layer: none where it does not look there.
pub fn kinds(types: &[Type], layer: Layer) -> Vec<Kind> {
    let covered =
        |kind: &Kind| kind.layers().contains(&layer) && types.iter().any(|of| of.covers(layer, *kind));
    Kind::ALL.into_iter().filter(covered).collect()
}

/// Where a create writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The layer.
    pub layer: Layer,
    /// The kind.
    pub kind: Kind,
    /// What the request names, completed by what it need not say.
    pub identifiers: Identifiers,
}

/// The layer object of a create.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LayerRequest {
    /// The type.
    pub of: Option<Type>,
    /// The layer, where the type leaves a choice.
    pub scope: Option<Layer>,
    /// What the scope is named by.
    pub identifiers: Identifiers,
}

impl Target {
    /// Where a create writes. The user is the authenticated one and the company the tenant, unless the request names them.
    /// Without a type the kind is the layer's own.
    pub fn new(given: LayerRequest, user: Option<&str>, tenant: &Tenant) -> Result<Self> {
        let mut complete = Identifiers::default();
        complete.set(Identifier::User, "user_id", user.unwrap_or_default())?;
        complete.set(Identifier::Company, "company_id", tenant.as_str())?;
        let identifiers = given.identifiers.or(&complete);
        let (layer, kind) = match given.of {
            Some(of) => of.writes_to(given.scope, &identifiers),
            None => {
                let layer = given.scope.unwrap_or_else(|| narrowest(&identifiers));
                (layer, Kind::default_in(layer))
            }
        };
        Ok(Self { layer, kind, identifiers })
    }
}

/// The layer of an entry that does not say: by what its identifiers name.
fn narrowest(identifiers: &Identifiers) -> Layer {
    let choices = [
        (Identifier::Agent, Layer::Agent),
        (Identifier::Session, Layer::Session),
        (Identifier::User, Layer::User),
        (Identifier::Project, Layer::Project),
        (Identifier::Team, Layer::Team),
        (Identifier::Org, Layer::Org),
    ];
    first_named(identifiers, &choices, Layer::Company)
}

fn first_named(identifiers: &Identifiers, choices: &[(Identifier, Layer)], otherwise: Layer) -> Layer {
    let named = choices.iter().find(|(identifier, _)| identifiers.get(*identifier).is_some());
    named.map_or(otherwise, |(_, layer)| *layer)
}
