//! The options of a single call.

/// What holds for the calls of a client made with [`Client::with_options`](crate::Client::with_options).
///
/// ```
/// # use memtrove_client::CallOptions;
/// let options = CallOptions { service_id: Some("planner".into()), ..CallOptions::idempotent("order-17") };
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallOptions {
    /// Who acts, as the audit trail is to name it; the builder's unless given. Goes with changes only.
    pub service_id: Option<String>,
    /// Under one key a change happens once: who sends it again gets the first answer. One key is for one change.
    pub idempotency_key: Option<String>,
    /// Whether a change with a key is retried like a read.
    pub retry: bool,
}

impl CallOptions {
    /// A change under this key, which is therefore retried.
    pub fn idempotent(key: impl Into<String>) -> Self {
        Self { idempotency_key: Some(key.into()), retry: true, ..Self::default() }
    }

    /// A change in the name of this service.
    pub fn acting_as(service_id: impl Into<String>) -> Self {
        Self { service_id: Some(service_id.into()), ..Self::default() }
    }
}
