//! The cells of the matrix, generated from the route table.

mod other_bindings;
mod without_ids;

use std::sync::Arc;

use http::Method;
use protocol::{Dialect, OperationKind};

pub(super) use without_ids::without_ids;

use super::{
    operations,
    principals::Principal,
    probe::{self, Asker, Field, Probe, Wire},
    world::{AGENTS, Lifetime, Need, Owner, SKILL, State, Target},
};
use crate::{
    bindings::operators::OperatorCall,
    routes::{GrpcService, Handler, Path, TABLE},
};

/// A request with an id: what is asked for, by whom, and whose it is.
pub(super) struct Cell {
    pub(super) label: String,
    /// The part of the label that the cells of one request share.
    pub(super) request: String,
    pub(super) kind: Option<OperationKind>,
    pub(super) field: Field,
    pub(super) owner: Owner,
    pub(super) asker: Principal,
    /// The owner asks itself, for another tenant: not even its own text may be shown.
    pub(super) is_other_tenant: bool,
    state: State,
    pub(super) probe: MakeProbe,
}

/// Makes the request that names an id.
type MakeProbe = Arc<dyn Fn(&str, &Target, u32) -> Probe + Send + Sync>;

impl Cell {
    pub(super) fn need(&self) -> Need {
        let is_beside_own_task = matches!(self.field, Field::OwnTaskPushConfig | Field::PushPageToken);
        // An owner that asks for its own does so at the default agent, for something of another agent.
        let is_elsewhere = self.owner.principal == self.asker;
        let agent = if is_elsewhere { AGENTS[0] } else { self.owner.agent };
        let own_task = Owner { principal: self.asker, agent };
        // No other tenant is served, so nobody has a task there.
        let own_task = (is_beside_own_task && !self.is_other_tenant).then_some(own_task);
        Need { field: self.field, state: self.state, own_task }
    }

    /// Whether the owner itself gets another response for its id than for an absent one. If not, nothing is looked up.
    pub(super) fn is_looked_up(&self) -> bool {
        let is_used = match self.field {
            // Not looked up, or without a valid signature or token.
            Field::Reference | Field::Signed | Field::ApiKey => false,
            // A message begins a task, which has no webhooks.
            Field::OwnTaskPushConfig => {
                !matches!(self.kind, Some(OperationKind::SendMessage | OperationKind::SendStreamingMessage))
            }
            Field::Task
            | Field::NamedTask
            | Field::Context
            | Field::NamedContext
            | Field::Key
            | Field::MessageId
            | Field::PageToken
            | Field::LastEvent
            | Field::PushTask
            | Field::NamedPushTask
            | Field::PushConfig
            | Field::PushPageToken
            | Field::Session => true,
        };
        // Its owner asks at another agent or tenant, where there is nothing.
        let is_elsewhere = self.owner.principal == self.asker;
        is_used && !is_elsewhere
    }
}

/// Owner and asker at the same agent.
const PAIRS: [(Principal, Principal); 8] = [
    (Principal::Alice, Principal::Bob),
    (Principal::Bob, Principal::Anonymous),
    (Principal::Anonymous, Principal::Alice),
    (Principal::CarolForDan, Principal::CarolForEve),
    (Principal::CarolForEve, Principal::Alice),
    (Principal::Alice, Principal::CarolForDan),
    (Principal::Frank, Principal::Anonymous),
    (Principal::Bob, Principal::Frank),
];

/// How many cells a request with an id gets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// All pairs of callers, another agent, and all states.
    Full,
    /// One pair and one state, which take turns.
    One,
}

/// Collects cells.
struct Cells {
    lifetime: Lifetime,
    cells: Vec<Cell>,
    /// Which pair and which state is next where they take turns.
    turn: usize,
}

