//! A value of 1.0 round-trips through this dialect, as far as it can express it.

use a2ad_protocol::{Dialect, Event, Operation, OperationKind, Reply, dialect::v1, json::write::Writer};
use proptest::{prop_assert, prop_assert_eq, proptest};

use crate::{
    codec::{raw, read_event, read_operation, read_reply, write_event, write_operation, write_reply},
    limits, values,
};

proptest! {
    #[test]
    fn every_operation_round_trips(operation in values::operation()) {
        let (address, body) = write_operation(&operation);
        let read = read_operation(operation.kind(), &address, Some(&body));
        let read = read.map(limited);
        prop_assert_eq!(read, Ok(limited(operation)), "{:?} {}", address, body);
    }

    #[test]
    fn every_reply_round_trips(reply in values::reply()) {
        let kind = match &reply {
            Reply::SentTask(_) | Reply::SentMessage(_) => OperationKind::SendMessage,
            Reply::Task(_) => OperationKind::CancelTask,
            Reply::Tasks(_) => OperationKind::ListTasks,
            Reply::PushConfig(_) => OperationKind::GetPushConfig,
            Reply::PushConfigs(_) => OperationKind::ListPushConfigs,
            Reply::Deleted => OperationKind::DeletePushConfig,
            // Cards have separate tests.
            Reply::Card(_) => return Ok(()),
        };
        let text = write_reply(&reply);
        let read = read_reply(kind, &text).map(|read| limits::reply(Dialect::V03, read));
        prop_assert_eq!(read, Ok(limits::reply(Dialect::V03, reply)), "{}", text);
    }

    #[test]
    fn every_event_round_trips_on_one_line(event in values::event()) {
        let text = write_event(&event);
        prop_assert!(!text.contains(['\n', '\r']), "{}", text);
        let read = read_event(&text).map(|read| limits::event(Dialect::V03, read));
        prop_assert_eq!(read, Ok(limits::event(Dialect::V03, event)), "{}", text);
    }

    #[test]
    fn only_a_settled_status_is_final(event in values::event()) {
        let Event::Status(update) = &event else { return Ok(()) };
        let settled = update.status.state.is_settled();
        prop_assert_eq!(write_event(&event).contains(r#","final":true"#), settled);
    }

    #[test]
    fn decoded_operation_can_be_expressed_in_1_0(operation in values::operation()) {
        let (address, body) = write_operation(&operation);
        let Ok(read) = read_operation(operation.kind(), &address, Some(&body)) else { panic!("{body}") };
        let mut writer = Writer::new();
        v1::operation::encode(&mut writer, &read);
        let text = String::from_utf8(writer.finish()).unwrap();
        prop_assert_eq!(v1::operation::decode(v1::operation::method(read.kind()), Some(raw(&text))), Ok(read));
    }
}

/// The limits of this generation's JSON-RPC form; in addition a cancel has no body and the skill is carried
/// in the metadata.
fn limited(operation: Operation) -> Operation {
    match limits::operation(Dialect::V03, operation) {
        Operation::CancelTask(mut req) => {
            req.metadata = None;
            Operation::CancelTask(req)
        }
        other => other,
    }
}
