//! Helpers for reading decoded messages: the rules both versions share, with violations by field.
//!
//! Fields have their JSON names, so that one mistake has one description in every binding.

use prost_types::Timestamp as Time;

use crate::{
    Json, Role, TaskState, Timestamp, Violation,
    json::read::{Path, Read},
};

use super::{packed::Packed, values};

/// Reads a repeated message; each element gets its path.
pub(super) fn list<T, U>(
    items: Vec<T>,
    path: &Path<'_>,
    name: &str,
    mut each: impl FnMut(T, &Path<'_>) -> Read<U>,
) -> Read<Vec<U>> {
    let path = Path::Field(path, name);
    let mut list = Vec::with_capacity(items.len());
    for (index, item) in items.into_iter().enumerate() {
        list.push(each(item, &Path::Index(&path, index))?);
    }
    Ok(list)
}

/// Reads a required message; `what` describes what is expected.
pub(super) fn need<T, U>(
    message: Option<T>,
    path: &Path<'_>,
    name: &str,
    what: &str,
    read: impl FnOnce(T, &Path<'_>) -> Read<U>,
) -> Read<U> {
    match message {
        Some(message) => read(message, &Path::Field(path, name)),
        None => Err(lacks(path, name, what)),
    }
}

/// Reads an optional message.
pub(super) fn maybe<T, U>(
    message: Option<T>,
    path: &Path<'_>,
    name: &str,
    read: impl FnOnce(T, &Path<'_>) -> Read<U>,
) -> Read<Option<U>> {
    message.map(|message| read(message, &Path::Field(path, name))).transpose()
}

/// An optional string; empty means absent.
pub(super) fn text(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

/// A required string.
pub(super) fn need_text(text: String, path: &Path<'_>, name: &str) -> Read<String> {
    if text.is_empty() { Err(lacks(path, name, "a non-empty string")) } else { Ok(text) }
}

/// A non-empty element of a list of strings.
pub(super) fn filled(text: String, path: &Path<'_>) -> Read<String> {
    if text.is_empty() { Err(expected(path, "a non-empty string")) } else { Ok(text) }
}

/// An optional JSON object.
pub(super) fn object(packed: Option<Packed>, path: &Path<'_>, name: &str) -> Read<Option<Json>> {
    maybe(packed, path, name, |packed, path| {
        values::object(&packed).map_err(|problem| expected(path, &problem))
    })
}

/// A non-negative number.
pub(super) fn count(number: i32, path: &Path<'_>, name: &str) -> Read<u32> {
    u32::try_from(number).map_err(|_| expected(&Path::Field(path, name), "an integer of 0 or more"))
}

/// Reads a role.
pub(super) fn role(number: i32, path: &Path<'_>) -> Read<Role> {
    const WHAT: &str = "ROLE_USER or ROLE_AGENT";
    match number {
        0 => Err(lacks(path, "role", WHAT)),
        1 => Ok(Role::User),
        2 => Ok(Role::Agent),
        _ => Err(expected(&Path::Field(path, "role"), WHAT)),
    }
}

/// The enum number of a role.
pub(super) fn role_number(role: Role) -> i32 {
    match role {
        Role::User => 1,
        Role::Agent => 2,
    }
}

/// Reads a task state.
pub(super) fn state(number: i32, path: &Path<'_>, name: &str) -> Read<TaskState> {
    let state = u8::try_from(number).ok().and_then(TaskState::from_number);
    state.ok_or_else(|| expected(&Path::Field(path, name), "a task state such as TASK_STATE_WORKING"))
}

/// Reads a timestamp.
pub(super) fn timestamp(time: Time, path: &Path<'_>) -> Read<Timestamp> {
    let millis = match time.nanos {
        nanos @ 0..1_000_000_000 => time
            .seconds
            .checked_mul(1_000)
            .and_then(|millis| millis.checked_add(i64::from(nanos / 1_000_000))),
        _ => None,
    };
    let time = millis.map(Timestamp::from_millis).filter(|time| Some(time.as_millis()) == millis);
    time.ok_or_else(|| expected(path, "a timestamp within the years 0000 to 9999"))
}

/// Writes a timestamp.
pub(super) fn time(timestamp: Timestamp) -> Time {
    let millis = timestamp.as_millis();
    // The remainder is less than a thousand, so the conversion cannot fail.
    let nanos = i32::try_from(millis.rem_euclid(1_000)).unwrap_or_default() * 1_000_000;
    Time { seconds: millis.div_euclid(1_000), nanos }
}

/// A count as int32; i32::MAX if it does not fit.
pub(super) fn int(count: impl TryInto<i32>) -> i32 {
    count.try_into().unwrap_or(i32::MAX)
}

/// A violation for a missing field.
pub(super) fn lacks(path: &Path<'_>, name: &str, what: &str) -> Violation {
    Violation::new(Path::Field(path, name), format_args!("required, expected {what}"))
}

/// A violation for an invalid field.
pub(super) fn expected(path: &Path<'_>, what: &str) -> Violation {
    Violation::new(path, format_args!("expected {what}"))
}
