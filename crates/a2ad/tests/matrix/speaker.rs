//! The ways in: each generation in each of its bindings, how it asks and how it reads what it is told.

use std::fmt;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
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

use crate::{
    facts::Frame,
    server::Server,
    wire::{Answer, framed},
};

/// Every way in. All else is made of this list.
pub(crate) static SPEAKERS: [Speaker; 7] = [
    Speaker { name: "draft JSON-RPC", version: "0.1", dialect: Dialect::Draft, binding: Binding::JsonRpc },
    Speaker { name: "0.3 JSON-RPC", version: "0.3", dialect: Dialect::V03, binding: Binding::JsonRpc },
    Speaker { name: "1.0 JSON-RPC", version: "1.0", dialect: Dialect::V1, binding: Binding::JsonRpc },
    Speaker { name: "0.3 HTTP+JSON", version: "0.3", dialect: Dialect::V03Proto, binding: Binding::HttpJson },
    Speaker { name: "1.0 HTTP+JSON", version: "1.0", dialect: Dialect::V1, binding: Binding::HttpJson },
    Speaker {
        name: "0.3 gRPC",
        version: "0.3",
        dialect: Dialect::V03Proto,
        binding: Binding::Grpc(Service::V03),
    },
    Speaker { name: "1.0 gRPC", version: "1.0", dialect: Dialect::V1, binding: Binding::Grpc(Service::V1) },
];

/// One way in.
#[derive(Debug)]
pub(crate) struct Speaker {
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

impl fmt::Display for Speaker {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name)
    }
}

impl Speaker {
    /// Whether it has an operation.
    pub(crate) fn has(&self, kind: OperationKind) -> bool {
        match self.binding {
            Binding::JsonRpc => self.dialect.method(kind).is_some(),
            Binding::HttpJson => true,
            Binding::Grpc(service) => service.method(kind).is_some(),
        }
    }

    /// How it names an agent inside its requests: the others do it by the path or beside the request.
    pub(crate) fn tenant(&self, agent: &str) -> Option<String> {
        matches!(self.binding, Binding::Grpc(Service::V1)).then(|| format!("default/{agent}"))
    }

    /// It shows a history only where one is asked for.
    pub(crate) fn asks_for_history(&self) -> bool {
        !self.dialect.shows_history_unasked()
    }

