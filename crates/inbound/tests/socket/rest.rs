//! The HTTP+JSON binding in 1.0 and 0.3: methods, paths, queries and bodies in, statuses and bodies out.

mod calls;
mod endpoints;
mod errors;
mod forms;
mod ids;
mod streams;
mod verbs;

use crate::common::{Answer, Server};

/// A client of one version at one agent.
#[derive(Clone, Copy)]
struct Rest<'a> {
    server: &'a Server,
    /// The agent's path.
    at: &'a str,
    version: RestVersion,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RestVersion {
    V1,
    V03,
}

impl RestVersion {
    const BOTH: [Self; 2] = [Self::V1, Self::V03];

    /// Path prefix of the version.
    fn prefix(self) -> &'static str {
        match self {
            Self::V1 => "",
            Self::V03 => "/v1",
        }
    }

    fn media_type(self) -> &'static str {
        match self {
            Self::V1 => "application/a2a+json",
            Self::V03 => "application/json",
        }
    }

    /// The body of a send; `more` follows the message's parts.
    fn send_body(self, text: &str, more: &str) -> String {
        let parts = if self == Self::V1 { "parts" } else { "content" };
        format!(
            r#"{{"message":{{"messageId":"m","role":"ROLE_USER","{parts}":[{{"text":"{text}"}}]{more}}}}}"#
        )
    }

    /// The body of a send that returns immediately.
    fn send_body_without_waiting(self, text: &str) -> String {
        let no_wait = match self {
            Self::V1 => r#""returnImmediately":true"#,
            Self::V03 => r#""blocking":false"#,
        };
        self.send_body(text, "").replace("]}}", &format!("]}},\"configuration\":{{{no_wait}}}}}"))
    }

    fn canceled_state(self) -> &'static str {
        match self {
            Self::V1 => "TASK_STATE_CANCELED",
            Self::V03 => "TASK_STATE_CANCELLED",
        }
    }
}

impl Server {
    /// A client of the agent `echo`.
    fn rest(&self, version: RestVersion) -> Rest<'_> {
        Rest { server: self, at: "/a2a/echo", version }
    }
}

impl Rest<'_> {
    fn head(self, verb: &str, path: &str) -> String {
        format!("{verb} {}{}{path} HTTP/1.1", self.at, self.version.prefix())
    }

    /// Sends a request, without a body if it is empty, and checks that the response is of this version.
    async fn ask(self, verb: &str, path: &str, body: &str) -> Answer {
        let answer = self.server.exchange(&self.head(verb, path), body).await;
        let label = match self.version {
            RestVersion::V1 => "1.0;profile=neutral",
            RestVersion::V03 => "0.3;profile=neutral",
        };
        assert_eq!(answer.header("a2ad-dialect"), Some(label), "{verb} {path}: {}", answer.body);
        assert_eq!(answer.header("content-type"), Some(self.version.media_type()), "{verb} {path}");
        answer
    }

    /// The body of a request that must succeed.
    async fn done(self, verb: &str, path: &str, body: &str) -> String {
        let answer = self.ask(verb, path, body).await;
        assert_eq!(answer.status, 200, "{verb} {path}: {}", answer.body);
        answer.body
    }

    /// Checks that a request fails with this status and reason (in 0.3: code).
    async fn refused(self, verb: &str, path: &str, body: &str, refusal: (u16, &str, i32)) -> Answer {
        let (status, reason, code) = refusal;
        let answer = self.ask(verb, path, body).await;
        let case = format!("{verb} {path} {body}: {}", answer.body);
        assert_eq!(answer.status, status, "{case}");
        match self.version {
            RestVersion::V1 => {
                assert!(
                    answer.body.starts_with(&format!(r#"{{"error":{{"code":{status},"status":""#)),
                    "{case}"
                );
                let info = format!(
                    r#""details":[{{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"{reason}","domain":"a2a-protocol.org","metadata":{{"#
                );
                assert!(answer.body.contains(&info), "{case}");
            }
            RestVersion::V03 => {
                assert!(answer.body.starts_with(&format!(r#"{{"code":{code},"message":""#)), "{case}");
            }
        }
        answer
    }
}

const NOT_FOUND: (u16, &str, i32) = (404, "TASK_NOT_FOUND", -32001);
const NOT_CANCELABLE: (u16, &str, i32) = (400, "TASK_NOT_CANCELABLE", -32002);
const UNSUPPORTED: (u16, &str, i32) = (400, "UNSUPPORTED_OPERATION", -32004);
const NO_PUSH: (u16, &str, i32) = (400, "PUSH_NOTIFICATION_NOT_SUPPORTED", -32003);
const INVALID: (u16, &str, i32) = (400, "INVALID_PARAMS", -32602);
const NO_PATH: (u16, &str, i32) = (404, "METHOD_NOT_FOUND", -32601);
const NO_VERB: (u16, &str, i32) = (405, "METHOD_NOT_FOUND", -32601);
