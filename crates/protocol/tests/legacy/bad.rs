//! Invalid input: each row has the invalid field and the exact violation text.
//!
//! Most rows are one member appended to a valid sample. The last duplicate name wins, so the member overrides
//! the sample's own.

use a2ad_protocol::{Dialect, ErrorKind, OperationKind, Violation};

use crate::codec::{DIALECTS, methods, raw, read_error, read_event, read_operation, read_reply, sends};

/// A member or a whole document, the invalid field, what was expected.
type Row = (&'static str, &'static str, &'static str);

const ARRAY: &str = "expected an array";
const BASE64: &str = "expected a base64 string";
const COUNT: &str = "expected an integer of 0 or more";
const FILLED: &str = "expected a non-empty string";
const FLAG: &str = "expected true or false";
const INTEGER: &str = "expected a 32-bit integer";
const NEEDS_CONFIG: &str = "required, expected a config";
const NEEDS_FILLED: &str = "required, expected a non-empty string";
const NEEDS_MESSAGE: &str = "required, expected a message";
const NEEDS_PART: &str = "required, expected at least one part";
const NEEDS_STATE: &str = "required, expected a task state such as working";
const NEEDS_STATUS: &str = "required, expected a task status";
const NEEDS_URL: &str = "required, expected an absolute http or https URL";
const OBJECT: &str = "expected an object";
const PAGE_SIZE: &str = "expected an integer from 1 to 100";
const PART: &str = "expected at least one part";
const ROLE: &str = "expected user or agent";
const STATE: &str = "expected a task state such as working";
const STRING: &str = "expected a string";
const TAG: &str = "expected text, file or data";
const TIME: &str = "expected an RFC 3339 timestamp such as 2026-01-02T03:04:05.678Z";
const URL: &str = "expected an absolute http or https URL";

#[test]
fn params_must_be_an_object_for_every_method() {
    for dialect in DIALECTS {
        for (method, _) in methods(dialect) {
            for params in ["[]", "5", "\"x\"", "true"] {
                assert_rejected(dialect, method, params, "params", OBJECT);
            }
        }
    }
}

/// A compatibility profile may relax this; the generation itself requires the id.
#[test]
fn message_of_0_3_requires_an_id() {
    let params = r#"{"message":{"role":"user","parts":[{"text":"hi"}]}}"#;
    let error = Dialect::V03.decode_operation("message/send", Some(raw(params))).unwrap_err();
    assert_eq!(error.violations[0].field, "message.messageId");
}

#[test]
fn ids_are_limited_in_length() {
    let long = "x".repeat(1_025);
    assert_rejected(
        Dialect::Draft,
        "tasks/get",
        &format!(r#"{{"id":"{long}"}}"#),
        "id",
        "expected at most 1024 bytes",
    );
    let params = format!(r#"{{"message":{{"messageId":"{long}","role":"user","parts":[{{"text":"hi"}}]}}}}"#);
    assert_rejected(
        Dialect::V03,
        "message/send",
        &params,
        "message.messageId",
        "expected at most 1024 bytes",
    );
}

#[test]
fn invalid_part_names_its_field() {
    let rows: &[Row] = &[
        ("null", "message.parts[1]", OBJECT),
        ("\"hi\"", "message.parts[1]", OBJECT),
        ("{}", "message.parts[1]", "expected one of text, file, data"),
        (r#"{"text":null,"data":null}"#, "message.parts[1]", "expected one of text, file, data"),
        (r#"{"text":"a","data":{}}"#, "message.parts[1]", "expected only one of text, file, data"),
        (r#"{"type":"image"}"#, "message.parts[1].type", TAG),
        (r#"{"type":"","text":"a"}"#, "message.parts[1].type", TAG),
        (r#"{"kind":"Text","text":"a"}"#, "message.parts[1].kind", TAG),
        (r#"{"kind":5,"text":"a"}"#, "message.parts[1].kind", TAG),
        (r#"{"type":"text"}"#, "message.parts[1].text", "required, expected a string"),
        (r#"{"type":"text","text":null}"#, "message.parts[1].text", "required, expected a string"),
        (r#"{"type":"text","text":5}"#, "message.parts[1].text", STRING),
        (r#"{"type":"text","text":"\ud800"}"#, "message.parts[1].text", STRING),
        (r#"{"type":"data"}"#, "message.parts[1].data", "required, expected an object"),
        (r#"{"kind":"data","data":null}"#, "message.parts[1].data", "required, expected an object"),
        (r#"{"kind":"file"}"#, "message.parts[1].file", "required, expected a file"),
        (r#"{"kind":"file","file":"x"}"#, "message.parts[1].file", OBJECT),
        (r#"{"kind":"file","file":{}}"#, "message.parts[1].file", "expected one of bytes, uri"),
        (r#"{"file":{"bytes":null,"uri":null}}"#, "message.parts[1].file", "expected one of bytes, uri"),
        (r#"{"file":{"bytes":"","uri":""}}"#, "message.parts[1].file", "expected only one of bytes, uri"),
        (r#"{"file":{"bytes":"","data":""}}"#, "message.parts[1].file", "expected only one of bytes, uri"),
        (r#"{"file":{"bytes":5}}"#, "message.parts[1].file.bytes", BASE64),
        (r#"{"file":{"bytes":"a b"}}"#, "message.parts[1].file.bytes", BASE64),
        (r#"{"file":{"data":"<base64-encoded-content>"}}"#, "message.parts[1].file.data", BASE64),
        (r#"{"file":{"fileWithBytes":[]}}"#, "message.parts[1].file.fileWithBytes", BASE64),
        (r#"{"file":{"uri":5}}"#, "message.parts[1].file.uri", STRING),
        (r#"{"file":{"uri":"u","name":5}}"#, "message.parts[1].file.name", STRING),
        (r#"{"file":{"uri":"u","mimeType":[]}}"#, "message.parts[1].file.mimeType", STRING),
        (r#"{"text":"a","metadata":[]}"#, "message.parts[1].metadata", OBJECT),
    ];
    for (part, field, problem) in rows {
        let parts = format!(r#"[{{"text":"hi"}},{part}]"#);
        let message = format!(r#"{{"messageId":"m","role":"user","parts":{parts}}}"#);
        let params = format!(r#"{{"id":"t-1","message":{message}}}"#);
        for (dialect, method) in sends() {
            assert_rejected(dialect, method, &params, field, problem);
        }
    }
}

#[test]
fn invalid_message_names_its_field() {
    let rows: &[Row] = &[
        (r#""role":"ROLE_USER""#, "message.role", ROLE),
        (r#""role":"""#, "message.role", ROLE),
        (r#""role":"system""#, "message.role", ROLE),
        (r#""role":1"#, "message.role", ROLE),
        (r#""parts":[]"#, "message.parts", PART),
        (r#""parts":{"text":"hi"}"#, "message.parts", ARRAY),
        (r#""parts":"hi""#, "message.parts", ARRAY),
        (r#""metadata":[]"#, "message.metadata", OBJECT),
        (r#""messageId":5"#, "message.messageId", STRING),
    ];
    for (member, field, problem) in rows {
        let params =
            format!(r#"{{"id":"t-1","message":{{"role":"user","parts":[{{"text":"hi"}}],{member}}}}}"#);
        for (dialect, method) in sends() {
            assert_rejected(dialect, method, &params, field, problem);
        }
    }
    #[rustfmt::skip]
    let rows: &[Row] = &[
        (r#"{"parts":[{"text":"hi"}]}"#, "message.role", "required, expected user or agent"),
        (r#"{"role":"user"}"#, "message.parts", NEEDS_PART),
        (r#"{"role":"user","parts":null}"#, "message.parts", NEEDS_PART),
        (r#"{"city":"x"}"#, "message.role", "required, expected user or agent"),
        (r#"{"kind":"task","role":"user","parts":[{"text":"hi"}]}"#, "message.kind", "expected message"),
        (r#"{"role":"user","parts":[{"text":"hi"}],"contextId":5}"#, "message.contextId", STRING),
        (r#"{"role":"user","parts":[{"text":"hi"}],"taskId":{}}"#, "message.taskId", STRING),
        (r#"{"role":"user","parts":[{"text":"hi"}],"referenceTaskIds":["t",""]}"#,
         "message.referenceTaskIds[1]", FILLED),
        (r#"{"role":"user","parts":[{"text":"hi"}],"extensions":[5]}"#, "message.extensions[0]", STRING),
    ];
    for (message, field, problem) in rows {
        assert_rejected(Dialect::V03, "message/send", &format!(r#"{{"message":{message}}}"#), field, problem);
    }
    #[rustfmt::skip]
    let rows: &[Row] = &[
        (r#"{"role":"user"}"#, "message.parts", NEEDS_PART),
        (r#"{"role":"user","parts":null,"data":{"k":1}}"#, "message.data", ARRAY),
        (r#"{"data":[]}"#, "message.data", PART),
        (r#"{"data":[{"text":5}]}"#, "message.data[0].text", STRING),
        (r#"{"role":"user","content":"hi"}"#, "message.content", OBJECT),
        (r#"{"role":"user","content":{"type":"text"}}"#, "message.content.text",
         "required, expected a string"),
    ];
    for (message, field, problem) in rows {
        assert_rejected(
            Dialect::Draft,
            "tasks/send",
            &format!(r#"{{"id":"t","message":{message}}}"#),
            field,
            problem,
        );
    }
}

#[test]
fn invalid_send_names_its_field() {
    const GOOD: &str = r#""id":"t-1","message":{"role":"user","parts":[{"text":"hi"}]}"#;
    let rows: &[Row] = &[
        (r#""message":null"#, "message", NEEDS_MESSAGE),
        (r#""message":"hi""#, "message", OBJECT),
        (r#""message":[]"#, "message", OBJECT),
        (r#""metadata":[]"#, "metadata", OBJECT),
        (r#""async":"true""#, "async", FLAG),
        (r#""skill":5"#, "skill", STRING),
    ];
    for (member, field, problem) in rows {
        for (dialect, method) in sends() {
            assert_rejected(dialect, method, &format!("{{{GOOD},{member}}}"), field, problem);
        }
    }
    let rows: &[Row] = &[
        (r#""id":null"#, "id", NEEDS_FILLED),
        (r#""id":"""#, "id", FILLED),
        (r#""id":-1"#, "id", STRING),
        (r#""id":1.5"#, "id", STRING),
        (r#""id":true"#, "id", STRING),
        (r#""sessionId":5"#, "sessionId", STRING),
        (r#""acceptedOutputModes":"text""#, "acceptedOutputModes", ARRAY),
        (r#""historyLength":-1"#, "historyLength", COUNT),
        (r#""historyLength":1.5"#, "historyLength", INTEGER),
        (r#""pushNotification":{}"#, "pushNotification.url", NEEDS_URL),
        (r#""pushNotification":"u""#, "pushNotification", OBJECT),
    ];
    for (member, field, problem) in rows {
        assert_rejected(Dialect::Draft, "tasks/send", &format!("{{{GOOD},{member}}}"), field, problem);
    }
    #[rustfmt::skip]
    let rows: &[Row] = &[
        (r#""contextId":5"#, "contextId", STRING),
        (r#""configuration":[]"#, "configuration", OBJECT),
        (r#""configuration":{"acceptedOutputModes":["a",1]}"#, "configuration.acceptedOutputModes[1]",
         STRING),
        (r#""configuration":{"blocking":"no"}"#, "configuration.blocking", FLAG),
        (r#""configuration":{"historyLength":-1}"#, "configuration.historyLength", COUNT),
        (r#""configuration":{"historyLength":2147483648}"#, "configuration.historyLength", INTEGER),
        (r#""configuration":{"skillId":5}"#, "configuration.skillId", STRING),
        (r#""configuration":{"pushNotificationConfig":{"url":"ftp://a"}}"#,
         "configuration.pushNotificationConfig.url", URL),
    ];
    for (member, field, problem) in rows {
        assert_rejected(Dialect::V03, "message/send", &format!("{{{GOOD},{member}}}"), field, problem);
    }
}

#[test]
fn invalid_push_config_names_its_field() {
    #[rustfmt::skip]
    let rows: &[Row] = &[
        (r#""url":null"#, "url", NEEDS_URL),
        (r#""url":"""#, "url", FILLED),
        (r#""url":5"#, "url", STRING),
        (r#""url":"hooks.example/in""#, "url", URL),
        (r#""url":"file:///etc/passwd""#, "url", URL),
        (r#""url":"https://:443""#, "url", URL),
        (r#""url":"https://hooks.example\r\nX: y""#, "url", URL),
        (r#""token":5"#, "token", STRING),
        (r#""authentication":"Bearer x""#, "authentication", OBJECT),
        (r#""authentication":{"schemes":[5]}"#, "authentication.schemes[0]", STRING),
        (r#""authentication":{"schemes":[""]}"#, "authentication.schemes[0]", FILLED),
        (r#""authentication":{"schemes":{}}"#, "authentication.schemes", ARRAY),
        (r#""authentication":{"schemes":["a"],"credentials":5}"#, "authentication.credentials", STRING),
        (r#""authentication":{"schemes":[],"credentials":"x"}"#, "authentication.schemes",
         "required, expected at least one scheme"),
    ];
    for (member, field, problem) in rows {
        let params = format!(
            r#"{{"id":"t-1","taskId":"t-1","pushNotificationConfig":{{"url":"https://a.example",{member}}}}}"#
        );
        for (dialect, method) in [
            (Dialect::Draft, "tasks/pushNotification/set"),
            (Dialect::V03, "tasks/pushNotificationConfig/set"),
        ] {
            assert_rejected(dialect, method, &params, &format!("pushNotificationConfig.{field}"), problem);
        }
    }
}

#[test]
fn invalid_parameters_of_other_operations_name_their_field() {
    let shared: &[(&str, &str, &str, &str)] = &[
        ("tasks/get", "{}", "id", NEEDS_FILLED),
        ("tasks/get", r#"{"id":""}"#, "id", FILLED),
        ("tasks/get", r#"{"id":["t"]}"#, "id", STRING),
        ("tasks/get", r#"{"id":"t","historyLength":-1}"#, "historyLength", COUNT),
        ("tasks/get", r#"{"id":"t","historyLength":"x"}"#, "historyLength", INTEGER),
        ("tasks/cancel", "{}", "id", NEEDS_FILLED),
        ("tasks/cancel", r#"{"id":"t","metadata":"x"}"#, "metadata", OBJECT),
        ("tasks/resubscribe", "{}", "id", NEEDS_FILLED),
        ("tasks/resubscribe", r#"{"id":{}}"#, "id", STRING),
    ];
    for (method, params, field, problem) in shared {
        for dialect in DIALECTS {
            assert_rejected(dialect, method, params, field, problem);
        }
    }
    let draft: &[(&str, &str, &str, &str)] = &[
        ("tasks/pushNotification/set", "{}", "id", NEEDS_FILLED),
        ("tasks/pushNotification/set", r#"{"id":"t"}"#, "pushNotificationConfig", NEEDS_CONFIG),
        ("tasks/pushNotification/get", "{}", "id", NEEDS_FILLED),
    ];
    for (method, params, field, problem) in draft {
        assert_rejected(Dialect::Draft, method, params, field, problem);
    }
    #[rustfmt::skip]
    let v03: &[(&str, &str, &str, &str)] = &[
        ("tasks/get", r#"{"id":1}"#, "id", STRING),
        ("tasks/pushNotificationConfig/set", "{}", "taskId", NEEDS_FILLED),
        ("tasks/pushNotificationConfig/set", r#"{"taskId":"t"}"#, "pushNotificationConfig", NEEDS_CONFIG),
        ("tasks/pushNotificationConfig/get", "{}", "id", NEEDS_FILLED),
        ("tasks/pushNotificationConfig/get", r#"{"id":"t","pushNotificationConfigId":5}"#,
         "pushNotificationConfigId", STRING),
        ("tasks/pushNotificationConfig/list", "{}", "id", NEEDS_FILLED),
        ("tasks/pushNotificationConfig/delete", "{}", "id", NEEDS_FILLED),
        ("tasks/pushNotificationConfig/delete", r#"{"id":"t"}"#, "pushNotificationConfigId", NEEDS_FILLED),
        ("tasks/list", r#"{"status":"sleeping"}"#, "status", STATE),
        ("tasks/list", r#"{"status":5}"#, "status", STATE),
        ("tasks/list", r#"{"pageSize":0}"#, "pageSize", PAGE_SIZE),
        ("tasks/list", r#"{"pageSize":101}"#, "pageSize", PAGE_SIZE),
        ("tasks/list", r#"{"contextId":5}"#, "contextId", STRING),
        ("tasks/list", r#"{"statusTimestampAfter":"yesterday"}"#, "statusTimestampAfter", TIME),
        ("tasks/list", r#"{"statusTimestampAfter":5}"#, "statusTimestampAfter", TIME),
        ("tasks/list", r#"{"includeArtifacts":1}"#, "includeArtifacts", FLAG),
    ];
    for (method, params, field, problem) in v03 {
        assert_rejected(Dialect::V03, method, params, field, problem);
    }
}

#[test]
fn invalid_event_names_its_field() {
    const KINDS: &str = "expected a task, a message, a status-update or an artifact-update";
    #[rustfmt::skip]
    let rows: &[(Dialect, &str, &str, &str)] = &[
        (Dialect::Draft, "5", "", OBJECT),
        (Dialect::Draft, "{}", "", "expected a status or an artifact"),
        (Dialect::Draft, r#"{"status":{"state":"working"}}"#, "id", NEEDS_FILLED),
        (Dialect::Draft, r#"{"id":"t","status":null,"final":true}"#, "status", NEEDS_STATUS),
        (Dialect::Draft, r#"{"id":"t","status":{}}"#, "status.state", NEEDS_STATE),
        (Dialect::Draft, r#"{"id":"t","status":{"state":5}}"#, "status.state", STATE),
        (Dialect::Draft, r#"{"id":"t","status":{"state":"working","timestamp":"now"}}"#, "status.timestamp",
         TIME),
        (Dialect::Draft, r#"{"id":"t","status":{"state":"working","message":{"role":"agent","parts":"x"}}}"#,
         "status.message.parts", ARRAY),
        (Dialect::Draft, r#"{"id":"t","artifact":null}"#, "artifact", "required, expected an artifact"),
        (Dialect::Draft, r#"{"id":"t","artifact":[]}"#, "artifact", "expected an artifact"),
        (Dialect::Draft, r#"{"id":"t","artifact":[{"parts":[{"text":"a"}]},{"parts":[{"text":"b"}]}]}"#,
         "artifact", "expected an artifact"),
        (Dialect::Draft, r#"{"id":"t","artifact":[{"parts":{}}]}"#, "artifact[0].parts", ARRAY),
        (Dialect::Draft, r#"{"id":"t","artifact":{"index":-1,"parts":[{"text":"a"}]}}"#, "artifact.index",
         COUNT),
        (Dialect::Draft, r#"{"id":"t","artifact":{"append":"true","parts":[{"text":"a"}]}}"#,
         "artifact.append", FLAG),
        (Dialect::V03, "[]", "", OBJECT),
        (Dialect::V03, "{}", "", KINDS),
        (Dialect::V03, r#"{"kind":"progress"}"#, "", KINDS),
        (Dialect::V03, r#"{"kind":5}"#, "kind", STRING),
        (Dialect::V03, r#"{"kind":"task"}"#, "id", NEEDS_FILLED),
        (Dialect::V03, r#"{"kind":"task","id":"t"}"#, "status", NEEDS_STATUS),
        (Dialect::V03, r#"{"kind":"task","id":"t","status":{"state":"working"},"artifacts":[{"parts":[]}]}"#,
         "artifacts[0].artifactId", NEEDS_FILLED),
        (Dialect::V03, r#"{"kind":"task","id":"t","status":{"state":"working"},"history":[{}]}"#,
         "history[0].role", "required, expected user or agent"),
        (Dialect::V03, r#"{"kind":"status-update","status":{"state":"working"}}"#, "taskId", NEEDS_FILLED),
        (Dialect::V03, r#"{"kind":"status-update","taskId":"t"}"#, "status", NEEDS_STATUS),
        (Dialect::V03, r#"{"kind":"artifact-update","taskId":"t"}"#, "artifact",
         "required, expected an artifact"),
        (
            Dialect::V03,
            r#"{"kind":"artifact-update","taskId":"t","artifact":{"artifactId":"a","parts":[{"text":""}]},"append":1}"#,
            "append",
            FLAG,
        ),
    ];
    for (dialect, text, field, problem) in rows {
        assert_eq!(read_event(*dialect, text), Err(Violation::new(field, problem)), "{dialect:?} {text}");
    }
}

#[test]
fn invalid_reply_names_its_field() {
    use OperationKind::{
        CreatePushConfig, GetTask, ListPushConfigs, ListTasks, SendMessage, SendStreamingMessage,
        SubscribeToTask,
    };
    for dialect in DIALECTS {
        for kind in [SendStreamingMessage, SubscribeToTask] {
            let stream = Violation::new("result", "expected a stream, not a single response");
            assert_eq!(read_reply(dialect, kind, "{}"), Err(stream));
        }
    }
    #[rustfmt::skip]
    let rows: &[(Dialect, OperationKind, &str, &str, &str)] = &[
        (Dialect::Draft, SendMessage, "null", "", OBJECT),
        (Dialect::Draft, SendMessage, r#"{"role":"agent","parts":[{"text":"x"}]}"#, "id", NEEDS_FILLED),
        (Dialect::Draft, GetTask, r#"{"id":"t"}"#, "status", NEEDS_STATUS),
        (
            Dialect::Draft,
            GetTask,
            r#"{"id":"t","status":{"state":"working"},"artifacts":[{"index":0,"parts":5}]}"#,
            "artifacts[0].parts",
            ARRAY,
        ),
        (Dialect::Draft, CreatePushConfig, r#"{"id":"t"}"#, "pushNotificationConfig", NEEDS_CONFIG),
        (Dialect::V03, SendMessage, r#"{"kind":"status-update","taskId":"t","status":{"state":"working"}}"#,
         "", "expected a task or a message"),
        (Dialect::V03, GetTask, r#"{"kind":"message"}"#, "kind", "expected task"),
        (Dialect::V03, ListTasks, r#"{"tasks":[{}]}"#, "tasks[0].id", NEEDS_FILLED),
        (Dialect::V03, ListPushConfigs, r#"{"configs":[]}"#, "", ARRAY),
        (Dialect::V03, ListPushConfigs, r#"[{"taskId":"t","pushNotificationConfig":{}}]"#,
         "[0].pushNotificationConfig.url", NEEDS_URL),
    ];
    for (dialect, kind, text, field, problem) in rows {
        let read = read_reply(*dialect, *kind, text);
        assert_eq!(read, Err(Violation::new(field, problem)), "{dialect:?} {kind:?} {text}");
    }
}

#[test]
fn invalid_error_object_names_its_field() {
    let rows: &[Row] = &[
        ("[]", "", OBJECT),
        ("{}", "code", "required, expected an integer"),
        (r#"{"code":"x"}"#, "code", INTEGER),
        (r#"{"code":-32001,"message":5}"#, "message", STRING),
    ];
    for (text, field, problem) in rows {
        for dialect in DIALECTS {
            assert_eq!(read_error(dialect, text), Err(Violation::new(field, problem)), "{text}");
        }
    }
}

/// Asserts that these parameters have exactly one violation, at `field`, and that the error message repeats
/// it.
fn assert_rejected(dialect: Dialect, method: &str, params: &str, field: &str, problem: &str) {
    let Err(error) = read_operation(dialect, method, params) else { panic!("{method} {params} is accepted") };
    assert_eq!(error.violations, [Violation::new(field, problem)], "{dialect:?} {method} {params}");
    assert_eq!(error.kind, ErrorKind::InvalidParams, "{dialect:?} {method} {params}");
}
