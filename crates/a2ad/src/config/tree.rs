//! What was written, and where: the file as a tree, with what the environment and the flags put into it.

use toml::de::{DeTable, DeValue};

use super::read::Problems;

/// Where something was written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// A line of the file.
    Line(usize),
    /// A flag or a variable.
    Name(String),
}

/// A value and where it was written.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) place: Place,
    pub(super) value: Value,
}

#[derive(Debug)]
pub(super) enum Value {
    Text(String),
    /// From a flag or a variable: it is whatever its key wants it to be.
    Typed(String),
    /// In decimal digits.
    Integer(String),
    /// As it was written.
    Float(String),
    Boolean(bool),
    List(Vec<Item>),
    Table(Table),
    /// What no key wants, in words.
    Other(&'static str),
}

/// A table: its entries in the order they were written.
#[derive(Debug, Default)]
pub(super) struct Table(pub(super) Vec<Entry>);

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    /// Where the key stands.
    pub(super) place: Place,
    pub(super) item: Item,
}

/// Reads a file's text; what is no TOML becomes a problem.
pub(super) fn parse(text: &str, problems: &Problems) -> Table {
    let (table, errors) = DeTable::parse_recoverable(text);
    let place =
        |offset: usize| Place::Line(1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count());
    for error in errors {
        let at = error.span().map_or(0, |span| span.start);
        problems.add(&place(at), "", format!("this is no TOML: {}", error.message()));
    }
    convert_table(table.into_inner(), &place)
}

fn convert_table(table: DeTable<'_>, place: &impl Fn(usize) -> Place) -> Table {
    let mut entries: Vec<(usize, Entry)> = table
        .into_iter()
        .map(|(key, value)| {
            let at = key.span().start;
            let item = Item { place: place(value.span().start), value: convert(value.into_inner(), place) };
            (at, Entry { place: place(at), key: key.into_inner().into_owned(), item })
        })
        .collect();
    entries.sort_by_key(|(at, _)| *at);
    Table(entries.into_iter().map(|(_, entry)| entry).collect())
}

fn convert(value: DeValue<'_>, place: &impl Fn(usize) -> Place) -> Value {
    match value {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(number) => {
            let digits = i128::from_str_radix(number.as_str(), number.radix());
            Value::Integer(digits.map_or_else(|_| number.as_str().into(), |number| number.to_string()))
        }
        DeValue::Boolean(flag) => Value::Boolean(flag),
        DeValue::Array(items) => {
            let item = |item: toml::Spanned<DeValue<'_>>| Item {
                place: place(item.span().start),
                value: convert(item.into_inner(), place),
            };
            Value::List(items.into_iter().map(item).collect())
        }
        DeValue::Table(table) => Value::Table(convert_table(table, place)),
        DeValue::Float(number) => Value::Float(number.as_str().into()),
        DeValue::Datetime(_) => Value::Other("a date"),
    }
}

impl Table {
    /// The entry of a key.
    pub(super) fn get(&self, key: &str) -> Option<&Entry> {
        self.0.iter().find(|entry| entry.key == key)
    }

    /// Puts what a flag or a variable says in the place of what the file says. A variable's name has no dashes
    /// and no small letters; keys that differ only by those are the same to it.
    pub(super) fn set(&mut self, path: &[String], place: Place, text: String, problems: &Problems) {
        let [key, rest @ ..] = path else { return };
        let plain = |key: &str| key.to_lowercase().replace('-', "_");
        let at = self.0.iter().position(|entry| plain(&entry.key) == plain(key)).unwrap_or_else(|| {
            let item = Item { place: place.clone(), value: Value::Table(Self::default()) };
            self.0.push(Entry { key: key.clone(), place: place.clone(), item });
            self.0.len() - 1
        });
        let entry = &mut self.0[at];
        match (&mut entry.item.value, rest) {
            (_, []) => {
                entry.item = Item { value: typed(text, &place), place: place.clone() };
                entry.place = place;
            }
            (Value::Table(table), rest) => table.set(rest, place, text, problems),
            (_, rest) => problems.add(&place, &rest.join("."), format!("{} is no table", entry.key)),
        }
    }
}

/// A list or a table may be written as in the file; all else is taken as it is.
fn typed(text: String, place: &Place) -> Value {
    let parsed = DeValue::parse(&text).map(|value| convert(value.into_inner(), &|_| place.clone()));
    match parsed {
        Ok(value @ (Value::List(_) | Value::Table(_))) => value,
        _ => Value::Typed(text),
    }
}
