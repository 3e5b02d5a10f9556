//! An HTTP server that has one card and nothing else, for checks of the program's client.

use std::sync::{Arc, Mutex, PoisonError};

use super::{
    CheckError,
    loopback::{LoopbackServer, Request},
};

/// The request lines that a server received, such as `GET /.well-known/agent-card.json`.
type RequestLog = Arc<Mutex<Vec<String>>>;

/// Serves a card on a free loopback port until this value is dropped.
pub(crate) struct CardServer {
    server: LoopbackServer,
    request_log: RequestLog,
}

impl CardServer {
    /// `path` is the path of the card; every other request is answered with 404.
    pub(crate) async fn start(path: &'static str, card: String) -> Result<Self, CheckError> {
        let (card, request_log): (Arc<str>, _) = (card.into(), RequestLog::default());
        let log = Arc::clone(&request_log);
        let server = LoopbackServer::start(move |request| {
            log.lock().unwrap_or_else(PoisonError::into_inner).push(request.line.clone());
            respond(request, path, Arc::clone(&card))
        });
        Ok(Self { server: server.await?, request_log })
    }

    /// The server's origin.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.server.host)
    }

    /// Method and path of every request so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.request_log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn respond(request: Request, path: &str, card: Arc<str>) -> std::io::Result<()> {
    if request.line == format!("GET {path}") {
        request.respond(&card).await
    } else {
        request.respond_not_found().await
    }
}
