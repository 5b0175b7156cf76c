//! Attachments on both engines: their life, what linking means, and that no byte outlives its record for long.

mod admin;
mod cleanup;
mod fetching;
mod forgetting;
mod life;
mod linking;
mod links;
mod sealed;
mod setting;
mod sharing;

/// Each behaviour as a test on SQLite and one on PostgreSQL.
macro_rules! on_both_engines {
    ($($behaviour:ident),* $(,)?) => {
        mod on_sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $behaviour() {
                super::$behaviour(crate::attaching::setting::Engine::Sqlite).await;
            })*
        }
        mod on_postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $behaviour() {
                super::$behaviour(crate::attaching::setting::Engine::Postgres).await;
            })*
        }
    };
}
pub(crate) use on_both_engines;
