//! Resource names of 0.3, and names of any length.

use a2ad_protocol::{
    ErrorKind, Operation, OperationKind, PushConfigRef, Violation, grpc::Service, operation::MAX_ID_BYTES,
};

use crate::{
    bad::assert_rejected,
    wire::{bytes, int},
};

const V03: Service = Service::V03;

#[test]
fn id_is_everything_after_the_collection() {
    for id in ["t-1", "a:b", "日本", "a/b", "tasks/x", "%2F", " "] {
        let body = bytes(1, format!("tasks/{id}"));
        for kind in [OperationKind::GetTask, OperationKind::CancelTask, OperationKind::SubscribeToTask] {
            let read = V03.decode_operation(kind, &body).unwrap();
            let (Operation::GetTask(a2ad_protocol::GetTask { id: read, .. })
            | Operation::CancelTask(a2ad_protocol::CancelTask { id: read, .. })
            | Operation::SubscribeToTask(a2ad_protocol::SubscribeToTask { id: read, .. })) = read
            else {
                panic!("{kind:?} was decoded as another operation")
            };
            assert_eq!(read.as_str(), id);
        }
    }
}

#[test]
fn config_name_contains_its_task() {
    for (task, config) in [("t", "c"), ("a:b", "日本"), ("a/b", "c"), ("t", "%2F")] {
        let body = bytes(1, format!("tasks/{task}/pushNotificationConfigs/{config}"));
        let expected = PushConfigRef { task_id: task.into(), id: Some(config.into()), tenant: None };
        let read = V03.decode_operation(OperationKind::GetPushConfig, &body);
        assert_eq!(read, Ok(Operation::GetPushConfig(expected.clone())));
        let read = V03.decode_operation(OperationKind::DeletePushConfig, &body);
        assert_eq!(read, Ok(Operation::DeletePushConfig(expected)));
    }
}

#[test]
fn invalid_resource_names_are_rejected() {
    let task = "tasks/{task}";
    for name in ["t", "task/t", "/tasks/t", "tasks", "tasks/"] {
        let read = V03.decode_operation(OperationKind::GetTask, &bytes(1, name));
        assert_rejected(read, "name", &format!("expected {task}"));
        let read = V03.decode_operation(OperationKind::ListPushConfigs, &bytes(1, name));
        assert_rejected(read, "parent", &format!("expected {task}"));
    }
    assert_rejected(
        V03.decode_operation(OperationKind::GetTask, &[]),
        "name",
        &format!("required, expected {task}"),
    );
    let config = "tasks/{task}/pushNotificationConfigs/{config}";
    for name in ["tasks/t", "tasks/t/pushNotificationConfigs/", "tasks//pushNotificationConfigs/c", "c"] {
        let read = V03.decode_operation(OperationKind::GetPushConfig, &bytes(1, name));
        assert_rejected(read, "name", &format!("expected {config}"));
    }
}

#[test]
fn created_config_takes_its_id_from_any_of_three_places() {
    let bare = |id: &str| bytes(2, [bytes(1, id), bytes(2, "https://h.example")].concat());
    let create = |config_id: &str, name: &str, id: &str| {
        let config = bytes(3, [bytes(1, name), bare(id)].concat());
        let body = [bytes(1, "tasks/t"), bytes(2, config_id), config].concat();
        V03.decode_operation(OperationKind::CreatePushConfig, &body)
    };
    let name = "tasks/t/pushNotificationConfigs/n";
    for (config_id, name, id, expected) in [
        ("c", name, "b", Some("b")),
        ("c", name, "", Some("n")),
        ("c", "", "", Some("c")),
        ("", "", "", None),
        ("c", "tasks/t", "", Some("c")),
    ] {
        let Ok(Operation::CreatePushConfig(config)) = create(config_id, name, id) else { panic!("{name}") };
        assert_eq!(config.id.as_ref().map(AsRef::as_ref), expected);
        assert_eq!(config.task_id, Some("t".into()));
    }
    assert_rejected(
        create("c", "tasks/other/pushNotificationConfigs/n", ""),
        "config.name",
        "expected a config of the task in parent",
    );
    assert_rejected(
        V03.decode_operation(OperationKind::CreatePushConfig, &bytes(1, "tasks/t")),
        "config",
        "required, expected a config",
    );
    assert_rejected(
        V03.decode_operation(OperationKind::CreatePushConfig, &[bytes(1, "tasks/t"), bytes(3, [])].concat()),
        "config.pushNotificationConfig",
        "required, expected a config",
    );
}

#[test]
fn oversized_id_names_its_field() {
    let long = "x".repeat(MAX_ID_BYTES + 1);
    let url = bytes(4, "https://h.example");
    let bare = bytes(2, [bytes(1, &long), bytes(2, "https://h.example")].concat());
    let part = bytes(5, bytes(1, "x"));
    let message = [bytes(1, &long), int(4, 1), part].concat();
    #[rustfmt::skip]
    let cases = [
        (Service::V1, OperationKind::SendMessage, bytes(2, &message), "message.messageId"),
        (Service::V1, OperationKind::GetTask, bytes(2, &long), "id"),
        (Service::V1, OperationKind::CreatePushConfig, [bytes(3, &long), url].concat(), "taskId"),
        (V03, OperationKind::SendMessage, bytes(1, &message), "message.messageId"),
        (V03, OperationKind::GetTask, bytes(1, format!("tasks/{long}")), "name"),
        (V03, OperationKind::ListPushConfigs, bytes(1, format!("tasks/{long}")), "parent"),
        (V03, OperationKind::CreatePushConfig, [bytes(1, "tasks/t"), bytes(3, bare)].concat(), "configId"),
        (V03, OperationKind::GetPushConfig, bytes(1, format!("tasks/t/pushNotificationConfigs/{long}")),
         "name"),
    ];
    for (service, kind, body, field) in cases {
        let error = service.decode_operation(kind, &body).unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidParams);
        assert_eq!(error.violations, [Violation::new(field, "expected at most 1024 bytes")], "{kind:?}");
    }
}
