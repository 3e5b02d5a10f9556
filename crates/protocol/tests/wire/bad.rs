//! Invalid input: each row has the invalid field and the exact violation text.
//!
//! Most rows are one member appended to a valid sample. The last duplicate name wins, so the member overrides
//! the sample's own.

use a2ad_protocol::{ErrorKind, OperationKind, Violation};

use crate::codec::{read_error, read_event, read_operation, read_reply};

/// A member or a whole document, the invalid field, what was expected.
type Row = (&'static str, &'static str, &'static str);

const ARRAY: &str = "expected an array";
const BASE64: &str = "expected a base64 string";
const COUNT: &str = "expected an integer of 0 or more";
const FILLED: &str = "expected a non-empty string";
const FLAG: &str = "expected true or false";
const INTEGER: &str = "expected a 32-bit integer";
const NEEDS_FILLED: &str = "required, expected a non-empty string";
const NEEDS_PART: &str = "required, expected at least one part";
const NEEDS_STATE: &str = "required, expected a task state such as TASK_STATE_WORKING";
const NEEDS_STATUS: &str = "required, expected a task status";
const NEEDS_URL: &str = "required, expected an absolute http or https URL";
const OBJECT: &str = "expected an object";
const ONE_CONTENT: &str = "expected one of text, raw, url, data";
const ONE_EVENT: &str = "expected exactly one of task, message, statusUpdate, artifactUpdate";
const ONLY_ONE_CONTENT: &str = "expected only one of text, raw, url, data";
const PAGE_SIZE: &str = "expected an integer from 1 to 100";
const ROLE: &str = "expected ROLE_USER or ROLE_AGENT";
const NEEDS_ROLE: &str = "required, expected ROLE_USER or ROLE_AGENT";
const STATE: &str = "expected a task state such as TASK_STATE_WORKING";
const STRING: &str = "expected a string";
const TIME: &str = "expected an RFC 3339 timestamp such as 2026-01-02T03:04:05.678Z";
const URL: &str = "expected an absolute http or https URL";

#[test]
fn params_must_be_an_object_for_every_method() {
    for (method, _) in a2ad_protocol::dialect::v1::operation::METHODS {
        for params in ["[]", "5", "\"x\"", "true"] {
            assert_rejected(method, params, "", OBJECT);
        }
    }
}

#[test]
fn invalid_message_names_its_field() {
    const GOOD: &str = r#""messageId":"m-1","role":"ROLE_USER","parts":[{"text":"hi"}]"#;
    let rows: &[Row] = &[
        (r#""messageId":null"#, "message.messageId", NEEDS_FILLED),
        (r#""messageId":"""#, "message.messageId", FILLED),
        (r#""messageId":5"#, "message.messageId", STRING),
        (r#""message_id":{}"#, "message.messageId", STRING),
        (r#""messageId":"\ud800""#, "message.messageId", STRING),
        (r#""role":null"#, "message.role", NEEDS_ROLE),
        (r#""role":"ROLE_UNSPECIFIED""#, "message.role", ROLE),
        (r#""role":"user""#, "message.role", ROLE),
        (r#""role":"""#, "message.role", ROLE),
        (r#""role":0"#, "message.role", ROLE),
        (r#""role":3"#, "message.role", ROLE),
        (r#""role":-1"#, "message.role", ROLE),
        (r#""role":1.5"#, "message.role", ROLE),
        (r#""role":true"#, "message.role", ROLE),
        (r#""role":["ROLE_USER"]"#, "message.role", ROLE),
        (r#""parts":null"#, "message.parts", NEEDS_PART),
        (r#""parts":[]"#, "message.parts", "expected at least one part"),
        (r#""parts":{"text":"hi"}"#, "message.parts", ARRAY),
        (r#""parts":"hi""#, "message.parts", ARRAY),
        (r#""parts":[null]"#, "message.parts[0]", OBJECT),
        (r#""parts":["hi"]"#, "message.parts[0]", OBJECT),
        (r#""parts":[{"text":"hi"},[]]"#, "message.parts[1]", OBJECT),
        (r#""contextId":5"#, "message.contextId", STRING),
        (r#""taskId":["t-1"]"#, "message.taskId", STRING),
        (r#""task_id":false"#, "message.taskId", STRING),
        (r#""referenceTaskIds":"t-1""#, "message.referenceTaskIds", ARRAY),
        (r#""referenceTaskIds":["t-1",""]"#, "message.referenceTaskIds[1]", FILLED),
        (r#""referenceTaskIds":[null]"#, "message.referenceTaskIds[0]", STRING),
        (r#""reference_task_ids":[1]"#, "message.referenceTaskIds[0]", STRING),
        (r#""extensions":{}"#, "message.extensions", ARRAY),
        (r#""extensions":["a",5]"#, "message.extensions[1]", STRING),
        (r#""metadata":[]"#, "message.metadata", OBJECT),
        (r#""metadata":"x""#, "message.metadata", OBJECT),
        (r#""metadata":0"#, "message.metadata", OBJECT),
    ];
    for (member, field, problem) in rows {
        for method in ["SendMessage", "SendStreamingMessage"] {
            assert_rejected(method, &format!(r#"{{"message":{{{GOOD},{member}}}}}"#), field, problem);
        }
    }
}

#[test]
fn invalid_part_names_its_field() {
    let rows: &[Row] = &[
        ("{}", "message.parts[1]", ONE_CONTENT),
        (r#"{"kind":"text"}"#, "message.parts[1]", ONE_CONTENT),
        (r#"{"text":null}"#, "message.parts[1]", ONE_CONTENT),
        (r#"{"text":null,"raw":null,"url":null}"#, "message.parts[1]", ONE_CONTENT),
        (r#"{"text":"a","text":null}"#, "message.parts[1]", ONE_CONTENT),
        (r#"{"file":{"bytes":"aGk="}}"#, "message.parts[1]", ONE_CONTENT),
        (r#"{"text":"a","url":"b"}"#, "message.parts[1]", ONLY_ONE_CONTENT),
        (r#"{"text":"","raw":""}"#, "message.parts[1]", ONLY_ONE_CONTENT),
        (r#"{"raw":"","data":{}}"#, "message.parts[1]", ONLY_ONE_CONTENT),
        (r#"{"url":"a","data":false}"#, "message.parts[1]", ONLY_ONE_CONTENT),
        (r#"{"text":"a","raw":"","url":"b","data":1}"#, "message.parts[1]", ONLY_ONE_CONTENT),
        (r#"{"text":5}"#, "message.parts[1].text", STRING),
        (r#"{"text":{"text":"a"}}"#, "message.parts[1].text", STRING),
        (r#"{"text":"\udc00"}"#, "message.parts[1].text", STRING),
        (r#"{"raw":5}"#, "message.parts[1].raw", BASE64),
        (r#"{"raw":[1,2]}"#, "message.parts[1].raw", BASE64),
        (r#"{"raw":"a b"}"#, "message.parts[1].raw", BASE64),
        (r#"{"raw":"aGk\n"}"#, "message.parts[1].raw", BASE64),
        (r#"{"raw":"a"}"#, "message.parts[1].raw", BASE64),
        (r#"{"raw":"="}"#, "message.parts[1].raw", BASE64),
        (r#"{"raw":"aGk=aGk="}"#, "message.parts[1].raw", BASE64),
        (r#"{"raw":"+_8="}"#, "message.parts[1].raw", BASE64),
        (r#"{"raw":"é"}"#, "message.parts[1].raw", BASE64),
        (r#"{"url":5}"#, "message.parts[1].url", STRING),
        (r#"{"text":"a","mediaType":5}"#, "message.parts[1].mediaType", STRING),
        (r#"{"text":"a","media_type":[]}"#, "message.parts[1].mediaType", STRING),
        (r#"{"text":"a","filename":{}}"#, "message.parts[1].filename", STRING),
        (r#"{"text":"a","metadata":[]}"#, "message.parts[1].metadata", OBJECT),
        (r#"{"text":"a","metadata":"x"}"#, "message.parts[1].metadata", OBJECT),
    ];
    for (part, field, problem) in rows {
        let message = format!(r#"{{"messageId":"m-1","role":"ROLE_USER","parts":[{{"text":"hi"}},{part}]}}"#);
        assert_rejected("SendMessage", &format!(r#"{{"message":{message}}}"#), field, problem);
    }
}

#[test]
fn invalid_send_names_its_field() {
    const GOOD: &str = r#""message":{"messageId":"m-1","role":"ROLE_USER","parts":[{"text":"hi"}]}"#;
    #[rustfmt::skip]
    let rows: &[Row] = &[
        (r#""message":null"#, "message", "required, expected a message"),
        (r#""message":"hi""#, "message", OBJECT),
        (r#""message":[]"#, "message", OBJECT),
        (r#""message":{}"#, "message.messageId", NEEDS_FILLED),
        (r#""tenant":5"#, "tenant", STRING),
        (r#""metadata":[]"#, "metadata", OBJECT),
        (r#""configuration":[]"#, "configuration", OBJECT),
        (r#""configuration":"x""#, "configuration", OBJECT),
        (r#""configuration":{"acceptedOutputModes":"a"}"#, "configuration.acceptedOutputModes", ARRAY),
        (r#""configuration":{"acceptedOutputModes":["a",1]}"#, "configuration.acceptedOutputModes[1]",
         STRING),
        (r#""configuration":{"historyLength":-1}"#, "configuration.historyLength", COUNT),
        (r#""configuration":{"historyLength":"-1"}"#, "configuration.historyLength", COUNT),
        (r#""configuration":{"history_length":-2147483648}"#, "configuration.historyLength", COUNT),
        (r#""configuration":{"historyLength":2147483648}"#, "configuration.historyLength", INTEGER),
        (r#""configuration":{"historyLength":9007199254740993}"#, "configuration.historyLength", INTEGER),
        (r#""configuration":{"historyLength":1.5}"#, "configuration.historyLength", INTEGER),
        (r#""configuration":{"historyLength":"two"}"#, "configuration.historyLength", INTEGER),
        (r#""configuration":{"historyLength":""}"#, "configuration.historyLength", INTEGER),
        (r#""configuration":{"historyLength":"NaN"}"#, "configuration.historyLength", INTEGER),
        (r#""configuration":{"historyLength":1e999}"#, "configuration.historyLength", INTEGER),
        (r#""configuration":{"historyLength":true}"#, "configuration.historyLength", INTEGER),
        (r#""configuration":{"historyLength":[2]}"#, "configuration.historyLength", INTEGER),
        (r#""configuration":{"returnImmediately":"true"}"#, "configuration.returnImmediately", FLAG),
        (r#""configuration":{"return_immediately":1}"#, "configuration.returnImmediately", FLAG),
    ];
    for (member, field, problem) in rows {
        assert_rejected("SendMessage", &format!("{{{GOOD},{member}}}"), field, problem);
    }
    assert_rejected("SendMessage", "{}", "message", "required, expected a message");
}

#[test]
fn invalid_push_config_names_its_field() {
    const GOOD: &str = r#""taskId":"t-1","url":"https://hooks.example/in""#;
    let rows: &[Row] = &[
        (r#""id":5"#, "id", STRING),
        (r#""tenant":{}"#, "tenant", STRING),
        (r#""token":5"#, "token", STRING),
        (r#""url":null"#, "url", NEEDS_URL),
        (r#""url":"""#, "url", FILLED),
        (r#""url":5"#, "url", STRING),
        (r#""url":"hooks.example/in""#, "url", URL),
        (r#""url":"/in""#, "url", URL),
        (r#""url":"//hooks.example/in""#, "url", URL),
        (r#""url":"ftp://hooks.example/in""#, "url", URL),
        (r#""url":"file:///etc/passwd""#, "url", URL),
        (r#""url":"javascript:alert(1)""#, "url", URL),
        (r#""url":"http:""#, "url", URL),
        (r#""url":"https://""#, "url", URL),
        (r#""url":"https:///in""#, "url", URL),
        (r#""url":"https://?x=1""#, "url", URL),
        (r#""url":"https://#x""#, "url", URL),
        (r#""url":" https://hooks.example""#, "url", URL),
        (r#""url":"https://hooks.example/a b""#, "url", URL),
        (r#""url":"https://hooks.example\r\nX: y""#, "url", URL),
        (r#""url":"https://hooks.example/\u0000""#, "url", URL),
        (r#""authentication":"Bearer x""#, "authentication", OBJECT),
        (r#""authentication":{}"#, "authentication.scheme", NEEDS_FILLED),
        (r#""authentication":{"schemes":["Bearer"]}"#, "authentication.scheme", NEEDS_FILLED),
        (r#""authentication":{"scheme":""}"#, "authentication.scheme", FILLED),
        (r#""authentication":{"scheme":["Bearer"]}"#, "authentication.scheme", STRING),
        (r#""authentication":{"scheme":"Bearer","credentials":5}"#, "authentication.credentials", STRING),
    ];
    let message = r#""message":{"messageId":"m-1","role":"ROLE_USER","parts":[{"text":"hi"}]}"#;
    for (member, field, problem) in rows {
        let config = format!("{{{GOOD},{member}}}");
        assert_rejected("CreateTaskPushNotificationConfig", &config, field, problem);
        for name in ["taskPushNotificationConfig", "pushNotificationConfig"] {
            let params = format!(r#"{{{message},"configuration":{{"{name}":{config}}}}}"#);
            assert_rejected("SendMessage", &params, &format!("configuration.{name}.{field}"), problem);
        }
    }
}

#[test]
fn invalid_parameters_of_other_operations_name_their_field() {
    let rows: &[(&str, &str, &str, &str)] = &[
        ("GetTask", "{}", "id", NEEDS_FILLED),
        ("GetTask", r#"{"id":null}"#, "id", NEEDS_FILLED),
        ("GetTask", r#"{"id":""}"#, "id", FILLED),
        ("GetTask", r#"{"id":1}"#, "id", STRING),
        ("GetTask", r#"{"id":"t","historyLength":-1}"#, "historyLength", COUNT),
        ("GetTask", r#"{"id":"t","historyLength":"x"}"#, "historyLength", INTEGER),
        ("GetTask", r#"{"id":"t","tenant":[]}"#, "tenant", STRING),
        ("ListTasks", r#"{"contextId":5}"#, "contextId", STRING),
        ("ListTasks", r#"{"status":"working"}"#, "status", STATE),
        ("ListTasks", r#"{"status":"TASK_STATE_SLEEPING"}"#, "status", STATE),
        ("ListTasks", r#"{"status":""}"#, "status", STATE),
        ("ListTasks", r#"{"status":9}"#, "status", STATE),
        ("ListTasks", r#"{"status":-1}"#, "status", STATE),
        ("ListTasks", r#"{"status":["TASK_STATE_WORKING"]}"#, "status", STATE),
        ("ListTasks", r#"{"pageSize":0}"#, "pageSize", PAGE_SIZE),
        ("ListTasks", r#"{"pageSize":101}"#, "pageSize", PAGE_SIZE),
        ("ListTasks", r#"{"pageSize":-1}"#, "pageSize", PAGE_SIZE),
        ("ListTasks", r#"{"page_size":"0"}"#, "pageSize", PAGE_SIZE),
        ("ListTasks", r#"{"pageSize":2147483648}"#, "pageSize", INTEGER),
        ("ListTasks", r#"{"pageSize":1.5}"#, "pageSize", INTEGER),
        ("ListTasks", r#"{"pageSize":"ten"}"#, "pageSize", INTEGER),
        ("ListTasks", r#"{"pageToken":5}"#, "pageToken", STRING),
        ("ListTasks", r#"{"historyLength":-1}"#, "historyLength", COUNT),
        ("ListTasks", r#"{"statusTimestampAfter":"yesterday"}"#, "statusTimestampAfter", TIME),
        ("ListTasks", r#"{"statusTimestampAfter":""}"#, "statusTimestampAfter", TIME),
        ("ListTasks", r#"{"statusTimestampAfter":1767323045}"#, "statusTimestampAfter", TIME),
        ("ListTasks", r#"{"statusTimestampAfter":"2026-01-02"}"#, "statusTimestampAfter", TIME),
        ("ListTasks", r#"{"statusTimestampAfter":"2026-01-02T03:04:05"}"#, "statusTimestampAfter", TIME),
        ("ListTasks", r#"{"statusTimestampAfter":"2026-02-30T03:04:05Z"}"#, "statusTimestampAfter", TIME),
        ("ListTasks", r#"{"status_timestamp_after":"2026-01-02T25:00:00Z"}"#, "statusTimestampAfter", TIME),
        ("ListTasks", r#"{"includeArtifacts":"yes"}"#, "includeArtifacts", FLAG),
        ("ListTasks", r#"{"includeArtifacts":0}"#, "includeArtifacts", FLAG),
        ("ListTasks", r#"{"tenant":5}"#, "tenant", STRING),
        ("CancelTask", "{}", "id", NEEDS_FILLED),
        ("CancelTask", r#"{"id":""}"#, "id", FILLED),
        ("CancelTask", r#"{"id":"t","metadata":"x"}"#, "metadata", OBJECT),
        ("CancelTask", r#"{"id":"t","tenant":5}"#, "tenant", STRING),
        ("SubscribeToTask", "{}", "id", NEEDS_FILLED),
        ("SubscribeToTask", r#"{"id":["t"]}"#, "id", STRING),
        ("SubscribeToTask", r#"{"id":"t","tenant":5}"#, "tenant", STRING),
        ("CreateTaskPushNotificationConfig", "{}", "taskId", NEEDS_FILLED),
        ("CreateTaskPushNotificationConfig", r#"{"url":"http://a"}"#, "taskId", NEEDS_FILLED),
        ("CreateTaskPushNotificationConfig", r#"{"taskId":"","url":"http://a"}"#, "taskId", FILLED),
        ("CreateTaskPushNotificationConfig", r#"{"taskId":"t"}"#, "url", NEEDS_URL),
        ("GetTaskPushNotificationConfig", r#"{"id":"p"}"#, "taskId", NEEDS_FILLED),
        ("GetTaskPushNotificationConfig", r#"{"taskId":"t"}"#, "id", NEEDS_FILLED),
        ("GetTaskPushNotificationConfig", r#"{"taskId":"t","id":""}"#, "id", FILLED),
        ("GetTaskPushNotificationConfig", r#"{"taskId":5,"id":"p"}"#, "taskId", STRING),
        ("DeleteTaskPushNotificationConfig", r#"{"id":"p"}"#, "taskId", NEEDS_FILLED),
        ("DeleteTaskPushNotificationConfig", r#"{"taskId":"t"}"#, "id", NEEDS_FILLED),
        ("DeleteTaskPushNotificationConfig", r#"{"taskId":"t","id":"p","tenant":5}"#, "tenant", STRING),
        ("ListTaskPushNotificationConfigs", "{}", "taskId", NEEDS_FILLED),
        ("ListTaskPushNotificationConfigs", r#"{"taskId":"t","pageSize":-1}"#, "pageSize", COUNT),
        ("ListTaskPushNotificationConfigs", r#"{"taskId":"t","pageSize":"x"}"#, "pageSize", INTEGER),
        ("ListTaskPushNotificationConfigs", r#"{"taskId":"t","pageToken":5}"#, "pageToken", STRING),
        ("GetExtendedAgentCard", r#"{"tenant":5}"#, "tenant", STRING),
    ];
    for (method, params, field, problem) in rows {
        assert_rejected(method, params, field, problem);
    }
}

#[test]
fn invalid_event_names_its_field() {
    #[rustfmt::skip]
    let rows: &[Row] = &[
        ("5", "", OBJECT),
        ("[]", "", OBJECT),
        ("{}", "", ONE_EVENT),
        (r#"{"task":null}"#, "", ONE_EVENT),
        (r#"{"kind":"task","id":"t"}"#, "", ONE_EVENT),
        (r#"{"message":{"messageId":"m","role":1,"parts":[{"text":""}]},"statusUpdate":{"taskId":"t","status":{"state":1}}}"#,
         "", ONE_EVENT),
        (r#"{"task":[]}"#, "task", OBJECT),
        (r#"{"task":{}}"#, "task.id", NEEDS_FILLED),
        (r#"{"task":{"id":"t"}}"#, "task.status", NEEDS_STATUS),
        (r#"{"task":{"id":"t","status":"done"}}"#, "task.status", OBJECT),
        (r#"{"task":{"id":"t","status":{}}}"#, "task.status.state", NEEDS_STATE),
        (r#"{"task":{"id":"t","status":{"state":"completed"}}}"#, "task.status.state", STATE),
        (r#"{"task":{"id":"t","status":{"state":9}}}"#, "task.status.state", STATE),
        (r#"{"task":{"id":"t","status":{"state":1,"timestamp":5}}}"#, "task.status.timestamp", TIME),
        (r#"{"task":{"id":"t","status":{"state":1,"message":"x"}}}"#, "task.status.message", OBJECT),
        (r#"{"task":{"id":"t","status":{"state":1,"message":{"messageId":"m","role":1,"parts":[{}]}}}}"#,
         "task.status.message.parts[0]", ONE_CONTENT),
        (r#"{"task":{"id":"t","status":{"state":1},"contextId":5}}"#, "task.contextId", STRING),
        (r#"{"task":{"id":"t","status":{"state":1},"artifacts":{}}}"#, "task.artifacts", ARRAY),
        (r#"{"task":{"id":"t","status":{"state":1},"artifacts":[null]}}"#, "task.artifacts[0]", OBJECT),
        (r#"{"task":{"id":"t","status":{"state":1},"artifacts":[{}]}}"#, "task.artifacts[0].artifactId",
         NEEDS_FILLED),
        (r#"{"task":{"id":"t","status":{"state":1},"artifacts":[{"artifactId":"a","parts":{}}]}}"#,
         "task.artifacts[0].parts", ARRAY),
        (r#"{"task":{"id":"t","status":{"state":1},"artifacts":[{"artifactId":"a","parts":[{"text":1}]}]}}"#,
         "task.artifacts[0].parts[0].text", STRING),
        (r#"{"task":{"id":"t","status":{"state":1},"history":[{}]}}"#, "task.history[0].messageId",
         NEEDS_FILLED),
        (r#"{"task":{"id":"t","status":{"state":1},"history":[{"messageId":"m","role":"ROLE_UNSPECIFIED"}]}}"#,
         "task.history[0].role", ROLE),
        (r#"{"task":{"id":"t","status":{"state":1},"metadata":[]}}"#, "task.metadata", OBJECT),
        (r#"{"message":{"role":"ROLE_AGENT"}}"#, "message.messageId", NEEDS_FILLED),
        (r#"{"statusUpdate":{"status":{"state":1}}}"#, "statusUpdate.taskId", NEEDS_FILLED),
        (r#"{"statusUpdate":{"taskId":"t"}}"#, "statusUpdate.status", NEEDS_STATUS),
        (r#"{"statusUpdate":{"taskId":"t","status":{"state":null}}}"#, "statusUpdate.status.state",
         NEEDS_STATE),
        (r#"{"status_update":{"taskId":"t","status":{"state":1},"metadata":1}}"#, "statusUpdate.metadata",
         OBJECT),
        (r#"{"artifactUpdate":{}}"#, "artifactUpdate.taskId", NEEDS_FILLED),
        (r#"{"artifactUpdate":{"taskId":"t"}}"#, "artifactUpdate.artifact", "required, expected an artifact"),
        (r#"{"artifactUpdate":{"taskId":"t","artifact":{"artifactId":"a","parts":"x"}}}"#,
         "artifactUpdate.artifact.parts", ARRAY),
        (r#"{"artifactUpdate":{"taskId":"t","artifact":{"artifactId":"a","parts":[{"text":""}],"name":5}}}"#,
         "artifactUpdate.artifact.name", STRING),
        (r#"{"artifactUpdate":{"taskId":"t","artifact":{"artifactId":"a","parts":[{"text":""}]},"append":"true"}}"#,
         "artifactUpdate.append", FLAG),
        (r#"{"artifactUpdate":{"taskId":"t","artifact":{"artifactId":"a","parts":[{"text":""}]},"last_chunk":1}}"#,
         "artifactUpdate.lastChunk", FLAG),
    ];
    for (text, field, problem) in rows {
        assert_eq!(read_event(text), Err(Violation::new(field, problem)), "{text}");
    }
}

#[test]
fn invalid_reply_names_its_field() {
    use OperationKind::{
        CancelTask, CreatePushConfig, GetExtendedCard, GetPushConfig, GetTask, ListPushConfigs, ListTasks,
        SendMessage, SendStreamingMessage, SubscribeToTask,
    };
    let stream = "expected a stream, not a single response";
    #[rustfmt::skip]
    let rows: &[(OperationKind, &str, &str, &str)] = &[
        (SendMessage, "{}", "", ONE_EVENT),
        (SendMessage, "null", "", OBJECT),
        (SendMessage, r#"{"statusUpdate":{"taskId":"t","status":{"state":1}}}"#, "",
         "expected a task or a message"),
        (SendMessage, r#"{"id":"t","status":{"state":1}}"#, "", ONE_EVENT),
        (SendStreamingMessage, "{}", "result", stream),
        (SubscribeToTask, "{}", "result", stream),
        (GetTask, r#"{"task":{"id":"t","status":{"state":1}}}"#, "id", NEEDS_FILLED),
        (GetTask, "null", "", OBJECT),
        (CancelTask, r#"{"id":"t"}"#, "status", NEEDS_STATUS),
        (ListTasks, "[]", "", OBJECT),
        (ListTasks, r#"{"tasks":{}}"#, "tasks", ARRAY),
        (ListTasks, r#"{"tasks":[{"id":"t","status":{"state":1}},{}]}"#, "tasks[1].id", NEEDS_FILLED),
        (ListTasks, r#"{"nextPageToken":5}"#, "nextPageToken", STRING),
        (ListTasks, r#"{"pageSize":-1}"#, "pageSize", COUNT),
        (ListTasks, r#"{"totalSize":"many"}"#, "totalSize", INTEGER),
        (CreatePushConfig, "{}", "url", NEEDS_URL),
        (GetPushConfig, r#"{"url":"hooks"}"#, "url", URL),
        (ListPushConfigs, "[]", "", OBJECT),
        (ListPushConfigs, r#"{"configs":[{"url":"http://a"},{}]}"#, "configs[1].url", NEEDS_URL),
        (ListPushConfigs, r#"{"nextPageToken":[]}"#, "nextPageToken", STRING),
        (GetExtendedCard, "{}", "name", NEEDS_FILLED),
    ];
    for (kind, text, field, problem) in rows {
        assert_eq!(read_reply(*kind, text), Err(Violation::new(field, problem)), "{kind:?} {text}");
    }
}

#[test]
fn invalid_error_object_names_its_field() {
    let rows: &[Row] = &[
        ("5", "", OBJECT),
        ("[]", "", OBJECT),
        ("{}", "code", "required, expected an integer"),
        (r#"{"code":null}"#, "code", "required, expected an integer"),
        (r#"{"code":"TASK_NOT_FOUND"}"#, "code", INTEGER),
        (r#"{"code":-32001.5}"#, "code", INTEGER),
        (r#"{"code":-32001,"message":5}"#, "message", STRING),
    ];
    for (text, field, problem) in rows {
        assert_eq!(read_error(text), Err(Violation::new(field, problem)), "{text}");
    }
}

#[test]
fn webhook_url_requires_a_host() {
    for url in ["http://:80/in", "https://user@/in", "https://user:pw@:443"] {
        assert_rejected(
            "CreateTaskPushNotificationConfig",
            &format!(r#"{{"taskId":"t","url":"{url}"}}"#),
            "url",
            URL,
        );
    }
}

/// Asserts that these parameters have exactly one violation, at `field`, and that the error message repeats
/// it.
fn assert_rejected(method: &str, params: &str, field: &str, problem: &str) {
    let Err(error) = read_operation(method, params) else { panic!("{method} {params} is accepted") };
    assert_eq!(error.violations, [Violation::new(field, problem)], "{method} {params}");
    assert_eq!(error.kind, ErrorKind::InvalidParams, "{method} {params}");
    let message = if field.is_empty() { problem.to_owned() } else { format!("{field}: {problem}") };
    assert_eq!(error.message, message, "{method} {params}");
}
