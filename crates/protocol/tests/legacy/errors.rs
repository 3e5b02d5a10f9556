//! Every error in both dialects, and reading the errors of other servers.

use a2ad_protocol::{Dialect, Error, ErrorKind, TaskId, Violation};

use crate::codec::{DIALECTS, read_error, write_error};

/// Errors without a form of their own before 1.0 are decoded as another kind.
fn decoded_kind(dialect: Dialect, kind: ErrorKind) -> ErrorKind {
    match (dialect, kind) {
        (Dialect::Draft, ErrorKind::InvalidAgentResponse) => ErrorKind::Internal,
        (Dialect::Draft, ErrorKind::ExtendedCardNotConfigured) => ErrorKind::UnsupportedOperation,
        (_, ErrorKind::ExtensionSupportRequired | ErrorKind::VersionNotSupported) => {
            ErrorKind::UnsupportedOperation
        }
        (_, ErrorKind::BodyTooLarge | ErrorKind::UnsupportedMediaType) => ErrorKind::InvalidRequest,
        (_, ErrorKind::MessageIdReused) => ErrorKind::InvalidParams,
        (_, kind) => kind,
    }
}

#[test]
fn every_error_has_its_code_fixed_message_and_data() {
    for kind in ErrorKind::ALL {
        for dialect in DIALECTS {
            let error = Error::new(kind, "text for the caller").with("taskId", "t-1");
            let row = decoded_kind(dialect, kind).row();
            let details = r#"{"errors":[{"field":"","message":"text for the caller"}]}"#;
            let data = match (dialect, row.legacy_code) {
                (Dialect::Draft, -32700 | -32600 | -32602 | -32603) | (_, -32600 | -32602) => {
                    format!(r#","data":{details}"#)
                }
                (Dialect::Draft, _) => r#","data":null"#.to_owned(),
                _ => String::new(),
            };
            let expected =
                format!(r#"{{"code":{},"message":"{}"{data}}}"#, row.legacy_code, row.legacy_message);
            let text = write_error(dialect, &error);
            assert_eq!(text, expected, "{dialect:?} {kind:?}");
            assert_eq!(
                read_error(dialect, &text).unwrap().kind,
                decoded_kind(dialect, kind),
                "{dialect:?} {kind:?}"
            );
        }
    }
}

#[test]
fn invalid_fields_are_listed_in_the_data() {
    let error = Error::invalid_params(Violation::new("message.parts[0].file", "expected one of bytes, uri"));
    let expected = r#"{"code":-32602,"message":"Invalid parameters","data":{"errors":[{"field":"message.parts[0].file","message":"expected one of bytes, uri"}]}}"#;
    for dialect in DIALECTS {
        assert_eq!(write_error(dialect, &error), expected);
        assert_eq!(read_error(dialect, expected).unwrap().violations, error.violations);
    }
}

#[test]
fn missing_task_differs_only_in_the_data() {
    let error = Error::task_not_found(&TaskId::from("t-1"));
    assert_eq!(
        write_error(Dialect::Draft, &error),
        r#"{"code":-32001,"message":"Task not found","data":null}"#
    );
    assert_eq!(write_error(Dialect::V03, &error), r#"{"code":-32001,"message":"Task not found"}"#);
}

#[test]
fn error_codes_of_other_servers_are_read_by_generation() {
    use ErrorKind::{
        AgentDisabled, ExtendedCardNotConfigured, ExtensionSupportRequired, Internal, InvalidAgentResponse,
        PermissionDenied, RateLimited, TaskNotFound, Unauthenticated, Unavailable, UnsupportedOperation,
        VersionNotSupported,
    };
    let rows = [
        (-32001, TaskNotFound, TaskNotFound),
        (-32006, UnsupportedOperation, InvalidAgentResponse),
        (-32007, Unauthenticated, ExtendedCardNotConfigured),
        (-32008, PermissionDenied, ExtensionSupportRequired),
        (-32009, UnsupportedOperation, VersionNotSupported),
        (-32010, RateLimited, Unauthenticated),
        (-32011, Unavailable, AgentDisabled),
        (-32012, RateLimited, RateLimited),
        (-32000, Internal, Internal),
        (-32099, Internal, Internal),
        (5, Internal, Internal),
    ];
    for (code, draft, v03) in rows {
        let text = format!(r#"{{"code":{code},"message":"some other text","data":"free text"}}"#);
        assert_eq!(read_error(Dialect::Draft, &text).unwrap().kind, draft, "{code}");
        let error = read_error(Dialect::V03, &text).unwrap();
        assert_eq!((error.kind, error.message.as_str()), (v03, "some other text"), "{code}");
    }
    let ours = r#"{"code":-32010,"message":"Authorization failed","data":null}"#;
    assert_eq!(read_error(Dialect::Draft, ours).unwrap().kind, PermissionDenied);
}
