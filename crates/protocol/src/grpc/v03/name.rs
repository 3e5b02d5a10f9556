//! Resource names: `tasks/{task}` and `tasks/{task}/pushNotificationConfigs/{config}`.
//!
//! Ids may contain colons, slashes and characters of any script and are taken verbatim. If a name can be
//! split in several places, the last one is used.

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
    id.map(TaskId::from).ok_or_else(|| invalid_name(name, field, TASK))
}

/// The task and the config of `tasks/{task}/pushNotificationConfigs/{config}`.
pub(super) fn config(name: &str, field: &str) -> Read<(TaskId, ConfigId)> {
    let ids = name.strip_prefix(TASKS).and_then(|ids| ids.rsplit_once(CONFIGS));
    let ids = ids.filter(|(task, config)| !task.is_empty() && !config.is_empty());
    ids.map(|(task, config)| (task.into(), config.into())).ok_or_else(|| invalid_name(name, field, CONFIG))
}

/// The resource name of a task.
pub(super) fn of_task(task: &TaskId) -> String {
    format!("{TASKS}{task}")
}

/// The resource name of a config; without a config id, that of its task.
pub(super) fn of_config(task: &TaskId, config: Option<&ConfigId>) -> String {
    match config {
        Some(config) => format!("{TASKS}{task}{CONFIGS}{config}"),
        None => of_task(task),
    }
}

fn invalid_name(name: &str, field: &str, form: &str) -> crate::Violation {
    if name.is_empty() {
        lacks(&Path::Root, field, form)
    } else {
        expected(&Path::Field(&Path::Root, field), form)
    }
}
