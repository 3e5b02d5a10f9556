//! A function over HTTP that counts its calls, for checks that a request did not reach an agent.

use std::sync::{Arc, Mutex, PoisonError};

use super::{CheckError, loopback::LoopbackServer};

/// Returns `{"counted":true}` at every path until this value is dropped.
pub(crate) struct CountedFunction {
    server: LoopbackServer,
    /// Method and path of every call.
    calls: Arc<Mutex<Vec<String>>>,
}

impl CountedFunction {
    pub(crate) async fn start() -> Result<Self, CheckError> {
        let calls = Arc::<Mutex<Vec<String>>>::default();
        let log = Arc::clone(&calls);
        let server = LoopbackServer::start(move |request| {
            log.lock().unwrap_or_else(PoisonError::into_inner).push(request.line.clone());
            request.respond(r#"{"counted":true}"#)
        });
        Ok(Self { server: server.await?, calls })
    }

    /// Host and port.
    pub(crate) fn host(&self) -> &str {
        &self.server.host
    }

    /// How often the function at a path was called.
    pub(crate) fn calls(&self, path: &str) -> usize {
        let line = format!("POST {path}");
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.iter().filter(|call| **call == line).count()
    }
}
