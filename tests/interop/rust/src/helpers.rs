//! Helpers of the tests: SDK clients created from the agent cards that the server under test publishes, requests to
//! its agents, and accessors for the responses, all in the SDK's own types.

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

/// A client as the SDK creates it.
pub(crate) type Client = A2AClient<Box<dyn Transport>>;
/// A stream as the SDK creates it.
pub(crate) type Events = BoxStream<'static, Result<StreamResponse, A2AError>>;

/// Timeout after which a test counts as hung; no assertion depends on it.
const LIMIT: Duration = Duration::from_secs(60);

/// A protocol binding, by its name on a card.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Binding(pub(crate) &'static str);

pub(crate) const BINDINGS: [Binding; 3] = [
    Binding(TRANSPORT_PROTOCOL_JSONRPC),
    Binding(TRANSPORT_PROTOCOL_HTTP_JSON),
    Binding(TRANSPORT_PROTOCOL_GRPC),
];

/// Runs a test once for each binding.
pub(crate) async fn for_each_binding<F: Future<Output = ()>>(test: impl Fn(Binding) -> F) {
    for binding in BINDINGS {
        eprintln!("{binding:?}");
        tokio::time::timeout(LIMIT, test(binding)).await.expect("the test timed out");
    }
}

/// The server's URL, without a trailing slash.
pub(crate) fn url() -> String {
    std::env::var("A2AD_URL")
        .expect("A2AD_URL must be set to the URL of the server")
        .trim_end_matches('/')
        .to_owned()
}

pub(crate) async fn card(path: &str) -> AgentCard {
    AgentCardResolver::new(None).resolve(&format!("{}{path}", url())).await.unwrap()
}

impl Binding {
    /// A client of an agent, by its card.
    pub(crate) async fn client(self, agent: &str) -> Client {
        self.client_at(&format!("/a2a/{agent}")).await
    }

    /// A client of the agent whose card is below this path.
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

/// A request with a text of the user: the first message of a new task, or the next one of `task`.
pub(crate) fn user_message(text: &str, task: Option<&Task>) -> SendMessageRequest {
    message(vec![Part::text(text)], task)
}

pub(crate) fn message(parts: Vec<Part>, task: Option<&Task>) -> SendMessageRequest {
    let mut message = Message::new(Role::User, parts);
    message.task_id = task.map(|task| task.id.clone());
    message.context_id = task.map(|task| task.context_id.clone());
    SendMessageRequest { message, configuration: None, metadata: None, tenant: None }
}

/// Makes the send non-blocking.
pub(crate) fn non_blocking(req: SendMessageRequest) -> SendMessageRequest {
    let configuration = SendMessageConfiguration {
        accepted_output_modes: None,
        task_push_notification_config: None,
        history_length: None,
        return_immediately: Some(true),
    };
    SendMessageRequest { configuration: Some(configuration), ..req }
}

/// Sends without streaming; the response must be a task.
pub(crate) async fn send(client: &Client, req: &SendMessageRequest) -> Task {
    match client.send_message(req).await.unwrap() {
        SendMessageResponse::Task(task) => task,
        SendMessageResponse::Message(message) => panic!("expected a task, got a message: {message:?}"),
    }
}

pub(crate) async fn get(client: &Client, task: &Task) -> Result<Task, A2AError> {
    client.get_task(&GetTaskRequest { id: task.id.clone(), history_length: None, tenant: None }).await
}

pub(crate) async fn cancel(client: &Client, task: &Task) -> Result<Task, A2AError> {
    client.cancel_task(&CancelTaskRequest { id: task.id.clone(), metadata: None, tenant: None }).await
}

pub(crate) async fn subscribe(client: &Client, task: &Task) -> Result<Events, A2AError> {
    client.subscribe_to_task(&SubscribeToTaskRequest { id: task.id.clone(), tenant: None }).await
}

/// Reads a stream to its end.
pub(crate) async fn collect(events: Events) -> Vec<StreamResponse> {
    events.map(Result::unwrap).collect().await
}

/// The error of a stream that is rejected when it is opened or in its first event.
pub(crate) async fn stream_error(opened: Result<Events, A2AError>) -> A2AError {
    match opened {
        Err(error) => error,
        Ok(mut events) => match events.next().await {
            Some(Err(error)) => error,
            other => panic!("expected an error, got a stream: {other:?}"),
        },
    }
}

/// The task that the events of a stream describe: the first frame, with every later one merged by the rules of the
/// protocol.
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
            other => panic!("unexpected event after the first: {other:?}"),
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
        other => panic!("expected a task as the first event, got {other:?}"),
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

/// Asserts that the last event, and no other, ends the task.
pub(crate) fn assert_ends_once(events: &[StreamResponse], state: &TaskState) {
    assert!(matches!(events.last(), Some(StreamResponse::StatusUpdate(_))), "{events:?}");
    let ends: Vec<TaskState> = states(events).into_iter().filter(TaskState::is_terminal).collect();
    assert_eq!(ends, std::slice::from_ref(state));
}

/// The text of each artifact, its parts joined.
pub(crate) fn texts(task: &Task) -> Vec<String> {
    let text = |artifact: &Artifact| artifact.parts.iter().filter_map(Part::as_text).collect();
    task.artifacts.iter().flatten().map(text).collect()
}
