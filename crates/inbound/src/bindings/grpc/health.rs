//! `grpc.health.v1.Health`: whether this process accepts work, once (`Check`) or as a stream (`Watch`).

use std::pin::Pin;

use futures_util::{Stream, stream};
use protocol::grpc::Service;
use tokio::sync::watch;
use tonic::{Request, Response, Status};
use tonic_health::pb::{
    HealthCheckRequest, HealthCheckResponse,
    health_check_response::ServingStatus,
    health_server::{Health, HealthServer},
};

use super::reflection::{V1, V1_ALPHA};
use crate::{
    documents::ready::{Phase, Ready},
    routes::MAX_NAME_REQUEST,
};

pub(super) const NAME: &str = tonic_health::pb::health_server::SERVICE_NAME;

pub(super) type Server = HealthServer<Readiness>;

pub(super) fn server(ready: Ready) -> Server {
    HealthServer::new(Readiness(ready)).max_decoding_message_size(MAX_NAME_REQUEST)
}

/// Reports the readiness of the process for every service.
pub(super) struct Readiness(Ready);

#[tonic::async_trait]
impl Health for Readiness {
    async fn check(&self, req: Request<HealthCheckRequest>) -> Result<Response<HealthCheckResponse>, Status> {
        let service = &req.get_ref().service;
        if !is_known_service(service) {
            return Err(Status::not_found("unknown service"));
        }
        Ok(Response::new(response(status(*self.0.watch().borrow()))))
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn watch(&self, req: Request<HealthCheckRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let known = is_known_service(&req.get_ref().service);
        let watcher = Watcher { phases: self.0.watch(), known, last_sent: None };
        Ok(Response::new(Box::pin(stream::unfold(Some(watcher), |watcher| async {
            let (next, rest) = watcher?.next().await?;
            Some((next, rest))
        }))))
    }
}

/// The state of one `Watch` stream.
struct Watcher {
    phases: watch::Receiver<Phase>,
    known: bool,
    last_sent: Option<ServingStatus>,
}

impl Watcher {
    /// The next item of the stream, and the watcher if the stream continues: it ends when the process shuts down.
    async fn next(mut self) -> Option<(Result<HealthCheckResponse, Status>, Option<Self>)> {
        loop {
            let phase = *self.phases.borrow_and_update();
            let status = if self.known { status(phase) } else { ServingStatus::ServiceUnknown };
            if self.last_sent.replace(status) != Some(status) {
                return Some((Ok(response(status)), Some(self)));
            }
            if phase == Phase::Closing {
                return Some((Err(Status::unavailable("the server is shutting down; watch again")), None));
            }
            self.phases.changed().await.ok()?;
        }
    }
}

fn status(phase: Phase) -> ServingStatus {
    if phase == Phase::Ready { ServingStatus::Serving } else { ServingStatus::NotServing }
}

fn response(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status.into() }
}

/// The empty name stands for the process itself.
fn is_known_service(name: &str) -> bool {
    ["", NAME, V1, V1_ALPHA].contains(&name) || Service::ALL.iter().any(|service| service.name() == name)
}
