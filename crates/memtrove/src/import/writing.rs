//! From records to the store, through the functions that everybody calls.

use super::format::Format;
use super::reading::SourceRecords;
use super::record::{Conversation, Document, Message, Record, Remembered, Speaker, Stated};
use super::report::Outcome;
use memtrove_core::files::{FilePath, FilePrecondition, Reasons, ScopedCaller, envelope};
use memtrove_core::identity::{
    Caller, Credentials, IdentityPolicy, Principal, RoleGrant, Trust, VerifiedClient, resolve,
};
use memtrove_core::memories::{
    AddMemory, Fact, GivenMetadata, Identifier, Identifiers, Kind, Layer, MemoryCaller, MemoryId,
};
use memtrove_core::{
    Code, ConversationId, Details, EntryId, Error, ErrorKind, Json, Result, Timestamp, derived_uuid,
    legacy_labels,
};
use memtrove_service::conversations::import as transcripts;
use memtrove_service::conversations::import::Transcript;
use memtrove_service::files::PutFile;
use memtrove_service::memories::import as keepsakes;
use memtrove_service::memories::import::{Fate, Keepsake};
use memtrove_service::{Services, Settings};
use memtrove_store::Tx;
use memtrove_store::files::documents;
use serde_json::{Map, Value, json};

/// Who brings it in, as entries, memories and the audit trail say.
const CLIENT: &str = "import";
/// The schema of files that name no other: the contract's word for it.
const SCHEMA: (&str, &str) = ("memnet.file", "1.0.0");
/// How much of a text is shown.
const SHOWN_CHARS: usize = 60;

/// Whose everything becomes, and under which ids.
#[derive(Debug, Clone)]
pub(super) struct Destination {
    pub format: Format,
    pub tenant: String,
    /// Whose it is, where it does not say.
    pub user: Option<String>,
    pub overwrite: bool,
}

/// A record with its place here.
pub(super) enum Placed {
    Conversation { place: String, caller: Caller, transcript: Transcript },
    Memory { place: String, user: Option<String>, keepsake: Box<Keepsake>, is_fact: bool },
    File { place: String, caller: Box<ScopedCaller>, path: FilePath, document: Document },
}

impl Destination {
    /// A caller who may write what is a user's; without a user, what is no user's own.
    pub fn principal(&self, user: Option<&str>) -> Result<Principal> {
        let nobody = RoleGrant::default;
        let policy = IdentityPolicy {
            default_tenant: self.tenant.clone(),
            trust: Trust::EveryClient,
            admin: nobody(),
            auditor: nobody(),
            indexer: nobody(),
            reader: None,
            writer: None,
        };
        let credentials = Credentials {
            user: None,
            client: Some(VerifiedClient { id: CLIENT.to_owned(), tenant: None }),
            asserted_user: user.map(str::to_owned),
            asserted_tenant: None,
        };
        resolve(credentials, &policy)
    }

    /// Who writes memories. A process that opens the store needs none of the roles of `memories.write_roles`, and brings what
    /// every agent kept, whatever `memories.bind_agent_id` says.
    fn importer(&self, user: Option<&str>) -> Result<MemoryCaller> {
        Ok(MemoryCaller::enter(&self.principal(user)?, CLIENT.to_owned()))
    }

    /// Gives everything that was found in one place its place here.
    pub fn place_all(
        &self,
        found: SourceRecords,
        now: Timestamp,
    ) -> Vec<std::result::Result<Placed, Outcome>> {
        let place = found.place;
        match found.records {
            Ok(records) => records.into_iter().map(|record| self.place(&place, record, now)).collect(),
            Err(why) => vec![Err(Outcome::Refused { place, why })],
        }
    }

    /// Gives a record its place, unless it cannot have one.
    fn place(&self, place: &str, record: Record, now: Timestamp) -> std::result::Result<Placed, Outcome> {
        let (user, is_of_something) = match &record {
            Record::Memory(memory) => (
                memory.user.clone().or_else(|| self.user.clone()),
                memory.kept.as_ref().is_some_and(|kept| !kept.entities.is_empty()),
            ),
            Record::Conversation(_) | Record::File(_) => (self.user.clone(), false),
        };
        let placed = match (user, record) {
            (Some(user), record) => self.place_of(place, &user, record, now),
            (None, Record::Memory(memory)) if is_of_something => self.place_memory(place, None, memory, now),
            (None, _) => {
                let why = "it does not say whose it is: add --user".to_owned();
                return Err(Outcome::Refused { place: place.to_owned(), why });
            }
        };
        placed.map_err(|error| Outcome::Refused { place: place.to_owned(), why: reason(&error) })
    }

