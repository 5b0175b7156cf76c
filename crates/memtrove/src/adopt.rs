//! `memtrove adopt`: moves a data folder from the time when the product was called Memloom.
//!
//! The database is renamed, never copied where that can be helped, and only after its log was taken into it: a crash between
//! any two steps leaves a folder that this command, run again, moves to the end.

use crate::cli::StoreArgs;
use crate::config::{Config, DEFAULT, Database, Loaded, data_home};
use crate::terminal::line;
use anyhow::{Context, anyhow, bail, ensure};
use clap::Args;
use memtrove_store::sqlite;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Shown below the help.
pub const EXAMPLES: &str = "\
Examples:
  memtrove adopt                                   Say what there is to move
  memtrove adopt ./memloom-data                    Move it to where every command looks
  memtrove adopt ./memloom-data --data-dir ./here  Move it elsewhere
  memtrove adopt /srv/data --data-dir /srv/data    Leave the folder where it is

No other process may use the folder meanwhile. Encrypted folders need no key for this, and
the same keys afterwards. Archives and databases on PostgreSQL are used as they are.";

/// How the database was called.
const OLD_DATABASE: &str = "memloom.db";
const DATABASE: &str = "memtrove.db";
const LOCK: &str = ".lock";
const ATTACHMENTS: &str = "attachments";
const OLD_FILE: &str = "memloom.toml";
const OLD_PREFIX: &str = "MEMLOOM_";

/// Arguments of `memtrove adopt`.
#[derive(Debug, Args)]
pub struct AdoptArgs {
    /// The folder to move; without one, those that are found are named
    #[arg(value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// See [`StoreArgs`].
    #[command(flatten)]
    pub store: StoreArgs,
}

/// Moves the folder, or says what there is to move.
pub fn run(args: &AdoptArgs) -> anyhow::Result<()> {
    let loaded = args.store.load()?;
    let Some(folder) = &args.folder else {
        let found = Leftovers::find().notices(&loaded);
        line(if found.is_empty() { "There is nothing to adopt.".to_owned() } else { found.join("\n") });
        return Ok(());
    };
    let config = &loaded.config;
    let target = &config.server.data_dir;
    match config.database()? {
        Database::Sqlite(path) if path == target.join(DATABASE) => adopt(folder, target)?,
        Database::Postgres(_) => adopt_attachments(folder, target)?,
        elsewhere @ Database::Sqlite(_) => bail!(
            "the store is {elsewhere}, which is not in a data folder: leave store.url out, or move the folder's database there \
             yourself"
        ),
    }
    line(format_args!("Moved {} to {}.", folder.display(), target.display()));
    if loaded.source("server.data_dir").starts_with("flag") {
        line(format_args!(
            "Other commands find it with --data-dir {0}, or server.data_dir = \"{0}\".",
            target.display()
        ));
    }
    Ok(())
}

/// Beside a database on a server the folder holds attachments alone.
fn adopt_attachments(folder: &Path, target: &Path) -> anyhow::Result<()> {
    let here = canonical(folder)?;
    ensure!(
        here.join(ATTACHMENTS).is_dir() && !here.join(OLD_DATABASE).exists(),
        "{} is not what a server on PostgreSQL keeps: a folder {ATTACHMENTS}, and no {OLD_DATABASE}. Nothing was moved",
        folder.display()
    );
    refuse_occupied(target)?;
    move_folder(&here, target)
}

fn canonical(folder: &Path) -> anyhow::Result<PathBuf> {
    folder.canonicalize().with_context(|| format!("there is no folder {}", folder.display()))
}

