//! The program's output: data to stdout, messages to stderr.
//!
//! An agent's text is untrusted. On a terminal its control characters are removed, so that no agent can move the
//! cursor, change the window title or reverse the order of the characters; files and pipes get it unchanged. In JSON they
//! are escaped everywhere, which means the same to its readers.

use std::{
    borrow::Cow,
    cell::Cell,
    fmt::Write as _,
    io::{IsTerminal as _, Write as _},
    path::PathBuf,
};

use protocol::json::write::Writer;

use crate::cli::failure::Failure;

/// The most characters of one message on stderr.
const MAX_LINE: usize = 400;

/// Whether `--json` was given. Found before the arguments are parsed, so that their errors are JSON too.
pub(crate) fn json_requested() -> bool {
    std::env::args_os().skip(1).take_while(|arg| arg != "--").any(|arg| arg == "--json")
}

/// Writes to stdout and stderr.
pub(crate) struct Output {
    json: bool,
    stdout_is_terminal: bool,
    stderr_is_terminal: bool,
    /// Whether the last data on stdout did not end with a newline.
    mid_line: Cell<bool>,
    /// Where files of agents are written; `None`: nowhere.
    folder: Option<PathBuf>,
}

impl Output {
    pub(crate) fn new() -> Self {
        Self {
            json: json_requested(),
            stdout_is_terminal: std::io::stdout().is_terminal(),
            stderr_is_terminal: std::io::stderr().is_terminal(),
            mid_line: Cell::new(false),
            folder: None,
        }
    }

    /// Writes files of agents into this folder.
    pub(crate) fn with_folder(self, folder: Option<PathBuf>) -> Self {
        Self { folder, ..self }
    }

    /// Writes a file of an agent under its name, or under another if there is one already; returns where. `None` without a
    /// folder.
    pub(crate) fn save_file(&self, name: &str, content: &[u8]) -> std::io::Result<Option<PathBuf>> {
        let Some(folder) = &self.folder else { return Ok(None) };
        let failed = |error: std::io::Error| {
            std::io::Error::new(error.kind(), format!("{}: {error}", folder.display()))
        };
        std::fs::create_dir_all(folder).map_err(failed)?;
        let name = file_name(name);
        for number in 1.. {
            let path = folder.join(if number == 1 { name.clone() } else { numbered(&name, number) });
            match std::fs::OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(mut file) => {
                    file.write_all(content).map_err(failed)?;
                    return Ok(Some(path));
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(None)
    }

    /// Whether stdout is a terminal.
    pub(crate) fn is_for_people(&self) -> bool {
        self.stdout_is_terminal
    }

    /// Writes an agent's text to stdout and flushes it.
    pub(crate) fn text(&self, text: &str) -> std::io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.mid_line.set(!text.ends_with('\n'));
        let text = if self.stdout_is_terminal { without_controls(text) } else { Cow::Borrowed(text) };
        self.write_stdout(text.as_bytes())
    }

    /// Ends a line that the last text left unfinished.
    pub(crate) fn end_line(&self) -> std::io::Result<()> {
        if self.mid_line.replace(false) { self.write_stdout(b"\n") } else { Ok(()) }
    }

    /// Writes one JSON document on its own line.
    pub(crate) fn document(&self, document: &[u8]) -> std::io::Result<()> {
        let line = escape_controls(document.trim_ascii_end()) + "\n";
        self.write_stdout(line.as_bytes())
    }

    /// Writes one message to stderr.
    pub(crate) fn message(&self, line: &str) {
        if self.json {
            return self.write_notice(line);
        }
        self.write_stderr(&one_line(line));
    }

    /// Reports an error; writes nothing for an error with an empty text.
    pub(crate) fn report(&self, failure: &Failure) {
        if failure.text.is_empty() {
            return;
        }
        if self.json {
            return self.write_stderr(&escape_controls(&failure.document()));
        }
        if !failure.details.is_empty() {
            return failure.details.iter().for_each(|line| self.write_stderr(&without_controls(line)));
        }
        let text = format!("a2ad: {}", failure.text);
        match &failure.next {
            Some(next) => self.message_with_hint(&text, next),
            None => self.message(&text),
        }
    }

    /// Writes a message that is not an error as a JSON document.
    fn write_notice(&self, line: &str) {
        let mut writer = Writer::new();
        writer.object(|out| out.text("notice", line));
        self.write_stderr(&escape_controls(&writer.finish()));
    }

    /// Writes a message followed by what to do next. The message may be truncated, the next step is not.
    pub(crate) fn message_with_hint(&self, line: &str, next: &str) {
        self.write_stderr(&format!("{}; {}", one_line(line), without_controls(next)));
    }

    fn write_stderr(&self, line: &str) {
        // If both streams go to a terminal, the message must not continue a line of data.
        let before =
            if self.mid_line.get() && self.stdout_is_terminal && self.stderr_is_terminal { "\n" } else { "" };
        let _ = writeln!(std::io::stderr(), "{before}{line}");
    }

    /// Writes a progress message if stderr is a terminal.
    pub(crate) fn progress(&self, line: &str) {
        if self.stderr_is_terminal && !self.json {
            self.message(line);
        }
    }

    fn write_stdout(&self, bytes: &[u8]) -> std::io::Result<()> {
        let mut out = std::io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()
    }
}

/// A name that an agent gave, as the name of a file: no folders, nothing hidden, nothing that a terminal would interpret.
fn file_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain: String =
        last.chars().filter(|c| !c.is_control() && !changes_direction(*c)).take(120).collect();
    let plain = plain.trim().trim_start_matches('.');
    if plain.is_empty() { "file".to_owned() } else { plain.to_owned() }
}

