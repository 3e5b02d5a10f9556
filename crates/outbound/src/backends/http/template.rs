//! Makes a request from a template and the arguments (pure).
//!
//! `{name}` in the path is the argument as one percent-encoded segment, in a query a percent-encoded value, in a header
//! its text. A path needs all its arguments, and none of them may be empty or make a segment `.` or `..`; a query
//! parameter or header that consists of one absent argument is left out. Whatever the arguments are, the request goes
//! to the configured scheme, host and port, has the configured segments, and is one request.
//!
//! Arguments that no template uses are the JSON body of POST, PUT and PATCH, and query parameters of the other methods.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Uri, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use protocol::Json;
use url::{Position, Url};

use super::{
    HttpConfig,
    argument::Arguments,
    text::{Piece, Text},
};

/// Everything but the unreserved characters of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Headers that the connection or the dialler sets, and those with facts about the call.
const OWN_HEADERS: [&str; 16] = [
    "a2ad-attempt",
    "a2ad-context",
    "a2ad-skill",
    "a2ad-task",
    "connection",
    "content-length",
    "expect",
    "host",
    "idempotency-key",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A request with arguments in it.
pub struct Template {
    method: Method,
    /// Scheme, host and port.
    origin: String,
    path: Text,
    query: Vec<Parameter>,
    headers: Vec<(HeaderName, Text)>,
}

/// A query parameter; everything but the arguments is encoded.
struct Parameter {
    /// Name and `=`, or the whole parameter if it has no value.
    start: String,
    value: Text,
}

impl Template {
    /// Parses a template.
    ///
    /// # Errors
    ///
    /// Names the key and what is wrong with it.
    pub fn new(config: &HttpConfig) -> Result<Self, String> {
        let (origin, path, query) = parse_url(&config.url).map_err(|problem| format!("url: {problem}"))?;
        let mut template = Self { method: method(&config.method)?, origin, path, query, headers: Vec::new() };
        for (name, text) in &config.query {
            let value = Text::parse(text).map_err(|problem| format!("query.{name}: {problem}"))?;
            template
                .query
                .push(Parameter { start: format!("{}=", encode(name)), value: value.map_literals(encode) });
        }
        for (name, text) in &config.headers {
            let in_header = |problem| format!("headers.{name}: {problem}");
            let header = header_name(name).map_err(in_header)?;
            if template.has_header(&header) {
                return Err(in_header("it is there twice".into()));
            }
            let value = Text::parse(text).map_err(in_header)?;
            let literal =
                |piece: &Piece| matches!(piece, Piece::Literal(text) if header_value(text).is_none());
            if value.pieces().iter().any(literal) {
                return Err(in_header("a header must not contain control characters".into()));
            }
            template.headers.push((header, value));
        }
        Ok(template)
    }

    /// Scheme, host and port of every request.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Whether the template sets this header.
    pub fn has_header(&self, name: &HeaderName) -> bool {
        self.headers.iter().any(|(known, _)| known == name)
    }

    fn has_body(&self) -> bool {
        matches!(self.method, Method::POST | Method::PUT | Method::PATCH)
    }

    fn uses(&self, argument: &str) -> bool {
        let values = self.query.iter().map(|parameter| &parameter.value);
        let mut texts = values.chain(self.headers.iter().map(|(_, text)| text)).chain([&self.path]);
        texts.any(|text| text.arguments().any(|name| name == argument))
    }
}

/// The request for these arguments.
///
/// # Errors
///
/// Names the argument and what is wrong with it.
pub fn build(template: &Template, arguments: &Json) -> Result<Request<Bytes>, String> {
    let arguments = Arguments::of(arguments);
    let path = path(&template.path, &arguments)?;
    let query = query(template, &arguments)?;
    let uri = format!("{}{path}{query}", template.origin);
    let uri = Uri::try_from(uri).map_err(|_| "arguments: they do not fit into a URL")?;
    let mut request = Request::new(Bytes::new());
    *request.method_mut() = template.method.clone();
    *request.uri_mut() = uri;
    if template.has_body() {
        request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        *request.body_mut() = arguments.document(|name| template.uses(name)).into();
    }
    for (name, text) in &template.headers {
        if let Some(value) = header(name, text, &arguments)? {
            request.headers_mut().insert(name, value);
        }
    }
    Ok(request)
}

/// A header name that a configuration may use.
pub(super) fn header_name(name: &str) -> Result<HeaderName, String> {
    let name = HeaderName::try_from(name).map_err(|_| "not a valid header name")?;
    if OWN_HEADERS.contains(&name.as_str()) {
        return Err("this header is set by the server and cannot be configured".into());
    }
    Ok(name)
}

fn method(name: &str) -> Result<Method, String> {
    let known = [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
        Method::OPTIONS,
    ];
    let found = known.iter().find(|method| method.as_str() == name);
    let names = known.iter().map(Method::as_str).collect::<Vec<_>>().join(", ");
    found.cloned().ok_or_else(|| format!("method: expected one of {names}, found {name:?}"))
}

/// Origin, path and query of a URL template.
fn parse_url(url: &str) -> Result<(String, Text, Vec<Parameter>), String> {
    let (scheme, rest) = url.split_once("://").ok_or("expected an absolute URL such as https://host/path")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, target) = rest.split_at(end);
    if authority.contains(['{', '}']) || scheme.contains(['{', '}']) {
        return Err("an argument cannot be in the scheme, host or port".into());
    }
    let origin = origin(&format!("{scheme}://{authority}/"))?;
    if target.contains('#') {
        return Err("a fragment is never sent, remove the #".into());
    }
    if !target.chars().all(|c| c.is_ascii_graphic() && !"\"<>\\^`|".contains(c)) || has_stray_percent(target)
    {
        return Err("percent-encode what is not allowed in a URL".into());
    }
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let path = Text::parse(if path.is_empty() { "/" } else { path })?;
    let example = path.expand(|_| Ok("x".into()))?;
    if has_dot_segment(&example) {
        return Err("the path has a segment . or ..".into());
    }
    let query = query.map(|query| query.split('&').map(parameter).collect()).transpose()?;
    Ok((origin, path, query.unwrap_or_default()))
}

