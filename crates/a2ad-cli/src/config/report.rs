//! The configuration as operators see it: every key with its value and where it comes from, without secrets.
//!
//! Values of keys that are marked in the catalogue are masked. Elsewhere, passwords and queries of URLs, arguments of
//! programs whose names look like secrets, and such members of free tables are masked too: people write them there,
//! although variables exist for them. A variable with a secret is shown by its name only.

use std::collections::{BTreeMap, BTreeSet};

use inbound::{ConfigReport, Setting, SettingSource, SettingValue};
use outbound::masked::{MASK, is_name_of_secret, is_secret_name, masked};
use protocol::json::write::Writer;

use super::{
    keys::{self, DefaultValue, Effect, Key, KeyTable, Visibility},
    read::quoted,
    tree::{Entry, Item, Location, Table, Value},
};

/// The report about a file with the overrides of the environment and the flags. Its values need not be valid.
pub(super) fn report(tree: &Table, file: Option<String>) -> ConfigReport {
    let mut settings = Vec::new();
    if let Some(root) = keys::with_path("") {
        add_table(root, "", Some(tree), &mut settings);
    }
    ConfigReport { file, settings }
}

/// The values of a start, of the keys that need one.
pub(crate) struct StartReport(BTreeMap<String, Setting>);

impl StartReport {
    pub(crate) fn of(report: &ConfigReport) -> Self {
        let settings = report.settings.iter().filter(|setting| setting.needs_start);
        Self(settings.map(|setting| (setting.key.clone(), setting.clone())).collect())
    }

    /// What is in use after a reload: keys that need a start have the values of the start.
    pub(crate) fn in_use(&self, mut new: ConfigReport) -> ConfigReport {
        let Self(started) = self;
        let mut saved = BTreeSet::new();
        for setting in new.settings.iter_mut().filter(|setting| setting.needs_start) {
            saved.insert(setting.key.clone());
            let next_start = Some(setting.value.clone());
            match started.get(&setting.key) {
                Some(started) if started.value == setting.value => {}
                Some(started) => *setting = Setting { next_start, ..started.clone() },
                None => {
                    (setting.value, setting.source) = (SettingValue::Absent, SettingSource::Default);
                    setting.next_start = next_start;
                }
            }
        }
        let gone = started.values().filter(|setting| !saved.contains(&setting.key));
        let removed =
            |setting: &Setting| Setting { next_start: Some(SettingValue::Absent), ..setting.clone() };
        new.settings.extend(gone.map(removed));
        new
    }
}

