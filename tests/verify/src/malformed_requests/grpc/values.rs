//! Invalid fields for each kind.

use super::super::errors::{ErrorRow, INVALID_PARAMS, NO_AGENT};
use super::super::schema::{Field, Kind, Need};
use super::super::values::{BAD_URLS, HOSTILE};
use super::any;
use super::schema::{entry, filled, message, value};
use super::wire::{FIXED32, FIXED64, GROUP, GROUP_END, LENGTH, VARINT, bytes, group, int, key, varint};

pub(crate) struct Wrong {
    pub(crate) what: String,
    /// The encoded field including its key, instead of the valid one.
    pub(crate) raw: Vec<u8>,
    /// Whether it must be the last field of the message.
    pub(crate) last: bool,
    /// Where inside the field the fault is reported: empty, `[0]` or `.name`.
    pub(crate) inside: &'static str,
    pub(crate) error: &'static ErrorRow,
}

/// Bytes that are not UTF-8.
#[rustfmt::skip]
pub(crate) const INVALID_UTF8: &[&[u8]] = &[
    b"\xff", b"\xfe\xff", b"\x80", b"\xbf", b"\xc0\x80", b"\xc1\xbf", b"\xe0\x80\x80", b"\xed\xa0\x80",
    b"\xed\xbf\xbf", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xe2\x82", b"\xf0\x9f\x92", b"text\xff",
    b"\xfftext", b"te\xc3xt", b"\0\xff\0",
];
/// Lengths above the limit of names.
const LONG: [usize; 3] = [1_025, 8_192, 100_000];
/// Lengths above the limit of other strings that are not content.
const VERY_LONG: [usize; 2] = [65_537, 300_000];
const MAX_TEXTS: usize = 10_000;
const MAX_PARTS: usize = 1_000;

/// Hostile names, as in the JSON bindings.
pub(crate) fn hostile_names() -> Vec<String> {
    texts(HOSTILE)
}

/// Decodes strings given as JSON.
fn texts(list: &[&str]) -> Vec<String> {
    list.iter().filter_map(|text| serde_json::from_str(text).ok()).collect()
}

/// All values that are refused for a field.
pub(crate) fn wrong(field: &Field, task: &str) -> Vec<Wrong> {
    let mut wrong = Vec::new();
    wire_faults(field, task, &mut wrong);
    if field.is_text() {
        for text in INVALID_UTF8 {
            let element = if field.repeated() { "[0]" } else { "" };
            wrong.push(Wrong {
                inside: element,
                ..whole_field(format!("{text:02x?}"), bytes(field.number, text))
            });
        }
    }
    wrong.extend(content_faults(field, task));
    wrong
}

/// Encoding faults that do not depend on the value.
fn wire_faults(field: &Field, task: &str, out: &mut Vec<Wrong>) {
    let number = field.number;
    let inside = if field.repeated() { "[0]" } else { "" };
    let own = if field.is_number() { VARINT } else { LENGTH };
    let others = [
        (VARINT, int(number, 1)),
        (FIXED64, [key(number, FIXED64), vec![0; 8]].concat()),
        (LENGTH, bytes(number, [1])),
        (FIXED32, [key(number, FIXED32), vec![0; 4]].concat()),
        (GROUP, group(number, &[])),
        (GROUP_END, key(number, GROUP_END)),
        (6, key(number, 6)),
        (7, key(number, 7)),
    ];
    for (kind, raw) in others.into_iter().filter(|other| other.0 != own) {
        out.push(Wrong { inside, ..whole_field(format!("wire type {kind}"), raw) });
    }
    let mut last = |what: &str, raw| {
        out.push(Wrong { inside, last: true, ..whole_field(what.to_owned(), raw) });
    };
    let key = key(number, own);
    last("no payload after its key", key.clone());
    last("a truncated varint", [&key[..], &[0x80]].concat());
    last("a varint of eleven bytes", [&key[..], &[0x80; 10], &[0]].concat());
    if own == LENGTH {
        let good = value(field, task);
        last("one byte shorter than its length", good[..good.len() - 1].to_vec());
        last("the first half of it", good[..(good.len() / 2).max(key.len())].to_vec());
        for length in [1, 1 << 20, (1 << 31) - 1, 1 << 32, u64::MAX] {
            last(&format!("a length of {length}"), [&key[..], &varint(length)].concat());
        }
    }
}