    fn place_memory(
        &self,
        place: &str,
        user: Option<&str>,
        memory: Remembered,
        now: Timestamp,
    ) -> Result<Placed> {
        // Whether there can be such a user at all.
        self.principal(user)?;
        Ok(Placed::Memory {
            place: place.to_owned(),
            is_fact: memory.fact.is_some(),
            keepsake: Box::new(self.keepsake(user, memory, now)?),
            user: user.map(str::to_owned),
        })
    }

    fn place_of(&self, place: &str, user: &str, record: Record, now: Timestamp) -> Result<Placed> {
        let principal = self.principal(Some(user))?;
        Ok(match record {
            Record::Conversation(conversation) => Placed::Conversation {
                place: place.to_owned(),
                caller: principal.into_caller()?,
                transcript: self.transcript(user, conversation)?,
            },
            Record::Memory(memory) => return self.place_memory(place, Some(user), memory, now),
            Record::File(document) => Placed::File {
                place: place.to_owned(),
                caller: Box::new(ScopedCaller::enter(
                    &principal,
                    user.to_owned(),
                    Some(CLIENT),
                    CLIENT.to_owned(),
                )?),
                path: FilePath::parse(&document.path)?,
                document,
            },
        })
    }

    /// The id here of what has a name there: another one for everybody who brings it in.
    fn id(&self, user: &str, names: &[&str]) -> uuid::Uuid {
        let format = format!("{:?}", self.format).to_lowercase();
        let ours = [legacy_labels::IMPORTED_ID, &format, &self.tenant, user];
        derived_uuid(&[&ours[..], names].concat())
    }

    fn transcript(&self, user: &str, conversation: Conversation) -> Result<Transcript> {
        let Conversation { source_id, title, created_at, about, messages } = conversation;
        let message = |message: Message| {
            let names = [source_id.as_str(), message.source_id.as_str()];
            Ok(transcripts::Message {
                id: EntryId(self.id(user, &["entry", names[0], names[1]])),
                branch: ConversationId(self.id(user, &["branch", names[0], names[1]])),
                parent: message.parent,
                current: message.current,
                at: message.at,
                content: content(message)?,
            })
        };
        Ok(Transcript {
            id: ConversationId(self.id(user, &["conversation", &source_id])),
            title,
            metadata: Some(json_of(&about)?),
            created_at,
            messages: messages.into_iter().map(message).collect::<Result<_>>()?,
        })
    }

    fn keepsake(&self, user: Option<&str>, memory: Remembered, now: Timestamp) -> Result<Keepsake> {
        let Remembered { source_id, content, fact, metadata, created_at, updated_at, kept, .. } = memory;
        let id = MemoryId(self.id(user.unwrap_or_default(), &["memory", &source_id]));
        if let Some(kept) = kept {
            let add = kept.add(user, now)?;
            return Ok(Keepsake { id, add, created_at, updated_at });
        }
        let mut identifiers = Identifiers::default();
        identifiers.set(Identifier::User, "identifiers.userId", user.unwrap_or_default())?;
        let fact = fact.map(|Stated { fact_type, subject, predicate, object }| Fact {
            fact_type: fact_type.to_owned(),
            subject,
            predicate,
            object,
            confidence: 1.0,
        });
        let content = content.or_else(|| fact.as_ref().map(Fact::render)).unwrap_or_default();
        let add = AddMemory {
            kind: Some(if fact.is_some() { Kind::Procedural } else { Kind::Semantic }),
            metadata: GivenMetadata::new(metadata)?,
            fact,
            ..AddMemory::new(Layer::User, identifiers, content)
        };
        Ok(Keepsake { id, add, created_at, updated_at })
    }
}

/// A message as an entry has it.
fn content(message: Message) -> Result<Json> {
    let mut item = Map::new();
    item.insert("role".to_owned(), if message.role == Speaker::User { "USER" } else { "AI" }.into());
    if !message.text.trim().is_empty() {
        item.insert("text".to_owned(), message.text.into());
    }
    if !message.events.is_empty() {
        item.insert("events".to_owned(), message.events.into());
    }
    json_of(&[item])
}

fn json_of(value: &impl serde::Serialize) -> Result<Json> {
    Json::of(value).map_err(|error| Error::internal(error.to_string()))
}

/// What an import would do, by what a reader of the store sees; without one, in a store that has nothing.
pub(super) struct Foresight<'a> {
    tx: Option<&'a mut dyn Tx>,
    settings: Settings,
    now: Timestamp,
    memories: keepsakes::Foresight,
}

