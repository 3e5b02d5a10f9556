//! What is read of a message before the library gets it: whether it is a message of MCP, its id and its method. Pure.
//!
//! The library refuses what it cannot read with a plain text, and on standard input and output without a word. Clients
//! get an error of JSON-RPC with the reason instead, which this module finds.

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use protocol::{
    Error, ErrorKind, Json, Violation,
    error::excerpt,
    json::{
        Raw,
        read::{Node, Object, Path, Read},
    },
    jsonrpc::{Id, Refusal, read_version},
};

use crate::bindings::rest;

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// The methods of MCP that this server has, and whether their handlers need the exchange. Other names are the caller's
/// own text and not logged.
const METHODS: [(&str, MethodHandler); 13] = [
    ("initialize", MethodHandler::Library),
    ("server/discover", MethodHandler::Library),
    ("ping", MethodHandler::Library),
    (LISTEN, MethodHandler::Library),
    ("notifications/initialized", MethodHandler::Library),
    ("notifications/cancelled", MethodHandler::Library),
    ("notifications/progress", MethodHandler::Library),
    ("notifications/roots/list_changed", MethodHandler::Library),
    ("tools/list", MethodHandler::Exchange),
    (CALL, MethodHandler::Exchange),
    ("resources/list", MethodHandler::Exchange),
    ("resources/templates/list", MethodHandler::Library),
    ("resources/read", MethodHandler::Exchange),
];

const CALL: &str = "tools/call";
/// Opens a stream that waits for notices.
pub(super) const LISTEN: &str = "subscriptions/listen";

/// Who handles a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MethodHandler {
    /// The library alone.
    Library,
    /// A handler of ours, with the exchange of the request.
    Exchange,
}

/// What is known of a message.
#[derive(Debug)]
pub(super) struct Head {
    /// `None` for a notification.
    pub(super) id: Option<Id>,
    /// A name that this server defines.
    pub(super) method: &'static str,
    pub(super) handling: MethodHandler,
}

impl Head {
    /// A request that has no message.
    pub(super) fn without_message(method: &'static str) -> Self {
        Self { id: None, method, handling: MethodHandler::Library }
    }

    /// The id for a response.
    pub(super) fn response_id(&self) -> Id {
        self.id.clone().unwrap_or_else(Id::null)
    }
}

/// Reads the head of a message, or finds why the text is none.
pub(super) fn read(text: &[u8]) -> Result<Head, Refusal> {
    let anonymous = |error| Refusal { id: Id::null(), error };
    let document = Raw::parse(text).map_err(|fault| {
        anonymous(Error::new(ErrorKind::Parse, format!("the message is not JSON: {fault}")))
    })?;
    let root = Node::new(document, &Path::Root).bounded();
    if document.get().starts_with('[') {
        let violation = root.expected("one message; batches are not served, send each message by itself");
        return Err(anonymous(Error::invalid_request(violation)));
    }
    let object = root.object().map_err(|violation| anonymous(Error::invalid_request(violation)))?;
    let id = match object.present("id") {
        None => None,
        Some(raw) => Some(
            Id::read(raw)
                .map_err(|problem| anonymous(Error::invalid_request(Violation::new("id", problem))))?,
        ),
    };
    let refused = |error| Refusal { id: id.clone().unwrap_or_else(Id::null), error };
    // The library makes a tree of the whole message, which takes far more memory than its text.
    Json::from_raw(document).map_err(|problem| {
        refused(Error::new(
            ErrorKind::InvalidRequest,
            format!("the message is too large: expected {problem}"),
        ))
    })?;
    let (method, handling) =
        read_members(&object, id.as_ref()).map_err(|violation| refused(Error::invalid_request(violation)))?;
    if method == CALL {
        check_call(&object).map_err(|violation| refused(Error::invalid_params(violation)))?;
    }
    Ok(Head { id, method, handling })
}

