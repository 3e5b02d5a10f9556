//! What leaves the program: data on stdout, talk on stderr.
//!
//! An agent's words may hold anything. On a terminal its control characters are taken out, so that no agent can
//! move the cursor or retitle the window; into files and pipes they go as they came.

use std::{
    borrow::Cow,
    cell::Cell,
    io::{IsTerminal as _, Write as _},
};

use protocol::json::write::Writer;

use super::stop::Stop;

/// How long the agent's words in one line of talk may be.
const MAX_LINE: usize = 400;

/// Whether the command line asks for JSON: known before it is parsed, so that its own errors are JSON too.
pub(super) fn json_is_asked() -> bool {
    std::env::args_os().skip(1).take_while(|word| word != "--").any(|word| word == "--json")
}

/// The two outputs of the program.
pub(super) struct Screen {
    json: bool,
    data_is_seen: bool,
    talk_is_seen: bool,
    /// Whether the last data ended in the middle of a line.
    mid_line: Cell<bool>,
}

impl Screen {
    pub(super) fn new() -> Self {
        Self {
            json: json_is_asked(),
            data_is_seen: std::io::stdout().is_terminal(),
            talk_is_seen: std::io::stderr().is_terminal(),
            mid_line: Cell::new(false),
        }
    }

    /// Writes an agent's text as it is, at once.
    pub(super) fn text(&self, text: &str) -> std::io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.mid_line.set(!text.ends_with('\n'));
        let text = if self.data_is_seen { harmless(text) } else { Cow::Borrowed(text) };
        self.write(text.as_bytes())
    }

    /// Ends the line that the last text left open.
    pub(super) fn end_line(&self) -> std::io::Result<()> {
        if self.mid_line.replace(false) { self.write(b"\n") } else { Ok(()) }
    }

    /// Writes one document on a line of its own.
    pub(super) fn document(&self, document: &[u8]) -> std::io::Result<()> {
        let line = [document.trim_ascii_end(), b"\n"].concat();
        self.write(&line)
    }

    /// Says one line to whoever started the program.
    pub(super) fn say(&self, line: &str) {
        if self.json {
            return self.notice(line);
        }
        self.say_all(&one_line(line));
    }

    /// Reports how the program fails; nothing where nobody reads any more.
    pub(super) fn fail(&self, stop: &Stop) {
        if stop.text.is_empty() {
            return;
        }
        if self.json {
            let document = String::from_utf8_lossy(&stop.document()).into_owned();
            return self.say_all(&harmless(&document));
        }
        if !stop.details.is_empty() {
            return stop.details.iter().for_each(|line| self.say_all(&harmless(line)));
        }
        let text = format!("a2ad: {}", stop.text);
        match &stop.next {
            Some(next) => self.say_with(&text, next),
            None => self.say(&text),
        }
    }

    /// A line that is no error, as a document.
    fn notice(&self, line: &str) {
        let mut writer = Writer::new();
        writer.object(|out| out.text("notice", line));
        self.say_all(&harmless(&String::from_utf8_lossy(&writer.finish())));
    }

    /// The same, and what to do next behind it. However long the line is, that stays whole.
    pub(super) fn say_with(&self, line: &str, next: &str) {
        self.say_all(&format!("{}; {}", one_line(line), harmless(next)));
    }

    fn say_all(&self, line: &str) {
        // Where both go to one terminal, talk does not begin in the middle of the data.
        let before = if self.mid_line.get() && self.data_is_seen && self.talk_is_seen { "\n" } else { "" };
        let _ = writeln!(std::io::stderr(), "{before}{line}");
    }

    /// Says how it goes, where somebody watches.
    pub(super) fn progress(&self, line: &str) {
        if self.talk_is_seen && !self.json {
            self.say(line);
        }
    }

    fn write(&self, bytes: &[u8]) -> std::io::Result<()> {
        let mut out = std::io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()
    }
}

/// The text without what a terminal would act on.
fn harmless(text: &str) -> Cow<'_, str> {
    let acts = |character: char| character.is_control() && !matches!(character, '\n' | '\t');
    if text.contains(acts) { text.replace(acts, "").into() } else { text.into() }
}

/// The text as one line of bearable length.
fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = harmless(&line);
    match line.char_indices().nth(MAX_LINE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_cannot_act_on_a_terminal() {
        assert_eq!(harmless("a\u{1b}[2Jb\r\u{9b}c\n\td"), "a[2Jbc\n\td");
        assert_eq!(one_line("a\n b\u{7}\r\n"), "a b");
        assert_eq!(one_line(&"é".repeat(MAX_LINE + 1)).chars().count(), MAX_LINE + 1);
    }
}
