//! Makes a request from a template and the arguments (pure).
//!
//! `{name}` in the path is the argument as one percent-encoded segment, in a query a percent-encoded value, in a header
//! its text. A path needs all its arguments, and none of them may be empty or make a segment `.` or `..`; a query
//! parameter or header that consists of one absent argument is left out. Whatever the arguments are, the request goes
//! to the configured scheme, host and port, has the configured segments, and is one request.
//!
//! Arguments that no template uses are the JSON body of POST, PUT and PATCH, and query parameters of the other methods;
//! they cannot repeat a query parameter of the configuration.

use std::borrow::Cow;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Uri, header};
use protocol::Json;
use url::{Position, Url};

use super::{
    HttpConfig,
    argument::Arguments,
    encode::{ambiguity, encode, has_stray_percent, is_same_parameter},
    facts::header_name,
    text::{Piece, Text},
};

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

impl Parameter {
    /// The decoded name.
    fn name(&self) -> Cow<'_, str> {
        let decoded = form_urlencoded::parse(self.start.as_bytes()).next();
        decoded.map(|(name, _)| name).unwrap_or_default()
    }
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
        has_body(self.method.as_str())
    }

    fn uses(&self, argument: &str) -> bool {
        let values = self.query.iter().map(|parameter| &parameter.value);
        let mut texts = values.chain(self.headers.iter().map(|(_, text)| text)).chain([&self.path]);
        texts.any(|text| text.arguments().any(|name| name == argument))
    }
}

/// Whether requests with a method have a body.
pub(super) fn has_body(method: &str) -> bool {
    matches!(method, "POST" | "PUT" | "PATCH")
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
    if let Some(problem) = ambiguity(&example) {
        return Err(problem.into());
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
    match ambiguity(&path) {
        Some(problem) => Err(format!("{}: {problem}", names(text))),
        None => Ok(path),
    }
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
            if template.query.iter().any(|known| is_same_parameter(&known.name(), name)) {
                return Err(format!("arguments.{name}: the configuration sets this query parameter"));
            }
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
    let problem = || format!("{}: the header {header} must not contain control characters", names(text));
    header_value(&value).map(Some).ok_or_else(problem)
}

/// The arguments of a text, for messages.
fn names(text: &Text) -> String {
    text.arguments().map(|name| format!("arguments.{name}")).collect::<Vec<_>>().join(", ")
}

fn missing(name: &str) -> String {
    format!("arguments.{name}: it is required")
}

/// A text as a header value, as UTF-8; `None` if it has control characters.
fn header_value(text: &str) -> Option<HeaderValue> {
    let allowed = !text.chars().any(char::is_control);
    allowed.then(|| HeaderValue::from_bytes(text.as_bytes()).ok())?
}

#[cfg(test)]
mod tests;
