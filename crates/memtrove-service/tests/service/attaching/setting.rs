//! The service on an engine, with a directory for the bytes and a clock to wind.

use bytes::Bytes;
use futures_util::TryStreamExt;
use memtrove_blobs::Blobs;
use memtrove_core::conversations::{AccessLevel, Channel, Entry};
use memtrove_core::identity::{
    Caller, Credentials, IdentityPolicy, Principal, RoleGrant, Trust, VerifiedUser, resolve,
};
use memtrove_core::{AttachmentId, Clock, Code, ConversationId, EntryId, Error, Json, Result};
use memtrove_service::attachments::{Attachment, NewAttachment};
use memtrove_service::conversations::{AppendRequest, MemberLevel};
use memtrove_service::{AttachmentSettings, Services, Settings};
use memtrove_store::postgres::{PostgresConfig, PostgresEngine};
use memtrove_store::sqlite::{SqliteConfig, SqliteEngine};
use memtrove_store::vault::Vault;
use memtrove_store::{AllTenants, Store, TxExt};
use memtrove_testkit::clock::TestClock;
use memtrove_testkit::postgres::Database;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub const SECOND: i64 = 1_000_000;
pub const MINUTE: i64 = 60 * SECOND;
pub const HOUR: i64 = 60 * MINUTE;
pub const DAY: i64 = 24 * HOUR;

#[derive(Debug, Clone, Copy)]
pub enum Engine {
    Sqlite,
    Postgres,
}

pub struct Setting {
    pub services: Services,
    pub store: Store,
    pub clock: Arc<TestClock>,
    pub blobs: Blobs,
    pub folder: tempfile::TempDir,
    database: Option<Arc<Database>>,
}

impl Setting {
    pub async fn new(engine: Engine) -> Self {
        Self::with(engine, Vault::plain(), |_| {}).await
    }

    pub async fn with(engine: Engine, vault: Vault, change: impl FnOnce(&mut AttachmentSettings)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let database = match engine {
            Engine::Sqlite => None,
            Engine::Postgres => Some(Database::fresh()),
        };
        Self::open(folder, database, Arc::new(TestClock::new()), vault, change).await
    }

    async fn open(
        folder: tempfile::TempDir,
        database: Option<Arc<Database>>,
        clock: Arc<TestClock>,
        vault: Vault,
        change: impl FnOnce(&mut AttachmentSettings),
    ) -> Self {
        let vault = Arc::new(vault);
        let store = match &database {
            None => {
                let path = folder.path().join("memtrove.db");
                let config = SqliteConfig { path, vault, readers: 2, ..SqliteConfig::default() };
                Store::new(Arc::new(SqliteEngine::open(config).unwrap()))
            }
            Some(database) => {
                let config = PostgresConfig { vault, ..database.config() };
                Store::new(Arc::new(PostgresEngine::open(config).unwrap()))
            }
        };
        let blobs = Blobs::directory(folder.path().join("blobs")).unwrap();
        let mut attachments =
            AttachmentSettings { blobs: Some(blobs.clone()), ..AttachmentSettings::default() };
        change(&mut attachments);
        let settings =
            Settings { attachments, eviction_batch_delay: std::time::Duration::ZERO, ..Settings::default() };
        let services = Services::new(store.clone(), clock.clone(), settings).await.unwrap();
        Self { services, store, clock, blobs, folder, database }
    }

    /// The same store and the same bytes after a restart.
    pub async fn reopened(self, vault: Vault) -> Self {
        let Self { services, store, clock, folder, database, .. } = self;
        drop(services);
        tokio::task::spawn_blocking(move || store.close()).await.unwrap();
        Self::open(folder, database, clock, vault, |_| {}).await
    }

    pub async fn upload(&self, user: &str, bytes: &'static [u8]) -> Attachment {
        let new = NewAttachment {
            filename: Some("cat.png".into()),
            content_type: Some("image/png".into()),
            ..NewAttachment::default()
        };
        self.upload_as(user, new, bytes).await.unwrap()
    }

    pub async fn upload_as(
        &self,
        user: &str,
        new: NewAttachment,
        bytes: &'static [u8],
    ) -> Result<Attachment> {
        let mut upload = self.services.attachments.begin(&caller(user), new).await?;
        upload.write(Bytes::from_static(bytes)).await?;
        upload.finish().await
    }

    pub async fn bytes_of(&self, attachment: &Attachment) -> Result<Vec<u8>> {
        let pieces = self.services.attachments.read(attachment, None).await?;
        Ok(pieces.try_collect::<Vec<Bytes>>().await?.concat())
    }

    /// Appends an entry that names attachments by their ids.
    pub async fn say(&self, user: &str, to: ConversationId, named: &[AttachmentId]) -> Result<Entry> {
        self.services.conversations.append(&caller(user), to, naming(named), None).await
    }

    pub async fn start(&self, user: &str) -> ConversationId {
        let id = ConversationId(self.clock.new_id());
        self.say(user, id, &[]).await.unwrap();
        id
    }

