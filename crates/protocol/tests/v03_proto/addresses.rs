//! Path and query parameters.

use a2ad_protocol::{
    CancelTask, GetExtendedCard, GetTask, ListTasks, Operation, OperationKind, PushConfigQuery,
    PushConfigRef, SubscribeToTask, TaskState, Timestamp, Violation,
};

use crate::codec::{at, read_operation, write_operation};

#[test]
fn ids_are_taken_verbatim_from_the_path() {
    let id = "t:/%2F é";
    for (kind, expected) in [
        (
            OperationKind::GetTask,
            Operation::GetTask(GetTask { id: id.into(), history_length: None, tenant: None }),
        ),
        (
            OperationKind::CancelTask,
            Operation::CancelTask(CancelTask { id: id.into(), metadata: None, tenant: None }),
        ),
        (
            OperationKind::SubscribeToTask,
            Operation::SubscribeToTask(SubscribeToTask { id: id.into(), tenant: None }),
        ),
        (OperationKind::GetPushConfig, Operation::GetPushConfig(config(id, "p/1"))),
        (OperationKind::DeletePushConfig, Operation::DeletePushConfig(config(id, "p/1"))),
        (
            OperationKind::ListPushConfigs,
            Operation::ListPushConfigs(PushConfigQuery {
                task_id: id.into(),
                page_size: None,
                page_token: None,
                tenant: None,
            }),
        ),
        (OperationKind::GetExtendedCard, Operation::GetExtendedCard(GetExtendedCard::default())),
    ] {
        let address = at(id, "p/1", &[]);
        assert_eq!(read_operation(kind, &address, None), Ok(expected.clone()), "{kind:?}");
        // The body of a cancel is ignored.
        assert_eq!(read_operation(kind, &address, Some(r#"{"id":"other"}"#)), Ok(expected), "{kind:?}");
    }
}

#[test]
fn history_is_complete_unless_a_length_is_given() {
    let cases = [
        (&[][..], Ok(None)),
        (&[("historyLength", "0")], Ok(None)),
        (&[("historyLength", "2")], Ok(Some(2))),
        (&[("history_length", "5"), ("historyLength", "2")], Ok(Some(2))),
        (&[("historyLength", "-1")], Err("expected an integer of 0 or more")),
        (&[("historyLength", "many")], Err("expected a 32-bit integer")),
    ];
    for (query, expected) in cases {
        let read = read_operation(OperationKind::GetTask, &at("t", "", query), None);
        let read = read.map(|operation| match operation {
            Operation::GetTask(req) => req.history_length,
            other => panic!("{other:?}"),
        });
        let problem = |problem| Violation::new("historyLength", problem).into();
        assert_eq!(read, expected.map_err(problem), "{query:?}");
    }
}

#[test]
fn list_parameters_are_in_the_query() {
    let query = [
        ("contextId", "c"),
        ("status", "5"),
        ("pageSize", "7"),
        ("pageToken", "p"),
        ("historyLength", "3"),
        ("statusTimestampAfter", "2026-01-02T03:04:05.678 02:00"),
        ("includeArtifacts", "true"),
    ];
    let expected = Operation::ListTasks(ListTasks {
        context_id: Some("c".into()),
        status: Some(TaskState::Canceled),
        page_size: Some(7),
        page_token: Some("p".into()),
        history_length: Some(3),
        status_timestamp_after: Timestamp::parse("2026-01-02T01:04:05.678Z"),
        include_artifacts: true,
        tenant: None,
    });
    assert_eq!(read_operation(OperationKind::ListTasks, &at("", "", &query), None), Ok(expected.clone()));
    let (address, body) = write_operation(&expected);
    assert_eq!(body, "{}");
    assert!(address.query.contains(&("status".into(), "TASK_STATE_CANCELLED".into())), "{address:?}");
    assert_eq!(read_operation(OperationKind::ListTasks, &address, None), Ok(expected));
}

#[test]
fn invalid_query_names_its_field() {
    let cases = [
        ("status", "TASK_STATE_ODD", "expected a task state such as TASK_STATE_WORKING"),
        ("status", "42", "expected a task state such as TASK_STATE_WORKING"),
        ("pageSize", "0", "expected an integer from 1 to 100"),
        ("pageSize", "101", "expected an integer from 1 to 100"),
        ("includeArtifacts", "yes", "expected true or false"),
        ("statusTimestampAfter", "now", "expected an RFC 3339 timestamp such as 2026-01-02T03:04:05.678Z"),
    ];
    for (name, value, problem) in cases {
        let read = read_operation(OperationKind::ListTasks, &at("", "", &[(name, value)]), None);
        assert_eq!(read, Err(Violation::new(name, problem).into()), "{name}={value}");
    }
}

#[test]
fn webhook_list_parameters_are_in_the_query() {
    let expected = Operation::ListPushConfigs(PushConfigQuery {
        task_id: "t".into(),
        page_size: Some(5),
        page_token: Some("a&b=c".into()),
        tenant: None,
    });
    let (address, _) = write_operation(&expected);
    assert_eq!(address, at("t", "", &[("pageSize", "5"), ("pageToken", "a&b=c")]));
    assert_eq!(read_operation(OperationKind::ListPushConfigs, &address, None), Ok(expected));
}

#[test]
fn webhook_id_may_be_in_the_query() {
    let body = r#"{"pushNotificationConfig":{"url":"https://hook.example/"}}"#;
    let address = at("t", "", &[("configId", "p-1")]);
    let Ok(Operation::CreatePushConfig(config)) =
        read_operation(OperationKind::CreatePushConfig, &address, Some(body))
    else {
        panic!("refused")
    };
    assert_eq!(config.id, Some("p-1".into()));
}

fn config(task: &str, id: &str) -> PushConfigRef {
    PushConfigRef { task_id: task.into(), id: Some(id.into()), tenant: None }
}
