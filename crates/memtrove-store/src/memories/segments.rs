//! Indexes in memory that are kept in files beside the database, so that a start need not make them anew: one file for a scope, in a
//! folder that may be deleted at any time.
//!
//! A file belongs to the database while that has its [`token`](token()): the database names it after the file is whole, in a unit of
//! work. A file of another database, or of an older copy, has a token that this database does not name. What changed since a file was
//! written is read from the database as ever. Only an engine that one process uses has such files, and no archive holds them.
//!
//! A file is a head, parts that are checked (or sealed) one by one, and a list of where they are: it is read in any order, and one that
//! is torn or damaged is found out.

use super::ScopeNo;
use crate::vault::{self, FileKey, random, seal_contexts};
use crate::{StoreError, Tx, TxExt, meta};
use memtrove_core::identity::Tenant;
use std::collections::HashMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

const HEAD: [u8; 8] = *b"mtindex1";
const END: [u8; 8] = *b"mtindend";
const TAG: usize = 16;
/// More than a sealed key takes.
const LONGEST_KEY: u64 = 4096;
/// To give back the room of larger files takes a noticeable time.
const LARGE: u64 = 16 << 20;
/// Which part the list of parts is.
const LIST: u32 = u32::MAX;
/// The fact which file is that of a scope.
const TOKEN: &str = "memory_segment:";
/// Comes after every key that begins with [`TOKEN`].
const TOKENS_END: &str = "memory_segment;";

/// What a file and the database know each other by.
pub type SegmentToken = [u8; 16];

/// The folder of a store's files.
#[derive(Debug)]
pub struct SegmentFolder {
    path: PathBuf,
    state: Mutex<FolderState>,
}

#[derive(Debug, Default)]
struct FolderState {
    /// By scope; two where one is about to replace the other.
    files: HashMap<ScopeNo, Vec<PathBuf>>,
    standing: HashMap<ScopeNo, Standing>,
    /// The one that is being written, and whether it is still wanted.
    writing: Option<(ScopeNo, PathBuf)>,
}

/// What is known of the file of a scope.
#[derive(Debug, Clone, Copy)]
pub struct Standing {
    /// The scope's change up to which it knows everything; `None` once it was removed.
    pub seq: Option<i64>,
    /// When this process last found it or began to write it.
    pub since: Instant,
    pub bytes: u64,
}

