//! The interfaces: each protocol generation in each of its bindings, with the encoding of requests and the decoding of
//! responses.

use std::fmt;

use prost::Message as _;
use protocol::{
    Dialect, ErrorKind, Event, Json, Operation, OperationKind, Reply, Violation,
    grpc::Service,
    json::{
        read::{Node, Path},
        write::Writer,
    },
    rest,
};

use testkit::http2::framed;

use crate::{server::Server, snapshot::Frame, wire::StreamingResponse};

/// All interfaces. Every scenario runs for all pairs of this table.
pub(crate) static INTERFACES: [Interface; 7] = [
    Interface { name: "draft JSON-RPC", version: "0.1", dialect: Dialect::Draft, binding: Binding::JsonRpc },
    Interface { name: "0.3 JSON-RPC", version: "0.3", dialect: Dialect::V03, binding: Binding::JsonRpc },
    Interface { name: "1.0 JSON-RPC", version: "1.0", dialect: Dialect::V1, binding: Binding::JsonRpc },
    Interface {
        name: "0.3 HTTP+JSON",
        version: "0.3",
        dialect: Dialect::V03Proto,
        binding: Binding::HttpJson,
    },
    Interface { name: "1.0 HTTP+JSON", version: "1.0", dialect: Dialect::V1, binding: Binding::HttpJson },
    Interface {
        name: "0.3 gRPC",
        version: "0.3",
        dialect: Dialect::V03Proto,
        binding: Binding::Grpc(Service::V03),
    },
    Interface { name: "1.0 gRPC", version: "1.0", dialect: Dialect::V1, binding: Binding::Grpc(Service::V1) },
];

/// A protocol generation with a binding.
#[derive(Debug)]
pub(crate) struct Interface {
    name: &'static str,
    /// The value of `A2A-Version`.
    version: &'static str,
    pub(crate) dialect: Dialect,
    binding: Binding,
}

#[derive(Clone, Copy, Debug)]
enum Binding {
    JsonRpc,
    HttpJson,
    Grpc(Service),
}

impl fmt::Display for Interface {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name)
    }
}

impl Interface {
    /// Whether the interface has an operation.
    pub(crate) fn has(&self, kind: OperationKind) -> bool {
        match self.binding {
            Binding::JsonRpc => self.dialect.method(kind).is_some(),
            Binding::HttpJson => true,
            Binding::Grpc(service) => service.method(kind).is_some(),
        }
    }

    /// The `tenant` parameter, by which gRPC 1.0 names the agent; the other interfaces use the path or a header.
    pub(crate) fn tenant(&self, agent: &str) -> Option<String> {
        matches!(self.binding, Binding::Grpc(Service::V1)).then(|| format!("default/{agent}"))
    }

    /// Whether responses contain the history only on request.
    pub(crate) fn omits_history_by_default(&self) -> bool {
        !self.dialect.rules().includes_history_by_default
    }

    /// Sends a request and reads the response head, whose `a2ad-dialect` must be the interface's own dialect.
    pub(crate) async fn send_request(
        &self,
        server: &Server,
        agent: &str,
        operation: &Operation,
        more: &[(&str, &str)],
    ) -> StreamingResponse {
        let kind = operation.kind();
        let version = ("a2a-version", self.version);
        let json = [("host", "example.test"), ("content-type", "application/json"), version];
        let (verb, path, body) = match self.binding {
            Binding::JsonRpc => {
                let method = self.dialect.method(kind).expect("the interface has this method");
                let params = encode(|writer| self.dialect.encode_operation(writer, operation));
                let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
                ("POST", format!("/a2a/{agent}"), body)
            }
            Binding::HttpJson => {
                let (verb, target) =
                    rest::target(self.dialect, operation).expect("the dialect has this binding");
                let body = encode(|writer| self.dialect.encode_request(writer, operation));
                (verb, format!("/a2a/{agent}{target}"), if verb == "POST" { body } else { String::new() })
            }
            Binding::Grpc(service) => {
                let method = service.method(kind).expect("the interface has this method");
                let path = format!("/{}/{method}", service.name());
                let agent = [("a2a-agent", agent)];
                let agent = if service == Service::V03 { &agent[..] } else { &[] };
                let metadata = [agent, &[version], more].concat();
                let message = framed(&service.encode_operation(operation));
                let request = server.channel.grpc(&path, &metadata, message).unwrap();
                let response = StreamingResponse::Grpc(server.channel.request(request).await.unwrap());
                return self.checked(operation, response);
            }
        };
        let mut connection = server.connect().await;
        connection.send(verb, &path, &[&json[..], more].concat(), body.as_bytes()).await.unwrap();
        let head = connection.head().await.unwrap();
        self.checked(operation, StreamingResponse::Http(connection, head))
    }

    /// The response, if it is in the interface's own dialect.
    fn checked(&self, operation: &Operation, response: StreamingResponse) -> StreamingResponse {
        let label = format!("{};profile=neutral", self.dialect.label());
        assert_eq!(
            response.header("a2ad-dialect"),
            label,
            "{self}: {operation:?}: {}",
            response.status_code()
        );
        response
    }

