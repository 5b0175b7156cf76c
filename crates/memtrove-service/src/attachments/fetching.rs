//! Bytes that are fetched from the web, in the background.

use super::{Attachments, blobs, failed, micros, seal};
use crate::Context;
use futures_util::TryStreamExt;
use memtrove_blobs::fetch::{FetchError, Fetched, Fetcher, Limits};
use memtrove_core::attachments::{self as rules, Attachment, Status, UNKNOWN_CONTENT_TYPE};
use memtrove_core::identity::{Caller, Tenant};
use memtrove_core::{Error, Result, UserId};
use memtrove_store::attachments::{self, Arrived, BlobKey};
use percent_encoding::percent_decode_str;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Sources that a node fetches at a time.
const AT_ONCE: usize = 16;
/// Sources that it has taken on altogether; more are refused. Each takes its [time](LONGEST) at most, so the last one's turn comes
/// within eighteen minutes, and the clean-up takes nothing for lost that still waits for it.
const TAKEN_ON: usize = 64;
/// Sources that it has taken on of one user, so that no user keeps all others waiting.
const OF_ONE_USER: usize = 8;
/// How long a source and the object store together may take.
const LONGEST: Duration = Duration::from_secs(6 * 60);

/// A file that a caller has somewhere on the web.
#[derive(Debug, Clone, Default)]
pub struct NewSource {
    /// Where it is.
    pub source_url: Option<String>,
    /// What kind of file it is; as the source says unless given.
    pub content_type: Option<String>,
    /// Its name; the last part of its address unless given.
    pub name: Option<String>,
    /// How long it is kept unless an entry refers to it, as an ISO 8601 duration.
    pub expires_in: Option<String>,
}

/// How much is being fetched.
pub(super) struct Fetches {
    taken_on: Mutex<HashMap<(Tenant, UserId), usize>>,
    at_once: Semaphore,
}

impl Default for Fetches {
    fn default() -> Self {
        Self { taken_on: Mutex::default(), at_once: Semaphore::new(AT_ONCE) }
    }
}

impl Fetches {
    /// Takes on a source of a user, until what comes back is dropped; nothing if there are too many.
    fn take_on(self: &Arc<Self>, caller: &Caller) -> Option<TakenOn> {
        let user = (caller.tenant().clone(), caller.user.clone());
        let mut taken_on = self.taken_on();
        let of_user = taken_on.get(&user).copied().unwrap_or_default();
        if of_user >= OF_ONE_USER || taken_on.values().sum::<usize>() >= TAKEN_ON {
            return None;
        }
        taken_on.insert(user.clone(), of_user + 1);
        Some(TakenOn { fetches: Arc::clone(self), user })
    }

