//! What is refused: the field is named as in JSON, and the words are the same.

use a2ad_protocol::{Error, ErrorKind, OperationKind, Violation, grpc::Service};

use crate::wire::{bytes, double, int};

const FILLED: &str = "required, expected a non-empty string";
const ROLE: &str = "required, expected ROLE_USER or ROLE_AGENT";

/// That something was refused, in these words.
pub(crate) fn refused<T: std::fmt::Debug>(read: Result<T, Error>, field: &str, problem: &str) {
    let error = match read {
        Err(error) => error,
        Ok(value) => panic!("{field} is accepted: {value:?}"),
    };
    assert_eq!(error.kind, ErrorKind::InvalidParams);
    assert_eq!(error.violations, [Violation::new(field, problem)]);
}

fn refuse(service: Service, kind: OperationKind, cases: &[(Vec<u8>, &str, &str)]) {
    for (body, field, problem) in cases {
        refused(service.decode_operation(kind, body), field, problem);
    }
}

#[test]
fn a_bad_send_of_1_0_names_its_field() {
    let text = bytes(5, bytes(1, "hi"));
    let send = |message: Vec<u8>| bytes(2, message);
    let head = [bytes(1, "m"), int(4, 1)].concat();
    let good = send([head.clone(), text.clone()].concat());
    let with = |more: Vec<u8>| [good.clone(), more].concat();
    let part = |part: Vec<u8>| send([head.clone(), text.clone(), bytes(5, part)].concat());
    let config = |config: Vec<u8>| with(bytes(3, bytes(2, config)));
    let url = "expected an absolute http or https URL";
    refuse(
        Service::V1,
        OperationKind::SendMessage,
        &[
            (Vec::new(), "message", "required, expected a message"),
            (send(Vec::new()), "message.messageId", FILLED),
            (send(bytes(1, "m")), "message.role", ROLE),
            (send([bytes(1, "m"), int(4, 3)].concat()), "message.role", "expected ROLE_USER or ROLE_AGENT"),
            (send(head.clone()), "message.parts", "required, expected at least one part"),
            (part(Vec::new()), "message.parts[1]", "expected one of text, raw, url, data"),
            (part(bytes(7, "text/plain")), "message.parts[1]", "expected one of text, raw, url, data"),
            (part(bytes(4, double(2, f64::NAN))), "message.parts[1].data", "expected a finite number"),
            (
                part([bytes(1, "x"), bytes(5, entry(double(2, f64::INFINITY)))].concat()),
                "message.parts[1].metadata",
                "expected a finite number",
            ),
            (part(bytes(4, bytes(3, [0xff]))), "message.parts[1].data", "expected UTF-8 text"),
            (part(bytes(4, bytes(2, "x"))), "message.parts[1].data", "expected a google.protobuf.Value"),
            (
                send([head.clone(), text.clone(), bytes(8, "")].concat()),
                "message.referenceTaskIds[0]",
                "expected a non-empty string",
            ),
            (with(bytes(3, int(3, -1))), "configuration.historyLength", "expected an integer of 0 or more"),
            (
                config(Vec::new()),
                "configuration.taskPushNotificationConfig.url",
                "required, expected an absolute http or https URL",
            ),
            (config(bytes(4, "ftp://h")), "configuration.taskPushNotificationConfig.url", url),
            (
                config([bytes(4, "https://h.example"), bytes(6, Vec::new())].concat()),
                "configuration.taskPushNotificationConfig.authentication.scheme",
                FILLED,
            ),
            (with(bytes(4, entry(bytes(3, [0xc3])))), "metadata", "expected UTF-8 text"),
        ],
    );
    assert!(Service::V1.decode_operation(OperationKind::SendMessage, &good).is_ok());
}

#[test]
fn a_bad_request_of_1_0_names_its_field() {
    let v1 = Service::V1;
    refuse(
        v1,
        OperationKind::GetTask,
        &[
            (Vec::new(), "id", FILLED),
            ([bytes(2, "t"), int(3, -1)].concat(), "historyLength", "expected an integer of 0 or more"),
        ],
    );
    refuse(
        v1,
        OperationKind::ListTasks,
        &[
            (int(3, 9), "status", "expected a task state such as TASK_STATE_WORKING"),
            (int(4, 0), "pageSize", "expected an integer from 1 to 100"),
            (int(4, 101), "pageSize", "expected an integer from 1 to 100"),
            (int(6, -1), "historyLength", "expected an integer of 0 or more"),
            (
                bytes(7, int(2, 1_000_000_000)),
                "statusTimestampAfter",
                "expected a timestamp within the years 0000 to 9999",
            ),
            (
                bytes(7, int(1, i64::MAX)),
                "statusTimestampAfter",
                "expected a timestamp within the years 0000 to 9999",
            ),
        ],
    );
    refuse(v1, OperationKind::CancelTask, &[(Vec::new(), "id", FILLED)]);
    refuse(v1, OperationKind::SubscribeToTask, &[(Vec::new(), "id", FILLED)]);
    refuse(
        v1,
        OperationKind::CreatePushConfig,
        &[
            (bytes(4, "https://h.example"), "taskId", FILLED),
            (bytes(3, "t"), "url", "required, expected an absolute http or https URL"),
        ],
    );
    refuse(
        v1,
        OperationKind::GetPushConfig,
        &[(Vec::new(), "taskId", FILLED), (bytes(2, "t"), "id", FILLED)],
    );
    refuse(v1, OperationKind::DeletePushConfig, &[(bytes(2, "t"), "id", FILLED)]);
    refuse(
        v1,
        OperationKind::ListPushConfigs,
        &[
            (Vec::new(), "taskId", FILLED),
            ([bytes(1, "t"), int(2, -1)].concat(), "pageSize", "expected an integer of 0 or more"),
        ],
    );
}