fn content_faults(field: &Field, task: &str) -> Vec<Wrong> {
    let number = field.number;
    let text = |text: &str| whole_field(text.to_owned(), bytes(number, text));
    let of_length = |length| whole_field(format!("{length} bytes"), bytes(number, "x".repeat(length)));
    let long = || LONG.map(of_length);
    let very_long = || VERY_LONG.map(of_length);
    let lists = || {
        let element = very_long().map(|wrong| Wrong { inside: "[0]", ..wrong });
        let in_all = whole_field("a megabyte in all", bytes(number, "x".repeat(65_536)).repeat(17));
        element.into_iter().chain([in_all, too_many(number, MAX_TEXTS, "x")])
    };
    let mut wrong: Vec<Wrong> = match field.kind {
        Kind::Name => long().into(),
        Kind::Task { absent, .. } => {
            let absent = hostile_names().into_iter().map(|name| Wrong { error: absent, ..text(&name) });
            absent.chain(long()).collect()
        }
        Kind::TaskName(absent) => wrong_names(number, task, absent, TASK_NAMES, "tasks/", ""),
        Kind::ConfigName(absent) => {
            wrong_names(number, task, absent, CONFIG_NAMES, "tasks/", "/pushNotificationConfigs/c-1")
        }
        Kind::OwnConfigName => [
            "tasks/other",
            "tasks/other/pushNotificationConfigs/c-1",
            "tasks/$TASK/pushNotificationConfig/c-1",
        ]
        .map(|name| text(&filled(name, task)))
        .into(),
        Kind::Token => hostile_names().iter().map(|token| text(token)).chain(long()).collect(),
        Kind::Tenant => {
            let unknown = hostile_names().into_iter().chain([
                "echo".into(),
                "default/nobody".into(),
                "x".repeat(9_000),
            ]);
            unknown.map(|tenant| Wrong { error: NO_AGENT, ..text(&tenant) }).collect()
        }
        Kind::Url => texts(BAD_URLS).iter().map(|url| text(url)).chain(very_long()).collect(),
        Kind::Count => numbers(number, &[]),
        Kind::PageSize => numbers(number, &[0, 101, 1_000, 2_147_483_647, 4_294_967_296, 4_294_967_397]),
        Kind::Enum(values) => {
            let last = values.last;
            let zero: &[i64] = if values.accepted.contains(&"0") { &[] } else { &[0] };
            let beyond = [last + 1, last + 2, 99, 127, 128, 65_536, 2_147_483_647];
            numbers(number, &[&beyond, zero].concat())
        }
        Kind::Parts(forms) => wrong_parts(number, message(forms[0], task)),
        Kind::Text | Kind::NonEmpty => very_long().into(),
        Kind::Texts => lists().collect(),
        Kind::Names | Kind::Schemes => {
            let second = [bytes(number, "x"), bytes(number, "")].concat();
            let empty = Wrong { inside: "[0]", ..text("") };
            let second = Wrong { inside: "[1]", ..whole_field("the second one empty", second) };
            lists().chain([empty, second]).collect()
        }
        Kind::Metadata | Kind::Struct => objects(number),
        Kind::RequestMetadata => {
            let skill = bytes(number, entry("skillId", bytes(3, "nope")));
            let skill = Wrong { inside: ".skillId", ..whole_field("an unknown skill", skill) };
            objects(number).into_iter().chain([skill]).collect()
        }
        Kind::Value => {
            any::wrong().into_iter().map(|(what, raw)| whole_field(what, bytes(number, raw))).collect()
        }
        Kind::Time { .. } => wrong_times(number),
        Kind::Content | Kind::Number | Kind::Flag | Kind::Object(_) | Kind::Base64 => Vec::new(),
        Kind::OwnTask | Kind::FromPath | Kind::Skill | Kind::Data => Vec::new(),
    };
    if field.need == Need::Required && field.is_text() && !field.repeated() {
        wrong.push(text(""));
    }
    wrong
}

#[rustfmt::skip]
const TASK_NAMES: &[&str] = &[
    "tasks/", "tasks", "task/$TASK", "$TASK", "/tasks/$TASK", "Tasks/$TASK", "TASKS/$TASK", " tasks/$TASK",
    "tasks:$TASK", "tasks\\$TASK", "tasks%2F$TASK", "tаsks/$TASK", "v1/tasks/$TASK", "./tasks/$TASK",
    "contexts/$TASK",
];

