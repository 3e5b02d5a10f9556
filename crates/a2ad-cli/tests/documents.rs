//! The pages for contributors name paths and types that exist; links of all pages lead somewhere; pages have a size and
//! lines that can be read.

#![allow(clippy::unwrap_used, reason = "a test fails on any error")]

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The pages about the code; of a folder, all of its pages.
const ABOUT_CODE: [&str; 4] = ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/code/", "docs/decisions/"];
/// The largest size of a page, in bytes.
const SIZES: [(&str, usize); 2] = [("README.md", 10_000), ("ARCHITECTURE.md", 16_000)];
/// The longest line of prose, in characters.
const LINE: usize = 140;
/// Folders that are not part of the sources.
const SKIPPED: [&str; 4] = ["target", ".git", "node_modules", ".venv"];
/// Types of the standard library and of dependencies.
const FOREIGN: [&str; 3] = ["Bytes", "JoinSet", "Router"];

/// The files of the repository, relative to its root and with `/`.
struct Sources {
    files: Vec<String>,
    /// The text of all Rust files.
    rust: String,
}

impl Sources {
    fn read() -> Self {
        let root = root();
        let mut files = Vec::new();
        collect(&root, &root, &mut files);
        let rust = files.iter().filter(|file| file.ends_with(".rs"));
        let rust = rust.map(|file| fs::read_to_string(root.join(file)).unwrap()).collect();
        Self { files, rust }
    }

    /// Whether a path names a file or folder: from the root, or as the end of a path.
    fn has_path(&self, path: &str) -> bool {
        let plain = path.trim_end_matches('/');
        let (end, inside) = (format!("/{plain}"), format!("/{plain}/"));
        self.files
            .iter()
            .map(|file| format!("/{file}"))
            .any(|file| file.ends_with(&end) || file.contains(&inside))
    }

    fn has_type(&self, name: &str) -> bool {
        let definitions = ["struct", "enum", "trait", "type"];
        definitions.iter().any(|kind| {
            let definition = format!("{kind} {name}");
            let starts = self.rust.match_indices(&definition);
            starts
                .map(|(at, _)| self.rust[at + definition.len()..].chars().next())
                .any(|next| next.is_none_or(|next| !next.is_alphanumeric() && next != '_'))
        })
    }

    /// Whether a function, field or variant of this name exists.
    fn has_member(&self, name: &str) -> bool {
        let forms = [
            format!("fn {name}("),
            format!("fn {name}<"),
            format!(" {name}: "),
            format!(" {name},"),
            format!(" {name} {{"),
        ];
        forms.iter().any(|form| self.rust.contains(form.as_str()))
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if SKIPPED.contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() {
            collect(root, &path, files);
        } else {
            files.push(path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/"));
        }
    }
}

/// The inline code of a Markdown text, without its code blocks.
fn code_spans(text: &str) -> Vec<&str> {
    let prose = text.split("```").step_by(2);
    prose.flat_map(|part| part.split('`').skip(1).step_by(2)).collect()
}

/// `a/{b,c}.rs` as `a/b.rs` and `a/c.rs`; a `*` ends the part that is checked.
fn expand(path: &str) -> Vec<String> {
    let path = path.split('*').next().unwrap_or_default();
    match path.split_once('{').and_then(|(start, rest)| Some((start, rest.split_once('}')?))) {
        Some((start, (names, end))) => names.split(',').map(|name| format!("{start}{name}{end}")).collect(),
        None => vec![path.to_owned()],
    }
}

fn is_path(span: &str) -> bool {
    let plain = span.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-{},*".contains(&byte));
    let file = [".rs", ".md", ".toml", ".json", ".js"].iter().any(|end| span.ends_with(end));
    plain && !span.starts_with('/') && (file || span.ends_with('/') || span.contains("/src/"))
}

fn is_type(span: &str) -> bool {
    let name = span.split("::").next().unwrap_or_default();
    name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.contains(|character: char| character.is_ascii_lowercase())
        && span.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b':')
}

/// The pages of the repository: those at its root and below `docs`.
fn pages(sources: &Sources) -> impl Iterator<Item = (&str, String)> {
    let pages = sources.files.iter().filter(|file| file.ends_with(".md"));
    let pages = pages.filter(|file| file.starts_with("docs/") || !file.contains('/'));
    pages.map(|file| (file.as_str(), fs::read_to_string(root().join(file)).unwrap()))
}

/// The anchor that GitHub gives a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase().replace(' ', "-");
    kept.chars().filter(|character| character.is_alphanumeric() || "-_".contains(*character)).collect()
}

fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#').trim())).collect()
}

#[test]
fn paths_and_types_in_the_pages_about_code_exist() {
    let sources = Sources::read();
    let mut missing = Vec::new();
    let mut checked = 0;
    let about_code = |page: &str| ABOUT_CODE.iter().any(|start| page.starts_with(start));
    for (page, text) in pages(&sources).filter(|(page, _)| about_code(page)) {
        for span in code_spans(&text) {
            if is_path(span) {
                let absent = expand(span).into_iter().filter(|path| !sources.has_path(path));
                missing.extend(absent.map(|path| format!("{page}: {path}")));
                checked += 1;
            } else if is_type(span) {
                let (name, member) = span.split_once("::").unwrap_or((span, ""));
                let exists = FOREIGN.contains(&name)
                    || sources.has_type(name) && (member.is_empty() || sources.has_member(member));
                // Operations of the protocol and variants are named without their type.
                if !(exists || member.is_empty() && sources.has_member(name)) {
                    missing.push(format!("{page}: {span}"));
                }
                checked += 1;
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    assert!(checked > 100, "only {checked} were checked");
}

#[test]
fn links_between_the_pages_lead_to_files_and_headings() {
    let sources = Sources::read();
    let mut broken = Vec::new();
    for (page, text) in pages(&sources) {
        let prose: String = text.split("```").step_by(2).collect();
        let targets = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for target in targets.filter(|target| !target.contains("://")) {
            let (path, heading) = target.split_once('#').unwrap_or((target, ""));
            let folder = root().join(page).parent().unwrap().to_path_buf();
            let file = if path.is_empty() { root().join(page) } else { folder.join(path) };
            let leads = file.exists()
                && (heading.is_empty()
                    || anchors(&fs::read_to_string(&file).unwrap()).iter().any(|anchor| anchor == heading));
            if !leads {
                broken.push(format!("{page}: {target}"));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn pages_have_a_size_and_lines_that_can_be_read() {
    let sources = Sources::read();
    let mut wrong = Vec::new();
    for (page, text) in pages(&sources) {
        let size = SIZES.iter().find(|(name, _)| *name == page);
        wrong
            .extend(size.filter(|size| text.len() > size.1).map(|_| format!("{page}: {} bytes", text.len())));
        let prose: String = text.split("```").step_by(2).collect();
        // Pages that a program writes have long lines, and so have entries of the changelog.
        let written = text.starts_with("<!-- Made by") || ["BENCHMARKS.md", "CHANGELOG.md"].contains(&page);
        let prose = if written { "" } else { prose.as_str() };
        let long = prose.lines().filter(|line| !line.starts_with('|') && line.chars().count() > LINE);
        wrong.extend(long.map(|line| format!("{page}: {line}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
