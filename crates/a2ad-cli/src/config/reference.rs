//! docs/configuration.md, generated from the catalogue of keys, and tests that compare the catalogue with the code
//! that reads the file.
//!
//! `cargo xtask gen` runs the test of this document with `UPDATE_DOCS=1`, which writes the file instead of comparing it.

use std::{fmt::Write as _, fs, path::Path};

use super::{
    AUTH_NAMES, Config, ConfigFile, Mode, ProfileName, ProtocolVersion, Source,
    agents::{DEDUPE_NAMES, END_USER_NAMES, EXTENDED_CARD_NAMES, REPLY_NAMES},
    backends::{ISOLATION_NAMES, PROTOCOL_NAMES},
    keys::{CHOSEN, DefaultValue, Effect, Key, KeyTable, TABLES},
    load,
    run_settings::ON_CRASH_NAMES,
    sections::{CARD_NAMES, ERROR_NAMES},
    skills::INPUT_NAMES,
    tree::{Item, Value},
};
use crate::builtins;

const INTRODUCTION: &str = r#"<!-- Made by `cargo xtask gen` from `crates/a2ad-cli/src/config/keys.toml`; not to be edited. -->

# Configuration

The configuration file is TOML: that of `--config`, else of `A2AD_CONFIG`, else `./a2ad.toml` if it exists. Without a file the
demo agents run. `a2ad check FILE` reports every problem with file, line and key, and shows what the file would run. Examples are in
[examples/](../examples).

A *duration* is a string such as `"250ms"`, `"10s"`, `"10m"`, `"24h"` or `"7d"`; a *size* is a string such as `"512B"`, `"64KiB"`,
`"16MiB"` or `"1GiB"`; a *rate* is a string such as `"20/s"`, `"600/min"` or `"1000/h"`; an *address* has a port, as in `"127.0.0.1:4242"` or `"[::1]:4242"`.

## Environment variables

`A2AD_SECTION__KEY` sets a key of the file and takes precedence over it. Write the names of the tables and the key in upper case,
with two underscores between them and one for each dash:

| variable | key |
|---|---|
| `A2AD_LIMITS__MAX_BODY=1MiB` | `max_body` in `[limits]` |
| `A2AD_STORE__RETENTION__MAX_AGE=7d` | `max_age` in `[store.retention]` |
| `A2AD_AGENTS__BANK__ENABLED=false` | `enabled` in `[agents.bank]` |
| `A2AD_PROTOCOL__DIALECTS=0.3,1.0` | `dialects` in `[protocol]` |

Strings are written without quotes; the elements of a list are separated by commas, or the list is written as TOML. `A2AD_LISTEN` and
`A2AD_STORE` are short forms of `A2AD_SERVER__LISTEN` and `A2AD_STORE__URL` and take precedence over them; the flags `--listen` and
`--store` take precedence over all variables.

## Reload

A running server reads its configuration again when the file is saved or replaced, and on SIGHUP. Runs end with the configuration that they
began with; everything else uses the new one, queued and repeated turns too. A task whose skill was removed fails with the
reason `skill_removed`. MCP servers whose tables did not change keep their processes; others are replaced or stopped when their calls have ended.

A file that is not valid changes nothing: the log has its problems, each with file, line and key. Keys marked with † take effect at the
next start; when one has changed, the log names it. Variables of the environment and files that the configuration names are read again too;
OpenAPI documents with a `url` are fetched again if their tables have changed, and on SIGHUP.

## Skills folder

Files in the folder `server.skills_dir` are skills of all agents that have everything: those without the key `skills`, or with
`"*"` in it; without `[agents]` that is the agent `main`. A file counts within a second after it was written, and its skills leave with it. The name without its extension is
the id.