fn adopt(folder: &Path, target: &Path) -> anyhow::Result<()> {
    let here = canonical(folder)?;
    let in_place = target.canonicalize().is_ok_and(|target| target == here);
    let (old, new) = (here.join(OLD_DATABASE), here.join(DATABASE));
    let renamed = !old.exists() && new.exists();
    ensure!(old.exists() || renamed, "{} holds no {OLD_DATABASE}: nothing was moved", folder.display());
    ensure!(
        !(old.exists() && new.exists()),
        "{} holds both {OLD_DATABASE} and {DATABASE}: move the one that is not wanted elsewhere. Nothing was moved",
        folder.display()
    );
    ensure!(
        !(in_place && renamed),
        "{} is what every command uses already: there is nothing to do",
        folder.display()
    );
    if !in_place {
        refuse_occupied(target)?;
    }

    // Under both names: no process may open it by the new one while it is copied to another disk.
    let new_lock = File::create(beside(&new, LOCK))?;
    let locked = new_lock.try_lock().map_err(|_| anyhow!("another memtrove process uses it"));
    let locked = locked.and_then(|()| match renamed {
        true => Ok(None),
        false => Ok(Some(sqlite::at_rest(&old)?)),
    });
    let lock =
        locked.with_context(|| format!("{} cannot be moved now, and nothing was", folder.display()))?;
    // What only a process that runs has use for.
    if !renamed {
        for left in ["-shm", "-wal", ".mcp"] {
            remove(&beside(&old, left))?;
        }
        rename(&old, &new)?;
    }
    if !in_place {
        move_folder(&here, target)?;
    }
    drop((lock, new_lock));
    remove(&beside(&target.join(OLD_DATABASE), LOCK))
}

fn is_occupied(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
}

/// A folder is moved to where nothing is, so that nothing can be mixed up.
fn refuse_occupied(target: &Path) -> anyhow::Result<()> {
    match std::fs::read_dir(target) {
        Ok(mut entries) => match entries.next() {
            None => Ok(std::fs::remove_dir(target).with_context(|| {
                format!(
                    "the empty folder {} cannot be replaced: name a folder in it with --data-dir",
                    target.display()
                )
            })?),
            Some(_) => bail!(
                "{} is there and not empty: choose another folder with --data-dir, or put what is there elsewhere first. Nothing was \
                 moved",
                target.display()
            ),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).with_context(|| format!("{} cannot be looked into", target.display())),
    }
}

fn move_folder(from: &Path, to: &Path) -> anyhow::Result<()> {
    if let Some(parent) = parent(to) {
        std::fs::create_dir_all(parent).with_context(|| format!("{} cannot be made", parent.display()))?;
    }
    match std::fs::rename(from, to) {
        Err(error) if error.kind() == ErrorKind::CrossesDevices => copy_folder(from, to),
        moved => moved.with_context(|| format!("{} cannot become {}", from.display(), to.display())),
    }
}

/// To another disk. The copy gets its name when it is whole, and the original goes after that.
fn copy_folder(from: &Path, to: &Path) -> anyhow::Result<()> {
    let mut draft = to.as_os_str().to_owned();
    draft.push(".adopting");
    let draft = PathBuf::from(draft);
    // Left by a run that was killed; the original is still whole.
    if draft.exists() {
        std::fs::remove_dir_all(&draft).with_context(|| format!("{} cannot be removed", draft.display()))?;
    }
    if let Err(error) = copy(from, &draft) {
        // Half a copy only takes room, most of all where there was none for the other half.
        let _ = std::fs::remove_dir_all(&draft);
        return Err(error).with_context(|| {
            format!("{} cannot be copied to {}, and is as it was", from.display(), to.display())
        });
    }
    rename(&draft, to)?;
    // The name must last before the original goes.
    File::open(parent(to).unwrap_or(Path::new(".")))?.sync_all()?;
    std::fs::remove_dir_all(from).with_context(|| {
        format!(
            "everything is in {} now, and {} cannot be removed: do that yourself",
            to.display(),
            from.display()
        )
    })
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    let kind = from.symlink_metadata()?.file_type();
    #[cfg(unix)]
    if kind.is_symlink() {
        return std::os::unix::fs::symlink(std::fs::read_link(from)?, to);
    }
    if kind.is_dir() {
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(to)?;
        for entry in std::fs::read_dir(from)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
        return File::open(to)?.sync_all();
    }
    std::fs::copy(from, to)?;
    File::open(to)?.sync_all()
}

/// The folder that a path names something in; none for a name in the working directory.
fn parent(path: &Path) -> Option<&Path> {
    path.parent().filter(|parent| !parent.as_os_str().is_empty())
}

