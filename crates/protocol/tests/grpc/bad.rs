//! Invalid messages: the violation names the field and the expectation as in JSON.

use a2ad_protocol::{Error, ErrorKind, OperationKind, Violation, grpc::Service};

use crate::wire::{bytes, double, int};

const FILLED: &str = "required, expected a non-empty string";
const ROLE: &str = "required, expected ROLE_USER or ROLE_AGENT";

/// Asserts that decoding failed with this violation.
pub(crate) fn assert_rejected<T: std::fmt::Debug>(read: Result<T, Error>, field: &str, problem: &str) {
    let error = match read {
        Err(error) => error,
        Ok(value) => panic!("{field} is accepted: {value:?}"),
    };
    assert_eq!(error.kind, ErrorKind::InvalidParams);
    assert_eq!(error.violations, [Violation::new(field, problem)]);
}

fn assert_all_rejected(service: Service, kind: OperationKind, cases: &[(Vec<u8>, &str, &str)]) {
    for (body, field, problem) in cases {
        assert_rejected(service.decode_operation(kind, body), field, problem);
    }
}

#[test]
fn invalid_send_of_1_0_names_its_field() {
    let text = bytes(5, bytes(1, "hi"));
    let send = |message: Vec<u8>| bytes(2, message);
    let head = [bytes(1, "m"), int(4, 1)].concat();
    let good = send([head.clone(), text.clone()].concat());
    let with = |more: Vec<u8>| [good.clone(), more].concat();
    let part = |part: Vec<u8>| send([head.clone(), text.clone(), bytes(5, part)].concat());
    let config = |config: Vec<u8>| with(bytes(3, bytes(2, config)));
    let url = "expected an absolute http or https URL";
    #[rustfmt::skip]
    let cases = [
        (Vec::new(), "message", "required, expected a message"),
        (send(Vec::new()), "message.messageId", FILLED),
        (send(bytes(1, "m")), "message.role", ROLE),
        (send([bytes(1, "m"), int(4, 3)].concat()), "message.role", "expected ROLE_USER or ROLE_AGENT"),
        (send(head.clone()), "message.parts", "required, expected at least one part"),
        (part(Vec::new()), "message.parts[1]", "expected one of text, raw, url, data"),
        (part(bytes(7, "text/plain")), "message.parts[1]", "expected one of text, raw, url, data"),
        (part(bytes(4, double(2, f64::NAN))), "message.parts[1].data", "expected a finite number"),
        (part([bytes(1, "x"), bytes(5, entry(double(2, f64::INFINITY)))].concat()),
         "message.parts[1].metadata", "expected a finite number"),
        (part(bytes(4, bytes(3, [0xff]))), "message.parts[1].data", "expected UTF-8 text"),
        (part(bytes(4, bytes(2, "x"))), "message.parts[1].data", "expected a google.protobuf.Value"),
        (send([head.clone(), text.clone(), bytes(8, "")].concat()), "message.referenceTaskIds[0]",
         "expected a non-empty string"),
        (with(bytes(3, int(3, -1))), "configuration.historyLength", "expected an integer of 0 or more"),
        (config(Vec::new()), "configuration.taskPushNotificationConfig.url",
         "required, expected an absolute http or https URL"),
        (config(bytes(4, "ftp://h")), "configuration.taskPushNotificationConfig.url", url),
        (config([bytes(4, "https://h.example"), bytes(6, Vec::new())].concat()),
         "configuration.taskPushNotificationConfig.authentication.scheme", FILLED),
        (with(bytes(4, entry(bytes(3, [0xc3])))), "metadata", "expected UTF-8 text"),
    ];
    assert_all_rejected(Service::V1, OperationKind::SendMessage, &cases);
    assert!(Service::V1.decode_operation(OperationKind::SendMessage, &good).is_ok());
}

#[test]
fn invalid_request_of_1_0_names_its_field() {
    let v1 = Service::V1;
    let cases = [
        (Vec::new(), "id", FILLED),
        ([bytes(2, "t"), int(3, -1)].concat(), "historyLength", "expected an integer of 0 or more"),
    ];
    assert_all_rejected(v1, OperationKind::GetTask, &cases);
    #[rustfmt::skip]
    let cases = [
        (int(3, 9), "status", "expected a task state such as TASK_STATE_WORKING"),
        (int(4, 0), "pageSize", "expected an integer from 1 to 100"),
        (int(4, 101), "pageSize", "expected an integer from 1 to 100"),
        (int(6, -1), "historyLength", "expected an integer of 0 or more"),
        (bytes(7, int(2, 1_000_000_000)), "statusTimestampAfter",
         "expected a timestamp within the years 0000 to 9999"),
        (bytes(7, int(1, i64::MAX)), "statusTimestampAfter",
         "expected a timestamp within the years 0000 to 9999"),
    ];
    assert_all_rejected(v1, OperationKind::ListTasks, &cases);
    assert_all_rejected(v1, OperationKind::CancelTask, &[(Vec::new(), "id", FILLED)]);
    assert_all_rejected(v1, OperationKind::SubscribeToTask, &[(Vec::new(), "id", FILLED)]);
    let cases = [
        (bytes(4, "https://h.example"), "taskId", FILLED),
        (bytes(3, "t"), "url", "required, expected an absolute http or https URL"),
    ];
    assert_all_rejected(v1, OperationKind::CreatePushConfig, &cases);
    assert_all_rejected(
        v1,
        OperationKind::GetPushConfig,
        &[(Vec::new(), "taskId", FILLED), (bytes(2, "t"), "id", FILLED)],
    );
    assert_all_rejected(v1, OperationKind::DeletePushConfig, &[(bytes(2, "t"), "id", FILLED)]);
    let cases = [
        (Vec::new(), "taskId", FILLED),
        ([bytes(1, "t"), int(2, -1)].concat(), "pageSize", "expected an integer of 0 or more"),
    ];
    assert_all_rejected(v1, OperationKind::ListPushConfigs, &cases);
}

