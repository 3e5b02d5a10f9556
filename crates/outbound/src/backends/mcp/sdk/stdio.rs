//! A process as a transport: one message on each line, with request ids that the server cannot guess.
//!
//! The library numbers its requests from 0, so a server that confuses the numbers would complete the call of another
//! caller. On the wire a request has a random id instead, which is also its progress token. What a server sends for any
//! other id, or for an id a second time, belongs to no open request and is dropped.

use std::{collections::HashMap, io, ops::Range};

use rmcp::{
    RoleClient,
    model::{
        ClientJsonRpcMessage, ClientNotification, GetMeta, ProgressToken, RequestId, ServerJsonRpcMessage,
        ServerNotification, ServerResult, SubscriptionsListenResultMeta,
    },
    transport::{Transport, async_rw::AsyncRwTransport},
};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::backends::mcp::server::random;

/// Numbers up to this one are exact in every implementation of JSON.
const MAX_ID: u64 = 1 << 53;

pub(super) struct Stdio<R, W>
where
    R: AsyncRead,
    W: AsyncWrite,
{
    lines: AsyncRwTransport<RoleClient, R, W>,
    requests: OpenRequests,
}

impl<R, W> Stdio<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// A line has at most 16 MiB; a longer one is dropped.
    pub(super) fn new(stdout: R, stdin: W) -> Self {
        Self { lines: AsyncRwTransport::new_client(stdout, stdin), requests: OpenRequests::default() }
    }

    /// With open requests of these ids, for tests.
    pub(super) fn with_open_requests(stdout: R, stdin: W, ids: Range<i64>) -> Self {
        let numbers = |id| Numbers { id: RequestId::Number(id), token: None };
        let requests = OpenRequests(ids.map(|id| (id, numbers(id))).collect());
        Self { requests, ..Self::new(stdout, stdin) }
    }
}

impl<R, W> Transport<RoleClient> for Stdio<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        mut message: ClientJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.requests.sent(&mut message);
        self.lines.send(message)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let mut message = self.lines.receive().await?;
            if self.requests.received(&mut message).is_some() {
                return Some(message);
            }
            tracing::debug!("an MCP server sent a message for a request that is not open");
        }
    }

    fn close(&mut self) -> impl Future<Output = io::Result<()>> + Send {
        self.lines.close()
    }
}

/// The requests that are not answered yet, by their id on the wire.
#[derive(Default)]
struct OpenRequests(HashMap<i64, Numbers>);

/// How the library calls a request.
struct Numbers {
    id: RequestId,
    token: Option<ProgressToken>,
}

impl OpenRequests {
    /// Gives a message the ids of the wire.
    fn sent(&mut self, message: &mut ClientJsonRpcMessage) {
        match message {
            ClientJsonRpcMessage::Request(request) => {
                let wire = self.new_id();
                let id = std::mem::replace(&mut request.id, RequestId::Number(wire));
                let meta = request.request.get_meta_mut();
                let token = meta.get_progress_token();
                if token.is_some() {
                    meta.set_progress_token(ProgressToken(RequestId::Number(wire)));
                }
                self.0.insert(wire, Numbers { id, token });
            }
            ClientJsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &mut notification.notification {
                    let id = cancelled.params.request_id.as_ref();
                    let wire = self.0.iter().find(|(_, open)| Some(&open.id) == id).map(|(wire, _)| *wire);
                    if let Some(wire) = wire {
                        self.0.remove(&wire);
                        cancelled.params.request_id = Some(RequestId::Number(wire));
                    }
                }
            }
            ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Error(_) => {}
        }
    }

    /// Gives a message the ids of the library. `None`: it belongs to no open request.
    fn received(&mut self, message: &mut ServerJsonRpcMessage) -> Option<()> {
        match message {
            ServerJsonRpcMessage::Response(response) => {
                let open = self.0.remove(&number(&response.id)?)?;
                if let ServerResult::SubscriptionsListenResult(result) = &mut response.result {
                    result.meta = SubscriptionsListenResultMeta::new(open.id.clone());
                }
                response.id = open.id;
            }
            ServerJsonRpcMessage::Error(error) => {
                if let Some(id) = &mut error.id {
                    *id = self.0.remove(&number(id)?)?.id;
                }
            }
            ServerJsonRpcMessage::Notification(notification) => {
                self.notified(&mut notification.notification)?;
            }
            // It has an id of the server.
            ServerJsonRpcMessage::Request(_) => {}
        }
        Some(())
    }

    fn notified(&self, notification: &mut ServerNotification) -> Option<()> {
        match notification {
            ServerNotification::ProgressNotification(progress) => {
                let ProgressToken(token) = &progress.params.progress_token;
                progress.params.progress_token = self.find(token)?.token.clone()?;
            }
            ServerNotification::CancelledNotification(cancelled) => {
                // A subscription of ours, else a request of the server.
                if let Some(open) = cancelled.params.request_id.as_ref().and_then(|id| self.find(id)) {
                    cancelled.params.request_id = Some(open.id.clone());
                }
            }
            _ => {}
        }
        if let Some(subscription) = notification.get_meta().subscription_id() {
            let id = self.find(&subscription)?.id.clone();
            notification.get_meta_mut().set_subscription_id(id);
        }
        Some(())
    }

    fn find(&self, id: &RequestId) -> Option<&Numbers> {
        self.0.get(&number(id)?)
    }

    fn new_id(&self) -> i64 {
        loop {
            let id = (random() % MAX_ID).cast_signed();
            if !self.0.contains_key(&id) {
                return id;
            }
        }
    }
}

/// Some servers send a number back as a text.
fn number(id: &RequestId) -> Option<i64> {
    match id {
        RequestId::Number(number) => Some(*number),
        RequestId::String(text) => text.parse().ok(),
    }
}
