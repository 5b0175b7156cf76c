//! Who is let into a scope, and as what.
//!
//! Every operation on one scope takes an [`Admitted`] of the role it needs, and only [`Files`] makes one: a caller that was not
//! asked for its role cannot be passed on. Jobs on a whole tenant are no scope's; they ask the principal themselves.

use super::Files;
use crate::files_metrics;
use crate::quota::CallKind;
use memtrove_core::files::{Code, FileRole, ScopedCaller};
use memtrove_core::{Error, Result};
use std::fmt;
use std::marker::PhantomData;

/// Reads files and events.
#[derive(Debug)]
pub enum Reader {}

/// Changes files, writes events, applies retention.
#[derive(Debug)]
pub enum Writer {}

/// Looks at the audit trail.
#[derive(Debug)]
pub enum Auditor {}

/// Forgets the user.
#[derive(Debug)]
pub enum Forgetter {}

/// What a caller can be admitted as.
pub trait Role: sealed::Role {}

/// A role that may see files: a change is made of what was there before.
pub trait SeesFiles: Role {}

impl<R: sealed::Role> Role for R {}
impl SeesFiles for Reader {}
impl SeesFiles for Writer {}

mod sealed {
    use super::{Auditor, FileRole, Forgetter, Reader, Result, ScopedCaller, Writer};

    pub trait Role {
        const WRITES: bool;
        fn require(caller: &ScopedCaller) -> Result<()>;
    }

    impl Role for Reader {
        const WRITES: bool = false;
        fn require(caller: &ScopedCaller) -> Result<()> {
            caller.require(FileRole::Reader)
        }
    }

    impl Role for Writer {
        const WRITES: bool = true;
        fn require(caller: &ScopedCaller) -> Result<()> {
            caller.require(FileRole::Writer)
        }
    }

    impl Role for Auditor {
        const WRITES: bool = false;
        fn require(caller: &ScopedCaller) -> Result<()> {
            caller.require(FileRole::Auditor)
        }
    }

    impl Role for Forgetter {
        const WRITES: bool = true;
        fn require(caller: &ScopedCaller) -> Result<()> {
            caller.require_to_forget()
        }
    }
}

/// A caller that holds a role in a scope.
///
/// An operation takes the admission of the role it needs:
/// ```
/// use memtrove_service::files::{Admitted, Files, PutFile, Writer};
/// async fn put(files: &Files, admitted: &Admitted<Writer>, request: PutFile) {
///     let _ = files.put(admitted, request).await;
/// }
/// ```
/// No other one:
/// ```compile_fail
/// use memtrove_service::files::{Admitted, Files, PutFile, Reader};
/// async fn put(files: &Files, admitted: &Admitted<Reader>, request: PutFile) {
///     let _ = files.put(admitted, request).await;
/// }
/// ```
/// ```compile_fail
/// use memtrove_service::files::{Admitted, Files, Writer};
/// async fn forget(files: &Files, admitted: &Admitted<Writer>) {
///     let _ = files.forget(admitted).await;
/// }
/// ```
/// And nothing makes one but [`Files::admit`] and [`Files::admit_operator`]:
/// ```compile_fail
/// use memtrove_core::files::ScopedCaller;
/// use memtrove_service::files::{Admitted, Writer};
/// fn forge(caller: ScopedCaller) -> Admitted<Writer> {
///     Admitted { caller, charged: true, role: std::marker::PhantomData }
/// }
/// ```
pub struct Admitted<R> {
    caller: ScopedCaller,
    /// Whether the call was taken off a quota. An operator's is not.
    charged: bool,
    role: PhantomData<fn() -> R>,
}

impl<R> Admitted<R> {
    pub(super) fn caller(&self) -> &ScopedCaller {
        &self.caller
    }
}

impl<R> fmt::Debug for Admitted<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Admitted").field(&self.caller).finish()
    }
}

impl Files {
    /// Lets a caller in: its role, then its quota. The operation that the admission is given to says which role.
    pub async fn admit<R: Role>(&self, caller: ScopedCaller) -> Result<Admitted<R>> {
        if !self.cx.settings.files_enabled {
            let message = "this build keeps no files in Azure: set files.provider = \"store\"";
            return Err(Error::new(Code::AzureProviderNotEnabled, message));
        }
        R::require(&caller)?;
        let kind = if R::WRITES { CallKind::Write } else { CallKind::Read };
        let (tenant, user) = (caller.scope.tenant().as_str(), caller.scope.user().as_str());
        let spent = self.cx.quotas.spend(tenant, user, &caller.service, kind).await;
        spent.inspect_err(files_metrics::quota_rejection)?;
        Ok(Admitted { caller, charged: true, role: PhantomData })
    }

    /// Lets the operator in, who has the store in hand and runs a command on it: no role is asked for, and no quota. Nothing
    /// that serves callers may use it (clippy.toml).
    pub fn admit_operator(&self, caller: ScopedCaller) -> Admitted<Writer> {
        Admitted { caller, charged: false, role: PhantomData }
    }

    /// Gives a caller back what it was charged if a cap refused the call in the end.
    pub(super) fn refund_refused<T>(&self, admitted: &Admitted<Writer>, result: Result<T>) -> Result<T> {
        if admitted.charged && matches!(result, Err(Error { code: Code::QuotaExceeded, .. })) {
            let caller = &admitted.caller;
            let (tenant, user) = (caller.scope.tenant().as_str(), caller.scope.user().as_str());
            self.cx.quotas.refund(tenant, user, &caller.service, CallKind::Write);
        }
        result
    }
}
