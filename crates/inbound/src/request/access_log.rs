//! The access log: one entry per call, with binding, method, agent, dialect, result and duration.
//!
//! Every call is counted in the metrics when its entry ends. Entries are of level `info` and target `a2ad::call`, so that
//! they can be switched on and off separately; when they are off, a call is only counted. Content and metadata sent by a caller are never logged. The entry of a stream is
//! written when the stream ends, from the events it sent; that of a call whose caller disconnects, at the disconnect.

use std::{sync::Arc, time::Duration};

use engine::{CallResponse, Origin, log::Kind};
use protocol::{
    Dialect, Error, Event, Operation, Reply, Task, TaskId,
    dialect::{MethodFamily, of_method, v03},
};

use crate::{
    metrics::{
        ServerMetrics,
        calls::{BindingLabel, DialectLabel, MeasuredCall},
    },
    request::{endpoint::Endpoint, trace::RequestId},
    routes::Handler,
};

/// The error of a call whose caller disconnected before the response.
const CALLER_LEFT: &str = "CALLER_LEFT";

/// The entry of a call in progress, and its count in the metrics; `None` for requests that are not calls.
pub(crate) struct CallEntry(Option<Entry>);

/// A call in progress.
struct Entry {
    measured: MeasuredCall,
    /// `None` if the access log is off.
    fields: Option<Box<Fields>>,
}

struct Fields {
    request_id: RequestId,
    binding: &'static str,
    agent: String,
    method: String,
    /// The dialect, or the name of a binding that has none.
    dialect: &'static str,
    task: Option<String>,
    state: Option<&'static str>,
    error: Option<&'static str>,
}

impl CallEntry {
    /// Begins the entry of a call. The agent is logged only if it exists.
    pub(crate) fn begin(
        metrics: &Arc<ServerMetrics>,
        request_id: RequestId,
        handler: Handler,
        endpoint: &Endpoint,
    ) -> Self {
        let is_logged = tracing::enabled!(target: "a2ad::call", tracing::Level::INFO);
        let fields = is_logged.then(|| {
            Box::new(Fields {
                request_id,
                binding: handler.label(),
                agent: known_agent(endpoint),
                method: "unknown".to_owned(),
                dialect: "unknown",
                task: None,
                state: None,
                error: None,
            })
        });
        let measured = MeasuredCall::begin(Arc::clone(metrics), BindingLabel::of(handler));
        Self(Some(Entry { measured, fields }))
    }

    /// No entry, for requests that are not calls.
    pub(crate) fn off() -> Self {
        Self(None)
    }

    fn fields(&mut self) -> Option<&mut Fields> {
        self.0.as_mut()?.fields.as_deref_mut()
    }

    /// Sets the binding, if the body has decided it.
    pub(crate) fn set_binding(&mut self, handler: Handler) {
        let Some(entry) = &mut self.0 else { return };
        entry.measured.set_binding(BindingLabel::of(handler));
        if let Some(fields) = &mut entry.fields {
            fields.binding = handler.label();
        }
    }

    /// Sets the ids, if the body has decided the trace.
    #[cfg(feature = "mcp")]
    pub(crate) fn set_request_id(&mut self, request_id: RequestId) {
        let Some(fields) = self.fields() else { return };
        fields.request_id = request_id;
    }

    /// Sets the method. An unknown name is the caller's own text and not logged.
    pub(crate) fn set_method_if_known(&mut self, method: &str) {
        let Some(fields) = self.fields() else { return };
        let known = of_method(method) != MethodFamily::Unknown;
        fields.method = if known { method } else { "unknown" }.to_owned();
    }

    /// Sets the method to a name that the binding defines.
    pub(crate) fn set_method(&mut self, method: &'static str) {
        let Some(fields) = self.fields() else { return };
        fields.method = method.to_owned();
    }

    /// Sets the agent, if it becomes known only after the call has begun.
    pub(crate) fn set_agent(&mut self, endpoint: &Endpoint) {
        let Some(fields) = self.fields() else { return };
        fields.agent = known_agent(endpoint);
    }

    /// Sets the task that the operation names, and the origin of the call.
    pub(crate) fn set_operation(&mut self, operation: &Operation, origin: Origin) {
        let Some(entry) = &mut self.0 else { return };
        entry.measured.set_dialect(origin);
        let Some(fields) = &mut entry.fields else { return };
        fields.dialect = origin.label();
        let task = match operation {
            Operation::SendMessage(req) | Operation::SendStreamingMessage(req) => {
                req.message.task_id.as_ref()
            }
            Operation::GetTask(req) => Some(&req.id),
            Operation::CancelTask(req) => Some(&req.id),
            Operation::SubscribeToTask(req) => Some(&req.id),
            Operation::CreatePushConfig(config) => config.task_id.as_ref(),
            Operation::GetPushConfig(req) | Operation::DeletePushConfig(req) => Some(&req.task_id),
            Operation::ListPushConfigs(req) => Some(&req.task_id),
            Operation::ListTasks(_) | Operation::GetExtendedCard(_) => None,
        };
        fields.task = task.map(ToString::to_string);
    }

    /// Sets the task of a request that is not an operation.
    pub(crate) fn set_task(&mut self, task: &TaskId) {
        let Some(fields) = self.fields() else { return };
        fields.task = Some(task.to_string());
    }

    /// Sets the state of that task.
    pub(crate) fn set_state(&mut self, state: &'static str) {
        let Some(fields) = self.fields() else { return };
        fields.state = Some(state);
    }

