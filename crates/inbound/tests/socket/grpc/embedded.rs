//! gRPC in an application that mounts the router.

use a2ad_inbound::{
    HttpService, Ready, ServerOptions,
    listen::{self, Caps},
};
use axum::{Router, routing::get};
use protocol::Part;
use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{BOTH, send, task};
use crate::common::{Server, channel::Channel};

#[tokio::test]
async fn application_that_mounts_the_router_serves_grpc() {
    let server = Server::open().await;
    let service = HttpService::new(server.engine.clone(), ServerOptions::default(), Ready::default());
    let app = Router::new().route("/hello", get(|| async { "hello" })).fallback_service(service.router());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (tasks, drain) = (TaskTracker::new(), CancellationToken::new());
    tasks.spawn(listen::serve(listener, app, Caps::default(), drain.clone()));
    let channel = Channel::to(address).await;
    for service in BOTH {
        let made = task(channel.ask(service, &send("hi")).await);
        assert_eq!(made.artifacts[0].parts, [Part::text("hi")]);
    }
    assert_eq!(channel.raw("/some.Other/Method", &[], "").await.status.code, 12);
    drain.cancel();
    channel.closed().await;
}