| file | skills |
|---|---|
| an executable, such as `lint.sh` | one, `lint`, which runs as `command = { argv = ["./lint.sh"] }` in the folder |
| `shop.json`, `shop.yaml`, `shop.yml` | the operations of this OpenAPI document, as with `[openapi.shop]` |
| `fx.toml` | one, `fx`, with the keys of `[skills.fx]`; without a backend it describes the executable `fx` or `fx.*` beside it |
| `more.toml` with tables | those of its `[skills]`, `[mcp]` and `[openapi]` |

So `lint.toml` with `command = { protocol = "jsonl" }` is all that `lint.sh` needs to report progress. Beside a `*.toml`, other files of the same name
are no skills of their own. Paths are relative to the folder. Hidden files, backups (`*~`, `*.bak`), temporary files (`*.tmp`, `*.swp`, `*.part`) and
subfolders are ignored. A file that is not valid, that uses a name of the configuration file, or that everybody can write to is
skipped and reported in the log; the others are used. A folder that everybody can write to is refused.

## Tables
"#;

fn document() -> String {
    let mut out = INTRODUCTION.to_owned();
    let (root, others) = TABLES.split_first().expect("the first table is the root");
    out += "\n| table | description |\n|---|---|\n";
    for key in &root.keys {
        writeln!(out, "| `{}` | {} |", key.name, about_key(key)).unwrap();
    }
    out += &reserved(root);
    for table in others {
        write!(out, "\n## `{}`\n\n", header(table, CHOSEN)).unwrap();
        writeln!(out, "{}\n\n| key | values | default | description |\n|---|---|---|---|", about(table))
            .unwrap();
        for key in &table.keys {
            let (values, default) = (values(key, table), default(key));
            let effect = match key.effect() {
                Effect::Reload => "",
                Effect::Start => " †",
            };
            writeln!(out, "| `{}` | {values} | {default} | {}{effect} |", key.name, about_key(key)).unwrap();
        }
        out += &reserved(table);
    }
    out
}

/// The header of a table in a file, with `id` as the chosen name.
fn header(table: &KeyTable, id: &str) -> String {
    let path: Vec<&str> =
        table.segments().map(|segment| if segment == CHOSEN { id } else { segment }).collect();
    // A table in an element of a list belongs to the last element.
    let path = path.join(".").replace("[].", ".");
    match path.strip_suffix("[]") {
        Some(list) => format!("[[{list}]]"),
        None => format!("[{path}]"),
    }
}

/// The description of a table, from its row in the table that contains it.
fn about(table: &KeyTable) -> &'static str {
    let path = table.path.trim_end_matches("[]").trim_end_matches(".ID");
    let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
    let mut rows = TABLES.iter().filter(|table| table.path == parent).flat_map(|table| &table.keys);
    about_key(rows.find(|key| key.name == name).expect("each table is a row of another one"))
}

fn values(key: &Key, table: &KeyTable) -> String {
    let quoted = || enumeration(table, key).iter().map(|name| format!("`\"{name}\"`")).collect::<Vec<_>>();
    match key.kind() {
        "one of" => quoted().join(" \\| "),
        "list of" => format!("list of {}", quoted().join(", ")),
        "section" => {
            let path = format!("{}.{}", table.path, key.name);
            let own_path =
                |inner: &KeyTable| inner.path.trim_end_matches("[]").trim_end_matches(".ID").to_owned();
            let inner = TABLES.iter().find(|inner| own_path(inner) == path);
            format!("`{}`", header(inner.expect("a table has rows of its own"), CHOSEN))
        }
        kind => kind.to_owned(),
    }
}

