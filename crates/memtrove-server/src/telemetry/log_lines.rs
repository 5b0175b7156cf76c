//! What a log line looks like, for people and for programs.

use super::LogFormat;
use crate::shell::request_id;
use memtrove_core::{Clock, SystemClock};
use serde_json::{Map, Value};
use std::fmt;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Formats events and adds the id of the request they belong to. The id comes from the shell and not from a span, so
/// that it is there even when spans are off, which is what makes them free.
pub(super) struct LogLines(pub(super) LogFormat);

impl<S, N> FormatEvent<S, N> for LogLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        match self.0 {
            LogFormat::Pretty => {
                let metadata = event.metadata();
                write!(writer, "{} ", SystemClock.now())?;
                level(&mut writer, *metadata.level())?;
                write!(writer, " {}: ", metadata.target())?;
                context.format_fields(writer.by_ref(), event)?;
                if let Some(id) = request_id::current() {
                    write!(writer, " request_id={id}")?;
                }
            }
            LogFormat::Json => write!(writer, "{}", json(event))?,
        }
        writeln!(writer)
    }
}

fn level(writer: &mut Writer<'_>, level: Level) -> fmt::Result {
    if !writer.has_ansi_escapes() {
        return write!(writer, "{level:>5}");
    }
    let colour = match level {
        Level::ERROR => 31,
        Level::WARN => 33,
        Level::INFO => 32,
        Level::DEBUG => 34,
        Level::TRACE => 35,
    };
    write!(writer, "\x1b[{colour}m{level:>5}\x1b[0m")
}

fn json(event: &Event<'_>) -> Value {
    let metadata = event.metadata();
    let mut line = Map::new();
    line.insert("timestamp".to_owned(), SystemClock.now().to_string().into());
    line.insert("level".to_owned(), metadata.level().as_str().into());
    line.insert("target".to_owned(), metadata.target().into());
    if let Some(id) = request_id::current() {
        line.insert("request_id".to_owned(), id.into());
    }
    event.record(&mut Members(&mut line));
    Value::Object(line)
}

struct Members<'a>(&'a mut Map<String, Value>);

impl Members<'_> {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Members<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}"));
    }
}