/// All cells with ids.
pub(super) fn all(lifetime: Lifetime) -> Vec<Cell> {
    let mut cells = Cells { lifetime, cells: Vec::new(), turn: 0 };
    for (number, row) in TABLE.iter().enumerate() {
        let name = format!("row {number} {}", row.path.pattern());
        for (path, agent, extent) in paths(&row.path) {
            match row.handler {
                Handler::JsonRpc(_) => {
                    for dialect in [Dialect::Draft, Dialect::V03, Dialect::V1] {
                        cells.add_wire(&name, agent, extent, &Wire::JsonRpc { path: path.clone(), dialect });
                    }
                }
                Handler::Rest => {
                    for dialect in [Dialect::V03Proto, Dialect::V1] {
                        cells.add_wire(&name, agent, extent, &Wire::Rest { prefix: path.clone(), dialect });
                    }
                }
                Handler::Grpc(GrpcService::A2a(service)) => {
                    cells.add_wire(&name, agent, extent, &Wire::Grpc { service, agent: Some(agent) });
                }
                Handler::Text => cells.add_text(&name, &path, agent, extent),
                Handler::Run => cells.add_run(&name, &path, agent, extent),
                Handler::Mcp => cells.add_mcp(&name, &path, agent, extent),
                Handler::ProcessTask => cells.add_signed(&name, &path, agent, extent),
                Handler::Operators(OperatorCall::RevokeKey) => cells.add_revocation(&name, agent, extent),
                Handler::Operators(OperatorCall::GetTask) => {
                    cells.add_operated_task(&name, &Method::GET, "", agent, extent);
                }
                Handler::Operators(OperatorCall::CancelTask) => {
                    cells.add_operated_task(&name, &Method::POST, "/cancel", agent, extent);
                }
                // No request of theirs names anything of a caller: see `without_ids`.
                Handler::Grpc(
                    GrpcService::Health | GrpcService::Reflection | GrpcService::ReflectionAlpha,
                )
                | Handler::Operators(
                    OperatorCall::ListKeys
                    | OperatorCall::CreateKey
                    | OperatorCall::ListAgents
                    | OperatorCall::EnableAgent
                    | OperatorCall::DisableAgent
                    | OperatorCall::ListTasks
                    | OperatorCall::Counts
                    | OperatorCall::ListDeliveries
                    | OperatorCall::Resend
                    | OperatorCall::ListBackends
                    | OperatorCall::ShowConfig
                    | OperatorCall::ReadAudit,
                )
                | Handler::Card(_)
                | Handler::OpenApi
                | Handler::AgentList
                | Handler::PublishedKeys
                | Handler::ExtendedCard
                | Handler::HomePage
                | Handler::Liveness
                | Handler::Readiness
                | Handler::Metrics
                | Handler::Nothing => {}
            }
        }
    }
    cells.cells
}

/// The paths of a row with the agents they address, and how many cells their requests get.
fn paths(path: &Path) -> Vec<(String, &'static str, Extent)> {
    let [default, other, strict] = AGENTS;
    let of_agents = |at: &dyn Fn(&str) -> String| {
        vec![
            (at(default), default, Extent::Full),
            (at(other), other, Extent::One),
            (at(strict), strict, Extent::One),
        ]
    };
    match path {
        Path::Is(path) | Path::Resources(path) => vec![((*path).to_owned(), default, Extent::One)],
        Path::OfAgent(suffix) => of_agents(&|agent| format!("/a2a/{agent}{suffix}")),
        Path::Below(prefix, _) => vec![(format!("{prefix}{SKILL}"), default, Extent::One)],
        Path::Action(prefix, _, suffix) => vec![(format!("{prefix}{default}{suffix}"), default, Extent::One)],
        Path::BelowAgent(prefix) => of_agents(&|agent| format!("/a2a/{agent}{prefix}{SKILL}")),
        Path::ResourcesOfAgent => of_agents(&|agent| format!("/a2a/{agent}")),
        Path::Methods(service) => {
            let path = format!("/{}/", service.name());
            vec![(path.clone(), default, Extent::Full), (path, other, Extent::One)]
        }
        Path::Unknown => Vec::new(),
    }
}

impl Cells {
    /// Cells for every operation of a binding and every id that it may name.
    fn add_wire(&mut self, name: &str, agent: &'static str, extent: Extent, wire: &Wire) {
        if agent == AGENTS[2] {
            return self.add_strict_wire(name, wire);
        }
        for kind in operations().filter(|kind| wire.has(*kind)) {
            for field in probe::fields(kind).iter().filter(|field| wire.has_field(**field)) {
                let label = format!("{name} {kind:?} {field:?} {}", wire.dialect().label());
                let make = |wire: Wire, field: Field| -> Arc<dyn Fn(Principal) -> MakeProbe> {
                    Arc::new(move |asker| operation_probe(wire.clone(), kind, field, asker))
                };
                self.add(&label, Some(kind), *field, agent, extent, &*make(wire.clone(), *field));
                if wire.dialect() == Dialect::V1 {
                    self.add_other_tenant(&label, kind, *field, agent, wire);
                }
            }
        }
    }

    /// The agent with the profile that refuses unknown contexts: only messages with a context, to a task that waits.
    fn add_strict_wire(&mut self, name: &str, wire: &Wire) {
        let kind = OperationKind::SendMessage;
        let label = format!("{name} {kind:?} strict {}", wire.dialect().label());
        let wire = wire.clone();
        let make = move |asker| operation_probe(wire.clone(), kind, Field::Context, asker);
        self.add_pairs(&label, Some(kind), Field::Context, AGENTS[2], State::InputRequired, &make);
    }

