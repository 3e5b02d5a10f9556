//! A call that was sent, until it ends.

use rmcp::{RoleClient, ServiceError, service::RequestHandle};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Asked, CANCEL_TIMEOUT, convert, handler::Registration};
use crate::backends::mcp::messages::{CallError, Progress, Response};

/// A call that was sent. Dropped before its end, it is cancelled; what the server sends for it later is ignored.
pub(crate) struct OpenCall {
    /// `None` after the end.
    handle: Option<RequestHandle<RoleClient>>,
    registration: Registration,
    cancellations: Cancellations,
}

/// What happens to an open call.
pub(crate) enum Event {
    Progress(Progress),
    Asked(Asked),
    /// The last event.
    Ended(Result<Response, CallError>),
}

/// Calls that were dropped before their end.
pub(super) type Cancellations = mpsc::UnboundedSender<RequestHandle<RoleClient>>;

impl OpenCall {
    pub(super) fn new(
        handle: RequestHandle<RoleClient>,
        registration: Registration,
        cancellations: Cancellations,
    ) -> Self {
        Self { handle: Some(handle), registration, cancellations }
    }

    /// The next event. Cancel safe. Not to be called after the last one.
    pub(crate) async fn next(&mut self) -> Event {
        let Some(handle) = &mut self.handle else { return Event::Ended(Err(CallError::Closed)) };
        let Registration { progress, questions, .. } = &mut self.registration;
        tokio::select! {
            // Progress comes last, so that a server which reports without a pause delays nothing else.
            biased;
            Some(asked) = questions.recv() => Event::Asked(asked),
            result = &mut handle.rx => {
                self.handle = None;
                let result = result.unwrap_or(Err(ServiceError::TransportClosed));
                Event::Ended(result.map_err(convert::call_error).and_then(convert::response))
            }
            Ok(()) = progress.changed() => match progress.borrow_and_update().clone() {
                Some(notice) => Event::Progress(notice),
                None => Event::Ended(Err(CallError::Closed)),
            },
        }
    }

    /// The last progress, if it was not returned by [`next`](Self::next).
    pub(crate) fn unread_progress(&mut self) -> Option<Progress> {
        let progress = &mut self.registration.progress;
        if progress.has_changed().unwrap_or_default() { progress.borrow_and_update().clone() } else { None }
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            // Fails only when the connection has ended.
            let _ = self.cancellations.send(handle);
        }
    }
}

/// Sends a cancellation for each call that was dropped before its end.
pub(super) async fn send_cancellations(
    mut cancelled: mpsc::UnboundedReceiver<RequestHandle<RoleClient>>,
    closed: CancellationToken,
) {
    loop {
        let handle = tokio::select! {
            handle = cancelled.recv() => handle,
            () = closed.cancelled() => return,
        };
        let Some(handle) = handle else { return };
        let cancel = handle.cancel(Some("the caller no longer waits".into()));
        let _ = tokio::time::timeout(CANCEL_TIMEOUT, cancel).await;
    }
}
