//! Where exports are read from: a file, a folder, or a ZIP that is read in place. No name that something has inside of it is
//! ever used as a name on this machine.

use super::format::{self, Format, LOOK, Seen};
use super::markdown;
use super::record::LeftOut;
use anyhow::{Context, bail, ensure};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use zip::ZipArchive;

/// The most files of a folder or ZIP.
const MAX_PARTS: usize = 500_000;
const MAX_DEPTH: usize = 64;
/// What text can be compressed to, and from which size on it is asked: what is smaller is read in no time.
const MAX_RATIO: u64 = 250;
const RATIO_FROM: u64 = 64 * 1024 * 1024;
/// How much of what cannot be read is named where nothing else is there.
const SHOWN: usize = 5;
/// As much of a file as tells whether it may be JSON.
const GLANCE: u64 = 64;
/// How the names of files end that are plainly neither JSON nor Markdown: they are not opened.
const OTHERWISE: [&str; 34] = [
    "png", "jpg", "jpeg", "gif", "webp", "svg", "heic", "bmp", "tif", "tiff", "ico", "pdf", "html", "htm",
    "css", "js", "mp3", "mp4", "m4a", "m4v", "mov", "wav", "ogg", "opus", "flac", "webm", "zip", "gz", "csv",
    "docx", "xlsx", "pptx", "xml", "eml",
];

/// Something that can be read.
pub(super) enum Source {
    File(PathBuf),
    Folder(PathBuf),
    Zip(Box<ZipArchive<BufReader<File>>>),
}

/// A file, or one of the files in a folder or ZIP.
#[derive(Debug, Clone)]
pub(super) struct Part {
    /// Its path in there, with slashes.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// Its place in a ZIP.
    place: usize,
}

/// Something in a source that cannot be read.
#[derive(Debug, Clone)]
pub(super) struct Unreadable {
    /// Its path in there, with slashes.
    pub name: String,
    pub why: String,
}

/// What is in a source.
#[derive(Default)]
struct Listing {
    parts: Vec<Part>,
    unreadable: Vec<Unreadable>,
    left_out: LeftOut,
}

/// What of a source is to be read, and as what.
pub(super) struct Selection {
    pub format: Format,
    pub parts: Vec<Part>,
    pub unreadable: Vec<Unreadable>,
    pub left_out: LeftOut,
}

