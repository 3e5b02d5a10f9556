//! The route table of the HTTP+JSON binding.

use crate::{Dialect, OperationKind};

use super::{Address, text};

/// A path relative to an agent's URL, split into its segments, which are still percent-encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourcePath<'a> {
    /// The version the path belongs to.
    pub dialect: Dialect,
    /// The matched resource; `None` if no resource has this path.
    pub resource: Option<Resource>,
    /// The tenant segment.
    pub tenant: Option<&'a str>,
    /// The task id.
    pub task: Option<&'a str>,
    /// The push notification config id.
    pub config: Option<&'a str>,
}

/// The resources of the binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// `/message:send`
    Send,
    /// `/message:stream`
    Stream,
    /// `/tasks`
    Tasks,
    /// `/tasks/{id}`
    Task,
    /// `/tasks/{id}:cancel`
    Cancel,
    /// `/tasks/{id}:subscribe`
    Subscribe,
    /// `/tasks/{id}/pushNotificationConfigs`
    Configs,
    /// `/tasks/{id}/pushNotificationConfigs/{id}`
    Config,
    /// `/extendedAgentCard`, in 0.3 `/card`
    Card,
}

/// The operation of each method. If an operation is listed twice, the client uses the first row.
const TABLE: [(Resource, &str, OperationKind); 12] = [
    (Resource::Send, "POST", OperationKind::SendMessage),
    (Resource::Stream, "POST", OperationKind::SendStreamingMessage),
    (Resource::Tasks, "GET", OperationKind::ListTasks),
    (Resource::Task, "GET", OperationKind::GetTask),
    (Resource::Cancel, "POST", OperationKind::CancelTask),
    (Resource::Subscribe, "POST", OperationKind::SubscribeToTask),
    (Resource::Subscribe, "GET", OperationKind::SubscribeToTask),
    (Resource::Configs, "POST", OperationKind::CreatePushConfig),
    (Resource::Configs, "GET", OperationKind::ListPushConfigs),
    (Resource::Config, "GET", OperationKind::GetPushConfig),
    (Resource::Config, "DELETE", OperationKind::DeletePushConfig),
    (Resource::Card, "GET", OperationKind::GetExtendedCard),
];

const SEND: &str = "message:send";
const STREAM: &str = "message:stream";
const TASKS: &str = "tasks";
const CONFIGS: &str = "pushNotificationConfigs";
const CARD: &str = "extendedAgentCard";
const CARD_BEFORE_1_0: &str = "card";
const V03: &str = "v1";

impl<'a> ResourcePath<'a> {
    /// Matches a path relative to an agent's URL. `None` if it does not start like any path of this binding.
    pub fn parse(path: &'a str) -> Option<Self> {
        let path = path.strip_prefix('/')?;
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        if first == V03 {
            return Some(Self::below(Dialect::V03Proto, None, rest));
        }
        if is_first_segment(first) {
            return Some(Self::below(Dialect::V1, None, path));
        }
        let second = rest.split('/').next().unwrap_or_default();
        (is_first_segment(second) && !first.is_empty()).then(|| Self::below(Dialect::V1, Some(first), rest))
    }

    fn below(dialect: Dialect, tenant: Option<&'a str>, path: &'a str) -> Self {
        let card = card_resource(dialect);
        // An older revision of 0.3's protobuf file has this path, and some clients use it.
        let has_singular_path = match dialect {
            Dialect::V03Proto => true,
            Dialect::Draft | Dialect::V03 | Dialect::V1 => false,
        };
        let mut pieces = path.split('/');
        let pieces = [pieces.next(), pieces.next(), pieces.next(), pieces.next(), pieces.next()];
        let (resource, task, config) = match pieces {
            [Some(SEND), None, ..] => (Some(Resource::Send), None, None),
            [Some(STREAM), None, ..] => (Some(Resource::Stream), None, None),
            [Some(TASKS), None, ..] => (Some(Resource::Tasks), None, None),
            [Some(TASKS), Some(last), None, ..] => {
                let (task, resource) = split_verb(last);
                (Some(resource), Some(task), None)
            }
            [Some(TASKS), Some(task), Some(CONFIGS), None, _] => (Some(Resource::Configs), Some(task), None),
            [Some(TASKS), Some(task), Some(CONFIGS), Some(config), None] => {
                (Some(Resource::Config), Some(task), Some(config))
            }
            [Some("task"), Some(task), Some(CONFIGS), None, _] if has_singular_path => {
                (Some(Resource::Configs), Some(task), None)
            }
            [Some(piece), None, ..] if piece == card => (Some(Resource::Card), None, None),
            _ => (None, None, None),
        };
        Self { dialect, resource, tenant, task, config }
    }

    /// The operation of an HTTP method on this resource.
    pub fn operation(&self, verb: &str) -> Option<OperationKind> {
        // HEAD is answered like GET; the HTTP layer drops the body.
        let verb = if verb == "HEAD" { "GET" } else { verb };
        let mut rows = TABLE.iter().filter(|row| Some(row.0) == self.resource);
        rows.find(|row| row.1 == verb).map(|row| row.2)
    }

