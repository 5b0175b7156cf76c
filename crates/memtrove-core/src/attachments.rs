//! Attachments: files that belong to entries. Who may see one, what linking one to an entry means, and what of a caller's
//! words about a file is kept.
//!
//! The bytes are elsewhere, under a storage key that several records may share; these rules are about the records.

mod delivery;

pub use delivery::{Delivery, deliver};

use crate::identity::Tenant;
use crate::{AttachmentId, EntryId, Error, GroupId, Resource, Result, Timestamp, UserId, period};

/// The longest name of a file, in characters.
pub const MAX_FILENAME_CHARS: usize = 255;
/// The longest content type, in characters.
pub const MAX_CONTENT_TYPE_CHARS: usize = 127;
/// The longest address of a source, in characters.
pub const MAX_SOURCE_URL_CHARS: usize = 2_048;
/// The most attachments that one entry may name by their ids: each is looked at while others wait to write.
pub const MAX_LINKED: usize = 100;
/// What a file is taken for by default.
pub const UNKNOWN_CONTENT_TYPE: &str = "application/octet-stream";

/// Where the bytes of an attachment are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// On their way from the caller.
    Uploading,
    /// On their way from a source on the web.
    Downloading,
    /// Here.
    Ready,
    /// Nowhere: their source could not be fetched.
    Failed,
}

impl Status {
    /// The number it is stored as.
    pub const fn code(self) -> i64 {
        match self {
            Status::Uploading => 1,
            Status::Downloading => 2,
            Status::Ready => 3,
            Status::Failed => 4,
        }
    }

    /// The status of a stored number.
    pub const fn from_code(code: i64) -> Option<Self> {
        match code {
            1 => Some(Status::Uploading),
            2 => Some(Status::Downloading),
            3 => Some(Status::Ready),
            4 => Some(Status::Failed),
            _ => None,
        }
    }

    /// The contract's word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Status::Uploading => "uploading",
            Status::Downloading => "downloading",
            Status::Ready => "ready",
            Status::Failed => "failed",
        }
    }
}

/// The record of an attachment.
#[derive(Debug, Clone, PartialEq)]
pub struct Attachment {
    /// Its id.
    pub id: AttachmentId,
    /// Whose store it is part of.
    pub tenant: Tenant,
    /// Where its bytes are, or will be; records may share them.
    pub storage_key: String,
    /// The file's name, if it has one.
    pub filename: Option<String>,
    /// What kind of file it is.
    pub content_type: String,
    /// How many bytes it has, once they are here.
    pub size: Option<u64>,
    /// The digest of its bytes in hexadecimal digits, once they are here.
    pub sha256: Option<String>,
    /// Who uploaded it, or linked it anew; none once that user was forgotten.
    pub user_id: Option<UserId>,
    /// The entry it belongs to.
    pub entry_id: Option<EntryId>,
    /// The tree of that entry.
    pub group_id: Option<GroupId>,
    /// When it goes by itself; never once it belongs to an entry.
    pub expires_at: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was deleted, if only its bytes are left to go.
    pub deleted_at: Option<Timestamp>,
    /// See [`Status`].
    pub status: Status,
    /// Where its bytes were fetched from.
    pub source_url: Option<String>,
}

/// How an attachment gets to belong to an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Linking {
    /// The record itself is linked.
    Take,
    /// It belongs to another entry of the tree: a new record that shares its bytes is linked.
    Share,
}

impl Attachment {
    /// Where a client finds it.
    pub fn href(&self) -> String {
        href(self.id)
    }

