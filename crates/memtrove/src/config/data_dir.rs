//! Where data lies by default.

use std::path::PathBuf;

/// Memtrove's folder among those of the user's other programs; empty where the user has no home.
pub(super) fn default_data_dir() -> PathBuf {
    data_home().map(|folder| folder.join("memtrove")).unwrap_or_default()
}

/// Where a user's programs keep their data: `$XDG_DATA_HOME`, else `~/.local/share`.
pub(crate) fn data_home() -> Option<PathBuf> {
    // What is not absolute is to be ignored, says the specification of these folders.
    let named = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let home = || std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
    named.or_else(|| Some(home()?.join(".local/share")))
}
