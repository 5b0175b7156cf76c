//! `[encryption]`: whether and with which keys content is sealed before it is stored.

use super::Listen;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use memtrove_server::auth::config::{ConfigProblem, Secret};
use memtrove_store::vault::{Keys, Vault, WrappingKey};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// `[encryption]`
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Encryption {
    /// How content is stored: the first one writes, all of them read. Unless set, `dek` where there is a key, else `plain`.
    pub providers: Option<Vec<Provider>>,
    /// The keys of the provider `dek`.
    pub dek: Dek,
    /// Whether a server that other machines can reach may store or read plain content.
    pub allow_plain: bool,
}

/// `[encryption.dek]`
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Dek {
    /// The key that wraps the keys content is sealed with: 32 bytes in base64.
    pub key: Option<Secret>,
    /// Keys that were used before, until `memtrove rotate-keys` has run.
    pub decryption_keys: Vec<Secret>,
}

/// A way to store content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    Plain,
    /// Sealed with AES-256-GCM.
    Dek,
}

const KEY: &str = "encryption.dek.key";
const PROVIDERS: &str = "encryption.providers";
const MAKE_A_KEY: &str = "use the output of `openssl rand -base64 32`";

impl Encryption {
    /// The ways content is stored; the first one writes.
    pub fn providers(&self) -> &[Provider] {
        match (&self.providers, &self.dek.key) {
            (Some(providers), _) => providers,
            (None, Some(_)) => &[Provider::Dek],
            (None, None) => &[Provider::Plain],
        }
    }

    /// Whether content is sealed before it is stored.
    pub fn is_on(&self) -> bool {
        self.providers().first() == Some(&Provider::Dek)
    }

    /// What seals and opens content.
    pub fn vault(&self) -> Result<Vault, ConfigProblem> {
        let reads = |provider| self.providers().contains(&provider);
        Ok(match self.keys()? {
            None if reads(Provider::Dek) => {
                return Err(ConfigProblem::new(
                    KEY,
                    "is missing, and encryption.providers names \"dek\"",
                    MAKE_A_KEY,
                ));
            }
            None => Vault::plain(),
            Some(keys) if !self.is_on() => Vault::plain().reading_sealed(keys),
            Some(keys) if reads(Provider::Plain) => Vault::sealing(keys).reading_plain(),
            Some(keys) => Vault::sealing(keys),
        })
    }

    /// The configured keys.
    pub fn keys(&self) -> Result<Option<Keys>, ConfigProblem> {
        let former =
            self.dek.decryption_keys.iter().map(|former| key("encryption.dek.decryption_keys", former));
        let former = former.collect::<Result<_, _>>()?;
        let current = self.dek.key.as_ref().map(|current| key(KEY, current)).transpose()?;
        Ok(current.map(|current| Keys::new(current, former)))
    }

    /// What keeps a server on this address from starting.
    pub(super) fn problems(&self, listen: Listen) -> Vec<ConfigProblem> {
        let mut found: Vec<ConfigProblem> = self.vault().err().into_iter().collect();
        let providers = self.providers();
        let (plain, dek) = (providers.contains(&Provider::Plain), providers.contains(&Provider::Dek));
        if providers.is_empty() {
            let fix = "use [\"dek\"], or remove the key to decide by whether there is a key";
            found.push(ConfigProblem::new(PROVIDERS, "is empty, so nothing could be stored", fix));
        }
        if !dek && !providers.is_empty() && self.dek != Dek::default() {
            let fix = "add \"dek\" to it, or remove the keys";
            found.push(ConfigProblem::new(
                PROVIDERS,
                "does not name \"dek\", so the keys would not be used",
                fix,
            ));
        }
        if plain && !listen.0.ip().is_loopback() && !self.allow_plain {
            found.push(ConfigProblem::new(
                PROVIDERS,
                format!("content would be stored or read as plain text by a server on {listen}"),
                format!("set {KEY} to encrypt it, or encryption.allow_plain = true if the disk is protected otherwise"),
            ));
        }
        found
    }
}

fn key(name: &'static str, secret: &Secret) -> Result<WrappingKey, ConfigProblem> {
    let wrong = |problem: String| ConfigProblem::new(name, problem, MAKE_A_KEY);
    let bytes = STANDARD.decode(secret.expose().trim()).map(Zeroizing::new);
    let bytes = bytes.map_err(|_| wrong("is not base64".into()))?;
    let bytes: &[u8; 32] =
        bytes.as_slice().try_into().map_err(|_| wrong(format!("has {} bytes instead of 32", bytes.len())))?;
    WrappingKey::new(bytes).map_err(|error| wrong(error.to_string()))
}
