//! The facts of a call, as the command gets them: environment variables, and files for what may be large.

use std::{
    env,
    fs::{DirBuilder, OpenOptions, remove_dir_all},
    hash::{BuildHasher as _, RandomState},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use protocol::{Content, Message, json::write::Writer};

use super::Protocol;
use crate::backend::Call;

/// Maximum length of the list of files, in bytes: an environment variable cannot be much longer.
const MAX_LIST: usize = 100_000;
/// Maximum length of the name of a file, without its number.
const MAX_NAME: usize = 100;

/// The environment of one call, and its files, which are removed when this is dropped.
pub(super) struct Facts {
    environment: Vec<(&'static str, String)>,
    folder: Option<Folder>,
}

impl Facts {
    /// The facts of a call; with [`Protocol::Jsonl`] also its saved state and the client's answer.
    pub(super) fn of(call: &Call<'_>, protocol: Protocol) -> io::Result<Self> {
        let mut facts = Self {
            environment: vec![
                ("A2AD_CALL_TASK", call.turn.task_id.as_str().to_owned()),
                ("A2AD_CALL_CONTEXT", call.turn.context_id.as_str().to_owned()),
                ("A2AD_CALL_SKILL", call.skill.to_owned()),
                ("A2AD_CALL_ATTEMPT", call.attempt().to_string()),
                ("A2AD_CALL_IDEMPOTENCY_KEY", call.idempotency_key().to_owned()),
                ("TRACEPARENT", call.trace_context().to_string()),
            ],
            folder: None,
        };
        if let Some(state) = call.trace_context().state() {
            facts.environment.push(("TRACESTATE", state.to_owned()));
        }
        if let Some(input) = call.message {
            facts.write_files(&input.message)?;
        }
        // `null` is the state of a command that has asked without a checkpoint.
        let saved = call.state.map(|state| state.as_str()).filter(|state| *state != "null");
        let answer = call.answer();
        if protocol == Protocol::Jsonl && (saved.is_some() || answer.is_some()) {
            let folder = facts.folder.take().map_or_else(Folder::create, Ok)?;
            if let Some(saved) = saved {
                let file = folder.write("saved.json", saved.as_bytes())?;
                facts.environment.push(("A2AD_CALL_SAVED", file));
            }
            if let Some(message) = answer {
                let file = folder.write("answer.json", &answer_json(message))?;
                facts.environment.push(("A2AD_CALL_ANSWER", file));
            }
            facts.folder = Some(folder);
        }
        Ok(facts)
    }

    /// The files of a message, with a list of them in `A2AD_CALL_FILES`; the list is empty if there are none.
    fn write_files(&mut self, message: &Message) -> io::Result<()> {
        let files = message.parts.iter().filter_map(|part| match &part.content {
            Content::Raw(bytes) => Some((part, bytes)),
            _ => None,
        });
        let mut writer = Writer::new();
        let mut written = Ok(());
        writer.array(files.enumerate(), |out, (number, (part, bytes))| {
            let name = part.filename.as_deref();
            match self.write_file(number + 1, name, bytes) {
                Ok(path) => out.object(|out| {
                    out.maybe_text("name", name);
                    out.maybe_text("mediaType", part.media_type.as_deref());
                    out.text("path", &path);
                }),
                Err(error) => {
                    written = Err(error);
                    out.raw("null");
                }
            }
        });
        written?;
        let list = String::from_utf8(writer.finish()).map_err(io::Error::other)?;
        if list.len() > MAX_LIST {
            let text =
                format!("the list of the message's files has {} bytes; at most {MAX_LIST} fit", list.len());
            return Err(io::Error::other(text));
        }
        self.environment.push(("A2AD_CALL_FILES", list));
        Ok(())
    }

    fn write_file(&mut self, number: usize, name: Option<&str>, bytes: &[u8]) -> io::Result<String> {
        if self.folder.is_none() {
            self.folder = Some(Folder::create()?);
        }
        let folder = self.folder.as_ref().expect("it was created");
        folder.write(&file_name(number, name), bytes)
    }

    /// Ids may be any text: what a variable cannot contain is percent-encoded.
    pub(super) fn environment(&self) -> impl Iterator<Item = (String, String)> {
        self.environment.iter().map(|(name, value)| ((*name).to_owned(), value.replace('\0', "%00")))
    }

    /// The folder with the files.
    pub(super) fn folder(&self) -> Option<&Path> {
        self.folder.as_ref().map(|Folder(path)| path.as_path())
    }
}

/// The name of a file in the folder: a number, and what is harmless in the name that the client gave it.
fn file_name(number: usize, name: Option<&str>) -> String {
    let name = name.unwrap_or_default().rsplit(['/', '\\']).next().unwrap_or_default();
    let safe = |sign: char| if sign.is_ascii_alphanumeric() || "._-".contains(sign) { sign } else { '_' };
    let name: String = name.chars().map(safe).collect();
    // The end has the extension.
    let name = &name[name.len().saturating_sub(MAX_NAME)..];
    if name.is_empty() { number.to_string() } else { format!("{number}-{name}") }
}

/// `{"text": …, "data": …}`; the data is that of the first data part, or null.
fn answer_json(message: &Message) -> Vec<u8> {
    let data = message.parts.iter().find_map(|part| match &part.content {
        Content::Data(data) => Some(data.as_str()),
        _ => None,
    });
    let mut writer = Writer::new();
    writer.object(|out| {
        out.text("text", &message.text());
        out.key("data").raw(data.unwrap_or("null"));
    });
    writer.finish()
}

/// A folder for files that only the user of the server can read.
struct Folder(PathBuf);

impl Folder {
    /// Creates it with a random name, so that nobody else can create it before.
    fn create() -> io::Result<Self> {
        let name = format!("a2ad-call-{:016x}", RandomState::new().hash_one(std::process::id()));
        let path = env::temp_dir().join(name);
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<String> {
        let Self(folder) = self;
        let path = folder.join(name);
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?.write_all(bytes)?;
        path_text(&path)
    }
}

fn path_text(path: &Path) -> io::Result<String> {
    let text = path.to_str().ok_or_else(|| io::Error::other("TMPDIR is not UTF-8"))?;
    Ok(text.to_owned())
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The supervisor removes it too, for a server that has died.
        if let Err(error) = remove_dir_all(&self.0)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(folder = %self.0.display(), %error, "a folder with files of a call was not removed");
        }
    }
}