#[test]
fn invalid_send_of_0_3_names_its_field() {
    let text = bytes(5, bytes(1, "hi"));
    let send = |message: Vec<u8>| bytes(1, message);
    let good = send([bytes(1, "m"), int(4, 1), text.clone()].concat());
    let without_id = send([int(4, 1), text.clone()].concat());
    let part = |part: Vec<u8>| send([int(4, 1), bytes(5, part)].concat());
    let config = |config: Vec<u8>| [good.clone(), bytes(2, bytes(2, config))].concat();
    let auth = |auth: Vec<u8>| config([bytes(2, "https://h.example"), bytes(4, auth)].concat());
    let field = "configuration.pushNotification.authentication.schemes";
    #[rustfmt::skip]
    let cases = [
        (Vec::new(), "message", "required, expected a message"),
        (send(text), "message.role", ROLE),
        (send(int(4, 2)), "message.content", "required, expected at least one part"),
        (without_id, "message.messageId", "expected a non-empty string, found nothing"),
        (part(Vec::new()), "message.content[0]", "expected one of text, file, data"),
        (part(bytes(2, bytes(3, "image/png"))), "message.content[0].file",
         "expected one of fileWithBytes, fileWithUri"),
        (part(bytes(3, bytes(1, entry(double(2, f64::NEG_INFINITY))))), "message.content[0].data.data",
         "expected a finite number"),
        ([good.clone(), bytes(2, int(3, -1))].concat(), "configuration.historyLength",
         "expected an integer of 0 or more"),
        (config(Vec::new()), "configuration.pushNotification.url",
         "required, expected an absolute http or https URL"),
        (auth(bytes(2, "secret")), field, "required, expected at least one scheme"),
        (auth(bytes(1, "")), &format!("{field}[0]"), "expected a non-empty string"),
    ];
    assert_all_rejected(Service::V03, OperationKind::SendMessage, &cases);
    assert!(Service::V03.decode_operation(OperationKind::SendMessage, &good).is_ok());
}

#[test]
fn malformed_bytes_are_rejected_with_the_message_name() {
    // An incomplete key, field number 0, a length without its bytes, and unterminated groups.
    let broken: [&[u8]; 5] =
        [&[0xff], &[0x00], &[0x9a, 0x06, 0x05, b'x'], &[0x9b, 0x06], &[0x9b, 0x06, 0xa4, 0x06]];
    for service in Service::ALL {
        for (method, kind) in service.methods() {
            for body in broken {
                let error = service.decode_operation(*kind, body).unwrap_err();
                assert_eq!(error.kind, ErrorKind::InvalidParams, "{method} {body:?}");
                assert_eq!(error.violations[0].field, "", "{method} {body:?}");
                let package = service.name().strip_suffix("A2AService").unwrap();
                assert!(error.message.starts_with(&format!("expected a {package}")), "{}", error.message);
            }
        }
        for body in broken {
            service.decode_event(body).unwrap_err();
        }
    }
}

