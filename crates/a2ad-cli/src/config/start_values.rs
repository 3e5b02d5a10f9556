//! The values of the keys that take effect at a start only. A reload compares them, and reports those that have changed.

use std::collections::BTreeMap;

use super::{
    keys::{self, DefaultValue, Effect, Key},
    tree::{Entry, Table, Value},
};

/// The values by key, such as `limits.concurrent`.
#[derive(Clone, Debug, Default)]
pub(crate) struct StartValues(BTreeMap<String, String>);

impl StartValues {
    /// The values of a file with the overrides of the environment and the flags. They need not be valid.
    pub(super) fn of(file: &Table) -> Self {
        let rows = keys::fixed_tables().flat_map(|table| table.keys.iter().map(move |key| (table, key)));
        let value = |(table, key): (&keys::KeyTable, &Key)| {
            let found = table.segments().try_fold(file, |inside, name| inside.table(name));
            let entry = found.and_then(|found| found.get(key.name));
            let text = entry.map_or_else(|| default(key), |entry| plain(&entry.item.value));
            (format!("{}.{}", table.path, key.name), text)
        };
        Self(rows.filter(|(_, key)| key.effect() == Effect::Start).map(value).collect())
    }

    /// The keys whose values differ.
    pub(crate) fn changed<'a>(&'a self, new: &'a Self) -> impl Iterator<Item = &'a str> {
        new.0.iter().filter(|(key, value)| self.0.get(*key) != Some(value)).map(|(key, _)| key.as_str())
    }
}

fn default(key: &Key) -> String {
    match key.default() {
        DefaultValue::Fixed(item) => plain(&item.value),
        DefaultValue::Derived(_) | DefaultValue::Required(_) => String::new(),
    }
}

/// The value as a variable would have it, so that it does not matter where it comes from.
fn plain(value: &Value) -> String {
    match value {
        Value::Text(text) | Value::Typed(text) | Value::Integer(text) | Value::Float(text) => text.clone(),
        Value::Boolean(flag) => flag.to_string(),
        Value::List(items) => items.iter().map(|item| plain(&item.value)).collect::<Vec<_>>().join(","),
        Value::Table(table) => {
            // An empty value of a table is the same as none.
            let entry = |entry: &Entry| {
                Some(plain(&entry.item.value))
                    .filter(|text| !text.is_empty())
                    .map(|text| format!("{} = {text}", entry.key))
            };
            table.0.iter().filter_map(entry).collect::<Vec<_>>().join("\n")
        }
        // No key is a date.
        Value::Other(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{read::Problems, tree};

    fn values(text: &str) -> StartValues {
        let problems = Problems::default();
        let values = StartValues::of(&tree::parse(text, &problems));
        assert!(problems.is_empty());
        values
    }

    #[test]
    fn only_changed_values_of_keys_that_need_a_start_are_reported() {
        let old = values("[server]\nlisten = \"127.0.0.1:1\"\n[store]\nretention = { max_age = \"1h\" }\n");
        let new = values(
            "[server]\nlisten = \"127.0.0.1:2\"\ndefault_agent = \"x\"\n[limits]\nconcurrent = 3\nqueued = 10_000\n\
             [protocol]\ndialects = [\"draft\", \"0.3\", \"1.0\"]\n",
        );
        assert_eq!(old.changed(&new).collect::<Vec<_>>(), ["limits.concurrent", "server.listen"]);
        assert_eq!(new.changed(&new).count(), 0);
        let old = values(
            "[auth]\norg_secrets = { a = { env = \"A\" } }\nissuers = [{ issuer = \"i\" }]\napi_keys = { prefix = \"a2ad_\" }\n",
        );
        let new = values(
            "[auth.org_secrets.a]\nenv = \"B\"\n[[auth.issuers]]\nissuer = \"i\"\naudience = \"x\"\n[auth.api_keys]\nprefix = \"p\"\n",
        );
        let changed: Vec<_> = old.changed(&new).collect();
        assert_eq!(changed, ["auth.api_keys.prefix", "auth.issuers"]);
    }
}
