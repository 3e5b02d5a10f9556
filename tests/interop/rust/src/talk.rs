//! Clients of the server under test, made by the SDK from the agent cards the server publishes; what the tests say to
//! an agent, and how they read its answers, in the SDK's own types.

use std::{future::Future, sync::Arc, time::Duration};

use a2a::{
    A2AError, AgentCard, Artifact, CancelTaskRequest, GetTaskRequest, Message, Part, Role,
    SendMessageConfiguration, SendMessageRequest, SendMessageResponse, StreamResponse,
    SubscribeToTaskRequest, TRANSPORT_PROTOCOL_GRPC, TRANSPORT_PROTOCOL_HTTP_JSON,
    TRANSPORT_PROTOCOL_JSONRPC, Task, TaskArtifactUpdateEvent, TaskState,
};
use a2a_client::{
    A2AClient, A2AClientFactory, BoxStream, Transport, agent_card::AgentCardResolver,
    jsonrpc::JsonRpcTransportFactory, rest::RestTransportFactory,
};
use a2a_grpc::GrpcTransportFactory;
use futures_util::StreamExt as _;

/// A client as the SDK makes it.
pub(crate) type Client = A2AClient<Box<dyn Transport>>;
/// A stream as the SDK makes it.
pub(crate) type Events = BoxStream<'static, Result<StreamResponse, A2AError>>;

/// How long a test may take before it counts as hung; no assertion depends on it.
const LIMIT: Duration = Duration::from_secs(60);

/// A way to put calls on the wire, by its name on a card.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binding(pub(crate) &'static str);

pub(crate) const BINDINGS: [Binding; 3] = [
    Binding(TRANSPORT_PROTOCOL_JSONRPC),
    Binding(TRANSPORT_PROTOCOL_HTTP_JSON),
    Binding(TRANSPORT_PROTOCOL_GRPC),
];

/// Runs a test once for each binding.
pub(crate) async fn each<F: Future<Output = ()>>(test: impl Fn(Binding) -> F) {
    for binding in BINDINGS {
        eprintln!("{binding:?}");
        tokio::time::timeout(LIMIT, test(binding)).await.expect("the test did not end in time");
    }
}

/// The server's address, without a slash at the end.
pub(crate) fn url() -> String {
    std::env::var("A2AD_URL").expect("A2AD_URL names the server").trim_end_matches('/').to_owned()
}

pub(crate) async fn card(path: &str) -> AgentCard {
    AgentCardResolver::new(None).resolve(&format!("{}{path}", url())).await.unwrap()
}

impl Binding {
    /// A client of an agent, by its card.
    pub(crate) async fn client(self, agent: &str) -> Client {
        self.client_at(&format!("/a2a/{agent}")).await
    }

    /// A client of the agent whose card lies below this path.
    pub(crate) async fn client_at(self, path: &str) -> Client {
        let builder = A2AClientFactory::builder().no_defaults();
        let builder = match self.0 {
            TRANSPORT_PROTOCOL_JSONRPC => builder.register(Arc::new(JsonRpcTransportFactory::new(None))),
            TRANSPORT_PROTOCOL_HTTP_JSON => builder.register(Arc::new(RestTransportFactory::new(None))),
            _ => builder.register(Arc::new(GrpcTransportFactory::new())),
        };
        builder.build().create_from_card(&card(path).await).await.unwrap()
    }
}

/// A user's text, as a first message or as the next one of a task.
pub(crate) fn say(text: &str, task: Option<&Task>) -> SendMessageRequest {
    message(vec![Part::text(text)], task)
}

pub(crate) fn message(parts: Vec<Part>, task: Option<&Task>) -> SendMessageRequest {
    let mut message = Message::new(Role::User, parts);
    message.task_id = task.map(|task| task.id.clone());
    message.context_id = task.map(|task| task.context_id.clone());
    SendMessageRequest { message, configuration: None, metadata: None, tenant: None }
}

/// Has the answer come at once, whatever becomes of the task.
pub(crate) fn at_once(req: SendMessageRequest) -> SendMessageRequest {
    let configuration = SendMessageConfiguration {
        accepted_output_modes: None,
        task_push_notification_config: None,
        history_length: None,
        return_immediately: Some(true),
    };
    SendMessageRequest { configuration: Some(configuration), ..req }
}

