//! `official-sdk --listen ADDR`: an echo agent on the official Rust SDK with its in-memory task store.
//!
//! Assembled as in the SDK's example: its default handler, its JSON-RPC router, `axum::serve`. So it runs without
//! `TCP_NODELAY`, which the SDK leaves to the caller and its example does not set.

use std::sync::Arc;

use a2a::{
    A2AError, Artifact, Message, Part, StreamResponse, TaskArtifactUpdateEvent, TaskState, TaskStatus,
    TaskStatusUpdateEvent,
};
use a2a_server::{AgentExecutor, DefaultRequestHandler, ExecutorContext, InMemoryTaskStore};
use a2ad_bench::args::Args;
use anyhow::Context;
use futures_util::stream::{self, BoxStream};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut args = Args::from_env()?;
    let address: String = args.required("--listen")?;
    args.finish()?;
    let handler = Arc::new(DefaultRequestHandler::new(Echo, InMemoryTaskStore::new()));
    let router = a2a_server::jsonrpc::jsonrpc_router(handler);
    let listener =
        TcpListener::bind(&address).await.with_context(|| format!("cannot listen on {address}"))?;
    axum::serve(listener, router).await.context("the listener failed")
}

/// Reports working, returns the text as one artifact, and completes.
struct Echo;

impl AgentExecutor for Echo {
    fn execute(&self, turn: ExecutorContext) -> BoxStream<'static, Result<StreamResponse, A2AError>> {
        let text = turn.message.as_ref().and_then(Message::text).unwrap_or_default();
        let artifact = StreamResponse::ArtifactUpdate(TaskArtifactUpdateEvent {
            task_id: turn.task_id.clone(),
            context_id: turn.context_id.clone(),
            artifact: Artifact {
                artifact_id: "echo-result".into(),
                name: Some("echo-result".into()),
                description: None,
                parts: vec![Part::text(text)],
                metadata: None,
                extensions: None,
            },
            append: None,
            last_chunk: Some(true),
            metadata: None,
        });
        let events =
            [status_update(&turn, TaskState::Working), artifact, status_update(&turn, TaskState::Completed)];
        Box::pin(stream::iter(events.map(Ok)))
    }

    fn cancel(&self, turn: ExecutorContext) -> BoxStream<'static, Result<StreamResponse, A2AError>> {
        Box::pin(stream::iter([Ok(status_update(&turn, TaskState::Canceled))]))
    }
}

/// A status without a timestamp: the SDK fills it in.
fn status_update(turn: &ExecutorContext, state: TaskState) -> StreamResponse {
    StreamResponse::StatusUpdate(TaskStatusUpdateEvent {
        task_id: turn.task_id.clone(),
        context_id: turn.context_id.clone(),
        status: TaskStatus { state, message: None, timestamp: None },
        metadata: None,
    })
}
