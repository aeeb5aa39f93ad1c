//! Writes metrics as text: the classic format of Prometheus, and `OpenMetrics`.

use std::fmt::Write;

use crate::proto::word_table::words;

/// The format of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The text format of Prometheus, 0.0.4.
    Classic,
    /// `OpenMetrics` 1.0.
    OpenMetrics,
}

words! {
    /// The kind of a metric.
    Kind;
    Gauge = "gauge",
    Counter = "counter",
    Histogram = "histogram",
}

/// Labels of a sample: names and values.
pub(super) type Labels<'a> = &'a [(&'static str, &'a str)];

/// A text that grows by one metric after another.
pub(super) struct Exposition {
    format: Format,
    text: String,
    name: &'static str,
    kind: Kind,
}

impl Exposition {
    pub(super) fn new(format: Format) -> Self {
        Self { format, text: String::new(), name: "", kind: Kind::Gauge }
    }

    /// Begins a metric. The name is without the `_total` of a counter.
    pub(super) fn metric(&mut self, name: &'static str, kind: Kind, help: &str) {
        (self.name, self.kind) = (name, kind);
        // The classic format knows the name of a sample alone.
        let total =
            if kind == Kind::Counter && self.format == Format::Classic { "_total" } else { "" };
        let _ = writeln!(self.text, "# HELP {name}{total} {help}");
        let _ = writeln!(self.text, "# TYPE {name}{total} {kind}");
    }

    /// Adds a sample of the metric that was begun last.
    pub(super) fn sample(&mut self, labels: Labels<'_>, value: f64) {
        let suffix = if self.kind == Kind::Counter { "_total" } else { "" };
        self.part(suffix, labels, value);
    }

    /// Adds a metric with a sample for each value of one label.
    pub(super) fn family<'v>(
        &mut self,
        (name, kind, help): (&'static str, Kind, &str),
        label: &'static str,
        samples: impl IntoIterator<Item = (&'v str, f64)>,
    ) {
        self.metric(name, kind, help);
        for (value, number) in samples {
            self.sample(&[(label, value)], number);
        }
    }

    /// Adds a part of a metric, such as `_bucket`, `_sum` or `_count` of a histogram.
    pub(super) fn part(&mut self, suffix: &str, labels: Labels<'_>, value: f64) {
        let _ = write!(self.text, "{}{suffix}", self.name);
        for (place, (name, value)) in labels.iter().enumerate() {
            let before = if place == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{before}{name}=\"{}\"", escaped(value));
        }
        let after = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.text, "{after} {value}");
    }

    pub(super) fn finish(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }
}

/// Escapes the value of a label.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(format: Format) -> String {
        let mut text = Exposition::new(format);
        text.metric("hero_jobs", Kind::Counter, "Jobs.");
        text.sample(&[("type", "a\"\\\nb"), ("reason", "x")], 3.0);
        text.metric("hero_depth", Kind::Gauge, "Depth.");
        text.sample(&[], 0.5);
        text.finish()
    }

    #[test]
    fn counter_is_named_as_its_format_asks_and_labels_are_escaped() {
        assert_eq!(
            text(Format::Classic),
            "# HELP hero_jobs_total Jobs.\n# TYPE hero_jobs_total counter\n\
             hero_jobs_total{type=\"a\\\"\\\\\\nb\",reason=\"x\"} 3\n\
             # HELP hero_depth Depth.\n# TYPE hero_depth gauge\nhero_depth 0.5\n"
        );
        let open = text(Format::OpenMetrics);
        assert!(
            open.starts_with("# HELP hero_jobs Jobs.\n# TYPE hero_jobs counter\nhero_jobs_total{")
        );
        assert!(open.ends_with("# EOF\n"));
    }
}
