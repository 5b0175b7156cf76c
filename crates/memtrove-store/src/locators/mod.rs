//! Which node holds the recording of a conversation's response.
//!
//! A locator says so for some seconds, and is confirmed while the recording goes on: that of a node that died runs out. It is
//! written by the node that begins to record, whatever was there; from then on it is touched only by those who still find their
//! own in it. Time is that of the place where locators are kept, so that nodes need not agree on what time it is.
//!
//! This is the only module that knows Redis. There the keys are `memtrove:{tenant}:response:{conversation}`, because the id of a
//! conversation is unique inside its tenant only.

mod address;
mod database;
mod redis;
pub mod trees;

pub use address::{Address, NotAnAddress};
pub use redis::probe;

use self::redis::RedisLocators;
use crate::{AllTenants, Store, StoreError};
use memtrove_core::ConversationId;
use memtrove_core::identity::Tenant;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::time::Duration;
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RecordingKey {
    /// The tenant of the conversation.
    pub tenant: Tenant,
    pub conversation: ConversationId,
}

/// Where a recording is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Locator {
    /// Where its node is found.
    pub address: Address,
    pub recording: Uuid,
    /// Its node, by the id that it has until it stops. Two nodes may be found at one address, behind the same translation of
    /// addresses or one after the other.
    pub node: Uuid,
}

impl fmt::Display for Locator {
    /// `host|port|recording|node`, as Redis has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}|{}|{}|{}", self.address.host, self.address.port, self.recording, self.node)
    }
}

impl Locator {
    /// Reads what [`Display`](fmt::Display) writes, and nothing else.
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('|');
        let [host, port, recording, node] = [parts.next()?, parts.next()?, parts.next()?, parts.next()?];
        let locator = Self {
            address: Address::new(host, port.parse().ok()?)?,
            recording: memtrove_core::parse_uuid(recording)?,
            node: memtrove_core::parse_uuid(node)?,
        };
        parts.next().is_none().then_some(locator)
    }

    /// What was found of a conversation, unless it is no locator: something else wrote that, and no request must be sent there.
    fn believed(id: ConversationId, found: Option<Self>) -> Option<(ConversationId, Self)> {
        if found.is_none() {
            tracing::warn!(conversation = %id, "what is said to be the locator of a recording is none; it is ignored");
        }
        Some((id, found?))
    }
}

/// What a node tells of a recording.
#[derive(Debug, Clone)]
pub enum Notice {
    /// It begins. Whatever was there of its conversation is superseded.
    Begun(RecordingKey, Locator),
    /// It ended. Nothing happens if another one has its place.
    Ended(RecordingKey, Locator),
}

/// Where locators are kept, as one node uses it.
#[derive(Clone)]
pub struct Locators {
    /// This node. It has a mark of its own there, which says that nothing was lost since its locators were last confirmed.
    node: Uuid,
    place: LocatorBackend,
}

#[derive(Clone)]
enum LocatorBackend {
    Database(Store),
    Redis(RedisLocators),
}

impl Locators {
    /// In a table of a store that nodes share; an engine for one process has no such table. `node` is this one's id, new with
    /// every start.
    pub fn in_database(store: Store, node: Uuid) -> Self {
        Self { node, place: LocatorBackend::Database(store) }
    }

    /// On a Redis server, which need not answer yet. To be called inside a runtime.
    pub fn in_redis(url: &str, node: Uuid) -> Result<Self, StoreError> {
        Ok(Self { node, place: LocatorBackend::Redis(RedisLocators::new(url)?) })
    }

    /// Tells everybody, in the order given. What has begun is believed for `ttl`.
    pub async fn tell(&self, notices: Vec<Notice>, ttl: Duration) -> Result<(), StoreError> {
        match &self.place {
            LocatorBackend::Database(store) => {
                store.write(AllTenants, "tell_recordings", move |tx| database::tell(tx, &notices, ttl)).await
            }
            LocatorBackend::Redis(redis) => redis.tell(&notices, ttl).await,
        }
    }

    /// Makes the locators of this node last for another `ttl`, each if it is still as it was told; answers the recordings of which
    /// it is not. To be called more often than they run out, also while there are none: a locator that is gone before its time
    /// was taken away. If it may have gone by itself, because nothing could be confirmed for too long or everything that
    /// was kept there was lost, it is told again, unless another is in its place.
    pub async fn confirm(
        &self,
        held: Vec<(RecordingKey, Locator)>,
        ttl: Duration,
    ) -> Result<HashSet<Uuid>, StoreError> {
        let node = self.node;
        match &self.place {
            LocatorBackend::Database(store) => {
                store
                    .write(AllTenants, "confirm_recordings", move |tx| {
                        database::confirm(tx, node, &held, ttl)
                    })
                    .await
            }
            LocatorBackend::Redis(redis) => redis.confirm(node, &held, ttl).await,
        }
    }

    /// The locators of some conversations, of those that have one.
    pub async fn find(
        &self,
        tenant: &Tenant,
        ids: Vec<ConversationId>,
    ) -> Result<HashMap<ConversationId, Locator>, StoreError> {
        match &self.place {
            LocatorBackend::Database(store) => {
                let of = tenant.clone();
                store.read(tenant, "find_recordings", move |tx| database::find(tx, &of, &ids)).await
            }
            LocatorBackend::Redis(redis) => redis.find(tenant, &ids).await,
        }
    }

    /// Removes what ran out, where it does not go by itself.
    pub async fn purge(&self) -> Result<(), StoreError> {
        match &self.place {
            LocatorBackend::Database(store) => {
                store.write(AllTenants, "purge_recordings", database::purge).await
            }
            LocatorBackend::Redis(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locator_is_read_as_it_was_written() {
        for host in ["node-1", "10.0.0.7", "2001:db8::7"] {
            let address = Address { host: host.into(), port: 8080 };
            let locator = Locator { address, recording: Uuid::from_u128(7), node: Uuid::from_u128(8) };
            assert_eq!(Locator::parse(&locator.to_string()), Some(locator));
        }
    }

    #[test]
    fn what_does_not_lead_to_a_node_is_no_locator() {
        let ids = format!("{}|{}", Uuid::from_u128(7), Uuid::from_u128(8));
        assert!(Locator::parse(&format!("node|80|{ids}")).is_some());
        for text in ["", "node", "node|80", "node|80|7|8"] {
            assert_eq!(Locator::parse(text), None, "{text}");
        }
        for host in
            ["", "a@evil.example", "evil.example/", "a b", "a#", "a?b", "evil.example:1", "[::1]", "a\r\nb"]
        {
            assert_eq!(Locator::parse(&format!("{host}|80|{ids}")), None, "{host}");
        }
        for rest in [format!("x|{ids}"), format!("0|{ids}"), format!("65536|{ids}"), format!("80|{ids}|9")] {
            assert_eq!(Locator::parse(&format!("node|{rest}")), None, "{rest}");
        }
    }
}