impl Source {
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let failed = || format!("cannot read {}", path.display());
        let metadata = std::fs::metadata(path).with_context(failed)?;
        if metadata.is_dir() {
            return Ok(Self::Folder(path.to_owned()));
        }
        let (mut file, mut glance) = (File::open(path).with_context(failed)?, Vec::new());
        read_some(&mut file, GLANCE, &mut glance).with_context(failed)?;
        if format::recognise(&glance) != Seen::Zip {
            return Ok(Self::File(path.to_owned()));
        }
        let file = BufReader::new(File::open(path).with_context(failed)?);
        let archive = ZipArchive::new(file);
        let archive =
            archive.with_context(|| format!("{} is a ZIP that is damaged or cut off", path.display()))?;
        ensure!(archive.len() <= MAX_PARTS, "{} has more than {MAX_PARTS} files", path.display());
        let sizes = (0..archive.len()).filter_map(|place| Some(archive.by_index_data(place).ok()?.size()));
        let unpacked = sizes.fold(0, u64::saturating_add);
        if let Some(why) = is_a_bomb(unpacked, metadata.len()) {
            bail!("{} {why}", path.display());
        }
        Ok(Self::Zip(Box::new(archive)))
    }

    /// Finds out what is to be read. `from` is what somebody says that it is.
    pub fn select(&mut self, path: &Path, from: Option<Format>) -> anyhow::Result<Selection> {
        let listing = self.list(path)?;
        match self {
            Self::File(_) => self.select_file(path, listing, from),
            Self::Folder(_) | Self::Zip(_) => self.select_among(path, listing, from),
        }
    }

    fn select_file(
        &mut self,
        path: &Path,
        listing: Listing,
        from: Option<Format>,
    ) -> anyhow::Result<Selection> {
        let Listing { parts, unreadable, left_out } = listing;
        let mut format = from;
        if let Some(part) = parts.first() {
            let (beginning, failed) = self.beginning(part);
            if let Some(why) = failed {
                bail!("cannot read {}: {why}", path.display());
            }
            if let Seen::Known(seen) = format::recognise(&beginning) {
                format = format.or(Some(seen));
            }
        }
        match format {
            Some(format) => Ok(Selection { format, parts, unreadable, left_out }),
            None => bail!(
                "{} is not a memtrove archive, nor anything else that is known: {}",
                path.display(),
                format::KNOWN
            ),
        }
    }

    /// Of the files in a folder or ZIP those that are wanted: all of one format.
    fn select_among(
        &mut self,
        path: &Path,
        listing: Listing,
        from: Option<Format>,
    ) -> anyhow::Result<Selection> {
        let Listing { parts, mut unreadable, mut left_out } = listing;
        let mut found: BTreeMap<&'static str, (Format, Vec<Part>)> = BTreeMap::new();
        for part in parts {
            match self.tell(&part, from) {
                Ok(Some(format)) => {
                    found.entry(name_of(format)).or_insert((format, Vec::new())).1.push(part);
                }
                Ok(None) => left_out.note("other files in it"),
                Err(why) => unreadable.push(Unreadable { name: part.name, why }),
            }
        }
        let is_export = found.values().any(|(format, _)| matches!(format, Format::Chatgpt | Format::Claude));
        if is_export && found.len() == 2 {
            // What people gave a chat to read lies beside what was said.
            let given = found.remove(name_of(Format::Markdown));
            for _ in given.iter().flat_map(|(_, parts)| parts) {
                left_out.note("Markdown files beside the conversations: --from markdown takes them");
            }
        }
        let names: Vec<&str> = found.keys().copied().collect();
        ensure!(
            found.len() < 2,
            "{} has several things in it: {}. --from says which one is meant",
            path.display(),
            names.join(", ")
        );
        let damaged = unreadable.iter().take(SHOWN);
        let damage: String = damaged.map(|Unreadable { name, why }| format!("{name}: {why}. ")).collect();
        match (found.into_values().next(), from) {
            (Some((format, parts)), _) => Ok(Selection { format, parts, unreadable, left_out }),
            (None, Some(from)) => {
                bail!("{damage}nothing in {} is of {} {from}", path.display(), from.article())
            }
            (None, None) => bail!("{damage}nothing in {} is known: {}", path.display(), format::KNOWN),
        }
    }

    /// What a part of a folder or ZIP is, if it is wanted; or why that cannot be told.
    fn tell(&mut self, part: &Part, from: Option<Format>) -> Result<Option<Format>, String> {
        let wanted = |format: Format| Some(format).filter(|format| from.is_none_or(|from| from == *format));
        if markdown::is_named_so(&part.name) {
            return Ok(wanted(Format::Markdown));
        }
        if from == Some(Format::Markdown) || is_named_otherwise(&part.name) {
            return Ok(None);
        }
        let (beginning, failed) = self.beginning(part);
        match (format::recognise(&beginning), failed) {
            (Seen::Known(format), _) if format != Format::Archive => Ok(wanted(format)),
            (_, Some(why)) => Err(why),
            (_, None) => Ok(None),
        }
    }

    /// What is in it, by its name.
    fn list(&mut self, path: &Path) -> anyhow::Result<Listing> {
        let failed = || format!("cannot read {}", path.display());
        let mut listing = Listing::default();
        match self {
            Self::File(path) => {
                let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
                let bytes = std::fs::metadata(&path).with_context(failed)?.len();
                listing.parts.push(Part { name, bytes, place: 0 });
            }
            Self::Folder(folder) => walk(folder, "", 0, &mut listing).with_context(failed)?,
            Self::Zip(archive) => list_zip(archive, &mut listing),
        }
        listing.parts.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(listing)
    }

    /// The beginning of a part, little of it if it can be no JSON; and why there is no more, if it cannot be read.
    pub fn beginning(&mut self, part: &Part) -> (Vec<u8>, Option<String>) {
        let mut beginning = Vec::new();
        let looked = self.read(part, &mut |reader| {
            read_some(reader, GLANCE, &mut beginning)?;
            if format::trimmed(&beginning).first().is_none_or(|byte| matches!(byte, b'{' | b'[')) {
                read_some(reader, LOOK as u64, &mut beginning)?;
            }
            Ok(())
        });
        (beginning, looked.err().map(|error| format!("{error:#}")))
    }

    /// Gives somebody a part to read.
    pub fn read(
        &mut self,
        part: &Part,
        reader: &mut dyn FnMut(&mut dyn Read) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        const FAILED: &str = "it cannot be read";
        match self {
            Self::File(path) => reader(&mut File::open(path).context(FAILED)?),
            Self::Folder(folder) => reader(&mut File::open(folder.join(&part.name)).context(FAILED)?),
            Self::Zip(archive) => {
                let file = archive.by_index(part.place).context(FAILED)?;
                if let Some(why) = is_a_bomb(part.bytes, file.compressed_size()) {
                    bail!("it {why}");
                }
                // Never more than it is said to have; whether it is whole shows one byte behind that.
                reader(&mut file.take(part.bytes.saturating_add(1)))
            }
        }
    }
}

