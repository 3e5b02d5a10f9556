//! Sends requests to the operators' API: of the server that has the store open, else of the store itself.

use std::path::Path;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use protocol::{
    Dialect, Error, ErrorKind,
    json::{
        Raw,
        read::{Node, Path as Field},
    },
    model::Secret,
};
use store::{InstanceState, LockHolder, OpenError};
use tokio::runtime::Runtime;

use super::{
    OperatorFlags,
    server_api::{ServerAddress, ServerApi},
    stopped_store::{OpenStore, StoppedStore},
};
use crate::{
    cli::{
        failure::{Failure, code},
        output::Output,
        runtime,
    },
    config::OperatorView,
};

/// The operators' API of a store.
pub(in crate::cli) struct Access {
    pub(in crate::cli) output: Output,
    /// Dropped before the runtime.
    api: Api,
    runtime: Runtime,
}

enum Api {
    Server(Box<ServerApi>),
    Store(Box<StoppedStore>),
}

impl Access {
    /// Finds the server that has the store open, else opens the store; an error if there is no store.
    pub(in crate::cli) fn open(flags: &OperatorFlags) -> Result<Self, Failure> {
        let path = flags.store_path()?;
        if !path.exists() {
            let text = format!("there is no store {}", path.display());
            return Err(Failure::new(code::ERROR, text).with_next("name it with --store or --config"));
        }
        Self::connect(flags, &path, |_| Ok(()))
    }

    /// The same to change something about an agent, also before the first start of a server: a store that does not exist
    /// is created, if the configuration has the agent or is not known.
    pub(in crate::cli) fn open_for_agent(flags: &OperatorFlags, agent: &str) -> Result<Self, Failure> {
        let path = flags.store_path()?;
        if !path.exists() {
            check_agent(flags.config()?.as_ref(), agent)?;
        }
        Self::connect(flags, &path, |config| check_agent(config, agent))
    }

    /// What is checked is the configuration of a store that no server has open.
    fn connect(
        flags: &OperatorFlags,
        path: &Path,
        check: impl FnOnce(Option<&OperatorView>) -> Result<(), Failure>,
    ) -> Result<Self, Failure> {
        let (output, runtime) = (Output::new(), runtime()?);
        let api = match OpenStore::open(path) {
            Ok(store) => {
                let config = flags.config()?;
                check(config.as_ref())?;
                let _inside = runtime.enter();
                Api::Store(Box::new(store.serve(config)?))
            }
            Err(OpenError::InUse { holder, .. }) if holder.state == InstanceState::Serving => {
                let server = ServerAddress::of(&holder).ok_or_else(|| does_not_listen(path, &holder))?;
                Api::Server(Box::new(ServerApi::at(server, path, &output)?))
            }
            Err(error) => return Err(not_available(&error)),
        };
        Ok(Self { output, api, runtime })
    }

    /// Whether a server has the store open.
    pub(in crate::cli) fn is_of_server(&self) -> bool {
        matches!(self.api, Api::Server(_))
    }

    /// Where it is, as the end of a sentence.
    pub(in crate::cli) fn place(&self) -> String {
        match &self.api {
            Api::Server(server) => format!("on the running server {}", server.url()),
            Api::Store(store) => format!("in the store {}, which no server uses", store.path.display()),
        }
    }

    /// Reads a resource; the path is that below `/console/api`, with its query.
    pub(in crate::cli) fn get(&self, path: &str) -> Result<Vec<u8>, Failure> {
        self.send(Method::GET, path, Vec::new())
    }

    /// Sends a request to a path below `/console/api`; returns the document.
    pub(in crate::cli) fn send(&self, method: Method, path: &str, body: Vec<u8>) -> Result<Vec<u8>, Failure> {
        let response = match &self.api {
            Api::Server(server) => {
                let request = request(method, &server.url(), path, &server.token, body)?;
                self.runtime.block_on(server.send(request))
            }
            Api::Store(store) => {
                let request = request(method, "", path, &store.token, body)?;
                self.runtime.block_on(store.send(request))
            }
        };
        let response = response?;
        if response.status().is_success() {
            Ok(response.into_body().into())
        } else {
            Err(self.failure(&response))
        }
    }

