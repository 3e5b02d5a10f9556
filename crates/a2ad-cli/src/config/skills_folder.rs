//! `server.skills_dir`: a folder whose files are skills.
//!
//! An executable is a skill with a command, an OpenAPI document has a skill for each operation, and a `*.toml` has the keys
//! of one skill or the tables `[skills]`, `[mcp]` and `[openapi]`. The name of a file without its extension is the id.
//! Beside a `*.toml` other files of the same name are no skills of their own: it describes them.
//!
//! Every file is read by itself. One that is not valid is skipped and reported, and changes nothing for the others.

mod listing;
mod toml_file;

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt as _, path::Path};

use a2ad::internal::assembly::{Document, SkillConfig};
use outbound::{backends::mcp::McpConfig, dial::Dialer};

pub(crate) use listing::Listing;
use listing::{FileKind, FolderFile};

use super::{
    backends,
    read::{Problems, Section},
    skills,
    tree::{Entry, Item, Location, Table, Value},
};

/// Others than the owner and the group may write.
const WORLD_WRITABLE: u32 = 0o002;

/// What the files of a folder define. No name is also defined by the configuration file.
#[derive(Default)]
pub(super) struct FolderSkills {
    pub(super) skills: Vec<SkillConfig>,
    pub(super) mcp: BTreeMap<String, McpConfig>,
    pub(super) openapi: BTreeMap<String, Document>,
    /// One line for each problem of a file that was skipped.
    pub(super) skipped: Vec<String>,
}

/// What the configuration file defines.
pub(super) struct Main<'a> {
    pub(super) skills: &'a [SkillConfig],
    pub(super) mcp: &'a BTreeMap<String, McpConfig>,
    pub(super) openapi: &'a BTreeMap<String, Document>,
    pub(super) dialer: &'a Dialer,
}

/// The files to read: the given ones if they are those of the folder, else all at this moment.
pub(super) fn listing(folder: &Path, given: Option<&Listing>) -> Listing {
    given.filter(|given| given.folder() == folder).cloned().unwrap_or_else(|| Listing::of(folder))
}

/// Why a folder cannot be used: whoever can write to it can run programs as the user of the server.
pub(super) fn problem(folder: &Path) -> Option<String> {
    let metadata = match fs::metadata(folder) {
        Ok(metadata) => metadata,
        Err(error) => return Some(format!("the folder {} cannot be read: {error}", folder.display())),
    };
    if !metadata.is_dir() {
        return Some(format!("{} is not a folder", folder.display()));
    }
    is_world_writable(&metadata)
        .then(|| format!("everybody can write to {}; run: chmod o-w {}", folder.display(), folder.display()))
}

fn is_world_writable(metadata: &fs::Metadata) -> bool {
    metadata.permissions().mode() & WORLD_WRITABLE != 0
}

/// Reads the listed files of a folder.
pub(super) fn read(folder: &Path, listing: &Listing, main: &Main<'_>) -> FolderSkills {
    let mut found = FolderSkills::default();
    for file in listing.files() {
        match file.read(folder, main, &found) {
            Ok(more) => found.add(more),
            Err(lines) => found.skipped.extend(lines),
        }
    }
    found
}

impl FolderSkills {
    fn add(&mut self, more: Self) {
        self.skills.extend(more.skills);
        self.mcp.extend(more.mcp);
        self.openapi.extend(more.openapi);
    }

    /// Reports the names that are defined elsewhere too.
    fn check_names(&self, file: &Section<'_>, main: &Main<'_>, earlier: &Self) {
        let taken = |table: &str, name: &str| {
            file.open(table).report(name, "this name is used already; choose another one");
        };
        for SkillConfig { id, .. } in &self.skills {
            if main.skills.iter().chain(&earlier.skills).any(|skill| skill.id == *id) {
                taken("skills", id);
            }
        }
        for name in self.mcp.keys() {
            if main.mcp.contains_key(name) || earlier.mcp.contains_key(name) {
                taken("mcp", name);
            }
        }
        for name in self.openapi.keys() {
            if main.openapi.contains_key(name) || earlier.openapi.contains_key(name) {
                taken("openapi", name);
            }
        }
    }
}

impl FolderFile {
    /// What the file defines, or its problems, one line each.
    fn read(
        &self,
        folder: &Path,
        main: &Main<'_>,
        earlier: &FolderSkills,
    ) -> Result<FolderSkills, Vec<String>> {
        let shown = self.path.display().to_string();
        let problems = Problems::default();
        let file = match self.tables(&problems) {
            Ok(file) => file,
            Err(problem) => {
                problems.add(&Location::Line(1), "", problem);
                Table::default()
            }
        };
        if !problems.is_empty() {
            return Err(problems.into_lines(Some(&shown)));
        }
        let root = Section::root(&file, &problems);
        let mcp = backends::mcp_servers(&root.open("mcp"), folder);
        let known =
            main.mcp.iter().chain(&mcp).map(|(name, server)| (name.clone(), server.clone())).collect();
        let environment = skills::Environment { directory: folder, dialer: main.dialer, mcp: &known };
        let found = FolderSkills {
            skills: skills::skills(&root.open("skills"), &environment),
            openapi: backends::documents(&root.open("openapi"), folder, main.dialer),
            mcp,
            ..FolderSkills::default()
        };
        for (name, document) in &found.openapi {
            if matches!(document, Document::Fetched { .. }) {
                // A document that cannot be fetched would concern more than its file.
                root.open("openapi").open(name).report("url", "a document of the skills folder is a file");
            }
        }
        found.check_names(&root, main, earlier);
        let lines = problems.into_lines(Some(&shown));
        if lines.is_empty() { Ok(found) } else { Err(lines) }
    }

    /// The tables of a configuration file that would define the same.
    fn tables(&self, problems: &Problems) -> Result<Table, String> {
        let metadata = fs::metadata(&self.path).map_err(|error| format!("cannot be read: {error}"))?;
        if is_world_writable(&metadata) {
            return Err(format!("everybody can write to it; run: chmod o-w {}", self.path.display()));
        }
        let skill =
            |key: &str, table| tables([("skills", tables([(self.id.as_str(), tables([(key, table)]))]))]);
        Ok(match &self.kind {
            FileKind::Executable { name } => skill("command", command(name)),
            FileKind::OpenApi { name } => {
                let document = Table(vec![entry("file", Value::Text(name.clone()))]);
                tables([("openapi", tables([(self.id.as_str(), document)]))])
            }
            FileKind::Toml { executable } => {
                toml_file::tables(&self.path, &self.id, executable.as_deref(), problems)?
            }
        })
    }
}

/// The table `command` of an executable, which runs in its folder.
fn command(name: &str) -> Table {
    let program = Item { location: Location::Line(1), value: Value::Text(format!("./{name}")) };
    Table(vec![entry("argv", Value::List(vec![program]))])
}

fn tables<const N: usize>(inner: [(&str, Table); N]) -> Table {
    Table(inner.into_iter().map(|(key, table)| entry(key, Value::Table(table))).collect())
}

fn entry(key: &str, value: Value) -> Entry {
    let location = Location::Line(1);
    Entry { key: key.into(), location: location.clone(), item: Item { location, value } }
}
