//! Consistency of the lists of operations, methods, generations and samples.

use std::path::Path;

use a2ad_protocol::{
    Dialect, OperationKind,
    dialect::{MethodFamily, draft, of_method, v1, v03},
};

use crate::codec::{DIALECTS, methods, read_operation};

#[test]
fn each_method_is_read_as_its_own_operation_and_has_samples() {
    for dialect in DIALECTS {
        for (method, kind) in methods(dialect) {
            let folder = format!("tests/samples/{}", crate::codec::sample_folder(dialect));
            for sample in ["minimal", "full"] {
                let path = format!("{folder}/operation/{method}/{sample}.json");
                let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
                assert_eq!(read_operation(dialect, method, &text).unwrap().kind(), kind, "{path}");
            }
            let streams =
                matches!(kind, OperationKind::SendStreamingMessage | OperationKind::SubscribeToTask);
            let card = kind == OperationKind::GetExtendedCard;
            let replies = format!("{folder}/reply/{method}");
            assert_eq!(Path::new(&replies).exists(), !streams && !card, "{replies}");
        }
    }
}

#[test]
fn method_belongs_to_one_generation_or_is_shared() {
    use MethodFamily::{Draft, Shared, Unknown, V1, V03};
    let rows = [
        ("tasks/send", Draft),
        ("tasks/sendSubscribe", Draft),
        ("tasks/pushNotification/set", Draft),
        ("tasks/pushNotification/get", Draft),
        ("tasks/get", Shared),
        ("tasks/cancel", Shared),
        ("tasks/resubscribe", Shared),
        ("message/send", V03),
        ("message/stream", V03),
        ("tasks/pushNotificationConfig/set", V03),
        ("tasks/pushNotificationConfig/get", V03),
        ("tasks/pushNotificationConfig/list", V03),
        ("tasks/pushNotificationConfig/delete", V03),
        ("agent/getAuthenticatedExtendedCard", V03),
        ("tasks/list", V03),
        ("SendMessage", V1),
        ("GetExtendedAgentCard", V1),
        ("sendMessage", Unknown),
        ("tasks/Get", Unknown),
        ("", Unknown),
    ];
    for (method, family) in rows {
        assert_eq!(of_method(method), family, "{method}");
    }
    let known =
        draft::operation::METHODS.len() + v03::operation::METHODS.len() + v03::operation::EXTRA_METHODS.len();
    assert_eq!(known, 7 + 10 + 1);
    assert!(v1::operation::METHODS.iter().all(|row| of_method(row.0) == V1));
}

#[test]
fn operation_maps_to_its_method() {
    for dialect in DIALECTS {
        for (method, kind) in methods(dialect) {
            let expected = Some(method).filter(|method| *method != "tasks/list");
            assert_eq!(dialect.method(kind), expected, "{dialect:?}");
        }
    }
    for kind in [OperationKind::ListTasks, OperationKind::ListPushConfigs, OperationKind::GetExtendedCard] {
        assert_eq!(Dialect::Draft.method(kind), None);
    }
    assert_eq!(Dialect::V1.method(OperationKind::ListTasks), Some("ListTasks"));
    assert_eq!(Dialect::V03Proto.method(OperationKind::GetTask), None);
}

#[test]
fn dialect_rejects_methods_of_other_dialects() {
    use a2ad_protocol::ErrorKind::MethodNotFound;
    for dialect in Dialect::ALL {
        for method in ["tasks/send", "message/send", "SendMessage", "nothing/of/it"] {
            let own = dialect.method(OperationKind::SendMessage) == Some(method);
            let assert_rejected =
                dialect.decode_operation(method, None).is_err_and(|error| error.kind == MethodNotFound);
            assert_eq!(assert_rejected, !own, "{dialect:?} {method}");
        }
    }
}