/// Sends without streaming; the answer must be a task.
pub(crate) async fn ask(client: &Client, req: &SendMessageRequest) -> Task {
    match client.send_message(req).await.unwrap() {
        SendMessageResponse::Task(task) => task,
        SendMessageResponse::Message(message) => panic!("a message where a task was due: {message:?}"),
    }
}

pub(crate) async fn get(client: &Client, task: &Task) -> Result<Task, A2AError> {
    client.get_task(&GetTaskRequest { id: task.id.clone(), history_length: None, tenant: None }).await
}

pub(crate) async fn cancel(client: &Client, task: &Task) -> Result<Task, A2AError> {
    client.cancel_task(&CancelTaskRequest { id: task.id.clone(), metadata: None, tenant: None }).await
}

pub(crate) async fn watch(client: &Client, task: &Task) -> Result<Events, A2AError> {
    client.subscribe_to_task(&SubscribeToTaskRequest { id: task.id.clone(), tenant: None }).await
}

/// A stream to its end.
pub(crate) async fn collect(events: Events) -> Vec<StreamResponse> {
    events.map(Result::unwrap).collect().await
}

/// What a stream that may be refused at its opening or in its first event was refused with.
pub(crate) async fn refusal(opened: Result<Events, A2AError>) -> A2AError {
    match opened {
        Err(error) => error,
        Ok(mut events) => match events.next().await {
            Some(Err(error)) => error,
            other => panic!("a stream where a refusal was due: {other:?}"),
        },
    }
}

/// The task a stream tells: its first frame, with every later one merged as the protocol says.
pub(crate) fn fold(events: &[StreamResponse]) -> Task {
    let mut task = first(events).clone();
    for event in &events[1..] {
        match event {
            StreamResponse::StatusUpdate(update) => {
                assert_eq!((&update.task_id, &update.context_id), (&task.id, &task.context_id));
                task.status = update.status.clone();
            }
            StreamResponse::ArtifactUpdate(update) => {
                assert_eq!((&update.task_id, &update.context_id), (&task.id, &task.context_id));
                merge(task.artifacts.get_or_insert_default(), update);
            }
            other => panic!("not an event of a task under way: {other:?}"),
        }
    }
    task
}

fn merge(artifacts: &mut Vec<Artifact>, update: &TaskArtifactUpdateEvent) {
    let known = artifacts.iter_mut().find(|artifact| artifact.artifact_id == update.artifact.artifact_id);
    match known {
        Some(artifact) if update.append == Some(true) => artifact.parts.extend(update.artifact.parts.clone()),
        Some(artifact) => *artifact = update.artifact.clone(),
        None => artifacts.push(update.artifact.clone()),
    }
}

/// The task that every stream begins with.
pub(crate) fn first(events: &[StreamResponse]) -> &Task {
    match events.first() {
        Some(StreamResponse::Task(task)) => task,
        other => panic!("a stream begins with a task, not with {other:?}"),
    }
}

pub(crate) fn chunks(events: &[StreamResponse]) -> Vec<&TaskArtifactUpdateEvent> {
    let mut chunks = Vec::new();
    for event in events {
        if let StreamResponse::ArtifactUpdate(update) = event {
            chunks.push(update);
        }
    }
    chunks
}

/// The states of a stream's status updates, in order.
pub(crate) fn states(events: &[StreamResponse]) -> Vec<TaskState> {
    let state = |event: &StreamResponse| match event {
        StreamResponse::StatusUpdate(update) => Some(update.status.state.clone()),
        _ => None,
    };
    events.iter().filter_map(state).collect()
}

/// The last event, and no other, ends the task.
pub(crate) fn assert_ends_once(events: &[StreamResponse], state: &TaskState) {
    assert!(matches!(events.last(), Some(StreamResponse::StatusUpdate(_))), "{events:?}");
    let ends: Vec<TaskState> = states(events).into_iter().filter(TaskState::is_terminal).collect();
    assert_eq!(ends, std::slice::from_ref(state));
}

/// The text of each artifact, however it was cut into parts.
pub(crate) fn texts(task: &Task) -> Vec<String> {
    let text = |artifact: &Artifact| artifact.parts.iter().filter_map(Part::as_text).collect();
    task.artifacts.iter().flatten().map(text).collect()
}