impl<'a> Foresight<'a> {
    pub fn new(tx: Option<&'a mut dyn Tx>, settings: Settings, now: Timestamp) -> Self {
        Self { tx, settings, now, memories: keepsakes::Foresight::default() }
    }

    /// Says what would become of something.
    pub fn of(&mut self, to: &Destination, placed: Placed) -> anyhow::Result<Vec<Outcome>> {
        let tx: Option<&mut dyn Tx> = match &mut self.tx {
            Some(tx) => Some(&mut **tx),
            None => None,
        };
        match placed {
            Placed::Conversation { place, caller, transcript } => {
                foresee_conversation(tx, &self.settings, place, &caller, transcript)
            }
            Placed::File { place, caller, path, document } => {
                foresee_file(tx, place, &caller, &path, &document, to.overwrite).map(|outcome| vec![outcome])
            }
            Placed::Memory { place, user, keepsake, is_fact } => {
                let (caller, rules) = (to.importer(user.as_deref())?, &self.settings.memories.rules);
                let fate = self.memories.foresee(tx, &caller, &keepsake, to.overwrite, rules, self.now);
                remembered(place, &keepsake, is_fact, fate).map(|outcome| vec![outcome])
            }
        }
    }
}

/// Writes a conversation.
pub(super) async fn conversation(
    services: &Services,
    place: String,
    caller: &Caller,
    transcript: Transcript,
) -> anyhow::Result<Vec<Outcome>> {
    let title = title(&transcript);
    outcomes_of(place, title, services.conversations.import(caller, transcript).await)
}

fn foresee_conversation(
    tx: Option<&mut dyn Tx>,
    settings: &Settings,
    place: String,
    caller: &Caller,
    transcript: Transcript,
) -> anyhow::Result<Vec<Outcome>> {
    let title = title(&transcript);
    outcomes_of(place, title, transcripts::foresee(tx, caller, transcript, settings.max_content_bytes))
}

fn title(transcript: &Transcript) -> String {
    transcript.title.as_deref().map_or_else(|| "without a title".to_owned(), shown)
}

fn outcomes_of(
    place: String,
    title: String,
    imported: Result<transcripts::Imported>,
) -> anyhow::Result<Vec<Outcome>> {
    let imported = match imported {
        Ok(imported) => imported,
        Err(error) => return refused(place, error).map(|outcome| vec![outcome]),
    };
    let transcripts::Imported { is_new, entries, forks, known, refused: messages } = imported;
    let mut outcomes = vec![Outcome::Conversation { title, is_new, entries, forks, known }];
    for (message, error) in messages {
        outcomes.push(refused(format!("{place} message {message}"), error)?);
    }
    Ok(outcomes)
}

/// Memories of one user, or of none, with where they were found.
pub(super) struct Batch {
    pub user: Option<String>,
    pub memories: Vec<(String, Keepsake, bool)>,
}

/// Writes memories.
pub(super) async fn memories(
    services: &Services,
    to: &Destination,
    batch: Batch,
) -> anyhow::Result<Vec<Outcome>> {
    let caller = to.importer(batch.user.as_deref())?;
    let items = batch.memories.iter().map(|(_, keepsake, _)| keepsake.clone()).collect();
    let fates = services.memories.import(&caller, items, to.overwrite).await?;
    let outcome = |((place, keepsake, is_fact), fate)| remembered(place, &keepsake, is_fact, fate);
    batch.memories.into_iter().zip(fates).map(outcome).collect()
}

fn remembered(
    place: String,
    keepsake: &Keepsake,
    is_fact: bool,
    fate: Result<Fate>,
) -> anyhow::Result<Outcome> {
    let fate = match fate {
        Ok(fate) => fate,
        Err(error) => return refused(place, error),
    };
    let said = match &keepsake.add.fact {
        Some(Fact { subject, predicate, object, .. }) => format!("{subject} {predicate} {object}"),
        None => keepsake.add.content.clone(),
    };
    Ok(Outcome::Memory { place, said: shown(&said), is_fact, fate })
}