/// Adds the keys of a table; `table` is `None` if it is absent.
fn add_table(keys: &'static KeyTable, path: &str, table: Option<&Table>, settings: &mut Vec<Setting>) {
    for key in &keys.keys {
        let name = join(path, key.name);
        let entry = table.and_then(|table| table.get(key.name));
        if !key.is_section() {
            settings.extend(setting(key, name, entry));
            continue;
        }
        let inner_path = join(keys.path, key.name);
        let value = entry.map(|entry| &entry.item.value);
        if let Some(inner) = keys::with_path(&inner_path) {
            let table = value.and_then(Value::as_table);
            // A skill has one of several backends.
            if table.is_some() || keys.path != "skills.ID" {
                add_table(inner, &name, table, settings);
            }
        } else if let Some(inner) = keys::with_path(&format!("{inner_path}.{}", keys::CHOSEN)) {
            for Entry { key, item, .. } in value.and_then(Value::as_table).iter().flat_map(|table| &table.0) {
                add_table(inner, &join(&name, &quoted(key.clone())), item.value.as_table(), settings);
            }
        } else if let (Some(inner), Some(Value::List(items))) =
            (keys::with_path(&format!("{inner_path}[]")), value)
        {
            for (at, item) in items.iter().enumerate() {
                add_table(inner, &format!("{name}[{at}]"), item.value.as_table(), settings);
            }
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// A key with its value; `None` for an absent alternative to another key.
fn setting(key: &Key, name: String, entry: Option<&Entry>) -> Option<Setting> {
    let (value, source) = match entry {
        Some(entry) => (shown(key, &entry.item), source(&entry.item.location)),
        None => (default(key)?, SettingSource::Default),
    };
    let needs_start = key.effect() == Effect::Start;
    Some(Setting { key: name, value, source, needs_start, next_start: None })
}

fn source(location: &Location) -> SettingSource {
    match location {
        Location::Line(line) => SettingSource::File(*line),
        Location::Name(name) if name.starts_with('-') => SettingSource::Flag(name.clone()),
        Location::Name(name) => SettingSource::Environment(name.clone()),
    }
}

fn default(key: &Key) -> Option<SettingValue> {
    match key.default() {
        DefaultValue::Fixed(item) => Some(shown(key, item)),
        DefaultValue::Derived(from) if from.starts_with('–') => None,
        DefaultValue::Derived(from) => Some(SettingValue::Derived(from.replace('`', ""))),
        DefaultValue::Required(_) => Some(SettingValue::Absent),
    }
}

/// The value of a key as JSON.
fn shown(key: &Key, item: &Item) -> SettingValue {
    let mut json = MaskedJson { out: Writer::new(), has_masked: false };
    match (key.visibility(), &item.value) {
        (Visibility::Secret, value) => json.mask(value),
        (Visibility::Shown, Value::Typed(text)) => json.typed(key, text),
        (Visibility::Shown, value) => json.value(value),
    }
    let MaskedJson { out, has_masked } = json;
    let text = String::from_utf8_lossy(&out.finish()).into_owned();
    if has_masked { SettingValue::Masked(text) } else { SettingValue::Shown(text) }
}

/// Writes values without secrets.
struct MaskedJson {
    out: Writer,
    has_masked: bool,
}

impl MaskedJson {
    /// The value of a flag or variable: what it means depends on its key.
    fn typed(&mut self, key: &Key, text: &str) {
        match key.kind() {
            kind if kind.starts_with("list") => self.list(text),
            "boolean" if matches!(text, "true" | "false") => self.out.raw(text),
            kind if kind.starts_with("number") && text.parse::<u32>().is_ok() => {
                self.out.raw(text.trim_start_matches('+'));
            }
            _ => self.text(text),
        }
    }

    fn list(&mut self, text: &str) {
        let elements = text.split(',').map(str::trim).filter(|text| !text.is_empty());
        let items =
            elements.map(|text| Item { location: Location::Line(0), value: Value::Text(text.to_owned()) });
        self.value(&Value::List(items.collect()));
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Text(text) | Value::Typed(text) => self.text(text),
            Value::Integer(digits) if digits.parse::<i64>().is_ok() => self.out.raw(digits),
            Value::Integer(text) | Value::Float(text) => self.out.string(text),
            Value::Boolean(flag) => self.out.boolean(*flag),
            Value::List(items) => self.items(items),
            Value::Table(table) => self.members(table, |json, entry| {
                if is_secret_name(&entry.key) {
                    json.mask(&entry.item.value);
                } else {
                    json.value(&entry.item.value);
                }
            }),
            Value::Other(kind) => self.out.string(kind),
        }
    }

    /// The elements of a list. It may be a command, whose options can have secrets.
    fn items(&mut self, items: &[Item]) {
        let follows_secret = |at: usize| {
            let before = at.checked_sub(1).and_then(|at| items.get(at)).map(|item| &item.value);
            matches!(before, Some(Value::Text(option)) if is_name_of_secret(option))
        };
        let positions: Vec<bool> = (0..items.len()).map(follows_secret).collect();
        let mut has_masked = false;
        let mut parts = Vec::new();
        for (item, is_secret) in items.iter().zip(positions) {
            let mut part = Self { out: Writer::new(), has_masked: false };
            if is_secret {
                part.mask(&item.value)
            } else {
                part.value(&item.value)
            }
            has_masked |= part.has_masked;
            parts.push(part.out.finish());
        }
        self.has_masked |= has_masked;
        self.out.array(&parts, |out, part| out.raw_bytes(part));
    }

    fn members(&mut self, table: &Table, write: impl Fn(&mut Self, &Entry)) {
        let mut parts = Vec::new();
        for entry in &table.0 {
            let mut part = Self { out: Writer::new(), has_masked: false };
            write(&mut part, entry);
            self.has_masked |= part.has_masked;
            parts.push((entry.key.as_str(), part.out.finish()));
        }
        self.out.object(|out| {
            for (name, part) in &parts {
                out.key(name).raw_bytes(part);
            }
        });
    }

    fn text(&mut self, text: &str) {
        let masked = masked(text);
        self.has_masked |= masked.is_some();
        self.out.string(masked.as_deref().unwrap_or(text));
    }

    /// Nothing of a value but the names in it.
    fn mask(&mut self, value: &Value) {
        match value {
            Value::Table(table) => self.members(table, |json, entry| json.mask(&entry.item.value)),
            Value::Text(text) | Value::Typed(text) if text.is_empty() => self.out.string(""),
            _ => {
                self.has_masked = true;
                self.out.string(MASK);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{read::Problems, tree};

    fn report_of(text: &str) -> ConfigReport {
        let problems = Problems::default();
        let tree = tree::parse(text, &problems);
        assert!(problems.is_empty());
        report(&tree, None)
    }

    #[track_caller]
    fn value<'a>(report: &'a ConfigReport, key: &str) -> (&'a SettingValue, &'a SettingSource) {
        let found = report.settings.iter().find(|setting| setting.key == key);
        let found = found.unwrap_or_else(|| panic!("{key} is not in {:#?}", report.settings));
        (&found.value, &found.source)
    }

    #[test]
    fn every_key_has_its_value_and_its_origin() {
        let report = report_of(
            "[limits]\nconcurrent = 3\n[server]\nlisten = [\"127.0.0.1:1\"]\n[agents.a]\nenabled = false\n",
        );
        let shown = |text: &str| SettingValue::Shown(text.to_owned());
        assert_eq!(value(&report, "limits.concurrent"), (&shown("3"), &SettingSource::File(2)));
        assert_eq!(value(&report, "limits.queued"), (&shown("10000"), &SettingSource::Default));
        assert_eq!(value(&report, "limits.rate.per_key"), (&shown("\"600/min\""), &SettingSource::Default));
        assert_eq!(value(&report, "server.listen"), (&shown("[\"127.0.0.1:1\"]"), &SettingSource::File(4)));
        assert_eq!(value(&report, "agents.a.enabled"), (&shown("false"), &SettingSource::File(6)));
        assert!(matches!(value(&report, "agents.a.auth").0, SettingValue::Derived(_)));
    }

    #[test]
    fn secrets_are_masked_and_names_of_variables_are_not() {
        let report = report_of(
            r#"
            [skills.fx]
            http = { url = "https://bob:hunter2@fx.example/x?key=hunter3", headers = { X-Key = "hunter4" }, bearer_env = "FX_TOKEN" }
            [skills.lint]
            command = { argv = ["lint", "--api-key", "hunter5", "--token=hunter6", "x"], env = { TOKEN = "hunter7" } }
            [[agents.a.extensions]]
            uri = "urn:x"
            params = { deep = { password = "hunter8" }, shown = 1 }
            "#,
        );
        assert!(!format!("{report:?}").contains("hunter"), "{report:#?}");
        let masked = |text: &str| SettingValue::Masked(text.to_owned());
        assert_eq!(*value(&report, "skills.fx.http.url").0, masked(r#""https://***@fx.example/x?key=***""#));
        assert_eq!(*value(&report, "skills.fx.http.headers").0, masked(r#"{"X-Key":"***"}"#));
        assert_eq!(
            *value(&report, "skills.fx.http.bearer_env").0,
            SettingValue::Shown("\"FX_TOKEN\"".into())
        );
        assert_eq!(
            *value(&report, "skills.lint.command.argv").0,
            masked(r#"["lint","--api-key","***","--token=***","x"]"#)
        );
        assert_eq!(
            *value(&report, "agents.a.extensions[0].params").0,
            masked(r#"{"deep":{"password":"***"},"shown":1}"#)
        );
    }

    #[test]
    fn a_reload_shows_what_is_in_use_and_what_the_next_start_would_use() {
        let start = report_of("[limits]\nconcurrent = 3\n[[auth.issuers]]\nissuer = \"i\"\n");
        let new = report_of("[limits]\nconcurrent = 4\n[store]\nretention = { max_age = \"1h\" }\n");
        let report = StartReport::of(&start).in_use(new);
        let of = |key: &str| report.settings.iter().find(|setting| setting.key == key).unwrap();
        let concurrent = of("limits.concurrent");
        assert_eq!(concurrent.value, SettingValue::Shown("3".into()));
        assert_eq!(concurrent.next_start, Some(SettingValue::Shown("4".into())));
        assert_eq!(of("store.retention.max_age").value, SettingValue::Shown("\"1h\"".into()));
        assert_eq!(of("auth.issuers[0].issuer").next_start, Some(SettingValue::Absent));
        assert_eq!(of("limits.queued").next_start, None);
    }
}