impl SegmentFolder {
    /// The folder at a path, which need not be there. Nothing else may use it.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, state: Mutex::default() }
    }

    /// Looks at what is there, and removes what no store would read: what was not finished, what the database does not name, and
    /// what is sealed or plain where the other is due.
    pub(crate) fn tidy(&self, tx: &mut dyn Tx) -> Result<(), StoreError> {
        let Ok(entries) = std::fs::read_dir(&self.path) else { return Ok(()) };
        let known = tokens(tx)?;
        let known: HashMap<PathBuf, ScopeNo> =
            known.iter().map(|(scope, token)| (self.file(*scope, token), *scope)).collect();
        let (seals, rotating) = (tx.vault().seals(), tx.vault().is_rotating());
        let mut state = self.lock();
        for path in entries.flatten().map(|entry| entry.path()) {
            match known.get(&path).filter(|_| !rotating && is_sealed(&path) == Some(seals)) {
                Some(scope) => state.files.entry(*scope).or_default().push(path),
                None => remove(&path),
            }
        }
        Ok(())
    }

    /// Opens the file of a scope that the database names by this token.
    pub fn open(&self, scope: ScopeNo, token: &SegmentToken) -> Option<SegmentFile> {
        let path = self.file(scope, token);
        self.lock().files.get(&scope)?.contains(&path).then_some(())?;
        SegmentFile::open(&path, token)
    }

    /// Notes up to which change the file of a scope knows everything.
    pub fn found(&self, scope: ScopeNo, seq: i64, bytes: u64) {
        let mut state = self.lock();
        if state.files.contains_key(&scope) {
            state.standing.insert(scope, Standing { seq: Some(seq), since: Instant::now(), bytes });
        }
    }

    /// What is known of the file of a scope; none where this process never read or wrote it.
    pub fn standing(&self, scope: ScopeNo) -> Option<Standing> {
        self.lock().standing.get(&scope).copied()
    }

    /// Removes the file of a scope, and ends the writing of a new one. To be called in the unit of work that removes something from
    /// the scope, before it is committed. Says whether there was one that the database may name.
    pub fn remove(&self, scope: ScopeNo) -> bool {
        let mut state = self.lock();
        if state.writing.as_ref().is_some_and(|(writing, _)| *writing == scope)
            && let Some((_, path)) = state.writing.take()
        {
            remove(&path);
        }
        let files = state.files.remove(&scope);
        files.iter().flatten().for_each(|path| remove(path));
        if let Some(standing) = state.standing.get_mut(&scope) {
            standing.seq = None;
        }
        files.is_some()
    }

    /// Ends the writing of a file: nobody can wait for it any more.
    pub fn give_up(&self) {
        if let Some((_, path)) = self.lock().writing.take() {
            remove(&path);
        }
    }

    /// Removes the files of a scope but the one with this token.
    fn keep_only(&self, scope: ScopeNo, token: &SegmentToken) {
        let kept = self.file(scope, token);
        let mut state = self.lock();
        let Some(files) = state.files.get_mut(&scope) else { return };
        files.retain(|path| {
            let keep = *path == kept;
            if !keep {
                remove(path);
            }
            keep
        });
    }

    fn file(&self, scope: ScopeNo, token: &SegmentToken) -> PathBuf {
        self.path.join(format!("{}-{:032x}.index", scope.0, u128::from_be_bytes(*token)))
    }

    fn lock(&self) -> MutexGuard<'_, FolderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes the folder of a database that no process has open.
pub fn remove_folder(path: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes a file. What a large one took is given back elsewhere: the file system may need a while for it.
fn remove(path: &Path) {
    let is_large = |file: &File| file.metadata().is_ok_and(|data| data.len() > LARGE);
    let held = File::open(path).ok().filter(is_large);
    if let Err(error) = std::fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::error!(%error, path = %path.display(), "an index that is not wanted any more cannot be removed: delete it");
    }
    if let Some(held) = held {
        let closing = std::thread::Builder::new().name("memtrove-closing".into());
        // Without a thread it is given back here.
        let _ = closing.spawn(move || drop(held));
    }
}

/// A file that is being written.
pub struct SegmentDraft {
    folder: Arc<SegmentFolder>,
    scope: ScopeNo,
    token: SegmentToken,
}

impl SegmentDraft {
    /// Begins the file of a scope. What it is made of must be read afterwards, and after a unit of work that writes: then whatever is
    /// removed in between either is not read any more, or ends the writing.
    pub fn begin(folder: Arc<SegmentFolder>, scope: ScopeNo) -> Result<Self, StoreError> {
        let draft = Self { folder, scope, token: *random()? };
        let path = draft.path();
        let mut state = draft.folder.lock();
        if state.writing.is_some() {
            return Err(StoreError::Unavailable("another index is being written".into()));
        }
        state.writing = Some((scope, path));
        let nothing = Standing { seq: None, since: Instant::now(), bytes: 0 };
        state.standing.entry(scope).or_insert(nothing).since = Instant::now();
        drop(state);
        Ok(draft)
    }

    /// What seals the file's parts, and the key as the file holds it; `None` where content is not sealed.
    pub fn key(&self, tx: &mut dyn Tx, tenant: &Tenant) -> Result<Option<(FileKey, Vec<u8>)>, StoreError> {
        vault::new_file_key(tx, tenant, &seal_contexts::memory_segment(self.scope.0, &self.token))
    }

