//! Attachments on both engines: their life, what linking means, and that no byte outlives its record for long.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "attachments/admin.rs"]
mod admin;
#[path = "attachments/cleanup.rs"]
mod cleanup;
#[path = "attachments/fetching.rs"]
mod fetching;
#[path = "attachments/forgetting.rs"]
mod forgetting;
#[path = "attachments/life.rs"]
mod life;
#[path = "attachments/linking.rs"]
mod linking;
#[path = "attachments/links.rs"]
mod links;
#[path = "attachments/sealed.rs"]
mod sealed;
#[path = "attachments/setting.rs"]
mod setting;
#[path = "attachments/sharing.rs"]
mod sharing;

/// Each behaviour as a test on SQLite and one on PostgreSQL.
macro_rules! on_both_engines {
    ($($behaviour:ident),* $(,)?) => {
        mod on_sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $behaviour() {
                super::$behaviour(crate::setting::Engine::Sqlite).await;
            })*
        }
        mod on_postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $behaviour() {
                super::$behaviour(crate::setting::Engine::Postgres).await;
            })*
        }
    };
}
pub(crate) use on_both_engines;
