//! Encryption at rest: content as it lies on disk.
//!
//! Repositories hand everything that people wrote to [`seal`] before they store it and to [`open`] after they read it,
//! and say where it belongs ([`seal_contexts`]). What happens in between is the [`Vault`]'s: nothing at all, or AES-256-GCM under
//! a data key of the tenant ([`data_keys`]), which is itself wrapped by a configured [`WrappingKey`]. Sealed content is bound to
//! its place, so that it opens nowhere else, and what cannot be opened is an error: never is it taken for plain text.
//!
//! To seal one more column: a function in [`seal_contexts`], a line in [`columns`], and the two calls in its repository.

mod admission;
mod cipher;
mod columns;
mod data_keys;
mod digests;
mod envelope;
mod files;
mod keys;
pub mod rotation;
pub mod seal_contexts;

use crate::{StoreError, Tx};
pub(crate) use admission::{admit, check};
use cipher::Cipher;
pub(crate) use cipher::random;
use data_keys::DataKeyId;
pub(crate) use digests::{ContentDigest, digest, digests, plain_digest};
pub use envelope::{HEAD_LENGTH, plain_length};
pub use files::FileKey;
pub(crate) use files::{file_key, new_file_key};
pub use keys::{Keys, WrappingKey};
use memtrove_core::identity::Tenant;
pub use seal_contexts::SealContext;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Content that could not be opened, by `reason`: the metric to raise an alarm on.
pub const FAILURES: &str = "memtrove_encryption_failures_total";

/// How content is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Provider {
    Plain,
    /// Sealed under a data key.
    Dek,
}

/// Data keys that are kept unwrapped at most: one per tenant that was active lately.
const UNWRAPPED_KEYS: usize = 10_000;

/// How a store's content is written, and what can be read.
#[derive(Debug)]
pub struct Vault {
    writes: Provider,
    reads_plain: bool,
    keys: Option<Keys>,
    rotating: bool,
    /// By id alone: which key a tenant writes with is always read from the store, so that a key whose insertion was undone
    /// stays here unused.
    unwrapped: RwLock<HashMap<DataKeyId, Arc<Cipher>>>,
}

impl Vault {
    /// Content is written as it is, and sealed content cannot be read.
    pub fn plain() -> Self {
        Self {
            writes: Provider::Plain,
            reads_plain: true,
            keys: None,
            rotating: false,
            unwrapped: RwLock::default(),
        }
    }

    /// Content is sealed, and plain content is not believed.
    pub fn sealing(keys: Keys) -> Self {
        Self { writes: Provider::Dek, reads_plain: false, keys: Some(keys), ..Self::plain() }
    }

    /// As this one, and plain content can be read.
    pub fn reading_plain(self) -> Self {
        Self { reads_plain: true, ..self }
    }

    /// As this one, and content that was sealed with these keys can be read.
    pub fn reading_sealed(self, keys: Keys) -> Self {
        Self { keys: Some(keys), ..self }
    }

    /// As this one, for [`rotation`]: opens a store in any state between plain and sealed.
    pub fn rotating(self) -> Self {
        Self { reads_plain: true, rotating: true, ..self }
    }

    /// Whether it is one that moves content from one key to another.
    pub(crate) fn is_rotating(&self) -> bool {
        self.rotating
    }

    /// Whether stored content can be used where it lies.
    pub fn is_plain(&self) -> bool {
        self.keys.is_none()
    }

    /// Whether content is sealed as it is written.
    pub fn seals(&self) -> bool {
        self.writes == Provider::Dek
    }

    /// What to sign with that a copy of the store does not give away; none where everything in it lies open.
    pub fn signing_key(&self) -> Option<&[u8; 32]> {
        self.keys.as_ref().map(|keys| keys.current().signing())
    }