    /// The error in a response.
    fn failure(&self, response: &Response<Bytes>) -> Failure {
        let api = match &self.api {
            Api::Server(server) => format!("the server {}", server.url()),
            Api::Store(store) => format!("the store {}", store.path.display()),
        };
        let raw = Raw::parse(response.body()).ok();
        match raw.and_then(|raw| Dialect::V1.decode_error_body(Node::new(raw, &Field::Root)).ok()) {
            Some(error) => rejected(&api, error),
            None => not_understood(&api, response.status()),
        }
    }
}

/// Checks that the configuration has the agent, if it is known.
fn check_agent(config: Option<&OperatorView>, agent: &str) -> Result<(), Failure> {
    let Some(config) = config else { return Ok(()) };
    let ids = || config.agents.iter().map(|agent| agent.id.as_str());
    if ids().any(|id| id == agent) {
        return Ok(());
    }
    let text = format!("the configuration has no agent {agent:?}");
    Err(Failure::new(code::NOT_FOUND, text).with_next(protocol::hint(agent, ids())))
}

fn request(
    method: Method,
    server: &str,
    path: &str,
    token: &Secret,
    body: Vec<u8>,
) -> Result<Request<Full<Bytes>>, Failure> {
    let invalid = |error: http::Error| Failure::usage(format!("the request cannot be sent: {error}"));
    let mut credential = HeaderValue::from_str(&format!("Bearer {}", token.expose()))
        .map_err(|error| invalid(error.into()))?;
    credential.set_sensitive(true);
    Request::builder()
        .method(method)
        .uri(format!("{server}/console/api{path}"))
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::AUTHORIZATION, credential)
        .body(Full::new(Bytes::from(body)))
        .map_err(invalid)
}

/// A text as one segment of a path.
pub(in crate::cli) fn segment(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

fn does_not_listen(path: &Path, holder: &LockHolder) -> Failure {
    let text =
        format!("the store {} is open in another process ({holder}), which has no address", path.display());
    let next = "try again if it has just been started; if it is part of an application, use the API of that";
    Failure::new(code::ERROR, text).with_next(next)
}

/// The error of a store that can neither be opened nor asked for.
fn not_available(error: &OpenError) -> Failure {
    let OpenError::InUse { path, holder } = error else {
        return Failure::new(code::ERROR, error.to_string());
    };
    let next = match holder.state {
        InstanceState::Starting => "it is starting: try again in a moment",
        InstanceState::Draining => "it is shutting down: try again when it has stopped or restarted",
        InstanceState::Serving | InstanceState::Checking | InstanceState::Restoring => {
            "try again when it has ended"
        }
    };
    let text = format!("the store {} is in use by another a2ad ({holder})", path.display());
    Failure::new(code::ERROR, text).with_next(next)
}

fn not_understood(api: &str, status: StatusCode) -> Failure {
    Failure::new(code::PROTOCOL, format!("{api} answered with HTTP status {status}"))
}

fn rejected(api: &str, error: Error) -> Failure {
    let Error { kind, message, .. } = error;
    match kind {
        ErrorKind::Unauthenticated | ErrorKind::PermissionDenied => {
            let next = "the file with the token was changed since the server started: restart the server";
            Failure::new(code::AUTH, format!("{api} refused the request: {message}")).with_next(next)
        }
        ErrorKind::AgentDisabled | ErrorKind::NotFound | ErrorKind::TaskNotFound => {
            Failure::new(code::NOT_FOUND, message)
        }
        ErrorKind::InvalidParams => Failure::usage(message),
        ErrorKind::Unavailable | ErrorKind::RateLimited => Failure::new(code::ERROR, message),
        ErrorKind::MethodNotFound => {
            let text = format!("{api} has no API for operators; is it an older a2ad?");
            Failure::new(code::PROTOCOL, text)
        }
        _ => Failure::new(code::PROTOCOL, message),
    }
}
