//! `memtrove adopt`: moves a data folder from the time when the product was called Memloom.
//!
//! The database is renamed, never copied where that can be helped, and only after its log was taken into it: a crash between
//! any two steps leaves a folder that this command, run again, moves to the end.

use crate::cli::StoreArgs;
use crate::config::{Config, DEFAULT, Database, Loaded, data_home};
use crate::terminal::line;
use anyhow::{Context, bail, ensure};
use clap::Args;
use memtrove_store::sqlite;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Shown below the help.
pub const EXAMPLES: &str = "\
Examples:
  memtrove adopt                                   Say what there is to move
  memtrove adopt ./memloom-data                    Move it to where every command looks
  memtrove adopt ./memloom-data --data-dir ./here  Move it elsewhere
  memtrove adopt /srv/data --data-dir /srv/data    Leave the folder where it is

Nobody may use the folder meanwhile. Encrypted folders need no key for this, and
the same keys afterwards. Archives and databases on PostgreSQL are used as they are.";

/// How the database was called.
const OLD_DATABASE: &str = "memloom.db";
const DATABASE: &str = "memtrove.db";
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
    ensure!(
        config.database()? == Database::Sqlite(config.server.data_dir.join(DATABASE)),
        "the store is {}, which is not in a data folder: leave store.url out, or move the folder's database there yourself",
        config.database()?
    );
    let target = &config.server.data_dir;
    adopt(folder, target)?;
    line(format_args!("Moved {} to {}.", folder.display(), target.display()));
    Ok(())
}

fn adopt(folder: &Path, target: &Path) -> anyhow::Result<()> {
    let here = folder.canonicalize().with_context(|| format!("there is no folder {}", folder.display()))?;
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

    let database = if renamed { &new } else { &old };
    let lock = sqlite::at_rest(database)
        .with_context(|| format!("{} cannot be moved now, and nothing was", folder.display()))?;
    // What only a process that runs has use for.
    for left in ["-shm", "-wal", ".mcp"] {
        remove(&beside(database, left))?;
    }
    if !renamed {
        rename(&old, &new)?;
    }
    if !in_place {
        move_folder(&here, target)?;
    }
    drop(lock);
    remove(&beside(&target.join(OLD_DATABASE), ".lock"))
}

/// A folder is moved to where nothing is, so that nothing can be mixed up.
fn refuse_occupied(target: &Path) -> anyhow::Result<()> {
    match std::fs::read_dir(target) {
        Ok(mut entries) => match entries.next() {
            None => Ok(std::fs::remove_dir(target)
                .with_context(|| format!("the empty folder {} cannot be replaced", target.display()))?),
            Some(_) => bail!(
                "{} is there and not empty: choose another folder with --data-dir. Nothing was moved",
                target.display()
            ),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).with_context(|| format!("{} cannot be looked into", target.display())),
    }
}

fn move_folder(from: &Path, to: &Path) -> anyhow::Result<()> {
    if let Some(parent) = to.parent().filter(|parent| !parent.as_os_str().is_empty()) {
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
    copy(from, &draft).with_context(|| format!("{} cannot be copied to {}", from.display(), to.display()))?;
    rename(&draft, to)?;
    std::fs::remove_dir_all(from).with_context(|| {
        format!(
            "everything is in {} now, and {} cannot be removed: do that yourself",
            to.display(),
            from.display()
        )
    })
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    if from.is_dir() {
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(to)?;
        for entry in std::fs::read_dir(from)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
        return std::fs::File::open(to)?.sync_all();
    }
    std::fs::copy(from, to)?;
    std::fs::File::open(to)?.sync_all()
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
            folders: folders
                .into_iter()
                .flatten()
                .filter(|folder| folder.join(OLD_DATABASE).is_file())
                .collect(),
            file: file.is_file().then_some(file),
            variables: names.filter(|name| name.starts_with(OLD_PREFIX)).collect(),
        }
    }

    /// Says them where nobody parses what is printed.
    pub(crate) fn announce(&self, loaded: &Loaded) {
        for notice in self.notices(loaded) {
            eprintln!("memtrove: {notice}");
        }
    }

    /// One sentence for each, with what to do about it. Whoever names a folder need not hear of others.
    pub(crate) fn notices(&self, loaded: &Loaded) -> Vec<String> {
        let mut notices = vec![];
        let is_default = loaded.source("server.data_dir") == DEFAULT && loaded.source("store.url") == DEFAULT;
        for folder in self.folders.iter().filter(|_| is_default) {
            let target = loaded.config.server.data_dir.display();
            notices.push(format!(
                "{} holds what was stored before the product was renamed: `memtrove adopt {}` moves it to {target}",
                folder.display(),
                folder.display()
            ));
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
