//! The parsed file as a tree of values with their locations, and the overrides from the environment and the flags.

use toml::de::{DeTable, DeValue};

use super::read::Problems;

/// The location of a value, for error messages.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Location {
    /// A line of the file, from 1.
    Line(usize),
    /// The name of a flag or variable.
    Name(String),
}

/// A value and its location.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) location: Location,
    pub(super) value: Value,
}

#[derive(Debug)]
pub(super) enum Value {
    Text(String),
    /// From a flag or variable: untyped, parsed by the key that reads it.
    Typed(String),
    /// Decimal digits.
    Integer(String),
    /// As written in the file.
    Float(String),
    Boolean(bool),
    List(Vec<Item>),
    Table(Table),
    /// A type that no key accepts, described for error messages.
    Other(&'static str),
}

/// A table with its entries in file order.
#[derive(Debug, Default)]
pub(super) struct Table(pub(super) Vec<Entry>);

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    /// The location of the key.
    pub(super) location: Location,
    pub(super) item: Item,
}

/// Parses a file; invalid TOML is added to the problems.
pub(super) fn parse(text: &str, problems: &Problems) -> Table {
    let (table, errors) = DeTable::parse_recoverable(text);
    let line_ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    let location = |offset: usize| Location::Line(1 + line_ends.partition_point(|end| *end < offset));
    for error in errors {
        let at = error.span().map_or(0, |span| span.start);
        problems.add(&location(at), "", format!("invalid TOML: {}", error.message()));
    }
    convert_table(table.into_inner(), &location)
}

fn convert_table(table: DeTable<'_>, location: &impl Fn(usize) -> Location) -> Table {
    let mut entries: Vec<(usize, Entry)> = table
        .into_iter()
        .map(|(key, value)| {
            let at = key.span().start;
            let item =
                Item { location: location(value.span().start), value: convert(value.into_inner(), location) };
            (at, Entry { location: location(at), key: key.into_inner().into_owned(), item })
        })
        .collect();
    entries.sort_by_key(|(at, _)| *at);
    Table(entries.into_iter().map(|(_, entry)| entry).collect())
}

fn convert(value: DeValue<'_>, location: &impl Fn(usize) -> Location) -> Value {
    match value {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(number) => {
            let digits = i128::from_str_radix(number.as_str(), number.radix());
            Value::Integer(digits.map_or_else(|_| number.as_str().into(), |number| number.to_string()))
        }
        DeValue::Boolean(flag) => Value::Boolean(flag),
        DeValue::Array(items) => {
            let item = |item: toml::Spanned<DeValue<'_>>| Item {
                location: location(item.span().start),
                value: convert(item.into_inner(), location),
            };
            Value::List(items.into_iter().map(item).collect())
        }
        DeValue::Table(table) => Value::Table(convert_table(table, location)),
        DeValue::Float(number) => Value::Float(number.as_str().into()),
        DeValue::Datetime(_) => Value::Other("a date"),
    }
}

impl Value {
    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn as_table(&self) -> Option<&Table> {
        match self {
            Self::Table(table) => Some(table),
            _ => None,
        }
    }
}

impl Table {
    pub(super) fn get(&self, key: &str) -> Option<&Entry> {
        self.0.iter().find(|entry| entry.key == key)
    }

    /// The table of a key.
    pub(super) fn table(&self, key: &str) -> Option<&Self> {
        self.get(key)?.item.value.as_table()
    }

    /// Overrides a value of the file with that of a flag or variable. A variable's name contains neither dashes nor
    /// lower-case letters, so keys are compared without regard to those.
    pub(super) fn set(&mut self, path: &[String], location: Location, text: String, problems: &Problems) {
        let [key, rest @ ..] = path else { return };
        let plain = |key: &str| key.to_lowercase().replace('-', "_");
        let at = self.0.iter().position(|entry| plain(&entry.key) == plain(key)).unwrap_or_else(|| {
            let item = Item { location: location.clone(), value: Value::Table(Self::default()) };
            self.0.push(Entry { key: key.clone(), location: location.clone(), item });
            self.0.len() - 1
        });
        let entry = &mut self.0[at];
        match (&mut entry.item.value, rest) {
            (_, []) => {
                entry.item = Item { value: typed(text, &location), location: location.clone() };
                entry.location = location;
            }
            (Value::Table(table), rest) => table.set(rest, location, text, problems),
            (_, rest) => problems.add(&location, &rest.join("."), format!("{} is not a table", entry.key)),
        }
    }
}

/// A list or table may be written as TOML; everything else is kept as text.
fn typed(text: String, location: &Location) -> Value {
    let parsed = DeValue::parse(&text).map(|value| convert(value.into_inner(), &|_| location.clone()));
    match parsed {
        Ok(value @ (Value::List(_) | Value::Table(_))) => value,
        _ => Value::Typed(text),
    }
}