/// Writes a file, unless it is there.
pub(super) async fn file(
    services: &Services,
    place: String,
    caller: &ScopedCaller,
    path: FilePath,
    document: &Document,
    overwrite: bool,
) -> anyhow::Result<Outcome> {
    #[expect(clippy::disallowed_methods, reason = "a command of who has the store in hand")]
    let operator = services.files.admit_operator(caller.clone());
    let stored = match services.files.get(&operator, path.clone()).await {
        Ok(stored) => Some(stored),
        Err(Error { code: Code::DocumentNotFound, .. }) => None,
        Err(error) => return refused(place, error),
    };
    let fate = fate(stored.as_ref().map(|stored| stored.document.as_str()), document, overwrite)?;
    let (envelope, precondition) = match (&stored, fate) {
        (_, Fate::Same | Fate::Kept) => return Ok(Outcome::File { path: path.as_str().to_owned(), fate }),
        (Some(stored), _) => {
            let mut envelope = envelope::stored(&stored.document)?;
            envelope.insert("content".to_owned(), text_of(document));
            (envelope, FilePrecondition::Matches(stored.etag.to_string()))
        }
        (None, _) => (new_envelope(&path, document), FilePrecondition::Star),
    };
    let reasons = Reasons::new(Some("import".to_owned()), None)?;
    let request = PutFile { path: path.clone(), precondition, envelope, reasons, key: None };
    match services.files.put(&operator, request).await {
        Ok(_) => Ok(Outcome::File { path: path.as_str().to_owned(), fate }),
        Err(error) => refused(place, error),
    }
}

fn foresee_file(
    tx: Option<&mut dyn Tx>,
    place: String,
    caller: &ScopedCaller,
    path: &FilePath,
    document: &Document,
    overwrite: bool,
) -> anyhow::Result<Outcome> {
    let stored = match tx {
        Some(tx) => documents::get(tx, &caller.scope, path)?,
        None => None,
    };
    let fate = fate(stored.as_ref().map(|stored| stored.document.as_str()), document, overwrite)?;
    let envelope = new_envelope(path, document);
    // With what the server adds to it, which is no more than this.
    if Value::from(envelope).to_string().chars().count() + 200 > envelope::MAX_CHARS {
        let why = format!("the document has more than {} chars", envelope::MAX_CHARS);
        return Ok(Outcome::Refused { place, why });
    }
    Ok(Outcome::File { path: path.as_str().to_owned(), fate })
}

fn fate(stored: Option<&str>, document: &Document, overwrite: bool) -> Result<Fate> {
    let Some(stored) = stored else { return Ok(Fate::New) };
    let same = envelope::stored(stored)?.get("content").and_then(|content| content.get("text"))
        == Some(&json!(document.text));
    Ok(match (same, overwrite) {
        (true, _) => Fate::Same,
        (false, false) => Fate::Kept,
        (false, true) => Fate::Replaced,
    })
}

fn text_of(document: &Document) -> Value {
    json!({"content_type": "text/markdown", "text": document.text})
}

fn new_envelope(path: &FilePath, document: &Document) -> Map<String, Value> {
    let mut envelope = Map::new();
    envelope.insert(
        "doc_id".to_owned(),
        derived_uuid(&[legacy_labels::IMPORTED_ID, path.as_str()]).to_string().into(),
    );
    envelope.insert("schema_id".to_owned(), SCHEMA.0.into());
    envelope.insert("schema_version".to_owned(), SCHEMA.1.into());
    if let Some(at) = document.created_at {
        envelope.insert("created_at".to_owned(), at.to_string().into());
    }
    envelope.insert("content".to_owned(), text_of(document));
    envelope
}

/// What is wrong with one record; an error if it is not the record that something is wrong with.
fn refused(place: String, error: Error) -> anyhow::Result<Outcome> {
    let of_the_record = match error.kind() {
        ErrorKind::Malformed
        | ErrorKind::Unprocessable
        | ErrorKind::Forbidden
        | ErrorKind::Missing
        | ErrorKind::Conflict
        | ErrorKind::Stale
        | ErrorKind::TooLarge => true,
        _ => matches!(
            error.code,
            Code::QuotaExceeded
                | Code::EmbeddingRefused
                | Code::NotImplemented
                | Code::AzureProviderNotEnabled
                | Code::ConfigurationError
                | Code::ProviderFailed
        ),
    };
    if of_the_record { Ok(Outcome::Refused { place, why: reason(&error) }) } else { Err(error.into()) }
}

fn reason(error: &Error) -> String {
    match (error.code, &error.details) {
        (Code::NotFound, _) => {
            "it was imported and then deleted here: what was deleted is not brought back".to_owned()
        }
        (Code::TooLarge, Details::Bytes { max, .. }) => {
            format!("it is longer than {max} bytes (limits.content_bytes)")
        }
        _ => error.to_string(),
    }
}

/// The beginning of a text, on one line.
fn shown(text: &str) -> String {
    let mut words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = words.char_indices().nth(SHOWN_CHARS) {
        words.truncate(end);
        words.push('…');
    }
    words
}
