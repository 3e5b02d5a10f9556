//! `grpc.health.v1.Health`.

use prost::Message as _;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse, health_check_response::ServingStatus};

use crate::common::{
    Server,
    channel::{Channel, Streaming, framed},
    with_timeout,
};

fn about(service: &str) -> bytes::Bytes {
    framed(&HealthCheckRequest { service: service.into() }.encode_to_vec())
}

fn status(message: &[u8]) -> ServingStatus {
    HealthCheckResponse::decode(message).unwrap().status()
}

async fn next(watching: &mut Streaming) -> ServingStatus {
    status(&watching.message().await.unwrap())
}

#[tokio::test]
async fn every_service_has_the_readiness_of_the_process() {
    let server = Server::open().await;
    let channel = Channel::open(&server).await;
    let check = async |service: &str| channel.raw("/grpc.health.v1.Health/Check", &[], about(service)).await;
    let services = ["", "lf.a2a.v1.A2AService", "a2a.v1.A2AService", "grpc.health.v1.Health"];
    for (expected, set_not_ready) in [(ServingStatus::Serving, false), (ServingStatus::NotServing, true)] {
        if set_not_ready {
            server.ready.set_not_ready();
        }
        for service in services {
            let response = check(service).await;
            assert_eq!((response.status.code, status(&response.messages[0])), (0, expected), "{service}");
        }
    }
    // NOT_FOUND
    assert_eq!(check("some.Other").await.status.code, 5);
}

#[tokio::test]
async fn watchers_see_every_change_and_end_at_shutdown() {
    let server = Server::open().await;
    let channel = Channel::open(&server).await;
    let watch =
        async |service: &str| channel.begin("/grpc.health.v1.Health/Watch", &[], about(service)).await;
    let mut known = watch("lf.a2a.v1.A2AService").await;
    let mut unknown = watch("some.Other").await;
    assert_eq!(next(&mut known).await, ServingStatus::Serving);
    assert_eq!(next(&mut unknown).await, ServingStatus::ServiceUnknown);
    server.ready.set_not_ready();
    assert_eq!(next(&mut known).await, ServingStatus::NotServing);
    server.ready.close();
    server.drain.cancel();
    for watching in [known, unknown] {
        let end = watching.whole().await;
        // UNAVAILABLE
        assert_eq!((end.messages.len(), end.status.code), (0, 14));
    }
    channel.closed().await;
    with_timeout(server.serving).await.unwrap();
}
