//! Writes the log to the journal under systemd, else to standard error.

use std::fmt::Debug;
use std::io::IsTerminal;

use tracing::field::{Field, Value, Visit, display};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber, warn};
use tracing_journald::{Priority, PriorityMappings};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, fmt, reload};

use super::job_lines::JobLines;
use crate::client::AUDIT_LOST;
use crate::config::LogConfig;
use crate::proto::report::JOB_FAILURE;
use crate::proto::text::escape;

/// The variable that overrides the configured level, in the syntax of `tracing` (`warn`,
/// `hero::actor=debug`).
const OVERRIDE: &str = "HERO_LOG";

/// The handle that changes the level of logging.
pub(super) struct Logging {
    /// `None` if the level cannot be changed.
    filter: Option<reload::Handle<EnvFilter, Registry>>,
    lines: JobLines,
}

impl Logging {
    /// Starts logging. Has no effect in a process that logs already.
    pub(super) fn start(config: &LogConfig) -> Self {
        let lines = JobLines::default();
        lines.set(config);
        let overridden = EnvFilter::try_from_env(OVERRIDE).ok();
        let fixed = overridden.is_some();
        let filter = overridden.unwrap_or_else(|| filter_of(config));
        let (filter, handle) = reload::Layer::new(filter);
        let registry = tracing_subscriber::registry().with(filter).with(lines.clone());
        let journal =
            || Some((to_journal(Priority::Informational)?, to_journal(Priority::Notice)?));
        let started = match reads_journal().then(journal).flatten() {
            Some((usual, failures)) => {
                let of_failure = |event: &Metadata<'_>| event.target() == JOB_FAILURE;
                let failures = Escaped(failures).with_filter(filter_fn(of_failure));
                let usual = Escaped(usual).with_filter(filter_fn(move |event| !of_failure(event)));
                registry.with(usual).with(failures).try_init()
            }
            None => registry
                .with(Escaped(
                    fmt::layer()
                        .with_writer(std::io::stderr)
                        .with_ansi(std::io::stderr().is_terminal())
                        .with_target(false),
                ))
                .try_init(),
        };
        Self { filter: Some(handle).filter(|_| started.is_ok() && !fixed), lines }
    }

    /// Returns the lines about jobs, for their report.
    pub(super) fn job_lines(&self) -> JobLines {
        self.lines.clone()
    }

    /// Takes over a new configuration.
    pub(super) fn set(&self, config: &LogConfig) {
        self.lines.set(config);
        if let Some(filter) = &self.filter
            && let Err(error) = filter.reload(filter_of(config))
        {
            warn!("cannot change the log level: {error}");
        }
    }
}

/// Writes the records of changes of this process to the journal, if the machine has one, and warnings of those that are
/// lost to standard error. Has no effect in a process that logs already.
pub(crate) fn audit_to_journal() {
    let of_audit = |event: &Metadata<'_>| event.target() == "hero::audit";
    let journal = to_journal(Priority::Notice);
    let journal = journal.map(|layer| Escaped(layer).with_filter(filter_fn(of_audit)));
    let lost = fmt::layer().without_time().with_level(false).with_target(false);
    let lost = Escaped(lost.with_ansi(false).with_writer(std::io::stderr))
        .with_filter(filter_fn(|event| event.target() == AUDIT_LOST));
    drop(tracing_subscriber::registry().with(journal).with(lost).try_init());
}

/// Returns a layer that writes to the journal, with its priority of lines of the level INFO. The journal stores
/// fields separately, so that `journalctl JOB_ID=…` finds a job.
fn to_journal(info: Priority) -> Option<tracing_journald::Layer> {
    let (debug, trace) = (Priority::Debug, Priority::Debug);
    let priorities = PriorityMappings { info, debug, trace, ..PriorityMappings::new() };
    let layer = tracing_journald::layer().ok()?;
    Some(layer.with_field_prefix(None).with_priority_mappings(priorities))
}

/// Returns the filter of a configuration. The errors of lapin come back from its calls as well, in the
/// words of Hero and without the content of messages.
fn filter_of(config: &LogConfig) -> EnvFilter {
    EnvFilter::new(format!("{},lapin=off", config.level.as_str()))
}

/// A layer that gets events with the control characters of their fields escaped: a text from
/// outside can neither forge a line of the log nor send a sequence to a terminal.
struct Escaped<L>(L);

impl<S: Subscriber, L: Layer<S>> Layer<S> for Escaped<L> {
    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let fields = event.metadata().fields();
        let mut escaped = EscapedFields(fields.iter().map(|_| None).collect());
        event.record(&mut escaped);
        let values: Vec<_> = escaped.0.iter().map(Option::as_deref).collect();
        self.0.on_event(&Event::new(event.metadata(), &fields.value_set_all(&values)), context);
    }

    fn on_new_span(&self, span: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        self.0.on_new_span(span, id, context);
    }

    fn on_record(&self, span: &Id, values: &Record<'_>, context: Context<'_, S>) {
        self.0.on_record(span, values, context);
    }
}

/// The values of an event by the index of their field.
struct EscapedFields(Vec<Option<Box<dyn Value>>>);

impl Visit for EscapedFields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0[field.index()] = Some(Box::new(escape(value)));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0[field.index()] = Some(Box::new(display(escape(&format!("{value:?}")))));
    }
}

/// Returns true if standard error is connected to the journal. The variable alone does not prove it: a
/// child with other output inherits the variable.
pub(crate) fn reads_journal() -> bool {
    let Ok(stderr) = nix::sys::stat::fstat(std::io::stderr()) else {
        return false;
    };
    std::env::var("JOURNAL_STREAM")
        .is_ok_and(|stream| stream == format!("{}:{}", stderr.st_dev, stderr.st_ino))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex, PoisonError};

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn text_from_outside_can_neither_forge_a_line_nor_reach_the_terminal() {
        let written = Written::default();
        let writer = written.clone();
        let layer =
            fmt::layer().with_writer(move || writer.clone()).with_ansi(false).without_time();
        let subscriber = tracing_subscriber::registry().with(Escaped(layer.with_target(false)));
        let text = "a\n ERROR forged\u{1b}[2J";
        tracing::subscriber::with_default(subscriber, || {
            warn!(caller = %text, number = 3, text, "job failed: {text}");
        });
        let bytes = written.0.lock().expect("unlocked").clone();
        let lines = String::from_utf8(bytes).expect("a text");
        assert_eq!(
            lines,
            " WARN job failed: a\\n ERROR forged\\u{1b}[2J caller=a\\n ERROR forged\\u{1b}[2J \
             number=3 text=\"a\\\\n ERROR forged\\\\u{1b}[2J\"\n"
        );
    }
}
