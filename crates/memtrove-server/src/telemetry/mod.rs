//! What the process tells its operator: logs, traces, metrics.

mod log_lines;
pub mod metrics;

use self::log_lines::LogLines;
use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{ExporterBuildError, Protocol, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, SdkTracerProvider};
use std::any::Any;
use std::io::IsTerminal;
use std::time::Duration;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::{EnvFilter, FilterExt, ParseError, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// What no filter can make say more: the database's driver logs every statement with what people wrote in it, and the SDK of
/// MCP every message; and what callers get wrong, it takes for a warning.
const QUIET: &str = "tokio_postgres=info,rmcp=error";

/// Targets of log lines that no filter can silence: who did what with other people's data.
const AUDIT_TARGETS: [&str; 3] = ["admin.audit", "membership.audit", "files.operator"];

/// A collector that does not answer costs at most this, and only in the exporter's own thread.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// For people.
    #[default]
    Pretty,
    /// One JSON object per line.
    Json,
}

/// What to tell, and where.
#[derive(Debug, Clone)]
pub struct TelemetryConfig {
    /// How log lines look.
    pub format: LogFormat,
    /// What is logged, as `info` or `info,memtrove_store=debug`. `memtrove::access=debug` is a line per request.
    pub filter: String,
    /// Where to send traces: an OTLP/HTTP collector such as `http://localhost:4318`. None means nowhere.
    pub otlp_endpoint: Option<String>,
    /// What this process is called in traces.
    pub service_name: String,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self {
            format: LogFormat::default(),
            filter: "info".to_owned(),
            otlp_endpoint: None,
            service_name: "memtrove".to_owned(),
        }
    }
}

/// Why telemetry cannot start.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The filter is not one.
    #[error("the log filter '{filter}' is not valid: {source}")]
    Filter {
        /// The filter as configured.
        filter: String,
        /// What the parser says.
        source: ParseError,
    },
    /// The OTLP exporter cannot be made.
    #[error("traces cannot be sent to '{endpoint}': {source}")]
    Otlp {
        /// The endpoint as configured.
        endpoint: String,
        /// What the exporter says.
        source: ExporterBuildError,
    },
    /// Something else in this process has set up logging.
    #[error("logging is already set up in this process")]
    AlreadyInitialized,
}

/// Keeps telemetry going; sends what is left of the traces when dropped.
#[must_use = "traces that are still queued are sent when this is dropped"]
pub struct Guard {
    tracing: Option<SdkTracerProvider>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(provider) = self.tracing.take() {
            // A collector that is gone loses these spans; that is no reason to hold up the end.
            let _ = provider.shutdown_with_timeout(EXPORT_TIMEOUT);
        }
    }
}

/// Sets up logging to stderr and, if configured, tracing, for the whole process.
pub fn init(config: &TelemetryConfig) -> Result<Guard, TelemetryError> {
    let colours = config.format == LogFormat::Pretty && std::io::stderr().is_terminal();
    let (subscriber, guard) = subscriber(config, std::io::stderr, colours)?;
    subscriber.try_init().map_err(|_| TelemetryError::AlreadyInitialized)?;
    log_panics();
    Ok(guard)
}

fn subscriber<W>(
    config: &TelemetryConfig,
    writer: W,
    colours: bool,
) -> Result<(impl Subscriber + Send + Sync, Guard), TelemetryError>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let filter = EnvFilter::try_new(format!("{},{QUIET}", config.filter))
        .map_err(|source| TelemetryError::Filter { filter: config.filter.clone(), source })?;
    let audit = Targets::new().with_targets(AUDIT_TARGETS.map(|target| (target, LevelFilter::INFO)));
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(writer)
        .with_ansi(colours)
        .event_format(LogLines(config.format))
        .with_filter(filter.or(audit));

    let provider =
        match config.otlp_endpoint.as_deref().map(str::trim).filter(|endpoint| !endpoint.is_empty()) {
            Some(endpoint) => Some(tracer_provider(endpoint, &config.service_name)?),
            None => None,
        };
    let spans = provider.as_ref().map(|provider| {
        opentelemetry::global::set_text_map_propagator(TraceContextPropagator::new());
        tracing_opentelemetry::layer()
            .with_tracer(provider.tracer("memtrove"))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            // Only our own: the exporter's HTTP client would otherwise trace its own sending.
            .with_filter(
                Targets::new()
                    .with_target("memtrove", LevelFilter::DEBUG)
                    .with_target("memtrove::access", LevelFilter::OFF),
            )
    });
    Ok((tracing_subscriber::registry().with(lines).with(spans), Guard { tracing: provider }))
}

fn tracer_provider(endpoint: &str, service_name: &str) -> Result<SdkTracerProvider, TelemetryError> {
    let base = endpoint.trim_end_matches('/');
    let url = if base.ends_with("/v1/traces") { base.to_owned() } else { format!("{base}/v1/traces") };
    let exporter = SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(url)
        .with_timeout(EXPORT_TIMEOUT)
        .build()
        .map_err(|source| TelemetryError::Otlp { endpoint: endpoint.to_owned(), source })?;
    let batches = BatchConfigBuilder::default()
        .with_max_queue_size(8192)
        .with_scheduled_delay(Duration::from_secs(2))
        .build();
    let resource = Resource::builder()
        .with_service_name(service_name.to_owned())
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build();
    Ok(SdkTracerProvider::builder()
        .with_span_processor(BatchSpanProcessor::builder(exporter).with_batch_config(batches).build())
        .with_resource(resource)
        .build())
}

/// Panics become log lines like all others, so that programs that parse the log find them too.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let location = panic.location().map(ToString::to_string).unwrap_or_default();
        let reason = panic_text(panic.payload());
        tracing::error!(target: "memtrove::panic", location, reason, "panicked");
    }));
}

/// What a panic said, if it said it in words.
pub(crate) fn panic_text(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

#[cfg(test)]
mod tests;
