//! HTTP functions: a call is one request to a URL that the operator chose.
//!
//! [`template`] makes the request from the arguments, `send` sends it, `retry` decides whether it is repeated,
//! `answer` turns the response into the reply; operations of OpenAPI documents share all but the template. The body is
//! the bare arguments, or the whole message with them; facts about the call are in the headers `Idempotency-Key`, `A2AD-Attempt`, `A2AD-Task`,
//! `A2AD-Context` and `A2AD-Skill`.

mod answer;
mod argument;
mod decode;
pub(crate) mod encode;
pub(crate) mod facts;
mod retry;
pub(crate) mod send;
pub mod template;
mod text;

use std::{collections::BTreeMap, env, time::Duration};

use bytes::Bytes;
use engine::{AgentResult, metrics::BackendKind};
use futures_util::future::BoxFuture;
use http::{HeaderName, HeaderValue, Request, header};
use protocol::{Json, Part};

pub(crate) use self::answer::Limits;
pub use self::facts::CallFacts;
use self::{
    send::RequestSender,
    template::{Template, build},
};
use crate::{
    backend::{Backend, Call, Reply},
    dial::Dialer,
};

const ACCEPT: &str = "application/json, text/event-stream, application/x-ndjson, text/*, */*";
/// Of all requests of backends.
pub(crate) const USER_AGENT: &str = concat!("a2ad/", env!("CARGO_PKG_VERSION"));

/// What an HTTP function is made of. Texts with `{name}` are templates, see [`template`].
#[derive(Clone, Debug)]
pub struct HttpConfig {
    /// A template. Scheme, host and port are fixed.
    pub url: String,
    /// `GET`, `HEAD`, `POST`, `PUT`, `PATCH`, `DELETE` or `OPTIONS`.
    pub method: String,
    /// Names and templates of query parameters, beside those in the URL.
    pub query: Vec<(String, String)>,
    /// Names and templates of headers.
    pub headers: Vec<(String, String)>,
    /// Headers with the names of the environment variables that have their values.
    pub headers_env: BTreeMap<String, String>,
    /// The environment variable with the bearer token.
    pub bearer_env: Option<String>,
    /// Maximum time until the head of the response, and between two pieces of its body.
    pub timeout: Duration,
    /// Maximum size of the response's body, in bytes.
    pub max_response: usize,
}

impl HttpConfig {
    /// The defaults for a URL.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            method: "POST".into(),
            query: Vec::new(),
            headers: Vec::new(),
            headers_env: BTreeMap::new(),
            bearer_env: None,
            timeout: Duration::from_secs(30),
            max_response: 16 << 20,
        }
    }
}

impl HttpConfig {
    /// Checks that requests have a body, which the whole message is.
    ///
    /// # Errors
    ///
    /// They have none.
    pub fn check_message_input(&self) -> Result<(), String> {
        if template::has_body(&self.method) {
            return Ok(());
        }
        Err(format!(
            "method: {} has no body for the message; use POST, PUT or PATCH with input = \"message\"",
            self.method
        ))
    }
}

/// The backend of an HTTP function.
pub struct HttpFunction {
    /// The configured URL without its query.
    target: String,
    template: Template,
    secrets: Secrets,
    sender: RequestSender,
}

/// Headers with values from the environment. Neither shown nor serialised.
struct Secrets(Vec<(HeaderName, HeaderValue)>);

impl HttpFunction {
    /// Checks the configuration and reads the credentials from the environment.
    ///
    /// # Errors
    ///
    /// Names the key and what is wrong with it.
    pub fn new(config: &HttpConfig, dialer: Dialer) -> Result<Self, String> {
        let template = Template::new(config)?;
        let secrets = Secrets::read(config, |name| env::var(name).ok())?;
        if let Some((name, _)) = secrets.0.iter().find(|(name, _)| template.has_header(name)) {
            return Err(format!("headers.{name}: the same header is also set from the environment"));
        }
        let limits = Limits { wait: config.timeout, max_bytes: config.max_response };
        let target = config.url.split(['?', '#']).next().unwrap_or_default().to_owned();
        Ok(Self { target, template, secrets, sender: RequestSender { dialer, limits } })
    }

