//! Links with which anybody may read one attachment for a while: `base64url(id.expiry.HMAC-SHA256)`.

use super::Attachment;
use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use memtrove_core::{AttachmentId, Timestamp, legacy_labels, parse_uuid};

const SECOND: i64 = 1_000_000;
/// Longer than any token.
const MAX_TOKEN_BYTES: usize = 512;

/// Makes links and knows its own.
pub(super) struct Links {
    key: hmac::Key,
}

/// What a token says.
pub(super) struct Claim {
    pub id: AttachmentId,
    pub expires_at: Timestamp,
}

impl Links {
    /// Links of all nodes with the same secret, which is a key of their store if there is no other.
    pub fn new(secret: Option<&[u8]>, store_key: &[u8; 32]) -> Self {
        const CONTEXT: &str = legacy_labels::ATTACHMENT_LINKS_KEY;
        let key = match secret {
            Some(secret) => blake3::derive_key(CONTEXT, secret),
            None => blake3::derive_key(CONTEXT, store_key),
        };
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, &key) }
    }

    /// A token that is good for the second it names, and no longer.
    pub fn token(&self, attachment: &Attachment, expires_at: Timestamp) -> String {
        let (id, seconds) = (attachment.id, expires_at.as_micros().div_euclid(SECOND));
        let tag = hmac::sign(&self.key, &signed(id, seconds));
        URL_SAFE_NO_PAD.encode(format!("{id}.{seconds}.{}", hex::encode(tag.as_ref())))
    }

    /// What a token says, if it is ours. What a stranger claims is not looked up.
    pub fn read(&self, token: &str) -> Option<Claim> {
        let (claim, tag) = Claim::read(token)?;
        let seconds = claim.expires_at.as_micros().div_euclid(SECOND);
        hmac::verify(&self.key, &signed(claim.id, seconds), &tag).ok()?;
        Some(claim)
    }
}

impl Claim {
    /// Reads a token, and what it is signed with.
    fn read(token: &str) -> Option<(Self, Vec<u8>)> {
        if token.len() > MAX_TOKEN_BYTES {
            return None;
        }
        let text = String::from_utf8(URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
        let [id, seconds, tag] = text.split('.').collect::<Vec<_>>().try_into().ok()?;
        let seconds: i64 = seconds.parse().ok()?;
        let claim = Self {
            id: AttachmentId(parse_uuid(id)?),
            expires_at: Timestamp::from_micros(seconds.checked_mul(SECOND)?),
        };
        Some((claim, hex::decode(tag).ok()?))
    }
}

/// What is signed. Ids are unique among all tenants.
fn signed(id: AttachmentId, seconds: i64) -> Vec<u8> {
    format!("{id}\n{seconds}").into_bytes()
}
