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
        // `null` is the state of a command that has asked without a checkpoint.
        let saved = call.state.map(|state| state.as_str()).filter(|state| *state != "null");
        let answer = call.answer();
        if protocol == Protocol::Jsonl && (saved.is_some() || answer.is_some()) {
            let folder = Folder::create()?;
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

    /// Ids may be any text: what a variable cannot contain is percent-encoded.
    pub(super) fn environment(&self) -> impl Iterator<Item = (String, String)> {
        self.environment.iter().map(|(name, value)| ((*name).to_owned(), value.replace('\0', "%00")))
    }

    /// The folder with the files.
    pub(super) fn folder(&self) -> Option<&Path> {
        self.folder.as_ref().map(|Folder(path)| path.as_path())
    }
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
