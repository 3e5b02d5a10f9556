//! The JSON-RPC envelope seen from the calling side: a request is written, an answer is read.
//!
//! The id of an answer is not compared with the request's: HTTP has already said what answers what, and peers
//! are known to change its type.

use protocol::{
    Operation, Violation,
    dialect::v1,
    json::{
        read::{Node, Path, Read},
        write::Writer,
    },
};
use serde_json::value::RawValue;

use crate::Error;

/// Writes a request.
pub(crate) fn encode(id: u32, operation: &Operation) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.object(|writer| {
        writer.text("jsonrpc", "2.0");
        writer.key("id").int(i64::from(id));
        writer.text("method", v1::operation::method(operation.kind()));
        v1::operation::encode(writer.key("params"), operation);
    });
    writer.finish()
}

/// Reads an answer: its result by `read`, or the error it carries.
pub(crate) fn decode<T>(body: &[u8], read: impl FnOnce(Node<'_, '_>) -> Read<T>) -> Result<T, Error> {
    let raw: &RawValue = serde_json::from_slice(body).map_err(|_| Violation::new("", "expected JSON"))?;
    let answer = Node::new(raw, &Path::Root).object()?;
    if let Some(error) = answer.maybe("error", v1::error::decode)? {
        return Err(Error::Protocol(error));
    }
    // A null is a result too: that of a delete.
    let result = answer.present("result").ok_or_else(|| answer.lacks("result", "a result or an error"))?;
    Ok(read(Node::new(result, &Path::Field(&Path::Root, "result")))?)
}

#[cfg(test)]
mod tests {
    use protocol::{ErrorKind, GetTask, OperationKind, Reply};

    use super::*;

    fn deleted(body: &str) -> Result<Reply, Error> {
        decode(body.as_bytes(), |node| v1::reply::decode(OperationKind::DeletePushConfig, node))
    }

    #[test]
    fn a_request_is_one_json_rpc_object() {
        let operation =
            Operation::GetTask(GetTask { id: "t-1".into(), history_length: Some(0), tenant: None });
        let expected =
            r#"{"jsonrpc":"2.0","id":7,"method":"GetTask","params":{"id":"t-1","historyLength":0}}"#;
        assert_eq!(String::from_utf8(encode(7, &operation)).unwrap(), expected);
    }

    #[test]
    fn a_null_result_is_a_result_and_a_null_error_is_none() {
        for body in [r#"{"jsonrpc":"2.0","id":1,"result":null}"#, r#"{"id":"1","error":null,"result":null}"#]
        {
            assert_eq!(deleted(body).unwrap(), Reply::Deleted, "{body}");
        }
    }

    #[test]
    fn an_error_goes_before_a_result() {
        let answered = deleted(r#"{"result":null,"error":{"code":-32001,"message":"gone"}}"#);
        let Err(Error::Protocol(error)) = answered else { panic!("{answered:?}") };
        assert_eq!((error.kind, error.message.as_str()), (ErrorKind::TaskNotFound, "gone"));
    }

    #[test]
    fn what_is_no_answer_names_its_field() {
        let cases = [
            ("", "", "expected JSON"),
            ("<html>", "", "expected JSON"),
            ("[]", "", "expected an object"),
            ("{}", "result", "required, expected a result or an error"),
            (r#"{"error":{}}"#, "error.code", "required, expected an integer"),
        ];
        for (body, field, problem) in cases {
            let answered = deleted(body);
            let Err(Error::Malformed(violation)) = answered else { panic!("{body}: {answered:?}") };
            assert_eq!(violation, Violation::new(field, problem), "{body}");
        }
        let task =
            decode(br#"{"result":{"id":"t"}}"#, |node| v1::reply::decode(OperationKind::GetTask, node));
        let Err(Error::Malformed(violation)) = task else { panic!("{task:?}") };
        assert_eq!(violation.field, "result.status");
    }
}