/// What there is to say of something that would be this long, unpacked from so little, if it was made to do harm.
fn is_a_bomb(unpacked: u64, packed: u64) -> Option<String> {
    let is_one = unpacked >= RATIO_FROM && unpacked / packed.max(1) > MAX_RATIO;
    is_one.then(|| format!("would be {unpacked} bytes, unpacked from {packed}: no export is like that"))
}

fn is_named_otherwise(name: &str) -> bool {
    let ending = name.rsplit(['/', '\\']).next().and_then(|name| name.rsplit_once('.'));
    ending.is_some_and(|(_, ending)| OTHERWISE.iter().any(|one| ending.eq_ignore_ascii_case(one)))
}

fn name_of(format: Format) -> &'static str {
    match format {
        Format::Archive => "an archive",
        Format::Chatgpt => "a ChatGPT export (chatgpt)",
        Format::Claude => "a Claude export (claude)",
        Format::Mem0 => "mem0 memories (mem0)",
        Format::Mcp => "an MCP memory file (mcp)",
        Format::Markdown => "Markdown (markdown)",
    }
}

fn read_some(reader: &mut dyn Read, bytes: u64, into: &mut Vec<u8>) -> std::io::Result<()> {
    reader.take(bytes).read_to_end(into).map(drop)
}

/// Whether a file or folder of this name stays out.
fn is_hidden(name: &str) -> bool {
    // `.` and `..` hide nothing: in a ZIP they lead somewhere, and are refused for it.
    name == "__MACOSX" || (name.starts_with('.') && !matches!(name, "." | ".."))
}

const HIDDEN: &str = "hidden files and folders";
const LINKS: &str = "links to other files and folders";

/// The files in a ZIP, as they would be in the folder that it is of.
fn list_zip(archive: &ZipArchive<BufReader<File>>, listing: &mut Listing) {
    let mut hidden = HashSet::new();
    for place in 0..archive.len() {
        let file = match archive.by_index_data(place) {
            Ok(file) => file,
            Err(error) => {
                let (name, why) = (format!("file {place}"), error.to_string());
                listing.unreadable.push(Unreadable { name, why });
                continue;
            }
        };
        let name = file.name().map_or_else(|_| format!("file {place}"), Cow::into_owned);
        if let Some(root) = hidden_root(&name) {
            // A folder is left out once, however much is in it.
            if hidden.insert(root.to_owned()) {
                listing.left_out.note(HIDDEN);
            }
        } else if file.is_symlink() {
            listing.left_out.note(LINKS);
        } else if !file.is_dir() {
            listing.parts.push(Part { name, bytes: file.size(), place });
        }
    }
}

/// The path down to the first of its folders that is hidden, or to the file itself.
fn hidden_root(path: &str) -> Option<&str> {
    let mut end = 0;
    for name in path.split(['/', '\\']) {
        end += name.len();
        if is_hidden(name) {
            return path.get(..end);
        }
        end += 1;
    }
    None
}

/// The files below a folder. Links are not followed, and what is hidden stays so.
fn walk(folder: &Path, below: &str, depth: usize, listing: &mut Listing) -> anyhow::Result<()> {
    let unreadable = |name: &str, why: String| Unreadable { name: name.to_owned(), why };
    if depth > MAX_DEPTH {
        let why = format!("folders lie in each other more than {MAX_DEPTH} deep");
        listing.unreadable.push(unreadable(below, why));
        return Ok(());
    }
    let cannot = |error: std::io::Error| format!("it cannot be read: {error}");
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if depth == 0 => return Err(error.into()),
        Err(error) => {
            listing.unreadable.push(unreadable(below, cannot(error)));
            return Ok(());
        }
    };
    for entry in entries {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                listing.unreadable.push(unreadable(below, cannot(error)));
                break;
            }
        };
        let Ok(name) = entry.file_name().into_string() else {
            listing.left_out.note("files whose names are not UTF-8");
            continue;
        };
        let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
        match entry.file_type() {
            _ if is_hidden(&name) => listing.left_out.note(HIDDEN),
            Ok(kind) if kind.is_dir() => walk(&entry.path(), &path, depth + 1, listing)?,
            Ok(kind) if kind.is_file() => {
                ensure!(listing.parts.len() < MAX_PARTS, "there are more than {MAX_PARTS} files");
                // The length is for those who wait; one that cannot be read says so when it is.
                let bytes = entry.metadata().map_or(0, |metadata| metadata.len());
                listing.parts.push(Part { name: path, bytes, place: 0 });
            }
            Ok(_) => listing.left_out.note(LINKS),
            Err(error) => listing.unreadable.push(unreadable(&path, cannot(error))),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