/// The name with a number before its extension.
fn numbered(name: &str, number: u32) -> String {
    match name.rsplit_once('.') {
        Some((stem, extension)) => format!("{stem}-{number}.{extension}"),
        None => format!("{name}-{number}"),
    }
}

/// Whether a terminal would interpret a character instead of showing it.
fn is_control(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        character => character.is_control() || changes_direction(character),
    }
}

/// Whether a character controls the direction of text. These are no control characters of Unicode.
pub(crate) fn changes_direction(character: char) -> bool {
    matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

/// Removes what a terminal would interpret.
fn without_controls(text: &str) -> Cow<'_, str> {
    if text.contains(is_control) { text.replace(is_control, "").into() } else { text.into() }
}

/// Escapes in a JSON document what a terminal would interpret. It is in strings only, except for `\r` between values, which
/// is removed.
fn escape_controls(document: &[u8]) -> String {
    let document = String::from_utf8_lossy(document);
    let mut out = String::with_capacity(document.len());
    for character in document.chars() {
        match character {
            '\r' => {}
            // None of them needs more than one unit of UTF-16.
            character if is_control(character) => {
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            character => out.push(character),
        }
    }
    out
}

/// Joins the text to one line of at most [`MAX_LINE`] characters.
fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = without_controls(&line);
    match line.char_indices().nth(MAX_LINE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_agents_stay_in_the_folder_and_replace_none() {
        let folder = tempfile::tempdir().unwrap();
        let output = Output::new().with_folder(Some(folder.path().join("new")));
        let saved = |name| output.save_file(name, b"x").unwrap().unwrap();
        let inside = |name: &str| folder.path().join("new").join(name);
        assert_eq!(saved("../../a.png"), inside("a.png"));
        assert_eq!(saved("C:\\x\\a.png"), inside("a-2.png"));
        assert_eq!(saved(".."), inside("file"));
        assert_eq!(saved(".bashrc"), inside("bashrc"));
        assert_eq!(saved(""), inside("file-2"));
        assert_eq!(Output::new().save_file("a", b"x").unwrap(), None);
    }

    #[test]
    fn control_characters_are_removed_for_terminals() {
        assert_eq!(without_controls("a\u{1b}[2Jb\r\u{9b}c\n\td"), "a[2Jbc\n\td");
        let marks =
            "\u{61c}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}";
        assert_eq!(without_controls(&format!("a{marks}\u{200d}ש\u{2065}")), "a\u{200d}ש\u{2065}");
        let document = format!("{{\"a\":\r\n\"{marks}\u{7f}\u{9b}\u{1f600}\"}}");
        assert!(escape_controls(document.as_bytes()).starts_with("{\"a\":\n\"\\u061c\\u200e"));
        assert!(escape_controls(document.as_bytes()).ends_with("\\u2069\\u007f\\u009b\u{1f600}\"}"));
        assert_eq!(one_line("a\n b\u{7}\r\n"), "a b");
        assert_eq!(one_line(&"é".repeat(MAX_LINE + 1)).chars().count(), MAX_LINE + 1);
    }
}
