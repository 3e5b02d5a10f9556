//! Answers requests while the backends start: an MCP server may need many seconds to list its tools.

use std::{os::fd::AsFd as _, time::Duration};

use axum::Router;
use futures_util::FutureExt as _;
use http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use inbound::{
    HttpService,
    listen::{self, Socket},
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// How long a response may take to be sent after the start.
const LAST_RESPONSES: Duration = Duration::from_secs(1);

/// Waits for the backends. Meanwhile `/healthz` succeeds, and everything else is to be tried again later.
pub(super) async fn answer_until<T>(started: impl Future<Output = T>, sockets: &[Socket]) -> T {
    let mut started = std::pin::pin!(started);
    if let Some(started) = started.as_mut().now_or_never() {
        return started;
    }
    let Ok(sockets) = sockets.iter().map(duplicate).collect() else { return started.await };
    let service = HttpService::from(Router::new().fallback(answer));
    let stop = CancellationToken::new();
    let answering = listen::serve_all(sockets, service, listen::Caps::default(), stop.clone());
    let started = async {
        let started = started.await;
        stop.cancel();
        started
    };
    let last_responses = async {
        stop.cancelled().await;
        tokio::time::sleep(LAST_RESPONSES).await;
    };
    let answering = async {
        tokio::select! {
            () = answering => {}
            () = last_responses => {}
        }
    };
    tokio::join!(started, answering).0
}

async fn answer(uri: Uri) -> (StatusCode, HeaderMap, &'static str) {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if uri.path() == "/healthz" {
        return (StatusCode::OK, headers, r#"{"status":"ok"}"#);
    }
    headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    (StatusCode::SERVICE_UNAVAILABLE, headers, r#"{"status":"starting"}"#)
}

/// A second descriptor of the same socket, because a listener belongs to one service.
fn duplicate(socket: &Socket) -> std::io::Result<Socket> {
    let listener = TcpListener::from_std(socket.listener.as_fd().try_clone_to_owned()?.into())?;
    Ok(Socket { listener, tls: socket.tls.clone(), routes: socket.routes })
}
