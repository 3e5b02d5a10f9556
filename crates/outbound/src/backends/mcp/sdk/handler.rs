//! Assigns what a server sends beside responses to the calls it belongs to.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationCapability,
        Implementation, JsonObject, ProgressNotificationParam, ProgressToken, RequestId, TASKS_EXTENSION_ID,
    },
    service::{InboundStreamOrigin, NotificationContext, RequestContext},
};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::{Asked, convert};
use crate::backends::mcp::messages::{Answer, Progress};

/// Notices for calls that are not registered yet: the library reveals the token only after it has sent the request.
const MAX_EARLY: usize = 64;
/// How long a question waits for the registration of its call, for the same reason.
const REGISTRATION_TIMEOUT: Duration = Duration::from_secs(1);
/// Questions of one call that nobody has read yet.
const MAX_QUESTIONS: usize = 4;

/// The open calls of a connection.
#[derive(Default)]
pub(super) struct Routes {
    calls: Mutex<Calls>,
    registered: Notify,
    /// There is one call at a time.
    exclusive: AtomicBool,
}

#[derive(Default)]
struct Calls {
    open: HashMap<RequestId, Route>,
    /// One for each token.
    early: VecDeque<(ProgressToken, Progress)>,
}

struct Route {
    token: ProgressToken,
    progress: watch::Sender<Option<Progress>>,
    questions: mpsc::Sender<Asked>,
}

/// What a call receives; it is unregistered when this is dropped.
pub(super) struct Registration {
    routes: Arc<Routes>,
    id: RequestId,
    pub(super) progress: watch::Receiver<Option<Progress>>,
    pub(super) questions: mpsc::Receiver<Asked>,
}

impl Routes {
    /// Whether there is one call at a time, so that every question belongs to it.
    pub(super) fn set_exclusive(&self, exclusive: bool) {
        self.exclusive.store(exclusive, Ordering::Relaxed);
    }

    pub(super) fn register(self: &Arc<Self>, id: RequestId, token: ProgressToken) -> Registration {
        let (progress, progress_receiver) = watch::channel(None);
        let (questions, question_receiver) = mpsc::channel(MAX_QUESTIONS);
        let mut calls = self.lock();
        if let Some(at) = calls.early.iter().position(|(early, _)| *early == token) {
            progress.send_replace(calls.early.remove(at).map(|(_, notice)| notice));
        }
        calls.open.insert(id.clone(), Route { token, progress, questions });
        drop(calls);
        self.registered.notify_waiters();
        Registration {
            routes: Arc::clone(self),
            id,
            progress: progress_receiver,
            questions: question_receiver,
        }
    }

    fn progress(&self, token: &ProgressToken, notice: Progress) {
        let mut calls = self.lock();
        match calls.open.values().find(|route| route.token == *token) {
            Some(route) => {
                // Notices are handled concurrently, so an older one can arrive later.
                route.progress.send_if_modified(|last| {
                    let newer = last.as_ref().is_none_or(|last| last.progress <= notice.progress);
                    if newer {
                        *last = Some(notice);
                    }
                    newer
                });
            }
            None => {
                calls.early.retain(|(early, _)| early != token);
                if calls.early.len() == MAX_EARLY {
                    calls.early.pop_front();
                }
                calls.early.push_back((token.clone(), notice));
            }
        }
    }

    /// The call that a question belongs to: the one on whose stream it came, else the open one if there is never
    /// another. It is not guessed: the question of one caller must not be answered by another.
    async fn asking_call(&self, origin: Option<&InboundStreamOrigin>) -> Option<mpsc::Sender<Asked>> {
        let exclusive = self.exclusive.load(Ordering::Relaxed);
        let find = || {
            let calls = self.lock();
            let route = match origin {
                Some(InboundStreamOrigin::OutboundRequest(id)) => calls.open.get(id),
                _ if exclusive => calls.open.values().next(),
                _ => None,
            };
            route.map(|route| route.questions.clone())
        };
        let wait = async {
            loop {
                let registered = self.registered.notified();
                if let Some(found) = find() {
                    return found;
                }
                registered.await;
            }
        };
        tokio::time::timeout(REGISTRATION_TIMEOUT, wait).await.ok()
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.routes.lock().open.remove(&self.id);
    }
}

/// Our side of a connection. Sampling, roots and logging are not advertised.
pub(super) struct Handler {
    pub(super) routes: Arc<Routes>,
    /// Notified when the server's tools have changed.
    pub(super) tools_changed: Arc<Notify>,
    pub(super) elicitation: bool,
    /// Fires when the connection is to end.
    pub(super) shutdown: CancellationToken,
}

impl ClientHandler for Handler {
    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let cancel = Ok(convert::elicit_result(Answer::Cancel));
        let origin = context.extensions.get::<InboundStreamOrigin>();
        let Ok(question) = convert::question(request) else { return cancel };
        let (answer, answered) = oneshot::channel();
        let Some(call) = self.routes.asking_call(origin).await.filter(|_| self.elicitation) else {
            tracing::debug!("an MCP server asks outside of a call; the question is cancelled");
            return cancel;
        };
        if call.try_send(Asked { question, answer }).is_err() {
            return cancel;
        }
        tokio::select! {
            answer = answered => Ok(convert::elicit_result(answer.unwrap_or(Answer::Cancel))),
            () = context.ct.cancelled() => cancel,
            () = self.shutdown.cancelled() => cancel,
        }
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let token = params.progress_token.clone();
        self.routes.progress(&token, convert::progress(params));
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.tools_changed.notify_one();
    }

    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.extensions = Some([(TASKS_EXTENSION_ID.to_owned(), JsonObject::new())].into());
        if self.elicitation {
            let both =
                ElicitationCapability::new().with_form(Default::default()).with_url(Default::default());
            capabilities.elicitation = Some(both);
        }
        ClientConfig::new(capabilities, Implementation::new("a2ad", env!("CARGO_PKG_VERSION")))
    }
}
