//! Who makes vectors, and how many are still to be made.

use super::Check;
use super::store::ExaminedStore;
use crate::config::{Config, EmbeddingProvider};
use crate::serve;
use memtrove_recall::embed::Embeddings;
use memtrove_service::vectors;
use memtrove_store::memories::upgrades;
use memtrove_store::{StoreError, Tx};
use std::time::Duration;

const NAME: &str = "embedding";
/// How long a server may take to show that it is there.
const PATIENCE: Duration = Duration::from_secs(5);

/// Makes what a server would make vectors with, and looks at a store that can be read. A configuration that cannot be is
/// told about elsewhere.
pub(super) async fn check(config: &Config, store: &ExaminedStore) -> Option<Check> {
    if config.problems().iter().any(|problem| problem.key.starts_with("embedding.")) {
        return None;
    }
    let mut settings = serve::settings(config).embedding;
    (settings.retry.max_attempts, settings.retry.deadline) = (1, PATIENCE);
    let embeddings = match Embeddings::new(settings) {
        Ok(embeddings) => embeddings,
        Err(error) => {
            let fix = "check the settings below [embedding]; embedding.provider = \"static\" needs none";
            return Some(Check::problem(NAME, error.to_string(), fix));
        }
    };
    let (Some(space), Some(model)) = (embeddings.space(), embeddings.preferred_model_id()) else {
        return Some(Check::ok(NAME, "embedding.provider is none, so words alone are searched"));
    };
    let mut message = format!("{model} makes vectors of {} dimensions", space.dimensions);
    if config.embedding.provider == EmbeddingProvider::OpenAi
        && let Err(error) = embeddings.document("doctor", "Is anybody there?").await
    {
        // A server starts all the same, and the provider may come back.
        return Some(Check::warning(NAME, format!("{message}, but: {error}")));
    }
    let semantic = config.search.semantic_enabled;
    let waiting = match config.encryption.vault() {
        Ok(vault) => {
            let model = model.to_owned();
            store.look(vault, move |tx| waiting(tx, &model, semantic)).await
        }
        Err(_) => None,
    };
    message.push_str(&waiting.unwrap_or_default());
    Some(Check::ok(NAME, message))
}

/// How many vectors wait to be made, in words.
fn waiting(tx: &mut dyn Tx, model: &str, with_conversations: bool) -> Result<String, StoreError> {
    if let Some(other) = upgrades::listed_for(tx)?.filter(|listed| listed != model) {
        return Ok(format!("; those that {other} made are made anew once a server starts"));
    }
    Ok(match vectors::waiting(tx, model, with_conversations)? {
        0 => String::new(),
        1 => "; 1 text waits for its vectors".to_owned(),
        texts => format!("; {texts} texts wait for their vectors"),
    })
}
