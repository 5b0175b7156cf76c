//! How many files come in at a time, and how slowly.
//!
//! An upload to an object store holds a part of the file in memory until the part is full, and only its sender decides when
//! that is. So there is a limit on how many are under way, for everybody and for each user, and on how long one may take.

use memtrove_core::identity::{Caller, Tenant};
use memtrove_core::{Error, Result, UserId};
use std::collections::HashMap;
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

/// How many uploads of one user are under way at a time.
const PER_USER: usize = 8;
/// When it makes sense to come again.
const RETRY_SECONDS: u32 = 5;

/// How long a sender may be silent.
const SILENCE: Duration = Duration::from_secs(30);
/// How long a sender may keep us waiting in all, before it matters how much it has sent.
const GRACE: Duration = Duration::from_secs(60);
/// How many bytes a sender that takes longer must have sent for every second.
const SLOWEST: u64 = 16 * 1024;

/// The uploads of a node that are under way, over REST and gRPC together: they share its memory.
#[derive(Debug, Clone)]
pub struct Uploads {
    room: Arc<Semaphore>,
    by_user: Arc<Mutex<HashMap<Uploader, usize>>>,
}

type Uploader = (Tenant, UserId);

/// A place among the uploads; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct UploadSlot {
    uploads: Uploads,
    user: Uploader,
    _room: OwnedSemaphorePermit,
}

impl Uploads {
    /// At most so many at a time.
    pub fn new(at_once: usize) -> Self {
        let room = Semaphore::new(at_once.min(Semaphore::MAX_PERMITS));
        Self { room: Arc::new(room), by_user: Arc::default() }
    }

    /// A place for one more, if there is one.
    pub(crate) fn admit(&self, caller: &Caller) -> Result<UploadSlot> {
        self.place((caller.tenant().clone(), caller.user.clone()))
    }

    fn place(&self, user: Uploader) -> Result<UploadSlot> {
        let full = || Error::overloaded(RETRY_SECONDS);
        let room = self.room.clone().try_acquire_owned().map_err(|_| full())?;
        let mut by_user = self.by_user();
        let count = by_user.get(&user).copied().unwrap_or_default();
        if count >= PER_USER {
            return Err(full());
        }
        by_user.insert(user.clone(), count + 1);
        drop(by_user);
        Ok(UploadSlot { uploads: self.clone(), user, _room: room })
    }

    fn by_user(&self) -> MutexGuard<'_, HashMap<Uploader, usize>> {
        self.by_user.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UploadSlot {
    fn drop(&mut self) {
        let mut by_user = self.uploads.by_user();
        match by_user.get_mut(&self.user) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(by_user.remove(&self.user)),
        }
    }
}

/// How a sender gets on. Only the time counts that it keeps us waiting, not what the object store takes.
#[derive(Debug, Default)]
pub(crate) struct UploadPace {
    waited: Duration,
    came: u64,
}

impl UploadPace {
    /// Waits for what a sender sends next.
    pub(crate) async fn wait<T>(&mut self, sent: impl Future<Output = T>) -> Result<T> {
        let allowed = GRACE + Duration::from_secs(self.came / SLOWEST);
        let left = allowed.saturating_sub(self.waited);
        let begin = Instant::now();
        let sent = timeout(left.min(SILENCE), sent).await;
        self.waited += begin.elapsed();
        sent.map_err(|_| match left < SILENCE {
            true => given_up(format_args!("it came slower than {SLOWEST} bytes per second")),
            false => given_up(format_args!("nothing came for {} seconds", SILENCE.as_secs())),
        })
    }

    /// So many bytes of the file have come.
    pub(crate) fn came(&mut self, bytes: usize) {
        self.came += bytes as u64;
    }
}

fn given_up(why: impl Display) -> Error {
    Error::bad_request(format!("the upload was given up: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use memtrove_core::Code;
    use std::future::{pending, ready};

    fn user(name: &str) -> Uploader {
        (Tenant::listed("acme".into()), name.into())
    }

    #[test]
    fn no_more_than_so_many_come_at_a_time() {
        let uploads = Uploads::new(2);
        let (one, _two) = (uploads.place(user("a")).unwrap(), uploads.place(user("b")).unwrap());
        assert!(matches!(uploads.place(user("c")), Err(Error { code: Code::Overloaded, .. })));
        drop(one);
        uploads.place(user("c")).unwrap();
    }

    #[test]
    fn nobody_takes_all_the_room() {
        let uploads = Uploads::new(64);
        let mut places: Vec<UploadSlot> = (0..PER_USER).map(|_| uploads.place(user("a")).unwrap()).collect();
        assert!(matches!(uploads.place(user("a")), Err(Error { code: Code::Overloaded, .. })));
        assert_eq!(uploads.room.available_permits(), 64 - PER_USER, "who is refused takes no room");
        uploads.place(user("b")).unwrap();
        uploads.place((Tenant::listed("other".into()), "a".into())).unwrap();
        places.pop();
        places.push(uploads.place(user("a")).unwrap());
        assert!(uploads.place(user("a")).is_err());
        places.clear();
        assert!(uploads.by_user().is_empty(), "users who upload nothing are not remembered");
    }

    /// Sends so many bytes, again and again, each time after so long; for how long that is borne.
    async fn trickle(bytes: usize, pause: Duration) -> Duration {
        let (mut pace, begin) = (UploadPace::default(), Instant::now());
        while begin.elapsed() < Duration::from_secs(24 * 3600)
            && pace.wait(tokio::time::sleep(pause)).await.is_ok()
        {
            pace.came(bytes);
        }
        begin.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_sends_a_byte_now_and_then_is_not_waited_for() {
        assert!(trickle(1, Duration::from_secs(29)).await <= GRACE + Duration::from_secs(1));
        assert!(trickle(SLOWEST as usize, Duration::from_secs(2)).await <= 3 * GRACE);
        assert!(
            trickle(2 * SLOWEST as usize, Duration::from_secs(1)).await >= Duration::from_secs(24 * 3600)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_came_at_once_does_not_buy_much_time() {
        let mut pace = UploadPace::default();
        pace.came(5 * 1024 * 1024);
        let begin = Instant::now();
        while pace.wait(tokio::time::sleep(SILENCE - Duration::from_secs(1))).await.is_ok() {
            pace.came(1);
        }
        assert!(begin.elapsed() < Duration::from_secs(7 * 60), "{:?}", begin.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn silence_ends_an_upload_and_the_object_store_does_not() {
        let mut pace = UploadPace::default();
        let begin = Instant::now();
        let given_up = pace.wait(pending::<()>()).await;
        assert!(
            matches!(given_up, Err(Error { code: Code::BadRequest, message: why, .. }) if why.contains("nothing came for 30 seconds"))
        );
        assert_eq!(begin.elapsed(), SILENCE);

        let mut pace = UploadPace::default();
        for _ in 0..100 {
            assert_eq!(pace.wait(ready(7)).await, Ok(7));
            tokio::time::sleep(GRACE).await;
        }
    }
}
