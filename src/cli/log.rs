//! `tracing` events as lines: text, or JSON objects with `event` first. The spans around an event add their fields (file, page).

use std::fmt;

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

use super::args::MessageArguments;
use super::report::{Label, Terminal, escaped};

/// Sends events of the levels asked for to `terminal`. Only the first call of a process counts.
pub(super) fn start(terminal: Terminal, arguments: &MessageArguments) {
    let (own, others) = match (arguments.quiet, arguments.verbose) {
        (true, _) => (LevelFilter::ERROR, LevelFilter::OFF),
        (_, 0) => (LevelFilter::WARN, LevelFilter::ERROR),
        (_, 1) => (LevelFilter::INFO, LevelFilter::WARN),
        (_, 2) => (LevelFilter::DEBUG, LevelFilter::INFO),
        (_, _) => (LevelFilter::TRACE, LevelFilter::DEBUG),
    };
    let filter = Targets::new().with_default(others).with_target("docparse", own);
    let subscriber = tracing_subscriber::registry().with(LogLines { terminal }.with_filter(filter));
    let _ = tracing::subscriber::set_global_default(subscriber);
}

struct LogLines {
    terminal: Terminal,
}

/// Fields of a span or an event, in the order in which they were given.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        self.0.insert(field.name().to_owned(), value);
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}").into());
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.into());
    }
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for LogLines {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            let mut fields = Fields::default();
            attributes.record(&mut fields);
            span.extensions_mut().insert(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        for span in context.event_scope(event).into_iter().flat_map(|scope| scope.from_root()) {
            if let Some(Fields(of_span)) = span.extensions().get::<Fields>() {
                fields.0.extend(of_span.clone());
            }
        }
        event.record(&mut fields);
        let metadata = event.metadata();
        if self.terminal.is_json() {
            let mut object = Map::new();
            object.insert("event".into(), "log".into());
            object.insert("level".into(), metadata.level().as_str().to_ascii_lowercase().into());
            object.insert("target".into(), metadata.target().into());
            object.extend(fields.0);
            return self.terminal.object(&object);
        }
        let line = text_line(fields.0);
        match *metadata.level() {
            Level::ERROR => self.terminal.labelled(Label::Error, &line),
            Level::WARN => self.terminal.labelled(Label::Warning, &line),
            level => {
                let level = level.as_str().to_ascii_lowercase();
                self.terminal.line(&escaped(&format!("{level}: {line}")));
            }
        }
    }
}

/// `a.pdf: page 3: message (name: value, name: value)`
fn text_line(mut fields: Map<String, Value>) -> String {
    let plain = |value: Value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    let mut line = String::new();
    if let Some(file) = fields.shift_remove("file") {
        line += &format!("{}: ", plain(file));
    }
    if let Some(page) = fields.shift_remove("page") {
        line += &format!("page {}: ", plain(page));
    }
    line += &fields.shift_remove("message").map(plain).unwrap_or_default();
    if !fields.is_empty() {
        let rest: Vec<String> =
            fields.into_iter().map(|(name, value)| format!("{name}: {}", plain(value))).collect();
        line += &format!(" ({})", rest.join(", "));
    }
    line
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_names_file_and_page_first() {
        let Value::Object(fields) = json!({ "message": "slow", "file": "a.pdf", "ms": 7, "page": 3 }) else {
            panic!("an object is an object");
        };
        assert_eq!(text_line(fields), "a.pdf: page 3: slow (ms: 7)");
    }
}
