//! How the tests of the files rules look at refusals.

use crate::{Error, Result};
use std::fmt::Debug;

/// The code of the refusal this has to be.
pub(super) fn code<T: Debug>(result: Result<T>) -> &'static str {
    match result {
        Err(Error::Refused(refusal)) => refusal.code.as_str(),
        other => panic!("expected a refusal, got {other:?}"),
    }
}

/// A detail of a refusal.
pub(super) fn detail(error: &Error, name: &str) -> Option<String> {
    match error {
        Error::Refused(refusal) => refusal.details.get(name)?.as_str().map(str::to_owned),
        other => panic!("expected a refusal, got {other:?}"),
    }
}