    /// The request of a call.
    ///
    /// # Errors
    ///
    /// Names the argument and what is wrong with it.
    pub fn request(&self, arguments: &Json, facts: &CallFacts<'_>) -> Result<Request<Bytes>, String> {
        let mut request = build(&self.template, arguments)?;
        let headers = request.headers_mut();
        headers.entry(header::ACCEPT).or_insert(HeaderValue::from_static(ACCEPT));
        headers.entry(header::USER_AGENT).or_insert(HeaderValue::from_static(USER_AGENT));
        for (name, value) in &self.secrets.0 {
            headers.insert(name, value.clone());
        }
        facts.insert_into(headers);
        Ok(request)
    }
}

impl Backend for HttpFunction {
    fn kind(&self) -> BackendKind {
        BackendKind::Http
    }

    fn target(&self) -> String {
        self.target.clone()
    }

    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, AgentResult<Reply>> {
        Box::pin(async move {
            match self.request(call.arguments, &CallFacts::of(&call)) {
                Ok(request) if call.message.is_some() => {
                    let body = Bytes::copy_from_slice(call.input());
                    self.sender.run(&call, request.map(|_| body), &|_| None).await
                }
                Ok(request) => self.sender.run(&call, request, &|_| None).await,
                Err(problem) => Ok(Reply::Rejected(vec![Part::text(problem)])),
            }
        })
    }
}

impl Secrets {
    fn read(config: &HttpConfig, variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let mut secrets = Vec::new();
        for (name, from) in &config.headers_env {
            let key = format!("headers_env.{name}");
            let header = facts::header_name(name).map_err(|problem| format!("{key}: {problem}"))?;
            secrets.push((header, secret(&key, from, "", &variable)?));
        }
        if let Some(from) = &config.bearer_env {
            if secrets.iter().any(|(name, _)| name == header::AUTHORIZATION) {
                return Err("bearer_env: headers_env sets authorization already".into());
            }
            secrets.push((header::AUTHORIZATION, secret("bearer_env", from, "Bearer ", &variable)?));
        }
        Ok(Self(secrets))
    }
}

fn secret(
    key: &str,
    from: &str,
    prefix: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<HeaderValue, String> {
    let value = variable(from).filter(|value| !value.is_empty());
    let value = value.ok_or_else(|| format!("{key}: the environment variable {from} is not set"))?;
    let problem = || format!("{key}: the value of {from} has characters that a header cannot contain");
    let mut value = HeaderValue::try_from(format!("{prefix}{value}")).map_err(|_| problem())?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(config: &HttpConfig) -> Result<Secrets, String> {
        Secrets::read(config, |name| match name {
            "TOKEN" => Some("t-1".into()),
            "EMPTY" => Some(String::new()),
            "LINES" => Some("a\r\nb: c".into()),
            _ => None,
        })
    }

    #[test]
    fn credentials_are_read_from_the_environment_and_sensitive() {
        let headers_env = BTreeMap::from([("X-Api-Key".to_owned(), "TOKEN".to_owned())]);
        let config =
            HttpConfig { headers_env, bearer_env: Some("TOKEN".into()), ..HttpConfig::new("http://a/") };
        let Secrets(secrets) = read(&config).ok().unwrap();
        let shown: Vec<_> = secrets.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        assert_eq!(shown, [("x-api-key", b"t-1".as_slice()), ("authorization", b"Bearer t-1")]);
        assert!(secrets.iter().all(|(_, value)| value.is_sensitive()));
    }

    #[test]
    fn problem_with_a_credential_names_key_and_variable_but_no_value() {
        for (variable, expected) in [
            ("ABSENT", "bearer_env: the environment variable ABSENT is not set"),
            ("EMPTY", "bearer_env: the environment variable EMPTY is not set"),
            ("LINES", "bearer_env: the value of LINES has characters that a header cannot contain"),
        ] {
            let config = HttpConfig { bearer_env: Some(variable.into()), ..HttpConfig::new("http://a/") };
            assert_eq!(read(&config).err().as_deref(), Some(expected));
        }
    }
}