    /// Reads a response that is not a stream.
    pub(crate) async fn reply(
        &self,
        kind: OperationKind,
        mut response: StreamingResponse,
    ) -> Result<Reply, ErrorKind> {
        if let Binding::Grpc(service) = self.binding {
            let Some(message) = response.message().await else {
                return Err(response.status().expect_err("a response or an error").kind);
            };
            assert!(response.message().await.is_none() && response.status().is_ok(), "{self}: {kind:?}");
            return Ok(service.decode_reply(kind, &message).unwrap());
        }
        let succeeded = response.status_code() == 200;
        let text = response.text().await;
        self.check_no_foreign_spelling(&text);
        match self.binding {
            Binding::HttpJson if succeeded => Ok(read(&text, |node| self.dialect.decode_reply(kind, node))),
            Binding::HttpJson => Err(read(&text, |node| self.dialect.decode_error_body(node)).kind),
            _ => read(&text, |node| {
                let object = node.object()?;
                let error = object.maybe("error", |node| self.dialect.decode_error(node))?;
                let reply =
                    || object.need("result", "a result", |node| self.dialect.decode_reply(kind, node));
                error.map_or_else(|| reply().map(Ok), |error| Ok(Err(error.kind)))
            }),
        }
    }

    /// Whether a response is a stream and not an error.
    pub(crate) fn is_stream(&self, response: &StreamingResponse) -> bool {
        match self.binding {
            Binding::Grpc(_) => response.header("grpc-status").is_empty(),
            _ => response.is_events(),
        }
    }

    /// The next frame of a stream, after the frame of the number `previous`; `None` after the last one. Panics if the
    /// stream ends with an error.
    pub(crate) async fn frame(
        &self,
        response: &mut StreamingResponse,
        previous: Option<u64>,
    ) -> Option<Frame> {
        if let Binding::Grpc(service) = self.binding {
            let Some(message) = response.message().await else {
                response.status().unwrap_or_else(|error| panic!("{self}: {error:?}"));
                return None;
            };
            let event = service.decode_event(&message).unwrap();
            let last = service == Service::V03 && is_marked_last(&message);
            // Each message is one event, and the number of the first one is in a response header.
            let number = match previous {
                Some(previous) => previous + 1,
                None => response.header("a2ad-first-event-id").parse().unwrap(),
            };
            return Some(Frame { number, event, last });
        }
        let (number, data) = response.event().await?;
        self.check_no_foreign_spelling(&data);
        let event = match self.binding {
            Binding::JsonRpc => read(&data, |node| {
                node.object()?.need("result", "a frame", |node| self.dialect.decode_event(node))
            }),
            _ => read(&data, |node| self.dialect.decode_event(node)),
        };
        let last = data.contains(r#""final":true"#);
        // In these two dialects every status event has `final`.
        let always = matches!(self.dialect, Dialect::Draft | Dialect::V03);
        let not_last = data.contains(r#""final":false"#);
        assert_eq!(not_last, always && !last && matches!(event, Event::Status(_)), "{self}: {data}");
        Some(Frame { number, event, last })
    }

    /// Whether streams mark their last frame.
    pub(crate) fn marks_last_frame(&self) -> bool {
        self.dialect != Dialect::V1
    }

    /// Checks that a text has no member names or enum values of other generations.
    fn check_no_foreign_spelling(&self, text: &str) {
        let foreign: &[&str] = match self.dialect {
            Dialect::Draft => &[r#""kind":"#, r#""contextId":"#, r#""taskId":"#, "TASK_STATE_", "ROLE_"],
            Dialect::V03 => &[r#""type":"#, r#""sessionId":"#, r#""content":"#, "TASK_STATE_", "ROLE_"],
            Dialect::V03Proto => &[r#""kind":"#, r#""sessionId":"#, r#""canceled""#, "TASK_STATE_CANCELED"],
            Dialect::V1 => &[r#""kind":"#, r#""content":"#, r#""final":"#, "TASK_STATE_CANCELLED"],
        };
        assert!(foreign.iter().all(|spelling| !text.contains(spelling)), "{self}: {text}");
    }
}

/// Whether a frame of the 0.3 gRPC service has `final`. Only that field is decoded.
fn is_marked_last(message: &[u8]) -> bool {
    #[derive(prost::Message)]
    struct Response {
        #[prost(message, tag = "3")]
        status_update: Option<Update>,
    }
    #[derive(prost::Message)]
    struct Update {
        #[prost(bool, tag = "4")]
        r#final: bool,
    }
    Response::decode(message).unwrap().status_update.is_some_and(|update| update.r#final)
}

fn encode(write: impl FnOnce(&mut Writer)) -> String {
    let mut writer = Writer::new();
    write(&mut writer);
    String::from_utf8(writer.finish()).unwrap()
}

fn read<T>(text: &str, decode: impl FnOnce(Node<'_, '_>) -> Result<T, Violation>) -> T {
    let json = Json::parse(text).unwrap_or_else(|error| panic!("{error} in {text:?}"));
    decode(Node::new(json.as_raw(), &Path::Root))
        .unwrap_or_else(|violation| panic!("{violation:?} in {text}"))
}
