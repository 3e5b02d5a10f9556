//! Typed access to the parsed tree, section by section. Problems are collected instead of returned, so that all are
//! reported.

use std::cell::RefCell;

use protocol::hint;

use super::{
    keys::{self, DefaultValue, Key, KeyTable},
    listen::Element,
    tree::{Entry, Item, Location, Table, Value},
    variables::nearest_variable,
};

/// All problems found so far, with their locations.
#[derive(Default)]
pub(super) struct Problems(RefCell<Vec<Problem>>);

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Problem {
    location: Location,
    key: String,
    text: String,
}

impl Problems {
    pub(super) fn add(&self, location: &Location, key: &str, text: impl Into<String>) {
        self.0.borrow_mut().push(Problem { location: location.clone(), key: key.into(), text: text.into() });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// One line for each problem: `file:line: key: text`.
    pub(super) fn into_lines(self, file: Option<&str>) -> Vec<String> {
        let mut problems = self.0.into_inner();
        problems.sort();
        problems.dedup();
        let line = |Problem { location, key, text }: Problem| {
            let key = if key.is_empty() { String::new() } else { format!("{key}: ") };
            let text = without_controls(&text);
            match location {
                Location::Line(line) => format!("{}:{line}: {key}{text}", file.unwrap_or("a2ad")),
                Location::Name(name) => format!("a2ad: {name}: {text}"),
            }
        };
        problems.into_iter().map(line).collect()
    }
}

/// A table of the file; empty if the file does not contain it.
pub(super) struct Section<'a> {
    path: Vec<String>,
    /// Where it begins; `None` if it is absent.
    location: Option<&'a Location>,
    table: Option<&'a Table>,
    problems: &'a Problems,
}

/// The parsed value, or what is wrong with it.
pub(super) type Parsed<T> = Result<T, String>;

impl<'a> Section<'a> {
    /// The root table.
    pub(super) fn root(table: &'a Table, problems: &'a Problems) -> Self {
        Self { path: Vec::new(), location: None, table: Some(table), problems }.check_keys()
    }

