//! The request of a call. Pure.
//!
//! Nothing in the arguments changes the method, the origin, the base path or the number of segments of the path, and no
//! argument replaces a credential, a header that this program sets, or another parameter.

use std::{collections::BTreeMap, fmt};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Uri, header};
use percent_encoding::percent_decode_str;
use protocol::{Json, Part};
use serde_json::value::RawValue;

use super::{
    operation::{Operation, Plan, SentParameter},
    parameter::{BODY, Format, Location},
    serialize::{Pair, Style, in_header, in_path, pairs},
};
use crate::backends::http::{
    CallFacts, USER_AGENT,
    encode::{encode, is_same_parameter},
};

const ACCEPT: HeaderValue =
    HeaderValue::from_static("application/json, text/event-stream, application/x-ndjson, */*;q=0.8");

/// Maximum length of a URL, in bytes.
const MAX_URL: usize = 16 * 1024;

/// An argument that cannot be sent, although the schema allows it. The text is for the client.
#[derive(Debug)]
pub struct InvalidArgument {
    /// `None`: all arguments together.
    name: Option<String>,
    problem: String,
}

impl InvalidArgument {
    pub(super) fn new(name: &str, problem: impl Into<String>) -> Self {
        Self { name: Some(name.to_owned()), problem: problem.into() }
    }

    fn all(problem: impl Into<String>) -> Self {
        Self { name: None, problem: problem.into() }
    }
}

impl fmt::Display for InvalidArgument {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(out, "arguments.{name}: {}", self.problem),
            None => write!(out, "arguments: {}", self.problem),
        }
    }
}

impl std::error::Error for InvalidArgument {}

impl Operation {
    /// The request of a call with these arguments.
    ///
    /// # Errors
    ///
    /// An argument cannot be sent.
    pub fn request(&self, arguments: &Json, call: &CallFacts<'_>) -> Result<Request<Bytes>, InvalidArgument> {
        self.plan.request(arguments, &[], call)
    }
}

/// The arguments by name. Of members with the same name, the last: the schema check reads the same.
type Arguments<'a> = BTreeMap<String, &'a RawValue>;

impl Plan {
    /// `sent` are the parts of the message of the call, whose files keep their names and media types.
    pub(super) fn request(
        &self,
        arguments: &Json,
        sent: &[Part],
        call: &CallFacts<'_>,
    ) -> Result<Request<Bytes>, InvalidArgument> {
        let arguments: Arguments<'_> = serde_json::from_str(arguments.as_str())
            .map_err(|_| InvalidArgument::all("expected one JSON object"))?;
        if let Some(missing) = self.missing(&arguments) {
            return Err(InvalidArgument::new(missing, "is required"));
        }
        let mut request = Request::new(Bytes::new());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri(&arguments)?;
        *request.headers_mut() = self.headers(&arguments)?;
        if let (Some((format, _)), Some(argument)) = (&self.body, arguments.get(BODY)) {
            let body = format.write(argument, sent).map_err(|problem| InvalidArgument::new(BODY, problem))?;
            request.headers_mut().insert(header::CONTENT_TYPE, body.media_type);
            *request.body_mut() = body.bytes;
        }
        self.credentials.insert_into(request.headers_mut());
        call.insert_into(request.headers_mut());
        Ok(request)
    }

    fn missing(&self, arguments: &Arguments<'_>) -> Option<&str> {
        let parameters = self
            .parameters
            .iter()
            .filter(|parameter| parameter.required)
            .map(|parameter| parameter.argument.as_str());
        let body = self.body.as_ref().filter(|(_, required)| *required).map(|_| BODY);
        parameters.chain(body).find(|name| !arguments.contains_key(*name))
    }

    fn uri(&self, arguments: &Arguments<'_>) -> Result<Uri, InvalidArgument> {
        let path = self.path.render(|name| self.path_value(name, arguments))?;
        let query = self.pairs(arguments, &Location::Query)?;
        let query =
            query.iter().chain(&self.credentials.query).map(|(name, value)| format!("{name}={value}"));
        let query = query.collect::<Vec<_>>().join("&");
        let separator = if query.is_empty() { "" } else { "?" };
        let url = format!("{}{path}{separator}{query}", self.server.as_str());
        if url.len() > MAX_URL {
            return Err(InvalidArgument::all(format!("the URL of the request exceeds {MAX_URL} bytes")));
        }
        url.parse().map_err(|_| InvalidArgument::all("they do not make a valid URL"))
    }

