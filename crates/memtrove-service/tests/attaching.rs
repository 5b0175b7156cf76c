//! Attachments on both engines: their life, what linking means, and that no byte outlives its record for long.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "attaching/admin.rs"]
mod admin;
#[path = "attaching/cleanup.rs"]
mod cleanup;
#[path = "attaching/fetching.rs"]
mod fetching;
#[path = "attaching/forgetting.rs"]
mod forgetting;
#[path = "attaching/life.rs"]
mod life;
#[path = "attaching/linking.rs"]
mod linking;
#[path = "attaching/links.rs"]
mod links;
#[path = "attaching/sealed.rs"]
mod sealed;
#[path = "attaching/setting.rs"]
mod setting;
#[path = "attaching/sharing.rs"]
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
