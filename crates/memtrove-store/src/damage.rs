//! What an engine knows of damage to its database.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether something in a database could not be read. That stays so until the process ends: damage does not mend itself, and
/// what else is lost is unknown.
#[derive(Debug, Default)]
pub(crate) struct Damage(AtomicBool);

impl Damage {
    pub(crate) fn is_found(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Notes that something could not be read, and says so once.
    pub(crate) fn found(&self, what: &str) {
        if !self.0.swap(true, Ordering::Relaxed) {
            tracing::error!(
                what,
                "the database is damaged: readiness fails from now on; stop the server, restore a backup, and start it again"
            );
        }
    }
}
