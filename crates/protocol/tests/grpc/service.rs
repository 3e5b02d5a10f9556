//! The services' names and methods compared with the published descriptors.

use std::collections::BTreeSet;

use a2ad_protocol::{
    Dialect, Event, OperationKind, TaskState,
    grpc::{DESCRIPTORS, Service},
    model::StatusUpdate,
};
use prost::Message as _;
use prost_types::FileDescriptorSet;

use crate::wire::{bytes, int};

#[test]
fn the_methods_are_those_of_the_descriptors() {
    let set = FileDescriptorSet::decode(DESCRIPTORS).unwrap();
    for service in Service::ALL {
        let (package, name) = service.name().rsplit_once('.').unwrap();
        let file = set.file.iter().find(|file| file.package() == package).unwrap();
        let [published] = &file.service[..] else { panic!("one service in {package}") };
        assert_eq!(published.name(), name);
        let methods: BTreeSet<&str> = published.method.iter().map(|method| method.name()).collect();
        assert_eq!(methods, service.methods().iter().map(|row| row.0).collect());
        for method in &published.method {
            let kind = service.operation(method.name()).unwrap();
            assert_eq!(service.method(kind), Some(method.name()));
            let streams =
                matches!(kind, OperationKind::SendStreamingMessage | OperationKind::SubscribeToTask);
            assert_eq!(method.server_streaming(), streams, "{}", method.name());
        }
        assert_eq!(service.operation("Nothing"), None);
    }
    // Reflection also serves the imports of a file.
    let names: BTreeSet<&str> = set.file.iter().map(|file| file.name()).collect();
    assert!(set.file.iter().flat_map(|file| &file.dependency).all(|name| names.contains(name.as_str())));
}

#[test]
fn each_service_has_its_dialect() {
    assert_eq!(Service::V1.dialect(), Dialect::V1);
    assert_eq!(Service::V03.dialect(), Dialect::V03Proto);
    assert_eq!(Service::V03.method(OperationKind::ListTasks), None);
}

#[test]
fn only_a_settled_status_of_0_3_is_final() {
    for state in TaskState::ALL {
        let status = a2ad_protocol::TaskStatus { state, message: None, timestamp: None };
        let update = StatusUpdate { task_id: "t".into(), context_id: "c".into(), status, metadata: None };
        let status = match state.number() {
            0 => Vec::new(),
            number => int(1, number.into()),
        };
        let r#final = if state.is_settled() { int(4, 1) } else { Vec::new() };
        let expected = bytes(3, [bytes(1, "t"), bytes(2, "c"), bytes(3, status), r#final].concat());
        assert_eq!(Service::V03.encode_event(&Event::Status(update)), expected);
    }
}

#[test]
fn send_of_0_3_blocks_unless_a_configuration_omits_blocking() {
    let message = bytes(1, [bytes(1, "m"), int(4, 1), bytes(5, bytes(1, "x"))].concat());
    let waits = |configuration: Option<Vec<u8>>| {
        let configuration = configuration.map(|fields| bytes(2, fields)).unwrap_or_default();
        let body = [message.clone(), configuration].concat();
        match Service::V03.decode_operation(OperationKind::SendMessage, &body) {
            Ok(a2ad_protocol::Operation::SendMessage(req)) => !req.return_immediately,
            other => panic!("{other:?}"),
        }
    };
    assert!(waits(None));
    assert!(!waits(Some(Vec::new())));
    assert!(waits(Some(int(4, 1))));
}
