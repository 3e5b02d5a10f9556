//! Writes metrics in the text format 0.0.4 of Prometheus, or in OpenMetrics 1.0.

use std::{
    borrow::Cow,
    fmt::{Display, Write as _},
};

use engine::metrics::Histogram;

use super::catalogue::{Kind, Label, Metric, Unit};

/// The format of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Text,
    OpenMetrics,
}

impl Format {
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// A page in progress.
pub(super) struct Page {
    format: Format,
    text: String,
}

impl Page {
    pub(super) fn new(format: Format) -> Self {
        Self { format, text: String::with_capacity(16 << 10) }
    }

    /// Begins a metric; its samples follow.
    pub(super) fn metric(&mut self, metric: &'static Metric) -> Samples<'_> {
        // A counter's name is that of its samples, except in OpenMetrics.
        let family = match (self.format, metric.kind) {
            (Format::OpenMetrics, Kind::Counter) => metric.name.strip_suffix("_total").unwrap_or(metric.name),
            (Format::OpenMetrics | Format::Text, _) => metric.name,
        };
        let kind = metric.kind.label();
        let _ = write!(self.text, "# HELP {family} {}\n# TYPE {family} {kind}\n", metric.help);
        Samples { metric, text: &mut self.text }
    }

    /// A metric with one sample and no labels.
    pub(super) fn value(&mut self, metric: &'static Metric, value: impl Display) {
        self.metric(metric).sample(&[], value);
    }

    pub(super) fn finish(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }
}

/// The samples of one metric.
pub(super) struct Samples<'a> {
    metric: &'static Metric,
    text: &'a mut String,
}

impl Samples<'_> {
    /// Adds a sample with the values of the metric's labels.
    pub(super) fn sample(&mut self, labels: &[&str], value: impl Display) {
        self.line("", labels, None, value);
    }

    /// Adds the samples of a histogram.
    pub(super) fn histogram(&mut self, labels: &[&str], histogram: &Histogram) {
        let unit = self.metric.unit;
        let mut count = 0;
        for (bound, up_to) in histogram.cumulative() {
            count = up_to;
            self.line("_bucket", labels, Some(&unit.of(bound).to_string()), up_to);
        }
        count += histogram.above();
        self.line("_bucket", labels, Some("+Inf"), count);
        self.line("_sum", labels, None, unit.of(histogram.sum()));
        self.line("_count", labels, None, count);
    }

    fn line(&mut self, suffix: &str, labels: &[&str], bound: Option<&str>, value: impl Display) {
        debug_assert_eq!(labels.len(), self.metric.labels.len(), "{}", self.metric.name);
        let is_known = |(label, value): (&Label, &&str)| label.has(value);
        debug_assert!(self.metric.labels.iter().zip(labels).all(is_known), "{labels:?}");
        self.text.push_str(self.metric.name);
        self.text.push_str(suffix);
        let named = self.metric.labels.iter().map(|label| label.name).zip(labels.iter().copied());
        let named = named.chain(bound.map(|bound| ("le", bound)));
        let mut separator = '{';
        for (name, value) in named {
            self.text.push(separator);
            let _ = write!(self.text, "{name}=\"{}\"", escaped(value));
            separator = ',';
        }
        if separator == ',' {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }
}

/// A value without what has a meaning in both formats.
fn escaped(value: &str) -> Cow<'_, str> {
    if value.contains(['\\', '"', '\n']) {
        value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n").into()
    } else {
        value.into()
    }
}

impl Unit {
    /// A counted value in the unit of the metric.
    fn of(self, value: u64) -> f64 {
        match self {
            Self::Seconds => value as f64 / 1e6,
            Self::One => value as f64,
        }
    }
}
