//! Invalid input and the exact violations.

use a2ad_protocol::{
    OperationKind, Violation, dialect::v03_proto::message::MAX_PARTS, json::read::MAX_TEXTS,
};

use crate::codec::{at, read_event, read_operation, read_reply};

#[test]
fn invalid_send_names_its_field() {
    let role = "ROLE_USER or ROLE_AGENT";
    #[rustfmt::skip]
    let cases: Vec<(&str, &str, String)> = vec![
        ("[]", "", "expected an object".into()),
        ("{}", "message", "required, expected a message".into()),
        (r#"{"request":{"content":[]}}"#, "request.role", format!("required, expected {role}")),
        (r#"{"message":{"role":"ROLE_USER","content":[{"text":"x"}]}}"#, "message.messageId",
         "expected a non-empty string, found nothing".into()),
        (r#"{"request":{"role":"ROLE_USER","content":[{"text":"x"}]}}"#, "request.messageId",
         "expected a non-empty string, found nothing".into()),
        (MESSAGE[0], "message.role", format!("required, expected {role}")),
        (MESSAGE[1], "message.role", format!("expected {role}")),
        (MESSAGE[2], "message.role", format!("expected {role}")),
        (MESSAGE[3], "message.content", "required, expected at least one part".into()),
        (MESSAGE[4], "message.content", "expected at least one part".into()),
        (MESSAGE[5], "message.content[1]", "expected one of text, file, data".into()),
        (MESSAGE[6], "message.content[0]", "expected only one of text, file, data".into()),
        (MESSAGE[7], "message.content[0].file", "expected one of fileWithBytes, fileWithUri".into()),
        (MESSAGE[8], "message.content[0].file", "expected only one of fileWithBytes, fileWithUri".into()),
        (MESSAGE[9], "message.content[0].file.fileWithBytes", "expected a base64 string".into()),
        (MESSAGE[10], "message.content[0].data", "expected an object".into()),
        (r#"{"message":{"messageId":"m","role":"ROLE_USER","content":[{"text":"x"}]},"configuration":{"historyLength":-1}}"#,
         "configuration.historyLength", "expected an integer of 0 or more".into()),
        (r#"{"message":{"messageId":"m","role":"ROLE_USER","content":[{"text":"x"}]},"configuration":{"blocking":"no"}}"#,
         "configuration.blocking", "expected true or false".into()),
        (r#"{"message":{"messageId":"m","role":"ROLE_USER","content":[{"text":"x"}]},"configuration":{"pushNotification":{"url":"ftp://x"}}}"#,
         "configuration.pushNotification.url", "expected an absolute http or https URL".into()),
    ];
    for (body, field, problem) in cases {
        let read = read_operation(OperationKind::SendMessage, &at("", "", &[]), Some(body));
        assert_eq!(read, Err(Violation::new(field, problem).into()), "{body}");
    }
}

/// Bodies whose message has one error each.
static MESSAGE: [&str; 11] = [
    r#"{"message":{"messageId":"m","content":[{"text":"x"}]}}"#,
    r#"{"message":{"messageId":"m","role":"ROLE_UNSPECIFIED","content":[{"text":"x"}]}}"#,
    r#"{"message":{"messageId":"m","role":0,"content":[{"text":"x"}]}}"#,
    r#"{"message":{"messageId":"m","role":"ROLE_USER"}}"#,
    r#"{"message":{"messageId":"m","role":"ROLE_USER","content":[]}}"#,
    r#"{"message":{"messageId":"m","role":"ROLE_USER","content":[{"text":"x"},{"text":null}]}}"#,
    r#"{"message":{"messageId":"m","role":"ROLE_USER","content":[{"text":"x","data":{}}]}}"#,
    r#"{"message":{"messageId":"m","role":"ROLE_USER","content":[{"file":{"name":"n"}}]}}"#,
    r#"{"message":{"messageId":"m","role":"ROLE_USER","content":[{"file":{"fileWithBytes":"","fileWithUri":"u"}}]}}"#,
    r#"{"message":{"messageId":"m","role":"ROLE_USER","content":[{"file":{"fileWithBytes":"a b"}}]}}"#,
    r#"{"message":{"messageId":"m","role":"ROLE_USER","content":[{"data":[1]}]}}"#,
];

#[test]
fn webhook_of_another_task_than_the_path_is_rejected() {
    let config = r#"{"url":"https://hook.example/"}"#;
    let cases = [
        (format!(r#"{{"name":"tasks/t-2","pushNotificationConfig":{config}}}"#), "name"),
        (format!(r#"{{"parent":"tasks/t-2","config":{{"pushNotificationConfig":{config}}}}}"#), "parent"),
        (
            format!(
                r#"{{"config":{{"name":"tasks/t-2/pushNotificationConfigs/p","pushNotificationConfig":{config}}}}}"#
            ),
            "config.name",
        ),
        (r#"{"url":"https://hook.example/","taskId":"t-2"}"#.to_owned(), "taskId"),
    ];
    for (body, field) in cases {
        let read = read_operation(OperationKind::CreatePushConfig, &at("t-1", "", &[]), Some(&body));
        assert_eq!(read, Err(Violation::new(field, "expected the task of the path").into()), "{body}");
    }
    let read = read_operation(OperationKind::CreatePushConfig, &at("t-1", "", &[]), None);
    let lacks = Violation::new("url", "required, expected an absolute http or https URL");
    assert_eq!(read, Err(lacks.into()));
}

#[test]
fn path_without_an_id_is_rejected() {
    let lacks = |field| Violation::new(field, "required, expected a non-empty string").into();
    for kind in [OperationKind::GetTask, OperationKind::CancelTask, OperationKind::ListPushConfigs] {
        assert_eq!(read_operation(kind, &at("", "", &[]), None), Err(lacks("id")), "{kind:?}");
    }
    let read = read_operation(OperationKind::DeletePushConfig, &at("t", "", &[]), None);
    assert_eq!(read, Err(lacks("pushNotificationConfigId")));
}

#[test]
fn invalid_response_names_its_field() {
    let one = "expected exactly one of task, message, statusUpdate, artifactUpdate";
    #[rustfmt::skip]
    let event_cases = [
        ("{}", "", one),
        (r#"{"task":{}}"#, "task.status", "required, expected a task status"),
        (r#"{"task":{"id":"t","status":{}}}"#, "task.status.state",
         "required, expected a task state such as TASK_STATE_WORKING"),
        (r#"{"statusUpdate":{"taskId":"t","status":{"state":[]}}}"#, "statusUpdate.status.state",
         "expected a task state such as TASK_STATE_WORKING"),
        (r#"{"artifactUpdate":{"taskId":"t"}}"#, "artifactUpdate.artifact", "required, expected an artifact"),
    ];
    for (text, field, problem) in event_cases {
        assert_eq!(read_event(text), Err(Violation::new(field, problem)), "{text}");
    }
    let update = r#"{"statusUpdate":{"taskId":"t","status":{"state":1}}}"#;
    let read = read_reply(OperationKind::SendMessage, update);
    assert_eq!(read, Err(Violation::new("", "expected a task or a message")));
    for kind in [OperationKind::SendStreamingMessage, OperationKind::SubscribeToTask] {
        assert!(read_reply(kind, update).is_err(), "{kind:?}");
    }
}

#[test]
fn number_of_parts_is_limited() {
    let send = |count: usize| {
        let parts = vec![r#"{"text":""}"#; count].join(",");
        let body = format!(r#"{{"message":{{"messageId":"m","role":1,"content":[{parts}]}}}}"#);
        read_operation(OperationKind::SendMessage, &at("", "", &[]), Some(&body)).map(|_| ())
    };
    assert_eq!(send(MAX_PARTS), Ok(()));
    assert_eq!(
        send(MAX_PARTS + 1),
        Err(Violation::new("message.content", format!("expected at most {MAX_PARTS} parts")).into())
    );
}

#[test]
fn number_of_webhook_schemes_is_limited() {
    let create = |count: usize| {
        let schemes = vec![r#""a""#; count].join(",");
        let body = format!(r#"{{"url":"https://a.example","authentication":{{"schemes":[{schemes}]}}}}"#);
        read_operation(OperationKind::CreatePushConfig, &at("t-1", "", &[]), Some(&body)).map(|_| ())
    };
    assert_eq!(create(MAX_TEXTS), Ok(()));
    let problem = format!("expected at most {MAX_TEXTS} strings");
    assert_eq!(create(MAX_TEXTS + 1), Err(Violation::new("authentication.schemes", problem).into()));
}