    pub(crate) fn set_result(&mut self, result: &Result<CallResponse, Error>) {
        match result {
            Ok(answer) => {
                if let Some(fields) = self.fields() {
                    fields.set_answer(answer);
                }
            }
            Err(error) => self.set_error(error),
        }
    }

    pub(crate) fn set_error(&mut self, error: &Error) {
        if let Some(entry) = &mut self.0 {
            entry.set_error(error);
        }
    }

    /// Turns this into the entry of a stream, which is updated with every event sent.
    pub(crate) fn into_stream(mut self, origin: Origin) -> StreamEntry {
        let mut entry = self.0.take();
        if let Some(Entry { measured, fields }) = &mut entry {
            measured.set_dialect(origin);
            measured.begin_stream();
            if let Some(fields) = fields {
                fields.dialect = origin.label();
            }
        }
        StreamEntry(entry)
    }

    /// Writes the entry.
    pub(crate) fn finish(self, dialect: Dialect) {
        self.end(dialect.into(), dialect.label());
    }

    /// Writes the entry of a call of a binding that has no dialect, but this name.
    pub(crate) fn finish_without_dialect(self, name: &'static str) {
        self.end(DialectLabel::None, name);
    }

    fn end(mut self, label: DialectLabel, shown: &'static str) {
        let Some(Entry { mut measured, fields }) = self.0.take() else { return };
        measured.set_dialect(label);
        measured.end();
        if let Some(mut fields) = fields {
            fields.dialect = shown;
            fields.write(measured.elapsed());
        }
    }
}

impl Drop for CallEntry {
    fn drop(&mut self) {
        if let Some(Entry { measured, fields: Some(fields) }) = &mut self.0 {
            fields.error.get_or_insert(CALLER_LEFT);
            fields.write(measured.elapsed());
        }
    }
}

impl Entry {
    fn set_error(&mut self, error: &Error) {
        self.measured.set_error(error.kind);
        if let Some(fields) = &mut self.fields {
            fields.error = Some(error.kind.row().reason);
        }
    }
}

/// The agent's id, or `unknown`: an unknown name is the caller's own text.
fn known_agent(endpoint: &Endpoint) -> String {
    endpoint.registered().map_or("unknown", |registered| &registered.info().id).to_owned()
}

impl Fields {
    fn set_answer(&mut self, answer: &CallResponse) {
        match answer {
            CallResponse::Reply(Reply::SentTask(task) | Reply::Task(task)) => self.set_task(task),
            CallResponse::Reply(Reply::SentMessage(_)) => self.state = Some("message"),
            CallResponse::Reply(_) | CallResponse::Stream(_) | CallResponse::Pending(_) => {}
            CallResponse::Noted(_, answer) => self.set_answer(answer),
        }
    }

    fn set_task(&mut self, task: &Task) {
        self.task = Some(task.id.to_string());
        self.state = Some(v03::task::state_name(task.status.state));
    }

    fn record_event(&mut self, event: &Event) {
        match event {
            Event::Task(task) => self.set_task(task),
            Event::Message(_) => self.state = Some("message"),
            Event::Status(update) => {
                self.task = Some(update.task_id.to_string());
                self.state = Some(v03::task::state_name(update.status.state));
            }
            Event::Artifact(update) => self.task = Some(update.task_id.to_string()),
        }
    }

    fn write(&self, duration: Duration) {
        let duration_ms = duration.as_micros() as f64 / 1_000.0;
        tracing::info!(
            target: "a2ad::call",
            binding = self.binding,
            method = self.method,
            agent = self.agent,
            dialect = self.dialect,
            state = self.state,
            error = self.error,
            task_id = self.task,
            request_id = %self.request_id,
            trace_id = %self.request_id.trace(),
            duration_ms,
            "call"
        );
    }
}

/// The entry of a stream. Collects its events, and is written when the stream ends or the caller disconnects.
pub(crate) struct StreamEntry(Option<Entry>);

impl StreamEntry {
    /// Records an event that is sent.
    pub(crate) fn record_event(&mut self, event: &Event) {
        if let Some(fields) = self.count_event() {
            fields.record_event(event);
        }
    }

    /// Records a task that is sent.
    pub(crate) fn record_task(&mut self, task: &Task) {
        if let Some(fields) = self.count_event() {
            fields.set_task(task);
        }
    }

    /// Records the kind of an event that is sent, for a task that is already set.
    pub(crate) fn record_kind(&mut self, kind: Kind) {
        let Some(fields) = self.count_event() else { return };
        match kind {
            Kind::Status(state) => fields.state = Some(v03::task::state_name(state)),
            Kind::Message => fields.state = Some("message"),
            Kind::Artifact => {}
        }
    }

    /// Records the error that ends the stream.
    pub(crate) fn set_error(&mut self, error: &Error) {
        if let Some(entry) = &mut self.0 {
            entry.set_error(error);
        }
    }

    /// Counts an event. Returns the fields to be updated, if there are any.
    fn count_event(&mut self) -> Option<&mut Fields> {
        let entry = self.0.as_mut()?;
        entry.measured.count_event();
        entry.fields.as_deref_mut()
    }
}

impl Drop for StreamEntry {
    fn drop(&mut self) {
        if let Some(Entry { measured, fields: Some(fields) }) = &self.0 {
            fields.write(measured.elapsed());
        }
    }
}
