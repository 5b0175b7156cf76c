//! Whether the service is there.

use crate::{Client, Result, operations};
use serde::Deserialize;

/// What the service says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ServiceStatus {
    /// Its name.
    pub service: String,
    /// `ok`.
    pub status: String,
}

/// Whether the service, or a part of it, is well.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Health {
    /// `ok`.
    pub status: String,
}

impl Client {
    /// What the service says about itself.
    pub async fn status(&self) -> Result<ServiceStatus> {
        self.call(&operations::STATUS, &[])?.receive().await
    }

    /// Says that the service is there.
    pub async fn health(&self) -> Result<Health> {
        self.call(&operations::HEALTH, &[])?.receive().await
    }

    /// Says that the process is alive.
    pub async fn live(&self) -> Result<Health> {
        self.call(&operations::LIVE, &[])?.receive().await
    }

    /// Says that requests can be served; fails with 503 while they cannot.
    pub async fn ready(&self) -> Result<Health> {
        self.call(&operations::READY, &[])?.receive().await
    }
}