    /// The owner asks for its own at another tenant.
    fn add_other_tenant(
        &mut self,
        label: &str,
        kind: OperationKind,
        field: Field,
        agent: &'static str,
        wire: &Wire,
    ) {
        let (name, wire) = match wire {
            // The agent is part of the name.
            Wire::Grpc { service, .. } => {
                (format!("acme/{agent}"), Wire::Grpc { service: *service, agent: None })
            }
            wire => ("acme".to_owned(), wire.clone()),
        };
        // These paths have no segment for a tenant: the first segment is an agent.
        if matches!(&wire, Wire::Rest { prefix, .. } if prefix == "/a2a") {
            return;
        }
        let asker = PAIRS[self.turn % PAIRS.len()].0;
        let (state, text) = (self.next_state(), asker.marker());
        self.turn += 1;
        let probe: MakeProbe = Arc::new(move |id, target, serial| {
            let of = Asker { text, dialect: Dialect::V1, serial };
            let operation = probe::operation(kind, field, id, target, &of);
            with_key(wire.probe(&probe::with_tenant(operation, &name)), field, id)
        });
        self.cells.push(Cell {
            label: format!("{label} of another tenant, {asker:?} {state:?}"),
            request: String::new(),
            kind: Some(kind),
            field,
            owner: Owner { principal: asker, agent },
            asker,
            is_other_tenant: true,
            state,
            probe,
        });
    }

    /// The cells of one request: pairs of callers, and the owner at another agent, with each state.
    fn add(
        &mut self,
        label: &str,
        kind: Option<OperationKind>,
        field: Field,
        agent: &'static str,
        extent: Extent,
        make: &dyn Fn(Principal) -> MakeProbe,
    ) {
        match extent {
            Extent::Full => {
                for state in self.states(field) {
                    self.add_pairs(label, kind, field, agent, state, make);
                    // A session belongs to its agent, a signature to no agent.
                    for asker in [Principal::Alice, Principal::Anonymous] {
                        let owner = Owner { principal: asker, agent: AGENTS[1] };
                        self.push(
                            &format!("{label} of another agent"),
                            kind,
                            field,
                            owner,
                            asker,
                            state,
                            make,
                        );
                    }
                }
            }
            // Where the same owner asks, the other paths of its agent are no other agent.
            Extent::One => {
                let (owner, asker) = PAIRS[self.turn % PAIRS.len()];
                let state = self.next_state();
                self.turn += 1;
                self.push(label, kind, field, Owner { principal: owner, agent }, asker, state, make);
            }
        }
    }

    fn add_pairs(
        &mut self,
        label: &str,
        kind: Option<OperationKind>,
        field: Field,
        agent: &'static str,
        state: State,
        make: &dyn Fn(Principal) -> MakeProbe,
    ) {
        for (owner, asker) in PAIRS {
            self.push(label, kind, field, Owner { principal: owner, agent }, asker, state, make);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "a cell has as many coordinates")]
    fn push(
        &mut self,
        label: &str,
        kind: Option<OperationKind>,
        field: Field,
        owner: Owner,
        asker: Principal,
        state: State,
        make: &dyn Fn(Principal) -> MakeProbe,
    ) {
        // Keys are about how a message is repeated: only a task that does not change is answered the same again.
        let state = match field {
            Field::Key | Field::MessageId if state == State::Working => State::InputRequired,
            _ => state,
        };
        let request = label.to_owned();
        let label = format!("{label}, {:?}: {owner:?} asked by {asker:?}, {state:?}", self.lifetime);
        self.cells.push(Cell {
            request,
            label,
            kind,
            field,
            owner,
            asker,
            is_other_tenant: false,
            state,
            probe: make(asker),
        });
    }

    /// The states of tasks that matter to a field.
    fn states(&mut self, field: Field) -> Vec<State> {
        match field {
            Field::Task
            | Field::NamedTask
            | Field::LastEvent
            | Field::Context
            | Field::NamedContext
            | Field::PushTask
            | Field::NamedPushTask => self.all_states().to_vec(),
            Field::Reference
            | Field::Key
            | Field::MessageId
            | Field::PageToken
            | Field::PushConfig
            | Field::OwnTaskPushConfig
            | Field::PushPageToken
            | Field::Session
            | Field::ApiKey
            | Field::Signed => vec![self.next_state()],
        }
    }

    fn all_states(&self) -> [State; 2] {
        match self.lifetime {
            Lifetime::Live => [State::Working, State::InputRequired],
            Lifetime::Stored => [State::InputRequired, State::Completed],
        }
    }

    fn next_state(&self) -> State {
        self.all_states()[self.turn / PAIRS.len() % 2]
    }
}

/// The request of an operation that names an id.
fn operation_probe(wire: Wire, kind: OperationKind, field: Field, asker: Principal) -> MakeProbe {
    Arc::new(move |id, target, serial| {
        let of = Asker { text: asker.marker(), dialect: wire.dialect(), serial };
        with_key(wire.probe(&probe::operation(kind, field, id, target, &of)), field, id)
    })
}

/// The headers of fields that are headers.
fn with_key(probe: Probe, field: Field, id: &str) -> Probe {
    match field {
        Field::Key => probe.with_header("idempotency-key", id),
        Field::LastEvent => probe.with_header("last-event-id", "1"),
        _ => probe,
    }
}
