//! The cells of bindings that have no operations of A2A: plain messages, skills over HTTP, MCP and signed requests.

use std::sync::Arc;

use http::Method;
use protocol::OperationKind;

use super::{Cells, Extent, MakeProbe, with_key};
use crate::service::access_matrix::{
    principals::Principal,
    probe::{Field, Probe},
    world::{AGENTS, Lifetime, State},
};

impl Cells {
    /// Plain messages, as text and as JSON.
    pub(super) fn add_text(&mut self, name: &str, path: &str, agent: &'static str, extent: Extent) {
        let text = |path: String| {
            move |asker: Principal| -> MakeProbe {
                let path = path.clone();
                Arc::new(move |id, _, _| {
                    let probe = Probe::post(&path, asker.marker().as_bytes().to_vec());
                    probe.with_header("content-type", "text/plain").with_header("idempotency-key", id)
                })
            }
        };
        let json = |path: String, field: Field| {
            move |asker: Principal| -> MakeProbe {
                let path = path.clone();
                Arc::new(move |id, _, _| {
                    let chat = format!(r#","chatId":"{id}""#);
                    let chat = if field == Field::Key { "" } else { &chat };
                    let body = format!(r#"{{"message":"{}"{chat}}}"#, asker.marker());
                    with_key(Probe::post(&path, body.into_bytes()), field, id)
                })
            }
        };
        let kind = Some(OperationKind::SendMessage);
        if agent == AGENTS[2] {
            let make = json(path.to_owned(), Field::Context);
            return self.add_pairs(
                &format!("{name} chatId strict"),
                kind,
                Field::Context,
                agent,
                State::InputRequired,
                &make,
            );
        }
        self.add(&format!("{name} text"), kind, Field::Key, agent, extent, &text(path.to_owned()));
        for field in [Field::Key, Field::Context, Field::NamedContext] {
            let label = format!("{name} JSON {field:?}");
            self.add(&label, kind, field, agent, extent, &json(path.to_owned(), field));
        }
    }

    /// A skill over plain HTTP, as a response and as events.
    pub(super) fn add_run(&mut self, name: &str, path: &str, agent: &'static str, extent: Extent) {
        for accept in ["*/*", "text/event-stream"] {
            let path = path.to_owned();
            let make = move |asker: Principal| -> MakeProbe {
                let path = path.clone();
                Arc::new(move |id, _, _| {
                    let probe = Probe::post(&path, asker.marker().as_bytes().to_vec());
                    let probe = probe.with_header("content-type", "text/plain").with_header("accept", accept);
                    probe.with_header("idempotency-key", id)
                })
            };
            let kind = Some(OperationKind::SendMessage);
            if agent != AGENTS[2] {
                self.add(&format!("{name} {accept}"), kind, Field::Key, agent, extent, &make);
            }
        }
    }

    /// MCP: sessions, keys, and the task in the state of a call that is sent again.
    pub(super) fn add_mcp(&mut self, name: &str, path: &str, agent: &'static str, extent: Extent) {
        if agent == AGENTS[2] {
            return;
        }
        let at = |probe: Probe| Probe { target: path.to_owned(), ..probe };
        let call = at(Probe::mcp_call(agent, ""));
        let list = at(Probe::mcp(agent, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#));
        let notify = at(Probe::mcp_initialized(agent));
        let cancel = at(Probe::mcp(
            agent,
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
        ));
        let stream = Probe { method: Method::GET, body: Vec::new(), ..list.clone() };
        let resume = stream.clone().with_header("last-event-id", "0");
        let end = Probe { method: Method::DELETE, body: Vec::new(), ..list.clone() };
        let requests = [
            ("tools/call", call),
            ("tools/list", list),
            ("notification", notify),
            ("cancelled", cancel),
            ("GET", stream),
            ("GET with Last-Event-ID", resume),
            ("DELETE", end),
        ];
        // Sessions end with their process.
        let is_live = self.lifetime == Lifetime::Live;
        for (label, request) in requests.into_iter().filter(|_| is_live) {
            let make = move |_: Principal| -> MakeProbe {
                let request = request.clone();
                Arc::new(move |id, _, _| request.clone().with_header("mcp-session-id", id))
            };
            self.add(&format!("{name} session {label}"), None, Field::Session, agent, extent, &make);
        }
        for action in ["accept", "decline", "cancel"] {
            let path = path.to_owned();
            let make = move |asker: Principal| -> MakeProbe {
                let path = path.clone();
                Arc::new(move |id, _, _| {
                    let answer =
                        format!(r#"{{"action":"{action}","content":{{"answer":"{}"}}}}"#, asker.marker());
                    let more = format!(
                        r#""arguments":{{}},"requestState":"text:{id}","inputResponses":{{"answer":{answer}}}"#
                    );
                    Probe { target: path.clone(), ..Probe::mcp_newest(agent, &more) }
                })
            };
            for field in [Field::Task, Field::NamedTask] {
                let label = format!("{name} requestState {action} {field:?}");
                self.add(&label, None, field, agent, extent, &make);
            }
        }
        let path = path.to_owned();
        let make = move |asker: Principal| -> MakeProbe {
            let path = path.clone();
            Arc::new(move |id, _, _| {
                let arguments = format!(r#""arguments":{{"message":"{}"}}"#, asker.marker());
                let probe = Probe { target: path.clone(), ..Probe::mcp_newest(agent, &arguments) };
                probe.with_header("idempotency-key", id)
            })
        };
        self.add(&format!("{name} key"), None, Field::Key, agent, extent, &make);
    }

    /// Requests that need a signature, without a valid one.
    pub(super) fn add_signed(&mut self, name: &str, path: &str, agent: &'static str, extent: Extent) {
        let exp = 1_767_323_045 + 60;
        let tokens = ["x".to_owned(), format!("v1.{exp}.{}", "0".repeat(64)), format!("v1.{}.x", exp - 600)];
        for token in tokens {
            let path = path.to_owned();
            let label = format!("{name} {token}");
            let make = move |_: Principal| -> MakeProbe {
                let (path, token) = (path.clone(), token.clone());
                Arc::new(move |id, _, _| {
                    let probe = Probe::post(&path, format!(r#"{{"taskId":"{id}"}}"#).into_bytes());
                    probe.with_header("authorization", &format!("Bearer {token}"))
                })
            };
            self.add(&label, None, Field::Signed, agent, extent, &make);
        }
    }

    /// The operators' API without the admin token: nobody learns which keys there are, and none is revoked.
    pub(super) fn add_revocation(&mut self, name: &str, agent: &'static str, extent: Extent) {
        let make = |_: Principal| -> MakeProbe {
            Arc::new(|id, _, _| {
                let probe = Probe::get_path(&format!("/console/api/keys/{id}"));
                Probe { method: Method::DELETE, ..probe }
            })
        };
        self.add(name, None, Field::ApiKey, agent, extent, &make);
    }

    /// Tasks in the operators' API without the admin token: nobody learns which there are, and none is cancelled.
    pub(super) fn add_operated_task(
        &mut self,
        name: &str,
        method: &Method,
        action: &'static str,
        agent: &'static str,
        extent: Extent,
    ) {
        let make = |_: Principal| -> MakeProbe {
            let method = method.clone();
            Arc::new(move |id, _, _| {
                let probe = Probe::get_path(&format!("/console/api/tasks/{id}{action}"));
                Probe { method: method.clone(), ..probe }
            })
        };
        self.add(name, None, Field::Signed, agent, extent, &make);
    }
}
