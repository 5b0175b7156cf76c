//! Recording responses while they are streamed, so that a reader who lost the stream reads them from the beginning and goes on.
//!
//! What is recorded is on the node that records it, in a spool, and gone soon after its end: what is to last is
//! appended to the conversation by the agent. Where there are several nodes a *locator* says which of them holds the recording
//! of a conversation; a node that dies takes its recordings with it, and their locators run out.

mod cipher;
mod disk;
mod end_reason;
mod metrics;
mod node;
mod reader;
mod readers;
mod recording;
mod registry;
mod settings;
mod spool;

pub use end_reason::EndReason;
pub use memtrove_store::locators::{Address, NotAnAddress};
pub use metrics::announce_metrics;
pub use reader::RecordingReader;
pub use recording::Recording;
pub use settings::{RecorderBackend, RecorderSettings};

use crate::conversations::access::{self, Access, AsReader, AsWriter, Member};
use memtrove_core::identity::Caller;
use memtrove_core::{Clock, ConversationId, Error, GroupId, Result};
use memtrove_store::Store;
use memtrove_store::locators::{Locator, Locators, RecordingKey, trees};
use node::Node;
use registry::Tape;
use spool::Closed;
use std::collections::HashSet;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

/// How long somebody who cancels waits until that is told to everybody.
const CANCELLING: Duration = Duration::from_secs(30);

/// Between two looks at whether a node is gone that is said to be at an address of this one.
const PAUSE: Duration = Duration::from_millis(250);

/// How long a node that stops waits until others know.
const LEAVING: Duration = Duration::from_secs(5);

/// The use cases of recordings.
#[derive(Clone)]
pub struct Recorder {
    store: Store,
    /// Nothing where nothing is recorded.
    node: Option<Arc<Node>>,
}

/// What there is to replay.
pub enum Replay {
    /// Nothing: the caller reads the conversation.
    Nothing,
    /// Another node has it.
    Elsewhere(Address),
    /// This.
    Here(RecordingReader),
}

/// What became of a request to cancel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cancel {
    /// Nothing is recorded any more, or nothing was.
    Done,
    /// Another node is to be asked.
    Elsewhere(Address),
}

/// Who has the recording of a conversation.
enum Holder {
    NoNode,
    Another(Address),
    This(Arc<Tape>),
}

impl Recorder {
    /// Records as the settings say. A Redis server need not answer yet.
    pub(crate) fn new(store: Store, clock: Arc<dyn Clock>, settings: RecorderSettings) -> Result<Self> {
        let id = clock.new_id();
        let locators = match &settings.backend {
            RecorderBackend::Off => return Ok(Self { store, node: None }),
            RecorderBackend::Redis(url) => {
                let invalid =
                    |error: memtrove_store::StoreError| Error::invalid("redis.url", error.to_string());
                Some(Locators::in_redis(url, id).map_err(invalid)?)
            }
            RecorderBackend::Store if store.is_shared() => Some(Locators::in_database(store.clone(), id)),
            RecorderBackend::Store | RecorderBackend::Local => None,
        };
        let node = Node::new(id, store.clone(), clock, settings, locators, Handle::current());
        Ok(Self { store, node: Some(Arc::new(node)) })
    }

    /// Whether responses are recorded here.
    pub fn is_enabled(&self) -> bool {
        self.node.is_some()
    }

    /// Begins to record the response of a conversation; what was being recorded of it is superseded. `reached_at` is the local
    /// end of the call.
    pub async fn record(
        &self,
        caller: &Caller,
        id: ConversationId,
        reached_at: Option<SocketAddr>,
    ) -> Result<Recording> {
        let access = self.open(caller, id).await?;
        let node = self.node.as_ref().ok_or(Error::RECORDER_DISABLED)?;
        node.begin(&access, address(node, reached_at)).await
    }

    /// What there is to replay of a conversation's response.
    pub async fn replay(
        &self,
        caller: &Caller,
        id: ConversationId,
        reached_at: Option<SocketAddr>,
    ) -> Result<Replay> {
        let access = self.open::<AsReader>(caller, id).await?;
        let Some(node) = &self.node else { return Ok(Replay::Nothing) };
        Ok(match holder(node, &key(&access), reached_at).await? {
            Holder::NoNode => Replay::Nothing,
            Holder::Another(address) => Replay::Elsewhere(address),
            Holder::This(tape) => {
                metrics::replayed();
                Replay::Here(RecordingReader::new(node.readers.seat(tape, caller.user.clone()))?)
            }
        })
    }

    /// Ends the recording of a conversation's response; its recorder learns so at once. What was recorded stays replayable for
    /// a while.
    pub async fn cancel(
        &self,
        caller: &Caller,
        id: ConversationId,
        reached_at: Option<SocketAddr>,
    ) -> Result<Cancel> {
        let access = self.open::<AsWriter>(caller, id).await?;
        let node = self.node.as_ref().ok_or(Error::RECORDER_DISABLED)?;
        let key = key(&access);
        // Taken first: one that begins while others are asked is none that the caller knew of.
        let live = node.registry.live(&key);
        match (holder(node, &key, reached_at).await?, live) {
            (Holder::Another(address), live) => {
                // Then the one that goes on here was superseded there, and would notice in a moment.
                if let Some(tape) = live {
                    node.end(&tape, Closed::Ended(EndReason::Superseded));
                }
                Ok(Cancel::Elsewhere(address))
            }
            (Holder::NoNode | Holder::This(_), None) => Ok(Cancel::Done),
            (Holder::NoNode | Holder::This(_), Some(tape)) => {
                if let Some(told) = node.end(&tape, Closed::Ended(EndReason::Cancelled)) {
                    // Without an announcement, other nodes find out when its time is over.
                    let _ = tokio::time::timeout(CANCELLING, told).await;
                }
                Ok(Cancel::Done)
            }
        }
    }