/// The names of an enumeration, from the list that parses them.
fn enumeration(table: &KeyTable, key: &Key) -> Vec<&'static str> {
    fn names<T>(list: &[(&'static str, T)]) -> Vec<&'static str> {
        list.iter().map(|row| row.0).collect()
    }
    match (table.path, key.name) {
        ("server", "mode") => names(&Mode::NAMES),
        ("card", "style") => names(&CARD_NAMES),
        ("protocol", "dialects") => names(&ProtocolVersion::NAMES),
        ("protocol", "errors") => names(&ERROR_NAMES),
        ("skills.ID", "builtin") => builtins::names(),
        ("skills.ID", "on_crash") => names(&ON_CRASH_NAMES),
        ("skills.ID" | "mcp.ID" | "openapi.ID", "input") => names(&INPUT_NAMES),
        ("skills.ID.command", "protocol") => names(&PROTOCOL_NAMES),
        ("mcp.ID", "isolation") => names(&ISOLATION_NAMES),
        ("agents.ID", "extended_card") => names(&EXTENDED_CARD_NAMES),
        ("agents.ID", "profile") => names(&ProfileName::NAMES),
        ("agents.ID", "reply") => names(&REPLY_NAMES),
        ("agents.ID", "auth") => names(&AUTH_NAMES),
        ("agents.ID", "end_user") => names(&END_USER_NAMES),
        ("agents.ID", "dedupe") => names(&DEDUPE_NAMES),
        (path, name) => panic!("{path}.{name} is an enumeration without names"),
    }
}

fn about_key(key: &Key) -> &'static str {
    key.text("about").expect("each key has a description")
}

/// A value as the file has it.
fn toml(item: &Item) -> String {
    match &item.value {
        Value::Text(text) | Value::Typed(text) => format!("{text:?}"),
        Value::Integer(digits) | Value::Float(digits) => digits.clone(),
        Value::Boolean(flag) => flag.to_string(),
        Value::List(items) => format!("[{}]", items.iter().map(toml).collect::<Vec<_>>().join(", ")),
        Value::Table(_) | Value::Other(_) => panic!("no default is a table or a date"),
    }
}

fn default(key: &Key) -> String {
    match key.default() {
        DefaultValue::Fixed(value) => format!("`{}`", toml(value)),
        DefaultValue::Derived(text) => text.to_owned(),
        DefaultValue::Required(example) => format!("required, such as `{}`", toml(example)),
    }
}

fn reserved(table: &KeyTable) -> String {
    if table.reserved.is_empty() {
        return String::new();
    }
    let names: Vec<String> = table.reserved.iter().map(|name| format!("`{name}`")).collect();
    format!("\nReserved for later versions, and rejected by this one: {}.\n", names.join(", "))
}

/// A file with all tables and, in each, the lines that `line` returns for its keys. `tested` is a key that is set to
/// another value, so nothing that excludes it is in the file.
fn file_with(tested: Option<(&KeyTable, &Key)>, line: impl Fn(&KeyTable, &Key) -> Option<String>) -> String {
    let mut text = String::new();
    let is_part_of_tested = |table: &KeyTable| {
        let list = tested.map(|(table, key)| format!("{}.{}[]", table.path, key.name));
        list.is_some_and(|list| table.path.starts_with(&list))
    };
    let tables = TABLES.iter().filter(|table| !table.path.is_empty());
    for table in tables.filter(|table| !is_part_of_tested(table)) {
        let tested = tested.filter(|(tested, _)| tested.path == table.path).map(|(_, key)| key.name);
        let lines: Vec<String> =
            alternative(table, tested).chain(table.keys.iter().filter_map(|key| line(table, key))).collect();
        text += &format!("{}\n{}\n", header(table, sample_id(table)), lines.join("\n"));
    }
    text
}

/// The chosen name of a table in that file. A skill has one backend, so each backend belongs to another skill.
fn sample_id(table: &KeyTable) -> &'static str {
    match table.path {
        "skills.ID.mcp" => "with-mcp",
        "skills.ID.http" => "with-http",
        "skills.ID.command" => "with-command",
        path if path.starts_with("mcp.") => "clock",
        _ => "x",
    }
}

