//! One call over HTTP: sends its request, repeats it where that is safe, and reads the response.

use std::error::Error as _;

use bytes::Bytes;
use engine::{AgentResult, task::UNREACHABLE};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use tokio::time::{sleep, timeout};

use super::{
    answer::{self, Limits},
    retry::{self, Problem},
};
use crate::{
    backend::{Call, Reply},
    dial::{DialError, Dialer, UrlSource},
};

/// Sends the requests of a backend whose URL the operator chose.
pub(crate) struct RequestSender {
    pub(crate) dialer: Dialer,
    pub(crate) limits: Limits,
}

/// How the document describes a status of an operation.
pub(crate) type Describe<'a> = &'a (dyn Fn(StatusCode) -> Option<String> + Sync);

impl RequestSender {
    /// Runs a call until it has a reply or is canceled.
    pub(crate) async fn run(
        &self,
        call: &Call<'_>,
        request: Request<Bytes>,
        describe: Describe<'_>,
    ) -> AgentResult<Reply> {
        tokio::select! {
            biased;
            // Dropping the request closes its connection.
            () = call.cancelled().cancelled() => Ok(Reply::fail("the call was canceled")),
            reply = self.send(call, request, describe) => reply,
        }
    }

    async fn send(
        &self,
        call: &Call<'_>,
        request: Request<Bytes>,
        describe: Describe<'_>,
    ) -> AgentResult<Reply> {
        let mut tries = 0;
        loop {
            tries += 1;
            let sent = self.dialer.send(request.clone().map(Full::new), UrlSource::Operator);
            let Ok(result) = timeout(self.limits.wait, sent).await else {
                let seconds = self.limits.wait.as_secs_f64();
                return Ok(Reply::fail(format!("the backend did not respond within {seconds} s")));
            };
            let wait = problem(&result)
                .and_then(|problem| retry::wait(request.method(), &problem, tries, call.idempotency_key()));
            match (wait.filter(|wait| *wait < call.turn.time_left()), result) {
                (Some(wait), _) => sleep(wait).await,
                (None, Ok(response)) => return answer::reply(call, response, self.limits, describe).await,
                (None, Err(error)) => {
                    let text = format!("the call of the backend failed: {error}");
                    let reply = match error.source() {
                        Some(cause) => Reply::fail_because(text, cause),
                        None => Reply::fail(text),
                    };
                    let is_down = matches!(error, DialError::Unreachable(_));
                    return Ok(if is_down { reply.with_reason(UNREACHABLE) } else { reply });
                }
            }
        }
    }
}

fn problem(result: &Result<Response<Incoming>, DialError>) -> Option<Problem> {
    match result {
        Ok(response) if response.status().is_success() => None,
        Ok(response) => Some(Problem::of_response(response.status(), response.headers())),
        Err(DialError::Unreachable(_)) => Some(Problem::NotSent),
        Err(DialError::Lost(_)) => Some(Problem::Lost),
        Err(_) => None,
    }
}
