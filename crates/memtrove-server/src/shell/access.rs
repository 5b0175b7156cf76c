//! What a handler tells the shell for the line that a request leaves in the log.

use http::Extensions;
use std::sync::{Arc, OnceLock};

/// Where a handler of the files surface says on whose behalf it works.
#[derive(Debug, Clone, Default)]
pub(crate) struct Noted(Arc<OnceLock<Scope>>);

#[derive(Debug)]
pub(super) struct Scope {
    pub tenant: String,
    pub user: String,
    pub actor: String,
}

impl Noted {
    /// Writes the note, if there is a place for it.
    pub(crate) fn write(extensions: &Extensions, tenant: &str, user: &str, actor: &str) {
        if let Some(Noted(note)) = extensions.get::<Noted>() {
            let (tenant, user, actor) = (tenant.to_owned(), user.to_owned(), actor.to_owned());
            // A request has one scope; a second note would say the same.
            let _ = note.set(Scope { tenant, user, actor });
        }
    }

    pub(super) fn read(&self) -> Option<&Scope> {
        self.0.get()
    }
}