    /// Writes the file: `parts` is given what takes them. Says how large it is.
    pub fn write(
        &self,
        key: Option<(FileKey, Vec<u8>)>,
        parts: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<(), StoreError>) -> Result<(), StoreError>,
    ) -> Result<u64, StoreError> {
        let (key, sealed) = key.map_or((None, Vec::new()), |(key, sealed)| (Some(key), sealed));
        let guard = PartGuard::new(key, &self.token);
        let mut file = self.create().map_err(failed)?;
        let is_sealed = u8::from(!sealed.is_empty());
        let head = [&HEAD[..], &[is_sealed], &(sealed.len() as u32).to_le_bytes(), &sealed].concat();
        file.write_all(&head).map_err(failed)?;
        let mut at = head.len() as u64;
        let mut list = Vec::new();
        let mut put = |number: u32, part: &[u8]| {
            // A removal that came meanwhile has taken the name away already.
            if !self.goes_on(at) {
                return Err(unwanted());
            }
            let begins = at;
            at += guard.write(number, part, &mut file)?;
            Ok([begins.to_le_bytes(), (at - begins).to_le_bytes()].concat())
        };
        let mut number = 0;
        parts(&mut |part| {
            list.extend(put(number, part)?);
            number += 1;
            Ok(())
        })?;
        let end = [put(LIST, &list)?, END.to_vec()].concat();
        file.write_all(&end).and_then(|()| file.flush()).map_err(failed)?;
        drop(file);
        let (path, finished) = (self.path(), self.folder.file(self.scope, &self.token));
        let mut state = self.folder.lock();
        if state.writing.take_if(|(_, writing)| *writing == path).is_none() {
            return Err(unwanted());
        }
        std::fs::rename(&path, &finished).inspect_err(|_| remove(&path)).map_err(failed)?;
        state.files.entry(self.scope).or_default().push(finished);
        Ok(at + end.len() as u64)
    }

    /// Makes the file that of the scope: the last step, in a unit of work that writes. `false`: there is no such scope any more.
    pub fn name(&self, tx: &mut dyn Tx) -> Result<bool, StoreError> {
        let there = "SELECT id FROM memory_scopes WHERE id = $1";
        let file = self.folder.file(self.scope, &self.token);
        // A removal that came after the writing took the file away.
        let there = self.folder.lock().files.get(&self.scope).is_some_and(|files| files.contains(&file))
            && tx.first(there, &[self.scope.0.into()], |row| row.int(0))?.is_some();
        meta::set(tx, &token_key(self.scope), there.then_some(&self.token))?;
        Ok(there)
    }

    /// Removes the files that this one replaces, once the database has its name; or itself, if the scope is gone.
    pub fn settle(&self, is_named: bool, seq: i64, bytes: u64) {
        match is_named {
            true => {
                self.folder.keep_only(self.scope, &self.token);
                self.folder.found(self.scope, seq, bytes);
            }
            false => drop(self.folder.remove(self.scope)),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.file(self.scope, &self.token).with_extension("new")
    }

    /// Notes how much was written, and says whether the rest is wanted. One that fails is tried again as late as one that was kept.
    fn goes_on(&self, bytes: u64) -> bool {
        let mut state = self.folder.lock();
        if let Some(standing) = state.standing.get_mut(&self.scope) {
            standing.bytes = standing.bytes.max(bytes);
        }
        state.writing.as_ref().is_some_and(|(scope, path)| *scope == self.scope && *path == self.path())
    }

    fn create(&self) -> io::Result<BufWriter<File>> {
        let state = self.folder.lock();
        if state.writing.is_none() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let mut folder = DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
        folder.recursive(true).create(&self.folder.path)?;
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        Ok(BufWriter::with_capacity(1 << 20, options.open(self.path())?))
    }
}

impl Drop for SegmentDraft {
    fn drop(&mut self) {
        let path = self.path();
        let mut state = self.folder.lock();
        if state.writing.take_if(|(_, writing)| *writing == path).is_some() {
            remove(&path);
        }
    }
}

