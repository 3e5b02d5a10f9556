//! The paths there are, as one table.

use crate::{Dialect, OperationKind};

use super::{Address, text};

/// A path below an agent's address, taken apart. The pieces are as they came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// The generation whose path it is.
    pub dialect: Dialect,
    /// What is there; `None` where nothing is.
    pub resource: Option<Resource>,
    /// The tenant before the path.
    pub tenant: Option<&'a str>,
    /// The task in the path.
    pub task: Option<&'a str>,
    /// The webhook in the path.
    pub config: Option<&'a str>,
}

/// What stands at a path.
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

/// What each verb does. Where an operation stands twice, clients of ours use the first row.
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

impl<'a> Place<'a> {
    /// Takes apart a path below an agent's address. `None` where no path of this binding begins like that.
    pub fn parse(path: &'a str) -> Option<Self> {
        let path = path.strip_prefix('/')?;
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        if first == V03 {
            return Some(Self::below(Dialect::V03Proto, None, rest));
        }
        if begins(first) {
            return Some(Self::below(Dialect::V1, None, path));
        }
        let second = rest.split('/').next().unwrap_or_default();
        (begins(second) && !first.is_empty()).then(|| Self::below(Dialect::V1, Some(first), rest))
    }

    fn below(dialect: Dialect, tenant: Option<&'a str>, path: &'a str) -> Self {
        let old = dialect == Dialect::V03Proto;
        let card = if old { CARD_BEFORE_1_0 } else { CARD };
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
            // The older protobuf file spells this path so, and some clients follow it.
            [Some("task"), Some(task), Some(CONFIGS), None, _] if old => {
                (Some(Resource::Configs), Some(task), None)
            }
            [Some(piece), None, ..] if piece == card => (Some(Resource::Card), None, None),
            _ => (None, None, None),
        };
        Self { dialect, resource, tenant, task, config }
    }

    /// The operation of a verb here.
    pub fn operation(&self, verb: &str) -> Option<OperationKind> {
        // Who asks for the head of an answer is given the answer; the connection leaves out the rest.
        let verb = if verb == "HEAD" { "GET" } else { verb };
        let mut rows = TABLE.iter().filter(|row| Some(row.0) == self.resource);
        rows.find(|row| row.1 == verb).map(|row| row.2)
    }

    /// The verbs that do something here, as the header `Allow` lists them.
    pub fn allowed(&self) -> String {
        let rows = TABLE.iter().filter(|row| Some(row.0) == self.resource);
        let verbs = rows.flat_map(|row| if row.1 == "GET" { vec!["GET", "HEAD"] } else { vec![row.1] });
        verbs.collect::<Vec<_>>().join(", ")
    }
}

impl Resource {
    /// Where an operation stands, and its verb there.
    pub(super) fn of(kind: OperationKind) -> (&'static str, Self) {
        let row = TABLE.iter().find(|row| row.2 == kind).expect("the table has every operation");
        (row.1, row.0)
    }

    /// Writes the path of what this is.
    pub(super) fn write(self, out: &mut String, dialect: Dialect, address: &Address) {
        let first = match self {
            Self::Send => SEND,
            Self::Stream => STREAM,
            Self::Card if dialect == Dialect::V1 => CARD,
            Self::Card => CARD_BEFORE_1_0,
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

/// Whether a path of 1.0 begins like this.
fn begins(piece: &str) -> bool {
    piece == TASKS || piece == CARD || piece.starts_with("message:")
}

/// Takes a verb off an id. Ids may hold colons, so only what is a verb is taken for one.
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
        let place = Place::parse(path)?;
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
    fn what_begins_like_a_path_and_is_none_is_told_from_what_does_not() {
        for path in ["/tasks/a/b", "/tasks/a/b/c/d/e", "/message:sent", "/message:send/", "/acme/tasks/a/b"] {
            assert_eq!(found(path).unwrap().1, None, "{path}");
        }
        for path in ["", "/", "//tasks", "/acme", "/acme/", "/a/b/tasks", "/message", "/card", "tasks"] {
            assert_eq!(found(path), None, "{path}");
        }
    }

    #[test]
    fn verbs_are_listed_where_they_do_something() {
        let allowed = |path| Place::parse(path).unwrap().allowed();
        assert_eq!(allowed("/message:send"), "POST");
        assert_eq!(allowed("/tasks/a"), "GET, HEAD");
        assert_eq!(allowed("/tasks/a:subscribe"), "POST, GET, HEAD");
        assert_eq!(allowed("/tasks/a/pushNotificationConfigs/c"), "GET, HEAD, DELETE");
    }
}
