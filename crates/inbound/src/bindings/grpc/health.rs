//! `grpc.health.v1.Health`: whether this process takes work, for those who ask and those who watch.

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
use crate::ready::{Phase, Ready};

/// Its full name.
pub(super) const NAME: &str = tonic_health::pb::health_server::SERVICE_NAME;

/// Requests hold the name of a service.
const MAX_REQUEST: usize = 4 << 10;

/// The service.
pub(super) type Server = HealthServer<Readiness>;

/// The service for a process.
pub(super) fn server(ready: Ready) -> Server {
    HealthServer::new(Readiness(ready)).max_decoding_message_size(MAX_REQUEST)
}

/// Every service is as ready as the process.
pub(super) struct Readiness(Ready);

#[tonic::async_trait]
impl Health for Readiness {
    async fn check(&self, req: Request<HealthCheckRequest>) -> Result<Response<HealthCheckResponse>, Status> {
        let service = &req.get_ref().service;
        if !is_served(service) {
            return Err(Status::not_found("there is no service of that name here"));
        }
        Ok(Response::new(answer(status(*self.0.watch().borrow()))))
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn watch(&self, req: Request<HealthCheckRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let known = is_served(&req.get_ref().service);
        let watching = Watching { phases: self.0.watch(), known, told: None };
        Ok(Response::new(Box::pin(stream::unfold(Some(watching), |watching| async {
            let (next, rest) = watching?.next().await?;
            Some((next, rest))
        }))))
    }
}

/// Somebody who watches.
struct Watching {
    phases: watch::Receiver<Phase>,
    known: bool,
    told: Option<ServingStatus>,
}

impl Watching {
    /// What is told next, and who watches on: nobody when the process leaves.
    async fn next(mut self) -> Option<(Result<HealthCheckResponse, Status>, Option<Self>)> {
        loop {
            let phase = *self.phases.borrow_and_update();
            let status = if self.known { status(phase) } else { ServingStatus::ServiceUnknown };
            if self.told.replace(status) != Some(status) {
                return Some((Ok(answer(status)), Some(self)));
            }
            if phase == Phase::Leaving {
                return Some((Err(Status::unavailable("the server is stopping; watch again")), None));
            }
            self.phases.changed().await.ok()?;
        }
    }
}

fn status(phase: Phase) -> ServingStatus {
    if phase == Phase::Ready { ServingStatus::Serving } else { ServingStatus::NotServing }
}

fn answer(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status.into() }
}

/// The empty name is the process itself.
fn is_served(name: &str) -> bool {
    ["", NAME, V1, V1_ALPHA].contains(&name) || Service::ALL.iter().any(|service| service.name() == name)
}