    /// Whether it is there for anybody: not deleted and not expired.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.deleted_at.is_none() && !self.is_expired(now)
    }

    /// Whether its time is over.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.entry_id.is_none() && self.expires_at.is_some_and(|at| at <= now)
    }

    /// Whether a user brought it.
    pub fn is_of(&self, user: &UserId) -> bool {
        self.user_id.as_ref() == Some(user)
    }

    /// What kind of file it is. While it is fetched, its source may still say that.
    pub fn known_content_type(&self) -> Option<&str> {
        let unknown = self.status == Status::Downloading && self.content_type == UNKNOWN_CONTENT_TYPE;
        (!unknown).then_some(self.content_type.as_str())
    }

    /// Refuses what cannot be read yet, or never will be. While it is fetched, its source has the bytes.
    pub fn require_readable(&self) -> Result<()> {
        match self.status {
            Status::Ready | Status::Downloading => Ok(()),
            Status::Uploading => Err(Error::UPLOAD_IN_PROGRESS),
            Status::Failed => Err(Error::DOWNLOAD_FAILED),
        }
    }

    /// Whether a user may delete it: its uploader, as long as no entry refers to it.
    pub fn check_deletion(&self, user: &UserId) -> Result<()> {
        if !self.is_of(user) {
            return Err(Error::forbidden("only who uploaded an attachment may delete it"));
        }
        if self.entry_id.is_some() {
            return Err(Error::ATTACHMENT_LINKED);
        }
        match self.status {
            Status::Uploading => Err(Error::UPLOAD_IN_PROGRESS),
            Status::Downloading | Status::Ready | Status::Failed => Ok(()),
        }
    }

    /// How it gets to belong to an entry that a user appends to a tree. One that is still fetched may be linked; whether it
    /// arrives is seen by its reader.
    pub fn linking(&self, user: &UserId, tree: GroupId, now: Timestamp) -> Result<Linking> {
        if !self.is_live(now) {
            return Err(not_found(self.id));
        }
        match self.group_id {
            Some(other) if other != tree => {
                Err(Error::forbidden("the attachment belongs to another conversation"))
            }
            Some(_) => Ok(Linking::Share),
            None if !self.is_of(user) => Err(Error::forbidden("the attachment belongs to another user")),
            None if self.status == Status::Uploading => Err(Error::UPLOAD_IN_PROGRESS),
            None => Ok(Linking::Take),
        }
    }
}

/// Where a client finds the attachment of an id.
pub fn href(id: AttachmentId) -> String {
    format!("/v1/attachments/{id}")
}

/// There is no such attachment, or not for this caller.
pub fn not_found(id: AttachmentId) -> Error {
    Error::not_found(Resource::Attachment, id)
}

/// The name of a file as it is kept: without the folders that some clients send along; none if nothing is left.
pub fn filename(given: Option<&str>) -> Result<Option<String>> {
    let name = given.unwrap_or_default();
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default().trim();
    if name.is_empty() || name == "." || name == ".." {
        return Ok(None);
    }
    checked("filename", name, MAX_FILENAME_CHARS)?;
    if name.contains(char::is_control) {
        return Err(Error::invalid("filename", "must not contain control characters"));
    }
    Ok(Some(name.to_owned()))
}

/// The content type as it is kept. It becomes a header, so it must look like one.
pub fn content_type(given: Option<&str>) -> Result<String> {
    let given = given.unwrap_or_default().trim();
    if given.is_empty() {
        return Ok(UNKNOWN_CONTENT_TYPE.to_owned());
    }
    checked("contentType", given, MAX_CONTENT_TYPE_CHARS)?;
    if delivery::essence(given).is_none() {
        return Err(Error::invalid("contentType", "must be a media type such as image/png"));
    }
    Ok(given.to_owned())
}

/// The address of a source as it is kept. What it may lead to is decided when it is fetched.
pub fn source_url(given: Option<&str>) -> Result<String> {
    let url = given.unwrap_or_default().trim();
    if url.is_empty() {
        return Err(Error::invalid("sourceUrl", "is required"));
    }
    checked("sourceUrl", url, MAX_SOURCE_URL_CHARS)?;
    // It becomes a header as long as the bytes are still there.
    let lower = url.get(..8).unwrap_or(url).to_ascii_lowercase();
    let is_web = lower.starts_with("http://") || lower.starts_with("https://");
    if !is_web || !url.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Error::invalid("sourceUrl", "must be an http or https URL"));
    }
    Ok(url.to_owned())
}

/// For how many microseconds an attachment that no entry refers to is kept.
pub fn lifetime(given: Option<&str>, default_micros: i64, max_micros: i64) -> Result<i64> {
    let Some(given) = given.filter(|text| !text.trim().is_empty()) else { return Ok(default_micros) };
    let micros = period::parse(given).ok_or_else(|| {
        Error::bad_request("expiresIn must be a positive ISO 8601 duration such as PT1H or PT30M")
    })?;
    if micros > max_micros {
        return Err(Error::bad_request(format!(
            "expiresIn must be at most {} seconds, written as an ISO 8601 duration",
            max_micros / 1_000_000
        )));
    }
    Ok(micros)
}

fn checked(field: &str, value: &str, max_chars: usize) -> Result<()> {
    if value.chars().count() > max_chars {
        return Err(Error::invalid(field, format!("must have at most {max_chars} characters")));
    }
    if value.contains('\0') {
        return Err(Error::invalid(field, "must not contain NUL characters"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
