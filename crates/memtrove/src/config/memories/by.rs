//! What is set for each kind or layer apart.

use super::super::LayerName;
use memtrove_core::memories::{Kind, Layer};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Something for each kind of memory.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, bound(deserialize = "T: Deserialize<'de> + Default"))]
pub struct ByKind<T> {
    /// Scratch context of one running operation.
    pub working: T,
    /// Context of one conversation.
    pub session: T,
    /// Events with a time.
    pub episodic: T,
    /// General knowledge.
    pub semantic: T,
    /// Facts.
    pub procedural: T,
    /// Personal profile and preferences.
    pub user_personal: T,
    /// Faded or cold memory.
    pub archival: T,
}

impl<T> ByKind<T> {
    /// What is set, with the kind it is for.
    pub fn each(&self) -> [(Kind, &T); 7] {
        Kind::ALL.map(|kind| {
            let set = match kind {
                Kind::Working => &self.working,
                Kind::Session => &self.session,
                Kind::Episodic => &self.episodic,
                Kind::Semantic => &self.semantic,
                Kind::Procedural => &self.procedural,
                Kind::UserPersonal => &self.user_personal,
                Kind::Archival => &self.archival,
            };
            (kind, set)
        })
    }
}

/// The names of layers.
pub(super) fn names(layers: &[Layer]) -> Vec<LayerName> {
    layers.iter().copied().map(LayerName).collect()
}

/// Layers, each once, strongest first.
pub(super) fn layers(names: &[LayerName]) -> Vec<Layer> {
    Layer::ALL.into_iter().filter(|layer| names.contains(&LayerName(*layer))).collect()
}

/// `[memories.write_roles]`: who may write in a layer that many share. Admins always may; unless it is set, everybody of the
/// tenant may.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WriteRoles {
    pub project: Option<Vec<Role>>,
    pub team: Option<Vec<Role>>,
    /// In organisations.
    pub org: Option<Vec<Role>>,
    /// In the tenant.
    pub company: Option<Vec<Role>>,
}

/// A role that `[roles]` gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// `[roles.admin]`
    Admin,
    /// `[roles.auditor]`
    Auditor,
    /// `[roles.indexer]`
    Indexer,
    /// `[roles.reader]`
    Reader,
    /// `[roles.writer]`
    Writer,
}

impl Role {
    fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Auditor => "auditor",
            Self::Indexer => "indexer",
            Self::Reader => "reader",
            Self::Writer => "writer",
        }
    }
}

impl WriteRoles {
    /// The same, as the use cases take it.
    pub(super) fn settings(&self) -> HashMap<Layer, Vec<String>> {
        let layers = [
            (Layer::Project, &self.project),
            (Layer::Team, &self.team),
            (Layer::Org, &self.org),
            (Layer::Company, &self.company),
        ];
        let names = |roles: &Vec<Role>| roles.iter().map(|role| role.as_str().to_owned()).collect();
        layers.into_iter().filter_map(|(layer, roles)| Some((layer, names(roles.as_ref()?)))).collect()
    }
}