/// What a part is protected by.
enum PartGuard {
    /// Against damage.
    Checked([u8; 32]),
    /// Against reading and damage.
    Sealed(FileKey, SegmentToken),
}

impl PartGuard {
    fn new(key: Option<FileKey>, token: &SegmentToken) -> Self {
        match key {
            Some(key) => Self::Sealed(key, *token),
            None => Self::Checked(blake3::derive_key("memtrove parts of an index", token)),
        }
    }

    /// Says how many bytes were written.
    fn write(&self, number: u32, part: &[u8], file: &mut impl Write) -> Result<u64, StoreError> {
        let written = match self {
            Self::Checked(key) => {
                file.write_all(&check(key, number, part))
                    .and_then(|()| file.write_all(part))
                    .map_err(failed)?;
                part.len() + TAG
            }
            Self::Sealed(key, token) => {
                let sealed = key.seal(&bound_to(token, number), part)?;
                file.write_all(&sealed).map_err(failed)?;
                sealed.len()
            }
        };
        Ok(written as u64)
    }

    fn open<'a>(&self, number: u32, stored: &'a mut [u8]) -> Option<&'a [u8]> {
        match self {
            Self::Checked(key) => {
                let (expected, part) = stored.split_at_checked(TAG)?;
                (check(key, number, part) == *expected).then_some(part)
            }
            Self::Sealed(key, token) => key.open(&bound_to(token, number), stored),
        }
    }
}

fn failed(error: io::Error) -> StoreError {
    StoreError::Unavailable(format!("an index cannot be written beside the database: {error}"))
}

fn unwanted() -> StoreError {
    StoreError::Unavailable("something was removed that the index holds which is being written".into())
}

fn check(key: &[u8; 32], number: u32, part: &[u8]) -> [u8; TAG] {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(&number.to_le_bytes()).update(part);
    let mut check = [0; TAG];
    check.copy_from_slice(&hasher.finalize().as_bytes()[..TAG]);
    check
}

fn bound_to(token: &SegmentToken, number: u32) -> [u8; 20] {
    let mut bytes = [0; 20];
    bytes[..16].copy_from_slice(token);
    bytes[16..].copy_from_slice(&number.to_le_bytes());
    bytes
}

fn is_sealed(path: &Path) -> Option<bool> {
    let mut head = [0; HEAD.len() + 1];
    File::open(path).ok()?.read_exact(&mut head).ok()?;
    head.starts_with(&HEAD).then_some(head[HEAD.len()] == 1)
}

/// A file whose key was not looked at yet.
pub struct SegmentFile {
    path: PathBuf,
    token: SegmentToken,
    sealed_key: Vec<u8>,
    bytes: u64,
}

impl SegmentFile {
    fn open(path: &Path, token: &SegmentToken) -> Option<Self> {
        let mut file = File::open(path).ok()?;
        let bytes = file.metadata().ok()?.len();
        let mut head = [0; HEAD.len() + 5];
        file.read_exact(&mut head).ok()?;
        let key = u64::from(u32::from_le_bytes(*head.last_chunk()?));
        let is_sealed = match head[HEAD.len()] {
            0 => false,
            1 => true,
            _ => return None,
        };
        if !head.starts_with(&HEAD) || key > LONGEST_KEY || is_sealed == (key == 0) {
            return None;
        }
        let mut sealed_key = vec![0; key as usize];
        file.read_exact(&mut sealed_key).ok()?;
        Some(Self { path: path.to_owned(), token: *token, sealed_key, bytes })
    }