/// The line of a table that must have one of several keys; none if it is the tested key.
fn alternative(table: &KeyTable, tested: Option<&str>) -> impl Iterator<Item = String> {
    const URL: &str = "url = \"http://127.0.0.1:9000/\"";
    let line = match (table.path, tested.unwrap_or_default()) {
        ("skills.ID", "builtin") | ("mcp.ID", "command" | "url") | ("openapi.ID", "file" | "url") => None,
        ("skills.ID", _) => Some("builtin = \"echo\""),
        ("mcp.ID", "headers" | "headers_env" | "bearer_env") | ("openapi.ID", _) => Some(URL),
        ("mcp.ID", _) => Some("command = [\"sh\"]"),
        ("openapi.ID.security.ID", "token_env" | "password_env") => None,
        ("openapi.ID.security.ID", "user") => Some("password_env = \"PATH\""),
        ("openapi.ID.security.ID", _) => Some("token_env = \"PATH\""),
        ("auth.org_secrets.ID", "env") => None,
        ("auth.org_secrets.ID", _) => Some("env = \"PATH\""),
        _ => None,
    };
    line.map(str::to_owned).into_iter()
}

/// The line of a key that must be present.
fn required_line(key: &Key) -> Option<String> {
    match key.default() {
        DefaultValue::Required(example) => Some(format!("{} = {}", key.name, toml(example))),
        DefaultValue::Fixed(_) | DefaultValue::Derived(_) => None,
    }
}

/// The line that sets a key to its default, or to the example if it must be present.
fn default_line(key: &Key) -> Option<String> {
    match key.default() {
        DefaultValue::Fixed(value) | DefaultValue::Required(value) => {
            Some(format!("{} = {}", key.name, toml(value)))
        }
        DefaultValue::Derived(_) => None,
    }
}

fn load_text(text: &str) -> Result<Config, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.toml");
    fs::write(&path, text).unwrap();
    let file = ConfigFile::named(path);
    load(Source { file: Some(&file), ..Source::default() }).map_err(|error| error.to_string())
}

#[test]
fn the_documentation_of_the_configuration_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, document()).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == document(), "docs/configuration.md is stale; run `cargo xtask gen`");
}

#[test]
fn every_row_of_the_catalogue_is_complete() {
    const ATTRIBUTES: [&str; 7] = ["type", "default", "derived", "example", "start", "secret", "about"];
    for key in TABLES.iter().flat_map(|table| &table.keys) {
        let has = |attribute: &&str| key.row.get(attribute).is_some();
        assert!(key.row.0.iter().all(|entry| ATTRIBUTES.contains(&entry.key.as_str())), "{}", key.name);
        assert!(!key.kind().is_empty() && has(&"about"), "{}", key.name);
        let defaults = ["default", "derived", "example"].iter().filter(|attribute| has(attribute)).count();
        assert_eq!(defaults, usize::from(!key.is_section()), "{}", key.name);
    }
}

#[test]
fn defaults_in_the_catalogue_are_the_real_ones() {
    let absent = load_text(&file_with(None, |_, key| required_line(key))).unwrap();
    let explicit = load_text(&file_with(None, |_, key| default_line(key))).unwrap();
    assert_eq!(format!("{explicit:#?}"), format!("{absent:#?}"));
}

#[test]
fn every_key_in_the_catalogue_is_read() {
    for table in TABLES.iter().filter(|table| !table.path.is_empty()) {
        for key in table.keys.iter().filter(|key| !key.is_section()) {
            // No key accepts a date.
            let text = file_with(Some((table, key)), |other, row| {
                let wrong = other.path == table.path && row.name == key.name;
                if wrong { Some(format!("{} = 1979-05-27", key.name)) } else { required_line(row) }
            });
            let reported = load_text(&text).err().unwrap_or_default();
            let path = table.path.replace(CHOSEN, sample_id(table)).replace("[]", "[0]");
            assert!(reported.contains(&format!(": {path}.{}: expected", key.name)), "{text}{reported}");
        }
    }
}
