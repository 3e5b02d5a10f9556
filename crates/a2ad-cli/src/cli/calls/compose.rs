//! Builds one message from the text, data and files of the command line and stdin.

use std::{
    io::{IsTerminal as _, Read as _},
    path::{Path, PathBuf},
};

use clap::Args;
use protocol::{Content, Json, Message, Part, Role, SendMessage, json::syntax_error};

use crate::cli::failure::Failure;

/// The most bytes read from stdin or from one file.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

#[derive(Debug, Args)]
pub(crate) struct MessageFlags {
    /// Text of the message; `-` reads stdin, as does no TEXT when stdin is piped.
    #[arg(value_name = "TEXT")]
    text: Vec<String>,
    /// Add this JSON value; can be repeated.
    #[arg(long, value_name = "JSON")]
    data: Vec<String>,
    /// Add this file; can be repeated.
    #[arg(short, long, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// Context (conversation) of the message.
    #[arg(long, value_name = "ID")]
    context: Option<String>,
    /// Skill to use.
    #[arg(long, value_name = "ID")]
    skill: Option<String>,
    /// Number of latest history messages to include in a task with --json.
    #[arg(long, value_name = "N", default_value_t = 0)]
    history: u32,
}

impl MessageFlags {
    /// A message to a skill.
    pub(crate) fn of_skill(skill: &str, text: Vec<String>, data: Option<String>) -> Self {
        Self {
            text,
            data: data.into_iter().collect(),
            file: Vec::new(),
            context: None,
            skill: Some(skill.to_owned()),
            history: 0,
        }
    }

    /// The request that sends this message, as a new task or to an existing one.
    pub(crate) fn compose(&self, task: Option<&str>) -> Result<SendMessage, Failure> {
        let parts = self.parts()?;
        if parts.is_empty() {
            return Err(Failure::usage(
                "the message is empty: give TEXT, --data or --file, or pipe text to stdin",
            ));
        }
        let mut message = Message::new(uuid::Uuid::new_v4().to_string(), Role::User, parts);
        message.task_id = task.map(Into::into);
        message.context_id = self.context.as_deref().map(Into::into);
        Ok(SendMessage {
            history_length: Some(self.history),
            skill: self.skill.clone(),
            return_immediately: true,
            ..SendMessage::new(message)
        })
    }

    fn parts(&self) -> Result<Vec<Part>, Failure> {
        let mut parts: Vec<Part> = self.message_text()?.map(Part::text).into_iter().collect();
        for text in &self.data {
            parts.push(Part::data(data(text)?));
        }
        for path in &self.file {
            parts.push(file(path)?);
        }
        Ok(parts)
    }

    fn message_text(&self) -> Result<Option<String>, Failure> {
        let typed = self.text.join(" ");
        let no_input = self.text.is_empty() && self.data.is_empty() && self.file.is_empty();
        let piped = no_input && !std::io::stdin().is_terminal();
        let text = if typed == "-" || piped { read_stdin()? } else { typed };
        Ok(Some(text).filter(|text| !text.trim().is_empty()))
    }
}

/// Parses a JSON value. The error states what is missing, not only the position.
fn data(text: &str) -> Result<Json, Failure> {
    Json::parse(text).map_err(|problem| {
        Failure::usage(format!("--data is not JSON: {}", syntax_error(text).unwrap_or(problem)))
    })
}

fn read_stdin() -> Result<String, Failure> {
    let cannot = |problem: &str| Failure::usage(format!("stdin cannot be sent: {problem}"));
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(MAX_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| cannot(&error.to_string()))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(cannot("it is larger than 64 MiB"));
    }
    String::from_utf8(bytes).map_err(|_| cannot("it is not UTF-8 text; use --file instead"))
}

fn file(path: &Path) -> Result<Part, Failure> {
    let cannot = |problem: &str| Failure::usage(format!("{} cannot be sent: {problem}", path.display()));
    let opened = std::fs::File::open(path).map_err(|error| cannot(&error.to_string()))?;
    let mut bytes = Vec::new();
    opened.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| cannot(&error.to_string()))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(cannot("it is larger than 64 MiB"));
    }
    Ok(Part {
        media_type: Some(media_type(path).to_owned()),
        filename: path.file_name().map(|name| name.to_string_lossy().into_owned()),
        ..Part::new(Content::Raw(bytes))
    })
}

const MEDIA_TYPES: [(&str, &str); 20] = [
    ("txt", "text/plain"),
    ("log", "text/plain"),
    ("md", "text/markdown"),
    ("csv", "text/csv"),
    ("html", "text/html"),
    ("xml", "application/xml"),
    ("json", "application/json"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("pdf", "application/pdf"),
    ("zip", "application/zip"),
    ("gz", "application/gzip"),
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("svg", "image/svg+xml"),
    ("webp", "image/webp"),
    ("wav", "audio/wav"),
    ("mp3", "audio/mpeg"),
];

/// The extension of files of this type.
pub(crate) fn extension(media_type: &str) -> Option<&'static str> {
    MEDIA_TYPES.iter().find(|row| row.1 == media_type).map(|row| row.0)
}

fn media_type(path: &Path) -> &'static str {
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    let found = MEDIA_TYPES.iter().find(|row| ending.as_deref() == Some(row.0));
    found.map_or("application/octet-stream", |row| row.1)
}
