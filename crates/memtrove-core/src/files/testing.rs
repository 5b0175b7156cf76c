//! How the tests of the files rules look at refusals.

use crate::{Error, Result};
use std::fmt::Debug;

/// The code of the refusal this has to be.
pub(super) fn code<T: Debug>(result: Result<T>) -> &'static str {
    result.expect_err("a refusal").code.as_str()
}

/// A detail of a refusal.
pub(super) fn detail(error: &Error, name: &str) -> Option<String> {
    error.details[name].as_str().map(str::to_owned)
}
