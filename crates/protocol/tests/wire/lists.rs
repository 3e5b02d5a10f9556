//! Consistency of the lists of operations, methods, errors and samples.

use std::path::Path;

use a2ad_protocol::{
    ErrorKind, OperationKind, TaskState,
    dialect::v1::{operation, task},
    error::GrpcStatus,
};

use crate::codec::read_operation;

/// Number of operations in A2A 3.1.
const OPERATIONS: usize = 11;

/// An index for each kind. A kind added to the enum does not compile until it has one here.
fn index(kind: OperationKind) -> usize {
    match kind {
        OperationKind::SendMessage => 0,
        OperationKind::SendStreamingMessage => 1,
        OperationKind::GetTask => 2,
        OperationKind::ListTasks => 3,
        OperationKind::CancelTask => 4,
        OperationKind::SubscribeToTask => 5,
        OperationKind::CreatePushConfig => 6,
        OperationKind::GetPushConfig => 7,
        OperationKind::ListPushConfigs => 8,
        OperationKind::DeletePushConfig => 9,
        OperationKind::GetExtendedCard => 10,
    }
}

#[test]
fn each_operation_has_one_method() {
    let mut methods = [None; OPERATIONS];
    for (method, kind) in operation::METHODS {
        assert_eq!(methods[index(kind)].replace(method), None, "{kind:?} has two methods");
        assert_eq!(operation::method(kind), method);
    }
    // A2A 9.4, in the order of the indexes.
    #[rustfmt::skip]
    let expected = [
        "SendMessage", "SendStreamingMessage", "GetTask", "ListTasks", "CancelTask", "SubscribeToTask",
        "CreateTaskPushNotificationConfig", "GetTaskPushNotificationConfig",
        "ListTaskPushNotificationConfigs", "DeleteTaskPushNotificationConfig", "GetExtendedAgentCard",
    ];
    assert_eq!(methods, expected.map(Some));
}

#[test]
fn each_method_has_its_operation_and_samples() {
    for (method, kind) in operation::METHODS {
        for sample in ["minimal", "full"] {
            let path = format!("tests/samples/v1/operation/{method}/{sample}.json");
            let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
            assert_eq!(read_operation(method, &text).unwrap().kind(), kind, "{path}");
        }
        let streams = matches!(kind, OperationKind::SendStreamingMessage | OperationKind::SubscribeToTask);
        let replies = format!("tests/samples/v1/reply/{method}");
        assert_eq!(Path::new(&replies).exists(), !streams, "{replies}");
    }
}

#[test]
fn each_state_has_one_name_and_one_number() {
    for (at, state) in TaskState::ALL.into_iter().enumerate() {
        assert_eq!(usize::from(state.number()), at, "{state:?}");
        assert_eq!(TaskState::from_number(state.number()), Some(state));
        assert!(TaskState::ALL[..at].iter().all(|other| task::state_name(*other) != task::state_name(state)));
    }
    assert_eq!(TaskState::from_number(9), None);
    // A state added to the enum does not compile until it is counted here.
    let count = |state| match state {
        TaskState::Unspecified
        | TaskState::Submitted
        | TaskState::Working
        | TaskState::Completed
        | TaskState::Failed
        | TaskState::Canceled
        | TaskState::InputRequired
        | TaskState::Rejected
        | TaskState::AuthRequired => 9,
    };
    assert_eq!(TaskState::ALL.len(), count(TaskState::Working));
}

/// One expected row of the error table: code and reason, REST, gRPC and JSON-RPC status, sample.
type Row = (i32, &'static str, u16, GrpcStatus, u16, &'static str);

