//! The password of a URL that has none, from where libpq takes it: `PGPASSWORD`, else a file with a line for each server.

use std::path::{Path, PathBuf};

/// What a password is for.
pub(super) struct Login<'a> {
    pub hosts: Vec<(String, u16)>,
    pub database: &'a str,
    pub user: &'a str,
}

/// The password that the environment has for a login.
pub(super) fn of(login: &Login<'_>) -> Option<String> {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    set("PGPASSWORD").or_else(|| {
        let named = set("PGPASSFILE").map(PathBuf::from);
        let file = named.or_else(|| Some(Path::new(&set("HOME")?).join(".pgpass")))?;
        is_private(&file).then(|| std::fs::read_to_string(&file).ok())?.and_then(|lines| find(&lines, login))
    })
}

/// Whether others than its owner are kept from a file. As libpq does it, one that anybody can read is not used.
fn is_private(file: &Path) -> bool {
    let Ok(metadata) = file.metadata() else { return false };
    #[cfg(unix)]
    {
        static TOLD: std::sync::Once = std::sync::Once::new();
        let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions());
        if metadata.is_file() && mode & 0o077 != 0 {
            // Every connection asks for it.
            TOLD.call_once(|| {
                tracing::warn!(file = %file.display(), "others may read this file with passwords, so it is not used: chmod 600");
            });
            return false;
        }
    }
    metadata.is_file()
}

/// The password in the first line that fits, of lines like `host:port:database:user:password`, in which `*` fits everything.
fn find(lines: &str, login: &Login<'_>) -> Option<String> {
    lines.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = fields(line);
        let [host, port, database, user, password] = fields.as_slice() else { return None };
        let fits = |field: &Field, value: &str| field.is_any || field.text == value;
        // libpq writes the folder of a socket as `localhost`.
        let at = |(name, number): &(String, u16)| {
            let name = if name.starts_with('/') && host.text == "localhost" { "localhost" } else { name };
            fits(host, name) && fits(port, &number.to_string())
        };
        (login.hosts.iter().any(at) && fits(database, login.database) && fits(user, login.user))
            .then(|| password.text.clone())
    })
}

/// A part of a line.
struct Field {
    text: String,
    is_any: bool,
}

/// A line cut at its colons; a backslash takes the character behind it as it is. The password is the rest of the line.
fn fields(line: &str) -> Vec<Field> {
    let mut fields = vec![String::new()];
    let mut characters = line.trim_end_matches(['\r', '\n']).chars();
    while let Some(character) = characters.next() {
        let text = match character {
            '\\' => characters.next().map(String::from),
            ':' if fields.len() < 5 => {
                fields.push(String::new());
                None
            }
            other => Some(other.into()),
        };
        if let (Some(text), Some(last)) = (text, fields.last_mut()) {
            last.push_str(&text);
        }
    }
    fields.into_iter().map(|text| Field { is_any: text == "*", text }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(lines: &str) -> Option<String> {
        let hosts = vec![("db.example".to_owned(), 5432), ("/run/postgresql".to_owned(), 6000)];
        find(lines, &Login { hosts, database: "memtrove", user: "m" })
    }

    #[test]
    fn the_first_line_that_fits_has_the_password() {
        for (lines, password) in [
            ("db.example:5432:memtrove:m:hush", Some("hush")),
            ("*:*:*:*:hush", Some("hush")),
            ("# *:*:*:*:no\nother:5432:memtrove:m:no\n*:*:memtrove:*:hush\n*:*:*:*:later", Some("hush")),
            ("localhost:6000:memtrove:m:hush", Some("hush")),
            ("*:*:*:*:a\\:b\\\\c:d", Some("a:b\\c:d")),
            ("db.example:5433:memtrove:m:no", None),
            ("db.example:5432:memtrove:somebody:no", None),
            ("db.example:5432:other:m:no", None),
            ("db.example:5432:memtrove:m", None),
            ("", None),
        ] {
            assert_eq!(found(lines).as_deref(), password, "{lines}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_may_read_is_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let file = tempfile::NamedTempFile::new().unwrap();
        for (mode, private) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false)] {
            std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(is_private(file.path()), private, "{mode:o}");
        }
        assert!(!is_private(&file.path().join("nowhere")));
    }
}