#[rustfmt::skip]
const CONFIG_NAMES: &[&str] = &[
    "tasks/", "tasks/$TASK", "tasks/$TASK/", "tasks/$TASK/pushNotificationConfigs",
    "tasks/$TASK/pushNotificationConfigs/", "tasks//pushNotificationConfigs/c-1",
    "tasks/pushNotificationConfigs/c-1", "$TASK/pushNotificationConfigs/c-1",
    "task/$TASK/pushNotificationConfigs/c-1", "tasks/$TASK/pushNotificationConfig/c-1",
    "tasks/$TASK/PushNotificationConfigs/c-1", "tasks/$TASK/push_notification_configs/c-1",
    "tasks/$TASKpushNotificationConfigs/c-1", "/tasks/$TASK/pushNotificationConfigs/c-1",
];

/// Invalid names, and names of things that do not exist.
fn wrong_names(
    number: u32,
    task: &str,
    absent: &'static ErrorRow,
    forms: &[&str],
    before: &str,
    after: &str,
) -> Vec<Wrong> {
    let put = |name: &str| whole_field(name.to_owned(), bytes(number, name));
    let forms = forms.iter().map(|form| put(&filled(form, task)));
    let bare = hostile_names().into_iter().map(|name| put(&name));
    let absent =
        hostile_names().into_iter().map(|id| Wrong { error: absent, ..put(&format!("{before}{id}{after}")) });
    let long = LONG.map(|length| {
        let name = format!("{before}{}{after}", "x".repeat(length));
        whole_field(format!("{length} bytes"), bytes(number, name))
    });
    forms.chain(bare).chain(absent).chain(long).collect()
}

/// Negative numbers, numbers that are negative when truncated to 32 bits, and further ones.
fn numbers(number: u32, further: &[i64]) -> Vec<Wrong> {
    let below = [-1, -2, -100, -2_147_483_647, -2_147_483_648, 2_147_483_648, 4_294_967_295];
    let all = below.iter().chain(further);
    all.map(|value| whole_field(value.to_string(), int(number, *value))).collect()
}

fn wrong_parts(number: u32, good: Vec<u8>) -> Vec<Wrong> {
    let part = bytes(number, good);
    let empty = bytes(number, "");
    let unknown = bytes(number, int(99, 1));
    vec![
        Wrong { inside: "[0]", ..whole_field("an empty part", empty.clone()) },
        Wrong { inside: "[0]", ..whole_field("a part with unknown fields only", unknown) },
        Wrong { inside: "[1]", ..whole_field("an empty second part", [part.clone(), empty].concat()) },
        whole_field(format!("{} parts", MAX_PARTS + 1), part.repeat(MAX_PARTS + 1)),
        whole_field(format!("{} parts", 3 * MAX_PARTS), part.repeat(3 * MAX_PARTS)),
        whole_field("5000 empty parts", bytes(number, "").repeat(5_000)),
    ]
}

fn too_many(number: u32, most: usize, text: &str) -> Wrong {
    whole_field(format!("{} of them", most + 1), bytes(number, text).repeat(most + 1))
}

fn objects(number: u32) -> Vec<Wrong> {
    any::wrong_objects().into_iter().map(|(what, raw)| whole_field(what, bytes(number, raw))).collect()
}

/// Timestamps outside the years 0000 to 9999, and invalid timestamps.
fn wrong_times(number: u32) -> Vec<Wrong> {
    let beyond =
        [253_402_300_800, 1 << 40, i64::MAX, i64::MAX / 1_000, -62_167_219_201, -(1 << 40), i64::MIN];
    let seconds = beyond.iter().map(|seconds| (format!("second {seconds}"), int(1, *seconds)));
    let nanos = [-1, 1_000_000_000, 2_147_483_647, -2_147_483_648, 2_147_483_648];
    let nanos =
        nanos.iter().map(|nanos| (format!("nanosecond {nanos}"), [int(1, 5), int(2, *nanos)].concat()));
    seconds.chain(nanos).map(|(what, raw)| whole_field(what, bytes(number, raw))).collect()
}

fn whole_field(what: impl Into<String>, raw: Vec<u8>) -> Wrong {
    Wrong { what: what.into(), raw, last: false, inside: "", error: INVALID_PARAMS }
}
