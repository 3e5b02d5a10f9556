//! The first draft's published JSON schema, and as much of JSON Schema as it needs.
//!
//! `schema.json` holds the definitions that answers are made of, without titles, defaults and examples, and with the
//! one member that the text has and the schema forgot: the history of a task.

use super::{Checked, json::Json, wrong};

/// Whether members that the schema does not name are let pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strangers {
    Pass,
    Fail,
}

impl Json {
    /// The value is what the definition of this name says.
    pub(super) fn is_valid(&self, name: &str, strangers: Strangers) -> Checked {
        let schema = Schema { definitions: Self::parse(include_str!("schema.json"))?, strangers };
        let definition = schema.definitions.at(name)?;
        schema.check(definition, self).map_err(|reason| wrong(format!("a valid {name}: {reason}"), self))
    }

    /// At this path is a date and time in UTC.
    pub(super) fn is_timestamp(&self, path: &str) -> Checked {
        let text = self.text(path)?;
        self.must(is_date_time(text), &format!("a date-time at {path}"))
    }
}

struct Schema {
    definitions: Json,
    strangers: Strangers,
}

impl Schema {
    fn check(&self, rule: &Json, value: &Json) -> Result<(), String> {
        if let Some(Json::Text(path)) = rule.find("$ref") {
            let name = path.rsplit('/').next().unwrap_or_default();
            let rule = self.definitions.find(name).ok_or_else(|| format!("there is no {name}"))?;
            return self.check(rule, value).map_err(|reason| format!("{name}: {reason}"));
        }
        if let Some(Json::List(rules)) = rule.find("anyOf") {
            let reasons: Vec<String> =
                rules.iter().filter_map(|rule| self.check(rule, value).err()).collect();
            if reasons.len() == rules.len() {
                return Err(format!("none of ({})", reasons.join(" | ")));
            }
        }
        if let Some(expected) = rule.find("const")
            && expected != value
        {
            return Err(format!("expected {expected}, found {value}"));
        }
        if let Some(Json::List(words)) = rule.find("enum")
            && !words.contains(value)
        {
            return Err(format!("{value} is not one of the words"));
        }
        if let Some(Json::Text(kind)) = rule.find("type")
            && !is_of(kind, value)
        {
            return Err(format!("expected {kind}, found {value}"));
        }
        if let (Some(Json::Text(format)), Json::Text(text)) = (rule.find("format"), value)
            && format == "date-time"
            && !is_date_time(text)
        {
            return Err(format!("{text} is no date-time"));
        }
        match value {
            Json::List(items) => match rule.find("items") {
                Some(rule) => items.iter().try_for_each(|item| self.check(rule, item)),
                None => Ok(()),
            },
            Json::Object(members) => self.check_object(rule, members),
            _ => Ok(()),
        }
    }

    fn check_object(&self, rule: &Json, members: &[(String, Json)]) -> Result<(), String> {
        let required = rule.texts("required").unwrap_or_default();
        if let Some(name) = required.iter().find(|name| !members.iter().any(|member| member.0 == **name)) {
            return Err(format!("{name} is missing"));
        }
        let known = rule.find("properties");
        for (name, value) in members {
            match known.and_then(|known| known.find(name)) {
                Some(rule) => self.check(rule, value).map_err(|reason| format!("{name}: {reason}"))?,
                None if known.is_none() || rule.find("additionalProperties").is_some() => {}
                None if self.strangers == Strangers::Pass => {}
                None => return Err(format!("{name} is not known")),
            }
        }
        Ok(())
    }
}

fn is_of(kind: &str, value: &Json) -> bool {
    match value {
        Json::Null => kind == "null",
        Json::Bool(_) => kind == "boolean",
        Json::Number(text) => kind == "number" || kind == "integer" && text.parse::<i64>().is_ok(),
        Json::Text(_) => kind == "string",
        Json::List(_) => kind == "array",
        Json::Object(_) => kind == "object",
    }
}

/// As our clocks write it: `2026-01-02T03:04:05.678Z`.
fn is_date_time(text: &str) -> bool {
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    shape == "0000-00-00T00:00:00.000Z"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_finds_what_is_wrong() {
        let answer =
            |task: &str| Json::parse(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{task}}}"#)).unwrap();
        let is_valid = |task: &str| answer(task).is_valid("GetTaskResponse", Strangers::Fail).is_ok();
        let time = r#""timestamp":"2026-01-02T03:04:05.678Z""#;
        assert!(is_valid(&format!(r#"{{"id":"t","status":{{"state":"working",{time}}},"history":[]}}"#)));
        for task in [
            r#"{"status":{"state":"working"}}"#,
            r#"{"id":"t","status":{"state":"rejected"}}"#,
            r#"{"id":"t","status":{"state":"working","timestamp":"today"}}"#,
            r#"{"id":"t","status":{"state":"working"},"kind":"task"}"#,
            r#"{"id":"t","status":{"state":"working"},"artifacts":[{"parts":[{"kind":"text","text":"x"}]}]}"#,
            r#"{"id":"t","status":{"state":"working"},"artifacts":[{"parts":[{"type":"data","data":5}]}]}"#,
        ] {
            assert!(!is_valid(task), "{task}");
        }
        let stranger = answer(r#"{"id":"t","status":{"state":"working"},"kind":"task"}"#);
        assert!(stranger.is_valid("GetTaskResponse", Strangers::Pass).is_ok());
    }
}