    fn taken_on(&self) -> MutexGuard<'_, HashMap<(Tenant, UserId), usize>> {
        self.taken_on.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A source that was taken on.
struct TakenOn {
    fetches: Arc<Fetches>,
    user: (Tenant, UserId),
}

impl Drop for TakenOn {
    fn drop(&mut self) {
        let mut taken_on = self.fetches.taken_on();
        match taken_on.get_mut(&self.user) {
            Some(of_user) if *of_user > 1 => *of_user -= 1,
            _ => drop(taken_on.remove(&self.user)),
        }
    }
}

impl Attachments {
    /// Takes on to fetch a file. The attachment is there at once; whether its bytes ever are is seen by its status.
    pub async fn fetch(&self, caller: &Caller, new: NewSource) -> Result<Attachment> {
        let settings = self.settings();
        let source_url = rules::source_url(new.source_url.as_deref())?;
        let content_type = rules::content_type(new.content_type.as_deref())?;
        let filename = match rules::filename(new.name.as_deref())? {
            Some(name) => Some(name),
            None => name_in(&source_url),
        };
        let (default, max) = (micros(settings.default_expires_in), micros(settings.max_expires_in));
        let lifetime = rules::lifetime(new.expires_in.as_deref(), default, max)?;
        let off = || Error::forbidden("this server does not fetch files from the web; upload them");
        let (fetcher, _) = (settings.fetcher.clone().ok_or_else(off)?, self.blobs()?);
        // Before anybody is led there. What a name leads to is seen when it is fetched.
        fetcher.check(&source_url).map_err(|error| Error::invalid("sourceUrl", error.to_string()))?;
        let busy = Error::overloaded(5);
        let taken_on = self.fetches.take_on(caller).ok_or(busy)?;

        let record = Attachment {
            source_url: Some(source_url.clone()),
            ..self.new_record(caller, filename, content_type, Status::Downloading, lifetime)
        };
        let stored = record.clone();
        let key = self
            .cx
            .store
            .write(caller.tenant(), "fetch_attachment", move |tx| {
                Ok::<_, Error>(attachments::insert(tx, &stored)?)
            })
            .await?;
        let source = FetchedSource {
            cx: self.cx.clone(),
            fetcher,
            url: source_url,
            record: record.clone(),
            key,
            typed: new.content_type.is_some_and(|given| !given.trim().is_empty()),
        };
        tokio::spawn(async move {
            // It is never closed.
            let _turn = taken_on.fetches.at_once.acquire().await;
            source.fetch().await;
        });
        Ok(record)
    }
}

/// The last part of an address, if it can be the name of a file.
fn name_in(url: &str) -> Option<String> {
    let path = url.split(['?', '#']).next()?.split_once("://")?.1.split_once('/')?.1;
    let name = percent_decode_str(path.rsplit('/').next()?).decode_utf8().ok()?;
    rules::filename(Some(&name)).ok().flatten()
}

/// A file that was taken on.
struct FetchedSource {
    cx: Arc<Context>,
    fetcher: Fetcher,
    url: String,
    record: Attachment,
    key: Option<BlobKey>,
    /// Whether the caller said what kind of file it is.
    typed: bool,
}

impl FetchedSource {
    /// Fetches it, and notes what came of it. If that cannot be noted, the clean-up gives it up after a while.
    async fn fetch(&self) {
        match self.is_wanted().await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                tracing::debug!(%error, "it could not be looked up whether a source is still wanted")
            }
        }
        let late = |_| Err(Error::bad_request("it took too long"));
        let arrived = match tokio::time::timeout(LONGEST, self.store()).await.unwrap_or_else(late) {
            Ok(arrived) => self.note(arrived).await,
            Err(error) => {
                tracing::info!(attachment = %self.record.id, %error, "an attachment could not be fetched");
                self.give_up().await
            }
        };
        if let Err(error) = arrived {
            tracing::warn!(%error, "what came of fetching an attachment could not be noted");
        }
    }

    /// Whether anybody still waits for it, now that its turn has come.
    async fn is_wanted(&self) -> Result<bool> {
        let record = self.record.clone();
        let look = move |tx: &mut dyn memtrove_store::Tx| {
            Ok::<_, Error>(attachments::is_awaited(tx, &record.tenant, &record.storage_key)?)
        };
        self.cx.store.read(&self.record.tenant, "awaited_attachment", look).await
    }

    /// Puts the bytes into the object store as they come.
    async fn store(&self) -> Result<Arrived> {
        let max_bytes = self.cx.settings.attachments.max_bytes;
        let limits = Limits { max_bytes, ..Limits::default() };
        let Fetched { content_type, mut body, .. } =
            self.fetcher.fetch(&self.url, limits).await.map_err(unfetched)?;
        let seal = seal(self.key.as_ref(), &self.record.storage_key);
        // Dropped on any error, so that nothing stays.
        let mut blob = blobs(&self.cx)?.put(&self.record.storage_key, seal.as_ref()).await.map_err(failed)?;
        let mut hasher = Sha256::new();
        while let Some(bytes) = body.try_next().await.map_err(unfetched)? {
            hasher.update(&bytes);
            blob.write(bytes).await.map_err(failed)?;
        }
        let size = blob.finish().await.map_err(failed)?;
        let said =
            || rules::content_type(content_type.as_deref()).unwrap_or_else(|_| UNKNOWN_CONTENT_TYPE.into());
        Ok(Arrived {
            size,
            sha256: hex::encode(hasher.finalize()),
            content_type: (!self.typed).then(said),
            expires_at: None,
        })
    }

    async fn note(&self, arrived: Arrived) -> Result<()> {
        let record = self.record.clone();
        let noted = self.cx.store.write(&self.record.tenant, "fetched_attachment", move |tx| {
            Ok::<_, Error>(attachments::set_arrived(tx, &record.tenant, &record.storage_key, &arrived)?)
        });
        if noted.await? == 0 {
            // The caller has gone away.
            blobs(&self.cx)?.delete(&self.record.storage_key).await.map_err(failed)?;
        }
        Ok(())
    }

    async fn give_up(&self) -> Result<()> {
        let storage_key = self.record.storage_key.clone();
        let failed =
            move |tx: &mut dyn memtrove_store::Tx| Ok::<_, Error>(attachments::set_failed(tx, &storage_key)?);
        self.cx.store.write(&self.record.tenant, "unfetched_attachment", failed).await
    }
}

fn unfetched(error: FetchError) -> Error {
    Error::bad_request(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::name_in;

    #[test]
    fn a_file_is_named_by_the_last_part_of_its_address() {
        for (url, name) in [
            ("https://example.org/a/cat.png?size=1#x", Some("cat.png")),
            ("https://example.org/na%C3%AFve%20cat.png", Some("naïve cat.png")),
            ("https://example.org/a%2F..%2Fcat.png", Some("cat.png")),
            ("https://example.org/a/", None),
            ("https://example.org", None),
            ("https://example.org/%00", None),
        ] {
            assert_eq!(name_in(url).as_deref(), name, "{url}");
        }
    }
}