    pub async fn invite(&self, host: &str, to: ConversationId, guest: &str, level: AccessLevel) {
        let guest = MemberLevel::share(Some(guest.into()), Some(level)).unwrap();
        self.services.conversations.share(&caller(host), to, guest).await.unwrap();
    }

    /// The records there are, deleted ones too.
    pub async fn records(&self) -> i64 {
        self.count("SELECT COUNT(*) FROM attachments").await
    }

    pub async fn count(&self, sql: &'static str) -> i64 {
        let count = move |tx: &mut dyn memtrove_store::Tx| {
            Ok::<_, Error>(tx.first(sql, &[], |row| row.int(0))?.unwrap_or_default())
        };
        self.store.read(AllTenants, "test", count).await.unwrap()
    }

    /// Waits for the commit after which a query counts so many.
    pub async fn until(&self, sql: &'static str, wanted: i64) {
        let mut commits = self.store.commits();
        while self.count(sql).await != wanted {
            let next = tokio::time::timeout(std::time::Duration::from_secs(20), commits.changed());
            next.await.expect("a commit").unwrap();
        }
    }

    /// Every file in the directory of the bytes, whole or not.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        files_below(&self.folder.path().join("blobs"), &mut found);
        found
    }

    pub fn has_bytes(&self, attachment: &Attachment) -> bool {
        self.folder.path().join("blobs").join(&attachment.storage_key).exists()
    }

    pub async fn clean_up(&self) {
        self.services.run_due_tasks().await.unwrap();
    }
}

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files_below(&path, found) } else { found.push(path) }
    }
}

pub fn naming(named: &[AttachmentId]) -> AppendRequest {
    let attachments: Vec<Value> = named.iter().map(|id| json!({ "attachmentId": id })).collect();
    let content = json!([{"role": "USER", "text": "look", "attachments": attachments}]);
    AppendRequest {
        channel: Some(Channel::History),
        content_type: Some("history".into()),
        content: Some(Json::of(&content).unwrap()),
        ..AppendRequest::default()
    }
}

/// As [`naming`], forking a conversation at an entry.
pub fn forking(parent: ConversationId, at: EntryId, named: &[AttachmentId]) -> AppendRequest {
    AppendRequest { forked_at_conversation_id: Some(parent), forked_at_entry_id: Some(at), ..naming(named) }
}

/// The attachments that stored content refers to.
pub fn referred(entry: &Entry) -> Vec<AttachmentId> {
    let content = entry.content.value().unwrap();
    let attachments = content[0]["attachments"].as_array().unwrap().iter();
    let id = |attachment: &Value| {
        assert_eq!(attachment.get("attachmentId"), None, "{attachment}");
        let id = attachment["href"].as_str().unwrap().strip_prefix("/v1/attachments/").unwrap();
        AttachmentId(memtrove_core::parse_uuid(id).unwrap())
    };
    attachments.map(id).collect()
}

pub fn caller(user: &str) -> Caller {
    principal(user).into_caller().unwrap()
}

/// A user of the default tenant, through an agent.
pub fn agent(user: &str) -> Caller {
    let mut caller = caller(user);
    caller.client = Some("agent".into());
    caller
}

/// A user of the default tenant, or of the one after the `@`; `admin` is an admin and `auditor` an auditor.
pub fn principal(user: &str) -> Principal {
    let (id, tenant) = user.split_once('@').map_or((user, "default"), |(user, tenant)| (user, tenant));
    let only = |user: &str| RoleGrant { users: HashSet::from([user.to_owned()]), ..RoleGrant::default() };
    let policy = IdentityPolicy {
        default_tenant: "default".into(),
        trust: Trust::EveryClient,
        admin: only("admin"),
        auditor: only("auditor"),
        indexer: RoleGrant::default(),
        reader: None,
        writer: None,
    };
    let user = VerifiedUser { id: id.into(), tenant: Some(tenant.into()), ..VerifiedUser::default() };
    resolve(Credentials { user: Some(user), ..Credentials::default() }, &policy).unwrap()
}

/// What kind of error it is, for tables of outcomes.
pub fn outcome<T>(result: Result<T>) -> &'static str {
    match result {
        Ok(_) => "ok",
        Err(Error { code: Code::NotFound, .. }) => "not found",
        Err(Error { code: Code::Forbidden, .. }) => "forbidden",
        Err(Error { code: Code::AttachmentLinked, .. }) => "linked",
        Err(Error { code: Code::UploadInProgress, .. }) => "in progress",
        Err(Error { code: Code::DownloadFailed, .. }) => "failed",
        Err(Error { code: Code::FileTooLarge, .. }) => "too large",
        Err(Error { code: Code::Invalid, .. }) => "invalid",
        Err(Error { code: Code::BadRequest, .. }) => "bad request",
        Err(Error { code: Code::Conflict, .. }) => "conflict",
        Err(other) => panic!("{other:?}"),
    }
}