    /// The methods allowed on this resource.
    pub fn allowed(&self) -> Vec<&'static str> {
        let rows = TABLE.iter().filter(|row| Some(row.0) == self.resource);
        rows.flat_map(|row| if row.1 == "GET" { vec!["GET", "HEAD"] } else { vec![row.1] }).collect()
    }
}

/// The path of the extended card.
fn card_resource(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::V1 => CARD,
        Dialect::Draft | Dialect::V03 | Dialect::V03Proto => CARD_BEFORE_1_0,
    }
}

impl Resource {
    /// The HTTP method and resource of an operation.
    pub(super) fn of(kind: OperationKind) -> (&'static str, Self) {
        let row = TABLE.iter().find(|row| row.2 == kind).expect("the table has every operation");
        (row.1, row.0)
    }

    /// Appends the resource's path.
    pub(super) fn write(self, out: &mut String, dialect: Dialect, address: &Address) {
        let first = match self {
            Self::Send => SEND,
            Self::Stream => STREAM,
            Self::Card => card_resource(dialect),
            _ => TASKS,
        };
        let mut piece = |name: &str| {
            out.push('/');
            out.push_str(name);
        };
        piece(first);
        if let Some(task) = &address.task {
            piece("");
            text::percent_encode(out, task);
        }
        match self {
            Self::Cancel => out.push_str(":cancel"),
            Self::Subscribe => out.push_str(":subscribe"),
            Self::Configs | Self::Config => {
                out.push('/');
                out.push_str(CONFIGS);
            }
            _ => {}
        }
        if let Some(config) = &address.config {
            out.push('/');
            text::percent_encode(out, config);
        }
    }
}

/// Whether a 1.0 path can start with this segment.
fn is_first_segment(piece: &str) -> bool {
    piece == TASKS || piece == CARD || piece.starts_with("message:")
}

/// Splits a verb off an id. Ids may contain colons, so only known verbs are split off.
fn split_verb(piece: &str) -> (&str, Resource) {
    match piece.rsplit_once(':') {
        Some((task, "cancel")) => (task, Resource::Cancel),
        Some((task, "subscribe")) => (task, Resource::Subscribe),
        _ => (piece, Resource::Task),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str) -> Option<(Dialect, Option<Resource>, [&str; 3])> {
        let place = ResourcePath::parse(path)?;
        let pieces = [place.tenant, place.task, place.config].map(Option::unwrap_or_default);
        Some((place.dialect, place.resource, pieces))
    }

    #[test]
    fn paths_of_1_0_may_begin_with_a_tenant() {
        use Resource::{Cancel, Card, Config, Configs, Send, Stream, Subscribe, Task, Tasks};
        let cases = [
            ("message:send", Send, ["", ""]),
            ("message:stream", Stream, ["", ""]),
            ("tasks", Tasks, ["", ""]),
            ("tasks/a", Task, ["a", ""]),
            ("tasks/a:b", Task, ["a:b", ""]),
            ("tasks/a%2Fb", Task, ["a%2Fb", ""]),
            ("tasks/a:cancel", Cancel, ["a", ""]),
            ("tasks/a:b:cancel", Cancel, ["a:b", ""]),
            ("tasks/a:cancel:b", Task, ["a:cancel:b", ""]),
            ("tasks/a%3Acancel", Task, ["a%3Acancel", ""]),
            ("tasks/a:subscribe", Subscribe, ["a", ""]),
            ("tasks/a/pushNotificationConfigs", Configs, ["a", ""]),
            ("tasks/a/pushNotificationConfigs/c:cancel", Config, ["a", "c:cancel"]),
            ("extendedAgentCard", Card, ["", ""]),
        ];
        for (path, resource, [task, config]) in cases {
            let expected = |tenant| Some((Dialect::V1, Some(resource), [tenant, task, config]));
            assert_eq!(found(&format!("/{path}")), expected(""), "{path}");
            assert_eq!(found(&format!("/acme/{path}")), expected("acme"), "{path}");
        }
    }

    #[test]
    fn paths_of_0_3_are_below_v1() {
        let cases = [
            ("/v1/message:send", Some(Resource::Send), ""),
            ("/v1/tasks/a:subscribe", Some(Resource::Subscribe), "a"),
            ("/v1/task/a/pushNotificationConfigs", Some(Resource::Configs), "a"),
            ("/v1/card", Some(Resource::Card), ""),
            ("/v1/extendedAgentCard", None, ""),
            ("/v1/acme/tasks", None, ""),
            ("/v1/", None, ""),
            ("/v1", None, ""),
        ];
        for (path, resource, task) in cases {
            assert_eq!(found(path), Some((Dialect::V03Proto, resource, ["", task, ""])), "{path}");
        }
    }

    #[test]
    fn unknown_resources_are_distinguished_from_unrelated_paths() {
        for path in ["/tasks/a/b", "/tasks/a/b/c/d/e", "/message:sent", "/message:send/", "/acme/tasks/a/b"] {
            assert_eq!(found(path).unwrap().1, None, "{path}");
        }
        for path in ["", "/", "//tasks", "/acme", "/acme/", "/a/b/tasks", "/message", "/card", "tasks"] {
            assert_eq!(found(path), None, "{path}");
        }
    }
}