fn rename(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::rename(from, to).with_context(|| format!("{} cannot become {}", from.display(), to.display()))
}

fn remove(file: &Path) -> anyhow::Result<()> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("{} cannot be removed", file.display()))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

fn beside(database: &Path, ending: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// What of the old name is still around a process.
#[derive(Debug, Default)]
pub(crate) struct Leftovers {
    /// Where there may be one.
    folders: Vec<PathBuf>,
    file: Option<PathBuf>,
    variables: Vec<String>,
}

impl Leftovers {
    /// Looks where they used to be.
    pub(crate) fn find() -> Self {
        let folders = [Some(PathBuf::from("./memloom-data")), data_home().map(|home| home.join("memloom"))];
        let file = PathBuf::from(OLD_FILE);
        let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        Self {
            folders: folders.into_iter().flatten().collect(),
            file: file.is_file().then_some(file),
            variables: names.filter(|name| name.starts_with(OLD_PREFIX)).collect(),
        }
    }

    /// Says them where the output is for people. A user who has something to adopt must not begin with an empty store in
    /// its place.
    pub(crate) fn announce(&self, loaded: &Loaded) -> anyhow::Result<()> {
        let target = &loaded.config.server.data_dir;
        if let Some(folder) = self.awaited(loaded) {
            bail!(
                "{0} holds what was stored before the product was renamed: `memtrove adopt {0}` moves it to {1}. To begin anew, \
                 put it elsewhere, or name a folder with --data-dir",
                folder.display(),
                target.display()
            );
        }
        for notice in self.notices(loaded) {
            eprintln!("memtrove: {notice}");
        }
        Ok(())
    }

    /// The folder that has to be adopted before anything begins: nothing is in its place yet.
    pub(crate) fn awaited(&self, loaded: &Loaded) -> Option<&Path> {
        self.named(loaded).next().filter(|_| !is_occupied(&loaded.config.server.data_dir))
    }

    /// The folders that hold what belongs to this configuration. A user who names a folder need not hear of others.
    fn named(&self, loaded: &Loaded) -> impl Iterator<Item = &Path> {
        let is_default = loaded.source("server.data_dir") == DEFAULT;
        // Beside a database on a server a folder holds attachments alone.
        let is_shared = matches!(loaded.config.database(), Ok(Database::Postgres(_)));
        let holds = move |folder: &&Path| {
            let has_database = folder.join(OLD_DATABASE).is_file();
            is_default
                && if is_shared { folder.join(ATTACHMENTS).is_dir() && !has_database } else { has_database }
        };
        self.folders.iter().map(PathBuf::as_path).filter(holds)
    }

    /// One sentence for each, with what to do about it.
    pub(crate) fn notices(&self, loaded: &Loaded) -> Vec<String> {
        let mut notices = vec![];
        let target = &loaded.config.server.data_dir;
        for folder in self.named(loaded) {
            let (folder, there) = (folder.display(), target.display());
            notices.push(match is_occupied(target) {
                false => format!(
                    "{folder} holds what was stored before the product was renamed: `memtrove adopt {folder}` moves it to {there}"
                ),
                true => format!(
                    "{folder} holds what was stored before the product was renamed, and {there} has something of its own: \
                     `memtrove adopt {folder} --data-dir FOLDER` moves it elsewhere"
                ),
            });
        }
        if let Some(file) = &self.file {
            notices.push(format!("{} is not read any more: rename it to memtrove.toml", file.display()));
        }
        if !self.variables.is_empty() {
            let names = self.variables.join(", ");
            notices.push(format!(
                "variables that begin with {OLD_PREFIX} are not read any more: rename {names}"
            ));
        }
        notices
    }
}

/// Refuses to make a new database beside one that was meant.
pub(crate) fn refuse_unadopted(config: &Config, database: &Path) -> anyhow::Result<()> {
    let folder = &config.server.data_dir;
    ensure!(
        database.exists() || *database != folder.join(DATABASE) || !folder.join(OLD_DATABASE).is_file(),
        "{0} holds {OLD_DATABASE}, from before the product was renamed: `memtrove adopt {0} --data-dir {0}` renames it",
        folder.display()
    );
    Ok(())
}
