//! The catalogue of configuration keys, which is `keys.toml`: one row for each key, with its values, its default and what it
//! does.
//!
//! The names decide which keys a file may contain and which names are suggested for a mistyped one, the defaults are those
//! of absent keys, and [`Effect`] decides which keys a reload applies. docs/configuration.md is generated from all columns; the
//! names of an enumeration come from the list that parses them.

use std::sync::LazyLock;

use super::{
    read::Problems,
    tree::{self, Entry, Item, Table, Value},
};

static CATALOGUE: LazyLock<Table> =
    LazyLock::new(|| tree::parse(include_str!("keys.toml"), &Problems::default()));

pub(super) static TABLES: LazyLock<Vec<KeyTable>> =
    LazyLock::new(|| CATALOGUE.0.iter().map(KeyTable::of).collect());

/// The keys of one table of the file.
pub(super) struct KeyTable {
    /// The keys that lead to the table, separated by dots. `ID` is a name that the author of the file chooses; `[]`
    /// at the end means a list of tables.
    pub(super) path: &'static str,
    pub(super) keys: Vec<Key>,
    /// Names that a later version will use; rejected until then.
    pub(super) reserved: Vec<&'static str>,
}

/// A key with its row of the catalogue.
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) row: &'static Table,
}

/// Whether operators see the value of a key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Visibility {
    Shown,
    /// It may be a secret, or a table of them, of which the names are shown.
    Secret,
}

/// When a changed value of a key takes effect.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// When the configuration is reloaded.
    Reload,
    /// At the next start.
    Start,
}

#[cfg_attr(not(test), expect(dead_code, reason = "examples are only read for the generated documentation"))]
pub(super) enum DefaultValue {
    /// A value, as the file would have it.
    Fixed(&'static Item),
    /// Not a fixed value: where it comes from.
    Derived(&'static str),
    /// The key must be present; an example of its value.
    Required(&'static Item),
}

/// The keys of the table at a path; `None` where the author of the file chooses the names.
pub(super) fn at(path: &[String]) -> Option<&'static KeyTable> {
    TABLES.iter().find(|table| table.is_at(path))
}

/// The table with this path in the catalogue, such as `agents.ID`.
pub(super) fn with_path(path: &str) -> Option<&'static KeyTable> {
    TABLES.iter().find(|table| table.path == path)
}

/// The tables whose path has no chosen name and no list, except the root.
pub(super) fn fixed_tables() -> impl Iterator<Item = &'static KeyTable> {
    let is_fixed = |segment: &str| segment != CHOSEN && !segment.ends_with("[]");
    TABLES.iter().filter(move |table| !table.path.is_empty() && table.segments().all(is_fixed))
}

/// A segment of a path that stands for any name.
pub(super) const CHOSEN: &str = "ID";

impl Key {
    /// What the values are, such as `duration`; as keys.toml explains.
    pub(super) fn kind(&self) -> &'static str {
        self.text("type").unwrap_or_default()
    }

    /// Whether the value is a table or a list of tables, with rows of its own.
    pub(super) fn is_section(&self) -> bool {
        self.kind() == "section"
    }

    pub(super) fn default(&self) -> DefaultValue {
        let value = |attribute| self.row.get(attribute).map(|entry| &entry.item);
        match (value("default"), value("example")) {
            (Some(value), _) => DefaultValue::Fixed(value),
            (None, Some(example)) => DefaultValue::Required(example),
            (None, None) => DefaultValue::Derived(self.text("derived").unwrap_or("–")),
        }
    }

    pub(super) fn effect(&self) -> Effect {
        if self.row.get("start").is_some() { Effect::Start } else { Effect::Reload }
    }

    pub(super) fn visibility(&self) -> Visibility {
        if self.row.get("secret").is_some() { Visibility::Secret } else { Visibility::Shown }
    }

    pub(super) fn text(&self, attribute: &str) -> Option<&'static str> {
        self.row.get(attribute)?.item.value.as_text()
    }
}

impl KeyTable {
    fn of(entry: &'static Entry) -> Self {
        let rows = entry.item.value.as_table().expect("the catalogue consists of tables");
        let same = rows.get("rows_of").and_then(|entry| CATALOGUE.table(entry.item.value.as_text()?));
        let key = |entry: &'static Entry| Some(Key { name: &entry.key, row: entry.item.value.as_table()? });
        let reserved = match rows.get("reserved").map(|entry| &entry.item.value) {
            Some(Value::List(names)) => names.iter().filter_map(|item| item.value.as_text()).collect(),
            _ => Vec::new(),
        };
        Self { path: &entry.key, keys: same.unwrap_or(rows).0.iter().filter_map(key).collect(), reserved }
    }

    /// The names of the supported keys.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> + Clone {
        self.keys.iter().map(|key| key.name)
    }

    pub(super) fn key(&self, name: &str) -> Option<&Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    pub(super) fn segments(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('.').filter(|segment| !segment.is_empty())
    }

    /// Elements of a list of tables have their position in the path: `extensions[0]`.
    fn is_at(&self, path: &[String]) -> bool {
        let matches = |(pattern, segment): (&str, &String)| match pattern.strip_suffix("[]") {
            Some(list) => {
                // The table of `admin_listen` has the keys of `listen`.
                let segment = segment.strip_prefix("admin_").unwrap_or(segment);
                segment.strip_prefix(list).is_some_and(|position| position.starts_with('['))
            }
            None => pattern == CHOSEN || pattern == segment,
        };
        self.segments().count() == path.len() && self.segments().zip(path).all(matches)
    }
}