    /// Makes the file ready to be read. `None`: it is damaged, or its key is gone.
    pub fn unlock(self, tx: &mut dyn Tx, scope: ScopeNo) -> Result<Option<SegmentParts>, StoreError> {
        if tx.vault().seals() == self.sealed_key.is_empty() {
            return Ok(None);
        }
        let key = match self.sealed_key.is_empty() {
            true => None,
            false => {
                let place = seal_contexts::memory_segment(scope.0, &self.token);
                let Some(key) = vault::file_key(tx, &place, self.sealed_key)? else { return Ok(None) };
                Some(key)
            }
        };
        let guard = PartGuard::new(key, &self.token);
        Ok(SegmentParts::new(self.path, self.bytes, guard))
    }
}

/// The parts of a file.
pub struct SegmentParts {
    path: PathBuf,
    bytes: u64,
    guard: PartGuard,
    /// Where each part begins, and how long it is.
    list: Vec<(u64, u64)>,
}

impl SegmentParts {
    fn new(path: PathBuf, bytes: u64, guard: PartGuard) -> Option<Self> {
        let mut file = File::open(&path).ok()?;
        let mut end = [0; 16 + END.len()];
        file.seek(SeekFrom::End(-(end.len() as i64))).ok()?;
        file.read_exact(&mut end).ok()?;
        let place = longs(end.strip_suffix(&END)?).next()?;
        let mut parts = Self { path, bytes, guard, list: Vec::new() };
        let mut list = Vec::new();
        parts.list = longs(parts.read(&mut file, LIST, place, &mut list)?).collect();
        Some(parts)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many bytes the file has.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What reads parts, one for each thread that does; `None` if the file is gone.
    pub fn reader(&self) -> Option<PartReader<'_>> {
        Some(PartReader { parts: self, file: File::open(&self.path).ok()? })
    }

    fn read<'a>(
        &self,
        file: &mut File,
        number: u32,
        (at, length): (u64, u64),
        buffer: &'a mut Vec<u8>,
    ) -> Option<&'a [u8]> {
        (at.checked_add(length)? <= self.bytes).then_some(())?;
        file.seek(SeekFrom::Start(at)).ok()?;
        buffer.clear();
        buffer.reserve(length as usize);
        let read = file.take(length).read_to_end(buffer).ok()?;
        (read as u64 == length).then_some(())?;
        self.guard.open(number, buffer)
    }
}

/// Reads the parts of a file.
pub struct PartReader<'a> {
    parts: &'a SegmentParts,
    file: File,
}

impl PartReader<'_> {
    /// A part, as it was written; `None` if it is damaged.
    pub fn read<'a>(&mut self, number: usize, buffer: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        let place = *self.parts.list.get(number)?;
        self.parts.read(&mut self.file, number as u32, place, buffer)
    }
}

/// Pairs of numbers.
fn longs(bytes: &[u8]) -> impl Iterator<Item = (u64, u64)> {
    let (pairs, _) = bytes.as_chunks::<16>();
    pairs.iter().map(|pair| {
        let pair = u128::from_le_bytes(*pair);
        (pair as u64, (pair >> 64) as u64)
    })
}

/// What the file of a scope is known by, if it has one.
pub fn token(tx: &mut dyn Tx, scope: ScopeNo) -> Result<Option<SegmentToken>, StoreError> {
    Ok(meta::get(tx, &token_key(scope))?.and_then(|token| token.try_into().ok()))
}

/// Takes the file of a scope away, of which something goes that must not outlive this unit of work, and its name: a file that
/// cannot be removed, or that comes back because the machine lost its power, is no file of this database then.
pub(super) fn discard(tx: &mut dyn Tx, scope: ScopeNo) -> Result<(), StoreError> {
    if tx.segments().is_some_and(|folder| folder.remove(scope)) {
        meta::set(tx, &token_key(scope), None)?;
    }
    Ok(())
}

fn tokens(tx: &mut dyn Tx) -> Result<Vec<(ScopeNo, SegmentToken)>, StoreError> {
    let sql = "SELECT key, value FROM meta WHERE key >= $1 AND key < $2";
    let named = tx.rows(sql, &[TOKEN.into(), TOKENS_END.into()], |row| {
        let scope = row.text(0)?.strip_prefix(TOKEN).and_then(|number| number.parse().ok());
        Ok(scope.map(ScopeNo).zip(row.bytes(1)?.try_into().ok()))
    })?;
    Ok(named.into_iter().flatten().collect())
}