    fn path_value(&self, name: &str, arguments: &Arguments<'_>) -> Result<String, InvalidArgument> {
        let parameter = self
            .parameters
            .iter()
            .find(|parameter| parameter.location == Location::Path && parameter.name == name)
            .ok_or_else(|| InvalidArgument::new(name, "is not described"))?;
        let argument = arguments
            .get(&parameter.argument)
            .ok_or_else(|| InvalidArgument::new(&parameter.argument, "is required"))?;
        let written = match parameter.format {
            Format::Json => Ok(encode(argument.get())),
            Format::Styled(style, explode) => in_path(name, style, explode, argument),
        };
        written.map_err(|problem| InvalidArgument::new(&parameter.argument, problem))
    }

    /// The parameters of the query or of the cookies.
    fn pairs(&self, arguments: &Arguments<'_>, location: &Location) -> Result<Vec<Pair>, InvalidArgument> {
        let mut all = Vec::new();
        for (parameter, argument) in self.given(arguments, |known| known == location) {
            let invalid = |problem: String| InvalidArgument::new(&parameter.argument, problem);
            let written = match parameter.format {
                Format::Json => Ok(vec![(encode(&parameter.name), encode(argument.get()))]),
                Format::Styled(style, explode) => pairs(&parameter.name, style, explode, argument),
            };
            let written = written.map_err(invalid)?;
            if let Some(name) = written.iter().find_map(|(name, _)| self.conflict(parameter, name)) {
                return Err(invalid(format!(
                    "must not have the member {name:?}, which is another parameter"
                )));
            }
            all.extend(written);
        }
        Ok(all)
    }

    /// The name, if it belongs to a credential or to another parameter: the members of an exploded object are names of
    /// their own, which the client chooses.
    fn conflict(&self, sender: &SentParameter, encoded: &str) -> Option<String> {
        if sender.format != Format::Styled(Style::Form, true) {
            return None;
        }
        let name = percent_decode_str(encoded).decode_utf8_lossy().into_owned();
        let others = self.parameters.iter().filter(|other| !std::ptr::eq(*other, sender));
        let others = others.filter(|other| other.location == sender.location).map(|other| &other.name);
        let taken = name != sender.name
            && (others.into_iter().any(|other| is_same_parameter(other, &name))
                || self.credentials.has(&sender.location, &name));
        taken.then_some(name)
    }

    fn headers(&self, arguments: &Arguments<'_>) -> Result<HeaderMap, InvalidArgument> {
        let mut headers = HeaderMap::new();
        for (parameter, argument) in self.given(arguments, |known| matches!(known, Location::Header(_))) {
            let Location::Header(name) = &parameter.location else { continue };
            let invalid = |problem: String| InvalidArgument::new(&parameter.argument, problem);
            let written = match parameter.format {
                Format::Json => Ok(argument.get().to_owned()),
                Format::Styled(_, explode) => in_header(argument, explode),
            };
            let value = HeaderValue::from_str(&written.map_err(invalid)?)
                .map_err(|_| invalid("must be printable ASCII, because it is sent in a header".into()))?;
            headers.insert(name.clone(), value);
        }
        headers.insert(header::ACCEPT, ACCEPT);
        headers.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
        let cookies = self.pairs(arguments, &Location::Cookie)?;
        if !cookies.is_empty() {
            let cookies = cookies.iter().map(|(name, value)| format!("{name}={value}"));
            let value = HeaderValue::try_from(cookies.collect::<Vec<_>>().join("; "));
            headers.insert(header::COOKIE, value.expect("encoded pairs are printable ASCII"));
        }
        Ok(headers)
    }

    /// The parameters in a location that have an argument. An optional one may be null, which is not sent.
    fn given<'p, 'a>(
        &'p self,
        arguments: &'p Arguments<'a>,
        location: impl Fn(&Location) -> bool,
    ) -> impl Iterator<Item = (&'p SentParameter, &'a RawValue)> {
        let parameters = self.parameters.iter().filter(move |parameter| location(&parameter.location));
        parameters.filter_map(|parameter| {
            let argument = *arguments.get(&parameter.argument)?;
            (parameter.required || argument.get() != "null").then_some((parameter, argument))
        })
    }
}
