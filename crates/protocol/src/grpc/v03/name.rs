//! Resource names: `tasks/{task}` and `tasks/{task}/pushNotificationConfigs/{config}`.
//!
//! An id is everything between: colons, slashes and letters of any alphabet, taken as they stand. Of several places
//! where a name could divide, the last one counts.

use crate::{
    ConfigId, TaskId,
    dialect::v03_proto::push::{CONFIGS, TASKS},
    grpc::read::{expected, lacks},
    json::read::{Path, Read},
};

const TASK: &str = "tasks/{task}";
const CONFIG: &str = "tasks/{task}/pushNotificationConfigs/{config}";

/// The task of `tasks/{task}`.
pub(super) fn task(name: &str, field: &str) -> Read<TaskId> {
    let id = name.strip_prefix(TASKS).filter(|id| !id.is_empty());
    id.map(TaskId::from).ok_or_else(|| refusal(name, field, TASK))
}

/// The task and the config of `tasks/{task}/pushNotificationConfigs/{config}`.
pub(super) fn config(name: &str, field: &str) -> Read<(TaskId, ConfigId)> {
    let ids = name.strip_prefix(TASKS).and_then(|ids| ids.rsplit_once(CONFIGS));
    let ids = ids.filter(|(task, config)| !task.is_empty() && !config.is_empty());
    ids.map(|(task, config)| (task.into(), config.into())).ok_or_else(|| refusal(name, field, CONFIG))
}

/// The name of a task.
pub(super) fn of_task(task: &TaskId) -> String {
    format!("{TASKS}{task}")
}

/// The name of a config; without one, that of its task.
pub(super) fn of_config(task: &TaskId, config: Option<&ConfigId>) -> String {
    match config {
        Some(config) => format!("{TASKS}{task}{CONFIGS}{config}"),
        None => of_task(task),
    }
}

fn refusal(name: &str, field: &str, form: &str) -> crate::Violation {
    if name.is_empty() {
        lacks(&Path::Root, field, form)
    } else {
        expected(&Path::Field(&Path::Root, field), form)
    }
}
