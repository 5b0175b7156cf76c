//! Locators on a Redis server.

use super::{Locator, Notice, RecordingKey};
use crate::StoreError;
use memtrove_core::ConversationId;
use memtrove_core::identity::Tenant;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{Client, FromRedisValue, Pipeline, RedisError};
use std::collections::{HashMap, HashSet};
use std::time::Duration;
use uuid::Uuid;

/// How long it may take to connect, and to be answered.
const PATIENCE: Duration = Duration::from_secs(2);
/// Removes a locator that is as it was told.
const REMOVE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

/// Makes locators last that are as they were told, and says which are. The first key is the mark of the node; the first
/// argument is for how long. If the mark is gone, so may be others, and those are told again.
const CONFIRM: &str = "
local is_known = redis.call('EXISTS', KEYS[1]) == 1
redis.call('SET', KEYS[1], '', 'PX', ARGV[1])
local confirmed = {}
for i = 2, #KEYS do
    local found = redis.call('GET', KEYS[i])
    if found == ARGV[i] then
        redis.call('PEXPIRE', KEYS[i], ARGV[1])
        confirmed[i - 1] = 1
    elseif not found and not is_known then
        redis.call('SET', KEYS[i], ARGV[i], 'PX', ARGV[1])
        confirmed[i - 1] = 1
    else
        confirmed[i - 1] = 0
    end
end
return confirmed";

/// A Redis server that nodes share. Its one connection is made when it is first needed, and again whenever it is lost.
#[derive(Clone)]
pub(super) struct RedisLocators {
    connection: ConnectionManager,
}

impl RedisLocators {
    pub(super) fn new(url: &str) -> Result<Self, StoreError> {
        let connection = Client::open(url)
            .and_then(|client| ConnectionManager::new_lazy_with_config(client, patience(1)))
            .map_err(unavailable)?;
        Ok(Self { connection })
    }

    pub(super) async fn tell(&self, notices: &[Notice], ttl: Duration) -> Result<(), StoreError> {
        let mut commands = redis::pipe();
        for notice in notices {
            match notice {
                Notice::Begun(key, locator) => {
                    commands.cmd("SET").arg(name(key)).arg(locator.to_string()).arg("PX").arg(millis(ttl))
                }
                Notice::Ended(key, locator) => {
                    commands.cmd("EVAL").arg(REMOVE).arg(1).arg(name(key)).arg(locator.to_string())
                }
            }
            .ignore();
        }
        self.ask(&commands).await
    }

    pub(super) async fn confirm(
        &self,
        node: Uuid,
        held: &[(RecordingKey, Locator)],
        ttl: Duration,
    ) -> Result<HashSet<Uuid>, StoreError> {
        let mut commands = redis::pipe();
        commands.cmd("EVAL").arg(CONFIRM).arg(held.len() + 1).arg(format!("memtrove-node:{node}"));
        held.iter().for_each(|(key, _)| _ = commands.arg(name(key)));
        commands.arg(millis(ttl));
        held.iter().for_each(|(_, locator)| _ = commands.arg(locator.to_string()));
        let (confirmed,): (Vec<u8>,) = self.ask(&commands).await?;
        let lost = held.iter().zip(confirmed).filter(|(_, confirmed)| *confirmed == 0);
        Ok(lost.map(|((_, locator), _)| locator.recording).collect())
    }

    pub(super) async fn find(
        &self,
        tenant: &Tenant,
        ids: &[ConversationId],
    ) -> Result<HashMap<ConversationId, Locator>, StoreError> {
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let mut commands = redis::pipe();
        commands.cmd("MGET");
        ids.iter().for_each(|id| {
            _ = commands.arg(name(&RecordingKey { tenant: tenant.clone(), conversation: *id }))
        });
        let (found,): (Vec<Option<Vec<u8>>>,) = self.ask(&commands).await?;
        let locators = ids.iter().zip(found).filter_map(|(id, found)| {
            let found = found?;
            Locator::believed(*id, std::str::from_utf8(&found).ok().and_then(Locator::parse))
        });
        Ok(locators.collect())
    }

    /// Runs commands, once more if the connection was lost over them: servers close those that were idle, and every command
    /// here may be given twice.
    async fn ask<T: FromRedisValue>(&self, commands: &Pipeline) -> Result<T, StoreError> {
        let mut connection = self.connection.clone();
        match commands.query_async(&mut connection).await {
            Err(error) if error.is_connection_dropped() => {
                commands.query_async(&mut connection).await.map_err(unavailable)
            }
            answer => answer.map_err(unavailable),
        }
    }
}

/// Asks the Redis server at this URL which version it is: for people who want to know whether it answers.
pub async fn probe(url: &str) -> Result<String, StoreError> {
    let client = Client::open(url).map_err(unavailable)?;
    let asked = async {
        let mut connection = ConnectionManager::new_with_config(client, patience(0)).await?;
        redis::cmd("INFO").arg("server").query_async::<String>(&mut connection).await
    };
    let late = |_| StoreError::Unavailable("redis: no answer".into());
    let told = tokio::time::timeout(PATIENCE * 2, asked).await.map_err(late)?.map_err(unavailable)?;
    let line = |name: &str| told.lines().find_map(|line| line.strip_prefix(name));
    Ok(match line("valkey_version:").or_else(|| line("redis_version:")) {
        Some(version) if line("valkey_version:").is_some() => format!("Valkey {version}"),
        Some(version) => format!("Redis {version}"),
        None => "Redis".to_owned(),
    })
}

fn patience(retries: usize) -> ConnectionManagerConfig {
    ConnectionManagerConfig::new()
        .set_connection_timeout(Some(PATIENCE))
        .set_response_timeout(Some(PATIENCE))
        .set_number_of_retries(retries)
}

/// Where the locator of a conversation is.
fn name(key: &RecordingKey) -> String {
    format!("memtrove:{}:response:{}", key.tenant.as_str(), key.conversation)
}

fn millis(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX).max(1)
}

fn unavailable(error: RedisError) -> StoreError {
    StoreError::Unavailable(format!("redis: {error}"))
}
