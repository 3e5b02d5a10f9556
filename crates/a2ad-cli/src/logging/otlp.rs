//! Sends the spans of the program to an OpenTelemetry collector (`telemetry.otlp`), over gRPC.
//!
//! This is the only module that uses the OpenTelemetry libraries, and it uses them for batches and the protocol only. The
//! ids of spans are the program's own: they are in the log and in what other systems get as `traceparent` whether or not
//! spans are sent, so the layer takes them from the fields `traceparent` and `parent` of each span instead of inventing
//! some, as `tracing-opentelemetry` would. Spans of traces that are not sampled are not sent.

use std::{
    fmt::{self, Write as _},
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use engine::Clock;
use opentelemetry::{
    InstrumentationScope, KeyValue, SpanId, TraceFlags,
    trace::{SpanContext, SpanKind, Status, TraceState},
};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::{
    Resource,
    trace::{BatchConfigBuilder, BatchSpanProcessor, SpanData, SpanEvents, SpanLinks, SpanProcessor},
};
use protocol::TraceContext;
use tokio::runtime::Runtime;
use tracing::{
    Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};
use tracing_subscriber::{Layer, layer::Context, registry::LookupSpan};

/// How long one request to the collector may take.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the last spans may take to be sent when the program ends.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);
/// How long spans are batched.
const BATCH_INTERVAL: Duration = Duration::from_millis(500);
/// The most spans that wait to be sent; more are dropped.
const QUEUED_SPANS: usize = 8_192;
/// How far the time of spans may be from the clock, which may be set.
const MAX_CLOCK_DIFFERENCE: Duration = Duration::from_millis(100);

/// The layer that sends spans.
pub(super) struct OtlpLayer {
    processor: Arc<BatchSpanProcessor>,
    scope: InstrumentationScope,
    clock: SpanClock,
}

/// Sends what is queued when it is dropped, within three seconds.
pub(super) struct FlushOnDrop {
    processor: Arc<BatchSpanProcessor>,
    /// Drives the connection. `None` after the end.
    runtime: Option<Runtime>,
}

/// Whether the layer sends this span.
pub(super) fn is_sent(metadata: &Metadata<'_>) -> bool {
    metadata.is_span() && metadata.target().starts_with("a2ad::")
}

impl OtlpLayer {
    /// Connects when there is something to send.
    pub(super) fn new(endpoint: &str) -> anyhow::Result<(Self, FlushOnDrop)> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("a2ad-otlp")
            .enable_all()
            .build()?;
        let exporter = {
            let _entered = runtime.enter();
            SpanExporter::builder()
                .with_tonic()
                .with_endpoint(endpoint)
                .with_timeout(EXPORT_TIMEOUT)
                .build()?
        };
        let config = BatchConfigBuilder::default()
            .with_max_queue_size(QUEUED_SPANS)
            .with_scheduled_delay(BATCH_INTERVAL)
            .build();
        let mut processor = BatchSpanProcessor::builder(exporter).with_batch_config(config).build();
        processor.set_resource(&Resource::builder().with_service_name("a2ad").build());
        let scope = InstrumentationScope::builder("a2ad").with_version(env!("CARGO_PKG_VERSION")).build();
        let processor = Arc::new(processor);
        let flush = FlushOnDrop { processor: Arc::clone(&processor), runtime: Some(runtime) };
        Ok((Self { processor, scope, clock: SpanClock::start(Clock::system()) }, flush))
    }

    fn span_data(&self, name: &'static str, span: OpenSpan) -> Option<SpanData> {
        let OpenSpan { fields, start } = span;
        let trace = TraceContext::parse(&fields.traceparent, None)?;
        let parent = u64::from_str_radix(&fields.parent, 16).map_or(SpanId::INVALID, SpanId::from);
        let span_kind = match name {
            "request" => SpanKind::Server,
            "backend call" => SpanKind::Client,
            _ => SpanKind::Internal,
        };
        let flags = if trace.is_sampled() { TraceFlags::SAMPLED } else { return None };
        Some(SpanData {
            span_context: SpanContext::new(
                trace.trace_id().into(),
                trace.span_id().into(),
                flags,
                false,
                TraceState::default(),
            ),
            parent_span_id: parent,
            parent_span_is_remote: span_kind == SpanKind::Server,
            span_kind,
            name: name.into(),
            start_time: start,
            end_time: self.clock.now().max(start),
            attributes: fields.attributes,
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: Status::Unset,
            instrumentation_scope: self.scope.clone(),
        })
    }
}

impl Drop for FlushOnDrop {
    fn drop(&mut self) {
        // An error means that the collector is not there; its operator sees that.
        let _ = self.processor.shutdown_with_timeout(SHUTDOWN_TIMEOUT);
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for OtlpLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        span.extensions_mut().insert(OpenSpan { fields, start: self.clock.now() });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(open) = span.extensions_mut().get_mut::<OpenSpan>() {
            values.record(&mut open.fields);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let open = span.extensions_mut().remove::<OpenSpan>();
        if let Some(data) = open.and_then(|open| self.span_data(span.name(), open)) {
            self.processor.on_end(data);
        }
    }
}

/// A span that has not ended.
struct OpenSpan {
    fields: Fields,
    start: SystemTime,
}

/// The fields of a span. The last value of each counts.
#[derive(Default)]
struct Fields {
    traceparent: String,
    parent: String,
    attributes: Vec<KeyValue>,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let mut text = String::new();
        let _ = write!(text, "{value:?}");
        match field.name() {
            "traceparent" => self.traceparent = text,
            "parent" => self.parent = text,
            name => self.attributes.push(KeyValue::new(name, text)),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.attributes.push(KeyValue::new(field.name(), value.to_owned()));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.attributes.push(KeyValue::new(field.name(), i64::try_from(value).unwrap_or(i64::MAX)));
    }
}

/// The time of spans: finer than the clock's milliseconds, and within a tenth of a second of it.
struct SpanClock {
    clock: Clock,
    begun: Instant,
    begun_at: SystemTime,
}

impl SpanClock {
    fn start(clock: Clock) -> Self {
        let begun_at = wall_time(&clock);
        Self { clock, begun: Instant::now(), begun_at }
    }

    fn now(&self) -> SystemTime {
        let (exact, wall) = (self.begun_at + self.begun.elapsed(), wall_time(&self.clock));
        let difference = exact.duration_since(wall).unwrap_or_else(|before| before.duration());
        if difference <= MAX_CLOCK_DIFFERENCE { exact } else { wall }
    }
}

fn wall_time(clock: &Clock) -> SystemTime {
    let millis = u64::try_from(clock.now().as_millis()).unwrap_or_default();
    UNIX_EPOCH + Duration::from_millis(millis)
}