fn origin(url: &str) -> Result<String, String> {
    let url = Url::parse(url).map_err(|problem| problem.to_string())?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("the scheme must be http or https".into());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("credentials are not allowed in a URL, use bearer_env or headers_env".into());
    }
    Ok(url[..Position::BeforePath].to_owned())
}

fn parameter(text: &str) -> Result<Parameter, String> {
    let end = text.find('=').map_or(text.len(), |at| at + 1);
    let (start, value) = text.split_at(end);
    if start.contains(['{', '}']) {
        return Err("an argument cannot be the name of a query parameter".into());
    }
    Ok(Parameter { start: start.to_owned(), value: Text::parse(value)? })
}

fn path(text: &Text, arguments: &Arguments<'_>) -> Result<String, String> {
    let path = text.expand(|name| {
        let value = arguments.scalar(name)?.unwrap_or_default();
        if value.is_empty() {
            return Err(format!("arguments.{name}: it is part of a path and must not be empty"));
        }
        Ok(encode(&value))
    })?;
    if has_dot_segment(&path) {
        let names: Vec<_> = text.arguments().map(|name| format!("arguments.{name}")).collect();
        return Err(format!("{}: a path must not have a segment . or ..", names.join(", ")));
    }
    Ok(path)
}

fn query(template: &Template, arguments: &Arguments<'_>) -> Result<String, String> {
    let mut parameters = Vec::new();
    for Parameter { start, value } in &template.query {
        if let Some(name) = value.only_argument()
            && arguments.any(name)?.is_none()
        {
            continue;
        }
        let value = value.expand(|name| Ok(encode(&arguments.any(name)?.ok_or_else(|| missing(name))?)))?;
        parameters.push(format!("{start}{value}"));
    }
    if !template.has_body() {
        for (name, _) in arguments.unused(|name| template.uses(name))? {
            if let Some(value) = arguments.any(name)? {
                parameters.push(format!("{}={}", encode(name), encode(&value)));
            }
        }
    }
    let query = parameters.join("&");
    Ok(if query.is_empty() { query } else { format!("?{query}") })
}

fn header(
    header: &HeaderName,
    text: &Text,
    arguments: &Arguments<'_>,
) -> Result<Option<HeaderValue>, String> {
    if let Some(name) = text.only_argument()
        && arguments.scalar(name)?.is_none()
    {
        return Ok(None);
    }
    let value = text.expand(|name| Ok(arguments.scalar(name)?.ok_or_else(|| missing(name))?.into_owned()))?;
    let names = || text.arguments().map(|name| format!("arguments.{name}")).collect::<Vec<_>>().join(", ");
    let problem = || format!("{}: the header {header} must not contain control characters", names());
    header_value(&value).map(Some).ok_or_else(problem)
}

fn missing(name: &str) -> String {
    format!("arguments.{name}: it is required")
}

/// A text as a header value, as UTF-8; `None` if it has control characters.
fn header_value(text: &str) -> Option<HeaderValue> {
    let allowed = !text.chars().any(char::is_control);
    allowed.then(|| HeaderValue::from_bytes(text.as_bytes()).ok())?
}

fn encode(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// Whether a path changes its parent when it is resolved, also by a server that decodes `%2F`, takes `\` for `/`, or
/// ends a segment at `;`.
fn has_dot_segment(path: &str) -> bool {
    let decoded = percent_decode_str(path).decode_utf8_lossy();
    let mut segments =
        decoded.split(['/', '\\']).map(|segment| segment.split(';').next().unwrap_or_default());
    segments.any(|segment| matches!(segment, "." | ".."))
}

/// Whether a `%` is not followed by two hexadecimal digits.
fn has_stray_percent(text: &str) -> bool {
    let follows = |rest: &str| rest.len() >= 2 && rest.as_bytes()[..2].iter().all(u8::is_ascii_hexdigit);
    text.split('%').skip(1).any(|rest| !follows(rest))
}

#[cfg(test)]
mod tests;
