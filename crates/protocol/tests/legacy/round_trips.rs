//! A value of 1.0 round-trips through an older dialect, as far as that dialect can express it.
//!
//! The values are those 1.0 can express. [`limits`](crate::limits) computes what an older dialect preserves;
//! the decoded value must equal that.

use a2ad_protocol::{Dialect, Event, Operation, OperationKind, PushConfig, Reply, TaskId, TaskState};
use proptest::{prop_assert, prop_assert_eq, prop_assume, proptest};

use crate::{
    codec::{
        DIALECTS, read_error, read_event, read_operation, read_reply, write_error, write_event,
        write_operation, write_reply,
    },
    limits, values,
};

proptest! {
    #[test]
    fn every_operation_round_trips(operation in values::operation()) {
        for dialect in DIALECTS {
            let operation = with_task_id(operation.clone());
            let method = match (dialect.method(operation.kind()), dialect) {
                (Some(method), _) => method,
                (None, Dialect::V03) => "tasks/list",
                (None, _) => continue,
            };
            let text = write_operation(dialect, &operation);
            let read = read_operation(dialect, method, &text).map(|read| limits::operation(Dialect::V1, read));
            prop_assert_eq!(read, Ok(limits::operation(dialect, operation)), "{}", text);
        }
    }

    #[test]
    fn every_reply_round_trips(reply in values::reply()) {
        for dialect in DIALECTS {
            let reply = with_task(reply.clone());
            let kind = match &reply {
                Reply::SentMessage(_) if dialect == Dialect::Draft => continue,
                Reply::SentTask(_) | Reply::SentMessage(_) => OperationKind::SendMessage,
                Reply::Task(_) => OperationKind::CancelTask,
                Reply::Tasks(_) => OperationKind::ListTasks,
                Reply::PushConfig(_) => OperationKind::GetPushConfig,
                Reply::PushConfigs(_) => OperationKind::ListPushConfigs,
                Reply::Deleted => OperationKind::DeletePushConfig,
                // Cards have separate tests.
                Reply::Card(_) => continue,
            };
            let text = write_reply(dialect, &reply);
            let read = read_reply(dialect, kind, &text).map(|read| limits::reply(Dialect::V1, read));
            prop_assert_eq!(read, Ok(limits::reply(dialect, reply)), "{}", text);
        }
    }

    #[test]
    fn every_update_round_trips_on_one_line(event in values::event()) {
        for dialect in DIALECTS {
            if dialect == Dialect::Draft && matches!(event, Event::Task(_) | Event::Message(_)) {
                continue;
            }
            let frames = write_event(dialect, &event);
            prop_assert_eq!(frames.len(), 1);
            prop_assert!(!frames[0].contains(['\n', '\r']), "{}", frames[0]);
            let read = read_event(dialect, &frames[0]).map(|read| limits::event(Dialect::V1, read));
            prop_assert_eq!(read, Ok(limits::event(dialect, event.clone())), "{}", frames[0]);
        }
    }

    #[test]
    fn snapshot_in_the_draft_is_its_status_followed_by_each_artifact(event in values::event()) {
        let dialect = Dialect::Draft;
        let Event::Task(task) = event else { return Ok(()) };
        let different = task.artifacts.iter().map(|artifact| &artifact.id).collect::<std::collections::HashSet<_>>();
        prop_assume!(different.len() == task.artifacts.len());
        let frames = write_event(dialect, &Event::Task(task.clone()));
        let task = limits::task(dialect, task);
        let mut events = frames.iter().map(|frame| read_event(dialect, frame).unwrap());
        let Some(Event::Status(first)) = events.next().map(|first| limits::event(Dialect::V1, first)) else {
            panic!("expected a status")
        };
        prop_assert!(frames[0].contains(r#""final":false"#));
        prop_assert_eq!((&first.task_id, &first.status, &first.metadata), (&task.id, &task.status, &task.metadata));
        let mut artifacts = Vec::new();
        for event in events {
            let Event::Artifact(update) = event else { panic!("expected an artifact") };
            prop_assert_eq!((&update.task_id, update.append), (&task.id, false));
            prop_assert_eq!(update.last_chunk, task.status.state.is_terminal());
            artifacts.push(limits::artifact(Dialect::V1, 0, update.artifact));
        }
        prop_assert_eq!(artifacts, task.artifacts);
    }

    #[test]
    fn message_in_the_draft_is_a_final_status(event in values::event()) {
        let dialect = Dialect::Draft;
        let Event::Message(message) = event else { return Ok(()) };
        prop_assume!(message.task_id.is_some());
        let frames = write_event(dialect, &Event::Message(message.clone()));
        prop_assert_eq!(frames.len(), 1);
        prop_assert!(frames[0].contains(r#""final":true"#));
        let Ok(Event::Status(update)) = read_event(dialect, &frames[0]) else { panic!("{}", frames[0]) };
        prop_assert_eq!((Some(&update.task_id), update.status.state), (message.task_id.as_ref(), TaskState::Completed));
        let expected_message = limits::message(dialect, message.clone());
        prop_assert_eq!(update.status.message.map(|expected_message| limits::message(Dialect::V1, expected_message)), Some(expected_message.clone()));
        let text = write_reply(dialect, &Reply::SentMessage(message.clone()));
        let Ok(Reply::SentTask(task)) = read_reply(dialect, OperationKind::SendMessage, &text) else { panic!("{text}") };
        let task = limits::task(Dialect::V1, task);
        prop_assert_eq!((Some(&task.id), task.status.state), (message.task_id.as_ref(), TaskState::Completed));
        prop_assert_eq!((&task.status.message, &task.artifacts[0].parts), (&Some(expected_message.clone()), &expected_message.parts));
    }

    #[test]
    fn error_keeps_its_kind_and_fields(error in values::error()) {
        for dialect in DIALECTS {
            let text = write_error(dialect, &error);
            let read = read_error(dialect, &text).unwrap();
            prop_assert_eq!(read.kind.row().legacy_code, wire_code(dialect, error.kind), "{}", text);
            // Several violations are kept one by one; a single one without a field becomes the message.
            let is_message = error.violations.len() == 1 && error.violations[0].field.is_empty();
            if text.contains(r#""errors""#) && !error.violations.is_empty() && !is_message {
                prop_assert_eq!(&read.violations, &error.violations, "{}", text);
            }
            prop_assert_eq!(write_error(dialect, &read), text);
        }
    }
}

/// In the draft a send has a task id.
fn with_task_id(mut operation: Operation) -> Operation {
    if let Operation::SendMessage(req) | Operation::SendStreamingMessage(req) = &mut operation {
        req.message.task_id.get_or_insert_with(|| TaskId::from("t-1"));
    }
    operation
}

/// A returned webhook belongs to a task.
fn with_task(mut reply: Reply) -> Reply {
    let own = |config: &mut PushConfig| {
        config.task_id.get_or_insert_with(|| TaskId::from("t-1"));
    };
    match &mut reply {
        Reply::PushConfig(config) => own(config),
        Reply::PushConfigs(page) => page.configs.iter_mut().for_each(own),
        _ => {}
    }
    reply
}

/// The draft has no code for two errors.
fn wire_code(dialect: Dialect, kind: a2ad_protocol::ErrorKind) -> i32 {
    match (dialect, kind.row().legacy_code) {
        (Dialect::Draft, -32006) => -32603,
        (Dialect::Draft, -32007) => -32004,
        (_, code) => code,
    }
}