fn read_members(object: &Object<'_, '_>, id: Option<&Id>) -> Read<(&'static str, MethodHandler)> {
    check_names(object)?;
    read_version(object)?;
    let is_response = ["result", "error"].into_iter().any(|name| object.present(name).is_some());
    if is_response && object.present("method").is_none() {
        return Ok(("response", MethodHandler::Library));
    }
    let method = object.need("method", "a method name", |node| node.short_string())?;
    if id.is_some_and(|id| *id == Id::null()) {
        return Err(Violation::new("id", "expected a string or an integer, or no id in a notification"));
    }
    object.maybe("params", |params| check_names(&params.object()?))?;
    let known = METHODS.into_iter().find(|(known, _)| *known == method);
    Ok(known.unwrap_or(("unknown", MethodHandler::Library)))
}

/// Rejects names that stand twice: the library and the reader of the arguments could take different ones.
fn check_names(object: &Object<'_, '_>) -> Read<()> {
    match object.repeated() {
        Some(name) => Err(Violation::new(name, "expected once, stands twice")),
        None => Ok(()),
    }
}

/// The library takes a call that it cannot read for an unknown method.
fn check_call(object: &Object<'_, '_>) -> Read<()> {
    object.need("params", "an object with the name of a tool", |params| {
        let params = params.object()?;
        params.need_text("name")?;
        params.maybe("arguments", |arguments| arguments.object().map(drop)).map(drop)
    })
}

/// Checks which forms of a message a request has and accepts.
pub(super) fn check_headers(method: &Method, headers: &HeaderMap) -> Result<(), (StatusCode, Error)> {
    if method == Method::POST {
        check_content_type(headers)?;
    }
    let wanted: &[&str] = match *method {
        Method::POST => &[JSON, EVENTS],
        Method::GET => &[EVENTS],
        _ => &[],
    };
    match wanted.iter().find(|media_type| !accepts(headers, media_type)) {
        None => Ok(()),
        Some(missing) => {
            let text = format!("Accept does not have {missing}; send \"Accept: {}\"", wanted.join(", "));
            Err((StatusCode::NOT_ACCEPTABLE, Error::new(ErrorKind::InvalidRequest, text)))
        }
    }
}

/// The headers that the library compares as texts, after [`check_headers`].
pub(super) fn normalize_headers(headers: &mut HeaderMap) {
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
}

fn check_content_type(headers: &HeaderMap) -> Result<(), (StatusCode, Error)> {
    let shown = match headers.get(header::CONTENT_TYPE) {
        None => "Content-Type is missing".to_owned(),
        Some(value) => {
            let value = String::from_utf8_lossy(value.as_bytes());
            let essence = value.split(';').next().unwrap_or_default().trim();
            if essence.eq_ignore_ascii_case(JSON) {
                return Ok(());
            }
            format!("Content-Type {:?} is not supported", excerpt(essence))
        }
    };
    let error = Error::new(ErrorKind::UnsupportedMediaType, format!("{shown}; send {JSON}"));
    Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, error))
}

/// Whether a client accepts a media type. One that names none accepts all.
fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
    let kind = media_type.split('/').next().unwrap_or_default();
    // The most specific range decides.
    let quality = |wanted: &str| {
        rest::media_ranges(headers, &header::ACCEPT)
            .find_map(|(range, quality)| range.eq_ignore_ascii_case(wanted).then_some(quality))
    };
    let quality = quality(media_type).or_else(|| quality(&format!("{kind}/*"))).or_else(|| quality("*/*"));
    !headers.contains_key(header::ACCEPT) || quality.is_some_and(|quality| quality > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_each_kind_are_read() {
        for (text, method, id) in [
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "ping", Some("1")),
            (r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, "notifications/initialized", None),
            (r#"{"jsonrpc":"2.0","id":"x","result":{}}"#, "response", Some("\"x\"")),
            (r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}"#, "response", Some("null")),
            (r#"{"jsonrpc":"2.0","id":1,"method":"mine","params":null}"#, "unknown", Some("1")),
        ] {
            let head = read(text.as_bytes()).unwrap();
            assert_eq!((head.method, head.id.as_ref().map(Id::as_json)), (method, id), "{text}");
        }
    }
}
