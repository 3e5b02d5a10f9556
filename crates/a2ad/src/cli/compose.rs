//! What is said: words, data and files from the command line and from stdin, as one message.

use std::{
    io::{IsTerminal as _, Read as _},
    path::{Path, PathBuf},
};

use clap::Args;
use protocol::{Content, Json, Message, Part, Role, SendMessage};

use super::stop::Stop;
use crate::explain;

/// How much is read from stdin or a file.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

#[derive(Debug, Args)]
pub(super) struct MessageFlags {
    /// What to say; `-` is what stands on stdin, and so is nothing at all when something is piped in.
    #[arg(value_name = "TEXT")]
    text: Vec<String>,
    /// Say this JSON value too; may be given several times.
    #[arg(long, value_name = "JSON")]
    data: Vec<String>,
    /// Send this file along; may be given several times.
    #[arg(short, long, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// The conversation it belongs to.
    #[arg(long, value_name = "ID")]
    context: Option<String>,
    /// The skill that is meant.
    #[arg(long, value_name = "ID")]
    skill: Option<String>,
    /// How many messages of history a task carries with --json, the latest ones.
    #[arg(long, value_name = "N", default_value_t = 0)]
    history: u32,
}

impl MessageFlags {
    /// The request to send this, as a new task or to one that is there.
    pub(super) fn compose(&self, task: Option<&str>) -> Result<SendMessage, Stop> {
        let parts = self.parts()?;
        if parts.is_empty() {
            return Err(Stop::usage("there is nothing to say: give a TEXT, --data or --file, or pipe it in"));
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

    fn parts(&self) -> Result<Vec<Part>, Stop> {
        let mut parts: Vec<Part> = self.words()?.map(Part::text).into_iter().collect();
        for text in &self.data {
            parts.push(Part::data(data(text)?));
        }
        for path in &self.file {
            parts.push(file(path)?);
        }
        Ok(parts)
    }

    fn words(&self) -> Result<Option<String>, Stop> {
        let typed = self.text.join(" ");
        let silent = self.text.is_empty() && self.data.is_empty() && self.file.is_empty();
        let piped = silent && !std::io::stdin().is_terminal();
        let words = if typed == "-" || piped { read_stdin()? } else { typed };
        Ok(Some(words).filter(|words| !words.trim().is_empty()))
    }
}

/// A value as it was typed. Who has typed it is told what is missing, not only where.
fn data(text: &str) -> Result<Json, Stop> {
    Json::parse(text).map_err(|problem| {
        Stop::usage(format!("--data is no JSON: {}", explain::why_not_json(text).unwrap_or(problem)))
    })
}

fn read_stdin() -> Result<String, Stop> {
    let cannot = |problem: &str| Stop::usage(format!("stdin cannot be sent: {problem}"));
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(MAX_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| cannot(&error.to_string()))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(cannot("it is larger than 64 MiB"));
    }
    String::from_utf8(bytes).map_err(|_| cannot("it is not UTF-8 text, give it with --file"))
}

fn file(path: &Path) -> Result<Part, Stop> {
    let cannot = |problem: &str| Stop::usage(format!("{} cannot be sent: {problem}", path.display()));
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

fn media_type(path: &Path) -> &'static str {
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    let found = MEDIA_TYPES.iter().find(|row| ending.as_deref() == Some(row.0));
    found.map_or("application/octet-stream", |row| row.1)
}
