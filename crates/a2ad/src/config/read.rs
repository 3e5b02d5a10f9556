//! Reading the tree section by section, collecting everything that is wrong on the way.

use std::cell::RefCell;

use super::{
    keys::{self, Keys},
    tree::{Entry, Item, Place, Table, Value},
    variables::nearest_variable,
};
use crate::nearest::hint;

/// What is wrong, and where.
#[derive(Default)]
pub(super) struct Problems(RefCell<Vec<Problem>>);

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Problem {
    place: Place,
    key: String,
    text: String,
}

impl Problems {
    pub(super) fn add(&self, place: &Place, key: &str, text: impl Into<String>) {
        self.0.borrow_mut().push(Problem { place: place.clone(), key: key.into(), text: text.into() });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// One line for each: `file:line: key: what is wrong`.
    pub(super) fn into_lines(self, file: Option<&str>) -> Vec<String> {
        let mut problems = self.0.into_inner();
        problems.sort();
        problems.dedup();
        let line = |Problem { place, key, text }: Problem| {
            let key = if key.is_empty() { String::new() } else { format!("{key}: ") };
            match place {
                Place::Line(line) => format!("{}:{line}: {key}{text}", file.unwrap_or("a2ad")),
                Place::Name(name) => format!("a2ad: {name}: {text}"),
            }
        };
        problems.into_iter().map(line).collect()
    }
}

/// A table of the file, or one that is not there and hence empty.
pub(super) struct Section<'a> {
    path: Vec<String>,
    /// Where it begins; nowhere if it is not there.
    place: Option<&'a Place>,
    table: Option<&'a Table>,
    problems: &'a Problems,
}

/// What reading a value gives: the value, or what is wrong with it.
pub(super) type Read<T> = Result<T, String>;

impl<'a> Section<'a> {
    /// The whole file.
    pub(super) fn root(table: &'a Table, problems: &'a Problems) -> Self {
        Self { path: Vec::new(), place: None, table: Some(table), problems }.known()
    }

    /// The table under a key.
    pub(super) fn open(&self, key: &str) -> Section<'a> {
        let mut section =
            Section { path: self.path_of(key), place: None, table: None, problems: self.problems };
        let Some(entry) = self.entry(key) else { return section };
        section.place = Some(&entry.place);
        match &entry.item.value {
            Value::Table(table) => section.table = Some(table),
            other => self.complain(key, &entry.item.place, format!("expected a table, not {}", other.kind())),
        }
        section.known()
    }

    /// The value under a key; `None` if it is not there or wrong.
    pub(super) fn get<T>(&self, key: &str, read: impl FnOnce(&Item) -> Read<T>) -> Option<T> {
        let served = self.keys().is_none_or(|keys| keys.served.contains(&key));
        debug_assert!(served, "{key} is read and not in the catalogue");
        let item = &self.entry(key)?.item;
        read(item).map_err(|text| self.complain(key, &item.place, text)).ok()
    }

    /// Each element of the list under a key; `None` if it is not there or anything in it is wrong.
    pub(super) fn each<T>(&self, key: &str, mut read: impl FnMut(&Item) -> Read<T>) -> Option<Vec<T>> {
        let mut whole = true;
        let mut list = Vec::new();
        let visit = |item: &Item| match read(item) {
            Ok(value) => list.push(value),
            Err(text) => {
                whole = false;
                self.complain(key, &item.place, text);
            }
        };
        self.get(key, |item| item.visit(visit))?;
        whole.then_some(list)
    }

    /// Each table of the list under a key.
    pub(super) fn tables(&self, key: &str) -> Vec<Section<'a>> {
        let Some(entry) = self.entry(key) else { return Vec::new() };
        let Value::List(items) = &entry.item.value else {
            let text = format!("expected a list of tables, not {}", entry.item.value.kind());
            self.complain(key, &entry.item.place, text);
            return Vec::new();
        };
        let table = |(at, item): (usize, &'a Item)| {
            let Value::Table(table) = &item.value else {
                self.complain(key, &item.place, format!("expected a table, not {}", item.value.kind()));
                return None;
            };
            let path = self.path_of(&format!("{key}[{at}]"));
            let section =
                Section { path, place: Some(&item.place), table: Some(table), problems: self.problems };
            Some(section.known())
        };
        items.iter().enumerate().filter_map(table).collect()
    }

    /// The names of what is in it.
    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.table.into_iter().flat_map(|table| &table.0).map(|entry| entry.key.as_str())
    }

    /// Whether a key is there.
    pub(super) fn has(&self, key: &str) -> bool {
        self.entry(key).is_some()
    }

    /// Says what is wrong with a key; where it is not there, with the section.
    pub(super) fn wrong(&self, key: &str, text: impl Into<String>) {
        let nowhere = Place::Line(1);
        let place = self.entry(key).map(|entry| &entry.place).or(self.place).unwrap_or(&nowhere);
        self.complain(key, place, text.into());
    }

    fn entry(&self, key: &str) -> Option<&'a Entry> {
        self.table?.get(key)
    }

    fn keys(&self) -> Option<&'static Keys> {
        keys::at(&self.path)
    }

    fn path_of(&self, key: &str) -> Vec<String> {
        self.path.iter().cloned().chain([key.to_owned()]).collect()
    }

    fn complain(&self, key: &str, place: &Place, text: String) {
        self.problems.add(place, &self.path_of(key).join("."), text);
    }

    /// Refuses every key that is not served.
    fn known(self) -> Self {
        let (Some(keys), Some(table)) = (self.keys(), self.table) else { return self };
        for Entry { key, place, .. } in &table.0 {
            if keys.later.contains(&key.as_str()) {
                let text = format!("a2ad {} does not serve this key yet", env!("CARGO_PKG_VERSION"));
                self.complain(key, place, text);
            } else if !keys.served.contains(&key.as_str()) {
                let all = keys.served.iter().chain(keys.later).copied();
                let variable = match place {
                    Place::Name(name) => nearest_variable(name),
                    Place::Line(_) => None,
                };
                let hint = variable.map_or_else(|| hint(key, all), |near| format!("did you mean {near}?"));
                self.complain(key, place, format!("unknown key; {hint}"));
            }
        }
        self
    }
}

