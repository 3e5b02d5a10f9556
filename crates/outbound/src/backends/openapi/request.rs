//! The request of a call. Pure.
//!
//! Nothing in the arguments changes the method, the origin, the base path or the number of segments of the path, and no
//! argument replaces a credential, a header that this program sets, or another parameter.

use std::{collections::BTreeMap, fmt};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Uri, header};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use protocol::Json;
use serde_json::value::RawValue;

use super::{
    operation::{Operation, Plan, SentParameter},
    parameter::{BODY, Format, Location},
    path::encode,
    serialize::{Pair, Style, pairs, simple},
};

/// Maximum length of a URL.
const MAX_URL: usize = 16 * 1024;

/// An argument that cannot be sent, although the schema allows it. The text is for the client.
#[derive(Debug)]
pub struct InvalidArgument {
    name: String,
    problem: String,
}

impl InvalidArgument {
    pub(super) fn new(name: &str, problem: impl Into<String>) -> Self {
        Self { name: name.to_owned(), problem: problem.into() }
    }
}

impl fmt::Display for InvalidArgument {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "arguments.{}: {}", self.name, self.problem)
    }
}

impl std::error::Error for InvalidArgument {}

/// What each request has in its headers about the call.
#[derive(Clone, Copy, Debug)]
pub struct CallHeaders<'a> {
    /// `Idempotency-Key`.
    pub idempotency_key: &'a str,
    /// `A2AD-Attempt`.
    pub attempt: u32,
    /// `A2AD-Task`.
    pub task: &'a str,
    /// `A2AD-Context`.
    pub context: &'a str,
    /// `A2AD-Skill`.
    pub skill: &'a str,
}

impl Operation {
    /// The request of a call with these arguments.
    ///
    /// # Errors
    ///
    /// An argument cannot be sent.
    pub fn request(
        &self,
        arguments: &Json,
        call: &CallHeaders<'_>,
    ) -> Result<Request<Bytes>, InvalidArgument> {
        self.plan.request(arguments, call)
    }
}

/// The arguments by name. Of members with the same name, the last: the schema check reads the same.
type Arguments<'a> = BTreeMap<String, &'a RawValue>;

impl Plan {
    pub(super) fn request(
        &self,
        arguments: &Json,
        call: &CallHeaders<'_>,
    ) -> Result<Request<Bytes>, InvalidArgument> {
        let arguments: Arguments<'_> = serde_json::from_str(arguments.as_str())
            .map_err(|_| InvalidArgument::new("*", "expected one JSON object"))?;
        if let Some(missing) = self.missing(&arguments) {
            return Err(InvalidArgument::new(missing, "is required"));
        }
        let mut request = Request::new(self.body(&arguments)?);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri(&arguments)?;
        *request.headers_mut() = self.headers(&arguments, call)?;
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

    fn body(&self, arguments: &Arguments<'_>) -> Result<Bytes, InvalidArgument> {
        match (&self.body, arguments.get(BODY)) {
            (Some((format, _)), Some(argument)) => {
                format.write(argument).map_err(|problem| InvalidArgument::new(BODY, problem))
            }
            _ => Ok(Bytes::new()),
        }
    }

    fn uri(&self, arguments: &Arguments<'_>) -> Result<Uri, InvalidArgument> {
        let path = self.path.render(|name| self.path_value(name, arguments))?;
        let mut url = format!("{}{path}", self.server.as_str());
        let mut separator = '?';
        for (name, value) in self.query(arguments)? {
            url.push(separator);
            url.push_str(&name);
            url.push('=');
            url.push_str(&value);
            separator = '&';
        }
        let too_long =
            || InvalidArgument::new("*", format!("the URL of the request exceeds {MAX_URL} bytes"));
        if url.len() > MAX_URL {
            return Err(too_long());
        }
        url.parse().map_err(|_| InvalidArgument::new("*", "the arguments do not make a valid URL"))
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
            Format::Styled(_, explode) => simple(argument, explode, encode),
        };
        written.map_err(|problem| InvalidArgument::new(&parameter.argument, problem))
    }

