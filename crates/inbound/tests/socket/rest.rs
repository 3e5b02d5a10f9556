//! HTTP+JSON in both generations: verbs, paths, queries and bodies in, statuses and bodies out.

mod calls;
mod errors;
mod forms;
mod ids;
mod mounts;
mod streams;
mod verbs;

use crate::common::{Answer, Server};

/// A generation of the binding, at an agent.
#[derive(Clone, Copy)]
struct Rest<'a> {
    server: &'a Server,
    /// The agent's address.
    at: &'a str,
    generation: Generation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Generation {
    V1,
    V03,
}

impl Generation {
    const BOTH: [Self; 2] = [Self::V1, Self::V03];

    /// What stands between an agent's address and a path.
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

    /// The body of a send of this text; `more` follows the message's parts.
    fn said(self, text: &str, more: &str) -> String {
        let parts = if self == Self::V1 { "parts" } else { "content" };
        format!(
            r#"{{"message":{{"messageId":"m","role":"ROLE_USER","{parts}":[{{"text":"{text}"}}]{more}}}}}"#
        )
    }

    /// The body of a send whose outcome is not waited for.
    fn said_at_once(self, text: &str) -> String {
        let no_wait = match self {
            Self::V1 => r#""returnImmediately":true"#,
            Self::V03 => r#""blocking":false"#,
        };
        self.said(text, "").replace("]}}", &format!("]}},\"configuration\":{{{no_wait}}}}}"))
    }

    fn canceled(self) -> &'static str {
        match self {
            Self::V1 => "TASK_STATE_CANCELED",
            Self::V03 => "TASK_STATE_CANCELLED",
        }
    }
}

impl Server {
    /// The agent `echo` in a generation of this binding.
    fn rest(&self, generation: Generation) -> Rest<'_> {
        Rest { server: self, at: "/a2a/echo", generation }
    }
}

impl Rest<'_> {
    fn head(self, verb: &str, path: &str) -> String {
        format!("{verb} {}{}{path} HTTP/1.1", self.at, self.generation.prefix())
    }

    /// Asks for something with a body, or with none where it is empty, and reads the answer, which is of this
    /// generation whatever it says.
    async fn ask(self, verb: &str, path: &str, body: &str) -> Answer {
        let answer = self.server.exchange(&self.head(verb, path), body).await;
        let label = match self.generation {
            Generation::V1 => "v1;profile=neutral",
            Generation::V03 => "v03-proto;profile=neutral",
        };
        assert_eq!(answer.header("a2ad-dialect"), Some(label), "{verb} {path}: {}", answer.body);
        assert_eq!(answer.header("content-type"), Some(self.generation.media_type()), "{verb} {path}");
        answer
    }

    /// The same, where it works.
    async fn done(self, verb: &str, path: &str, body: &str) -> String {
        let answer = self.ask(verb, path, body).await;
        assert_eq!(answer.status, 200, "{verb} {path}: {}", answer.body);
        answer.body
    }

    /// Checks that what is asked is refused with this status and for this reason, in 0.3 by its code.
    async fn refused(self, verb: &str, path: &str, body: &str, refusal: (u16, &str, i32)) -> Answer {
        let (status, reason, code) = refusal;
        let answer = self.ask(verb, path, body).await;
        let case = format!("{verb} {path} {body}: {}", answer.body);
        assert_eq!(answer.status, status, "{case}");
        match self.generation {
            Generation::V1 => {
                assert!(
                    answer.body.starts_with(&format!(r#"{{"error":{{"code":{status},"status":""#)),
                    "{case}"
                );
                let info = format!(
                    r#""details":[{{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"{reason}","domain":"a2a-protocol.org","metadata":{{"#
                );
                assert!(answer.body.contains(&info), "{case}");
            }
            Generation::V03 => {
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
