//! Which model does what.

use super::static_model::StaticModel;
use super::{EmbedError, Embedded, Embedder, Provider, QueryModel, STATIC_MODEL, Vector, openai};
use std::sync::Arc;

/// The models of one provider.
pub(super) struct Models {
    /// Embeds what is written, while its writer waits.
    pub(super) write: Model,
    /// Embeds documents in the end.
    pub(super) preferred: Model,
    /// Embeds queries.
    pub(super) query: Model,
}

/// A model, and its id as it is stored with each vector.
#[derive(Clone)]
pub(super) struct Model {
    pub(super) id: Arc<str>,
    pub(super) embedder: Arc<dyn Embedder>,
}

impl Models {
    pub(super) fn open(provider: Provider) -> Result<Option<Self>, EmbedError> {
        Ok(match provider {
            Provider::Static => Some(Self::one(Model::bundled())),
            Provider::Local { directory, query } => Some(Self::two(open_local(&directory)?, query)?),
            Provider::OpenAi(config) => Some(Self::one(Model::new(openai::OpenAi::new(config)?))),
            Provider::None => None,
        })
    }

    /// A transformer, beside the bundled model if that can stand in for it.
    pub(super) fn two(local: Model, query: QueryModel) -> Result<Self, EmbedError> {
        match (local.embedder.space().is_shared(), query) {
            (true, QueryModel::Local) => {
                Ok(Self { write: Model::bundled(), preferred: local.clone(), query: local })
            }
            (true, QueryModel::Static) => {
                Ok(Self { write: Model::bundled(), preferred: local, query: Model::bundled() })
            }
            (false, QueryModel::Local) => Ok(Self::one(local)),
            (false, QueryModel::Static) => Err(EmbedError::Configuration(
                "embedding.query can be static only where the local model is all-MiniLM-L6-v2, which shares its space \
                 with the static one"
                    .to_owned(),
            )),
        }
    }

    pub(super) fn one(model: Model) -> Self {
        Self { write: model.clone(), preferred: model.clone(), query: model }
    }
}

#[cfg(feature = "local")]
fn open_local(directory: &std::path::Path) -> Result<Model, EmbedError> {
    super::local::LocalEmbedder::open(directory).map(Model::new)
}

#[cfg(not(feature = "local"))]
fn open_local(_: &std::path::Path) -> Result<Model, EmbedError> {
    Err(EmbedError::Configuration(
        "this program was built without the local provider; build it with `--features local`, or set \
         embedding.provider to static"
            .to_owned(),
    ))
}

impl Model {
    pub(super) fn new(embedder: impl Embedder + 'static) -> Self {
        Self { id: embedder.model_id().into(), embedder: Arc::new(embedder) }
    }

    fn bundled() -> Self {
        Self::new(StaticModel::default())
    }

    pub(super) fn made(&self, vector: Vector) -> Embedded {
        Embedded { model: self.id.clone(), vector }
    }

    /// Not worth it for the bundled model: it embeds a text faster than the text could be hashed and looked up.
    pub(super) fn is_remembered(&self) -> bool {
        &*self.id != STATIC_MODEL
    }
}