fn token_key(scope: ScopeNo) -> String {
    format!("{TOKEN}{}", scope.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCOPE: ScopeNo = ScopeNo(7);

    fn folder() -> (tempfile::TempDir, Arc<SegmentFolder>) {
        let place = tempfile::tempdir().unwrap();
        let folder = Arc::new(SegmentFolder::new(place.path().join("index")));
        (place, folder)
    }

    fn names(place: &tempfile::TempDir) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(place.path().join("index")) else { return Vec::new() };
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn what_is_removed_while_its_index_is_written_ends_the_writing() {
        let (place, folder) = folder();
        let draft = SegmentDraft::begin(folder.clone(), SCOPE).unwrap();
        let mut begun = Vec::new();
        let written = draft.write(None, |each| {
            each(b"one")?;
            begun = names(&place);
            folder.remove(SCOPE);
            assert_eq!(names(&place), [""; 0], "at once");
            each(b"two")
        });
        assert!(written.is_err());
        assert_eq!(begun.len(), 1);
        drop(draft);
        assert_eq!(names(&place), [""; 0]);
        assert!(SegmentDraft::begin(folder, SCOPE).is_ok(), "the next one may be written");
    }

    #[test]
    fn what_is_removed_before_its_index_has_a_name_takes_it_away() {
        let (place, folder) = folder();
        let draft = SegmentDraft::begin(folder.clone(), SCOPE).unwrap();
        draft.write(None, |each| each(b"one")).unwrap();
        assert_eq!(names(&place).len(), 1);
        folder.remove(SCOPE);
        draft.settle(true, 9, 100);
        assert_eq!(names(&place), [""; 0]);
        assert_eq!(folder.standing(SCOPE).and_then(|standing| standing.seq), None);
    }

    #[test]
    fn a_draft_that_fails_leaves_nothing() {
        let (place, folder) = folder();
        let draft = SegmentDraft::begin(folder.clone(), SCOPE).unwrap();
        let second = SegmentDraft::begin(folder.clone(), ScopeNo(8));
        assert!(second.is_err(), "one at a time");
        let failed = draft.write(None, |_| Err(StoreError::Unavailable("no".into())));
        assert!(failed.is_err());
        drop(draft);
        assert_eq!(names(&place), [""; 0]);
    }

    #[test]
    fn parts_are_read_in_any_order_and_every_changed_byte_is_found_out() {
        let (place, folder) = folder();
        let draft = SegmentDraft::begin(folder.clone(), SCOPE).unwrap();
        let parts: [&[u8]; 4] = [b"one", b"", b"three", &[7; 300]];
        draft.write(None, |each| parts.iter().try_for_each(|part| each(part))).unwrap();
        let (token, path) = (draft.token, folder.file(SCOPE, &draft.token));
        let open = || {
            let file = SegmentFile::open(&path, &token)?;
            SegmentParts::new(file.path, file.bytes, PartGuard::new(None, &token))
        };
        let read = |file: &SegmentParts| {
            let (mut reader, mut buffer) = (file.reader()?, Vec::new());
            let mut all = Vec::new();
            for number in (0..file.len()).rev() {
                all.push(reader.read(number, &mut buffer)?.to_vec());
            }
            all.reverse();
            Some(all)
        };
        assert_eq!(open().and_then(|file| read(&file)), Some(parts.map(<[u8]>::to_vec).to_vec()));
        let whole = std::fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            std::fs::write(&path, changed).unwrap();
            assert_eq!(open().and_then(|file| read(&file)), None, "byte {at}");
            std::fs::write(&path, &whole[..at]).unwrap();
            assert_eq!(open().and_then(|file| read(&file)), None, "{at} bytes");
        }
        drop(place);
    }
}
