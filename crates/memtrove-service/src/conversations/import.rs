//! Bringing in conversations that were held elsewhere: with the times and branches they had, each in one unit of work, and
//! each message once however often it is brought.

use super::access::{Access, AsWriter, open, open_existing};
use super::entries::{Checked, append_history, check_content};
use super::lifecycle::{create_root, empty_object};
use super::{AppendRequest, Conversations, not_found, publish};
use memtrove_core::conversations::forks::Segment;
use memtrove_core::conversations::transcript::{self, Node, Stored, TranscriptStep};
use memtrove_core::conversations::{Channel, MAX_TITLE_CHARS};
use memtrove_core::identity::Caller;
use memtrove_core::{ConversationId, EntryId, Error, GroupId, Json, Result, Timestamp, UserId};
use memtrove_store::Tx;
use memtrove_store::changes::ChangeKind;
use memtrove_store::conversations::rows::{self, NewConversation};
use memtrove_store::conversations::{ancestry, entries, groups};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// How often branches may leave each other on the way to one: each knows all that it left.
const MAX_DEPTH: usize = 200;

/// A conversation that was held elsewhere.
#[derive(Debug, Clone)]
pub struct Transcript {
    /// The id it has here.
    pub id: ConversationId,
    /// Its title; without one it gets one from its first message.
    pub title: Option<String>,
    /// What else is known of it: a JSON object.
    pub metadata: Option<Json>,
    /// When it began.
    pub created_at: Option<Timestamp>,
    /// What was said, each message after the one it answers.
    pub messages: Vec<Message>,
}

/// A message of a [`Transcript`].
#[derive(Debug, Clone)]
pub struct Message {
    /// The id it has here.
    pub id: EntryId,
    /// The conversation that begins with it, if one has to.
    pub branch: ConversationId,
    /// The place of the message it answers in the list.
    pub parent: Option<usize>,
    /// Whether it is on the branch that was looked at last.
    pub current: bool,
    /// When it was said.
    pub at: Option<Timestamp>,
    /// What history entries have: a JSON array of one object with a role.
    pub content: Json,
}

/// What became of a transcript, or would.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Imported {
    /// Whether there was nothing of it before.
    pub is_new: bool,
    /// How many of its messages became entries.
    pub entries: usize,
    /// How many of its branches became forks.
    pub forks: usize,
    /// How many of its messages were there already.
    pub known: usize,
    /// Messages that cannot be entries, by their place, and why. What answers one of them answers what it answered.
    pub refused: Vec<(usize, Error)>,
}

impl Conversations {
    /// Brings a transcript in, or what of it is not there yet. An id that was deleted is never used again.
    pub async fn import(&self, caller: &Caller, transcript: Transcript) -> Result<Imported> {
        let (transcript, refused) = acceptable(transcript, self.cx.settings.max_content_bytes);
        let transcript = Arc::new(transcript);
        let (looked, looker) = (transcript.clone(), caller.clone());
        let foreseen = self
            .cx
            .store
            .read(caller.tenant(), "look_for_imported", move |tx| look(tx, &looker, &looked))
            .await?;
        // Mostly it is all there, and then there is no reason to analyse what was said.
        if !foreseen.is_new && foreseen.entries == 0 {
            return Ok(Imported { refused, ..foreseen });
        }
        let now = self.cx.clock.now();
        let nodes = nodes(&transcript, now);
        let said = transcript.messages.iter().zip(transcript::times(&nodes));
        let checked: Result<Vec<Checked>> =
            said.map(|(message, at)| self.check_message(caller, message, at)).collect();
        let work = Arc::new(Work {
            checked: checked?,
            nodes,
            new_group: GroupId(self.cx.clock.new_id()),
            now,
            caller: caller.clone(),
            transcript,
        });
        let imported =
            self.cx.store.write(caller.tenant(), "import_conversation", move |tx| work.carry_out(tx)).await?;
        Ok(Imported { refused, ..imported })
    }

