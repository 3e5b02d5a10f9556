//! Media types: what an agent takes and gives against what a client brings and can read (A2A 3.1.1, 3.2.2).
//!
//! Names are compared without case and parameters. `*/*` and `type/*` stand for many on either side, and so do the
//! draft's words: `text`, `data` and `file`.

use engine::AgentInfo;
use protocol::{Error, ErrorKind, Part, model::AgentSkill};

/// What an agent gives: one skill of it where the client names one, else any.
pub(super) fn given<'a>(info: &'a AgentInfo, skill: Option<&str>, shown: Option<&'a str>) -> Vec<&'a str> {
    modes(&info.output_modes, &info.skills, skill, shown, |skill| &skill.output_modes)
}

/// What an agent takes: one skill of it where the client names one, else any.
pub(super) fn taken<'a>(info: &'a AgentInfo, skill: Option<&str>, shown: Option<&'a str>) -> Vec<&'a str> {
    modes(&info.input_modes, &info.skills, skill, shown, |skill| &skill.input_modes)
}

/// `own` counts for every skill that says nothing itself.
fn modes<'a>(
    own: &'a [String],
    skills: &'a [AgentSkill],
    asked: Option<&str>,
    shown: Option<&'a str>,
    of: fn(&AgentSkill) -> &Vec<String>,
) -> Vec<&'a str> {
    let asked = asked.and_then(|id| skills.iter().find(|skill| skill.id == id));
    let modes: Vec<&String> = match asked {
        Some(skill) if of(skill).is_empty() => own.iter().collect(),
        Some(skill) => of(skill).iter().collect(),
        None => own.iter().chain(skills.iter().flat_map(of)).collect(),
    };
    modes.into_iter().map(String::as_str).chain(shown).collect()
}

/// Refuses a client that can read nothing of what there may be; one that says nothing reads everything.
pub(super) fn check_output(given: &[&str], accepted: &[String]) -> Result<(), Error> {
    let fits = |accepted: &String| given.iter().any(|mode| meet(mode, accepted));
    if accepted.is_empty() || given.is_empty() || accepted.iter().any(fits) {
        return Ok(());
    }
    let text = format!(
        "acceptedOutputModes: this agent gives {}, and the client takes {} only",
        listed(given),
        accepted.join(", ")
    );
    Err(Error::new(ErrorKind::ContentTypeNotSupported, text).with("supportedModes", listed(given)))
}

/// Refuses a part of a kind that the agent does not take. A part that does not say what it is passes: text and data
/// are turned into one another, and a file may be anything.
pub(super) fn check_input(taken: &[&str], parts: &[Part]) -> Result<(), Error> {
    for (place, part) in parts.iter().enumerate() {
        let Some(kind) = part.media_type.as_deref() else { continue };
        if !taken.is_empty() && !taken.iter().any(|mode| meet(mode, kind)) {
            let text = format!("message.parts[{place}]: this agent takes {}, not {kind}", listed(taken));
            let error = Error::new(ErrorKind::ContentTypeNotSupported, text);
            return Err(error.with("supportedModes", listed(taken)));
        }
    }
    Ok(())
}

fn listed(modes: &[&str]) -> String {
    let mut modes = modes.to_vec();
    modes.sort_unstable();
    modes.dedup();
    modes.join(", ")
}

/// Whether there is something that both names stand for.
fn meet(one: &str, other: &str) -> bool {
    let (one, other) = (Mode::of(one), Mode::of(other));
    match (one, other) {
        (Mode::File, Mode::File) => true,
        (Mode::File, Mode::Type(kind, rest)) | (Mode::Type(kind, rest), Mode::File) => is_file(kind, rest),
        (Mode::Type(kind, rest), Mode::Type(other_kind, other_rest)) => {
            let same = |one: &str, other: &str| one == "*" || other == "*" || one.eq_ignore_ascii_case(other);
            same(kind, other_kind) && same(rest, other_rest)
        }
    }
}

/// A name for one or many media types.
#[derive(Clone, Copy)]
enum Mode<'a> {
    /// The draft's word for whatever is neither text nor data.
    File,
    Type(&'a str, &'a str),
}

impl<'a> Mode<'a> {
    fn of(name: &'a str) -> Self {
        let essence = name.split(';').next().unwrap_or_default().trim();
        match essence.split_once('/') {
            Some((kind, rest)) => Self::Type(kind.trim_end(), rest.trim_start()),
            None if essence.eq_ignore_ascii_case("text") => Self::Type("text", "plain"),
            None if essence.eq_ignore_ascii_case("data") => Self::Type("application", "json"),
            None if essence.eq_ignore_ascii_case("file") => Self::File,
            None => Self::Type(essence, ""),
        }
    }
}

fn is_file(kind: &str, rest: &str) -> bool {
    let is_json = kind.eq_ignore_ascii_case("application") && rest.eq_ignore_ascii_case("json");
    !kind.eq_ignore_ascii_case("text") && !is_json
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::Content;

    #[test]
    fn names_meet_without_case_and_parameters_and_through_wildcards_and_words() {
        for (one, other) in [
            ("text/plain", "text/plain"),
            ("Text/Plain; charset=utf-8", "text/plain"),
            ("text/*", "text/html"),
            ("*/*", "image/png"),
            ("*/*", "file"),
            ("text", "text/plain"),
            ("data", "application/json"),
            ("file", "image/png"),
            ("file", "application/pdf"),
            ("file", "file"),
            ("custom", "custom"),
        ] {
            assert!(meet(one, other) && meet(other, one), "{one} {other}");
        }
        for (one, other) in [
            ("text/plain", "text/html"),
            ("text/*", "image/png"),
            ("text", "data"),
            ("file", "text/plain"),
            ("file", "application/json"),
            ("text", "text/html"),
            ("", "text/plain"),
        ] {
            assert!(!meet(one, other) && !meet(other, one), "{one} {other}");
        }
    }

    #[test]
    fn a_part_without_a_media_type_may_be_anything() {
        let raw = || Part::new(Content::Raw(vec![1]));
        let image = Part { media_type: Some("image/png".into()), ..raw() };
        assert_eq!(check_input(&["text/plain"], &[Part::text("a"), raw()]), Ok(()));
        let refused = check_input(&["text/plain"], &[Part::text("a"), image.clone()]).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::ContentTypeNotSupported);
        assert_eq!(refused.message, "message.parts[1]: this agent takes text/plain, not image/png");
        assert_eq!(check_input(&["text/plain", "image/*"], &[image]), Ok(()));
    }

    #[test]
    fn who_says_nothing_reads_everything() {
        assert_eq!(check_output(&["text/plain"], &[]), Ok(()));
        assert_eq!(check_output(&["text/plain"], &["image/png".into(), "text".into()]), Ok(()));
        let refused = check_output(&["text/plain"], &["image/png".into()]).unwrap_err();
        assert!(refused.message.contains("text/plain") && refused.message.contains("image/png"), "{refused}");
    }
}
