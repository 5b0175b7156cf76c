//! The Redis where nodes note who records which response.

use super::Check;
use crate::config::Config;
use memtrove_service::recorder::RecorderBackend;
use memtrove_store::locators;

const NAME: &str = "redis";

/// Whether it answers, where one is used. An address that is none is told about with the configuration.
pub(super) async fn check(config: &Config) -> Option<Check> {
    if config.problems().iter().any(|problem| problem.key == "redis.url") {
        return None;
    }
    let RecorderBackend::Redis(url) = config.recorder.settings(&config.redis).backend else { return None };
    let shown = config.redis.url.as_ref()?;
    Some(match locators::probe(&url).await {
        Ok(version) => Check::ok(NAME, format!("{version} answers at {shown}")),
        // A server starts all the same, and everything but recordings works without it.
        Err(error) => Check::advice(
            NAME,
            format!("{shown} does not answer, so no response can be recorded: {error}"),
            "check redis.url (host, port, password), and that this machine can reach it",
        ),
    })
}
