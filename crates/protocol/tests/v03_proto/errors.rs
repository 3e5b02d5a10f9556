//! The bare error object.

use a2ad_protocol::{Error, ErrorKind, Violation};
use proptest::{prop_assert_eq, proptest};

use crate::{
    codec::{read_error, write_error},
    values,
};

#[test]
fn every_error_has_its_code_and_fixed_message() {
    for kind in ErrorKind::ALL {
        let row = kind.row();
        let text = write_error(&Error::new(kind, "free text with a secret"));
        let head = format!(r#"{{"code":{},"message":"{}""#, row.legacy_code, row.legacy_message);
        assert!(text.starts_with(&head), "{text}");
        assert_eq!(read_error(&text).unwrap().kind.row().legacy_code, row.legacy_code, "{kind:?}");
    }
}

#[test]
fn invalid_fields_are_listed_in_the_data() {
    let error: Error = Violation::new("message.role", "expected ROLE_USER or ROLE_AGENT").into();
    let text = write_error(&error);
    let expected = r#"{"code":-32602,"message":"Invalid parameters","data":{"errors":[{"field":"message.role","message":"expected ROLE_USER or ROLE_AGENT"}]}}"#;
    assert_eq!(text, expected);
    assert_eq!(read_error(&text).unwrap().violations, error.violations);
}

#[test]
fn invalid_error_object_is_rejected() {
    for text in ["5", "{}", r#"{"error":{}}"#, r#"{"message":"x"}"#] {
        assert!(read_error(text).is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn every_error_round_trips(error in values::error()) {
        let text = write_error(&error);
        let read = read_error(&text).unwrap();
        prop_assert_eq!(read.kind.row().legacy_code, error.kind.row().legacy_code, "{}", text);
        prop_assert_eq!(write_error(&read), text);
    }
}