    /// Asks, up to the head of the answer, which must be in its own generation.
    pub(crate) async fn ask(
        &self,
        server: &Server,
        agent: &str,
        operation: &Operation,
        more: &[(&str, &str)],
    ) -> Answer {
        let kind = operation.kind();
        let (verb, path, media_type, body) = match self.binding {
            Binding::JsonRpc => {
                let method = self.dialect.method(kind).expect("it has this method");
                let params = written(|writer| self.dialect.encode_operation(writer, operation));
                let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
                (Method::POST, format!("/a2a/{agent}"), "application/json", body.into())
            }
            Binding::HttpJson => {
                let (verb, target) = rest::target(self.dialect, operation).expect("it has this binding");
                let body = written(|writer| self.dialect.encode_request(writer, operation));
                let body = if verb == "POST" { body.into() } else { Bytes::new() };
                (verb.parse().unwrap(), format!("/a2a/{agent}{target}"), "application/json", body)
            }
            Binding::Grpc(service) => {
                let method = service.method(kind).expect("it has this method");
                let path = format!("/{}/{method}", service.name());
                (Method::POST, path, "application/grpc", framed(&service.encode_operation(operation)))
            }
        };
        let mut request = Request::builder().method(verb).uri(&path);
        if let Binding::Grpc(service) = self.binding {
            request = request.uri(server.url(&path)).header("te", "trailers");
            if service == Service::V03 {
                request = request.header("a2a-agent", agent);
            }
        } else {
            request = request.header("host", "example.test");
        }
        request = request.header("content-type", media_type).header("a2a-version", self.version);
        for (name, value) in more {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body)).unwrap();
        let answer = match self.binding {
            Binding::Grpc(_) => server.call(request).await,
            _ => server.request(request).await,
        };
        let label = format!("{};profile=neutral", self.dialect.name());
        assert_eq!(answer.header("a2ad-dialect"), label, "{self}: {operation:?}: {:?}", answer.head);
        answer
    }

    /// Reads an answer that is not a stream.
    pub(crate) async fn reply(&self, kind: OperationKind, mut answer: Answer) -> Result<Reply, ErrorKind> {
        if let Binding::Grpc(service) = self.binding {
            let Some(message) = answer.message().await else {
                return Err(answer.status().expect_err("an answer or an error").kind);
            };
            assert!(answer.message().await.is_none() && answer.status().is_ok(), "{self}: {kind:?}");
            return Ok(service.decode_reply(kind, &message).unwrap());
        }
        let well = answer.head.status == 200;
        let text = answer.text().await;
        self.check_spelling(&text);
        match self.binding {
            Binding::HttpJson if well => Ok(read(&text, |node| self.dialect.decode_reply(kind, node))),
            Binding::HttpJson => Err(read(&text, |node| self.dialect.decode_refusal(node)).kind),
            _ => read(&text, |node| {
                let object = node.object()?;
                let error = object.maybe("error", |node| self.dialect.decode_error(node))?;
                let reply =
                    || object.need("result", "a result", |node| self.dialect.decode_reply(kind, node));
                error.map_or_else(|| reply().map(Ok), |error| Ok(Err(error.kind)))
            }),
        }
    }

    /// Whether an answer is a stream, and not a refusal.
    pub(crate) fn is_stream(&self, answer: &Answer) -> bool {
        match self.binding {
            Binding::Grpc(_) => answer.header("grpc-status").is_empty(),
            _ => answer.is_events(),
        }
    }

    /// The next frame of a stream, behind the one of a number; `None` behind the last one, when all is well.
    pub(crate) async fn frame(&self, answer: &mut Answer, before: Option<u64>) -> Option<Frame> {
        if let Binding::Grpc(service) = self.binding {
            let Some(message) = answer.message().await else {
                answer.status().unwrap_or_else(|error| panic!("{self}: {error:?}"));
                return None;
            };
            let event = service.decode_event(&message).unwrap();
            let last = service == Service::V03 && says_last(&message);
            // Each message is one event, and the number of the first one stands in the head.
            let number = match before {
                Some(before) => before + 1,
                None => answer.header("a2ad-first-event-id").parse().unwrap(),
            };
            return Some(Frame { number, event, last });
        }
        let (number, data) = answer.event().await?;
        self.check_spelling(&data);
        let event = match self.binding {
            Binding::JsonRpc => read(&data, |node| {
                node.object()?.need("result", "a frame", |node| self.dialect.decode_event(node))
            }),
            _ => read(&data, |node| self.dialect.decode_event(node)),
        };
        let last = data.contains(r#""final":true"#);
        // Two of them always say whether there is more.
        let always = matches!(self.dialect, Dialect::Draft | Dialect::V03);
        let not_last = data.contains(r#""final":false"#);
        assert_eq!(not_last, always && !last && matches!(event, Event::Status(_)), "{self}: {data}");
        Some(Frame { number, event, last })
    }

    /// Whether its streams mark their last frame.
    pub(crate) fn marks_the_last(&self) -> bool {
        self.dialect != Dialect::V1
    }

    /// Checks that no other generation's words are in a text.
    fn check_spelling(&self, text: &str) {
        let foreign: &[&str] = match self.dialect {
            Dialect::Draft => &[r#""kind":"#, r#""contextId":"#, r#""taskId":"#, "TASK_STATE_", "ROLE_"],
            Dialect::V03 => &[r#""type":"#, r#""sessionId":"#, r#""content":"#, "TASK_STATE_", "ROLE_"],
            Dialect::V03Proto => &[r#""kind":"#, r#""sessionId":"#, r#""canceled""#, "TASK_STATE_CANCELED"],
            Dialect::V1 => &[r#""kind":"#, r#""content":"#, r#""final":"#, "TASK_STATE_CANCELLED"],
        };
        assert!(foreign.iter().all(|word| !text.contains(word)), "{self}: {text}");
    }
}

/// Whether a frame of the older service says that it is the last. What is read of one is no more than that.
fn says_last(message: &[u8]) -> bool {
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

fn written(write: impl FnOnce(&mut Writer)) -> String {
    let mut writer = Writer::new();
    write(&mut writer);
    String::from_utf8(writer.finish()).unwrap()
}

fn read<T>(text: &str, decode: impl FnOnce(Node<'_, '_>) -> Result<T, Violation>) -> T {
    let json = Json::parse(text).unwrap_or_else(|error| panic!("{error} in {text:?}"));
    decode(Node::new(json.as_raw(), &Path::Root))
        .unwrap_or_else(|violation| panic!("{violation:?} in {text}"))
}