/// A2A 5.4, then this project's own rows. A kind added to the enum does not compile until it has a row here.
#[rustfmt::skip]
fn expected(kind: ErrorKind) -> Row {
    use GrpcStatus::{
        AlreadyExists, DeadlineExceeded, FailedPrecondition, Internal, InvalidArgument, NotFound,
        PermissionDenied, ResourceExhausted, Unauthenticated, Unavailable, Unimplemented,
    };
    match kind {
        ErrorKind::Parse                        => (-32700, "PARSE_ERROR",                        400, InvalidArgument,    200, "parse"),
        ErrorKind::InvalidRequest               => (-32600, "INVALID_REQUEST",                    400, InvalidArgument,    200, "invalid-request"),
        ErrorKind::MethodNotFound               => (-32601, "METHOD_NOT_FOUND",                   404, Unimplemented,      200, "method-not-found"),
        ErrorKind::InvalidParams                => (-32602, "INVALID_PARAMS",                     400, InvalidArgument,    200, "invalid-params"),
        ErrorKind::Internal                     => (-32603, "INTERNAL_ERROR",                     500, Internal,           200, "internal"),
        ErrorKind::TaskNotFound                 => (-32001, "TASK_NOT_FOUND",                     404, NotFound,           200, "task-not-found"),
        ErrorKind::TaskNotCancelable            => (-32002, "TASK_NOT_CANCELABLE",                400, FailedPrecondition, 200, "task-not-cancelable"),
        ErrorKind::PushNotificationNotSupported => (-32003, "PUSH_NOTIFICATION_NOT_SUPPORTED",    400, FailedPrecondition, 200, "push-notification-not-supported"),
        ErrorKind::UnsupportedOperation         => (-32004, "UNSUPPORTED_OPERATION",              400, FailedPrecondition, 200, "unsupported-operation"),
        ErrorKind::ContentTypeNotSupported      => (-32005, "CONTENT_TYPE_NOT_SUPPORTED",         400, InvalidArgument,    200, "content-type-not-supported"),
        ErrorKind::InvalidAgentResponse         => (-32006, "INVALID_AGENT_RESPONSE",             500, Internal,           200, "invalid-agent-response"),
        ErrorKind::ExtendedCardNotConfigured    => (-32007, "EXTENDED_AGENT_CARD_NOT_CONFIGURED", 400, FailedPrecondition, 200, "extended-card-not-configured"),
        ErrorKind::ExtensionSupportRequired     => (-32008, "EXTENSION_SUPPORT_REQUIRED",         400, FailedPrecondition, 200, "extension-support-required"),
        ErrorKind::VersionNotSupported          => (-32009, "VERSION_NOT_SUPPORTED",              400, FailedPrecondition, 200, "version-not-supported"),
        ErrorKind::Unauthenticated              => (-32000, "UNAUTHENTICATED",                    401, Unauthenticated,    401, "unauthenticated"),
        ErrorKind::PermissionDenied             => (-32000, "PERMISSION_DENIED",                  403, PermissionDenied,   403, "permission-denied"),
        ErrorKind::AgentDisabled                => (-32000, "AGENT_DISABLED",                     404, NotFound,           404, "agent-disabled"),
        ErrorKind::GuardrailBlocked             => (-32013, "GUARDRAIL_BLOCKED",                  422, FailedPrecondition, 200, "guardrail-blocked"),
        ErrorKind::RateLimited                  => (-32000, "RATE_LIMITED",                       429, ResourceExhausted,  429, "rate-limited"),
        ErrorKind::Unavailable                  => (-32000, "UNAVAILABLE",                        503, Unavailable,        503, "unavailable"),
        ErrorKind::DeadlineExceeded             => (-32000, "DEADLINE_EXCEEDED",                  408, DeadlineExceeded,   408, "deadline-exceeded"),
        ErrorKind::BodyTooLarge                 => (-32600, "BODY_TOO_LARGE",                     413, ResourceExhausted,  413, "body-too-large"),
        ErrorKind::UnsupportedMediaType         => (-32600, "UNSUPPORTED_MEDIA_TYPE",             415, InvalidArgument,    415, "unsupported-media-type"),
        ErrorKind::MessageIdReused              => (-32602, "MESSAGE_ID_REUSED",                  409, AlreadyExists,      200, "message-id-reused"),
        ErrorKind::NotFound                     => (-32000, "NOT_FOUND",                          404, NotFound,           404, "not-found"),
        ErrorKind::Conflict                     => (-32000, "CONFLICT",                           409, FailedPrecondition, 409, "conflict"),
    }
}

#[test]
fn error_table_has_the_expected_rows() {
    for (at, kind) in ErrorKind::ALL.into_iter().enumerate() {
        assert!(!ErrorKind::ALL[..at].contains(&kind), "{kind:?} is listed twice");
        let (code, reason, http, grpc, rpc_http, sample) = expected(kind);
        let row = kind.row();
        assert_eq!(
            (row.code, row.reason, row.http, row.grpc, row.rpc_http),
            (code, reason, http, grpc, rpc_http)
        );
        let path = format!("tests/samples/v1/error/{sample}.json");
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert_eq!(crate::codec::read_error(&text).unwrap().kind, kind, "{path}");
    }
    // Discriminants count up from zero, so the highest one is too high if a kind is missing from the list.
    let highest = ErrorKind::ALL.into_iter().map(|kind| kind as usize).max();
    assert_eq!(highest, Some(ErrorKind::ALL.len() - 1));
}

#[test]
fn fixed_messages_before_1_0_are_unchanged() {
    let rows = [
        (ErrorKind::Parse, -32700, "Invalid JSON payload"),
        (ErrorKind::InvalidRequest, -32600, "Request payload validation error"),
        (ErrorKind::MethodNotFound, -32601, "Method not found"),
        (ErrorKind::InvalidParams, -32602, "Invalid parameters"),
        (ErrorKind::Internal, -32603, "Internal error"),
        (ErrorKind::TaskNotFound, -32001, "Task not found"),
        (ErrorKind::TaskNotCancelable, -32002, "Task cannot be canceled"),
        (ErrorKind::PushNotificationNotSupported, -32003, "Push Notification is not supported"),
        (ErrorKind::UnsupportedOperation, -32004, "This operation is not supported"),
        (ErrorKind::ContentTypeNotSupported, -32005, "Incompatible content types"),
        (ErrorKind::InvalidAgentResponse, -32006, "Invalid agent response"),
        (ErrorKind::ExtendedCardNotConfigured, -32007, "Authenticated Extended Card is not configured"),
        (ErrorKind::ExtensionSupportRequired, -32004, "This operation is not supported"),
        (ErrorKind::VersionNotSupported, -32004, "This operation is not supported"),
        (ErrorKind::Unauthenticated, -32010, "Authentication required"),
        (ErrorKind::PermissionDenied, -32010, "Authorization failed"),
        (ErrorKind::AgentDisabled, -32011, "Agent is not enabled"),
        (ErrorKind::GuardrailBlocked, -32013, "Blocked by guardrail"),
        (ErrorKind::RateLimited, -32012, "Rate limit exceeded"),
    ];
    for (kind, code, message) in rows {
        let row = kind.row();
        assert_eq!((row.legacy_code, row.legacy_message), (code, message), "{kind:?}");
    }
}