#[test]
fn a_bad_send_of_0_3_names_its_field() {
    let text = bytes(5, bytes(1, "hi"));
    let send = |message: Vec<u8>| bytes(1, message);
    let good = send([bytes(1, "m"), int(4, 1), text.clone()].concat());
    let nameless = send([int(4, 1), text.clone()].concat());
    let part = |part: Vec<u8>| send([int(4, 1), bytes(5, part)].concat());
    let config = |config: Vec<u8>| [good.clone(), bytes(2, bytes(2, config))].concat();
    let auth = |auth: Vec<u8>| config([bytes(2, "https://h.example"), bytes(4, auth)].concat());
    let field = "configuration.pushNotification.authentication.schemes";
    refuse(
        Service::V03,
        OperationKind::SendMessage,
        &[
            (Vec::new(), "message", "required, expected a message"),
            (send(text), "message.role", ROLE),
            (send(int(4, 2)), "message.content", "required, expected at least one part"),
            (nameless, "message.messageId", "expected a non-empty string, found nothing"),
            (part(Vec::new()), "message.content[0]", "expected one of text, file, data"),
            (
                part(bytes(2, bytes(3, "image/png"))),
                "message.content[0].file",
                "expected one of fileWithBytes, fileWithUri",
            ),
            (
                part(bytes(3, bytes(1, entry(double(2, f64::NEG_INFINITY))))),
                "message.content[0].data.data",
                "expected a finite number",
            ),
            (
                [good.clone(), bytes(2, int(3, -1))].concat(),
                "configuration.historyLength",
                "expected an integer of 0 or more",
            ),
            (
                config(Vec::new()),
                "configuration.pushNotification.url",
                "required, expected an absolute http or https URL",
            ),
            (auth(bytes(2, "secret")), field, "required, expected at least one scheme"),
            (auth(bytes(1, "")), &format!("{field}[0]"), "expected a non-empty string"),
        ],
    );
    assert!(Service::V03.decode_operation(OperationKind::SendMessage, &good).is_ok());
}

#[test]
fn bytes_that_are_no_message_are_refused_with_its_name() {
    let broken: [&[u8]; 6] =
        [&[0xff], &[0x0a, 0x05, b'x'], &[0x00], &[0x0a], &[0x0b, 0x0c, 0x0c], &[0x0a, 0x01, 0xff]];
    for service in Service::ALL {
        for (method, kind) in service.methods() {
            // A request without fields takes any; the byte that is no text is none of them.
            let fields = *method != "GetAgentCard";
            for body in broken.iter().take(if fields { 6 } else { 5 }) {
                let error = service.decode_operation(*kind, body).unwrap_err();
                assert_eq!(error.kind, ErrorKind::InvalidParams, "{method} {body:?}");
                assert_eq!(error.violations[0].field, "", "{method} {body:?}");
                let package = service.name().strip_suffix("A2AService").unwrap();
                assert!(error.message.starts_with(&format!("expected {package}")), "{}", error.message);
            }
        }
        for body in &broken[..5] {
            service.decode_event(body).unwrap_err();
        }
    }
}

#[test]
fn an_answer_without_its_payload_is_refused() {
    for service in Service::ALL {
        refused(
            service.decode_event(&[]),
            "",
            "expected exactly one of task, message, statusUpdate, artifactUpdate",
        );
        refused(service.decode_reply(OperationKind::SendMessage, &[]), "", "expected a task or a message");
        refused(service.decode_reply(OperationKind::GetTask, &[]), "id", FILLED);
        refused(
            service.decode_reply(OperationKind::GetTask, &bytes(1, "t")),
            "status",
            "required, expected a task status",
        );
        refused(
            service.decode_event(&bytes(1, [bytes(1, "t"), bytes(3, int(1, 9))].concat())),
            "task.status.state",
            "expected a task state such as TASK_STATE_WORKING",
        );
        refused(
            service.decode_event(&bytes(4, bytes(1, "t"))),
            "artifactUpdate.artifact",
            "required, expected an artifact",
        );
        for kind in [OperationKind::SendStreamingMessage, OperationKind::SubscribeToTask] {
            refused(service.decode_reply(kind, &[]), "", "expected a stream, not one answer");
        }
    }
}

#[test]
fn tasks_are_not_listed_in_0_3() {
    let (list, v03) = (OperationKind::ListTasks, Service::V03);
    let errors = [v03.decode_operation(list, &[]).unwrap_err(), v03.decode_reply(list, &[]).unwrap_err()];
    for error in errors {
        assert_eq!(error.kind, ErrorKind::MethodNotFound);
        assert!(error.message.contains("a2a.v1.A2AService has SendMessage"), "{}", error.message);
    }
}

#[test]
fn fields_nobody_knows_are_passed_over() {
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
