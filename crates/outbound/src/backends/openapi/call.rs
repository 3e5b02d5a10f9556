//! Runs the call of an operation.

use std::sync::Arc;

use engine::{AgentResult, metrics::BackendKind};
use futures_util::future::BoxFuture;
use protocol::Part;

use super::operation::Plan;
use crate::{
    backend::{Backend, Call, Reply},
    backends::http::{CallFacts, send::RequestSender},
};

/// The backend of one operation.
pub(super) struct OpenApiBackend {
    pub(super) plan: Arc<Plan>,
    pub(super) sender: RequestSender,
}

impl Backend for OpenApiBackend {
    fn kind(&self) -> BackendKind {
        BackendKind::OpenApi
    }

    fn target(&self) -> String {
        format!("{} {}", self.plan.method, self.plan.server.as_str())
    }

    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, AgentResult<Reply>> {
        Box::pin(async move {
            match self.plan.request(call.arguments, &CallFacts::of(&call)) {
                Ok(request) => {
                    let describe = |status| self.plan.errors.description(status);
                    self.sender.run(&call, request, &describe).await
                }
                Err(problem) => Ok(Reply::Rejected(vec![Part::text(problem.to_string())])),
            }
        })
    }
}