    /// The table of a key.
    pub(super) fn open(&self, key: &str) -> Section<'a> {
        let mut section =
            Section { path: self.path_of(key), location: None, table: None, problems: self.problems };
        let Some(entry) = self.entry(key) else { return section };
        section.location = Some(&entry.location);
        match &entry.item.value {
            Value::Table(table) => section.table = Some(table),
            other => {
                self.add_problem(key, &entry.item.location, format!("expected a table, not {}", other.kind()))
            }
        }
        section.check_keys()
    }

    /// The value of a key; `None` if it is absent or invalid.
    pub(super) fn get<T>(&self, key: &str, read: impl FnOnce(&Item) -> Parsed<T>) -> Option<T> {
        let supported = self.keys().is_none_or(|keys| keys.names().any(|name| name == key));
        debug_assert!(supported, "{key} is read but not in the catalogue");
        let item = &self.entry(key)?.item;
        read(item).map_err(|text| self.add_problem(key, &item.location, text)).ok()
    }

    /// The value of a key; its default in the catalogue if it is absent or invalid.
    pub(super) fn value<T>(&self, key: &str, read: impl Fn(&Item) -> Parsed<T>) -> T {
        let default = || read(self.default(key)).expect("the catalogue has valid defaults");
        self.get(key, &read).unwrap_or_else(default)
    }

    /// The value of a key that must be present; `expected` is reported if it is absent.
    pub(super) fn required<T>(
        &self,
        key: &str,
        expected: &str,
        read: impl FnOnce(&Item) -> Parsed<T>,
    ) -> Option<T> {
        if !self.has(key) {
            self.report(key, expected);
        }
        self.get(key, read)
    }

    /// Each element of a list; those of the default in the catalogue if it is absent or any element is invalid.
    pub(super) fn list<T>(&self, key: &str, read: impl Fn(&Item) -> Parsed<T>) -> Vec<T> {
        self.each(key, &read).unwrap_or_else(|| {
            let mut list = Vec::new();
            let read = self.default(key).visit(|item| list.extend(read(item)));
            read.map(|()| list).expect("the catalogue has valid defaults")
        })
    }

    /// The default of a key that has a fixed one.
    fn default(&self, key: &str) -> &'static Item {
        match self.keys().and_then(|keys| keys.key(key)).map(Key::default) {
            Some(DefaultValue::Fixed(item)) => item,
            _ => unreachable!("the catalogue has no default for {key}"),
        }
    }

    /// Each element of a list; `None` if it is absent or any element is invalid.
    pub(super) fn each<T>(&self, key: &str, mut read: impl FnMut(&Item) -> Parsed<T>) -> Option<Vec<T>> {
        let mut valid = true;
        let mut list = Vec::new();
        let visit = |item: &Item| match read(item) {
            Ok(value) => list.push(value),
            Err(text) => {
                valid = false;
                self.add_problem(key, &item.location, text);
            }
        };
        self.get(key, |item| item.visit(visit))?;
        valid.then_some(list)
    }

    /// Each table of a list of tables.
    pub(super) fn tables(&self, key: &str) -> Vec<Section<'a>> {
        let Some(entry) = self.entry(key) else { return Vec::new() };
        let Value::List(items) = &entry.item.value else {
            let text = format!("expected a list of tables, not {}", entry.item.value.kind());
            self.add_problem(key, &entry.item.location, text);
            return Vec::new();
        };
        let table = |(at, item): (usize, &'a Item)| {
            let Value::Table(table) = &item.value else {
                self.add_problem(key, &item.location, format!("expected a table, not {}", item.value.kind()));
                return None;
            };
            let path = self.path_of(&format!("{key}[{at}]"));
            let section =
                Section { path, location: Some(&item.location), table: Some(table), problems: self.problems };
            Some(section.check_keys())
        };
        items.iter().enumerate().filter_map(table).collect()
    }

    /// Each element of a list, or the only value: tables are read by `table`, everything else by `value`. `None` if the key
    /// is absent or any element is invalid.
    pub(super) fn each_or_table<V, T>(
        &self,
        key: &str,
        value: impl Fn(&Item) -> Parsed<V>,
        table: impl Fn(&Section<'a>) -> Option<T>,
    ) -> Option<Vec<Element<V, T>>> {
        let entry = self.entry(key)?;
        let one = |at: usize, item: &'a Item| match &item.value {
            Value::Table(inner) => {
                let path = self.path_of(&format!("{key}[{at}]"));
                let location = Some(&item.location);
                let section = Section { path, location, table: Some(inner), problems: self.problems };
                table(&section.check_keys()).map(Element::Table)
            }
            _ => value(item)
                .map_err(|text| self.add_problem(key, &item.location, text))
                .ok()
                .map(Element::Value),
        };
        match &entry.item.value {
            Value::List(items) => items.iter().enumerate().map(|(at, item)| one(at, item)).collect(),
            // A list of a flag or variable has commas.
            Value::Typed(text) if text.contains(',') => {
                self.each(key, value).map(|list| list.into_iter().map(Element::Value).collect())
            }
            _ => one(0, &entry.item).map(|one| vec![one]),
        }
    }

    /// The keys that are present.
    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.table.into_iter().flat_map(|table| &table.0).map(|entry| entry.key.as_str())
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.entry(key).is_some()
    }

    /// Reports a problem with a key, at its location or, if it is absent, at the section's.
    pub(super) fn report(&self, key: &str, text: impl Into<String>) {
        let file_start = Location::Line(1);
        let location = self.entry(key).map(|entry| &entry.location).or(self.location).unwrap_or(&file_start);
        self.add_problem(key, location, text.into());
    }

    fn entry(&self, key: &str) -> Option<&'a Entry> {
        self.table?.get(key)
    }

    fn keys(&self) -> Option<&'static KeyTable> {
        keys::at(&self.path)
    }

    fn path_of(&self, key: &str) -> Vec<String> {
        self.path.iter().cloned().chain([key.to_owned()]).collect()
    }

    fn add_problem(&self, key: &str, location: &Location, text: String) {
        let path: Vec<_> = self.path_of(key).into_iter().map(quoted).collect();
        self.problems.add(location, &path.join("."), text);
    }

    /// Reports every key that is unknown or reserved.
    fn check_keys(self) -> Self {
        let (Some(keys), Some(table)) = (self.keys(), self.table) else { return self };
        for Entry { key, location, .. } in &table.0 {
            if keys.reserved.contains(&key.as_str()) {
                let text = format!("a2ad {} does not support this key yet", env!("CARGO_PKG_VERSION"));
                self.add_problem(key, location, text);
            } else if !keys.names().any(|name| name == key) {
                let all = keys.names().chain(keys.reserved.iter().copied());
                let variable = match location {
                    Location::Name(name) => nearest_variable(name),
                    Location::Line(_) => None,
                };
                let hint = variable.map_or_else(|| hint(key, all), |near| format!("did you mean {near}?"));
                self.add_problem(key, location, format!("unknown key; {hint}"));
            }
        }
        self
    }
}