    fn check_message(&self, caller: &Caller, message: &Message, at: Timestamp) -> Result<Checked> {
        let request = AppendRequest {
            channel: Some(Channel::History),
            content_type: Some("history".to_owned()),
            content: Some(message.content.clone()),
            ..AppendRequest::default()
        };
        let checked = self.check_append(caller, request)?;
        Ok(Checked { said_at: Some(at), ..checked })
    }
}

/// What would become of a transcript, by what a reader of the store sees; without one, in a store that has nothing.
pub fn foresee(
    tx: Option<&mut dyn Tx>,
    caller: &Caller,
    transcript: Transcript,
    max_content_bytes: usize,
) -> Result<Imported> {
    let (transcript, refused) = acceptable(transcript, max_content_bytes);
    let foreseen = match tx {
        Some(tx) => look(tx, caller, &transcript)?,
        None => to_do(&transcript, &HashMap::new(), true),
    };
    Ok(Imported { refused, ..foreseen })
}

/// What is to be done in a store as it is.
fn look(tx: &mut dyn Tx, caller: &Caller, transcript: &Transcript) -> Result<Imported> {
    let Some(access) = open_existing::<AsWriter>(tx, caller, transcript.id)? else {
        return Ok(to_do(transcript, &HashMap::new(), true));
    };
    Ok(to_do(transcript, &entries::places(tx, access.group())?, false))
}

fn to_do(transcript: &Transcript, stored: &HashMap<EntryId, Stored>, is_new: bool) -> Imported {
    // Which time it is makes no difference to how much there is to do.
    let nodes = nodes(transcript, Timestamp::from_micros(0));
    outcome(transcript, &transcript::plan(transcript.id, &nodes, stored), is_new)
}

fn outcome(transcript: &Transcript, steps: &[TranscriptStep], is_new: bool) -> Imported {
    Imported {
        is_new,
        entries: steps.len(),
        forks: steps.iter().filter(|step| step.forks).count(),
        known: transcript.messages.len() - steps.len(),
        refused: Vec::new(),
    }
}

/// The transcript without the messages that no entry can hold, and those.
fn acceptable(mut transcript: Transcript, max_bytes: usize) -> (Transcript, Vec<(usize, Error)>) {
    let (mut kept, mut refused) = (Vec::with_capacity(transcript.messages.len()), Vec::new());
    // Where each message went: its new place, or that of the last one above it that has one.
    let mut moved: Vec<Option<usize>> = Vec::with_capacity(transcript.messages.len());
    let mut seen = HashSet::new();
    for (place, mut message) in transcript.messages.into_iter().enumerate() {
        message.parent = message.parent.and_then(|parent| moved.get(parent).copied().flatten());
        let verdict =
            check_content(&message.content, max_bytes, 1).and_then(|()| match seen.insert(message.id) {
                true => Ok(()),
                false => Err(Error::conflict("another message of the conversation has the same id")),
            });
        match verdict {
            Ok(()) => {
                moved.push(Some(kept.len()));
                kept.push(message);
            }
            Err(error) => {
                moved.push(message.parent);
                refused.push((place, error));
            }
        }
    }
    transcript.messages = kept;
    (transcript, refused)
}

/// The messages by their places. A message without a time was said with the one it answers, or when it all began.
fn nodes(transcript: &Transcript, now: Timestamp) -> Vec<Node> {
    let began = transcript.messages.iter().filter_map(|message| message.at).min();
    let began = transcript.created_at.or(began).unwrap_or(now);
    let node = |message: &Message| Node {
        entry: message.id,
        parent: message.parent,
        current: message.current,
        at: message.at.unwrap_or(began),
        branch: message.branch,
    };
    transcript.messages.iter().map(node).collect()
}

/// A transcript that was checked, on its way into the store.
struct Work {
    transcript: Arc<Transcript>,
    nodes: Vec<Node>,
    checked: Vec<Checked>,
    caller: Caller,
    new_group: GroupId,
    now: Timestamp,
}