    /// Those of some conversations whose response is being recorded, on any node, and that the caller may read: in the order
    /// given.
    pub async fn check(&self, caller: &Caller, ids: Vec<ConversationId>) -> Result<Vec<ConversationId>> {
        let Some(node) = self.node.as_ref().filter(|_| !ids.is_empty()) else { return Ok(Vec::new()) };
        let (asked, by) = (unique(&ids), caller.clone());
        let readable = self
            .store
            .read(caller.tenant(), "check_recordings", move |tx| {
                Ok::<_, Error>(trees::readable(tx, by.tenant(), &by.user, &asked)?)
            })
            .await?;
        let key_of = |id| RecordingKey { tenant: caller.tenant().clone(), conversation: id };
        let elsewhere = match &node.locators {
            None => HashSet::new(),
            Some(_) if readable.is_empty() => HashSet::new(),
            Some(locators) => {
                let found = locators.find(caller.tenant(), readable.iter().copied().collect()).await;
                let found = found.map_err(node::unavailable)?;
                found.iter().for_each(|(id, locator)| note_found(node, &key_of(*id), locator));
                found.into_keys().collect()
            }
        };
        let is_live =
            |id: &ConversationId| elsewhere.contains(id) || node.registry.live(&key_of(*id)).is_some();
        Ok(ids.into_iter().filter(|id| readable.contains(id) && is_live(id)).collect())
    }

    /// Ends all recordings of this node, and with them their replays. From now on nothing is recorded here.
    pub fn close(&self) {
        if let Some(node) = &self.node {
            node.close();
        }
    }

    /// Ends the recordings of a tree that was deleted.
    pub(crate) fn end_tree(&self, group: GroupId) {
        if let Some(node) = &self.node {
            node.end_tree(group);
        }
    }

    /// Does what is to be done about recordings from time to time, for as long as it is polled.
    pub(crate) async fn run(&self) -> Infallible {
        match &self.node {
            Some(node) => node.run().await,
            None => std::future::pending().await,
        }
    }

    /// Ends what is recorded here, and resolves when others know.
    pub(crate) async fn leave(&self) {
        if let Some(node) = &self.node {
            node.close();
            // Without an announcement, other nodes find out when their time is over.
            let _ = tokio::time::timeout(LEAVING, node.all_told()).await;
        }
    }

    async fn open<L: Member + 'static>(&self, caller: &Caller, id: ConversationId) -> Result<Access<L>> {
        let caller = caller.clone();
        self.store
            .read(caller.tenant().clone(), "open_recording", move |tx| access::open(tx, &caller, id))
            .await
    }
}

fn key<L>(access: &Access<L>) -> RecordingKey {
    RecordingKey { tenant: access.tenant().clone(), conversation: access.id() }
}

/// The address a recording of this node is found at: the advertised one, else where its call came in, else what this machine
/// is called.
fn address(node: &Node, reached_at: Option<SocketAddr>) -> Address {
    let named = || Address { host: crate::node::host(), port: node.settings.port };
    node.settings.advertised_address.clone().or_else(|| reached_at.map(Address::from)).unwrap_or_else(named)
}

/// Looks for the recording of a conversation. One that is here is found although no locator answers.
///
/// A node that is said to be at an address of this one can be an earlier process of it, and gone: then its locator runs out
/// soon. If it does not, callers cannot be sent there, because they would come back here.
async fn holder(node: &Node, key: &RecordingKey, reached_at: Option<SocketAddr>) -> Result<Holder> {
    let until = Instant::now() + node.settings.locator_ttl + 2 * PAUSE;
    loop {
        let address = match look(node, key).await? {
            Holder::Another(address) => address,
            found => return Ok(found),
        };
        let is_ours = node.is_here(&address) || reached_at.is_some_and(|at| Address::from(at) == address);
        if !is_ours {
            return Ok(Holder::Another(address));
        }
        if Instant::now() > until {
            node.warn_of_another_at(&address);
            return Err(Error::peer_unreachable(format!(
                "another node is said to be at {address}, which is where this node is: set \
                 recorder.advertised_address on every node"
            )));
        }
        sleep(PAUSE).await;
    }
}

/// Whom the locator of a conversation names.
async fn look(node: &Node, key: &RecordingKey) -> Result<Holder> {
    let told = match &node.locators {
        None => Ok(None),
        Some(locators) => {
            let found = locators.find(&key.tenant, vec![key.conversation]).await;
            found.map(|mut found| found.remove(&key.conversation))
        }
    };
    // Looked at afterwards: what was told before is here by now.
    let here = node.registry.get(key, node.clock.now());
    let told = match told {
        Ok(told) => told,
        Err(error) => {
            metrics::locators_failed();
            return here.map(Holder::This).ok_or_else(|| node::unavailable(error));
        }
    };
    Ok(match told {
        Some(locator) if locator.node != node.id => {
            note_found(node, key, &locator);
            Holder::Another(locator.address)
        }
        Some(_) | None => here.map_or(Holder::NoNode, Holder::This),
    })
}

/// What ended here is not replayed any more when a newer recording was begun elsewhere.
fn note_found(node: &Node, key: &RecordingKey, locator: &Locator) {
    if locator.node != node.id {
        node.registry.forget_others(key, locator.recording);
    }
}

fn unique(ids: &[ConversationId]) -> Vec<ConversationId> {
    ids.iter().copied().collect::<HashSet<_>>().into_iter().collect()
}
