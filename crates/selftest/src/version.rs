//! What the versions of the protocol call things: paths, methods, parameters, and where a result has a task.

use serde_json::{Value, json};

/// A version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Draft,
    V03,
    V1,
}

/// A task, as far as the checks look into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) id: String,
    /// In the spelling of 0.3, such as `input-required`.
    pub(crate) state: String,
}

impl Task {
    /// Whether the task has ended.
    pub(crate) fn is_over(&self) -> bool {
        ["completed", "canceled", "cancelled", "failed", "rejected"].contains(&self.state.as_str())
    }

    /// Whether the task has ended or waits for its client.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_over() || ["input-required", "auth-required"].contains(&self.state.as_str())
    }
}

impl Version {
    pub(crate) const ALL: [Self; 3] = [Self::Draft, Self::V03, Self::V1];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::V03 => "0.3",
            Self::V1 => "1.0",
        }
    }

    /// The header `A2A-Version` of its requests.
    pub(crate) fn header(self) -> Option<&'static str> {
        match self {
            Self::Draft => None,
            Self::V03 | Self::V1 => Some(self.name()),
        }
    }

    /// The name of its card below `/.well-known/`.
    pub(crate) fn card_file(self) -> &'static str {
        match self {
            Self::Draft => "agent.json",
            Self::V03 | Self::V1 => "agent-card.json",
        }
    }

    /// The versions that a card offers over JSON-RPC: those in its list of interfaces, else the only one that it states.
    pub(crate) fn offered_by(card: &Value) -> Vec<Self> {
        let Some(interfaces) = card["supportedInterfaces"].as_array() else {
            return vec![if card["protocolVersion"].is_string() { Self::V03 } else { Self::Draft }];
        };
        let is_listed = |version: &Self| {
            let listed = if *version == Self::Draft { "0.1" } else { version.name() };
            interfaces.iter().any(|interface| {
                interface["protocolBinding"] == "JSONRPC"
                    && interface["protocolVersion"].as_str().is_some_and(|text| text.starts_with(listed))
            })
        };
        Self::ALL.into_iter().filter(is_listed).collect()
    }

    /// The method and the parameters that send a text.
    pub(crate) fn send(self, text: &str, mode: SendMode) -> (&'static str, Value) {
        let id = uuid::Uuid::new_v4().to_string();
        let streams = mode == SendMode::Stream;
        let mut params = match self {
            Self::Draft => {
                json!({"id": id, "message": {"role": "user", "parts": [{"type": "text", "text": text}]}})
            }
            Self::V03 => json!({"message":
                {"kind": "message", "messageId": id, "role": "user", "parts": [{"kind": "text", "text": text}]}}),
            Self::V1 => {
                json!({"message": {"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]}})
            }
        };
        if mode == SendMode::Return {
            match self {
                Self::Draft => params["async"] = true.into(),
                Self::V03 => params["configuration"] = json!({"blocking": false}),
                Self::V1 => params["configuration"] = json!({"returnImmediately": true}),
            }
        }
        let method = match (self, streams) {
            (Self::Draft, false) => "tasks/send",
            (Self::Draft, true) => "tasks/sendSubscribe",
            (Self::V03, false) => "message/send",
            (Self::V03, true) => "message/stream",
            (Self::V1, false) => "SendMessage",
            (Self::V1, true) => "SendStreamingMessage",
        };
        (method, params)
    }

    pub(crate) fn get(self) -> &'static str {
        if self == Self::V1 { "GetTask" } else { "tasks/get" }
    }

    pub(crate) fn cancel(self) -> &'static str {
        if self == Self::V1 { "CancelTask" } else { "tasks/cancel" }
    }

    pub(crate) fn resume(self) -> &'static str {
        if self == Self::V1 { "SubscribeToTask" } else { "tasks/resubscribe" }
    }

    /// The task in a result or an event; `None` for a message or an artifact.
    pub(crate) fn task(self, result: &Value) -> Option<Task> {
        let at = match self {
            Self::V1 => ["task", "statusUpdate"].iter().find_map(|name| result.get(name)).unwrap_or(result),
            Self::Draft | Self::V03 => result,
        };
        let id = at["id"].as_str().or_else(|| at["taskId"].as_str())?;
        let state = at["status"]["state"].as_str()?.to_ascii_lowercase();
        let state = state.strip_prefix("task_state_").unwrap_or(&state).replace('_', "-");
        Some(Task { id: id.to_owned(), state })
    }

    /// Whether a result is a message of the agent, which needs no task.
    pub(crate) fn is_message(self, result: &Value) -> bool {
        let message = if self == Self::V1 { &result["message"] } else { result };
        message["parts"].is_array() && message["role"].is_string()
    }
}

/// What a send waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendMode {
    /// The end of the task.
    Wait,
    /// Its start.
    Return,
    /// Nothing: the events are streamed.
    Stream,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_that_the_card_offers() {
        let listed = |version: &str| json!({"protocolBinding": "JSONRPC", "protocolVersion": version});
        let card = json!({"supportedInterfaces": [listed("1.0"), listed("0.1"), {"protocolBinding": "GRPC",
            "protocolVersion": "0.3"}]});
        assert_eq!(Version::offered_by(&card), [Version::Draft, Version::V1]);
        assert_eq!(Version::offered_by(&json!({"protocolVersion": "0.3.0"})), [Version::V03]);
        assert_eq!(Version::offered_by(&json!({"name": "a"})), [Version::Draft]);
    }

    #[test]
    fn tasks_are_found_in_results_and_events_of_each_version() {
        let task = |state: &str| Some(Task { id: "t".into(), state: state.into() });
        let found = Version::Draft.task(&json!({"id": "t", "status": {"state": "working"}, "final": false}));
        assert_eq!(found, task("working"));
        let found = Version::V03.task(&json!({"taskId": "t", "status": {"state": "input-required"}}));
        assert_eq!(found, task("input-required"));
        let status = json!({"state": "TASK_STATE_INPUT_REQUIRED"});
        for result in [
            json!({"task": {"id": "t", "status": status}}),
            json!({"statusUpdate": {"taskId": "t", "status": status}}),
            json!({"id": "t", "status": status}),
        ] {
            assert_eq!(Version::V1.task(&result), task("input-required"), "{result}");
        }
        assert_eq!(Version::V1.task(&json!({"artifactUpdate": {"taskId": "t"}})), None);
    }
}
