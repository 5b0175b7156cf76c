//! Where exports are read from: a file, a folder, or a ZIP that is read in place. No name that something has inside of it is
//! ever used as a name on this machine.

use super::format::{self, Format, LOOK, Seen};
use super::markdown;
use super::record::LeftOut;
use anyhow::{Context, bail, ensure};
use std::borrow::Cow;
use std::collections::BTreeMap;
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
/// As much of a file as tells whether it may be JSON.
const GLANCE: u64 = 64;

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

/// What of a source is to be read, and as what.
pub(super) struct Selection {
    pub format: Format,
    pub parts: Vec<Part>,
    pub left_out: LeftOut,
}

impl Source {
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let failed = || format!("cannot read {}", path.display());
        if std::fs::metadata(path).with_context(failed)?.is_dir() {
            return Ok(Self::Folder(path.to_owned()));
        }
        let mut file = File::open(path).with_context(failed)?;
        if format::recognise(&read_some(&mut file, GLANCE).with_context(failed)?) != Seen::Zip {
            return Ok(Self::File(path.to_owned()));
        }
        let file = BufReader::new(File::open(path).with_context(failed)?);
        let archive = ZipArchive::new(file);
        let archive =
            archive.with_context(|| format!("{} is a ZIP that is damaged or cut off", path.display()))?;
        ensure!(archive.len() <= MAX_PARTS, "{} has more than {MAX_PARTS} files", path.display());
        Ok(Self::Zip(Box::new(archive)))
    }

    /// Finds out what is to be read. `from` is what somebody says that it is.
    pub fn select(&mut self, path: &Path, from: Option<Format>) -> anyhow::Result<Selection> {
        let mut left_out = LeftOut::default();
        let parts = self.parts(path, &mut left_out)?;
        if let (Self::File(_), [part]) = (&*self, parts.as_slice()) {
            let seen = self.look(part)?;
            let format = match (from, seen) {
                (Some(format), _) | (None, Seen::Known(format)) => format,
                (None, Seen::Zip | Seen::Unknown) => {
                    bail!(
                        "{} is not a memloom archive, nor anything else that is known: {}",
                        path.display(),
                        format::KNOWN
                    )
                }
            };
            return Ok(Selection { format, parts, left_out });
        }
        let mut found: BTreeMap<&'static str, (Format, Vec<Part>)> = BTreeMap::new();
        for part in parts {
            let format = match self.look(&part)? {
                _ if markdown::is_named_so(&part.name) => Some(Format::Markdown),
                Seen::Known(format) if format != Format::Archive => Some(format),
                _ => None,
            };
            match format.filter(|format| from.is_none_or(|from| from == *format)) {
                Some(format) => found.entry(name_of(format)).or_insert((format, Vec::new())).1.push(part),
                None => left_out.note("other files in it"),
            }
        }
        let names: Vec<&str> = found.keys().copied().collect();
        ensure!(
            found.len() < 2,
            "{} has several things in it: {}. --from says which one is meant",
            path.display(),
            names.join(", ")
        );
        match (found.into_values().next(), from) {
            (Some((format, parts)), _) => Ok(Selection { format, parts, left_out }),
            (None, Some(from)) => bail!("nothing in {} is of a {from}", path.display()),
            (None, None) => bail!("nothing in {} is known: {}", path.display(), format::KNOWN),
        }
    }

    /// The files in it, by their names.
    fn parts(&mut self, path: &Path, left_out: &mut LeftOut) -> anyhow::Result<Vec<Part>> {
        let mut parts = match self {
            Self::File(path) => {
                let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
                let bytes = std::fs::metadata(&path)?.len();
                vec![Part { name, bytes, place: 0 }]
            }
            Self::Folder(folder) => {
                let mut parts = Vec::new();
                walk(folder, "", 0, &mut parts, left_out)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                parts
            }
            Self::Zip(archive) => {
                let mut parts = Vec::new();
                for place in 0..archive.len() {
                    let file = archive
                        .by_index_raw(place)
                        .with_context(|| format!("{} is damaged", path.display()))?;
                    if !file.is_dir() {
                        let name = file.name().map_or_else(|_| format!("file {place}"), Cow::into_owned);
                        parts.push(Part { name, bytes: file.size(), place });
                    }
                }
                parts
            }
        };
        parts.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(parts)
    }

    /// What the beginning of a part tells.
    fn look(&mut self, part: &Part) -> anyhow::Result<Seen> {
        Ok(format::recognise(&self.beginning(part)?))
    }

    /// The beginning of a part: little of it, if it can be no JSON.
    pub fn beginning(&mut self, part: &Part) -> anyhow::Result<Vec<u8>> {
        let mut beginning = Vec::new();
        let looked = self.read(part, &mut |reader| {
            beginning = read_some(reader, GLANCE)?;
            let text = beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&beginning).trim_ascii_start();
            if text.first().is_none_or(|byte| matches!(byte, b'{' | b'[')) {
                beginning.extend(read_some(reader, LOOK as u64)?);
            }
            Ok(())
        });
        match (looked, &self) {
            // What cannot be read of a ZIP may be nothing that is wanted.
            (Err(_), Self::Zip(_)) => Ok(beginning),
            (looked, _) => looked.map(|()| beginning),
        }
    }

    /// Gives somebody a part to read, and never more than it is said to have.
    pub fn read(
        &mut self,
        part: &Part,
        reader: &mut dyn FnMut(&mut dyn Read) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let failed = || format!("cannot read {}", part.name);
        match self {
            Self::File(path) => reader(&mut File::open(path).with_context(failed)?),
            Self::Folder(folder) => reader(&mut File::open(folder.join(&part.name)).with_context(failed)?),
            Self::Zip(archive) => {
                let file = archive.by_index(part.place).with_context(failed)?;
                let packed = file.compressed_size().max(1);
                ensure!(
                    part.bytes < RATIO_FROM || part.bytes / packed <= MAX_RATIO,
                    "{} would be {} bytes, unpacked from {packed}: no export is like that",
                    part.name,
                    part.bytes
                );
                reader(&mut file.take(part.bytes))
            }
        }
    }
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

fn read_some(reader: &mut dyn Read, bytes: u64) -> std::io::Result<Vec<u8>> {
    let mut some = Vec::new();
    reader.take(bytes).read_to_end(&mut some)?;
    Ok(some)
}

/// The files below a folder. Links are not followed, and what is hidden stays so.
fn walk(
    folder: &Path,
    below: &str,
    depth: usize,
    parts: &mut Vec<Part>,
    left_out: &mut LeftOut,
) -> anyhow::Result<()> {
    ensure!(depth <= MAX_DEPTH, "folders lie in each other more than {MAX_DEPTH} deep");
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let (Ok(name), kind) = (entry.file_name().into_string(), entry.file_type()?) else {
            left_out.note("files whose names are not UTF-8");
            continue;
        };
        let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
        if name.starts_with('.') {
            left_out.note("hidden files and folders");
        } else if kind.is_dir() {
            walk(&entry.path(), &path, depth + 1, parts, left_out)?;
        } else if kind.is_file() {
            ensure!(parts.len() < MAX_PARTS, "there are more than {MAX_PARTS} files");
            parts.push(Part { name: path, bytes: entry.metadata()?.len(), place: 0 });
        } else {
            left_out.note("links to other files and folders");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
