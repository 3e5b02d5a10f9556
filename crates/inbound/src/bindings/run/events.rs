//! A call as server-sent events: `task`, then `progress` and `artifact` as they come, then `final`.
//!
//! The data of `task`, `progress` and `final` is the state of the task, as in a response without a result. That of
//! `artifact` is an artifact or a chunk of one. The ids are those of the task's stream in HTTP+JSON, where it can be resumed.

use std::sync::Arc;

use axum::response::Response;
use engine::{
    Origin, TaskStream,
    log::{Entry, Seq},
};
use protocol::{
    Artifact, ArtifactId, Error, ErrorTable, Event, Task, Timestamp, dialect::v1, json::write::Writer,
};

use super::{located, result::encode_state};
use crate::{
    request::{access_log::CallEntry, exchange::Exchange},
    response::sse::{self, EventEncoder},
};

/// Responds to a call with its events.
pub(super) fn respond(mut exchange: Exchange, stream: TaskStream) -> Response {
    let task = stream.task().cloned();
    let log_entry = std::mem::replace(&mut exchange.log_entry, CallEntry::off()).into_stream(Origin::Run);
    let response = sse::events(
        stream,
        RunEvents { errors: exchange.server.errors },
        log_entry,
        exchange.request_id,
        &exchange.server,
        Arc::clone(&exchange.memory),
    );
    match task {
        Some(task) => located(response, &exchange, &task),
        None => response,
    }
}

struct RunEvents {
    errors: ErrorTable,
}

impl EventEncoder for RunEvents {
    fn snapshot(&mut self, out: &mut Vec<u8>, seq: Seq, task: Task, _: Vec<ArtifactId>) {
        event(out, Some(seq), "task", |data| encode_state(data, &task.id, &task.context_id, &task.status));
        for one in &task.artifacts {
            artifact(out, seq, one, false, true);
        }
    }

    fn entry(&mut self, out: &mut Vec<u8>, seq: Seq, entry: &Entry) -> Result<(), engine::Error> {
        match entry.event()? {
            Event::Status(update) => {
                let name = if update.status.state.is_settled() { "final" } else { "progress" };
                event(out, Some(seq), name, |data| {
                    encode_state(data, &update.task_id, &update.context_id, &update.status);
                });
            }
            Event::Artifact(update) => artifact(out, seq, &update.artifact, update.append, update.last_chunk),
            // Calls of this endpoint are answered with tasks, and the log has no whole ones.
            Event::Message(_) | Event::Task(_) => {}
        }
        Ok(())
    }

    fn error(&self, out: &mut Vec<u8>, error: &Error, now: Timestamp) {
        let status = error.kind.row().http_of(self.errors);
        event(out, None, "error", |data| v1::error::encode_status(data, error, status, self.errors, now));
    }
}

fn artifact(out: &mut Vec<u8>, seq: Seq, artifact: &Artifact, append: bool, last_chunk: bool) {
    event(out, Some(seq), "artifact", |data| {
        data.object(|data| {
            data.text("artifactId", artifact.id.as_str());
            data.maybe_text("name", artifact.name.as_deref());
            data.key("append").boolean(append);
            data.key("lastChunk").boolean(last_chunk);
            data.key("parts").array(&artifact.parts, v1::message::encode_part);
        });
    });
}

fn event(out: &mut Vec<u8>, seq: Option<Seq>, name: &str, data: impl FnOnce(&mut Writer)) {
    if let Some(seq) = seq {
        out.extend_from_slice(format!("id: {seq}\n").as_bytes());
    }
    out.extend_from_slice(format!("event: {name}\ndata: ").as_bytes());
    let mut writer = Writer::append_to(std::mem::take(out));
    data(&mut writer);
    *out = writer.finish();
    out.extend_from_slice(b"\n\n");
}