/// The text with control characters escaped, so that a value of the file cannot move the cursor of a terminal.
fn without_controls(text: &str) -> String {
    let escaped = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(escaped).collect()
}

/// A key as it can be written in the file: quoted unless it is bare. A number in brackets may follow.
pub(super) fn quoted(key: String) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || "-_[]".contains(c);
    if key.is_empty() || !key.chars().all(is_bare) { format!("{key:?}") } else { key }
}

impl Item {
    pub(super) fn text(&self) -> Parsed<&str> {
        match &self.value {
            Value::Text(text) | Value::Typed(text) => Ok(text),
            other => Err(format!("expected a quoted string, not {}", other.kind())),
        }
    }

    pub(super) fn boolean(&self) -> Parsed<bool> {
        match &self.value {
            Value::Boolean(flag) => Ok(*flag),
            Value::Typed(text) => text.parse().map_err(|_| format!("expected true or false, not {text:?}")),
            other => Err(format!("expected true or false, not {}", other.kind())),
        }
    }

    /// A whole number of 0 or more.
    pub(super) fn count(&self) -> Parsed<u64> {
        match &self.value {
            Value::Integer(text) | Value::Typed(text) => {
                text.trim().parse().map_err(|_| format!("expected a whole number of 0 or more, not {text}"))
            }
            other => Err(format!("expected a whole number, not {}", other.kind())),
        }
    }

    /// Calls `visit` for each element; a value from a flag or variable is split at commas.
    fn visit(&self, mut visit: impl FnMut(&Self)) -> Parsed<()> {
        match &self.value {
            Value::List(items) => items.iter().for_each(visit),
            Value::Typed(text) => {
                for text in text.split(',').map(str::trim).filter(|text| !text.is_empty()) {
                    visit(&Self { location: self.location.clone(), value: Value::Typed(text.into()) });
                }
            }
            other => return Err(format!("expected a list, not {}", other.kind())),
        }
        Ok(())
    }

    /// The value with this name.
    pub(super) fn one_of<T: Copy>(&self, names: &[(&'static str, T)]) -> Parsed<T> {
        let text = self.text()?;
        names.iter().find(|name| name.0 == text).map(|name| name.1).ok_or_else(|| {
            let all = names.iter().map(|name| name.0);
            format!("{text:?} is not one of {}", all.collect::<Vec<_>>().join(", "))
        })
    }
}

impl Value {
    fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) | Self::Typed(_) => "a string",
            Self::Integer(_) => "a number",
            Self::Float(_) => "a floating-point number",
            Self::Boolean(_) => "a boolean",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
            Self::Other(kind) => kind,
        }
    }
}