impl Work {
    fn carry_out(&self, tx: &mut dyn Tx) -> Result<Imported> {
        let root = self.transcript.id;
        tx.lock(root.0.as_bytes())?;
        let is_new = self.make_root(tx)?;
        let access = open::<AsWriter>(tx, &self.caller, root)?;
        let group = access.group();
        let mut stored = if is_new { HashMap::new() } else { entries::places(tx, group)? };
        let steps = transcript::plan(root, &self.nodes, &stored);
        let owner = groups::lock(tx, group)?.ok_or_else(|| not_found(root))?.owner;
        let mut views = HashMap::new();
        // A conversation gets a title from the first of its entries, if it has none.
        let mut begun: HashSet<ConversationId> = stored.values().map(|place| place.conversation).collect();
        for step in &steps {
            let (node, checked) = (&self.nodes[step.node], &self.checked[step.node]);
            if step.forks {
                let answered = node.parent.map(|parent| self.nodes[parent].entry);
                let place = answered.and_then(|entry| stored.get(&entry)).copied();
                let left = place.map_or(root, |place| place.conversation);
                let view = match views.get(&left) {
                    Some(view) => view,
                    None => &*views.entry(left).or_insert(access.to(left, true).view(tx)?),
                };
                let ancestors = view.fork_at(place.map(|place| place.ord + 1));
                let at = checked.said_at.unwrap_or(self.now);
                let at = rows::touch_group(tx, group, step.conversation, at)?;
                let branch = NewFork { id: step.conversation, left: (left, answered), ancestors, at };
                self.fork(tx, &access, &owner, &branch)?;
            }
            let has_history = !begun.insert(step.conversation);
            let here = access.to(step.conversation, has_history);
            let entry = append_history(tx, &self.caller, &here, node.entry, checked, self.now)?;
            stored.insert(node.entry, Stored { conversation: step.conversation, ord: entry.ord });
        }
        Ok(outcome(&self.transcript, &steps, is_new))
    }

    /// Makes the first conversation of the tree, unless it is there; says whether it did.
    fn make_root(&self, tx: &mut dyn Tx) -> Result<bool> {
        let (tenant, owner, id) = (self.caller.tenant(), &self.caller.user, self.transcript.id);
        let began = self.transcript.created_at.or(self.nodes.iter().map(|node| node.at).min());
        let began = began.unwrap_or(self.now);
        let title = self.transcript.title.as_deref().and_then(shortened);
        let nothing = empty_object()?;
        let new = NewConversation {
            id,
            group: self.new_group,
            owner,
            title: title.as_deref(),
            metadata: self.transcript.metadata.as_ref().unwrap_or(&nothing),
            lineage: None,
            now: began,
        };
        create_root(tx, tenant, &new, self.now)
    }

    /// Makes the conversation that begins with a message, as a fork that sees what the message answers.
    fn fork(
        &self,
        tx: &mut dyn Tx,
        access: &Access<AsWriter>,
        owner: &UserId,
        branch: &NewFork,
    ) -> Result<()> {
        let (tenant, group) = (access.tenant(), access.group());
        if branch.ancestors.len() > MAX_DEPTH {
            let message = format!("its branches leave each other more than {MAX_DEPTH} times");
            return Err(Error::bad_request(message));
        }
        let title = rows::title(tx, tenant, branch.left.0)?;
        let new = NewConversation {
            id: branch.id,
            group,
            owner,
            title: title.as_deref(),
            metadata: &empty_object()?,
            lineage: Some(branch.left),
            now: branch.at,
        };
        if !rows::insert_if_absent(tx, tenant, &new)? {
            return Err(Error::conflict("another conversation has the id of one of its branches"));
        }
        ancestry::insert(tx, group, branch.id, &branch.ancestors)?;
        let user = Some(&self.caller.user);
        publish(tx, tenant, ChangeKind::ConversationCreated, user, branch.id, self.now)
    }
}

/// A fork to be made.
struct NewFork {
    id: ConversationId,
    /// The conversation it leaves, and the last entry it shares with it.
    left: (ConversationId, Option<EntryId>),
    ancestors: Vec<Segment>,
    at: Timestamp,
}

/// A title as the store takes it: not longer than titles may be, blank is none.
fn shortened(title: &str) -> Option<String> {
    let title: String = title.chars().filter(|one| *one != '\0').take(MAX_TITLE_CHARS).collect();
    (!title.trim().is_empty()).then_some(title)
}