impl Item {
    pub(super) fn text(&self) -> Read<&str> {
        match &self.value {
            Value::Text(text) | Value::Typed(text) => Ok(text),
            other => Err(format!("expected a text in quotes, not {}", other.kind())),
        }
    }

    pub(super) fn boolean(&self) -> Read<bool> {
        match &self.value {
            Value::Boolean(flag) => Ok(*flag),
            Value::Typed(text) => text.parse().map_err(|_| format!("expected true or false, not {text:?}")),
            other => Err(format!("expected true or false, not {}", other.kind())),
        }
    }

    /// A whole number of 0 or more.
    pub(super) fn count(&self) -> Read<u64> {
        match &self.value {
            Value::Integer(text) | Value::Typed(text) => {
                text.trim().parse().map_err(|_| format!("expected a whole number of 0 or more, not {text}"))
            }
            other => Err(format!("expected a whole number, not {}", other.kind())),
        }
    }

    /// Shows each element of a list; in what was typed, commas separate them.
    fn visit(&self, mut see: impl FnMut(&Self)) -> Read<()> {
        match &self.value {
            Value::List(items) => items.iter().for_each(see),
            Value::Typed(text) => {
                for text in text.split(',').map(str::trim).filter(|text| !text.is_empty()) {
                    see(&Self { place: self.place.clone(), value: Value::Typed(text.into()) });
                }
            }
            other => return Err(format!("expected a list, not {}", other.kind())),
        }
        Ok(())
    }

    /// One of these words.
    pub(super) fn one_of<T: Copy>(&self, words: &[(&'static str, T)]) -> Read<T> {
        let text = self.text()?;
        words.iter().find(|word| word.0 == text).map(|word| word.1).ok_or_else(|| {
            let all = words.iter().map(|word| word.0);
            format!("{text:?} is none of {}", all.collect::<Vec<_>>().join(", "))
        })
    }
}

impl Value {
    fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) | Self::Typed(_) => "a text",
            Self::Integer(_) => "a number",
            Self::Float(_) => "a number with a point",
            Self::Boolean(_) => "true or false",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
            Self::Other(kind) => kind,
        }
    }
}
