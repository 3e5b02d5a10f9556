//! Sessions of clients before 2026-07-28, each bound to the caller that began it.
//!
//! To any other caller a session does not exist. A session whose streams are all closed ends when it has not been used
//! for some time; that is looked at when a session begins, so that no timer is needed. The library's own timer ends
//! sessions during silent calls, so it is off.
//!
//! A session ends too when its caller may not have it any more. What counts is the credential that was last used in it. One
//! that has only expired leaves time to go on with a new one.

use std::{
    cmp::Reverse,
    collections::HashMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use engine::{Scope, StreamEnd};
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
use tokio::{sync::watch, task::JoinSet, time::sleep};

use crate::access::access_watch::AccessWatch;

/// How long a session without open streams is kept.
const IDLE: Duration = Duration::from_secs(30 * 60);
/// How long a session is kept after the credential that was last used in it has expired.
const RESUME_TIME: Duration = Duration::from_secs(60);
/// How long requests in progress may take to send their errors when a session is revoked.
const REVOKE_TIME: Duration = Duration::from_millis(500);
/// How often that is looked at.
const REVOKE_INTERVAL: Duration = Duration::from_millis(20);
/// The most sessions of all callers.
const MAX_SESSIONS: usize = 1_024;

/// The sessions of all callers.
pub(super) struct Sessions {
    local: LocalSessionManager,
    owned: Mutex<HashMap<SessionId, Session>>,
}

struct Session {
    owner: Scope,
    /// When it was last in use. Cloned by everything that uses it.
    used: Arc<Mutex<Instant>>,
    /// `None` until its credential is watched.
    credential: Option<SessionCredential>,
}

/// The credential that was last used in a session.
struct SessionCredential {
    last: watch::Sender<AccessWatch>,
    /// Ends the session with it.
    _watching: JoinSet<()>,
}

impl Session {
    fn new(owner: Scope) -> Self {
        Self { owner, used: Arc::new(Mutex::new(Instant::now())), credential: None }
    }

    fn use_credential(&self, used: &AccessWatch) {
        if let Some(credential) = &self.credential {
            credential.last.send_if_modified(|last| {
                let is_other = !last.has_credentials_of(used);
                if is_other {
                    *last = used.clone();
                }
                is_other
            });
        }
    }

    /// Since when nothing uses it; `None` while something does.
    fn idle_since(&self) -> Option<Instant> {
        let is_idle = Arc::strong_count(&self.used) == 1;
        is_idle.then(|| *self.used.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Keeps a session in use until it is dropped.
pub(super) struct OpenSession(Arc<Mutex<Instant>>);

impl Drop for OpenSession {
    fn drop(&mut self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
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

    /// Removes sessions that have not been used for long, and if there are too many, the one that is idle for longest of
    /// the caller who has most of them: nobody can take the sessions of all others. An error if all are in use.
    fn make_room(&self) -> Result<Vec<SessionId>, SessionError> {
        let mut owned = self.lock();
        let now = Instant::now();
        let expired =
            |session: &Session| session.idle_since().is_some_and(|since| now.duration_since(since) > IDLE);
        let mut ended: Vec<SessionId> =
            owned.extract_if(|_, session| expired(session)).map(|(id, _)| id).collect();
        if owned.len() >= MAX_SESSIONS {
            let mut counts: HashMap<&Scope, usize> = HashMap::new();
            owned.values().for_each(|session| *counts.entry(&session.owner).or_default() += 1);
            let idle = owned.iter().filter_map(|(id, session)| {
                Some(((Reverse(counts[&session.owner]), session.idle_since()?), id))
            });
            let first = idle.min_by_key(|(rank, _)| *rank).map(|(_, id)| id.clone());
            let first = first.ok_or(SessionError::TooMany)?;
            owned.remove(&first);
            ended.push(first);
        }
        Ok(ended)
    }
}

impl Sessions {
    /// Ends a session whose caller may not have it any more. New requests do not find it.
    async fn revoke(&self, id: &SessionId) {
        // Held to the end, because it owns the task that this runs in.
        let Some(session) = self.lock().remove(id) else { return };
        let begun = Instant::now();
        while session.idle_since().is_none() && begun.elapsed() < REVOKE_TIME {
            sleep(REVOKE_INTERVAL).await;
        }
        if let Err(error) = self.local.close_session(id).await {
            tracing::debug!(%error, "a revoked session was not closed");
        }
    }

    fn is_idle(&self, id: &SessionId) -> bool {
        self.lock().get(id).is_none_or(|session| session.idle_since().is_some())
    }
}

/// Ends a session with the credential that was last used in it. One that has expired leaves calls in progress their answer,
/// and the client time to go on with a new one.
async fn end_with_credential(
    sessions: Weak<Sessions>,
    id: SessionId,
    mut last: watch::Receiver<AccessWatch>,
) {
    loop {
        let current = last.borrow_and_update().clone();
        let end = tokio::select! {
            end = current.ended() => end,
            changed = last.changed() => match changed {
                Ok(()) => continue,
                Err(_) => return,
            },
        };
        if let StreamEnd::Expired = end {
            tokio::select! {
                () = sleep(RESUME_TIME) => {}
                _ = last.changed() => continue,
            }
        }
        let Some(sessions) = sessions.upgrade() else { return };
        let is_revoked = matches!(end, StreamEnd::Revoked(_));
        if is_revoked || sessions.is_idle(&id) {
            return sessions.revoke(&id).await;
        }
    }
}

/// The session of a caller with this id.
fn find<'a>(owned: &'a HashMap<SessionId, Session>, id: &str, caller: &Scope) -> Option<&'a Session> {
    owned.get(id).filter(|session| session.owner == *caller)
}

/// The sessions as one caller sees them.
pub(super) struct CallerSessions {
    all: Arc<Sessions>,
    caller: Scope,
    credential: AccessWatch,
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
    pub(super) fn new(all: Arc<Sessions>, caller: Scope, credential: AccessWatch) -> Self {
        Self { all, caller, credential }
    }

    /// A new session of the caller.
    fn session(&self, id: &SessionId) -> Session {
        let (sender, last) = watch::channel(self.credential.clone());
        let mut watching = JoinSet::new();
        watching.spawn(end_with_credential(Arc::downgrade(&self.all), id.clone(), last));
        let credential = SessionCredential { last: sender, _watching: watching };
        Session { credential: Some(credential), ..Session::new(self.caller.clone()) }
    }

    /// Marks the caller's session with this id as in use.
    pub(super) fn open(&self, id: &HeaderValue) -> Option<OpenSession> {
        let owned = self.all.lock();
        let session = find(&owned, id.to_str().ok()?, &self.caller)?;
        session.use_credential(&self.credential);
        Some(OpenSession(Arc::clone(&session.used)))
    }

    fn owns(&self, id: &SessionId) -> bool {
        find(&self.all.lock(), id, &self.caller).is_some()
    }
}

impl SessionManager for CallerSessions {
    type Error = SessionError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        for ended in self.all.make_room()? {
            self.all.local.close_session(&ended).await?;
        }
        let (id, transport) = self.all.local.create_session().await?;
        self.all.lock().insert(id.clone(), self.session(&id));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_table_gives_up_an_idle_session_of_who_has_most() {
        let [few, many] = ["few", "many"].map(|tenant| Scope::anonymous(tenant, "agent"));
        let sessions = Sessions::default();
        sessions.lock().insert("oldest".into(), Session::new(few));
        for number in 1..MAX_SESSIONS {
            sessions.lock().insert(format!("{number}").into(), Session::new(many.clone()));
        }
        let open =
            |id| find(&sessions.lock(), id, &many).map(|session| OpenSession(Arc::clone(&session.used)));
        let in_use = open("1").unwrap();
        let ended = sessions.make_room().unwrap();
        assert_eq!(ended.iter().map(AsRef::as_ref).collect::<Vec<&str>>(), ["2"]);
        assert!(sessions.make_room().unwrap().is_empty());
        assert!(open("oldest").is_none(), "it belongs to another caller");
        drop(in_use);
    }
}
