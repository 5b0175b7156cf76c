//! A number of bytes that all requests share, and how much of it one caller may have.

use crate::auth::X_API_KEY;
use crate::shell::connection::Connection;
use http::header::AUTHORIZATION;
use http::{Extensions, HeaderMap, HeaderValue};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes for everybody.
#[derive(Debug, Clone)]
pub(super) struct Room(Arc<RoomInner>);

#[derive(Debug)]
struct RoomInner {
    limits: RoomLimits,
    credentials: RandomState,
    taken: Mutex<RoomUsage>,
}

/// How much there is, and of it for one.
#[derive(Debug, Clone, Copy)]
pub(super) struct RoomLimits {
    pub(super) all: u64,
    pub(super) credential: u64,
    pub(super) connection: u64,
}

#[derive(Debug, Default)]
struct RoomUsage {
    bytes: u64,
    by_holder: HashMap<Holder, u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Holder {
    /// All callers without a credential, or whose credential makes no difference.
    Nameless,
    Credential(u64),
    Connection(u64),
}

/// Who asks, as far as that is known before anybody is authenticated: by its credential and by its connection. Addresses say
/// nothing: everybody behind a proxy has the same. Behind a proxy a connection may be that of several callers too.
#[derive(Debug, Clone, Default)]
pub(super) struct Asker {
    /// See [`token`].
    authorization: Option<HeaderValue>,
    api_key: Option<HeaderValue>,
    pub(super) connection: Option<Arc<Connection>>,
}

impl Asker {
    pub(super) fn of(headers: &HeaderMap, extensions: &Extensions) -> Self {
        Self {
            authorization: headers.get(AUTHORIZATION).cloned(),
            api_key: headers.get(X_API_KEY).cloned(),
            ..Self::nameless(extensions)
        }
    }

    /// A caller whose credential is not going to be checked: it may be made up.
    pub(super) fn nameless(extensions: &Extensions) -> Self {
        Self { connection: extensions.get::<Arc<Connection>>().cloned(), ..Self::default() }
    }
}

/// The credential behind the scheme, which may have any letter case and any number of spaces behind it.
fn token(authorization: &HeaderValue) -> &[u8] {
    let text = trimmed(authorization);
    let scheme = text.iter().position(u8::is_ascii_whitespace).unwrap_or_default();
    text[scheme..].trim_ascii()
}

fn trimmed(value: &HeaderValue) -> &[u8] {
    value.as_bytes().trim_ascii()
}

/// Why there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    /// All of it is taken.
    Everybody,
    /// This caller has its part.
    Caller,
}

/// What one request has of it; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Share {
    room: Arc<RoomInner>,
    holders: [Option<(Holder, u64)>; 2],
    bytes: u64,
}

impl Room {
    pub(super) fn new(limits: RoomLimits) -> Self {
        Self(Arc::new(RoomInner { limits, credentials: RandomState::new(), taken: Mutex::default() }))
    }

    /// An empty share.
    pub(super) fn share(&self, asker: &Asker) -> Share {
        let RoomLimits { all, credential: per_credential, connection: per_connection } = self.0.limits;
        let shown = (asker.authorization.as_ref().map(token), asker.api_key.as_ref().map(trimmed));
        let credential = (shown != (None, None)).then(|| self.0.credentials.hash_one(shown));
        let holders = [
            Some(match credential {
                Some(credential) => (Holder::Credential(credential), per_credential),
                // Unknown callers together never take the room that known ones need.
                None => (Holder::Nameless, per_credential.min(all / 4)),
            }),
            asker.connection.as_ref().map(|one| (Holder::Connection(one.id()), per_connection)),
        ];
        Share { room: Arc::clone(&self.0), holders, bytes: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.taken().bytes == 0
    }

    #[cfg(test)]
    pub(super) fn taken(&self) -> u64 {
        self.0.taken().bytes
    }
}

impl RoomInner {
    fn taken(&self) -> MutexGuard<'_, RoomUsage> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    /// Takes more. A lone share always may, of the room and of its caller's part: what one body or answer may have is limited
    /// elsewhere.
    pub(super) fn grow(&mut self, more: u64) -> Result<(), Full> {
        let mut taken = self.room.taken();
        if taken.bytes + more > self.room.limits.all && taken.bytes > self.bytes {
            return Err(Full::Everybody);
        }
        let has_its_part = |(holder, limit): &(Holder, u64)| {
            let held = taken.by_holder.get(holder).copied().unwrap_or_default();
            held + more > *limit && held > self.bytes
        };
        if more > 0 && self.holders.iter().flatten().any(has_its_part) {
            return Err(Full::Caller);
        }
        taken.add(&self.holders, more);
        self.bytes += more;
        Ok(())
    }

    /// Whether its caller has all of its part.
    pub(super) fn is_at_its_limit(&self) -> bool {
        let taken = self.room.taken();
        let held = |holder| taken.by_holder.get(holder).copied().unwrap_or_default();
        self.holders.iter().flatten().any(|(holder, limit)| held(holder) >= *limit)
    }

