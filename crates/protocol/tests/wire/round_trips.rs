//! Encoding and decoding yields the same value.

use a2ad_protocol::{OperationKind, Reply, dialect::v1};
use proptest::{prop_assert, prop_assert_eq, proptest};

use crate::{
    codec::{
        read_error, read_event, read_operation, read_reply, write_error, write_event, write_operation,
        write_reply,
    },
    values,
};

proptest! {
    #[test]
    fn every_operation_round_trips(operation in values::operation()) {
        let text = write_operation(&operation);
        let method = v1::operation::method(operation.kind());
        prop_assert_eq!(read_operation(method, &text), Ok(values::with_skill(operation)), "{}", text);
    }

    #[test]
    fn every_event_round_trips_on_one_line(event in values::event()) {
        let text = write_event(&event);
        prop_assert!(!text.contains(['\n', '\r']), "{}", text);
        prop_assert_eq!(v1::event::encode_bytes(&event), text.as_bytes());
        prop_assert_eq!(v1::event::decode_bytes(text.as_bytes()), Ok(event.clone()), "{}", text);
        prop_assert_eq!(read_event(&text), Ok(event), "{}", text);
    }

    #[test]
    fn every_reply_round_trips(reply in values::reply()) {
        let text = write_reply(&reply);
        for kind in operations_of(&reply) {
            prop_assert_eq!(read_reply(*kind, &text), Ok(reply.clone()), "{}", text);
        }
    }

    #[test]
    fn every_error_round_trips(error in values::error()) {
        let text = write_error(&error);
        prop_assert_eq!(read_error(&text), Ok(error), "{}", text);
    }
}

/// The operations that have this reply.
fn operations_of(reply: &Reply) -> &'static [OperationKind] {
    match reply {
        Reply::SentTask(_) | Reply::SentMessage(_) => &[OperationKind::SendMessage],
        Reply::Task(_) => &[OperationKind::GetTask, OperationKind::CancelTask],
        Reply::Tasks(_) => &[OperationKind::ListTasks],
        Reply::PushConfig(_) => &[OperationKind::CreatePushConfig, OperationKind::GetPushConfig],
        Reply::PushConfigs(_) => &[OperationKind::ListPushConfigs],
        Reply::Deleted => &[OperationKind::DeletePushConfig],
        Reply::Card(_) => &[OperationKind::GetExtendedCard],
    }
}
