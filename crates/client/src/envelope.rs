//! The JSON-RPC envelope on the client side: encodes requests, decodes responses.
//!
//! The id of a response is not compared with the request's: HTTP already pairs them, and some servers change
//! the id's type.

use protocol::{
    Dialect, Operation, Violation,
    json::{
        Raw,
        read::{Node, Path, Read},
        write::Writer,
    },
};

use crate::Error;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Writes a request.
pub(crate) fn encode(id: u32, dialect: Dialect, method: &str, operation: &Operation) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.object(|writer| {
        writer.text("jsonrpc", "2.0");
        writer.key("id").int(i64::from(id));
        writer.text("method", method);
        dialect.encode_operation(writer.key("params"), operation);
    });
    writer.finish()
}

/// Reads a response: its result with `read`, or the error it contains.
pub(crate) fn decode<T>(
    body: &[u8],
    dialect: Dialect,
    read: impl FnOnce(Node<'_, '_>) -> Read<T>,
) -> Result<T, Error> {
    let raw = document(body).ok_or_else(|| Violation::new("", "expected JSON"))?;
    let response = Node::new(raw, &Path::Root).object()?;
    if let Some(error) = response.maybe("error", |node| dialect.decode_error(node))? {
        return Err(Error::Protocol(error));
    }
    // Null is a valid result, for example of a delete.
    let result =
        response.present("result").ok_or_else(|| response.lacks("result", "a result or an error"))?;
    Ok(read(Node::new(result, &Path::Field(&Path::Root, "result")))?)
}

/// Reads the error event that ends a stream: a JSON-RPC response, or the error alone as in HTTP+JSON, nested
/// in `error` or bare.
pub(crate) fn decode_error_event(data: &[u8], dialect: Dialect) -> Error {
    let decoded = || -> Read<protocol::Error> {
        let raw = document(data).ok_or_else(|| Violation::new("", "expected JSON"))?;
        let node = Node::new(raw, &Path::Root);
        let object = node.object()?;
        match object.maybe("error", |error| Ok(error.object()?.present("status").is_some()))? {
            // Only an HTTP+JSON error of 1.0 has a gRPC status.
            Some(true) => Dialect::V1.decode_error_body(node),
            Some(false) => object.need("error", "an error", |error| dialect.decode_error(error)),
            None => dialect.decode_error(node),
        }
    };
    decoded().map_or_else(Error::Malformed, Error::Protocol)
}

/// Parses a JSON document, with or without a byte order mark.
pub(crate) fn document(body: &[u8]) -> Option<Raw<'_>> {
    Raw::parse(body.strip_prefix(BYTE_ORDER_MARK).unwrap_or(body)).ok()
}

#[cfg(test)]
mod tests {
    use protocol::{ErrorKind, GetTask, OperationKind, Reply};

    use super::*;

    fn deleted(body: &str) -> Result<Reply, Error> {
        decode(body.as_bytes(), Dialect::V1, |node| {
            Dialect::V1.decode_reply(OperationKind::DeletePushConfig, node)
        })
    }

    #[test]
    fn a_request_is_one_json_rpc_object() {
        let operation =
            Operation::GetTask(GetTask { id: "t-1".into(), history_length: Some(0), tenant: None });
        let expected =
            r#"{"jsonrpc":"2.0","id":7,"method":"GetTask","params":{"id":"t-1","historyLength":0}}"#;
        assert_eq!(String::from_utf8(encode(7, Dialect::V1, "GetTask", &operation)).unwrap(), expected);
    }

    #[test]
    fn a_null_result_is_a_result_and_a_null_error_is_none() {
        for body in ["\u{feff}{\"id\":1,\"result\":null}", r#"{"id":"1","error":null,"result":null}"#] {
            assert_eq!(deleted(body).unwrap(), Reply::Deleted, "{body}");
        }
    }

    #[test]
    fn error_takes_precedence_over_result() {
        let result = deleted(r#"{"result":null,"error":{"code":-32001,"message":"gone"}}"#);
        let Err(Error::Protocol(error)) = result else { panic!("{result:?}") };
        assert_eq!((error.kind, error.message.as_str()), (ErrorKind::TaskNotFound, "gone"));
    }

    #[test]
    fn invalid_response_names_its_field() {
        let cases = [
            ("", "", "expected JSON"),
            ("<html>", "", "expected JSON"),
            ("[]", "", "expected an object"),
            ("{}", "result", "required, expected a result or an error"),
            (r#"{"error":{}}"#, "error.code", "required, expected an integer"),
        ];
        for (body, field, problem) in cases {
            let result = deleted(body);
            let Err(Error::Malformed(violation)) = result else { panic!("{body}: {result:?}") };
            assert_eq!(violation, Violation::new(field, problem), "{body}");
        }
        let task = decode(br#"{"result":{"id":"t"}}"#, Dialect::V1, |node| {
            Dialect::V1.decode_reply(OperationKind::GetTask, node)
        });
        let Err(Error::Malformed(violation)) = task else { panic!("{task:?}") };
        assert_eq!(violation.field, "result.status");
    }
}
