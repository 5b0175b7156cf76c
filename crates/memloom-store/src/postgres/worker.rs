//! A thread of the pool: runs units of work on its connection, again where that helps.

use super::connection::Session;
use super::failure::{Failure, Remedy};
use super::follower::Bell;
use super::tx::{Committed, PostgresTx};
use super::{PostgresConfig, Work};
use crate::StoreError;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// How often a unit of work is run again because another one came first. Each time at least one of those was successful.
const TRIES: u32 = 30;
/// How often a violated constraint may be somebody else's doing.
const CONSTRAINT_TRIES: u32 = 3;
/// For how long a lost connection is made anew before the unit of work is given up.
const RECONNECTING: Duration = Duration::from_secs(2);
/// The first pause between two attempts; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// After a failure to connect, nobody tries for so long: what comes meanwhile is refused at once.
const REST: Duration = Duration::from_millis(500);

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Reader,
    Writer,
}

pub(super) struct Worker {
    role: Role,
    config: PostgresConfig,
    schema: Option<&'static str>,
    session: Option<Session>,
    bell: Option<Bell>,
    /// When connecting was given up last, and why.
    refused: Option<(Instant, StoreError)>,
}

/// What became of one run.
enum Ran {
    Done(Result<(), StoreError>),
    Again(Failure),
}

impl Worker {
    pub(super) fn new(
        role: Role,
        config: PostgresConfig,
        schema: Option<&'static str>,
        session: Option<Session>,
        bell: Option<Bell>,
    ) -> Self {
        Self { role, config, schema, session, bell, refused: None }
    }

    /// Runs a unit of work to its end and answers it.
    pub(super) fn run(&mut self, mut job: Work) {
        let (mut tries, mut pause, started) = (0, FIRST_PAUSE, Instant::now());
        let outcome = loop {
            tries += 1;
            let failure = match self.attempt(&mut job) {
                Ran::Done(outcome) => break outcome,
                Ran::Again(failure) => failure,
            };
            match failure.remedy {
                Remedy::RunAgain if tries < TRIES => {
                    metrics::counter!("memory_store_retries_total", "reason" => "conflict").increment(1);
                    std::thread::sleep(jitter(Duration::from_micros(500) * tries));
                }
                Remedy::RunAgainOnce if tries < CONSTRAINT_TRIES => {
                    metrics::counter!("memory_store_retries_total", "reason" => "constraint").increment(1);
                }
                Remedy::Reconnect if started.elapsed() < RECONNECTING => {
                    metrics::counter!("memory_store_retries_total", "reason" => "connection").increment(1);
                    std::thread::sleep(jitter(pause));
                    pause *= 2;
                }
                Remedy::Reconnect => {
                    self.refused = Some((Instant::now(), failure.error.clone()));
                    break Err(failure.error);
                }
                _ => break Err(failure.error),
            }
        };
        job.finish(outcome);
    }

    fn attempt(&mut self, job: &mut Work) -> Ran {
        if let Err(failure) = self.connect() {
            return if failure.remedy == Remedy::None {
                Ran::Done(Err(failure.error))
            } else {
                Ran::Again(failure)
            };
        }
        let Some(session) = &mut self.session else {
            return Ran::Done(Err(StoreError::Broken("a connection is not there".into())));
        };
        let mut tx = PostgresTx::new(session, &self.config.vault, self.role == Role::Writer);
        let Ok(kept) = catch_unwind(AssertUnwindSafe(|| job.run(&mut tx))) else {
            tracing::error!("a unit of work panicked; it was undone");
            tx.roll_back();
            return Ran::Done(Err(StoreError::Broken("the unit of work panicked".into())));
        };
        if let Some(failure) = tx.failure() {
            tx.roll_back();
            return self.failed(failure);
        }
        if !kept {
            tx.roll_back();
            return Ran::Done(Ok(()));
        }
        match tx.commit() {
            Committed::Yes { told } => {
                if let Some(bell) = self.bell.as_ref().filter(|_| told) {
                    bell.ring();
                }
                Ran::Done(Ok(()))
            }
            Committed::No(failure) => self.failed(failure),
            Committed::Unknown => {
                self.session = None;
                Ran::Done(Err(StoreError::Unavailable(
                    "the connection to the database was lost during the commit: look whether it was written, or repeat it \
                     with the same Idempotency-Key"
                        .into(),
                )))
            }
        }
    }

    fn failed(&mut self, failure: Failure) -> Ran {
        match failure.remedy {
            Remedy::None => Ran::Done(Err(failure.error)),
            Remedy::Reconnect => {
                self.session = None;
                Ran::Again(failure)
            }
            Remedy::RunAgain | Remedy::RunAgainOnce => Ran::Again(failure),
        }
    }

    fn connect(&mut self) -> Result<(), Failure> {
        if self.session.as_mut().is_some_and(Session::is_open) {
            return Ok(());
        }
        self.session = None;
        if let Some((at, error)) = &self.refused
            && at.elapsed() < REST
        {
            return Err(Failure::new(error.clone(), Remedy::None));
        }
        match Session::connect(&self.config, self.schema) {
            Ok(session) => {
                metrics::counter!("memory_store_connections_total").increment(1);
                self.session = Some(session);
                Ok(())
            }
            Err(error) => {
                tracing::warn!(%error, "cannot connect to the database");
                Err(Failure::new(error, Remedy::Reconnect))
            }
        }
    }
}

/// Somewhat more or less, so that those who met do not meet again.
fn jitter(pause: Duration) -> Duration {
    pause / 2 + pause.mul_f64(rand::random::<f64>())
}