    fn query(&self, arguments: &Arguments<'_>) -> Result<Vec<Pair>, InvalidArgument> {
        let mut query = Vec::new();
        for (parameter, argument) in self.given(arguments, |location| *location == Location::Query) {
            let written = match parameter.format {
                Format::Json => Ok(vec![(encode(&parameter.name), encode(argument.get()))]),
                Format::Styled(style, explode) => pairs(&parameter.name, style, explode, argument),
            };
            let written = written.map_err(|problem| InvalidArgument::new(&parameter.argument, problem))?;
            if let Some((name, _)) = written.iter().find(|(name, _)| self.is_reserved(name, parameter)) {
                let problem = format!("must not have the member {name:?}, which is another parameter");
                return Err(InvalidArgument::new(&parameter.argument, problem));
            }
            query.extend(written);
        }
        query.extend(self.credentials.query.iter().cloned());
        Ok(query)
    }

    /// Whether a name in the query belongs to a credential or to another parameter. The members of an object with the
    /// style `form` are names in the query.
    fn is_reserved(&self, name: &str, sender: &SentParameter) -> bool {
        let is_credential = self.credentials.query.iter().any(|(known, _)| known == name);
        let others = self.parameters.iter().filter(|other| !std::ptr::eq(*other, sender));
        is_credential
            || others.filter(|other| other.location == Location::Query).any(|other| {
                let other_name = encode(&other.name);
                name == other_name
                    || matches!(other.format, Format::Styled(Style::DeepObject, _))
                        && name.strip_prefix(&other_name).is_some_and(|rest| rest.starts_with("%5B"))
            })
    }

    fn headers(
        &self,
        arguments: &Arguments<'_>,
        call: &CallHeaders<'_>,
    ) -> Result<HeaderMap, InvalidArgument> {
        let mut headers = HeaderMap::new();
        for (parameter, argument) in self.given(arguments, |location| matches!(location, Location::Header(_)))
        {
            let Location::Header(name) = &parameter.location else { continue };
            let written = match parameter.format {
                Format::Json => Ok(argument.get().to_owned()),
                Format::Styled(_, explode) => simple(argument, explode, str::to_owned),
            };
            let invalid = |problem: String| InvalidArgument::new(&parameter.argument, problem);
            let text = written.map_err(invalid)?;
            let value = HeaderValue::from_str(&text)
                .map_err(|_| invalid("must be printable ASCII, because it is sent in a header".into()))?;
            headers.insert(name.clone(), value);
        }
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, */*;q=0.8"));
        headers.insert(
            header::USER_AGENT,
            HeaderValue::from_static(concat!("a2ad/", env!("CARGO_PKG_VERSION"))),
        );
        if let Some((format, _)) = &self.body
            && arguments.contains_key(BODY)
        {
            headers.insert(header::CONTENT_TYPE, text_value(format.media_type()));
        }
        insert_call(&mut headers, call);
        for (name, value) in &self.credentials.headers {
            headers.insert(name.clone(), value.clone());
        }
        Ok(headers)
    }

    /// The parameters in a location that have an argument.
    fn given<'p, 'a>(
        &'p self,
        arguments: &'p Arguments<'a>,
        location: fn(&Location) -> bool,
    ) -> impl Iterator<Item = (&'p SentParameter, &'a RawValue)> {
        let parameters = self.parameters.iter().filter(move |parameter| location(&parameter.location));
        parameters.filter_map(|parameter| Some((parameter, *arguments.get(&parameter.argument)?)))
    }
}

fn insert_call(headers: &mut HeaderMap, call: &CallHeaders<'_>) {
    for (name, text) in [
        ("idempotency-key", call.idempotency_key),
        ("a2ad-task", call.task),
        ("a2ad-context", call.context),
        ("a2ad-skill", call.skill),
    ] {
        headers.insert(HeaderName::from_static(name), text_value(text));
    }
    headers.insert(HeaderName::from_static("a2ad-attempt"), call.attempt.into());
}

/// Any text as a header value: what a header cannot contain is percent-encoded, and so is the percent sign.
fn text_value(text: &str) -> HeaderValue {
    const ENCODED: &AsciiSet = &CONTROLS.add(b'%');
    let encoded = utf8_percent_encode(text, ENCODED).to_string();
    HeaderValue::from_str(&encoded).expect("what a header cannot contain is encoded")
}
