//! The floor: what the product's own HTTP shell costs when the handler does nothing.
//!
//! A ratio to it says how much of a request's time is Memtrove's work and how much any server on this stack would
//! spend, on whatever machine the benchmark runs.

use anyhow::Result;
use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse as _;
use axum::routing::any;
use memtrove_server::shell::{Limits, ShellConfig, run, shell};
use memtrove_server::telemetry::metrics::Metrics;
use memtrove_server::telemetry::{self, TelemetryConfig};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use tokio::net::TcpListener;

/// What the floor answers.
#[derive(Debug, clap::Args)]
pub struct FloorOptions {
    /// The status of every answer.
    #[arg(long)]
    status: u16,
    /// A file with the body of every answer.
    #[arg(long)]
    body: PathBuf,
}

/// Serves until it is killed.
pub fn serve(options: &FloorOptions) -> Result<()> {
    const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");
    let status = StatusCode::from_u16(options.status)?;
    let answer = Bytes::from(fs::read(&options.body)?);
    let handler = any(move |_request: Bytes| {
        let answer = answer.clone();
        async move { (status, [(header::CONTENT_TYPE, JSON)], answer).into_response() }
    });
    let router = Router::new().route("/{*path}", handler);

    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let _telemetry = telemetry::init(&TelemetryConfig::default())?;
        let metrics = Metrics::install()?;
        tokio::spawn(metrics.upkeep());
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("floor on http://{}", listener.local_addr()?);
        let router = shell(router, &ShellConfig::default());
        run(listener, router, std::future::pending(), Limits { grace: Duration::ZERO, ..Limits::default() })
            .await;
        Ok(())
    })
}