    fn unwrapped(&self, id: &DataKeyId) -> Option<Arc<Cipher>> {
        self.unwrapped.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    fn keep_unwrapped(&self, id: DataKeyId, cipher: Cipher) -> Arc<Cipher> {
        let mut unwrapped = self.unwrapped.write().unwrap_or_else(PoisonError::into_inner);
        if unwrapped.len() >= UNWRAPPED_KEYS {
            unwrapped.clear();
        }
        Arc::clone(unwrapped.entry(id).or_insert_with(|| Arc::new(cipher)))
    }
}

/// Content as it is to be stored at a place.
pub fn seal<'a>(
    tx: &mut dyn Tx,
    tenant: &Tenant,
    place: &SealContext<'_>,
    plain: &'a [u8],
) -> Result<Cow<'a, [u8]>, StoreError> {
    if envelope::is_sealed(plain) {
        // Text never does; a caller that stores bytes must see to it.
        return Err(StoreError::Broken(format!("{}: content begins like an envelope", place.purpose())));
    }
    if tx.vault().writes == Provider::Plain {
        return Ok(Cow::Borrowed(plain));
    }
    data_keys::active(tx, tenant)
        .and_then(|(id, cipher)| envelope::seal(&cipher, id, place, plain))
        .map(Cow::Owned)
        .map_err(|failure| failure.at(place))
}

/// Content as it was before it was stored at a place.
pub fn open(tx: &mut dyn Tx, place: &SealContext<'_>, stored: Vec<u8>) -> Result<Vec<u8>, StoreError> {
    open_envelope(tx, place, stored).map_err(|failure| failure.at(place))
}

/// As [`open`], for content that is text.
pub fn open_text(tx: &mut dyn Tx, place: &SealContext<'_>, stored: Vec<u8>) -> Result<String, StoreError> {
    String::from_utf8(open(tx, place, stored)?)
        .map_err(|_| StoreError::Broken(format!("{}: stored content is not UTF-8", place.purpose())))
}

fn open_envelope(tx: &mut dyn Tx, place: &SealContext<'_>, stored: Vec<u8>) -> Result<Vec<u8>, VaultFailure> {
    let vault = tx.vault();
    match (envelope::is_sealed(&stored), vault.reads_plain, vault.keys.is_some()) {
        (false, true, _) => Ok(stored),
        (false, false, _) => Err(VaultFailure::Plain),
        (true, _, false) => Err(VaultFailure::Sealed),
        (true, _, true) => {
            let head = envelope::EnvelopeHead::read(&stored)?;
            let cipher = data_keys::find(tx, head.key)?;
            envelope::open(&cipher, head, place, stored)
        }
    }
}

/// Makes the failure counter known to the recorder, at zero: an alarm cannot be set on a metric that is not there yet.
pub fn announce_metrics() {
    metrics::describe_counter!(FAILURES, "Stored content that could not be opened, by reason.");
    for reason in VaultFailure::REASONS {
        metrics::counter!(FAILURES, "reason" => reason).increment(0);
    }
}

/// Why content cannot be sealed or opened.
#[derive(Debug)]
enum VaultFailure {
    /// It begins like an envelope and is none.
    Malformed,
    /// It was sealed by something this version does not know.
    UnknownProvider,
    /// Its data key is not there, or is wrapped by a key that is not configured.
    UnknownKey,
    /// It is not what was sealed at this place.
    BadTag,
    /// It is sealed, and the configuration reads plain content only.
    Sealed,
    /// It is plain, and the configuration reads sealed content only.
    Plain,
    /// The store failed on the way.
    Store(StoreError),
}

impl From<StoreError> for VaultFailure {
    fn from(error: StoreError) -> Self {
        VaultFailure::Store(error)
    }
}

impl VaultFailure {
    const REASONS: [&'static str; 6] =
        ["malformed_envelope", "unknown_provider", "unknown_key", "bad_tag", "sealed_row", "plain_row"];

    /// Raises the alarm, and makes it the error of the unit of work.
    fn at(self, place: &SealContext<'_>) -> StoreError {
        let [malformed, unknown_provider, unknown_key, bad_tag, sealed, plain] = Self::REASONS;
        let reason = match self {
            VaultFailure::Malformed => malformed,
            VaultFailure::UnknownProvider => unknown_provider,
            VaultFailure::UnknownKey => unknown_key,
            VaultFailure::BadTag => bad_tag,
            VaultFailure::Sealed => sealed,
            VaultFailure::Plain => plain,
            VaultFailure::Store(error) => return error,
        };
        let purpose = place.purpose();
        metrics::counter!(FAILURES, "reason" => reason).increment(1);
        tracing::error!(purpose, reason, "stored content cannot be opened");
        StoreError::Broken(format!("{purpose}: stored content cannot be opened ({reason})"))
    }
}