    /// Takes more, whether there is room or not.
    pub(super) fn grow_anyway(&mut self, more: u64) {
        self.room.taken().add(&self.holders, more);
        self.bytes += more;
    }

    pub(super) fn give_back(&mut self) {
        self.keep(0);
    }

    /// Gives back what is more than this.
    pub(super) fn keep(&mut self, bytes: u64) {
        let more = self.bytes.saturating_sub(bytes);
        if more > 0 {
            self.bytes -= more;
            self.room.taken().remove(&self.holders, more);
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl RoomUsage {
    fn add(&mut self, holders: &[Option<(Holder, u64)>], more: u64) {
        if more == 0 {
            return;
        }
        self.bytes += more;
        for (holder, _) in holders.iter().flatten() {
            *self.by_holder.entry(*holder).or_default() += more;
        }
    }

    fn remove(&mut self, holders: &[Option<(Holder, u64)>], bytes: u64) {
        self.bytes -= bytes;
        for (holder, _) in holders.iter().flatten() {
            if let Some(held) = self.by_holder.get_mut(holder) {
                *held -= bytes;
                if *held == 0 {
                    self.by_holder.remove(holder);
                }
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const LIMITS: RoomLimits = RoomLimits { all: 400, credential: 100, connection: 200 };

    /// Somebody with this credential, on this connection.
    pub(in crate::shell) fn asker(credential: &str, connection: &Arc<Connection>) -> Asker {
        let named = (!credential.is_empty()).then(|| HeaderValue::from_str(credential).unwrap());
        Asker { authorization: named, api_key: None, connection: Some(Arc::clone(connection)) }
    }

    fn take(room: &Room, asker: &Asker, bytes: u64) -> Result<Share, Full> {
        let mut share = room.share(asker);
        share.grow(bytes).map(|()| share)
    }

    #[test]
    fn everybody_together_has_the_limit_and_gives_it_back() {
        let room = Room::new(LIMITS);
        let connections: Vec<_> = (0..5).map(|_| Connection::new(None)).collect();
        let full: Vec<_> = connections[..4]
            .iter()
            .map(|one| take(&room, &asker(&one.id().to_string(), one), 100).unwrap())
            .collect();
        let late = asker("late", &connections[4]);
        assert_eq!(take(&room, &late, 1).unwrap_err(), Full::Everybody);
        assert!(take(&room, &late, 0).is_ok(), "what has no bytes always fits");
        drop(full);
        assert_eq!(room.taken(), 0);
        assert!(take(&room, &late, 5000).is_ok(), "a lone share has a limit of its own");
    }

    #[test]
    fn one_credential_has_a_quarter_over_all_its_connections() {
        let room = Room::new(LIMITS);
        let (one, other) = (Connection::new(None), Connection::new(None));
        let _first = take(&room, &asker("alice", &one), 60).unwrap();
        let _second = take(&room, &asker("alice", &other), 40).unwrap();
        assert_eq!(take(&room, &asker("alice", &Connection::new(None)), 1).unwrap_err(), Full::Caller);
        assert!(take(&room, &asker("bob", &one), 100).is_ok());
    }

    #[test]
    fn one_credential_is_one_however_it_is_spelled() {
        let room = Room::new(LIMITS);
        let _held = take(&room, &asker("Bearer t", &Connection::new(None)), 100).unwrap();
        for same in ["bearer t", "BEARER   t", "Bearer\tt ", " Bearer t"] {
            assert_eq!(
                take(&room, &asker(same, &Connection::new(None)), 1).unwrap_err(),
                Full::Caller,
                "{same:?}"
            );
        }
        assert!(take(&room, &asker("Bearer u", &Connection::new(None)), 100).is_ok());
    }

    #[test]
    fn one_connection_has_a_half_whatever_credentials_it_shows() {
        let room = Room::new(LIMITS);
        let one = Connection::new(None);
        let _held: Vec<_> = ["a", "b", "c", "d"]
            .into_iter()
            .map(|name| take(&room, &asker(name, &one), 50).unwrap())
            .collect();
        assert_eq!(take(&room, &asker("e", &one), 50).unwrap_err(), Full::Caller);
        assert!(take(&room, &asker("e", &Connection::new(None)), 100).is_ok());
    }

    #[test]
    fn all_who_show_no_credential_have_a_quarter_together() {
        let room = Room::new(LIMITS);
        let _first = take(&room, &asker("", &Connection::new(None)), 60).unwrap();
        let _second = take(&room, &asker("", &Connection::new(None)), 40).unwrap();
        assert_eq!(take(&room, &asker("", &Connection::new(None)), 1).unwrap_err(), Full::Caller);
        assert!(take(&room, &asker("alice", &Connection::new(None)), 100).is_ok());
    }

    #[test]
    fn a_share_may_be_taken_although_there_is_no_room() {
        let room = Room::new(LIMITS);
        let one = Connection::new(None);
        let mut share = room.share(&asker("alice", &one));
        share.grow_anyway(500);
        assert_eq!((room.taken(), take(&room, &asker("bob", &one), 1).unwrap_err()), (500, Full::Everybody));
        share.give_back();
        assert_eq!(room.taken(), 0);
    }
}
