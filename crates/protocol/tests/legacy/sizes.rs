//! Size limits: large input that is accepted, and oversized input that is rejected with a violation.

use a2ad_protocol::{
    Content, Dialect, Operation, Violation,
    dialect::v1::message::MAX_PARTS,
    json::read::{MAX_TEXTS, MAX_TEXTS_BYTES},
};

use crate::codec::{read_operation, sends, write_operation};

#[test]
fn message_has_at_most_a_thousand_parts() {
    for (dialect, method) in sends() {
        let send = |count: usize| {
            let parts = vec![r#"{"text":"x"}"#; count].join(",");
            let message = format!(r#"{{"messageId":"m","role":"user","parts":[{parts}]}}"#);
            read_operation(dialect, method, &format!(r#"{{"id":"t","message":{message}}}"#))
        };
        assert!(send(MAX_PARTS).is_ok());
        let error = send(MAX_PARTS + 1).unwrap_err();
        assert_eq!(error.violations, [Violation::new("message.parts", "expected at most 1000 parts")]);
    }
}

#[test]
fn body_of_ten_megabytes_round_trips() {
    let bytes = "aGkh".repeat(10 * 1024 * 1024 / 4);
    for (dialect, method) in sends() {
        let part = format!(r#"{{"file":{{"bytes":"{bytes}"}}}}"#);
        let message = format!(r#"{{"messageId":"m","role":"user","parts":[{part}]}}"#);
        let Ok(Operation::SendMessage(req)) =
            read_operation(dialect, method, &format!(r#"{{"id":"t","message":{message}}}"#))
        else {
            panic!("{method} must accept it")
        };
        assert!(
            matches!(&req.message.parts[0].content, Content::Raw(raw) if raw.len() == bytes.len() / 4 * 3)
        );
        // Not `assert_eq`: a failure would print all of it.
        assert!(write_operation(dialect, &Operation::SendMessage(req)).contains(&bytes));
    }
}

#[test]
fn schemes_of_a_webhook_are_limited_in_number_and_size() {
    for (dialect, method) in sends() {
        let place = if dialect == Dialect::Draft { "pushNotification" } else { "pushNotificationConfig" };
        let send = |schemes: &str| {
            let config =
                format!(r#"{{"url":"https://a.example","authentication":{{"schemes":[{schemes}]}}}}"#);
            let push = format!(r#""{place}":{config}"#);
            let push =
                if dialect == Dialect::Draft { push } else { format!(r#""configuration":{{{push}}}"#) };
            let message = r#"{"messageId":"m","role":"user","parts":[{"text":"x"}]}"#;
            read_operation(dialect, method, &format!(r#"{{"id":"t","message":{message},{push}}}"#))
        };
        let field = if dialect == Dialect::Draft { String::new() } else { "configuration.".to_owned() };
        let field = format!("{field}{place}.authentication.schemes");
        let assert_rejected = |schemes: &str, problem: String| {
            let Err(error) = send(schemes) else { panic!("{method} must reject them") };
            assert_eq!(error.violations, [Violation::new(&field, problem)]);
        };
        assert!(send(&vec![r#""a""#; MAX_TEXTS].join(",")).is_ok(), "{method}");
        let many = vec![r#""a""#; MAX_TEXTS + 1].join(",");
        assert_rejected(&many, format!("expected at most {MAX_TEXTS} strings"));
        let long = vec![format!(r#""{}""#, "a".repeat(1_000)); 1_100].join(",");
        assert_rejected(&long, format!("expected strings of at most {MAX_TEXTS_BYTES} bytes in all"));
    }
}
