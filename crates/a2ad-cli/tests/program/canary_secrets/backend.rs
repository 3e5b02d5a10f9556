//! A server whose responses are errors, for the backends and the issuer of the program.

use std::{convert::Infallible, net::SocketAddr};

use axum::{Router, body::Body};
use http::{Request, Response};
use inbound::{
    HttpService,
    listen::{self, Caps},
};
use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// A listening server; it ends when this is dropped.
pub(crate) struct Backend {
    pub(crate) address: SocketAddr,
    stop: CancellationToken,
    _tasks: TaskTracker,
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Backend {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let service = HttpService::from(Router::new().fallback(respond));
        tasks.spawn(listen::serve(listener, service, Caps::default(), stop.clone()));
        Self { address, stop, _tasks: tasks }
    }
}

/// The status is the last segment of the path; keys of issuers are an empty list.
async fn respond(req: Request<Body>) -> Result<Response<Body>, Infallible> {
    let path = req.uri().path();
    if path.ends_with("/jwks") {
        return Ok(Response::new(Body::from(r#"{"keys":[]}"#)));
    }
    let status = path.rsplit('/').next().and_then(|status| status.parse().ok()).unwrap_or(500_u16);
    let response = Response::builder().status(status).header("www-authenticate", "Bearer realm=\"backend\"");
    Ok(response.body(Body::from(format!("status {status}"))).unwrap())
}
