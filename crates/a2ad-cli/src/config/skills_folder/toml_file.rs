//! A `*.toml` of a skills folder: the keys of one skill, or tables as in the configuration file.

use std::path::Path;

use super::{
    super::{files, keys, read::Problems, skills::BACKENDS},
    Table, Value, command, entry, tables as table_of,
};

/// The tables that a file of the folder may have.
const TABLES: [&str; 3] = ["skills", "mcp", "openapi"];
/// Maximum size.
const MAX_BYTES: u64 = 1 << 20;

/// The tables of a configuration file that would define the same. A skill without a backend has the executable beside it.
pub(super) fn tables(
    path: &Path,
    id: &str,
    executable: Option<&str>,
    problems: &Problems,
) -> Result<Table, String> {
    let mut file = super::super::tree::parse(&files::read(path, MAX_BYTES)?, problems);
    if has_tables(&file) {
        for other in file.0.iter().filter(|entry| !TABLES.contains(&entry.key.as_str())) {
            let text = format!("only {} may be in a file of the skills folder", TABLES.join(", "));
            problems.add(&other.location, &other.key, text);
        }
        return Ok(file);
    }
    if let Some(executable) = executable {
        add_command(&mut file, executable);
    }
    Ok(table_of([("skills", table_of([(id, file)]))]))
}

/// Whether a file has tables of a configuration file rather than the keys of a skill. `mcp` is both.
fn has_tables(file: &Table) -> bool {
    let is_table = |value: &Value| matches!(value, Value::Table(_));
    let root = keys::at(&[]);
    let names = || root.into_iter().flat_map(|root| root.names().chain(root.reserved.iter().copied()));
    file.0.iter().any(|entry| match (&entry.item.value, entry.key.as_str()) {
        (Value::Table(servers), "mcp") => servers.0.iter().all(|server| is_table(&server.item.value)),
        (value, key) => is_table(value) && names().any(|name| name == key),
    })
}

fn add_command(skill: &mut Table, executable: &str) {
    let argv = command(executable);
    if !BACKENDS.iter().any(|key| skill.get(key).is_some()) {
        return skill.0.push(entry("command", Value::Table(argv)));
    }
    let given = skill.0.iter_mut().find(|entry| entry.key == "command");
    if let Some(Value::Table(given)) = given.map(|entry| &mut entry.item.value)
        && given.get("argv").is_none()
    {
        given.0.extend(argv.0);
    }
}
