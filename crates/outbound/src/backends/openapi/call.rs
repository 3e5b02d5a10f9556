//! Sends the request of a call.

use std::sync::Arc;

use engine::AgentResult;
use futures_util::future::BoxFuture;
use http_body_util::Full;
use protocol::Part;

use super::{
    operation::Plan,
    request::CallHeaders,
    respond::{no_response, respond},
};
use crate::{
    backend::{Backend, Call, Reply},
    dial::{Dialer, UrlSource},
};

/// The backend of one operation.
pub(super) struct OpenApiBackend {
    pub(super) plan: Arc<Plan>,
    pub(super) dialer: Dialer,
}

impl Backend for OpenApiBackend {
    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, AgentResult<Reply>> {
        Box::pin(self.run(call))
    }
}

impl OpenApiBackend {
    async fn run(&self, call: Call<'_>) -> AgentResult<Reply> {
        let headers = CallHeaders {
            idempotency_key: call.idempotency_key(),
            attempt: call.attempt(),
            task: call.turn.task_id.as_str(),
            context: call.turn.context_id.as_str(),
            skill: call.skill,
        };
        let request = match self.plan.request(call.arguments, &headers) {
            Ok(request) => request,
            Err(problem) => return Ok(Reply::Rejected(vec![Part::text(problem.to_string())])),
        };
        let exchange = async {
            match self.dialer.send(request.map(Full::new), UrlSource::Operator).await {
                Ok(response) => respond(&self.plan, response).await,
                Err(error) => no_response(&self.plan, &error.to_string()),
            }
        };
        let timeout = self.plan.timeout.min(call.turn.time_left());
        tokio::select! {
            reply = tokio::time::timeout(timeout, exchange) => {
                Ok(reply.unwrap_or_else(|_| no_response(&self.plan, "the server did not respond in time")))
            }
            // The request is dropped, which closes its connection.
            () = call.cancelled().cancelled() => Ok(Reply::fail("the call was stopped")),
        }
    }
}
