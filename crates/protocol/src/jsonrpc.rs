//! The JSON-RPC 2.0 envelope of requests and responses.
//!
//! Decoding yields an id, a method name and raw parameters; encoding adds the envelope to a result or an
//! error. Mapping methods to operations is left to the dialect.

use std::borrow::Cow;

use crate::{
    dialect::draft,
    error::{Error, ErrorKind, Violation},
    json::{
        Fault, Raw,
        read::{Node, Object, Path},
        write::Writer,
    },
};

/// A request envelope. Borrows from the body.
#[derive(Debug)]
pub struct Request<'a> {
    /// Echoed in the response.
    pub id: Id,
    /// The method name as sent.
    pub method: Cow<'a, str>,
    /// The parameters; `None` means an empty object.
    pub params: Option<Raw<'a>>,
    /// Whether the `jsonrpc` member is present. Only requests of the draft may omit it.
    pub versioned: bool,
}

/// Maximum length of an id in bytes: every response repeats it.
const MAX_BYTES: usize = 1_024;

/// The id of a request: the JSON text of a string, an integer of any size, or null.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Id(Box<str>);

impl Id {
    /// The id of a response to a request whose id could not be read.
    pub fn null() -> Self {
        Self("null".into())
    }

    /// The id as JSON text.
    pub fn as_json(&self) -> &str {
        &self.0
    }

    /// Accepts strings, integers and null; the error is what is expected.
    pub fn read(raw: Raw<'_>) -> Result<Self, String> {
        let text = raw.get();
        if text.len() > MAX_BYTES {
            return Err(format!("expected at most {MAX_BYTES} bytes"));
        }
        let integer = text.strip_prefix('-').unwrap_or(text).bytes().all(|byte| byte.is_ascii_digit());
        // Decoding validates the string: a lone surrogate passes the lexer but is not a valid string.
        let string = text.starts_with('"') && Node::new(raw, &Path::Root).string().is_ok();
        if integer || string || text == "null" {
            Ok(Self(text.into()))
        } else {
            Err("expected a string, an integer or null".into())
        }
    }
}

/// A request that could not be decoded: the error, and the id of the response.
#[derive(Debug)]
pub struct Refusal {
    /// The request's id if it could be read, else null.
    pub id: Id,
    /// The error to respond with.
    pub error: Error,
}

/// Decodes the envelope of one request.
pub fn decode(body: &[u8]) -> Result<Request<'_>, Refusal> {
    let anonymous = |error| Refusal { id: Id::null(), error };
    let raw = Raw::parse(body).map_err(|fault| anonymous(not_json(fault)))?;
    let root = Node::new(raw, &Path::Root).bounded();
    if raw.get().starts_with('[') {
        let violation =
            root.expected("one request object; batches are not served, send each request by itself");
        return Err(anonymous(Error::invalid_request(violation)));
    }
    let object = root.object().map_err(|violation| anonymous(Error::invalid_request(violation)))?;
    let id = match object.present("id") {
        None => Id::null(),
        Some(raw) => Id::read(raw)
            .map_err(|problem| anonymous(Error::invalid_request(Violation::new("id", problem))))?,
    };
    match read_call(&object, id.clone()) {
        Ok(request) => Ok(request),
        Err(violation) => Err(Refusal { id, error: Error::invalid_request(violation) }),
    }
}

fn read_call<'a>(object: &Object<'a, '_>, id: Id) -> Result<Request<'a>, Violation> {
    if let Some(name) = object.repeated() {
        let problem =
            if name.is_empty() { "the empty name stands twice" } else { "expected once, stands twice" };
        return Err(Violation::new(name, problem));
    }
    let versioned = object.present("jsonrpc").is_some();
    if versioned || !is_draft(object) {
        read_version(object)?;
    }
    let method = object.need("method", "a method name", |node| node.short_string())?;
    let params = object.present("params").filter(|raw| !raw.is_null());
    Ok(Request { id, method, params, versioned })
}

/// Checks the member `jsonrpc`.
pub fn read_version(object: &Object<'_, '_>) -> Result<(), Violation> {
    object.need("jsonrpc", "\"2.0\"", |node| match node.token()?.as_ref() {
        "2.0" => Ok(()),
        _ => Err(node.expected("\"2.0\"")),
    })
}

/// Whether the method belongs to the draft, whose published samples omit `jsonrpc`.
fn is_draft(object: &Object<'_, '_>) -> bool {
    let method = object.maybe("method", |node| node.token()).ok().flatten();
    method.is_some_and(|method| draft::operation::has(&method))
}

