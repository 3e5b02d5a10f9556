//! Runs the call of an operation.

use std::sync::Arc;

use bytes::Bytes;
use engine::{AgentResult, metrics::BackendKind};
use futures_util::future::BoxFuture;
use http::{HeaderValue, header};
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
            let files = &call.turn.message.parts;
            match self.plan.request(call.arguments, files, &CallFacts::of(&call)) {
                Ok(mut request) => {
                    if call.message.is_some() {
                        let json = HeaderValue::from_static("application/json");
                        request.headers_mut().insert(header::CONTENT_TYPE, json);
                        *request.body_mut() = Bytes::copy_from_slice(call.input());
                    }
                    let describe = |status| self.plan.errors.description(status);
                    self.sender.run(&call, request, &describe).await
                }
                Err(problem) => Ok(Reply::Rejected(vec![Part::text(problem.to_string())])),
            }
        })
    }
}
