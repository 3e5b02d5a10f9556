//! Validation against the draft's published JSON schema, with the subset of JSON Schema that it uses.
//!
//! `schema.json` holds the definitions of the responses, without titles, defaults and examples, and with one member
//! added that the draft's text defines and its schema lacks: the history of a task.

use serde_json::{Map, Value};

use super::{
    CheckResult,
    json::{ValueChecks as _, parse},
    mismatch,
};

/// Whether members that the schema does not name are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnknownMembers {
    Allow,
    Reject,
}

pub(crate) trait SchemaChecks {
    /// Validates the value against the definition of this name.
    fn matches_schema(&self, name: &str, unknown_members: UnknownMembers) -> CheckResult;

    /// Checks that the value at a path is a date and time in UTC.
    fn is_timestamp(&self, path: &str) -> CheckResult;
}

impl SchemaChecks for Value {
    fn matches_schema(&self, name: &str, unknown_members: UnknownMembers) -> CheckResult {
        let schema = Schema { definitions: parse(include_str!("schema.json"))?, unknown_members };
        let definition = schema.definitions.at(name)?;
        schema.check(definition, self).map_err(|reason| mismatch(format!("a valid {name}: {reason}"), self))
    }

    fn is_timestamp(&self, path: &str) -> CheckResult {
        let text = self.text(path)?;
        self.ensure(is_date_time(text), &format!("a date-time at {path}"))
    }
}

struct Schema {
    definitions: Value,
    unknown_members: UnknownMembers,
}

impl Schema {
    fn check(&self, rule: &Value, value: &Value) -> Result<(), String> {
        if let Some(Value::String(path)) = rule.find("$ref") {
            let name = path.rsplit('/').next().unwrap_or_default();
            let rule =
                self.definitions.find(name).ok_or_else(|| format!("the schema has no definition {name}"))?;
            return self.check(rule, value).map_err(|reason| format!("{name}: {reason}"));
        }
        if let Some(Value::Array(rules)) = rule.find("anyOf") {
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
        if let Some(Value::Array(allowed)) = rule.find("enum")
            && !allowed.contains(value)
        {
            return Err(format!("{value} is not one of the allowed values"));
        }
        if let Some(Value::String(kind)) = rule.find("type")
            && !is_of(kind, value)
        {
            return Err(format!("expected {kind}, found {value}"));
        }
        if let (Some(Value::String(format)), Value::String(text)) = (rule.find("format"), value)
            && format == "date-time"
            && !is_date_time(text)
        {
            return Err(format!("{text} is not a date-time"));
        }
        match value {
            Value::Array(items) => match rule.find("items") {
                Some(rule) => items.iter().try_for_each(|item| self.check(rule, item)),
                None => Ok(()),
            },
            Value::Object(members) => self.check_object(rule, members),
            _ => Ok(()),
        }
    }

    fn check_object(&self, rule: &Value, members: &Map<String, Value>) -> Result<(), String> {
        let required = rule.texts("required").unwrap_or_default();
        if let Some(name) = required.iter().find(|name| !members.contains_key(**name)) {
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

fn is_of(kind: &str, value: &Value) -> bool {
    match value {
        Value::Null => kind == "null",
        Value::Bool(_) => kind == "boolean",
        Value::Number(number) => kind == "number" || kind == "integer" && number.is_i64(),
        Value::String(_) => kind == "string",
        Value::Array(_) => kind == "array",
        Value::Object(_) => kind == "object",
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
        let response = |task: &str| parse(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{task}}}"#)).unwrap();
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