#[test]
fn malformed_field_is_named() {
    let v1 = |message: Vec<u8>| (OperationKind::SendMessage, bytes(2, message));
    let v03 = |message: Vec<u8>| (OperationKind::SendMessage, bytes(1, message));
    let part = |part: Vec<u8>| [bytes(5, bytes(1, "hi")), bytes(5, part)].concat();
    let cut = |field: Vec<u8>| field[..field.len() - 1].to_vec();
    let list = |request: Vec<u8>| (OperationKind::ListTasks, request);
    let truncated = "expected a string, but the data is truncated";
    for (service, (kind, body), field, problem) in [
        (Service::V1, v1(bytes(1, [0xff])), "message.messageId", "expected UTF-8 text"),
        (Service::V1, v1(int(1, 5)), "message.messageId", "expected a string"),
        (Service::V1, v1(cut(bytes(1, "m-1"))), "message.messageId", truncated),
        (Service::V1, v1(bytes(4, "x")), "message.role", "expected an integer"),
        (Service::V1, v1(part(int(1, 5))), "message.parts[1].text", "expected a string"),
        (
            Service::V1,
            v1(part(vec![0])),
            "message.parts[1]",
            "expected a lf.a2a.v1.Part in protobuf encoding",
        ),
        (Service::V1, v1([bytes(7, "e"), int(7, 5)].concat()), "message.extensions[1]", "expected a string"),
        (Service::V1, v1(int(6, 5)), "message.metadata", "expected google.protobuf.Struct"),
        (
            Service::V1,
            v1(bytes(6, [0x9b, 0x06, 0xa4, 0x06])),
            "message.metadata",
            "expected a google.protobuf.Struct in protobuf encoding",
        ),
        (Service::V1, list(bytes(7, bytes(1, "x"))), "statusTimestampAfter.seconds", "expected an integer"),
        (Service::V1, list(bytes(8, "x")), "includeArtifacts", "expected true or false"),
        (Service::V03, v03(part(bytes(1, [0xff]))), "message.content[1].text", "expected UTF-8 text"),
        (Service::V03, (OperationKind::GetTask, int(1, 5)), "name", "expected a string"),
    ] {
        assert_rejected(service.decode_operation(kind, &body), field, problem);
    }
}

#[test]
fn members_of_an_object_need_the_right_wire_type() {
    let fixed = |number: u8| vec![number << 3 | 5, 0, 0, 0, 0];
    let group = |number: u8| vec![number << 3 | 3, number << 3 | 4];
    let value = int(4, 1);
    for metadata in [
        fixed(1),
        group(1),
        bytes(1, fixed(1)),
        bytes(1, group(2)),
        bytes(1, [int(1, 5), bytes(2, &value)].concat()),
        bytes(1, [bytes(1, "k"), int(2, 5)].concat()),
    ] {
        let request = [bytes(2, "t"), bytes(3, &metadata)].concat();
        let read = Service::V1.decode_operation(OperationKind::CancelTask, &request);
        assert_rejected(read, "metadata", "expected a google.protobuf.Value");
    }
    // Unknown fields may have any wire type.
    let metadata =
        [fixed(2), group(3), bytes(1, [fixed(3), bytes(1, "k"), bytes(2, value)].concat())].concat();
    let request = [bytes(2, "t"), bytes(3, metadata)].concat();
    Service::V1.decode_operation(OperationKind::CancelTask, &request).unwrap();
}

#[test]
fn reply_without_payload_is_rejected() {
    for service in Service::ALL {
        assert_rejected(
            service.decode_event(&[]),
            "",
            "expected exactly one of task, message, statusUpdate, artifactUpdate",
        );
        assert_rejected(
            service.decode_reply(OperationKind::SendMessage, &[]),
            "",
            "expected a task or a message",
        );
        assert_rejected(service.decode_reply(OperationKind::GetTask, &[]), "id", FILLED);
        assert_rejected(
            service.decode_reply(OperationKind::GetTask, &bytes(1, "t")),
            "status",
            "required, expected a task status",
        );
        assert_rejected(
            service.decode_event(&bytes(1, [bytes(1, "t"), bytes(3, int(1, 9))].concat())),
            "task.status.state",
            "expected a task state such as TASK_STATE_WORKING",
        );
        assert_rejected(
            service.decode_event(&bytes(4, bytes(1, "t"))),
            "artifactUpdate.artifact",
            "required, expected an artifact",
        );
        for kind in [OperationKind::SendStreamingMessage, OperationKind::SubscribeToTask] {
            assert_rejected(service.decode_reply(kind, &[]), "", "expected a stream, not a single response");
        }
    }
}

#[test]
fn listing_tasks_is_unsupported_in_0_3() {
    let (list, v03) = (OperationKind::ListTasks, Service::V03);
    let errors = [v03.decode_operation(list, &[]).unwrap_err(), v03.decode_reply(list, &[]).unwrap_err()];
    for error in errors {
        assert_eq!(error.kind, ErrorKind::MethodNotFound);
        assert!(error.message.contains("a2a.v1.A2AService has SendMessage"), "{}", error.message);
    }
}

#[test]
fn unknown_fields_are_ignored() {
    let unknown = [bytes(100, "x"), int(101, 5), double(102, 1.0), vec![0xbb, 0x06, 0x08, 0x01, 0xbc, 0x06]];
    for service in Service::ALL {
        let name = if service == Service::V1 { bytes(2, "t") } else { bytes(1, "tasks/t") };
        let body = [unknown.concat(), name.clone()].concat();
        let plain = service.decode_operation(OperationKind::GetTask, &name).unwrap();
        assert_eq!(service.decode_operation(OperationKind::GetTask, &body), Ok(plain));
    }
}

/// An object with one member.
fn entry(value: Vec<u8>) -> Vec<u8> {
    bytes(1, [bytes(1, "k"), bytes(2, value)].concat())
}