fn not_json(fault: Fault) -> Error {
    let text = format!("the body is not JSON: {fault}: expected one JSON-RPC request object");
    Error::new(ErrorKind::Parse, text)
}

/// The bytes of a response before its result; [`RESULT_END`] closes it.
///
/// A stream writes this once per frame around an event that was encoded once for all subscribers.
pub fn result_start(id: &Id) -> Vec<u8> {
    format!(r#"{{"jsonrpc":"2.0","id":{},"result":"#, id.as_json()).into_bytes()
}

/// Closes a response opened by [`result_start`].
pub const RESULT_END: &[u8] = b"}";

/// A response with the result written by `result`.
pub fn encode_result(id: &Id, result: impl FnOnce(&mut Writer)) -> Vec<u8> {
    encode(id, "result", result)
}

/// A response with the error object written by `error`.
pub fn encode_error(id: &Id, error: impl FnOnce(&mut Writer)) -> Vec<u8> {
    encode(id, "error", error)
}

fn encode(id: &Id, member: &str, value: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.object(|writer| {
        writer.text("jsonrpc", "2.0");
        writer.key("id").raw(id.as_json());
        value(writer.key(member));
    });
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_echoed_with_their_type_and_text() {
        for id in ["1", "\"1\"", "null", "-7", "123456789012345678901234567890", "\"a\\u00e9\""] {
            let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#);
            assert_eq!(decode(body.as_bytes()).unwrap().id.as_json(), id);
        }
        for id in ["1.5", "true", "{}", "[1]", "1e3", "\"\\ud800\""] {
            let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#);
            let refusal = decode(body.as_bytes()).unwrap_err();
            assert_eq!((refusal.id, refusal.error.kind), (Id::null(), ErrorKind::InvalidRequest), "{id}");
        }
    }

    #[test]
    fn draft_requests_may_omit_the_jsonrpc_member() {
        let draft =
            ["tasks/send", "tasks/sendSubscribe", "tasks/pushNotification/set", "tasks/get", "tasks/cancel"];
        for method in draft {
            let request = |version: &str| format!(r#"{{{version}"id":1,"method":"{method}"}}"#);
            assert!(!decode(request("").as_bytes()).unwrap().versioned, "{method}");
            assert!(decode(request(r#""jsonrpc":"2.0","#).as_bytes()).unwrap().versioned, "{method}");
            for wrong in [r#""jsonrpc":"1.0","#, r#""jsonrpc":2.0,"#, r#""jsonrpc":null,"#] {
                let refusal = decode(request(wrong).as_bytes()).unwrap_err();
                assert_eq!((refusal.id.as_json(), refusal.error.kind), ("1", ErrorKind::InvalidRequest));
            }
        }
        for method in ["message/send", "tasks/list", "tasks/pushNotificationConfig/set", "SendMessage", "x"] {
            let body = format!(r#"{{"id":1,"method":"{method}"}}"#);
            let error = decode(body.as_bytes()).unwrap_err().error;
            assert_eq!((error.kind, &error.violations[0].field[..]), (ErrorKind::InvalidRequest, "jsonrpc"));
        }
    }

    #[test]
    fn each_broken_envelope_has_its_own_error() {
        let cases: [(&str, ErrorKind, &str); 9] = [
            ("", ErrorKind::Parse, ""),
            ("{\"jsonrpc\":", ErrorKind::Parse, ""),
            ("\u{1}", ErrorKind::Parse, ""),
            ("[]", ErrorKind::InvalidRequest, ""),
            ("5", ErrorKind::InvalidRequest, ""),
            (r#"{"method":"m"}"#, ErrorKind::InvalidRequest, "jsonrpc"),
            (r#"{"jsonrpc":"1.0","method":"m"}"#, ErrorKind::InvalidRequest, "jsonrpc"),
            (r#"{"jsonrpc":"2.0"}"#, ErrorKind::InvalidRequest, "method"),
            (r#"{"jsonrpc":"2.0","method":"m","method":"n"}"#, ErrorKind::InvalidRequest, "method"),
        ];
        for (body, kind, field) in cases {
            let error = decode(body.as_bytes()).unwrap_err().error;
            assert_eq!(error.kind, kind, "{body}");
            assert_eq!(
                error.violations.first().map_or("", |violation| violation.field.as_str()),
                field,
                "{body}"
            );
        }
        assert_eq!(decode(&[0xff, 0xfe]).unwrap_err().error.kind, ErrorKind::Parse);
    }
}
