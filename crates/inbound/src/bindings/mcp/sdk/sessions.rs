//! Sessions of clients before 2026-07-28, each bound to the caller that began it.
//!
//! To any other caller a session does not exist. A session whose streams are all closed ends when it has not been used
//! for some time; that is looked at when a session begins, so that no timer is needed. The library's own timer ends
//! sessions during silent calls, so it is off.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use engine::Scope;
use futures_util::Stream;
use http::HeaderValue;
use rmcp::{
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::streamable_http_server::{
        SessionId, SessionManager,
        session::{
            ServerSseMessage,
            local::{LocalSessionManager, LocalSessionManagerError},
        },
    },
};

/// How long a session without open streams is kept.
const IDLE: Duration = Duration::from_secs(30 * 60);
/// The most sessions of all callers.
const MAX_SESSIONS: usize = 1_024;

/// The sessions of all callers.
pub(super) struct Sessions {
    local: LocalSessionManager,
    owned: Mutex<HashMap<SessionId, Session>>,
}

struct Session {
    owner: Scope,
    used: Instant,
    /// Cloned by every open stream.
    open: Arc<()>,
}

/// Keeps a session in use.
pub(super) struct OpenSession {
    _open: Arc<()>,
}

impl Default for Sessions {
    fn default() -> Self {
        let mut local = LocalSessionManager::default();
        local.session_config.keep_alive = None;
        Self { local, owned: Mutex::default() }
    }
}

impl Sessions {
    /// Ends all sessions.
    pub(super) fn close_all(&self) {
        self.lock().clear();
        // Nobody holds the lock for longer than a lookup. A session whose handle is dropped ends.
        if let Ok(mut handles) = self.local.sessions.try_write() {
            handles.clear();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Session>> {
        self.owned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes sessions that are no longer in use, and the one of this caller that was used longest ago if there are too
    /// many. An error if all are in use or belong to others.
    fn make_room(&self, caller: &Scope) -> Result<Vec<SessionId>, SessionError> {
        let mut owned = self.lock();
        let now = Instant::now();
        let is_closed = |session: &Session| Arc::strong_count(&session.open) == 1;
        let expired = |session: &Session| is_closed(session) && now.duration_since(session.used) > IDLE;
        let mut ended: Vec<SessionId> =
            owned.extract_if(|_, session| expired(session)).map(|(id, _)| id).collect();
        if owned.len() >= MAX_SESSIONS {
            let oldest = owned
                .iter()
                .filter(|(_, session)| session.owner == *caller && is_closed(session))
                .min_by_key(|(_, session)| session.used)
                .map(|(id, _)| id.clone())
                .ok_or(SessionError::TooMany)?;
            owned.remove(&oldest);
            ended.push(oldest);
        }
        Ok(ended)
    }
}

/// The sessions as one caller sees them.
pub(super) struct CallerSessions {
    all: Arc<Sessions>,
    caller: Scope,
}

/// Why a session cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionError {
    #[error("there are too many sessions")]
    TooMany,
    #[error(transparent)]
    Library(#[from] LocalSessionManagerError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl CallerSessions {
    pub(super) fn new(all: Arc<Sessions>, caller: Scope) -> Self {
        Self { all, caller }
    }

    /// Marks the caller's session with this id as in use.
    pub(super) fn open(&self, id: &HeaderValue) -> Option<OpenSession> {
        let mut owned = self.all.lock();
        let session = owned.get_mut(id.to_str().ok()?).filter(|session| session.owner == self.caller)?;
        session.used = Instant::now();
        Some(OpenSession { _open: Arc::clone(&session.open) })
    }

    fn owns(&self, id: &SessionId) -> bool {
        self.all.lock().get(id).is_some_and(|session| session.owner == self.caller)
    }
}

impl SessionManager for CallerSessions {
    type Error = SessionError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        for ended in self.all.make_room(&self.caller)? {
            self.all.local.close_session(&ended).await?;
        }
        let (id, transport) = self.all.local.create_session().await?;
        let session = Session { owner: self.caller.clone(), used: Instant::now(), open: Arc::default() };
        self.all.lock().insert(id.clone(), session);
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        Ok(self.all.local.initialize_session(id, message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        Ok(self.owns(id) && self.all.local.has_session(id).await?)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        if self.owns(id) {
            self.all.lock().remove(id);
            self.all.local.close_session(id).await?;
        }
        Ok(())
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        Ok(self.all.local.create_stream(id, message).await?)
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        Ok(self.all.local.accept_message(id, message).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        Ok(self.all.local.create_standalone_stream(id).await?)
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        Ok(self.all.local.resume(id, last_event_id).await?)
    }
}
