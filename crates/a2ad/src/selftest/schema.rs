//! Validation against the draft's published JSON schema, with the subset of JSON Schema that it uses.
//!
//! `schema.json` holds the definitions of the responses, without titles, defaults and examples, and with one member
//! added that the draft's text defines and its schema lacks: the history of a task.

use super::{CheckResult, json::Json, mismatch};

/// Whether members that the schema does not name are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnknownMembers {
    Allow,
    Reject,
}

impl Json {
    /// Validates the value against the definition of this name.
    pub(super) fn matches_schema(&self, name: &str, unknown_members: UnknownMembers) -> CheckResult {
        let schema = Schema { definitions: Self::parse(include_str!("schema.json"))?, unknown_members };
        let definition = schema.definitions.at(name)?;
        schema.check(definition, self).map_err(|reason| mismatch(format!("a valid {name}: {reason}"), self))
    }

    /// Checks that the value at a path is a date and time in UTC.
    pub(super) fn is_timestamp(&self, path: &str) -> CheckResult {
        let text = self.text(path)?;
        self.ensure(is_date_time(text), &format!("a date-time at {path}"))
    }
}

struct Schema {
    definitions: Json,
    unknown_members: UnknownMembers,
}

impl Schema {
    fn check(&self, rule: &Json, value: &Json) -> Result<(), String> {
        if let Some(Json::Text(path)) = rule.find("$ref") {
            let name = path.rsplit('/').next().unwrap_or_default();
            let rule =
                self.definitions.find(name).ok_or_else(|| format!("the schema has no definition {name}"))?;
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
        if let Some(Json::List(allowed)) = rule.find("enum")
            && !allowed.contains(value)
        {
            return Err(format!("{value} is not one of the allowed values"));
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
            return Err(format!("{text} is not a date-time"));
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
                None if self.unknown_members == UnknownMembers::Allow => {}
                None => return Err(format!("unknown member {name}")),
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

/// Accepts only the server's format: `2026-01-02T03:04:05.678Z`.
fn is_date_time(text: &str) -> bool {
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    shape == "0000-00-00T00:00:00.000Z"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_responses_are_rejected() {
        let response =
            |task: &str| Json::parse(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{task}}}"#)).unwrap();
        let matches_schema =
            |task: &str| response(task).matches_schema("GetTaskResponse", UnknownMembers::Reject).is_ok();
        let time = r#""timestamp":"2026-01-02T03:04:05.678Z""#;
        assert!(matches_schema(&format!(
            r#"{{"id":"t","status":{{"state":"working",{time}}},"history":[]}}"#
        )));
        for task in [
            r#"{"status":{"state":"working"}}"#,
            r#"{"id":"t","status":{"state":"rejected"}}"#,
            r#"{"id":"t","status":{"state":"working","timestamp":"today"}}"#,
            r#"{"id":"t","status":{"state":"working"},"kind":"task"}"#,
            r#"{"id":"t","status":{"state":"working"},"artifacts":[{"parts":[{"kind":"text","text":"x"}]}]}"#,
            r#"{"id":"t","status":{"state":"working"},"artifacts":[{"parts":[{"type":"data","data":5}]}]}"#,
        ] {
            assert!(!matches_schema(task), "{task}");
        }
        let with_unknown_member = response(r#"{"id":"t","status":{"state":"working"},"kind":"task"}"#);
        assert!(with_unknown_member.matches_schema("GetTaskResponse", UnknownMembers::Allow).is_ok());
    }
}
