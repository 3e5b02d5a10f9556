//! Media type checks: the agent's input and output modes against the types of a message's parts and the client's
//! accepted output modes (A2A 3.1.1, 3.2.2).
//!
//! Types are compared without case and parameters. `*/*` and `type/*` are wildcards on either side, and so are the
//! draft's names `text`, `data` and `file`.

use protocol::{Error, ErrorKind, Part};

/// Rejects a client whose accepted modes exclude every mode of the agent. An empty list accepts everything. JSON is
/// text too: many clients accept text only, whatever the agent, and most tools answer with a text or a JSON object.
pub(super) fn check_output(offered: &[&str], accepted: &[String]) -> Result<(), Error> {
    let json = offered.iter().any(|mode| modes_overlap(mode, "application/json"));
    let as_text = json.then_some("text/plain");
    let fits =
        |accepted: &String| offered.iter().copied().chain(as_text).any(|mode| modes_overlap(mode, accepted));
    if accepted.is_empty() || offered.is_empty() || accepted.iter().any(fits) {
        return Ok(());
    }
    let text = format!(
        "acceptedOutputModes: this agent produces {}, and the client accepts only {}",
        joined(offered),
        accepted.join(", ")
    );
    Err(Error::new(ErrorKind::ContentTypeNotSupported, text).with("supportedModes", joined(offered)))
}

/// Rejects a part whose media type the agent does not accept. A part without a media type passes: text and data are
/// converted into one another, and a file may have any type.
pub(super) fn check_input(accepted_input: &[&str], parts: &[Part]) -> Result<(), Error> {
    for (index, part) in parts.iter().enumerate() {
        let Some(kind) = part.media_type.as_deref() else { continue };
        if !accepted_input.is_empty() && !accepted_input.iter().any(|mode| modes_overlap(mode, kind)) {
            let text =
                format!("message.parts[{index}]: this agent accepts {}, not {kind}", joined(accepted_input));
            let error = Error::new(ErrorKind::ContentTypeNotSupported, text);
            return Err(error.with("supportedModes", joined(accepted_input)));
        }
    }
    Ok(())
}

fn joined(modes: &[&str]) -> String {
    let mut modes = modes.to_vec();
    modes.sort_unstable();
    modes.dedup();
    modes.join(", ")
}

/// Whether some media type matches both names.
fn modes_overlap(one: &str, other: &str) -> bool {
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

/// A media type, a wildcard, or one of the draft's names.
#[derive(Clone, Copy)]
enum Mode<'a> {
    /// The draft's name for everything that is neither text nor data.
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
    fn modes_match_without_case_and_parameters_and_by_wildcard() {
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
            assert!(modes_overlap(one, other) && modes_overlap(other, one), "{one} {other}");
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
            assert!(!modes_overlap(one, other) && !modes_overlap(other, one), "{one} {other}");
        }
    }

    #[test]
    fn part_without_media_type_is_accepted() {
        let raw = || Part::new(Content::Raw(vec![1]));
        let image = Part { media_type: Some("image/png".into()), ..raw() };
        assert_eq!(check_input(&["text/plain"], &[Part::text("a"), raw()]), Ok(()));
        let refused = check_input(&["text/plain"], &[Part::text("a"), image.clone()]).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::ContentTypeNotSupported);
        assert_eq!(refused.message, "message.parts[1]: this agent accepts text/plain, not image/png");
        assert_eq!(check_input(&["text/plain", "image/*"], &[image]), Ok(()));
    }

    #[test]
    fn empty_accepted_modes_accept_everything() {
        assert_eq!(check_output(&["text/plain"], &[]), Ok(()));
        assert_eq!(check_output(&["text/plain"], &["image/png".into(), "text".into()]), Ok(()));
        assert_eq!(check_output(&["application/json"], &["text".into(), "text/plain".into()]), Ok(()));
        assert!(check_output(&["application/json"], &["text/html".into()]).is_err());
        let refused = check_output(&["text/plain"], &["image/png".into()]).unwrap_err();
        assert!(refused.message.contains("text/plain") && refused.message.contains("image/png"), "{refused}");
    }
}
