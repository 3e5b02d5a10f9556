//! Requests without ids: what is the same for everybody, and the lists of callers.

use protocol::{Dialect, GetExtendedCard, ListTasks, Operation, OperationKind};
use testkit::http2::framed;

use super::paths;
use crate::{
    routes::{GrpcService, Handler, TABLE},
    service::access_matrix::probe::{Probe, Wire},
};

/// A request without an id.
pub(in super::super) struct WithoutId {
    pub(in super::super) label: String,
    pub(in super::super) kind: Option<OperationKind>,
    pub(in super::super) probe: Probe,
    /// Everybody gets the same response.
    pub(in super::super) is_same_for_all: bool,
}

/// All requests without ids.
pub(in super::super) fn without_ids() -> Vec<WithoutId> {
    let mut all = Vec::new();
    for (number, row) in TABLE.iter().enumerate() {
        let name = format!("row {number} {}", row.path.pattern());
        for (path, agent, _) in paths(&row.path) {
            let get = Probe::get_path(&path);
            let rpc = |dialect| Wire::JsonRpc { path: path.clone(), dialect };
            let rest = |dialect| Wire::Rest { prefix: path.clone(), dialect };
            let same = match row.handler {
                Handler::JsonRpc(_) => {
                    for wire in [rpc(Dialect::V03), rpc(Dialect::V1)] {
                        all.extend(lists(&name, &wire));
                    }
                    continue;
                }
                Handler::Rest => {
                    for wire in [rest(Dialect::V03Proto), rest(Dialect::V1)] {
                        all.extend(lists(&name, &wire));
                    }
                    continue;
                }
                Handler::Grpc(GrpcService::A2a(service)) => {
                    all.extend(lists(&name, &Wire::Grpc { service, agent: Some(agent) }));
                    continue;
                }
                Handler::Grpc(GrpcService::Health) => vec![grpc_empty(&path, "Check")],
                Handler::Grpc(GrpcService::Reflection | GrpcService::ReflectionAlpha) => {
                    vec![grpc_empty(&path, "ServerReflectionInfo")]
                }
                Handler::Mcp => vec![
                    Probe::mcp_initialize(agent),
                    Probe { target: path.clone(), ..Probe::mcp_newest(agent, r#""arguments":{}"#) },
                ],
                Handler::Text
                | Handler::Run
                | Handler::ProcessTask
                | Handler::Operators(_)
                | Handler::Nothing => {
                    vec![get, Probe::post(&path, b"{}".to_vec())]
                }
                Handler::Card(_)
                | Handler::OpenApi
                | Handler::AgentList
                | Handler::PublishedKeys
                | Handler::ExtendedCard
                | Handler::HomePage
                | Handler::Liveness
                | Handler::Readiness
                | Handler::Metrics => vec![get],
            };
            // Arguments of skills and credentials are the caller's own, and each response of metrics counts more.
            let depends_on_caller = |handler| {
                matches!(
                    handler,
                    Handler::Mcp
                        | Handler::Run
                        | Handler::ProcessTask
                        | Handler::Operators(_)
                        | Handler::Metrics
                )
            };
            let is_same_for_all = !depends_on_caller(row.handler);
            all.extend(same.into_iter().map(|probe| WithoutId {
                label: format!("{name} {} {}", probe.method, probe.target),
                kind: None,
                probe,
                is_same_for_all,
            }));
        }
    }
    all
}

/// The list of the caller's tasks, and the extended card, in a binding.
fn lists(name: &str, wire: &Wire) -> Vec<WithoutId> {
    let kinds = [OperationKind::ListTasks, OperationKind::GetExtendedCard];
    let kinds = kinds.into_iter().filter(|kind| wire.has(*kind));
    kinds
        .map(|kind| {
            let operation = match kind {
                OperationKind::ListTasks => Operation::ListTasks(ListTasks::default()),
                _ => Operation::GetExtendedCard(GetExtendedCard::default()),
            };
            WithoutId {
                label: format!("{name} {kind:?} {wire:?}"),
                kind: Some(kind),
                probe: wire.probe(&operation),
                is_same_for_all: kind == OperationKind::GetExtendedCard,
            }
        })
        .collect()
}

fn grpc_empty(service: &str, method: &str) -> Probe {
    let probe = Probe::post(&format!("{service}{method}"), framed(b"").to_vec());
    Probe { is_http2: true, ..probe.with_header("content-type", "application/grpc") }
}
