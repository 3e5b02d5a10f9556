//! A configuration as JSON, for operators. The command line uses it too, where it works without a server.

use protocol::json::write::Writer;

use super::agent_document::number;
use crate::operator_reports::{ConfigReport, Setting, SettingSource, SettingValue};

/// A configuration as JSON.
pub fn document(report: &ConfigReport) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.object(|out| {
        out.maybe_text("file", report.file.as_deref());
        out.key("settings").array(&report.settings, |out, setting| out.object(|out| write(out, setting)));
    });
    writer.finish()
}

fn write(out: &mut Writer, setting: &Setting) {
    out.text("key", &setting.key);
    match &setting.value {
        SettingValue::Shown(json) => out.key("value").raw(json),
        SettingValue::Masked(json) => {
            out.key("value").raw(json);
            out.key("masked").boolean(true);
        }
        SettingValue::Derived(from) => {
            out.key("value").raw("null");
            out.text("derivedFrom", from);
        }
        SettingValue::Absent => out.key("value").raw("null"),
    }
    let (source, name) = match &setting.source {
        SettingSource::Default => ("default", None),
        SettingSource::File(_) => ("file", None),
        SettingSource::Environment(name) => ("environment", Some(name)),
        SettingSource::Flag(name) => ("flag", Some(name)),
    };
    out.text("source", source);
    out.maybe_text("name", name.map(String::as_str));
    if let SettingSource::File(line) = setting.source {
        out.key("line").int(number(line as u64));
    }
    match &setting.next_start {
        Some(SettingValue::Shown(json) | SettingValue::Masked(json)) => out.key("nextStart").raw(json),
        Some(SettingValue::Derived(_) | SettingValue::Absent) => out.key("nextStart").raw("null"),
        None => {}
    }
}
