//! The kits: how each is detected from its files, and how it is run.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// An official kit, by its branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kit {
    /// `1.0-dev`: A2A 1.0 over three bindings.
    V1,
    /// `0.3.x`: A2A 0.3 over three bindings.
    V03,
    /// `main`: methods of 1.0 with the tests of 0.3.
    Main,
}

/// One start of a kit's runner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Name of the part in the table.
    pub(super) name: String,
    /// Arguments of the runner after the server's address.
    arguments: Vec<String>,
}

/// The names of the bindings: for the runner of 1.0, and for the others.
const BINDINGS: [(&str, &str); 3] = [("jsonrpc", "jsonrpc"), ("http_json", "rest"), ("grpc", "grpc")];

impl Kit {
    /// Detects the kit in a folder.
    pub(super) fn of(folder: &Path) -> Result<Self> {
        let has = |path: &str| folder.join(path).exists();
        match (has("run_tck.py"), has("tests/compatibility"), has("tests/mandatory")) {
            (true, true, _) => Ok(Self::V1),
            (true, _, true) if has("tests/mandatory/protocol/test_tasks_list_method.py") => Ok(Self::Main),
            (true, _, true) => Ok(Self::V03),
            _ => bail!("{} is not a checkout of a2aproject/a2a-tck", folder.display()),
        }
    }

    /// The name of its branch.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::V1 => "1.0-dev",
            Self::V03 => "0.3.x",
            Self::Main => "main",
        }
    }

    /// All parts of a kit, or those of the given bindings.
    pub(super) fn parts(self, bindings: &[String]) -> Result<Vec<Part>> {
        let mut chosen = Vec::new();
        for (new, old) in BINDINGS {
            if bindings.is_empty() || bindings.iter().any(|name| name == new || name == old) {
                chosen.push((new, old));
            }
        }
        let known = |name: &&String| !BINDINGS.iter().any(|(new, old)| name == new || name == old);
        if let Some(unknown) = bindings.iter().find(known) {
            bail!("unknown binding {unknown}; expected jsonrpc, rest (http_json) or grpc");
        }
        let all = |names: Vec<&str>| names.join(",");
        if self == Self::V1 {
            let transport = format!("--transport={}", all(chosen.iter().map(|both| both.0).collect()));
            return Ok(vec![Part { name: "all".into(), arguments: vec![transport] }]);
        }
        let olds: Vec<&str> = chosen.iter().map(|both| both.1).collect();
        let part = |category: &str, binding: &str| Part {
            name: format!("{category} {binding}"),
            arguments: ["--category", category, "--transports", binding].map(String::from).into(),
        };
        let categories: &[&str] = match self {
            Self::Main => &["mandatory", "capabilities"],
            _ => &["mandatory", "capabilities", "quality", "features"],
        };
        let mut parts: Vec<Part> =
            olds.iter().flat_map(|binding| categories.iter().map(|one| part(one, binding))).collect();
        if self == Self::V03 && olds.len() > 1 {
            let mut equivalence = part("transport-equivalence", &all(olds));
            equivalence.name = "transport-equivalence".into();
            parts.push(equivalence);
        }
        Ok(parts)
    }

    /// The runner's command line for one part and a server at this origin.
    pub(super) fn command(self, part: &Part, origin: &str) -> Vec<String> {
        let target = match self {
            Self::V1 => ["--sut-host".to_owned(), origin.to_owned()],
            Self::V03 => ["--sut-url".to_owned(), format!("{origin}/")],
            Self::Main => ["--sut-url".to_owned(), origin.to_owned()],
        };
        ["run_tck.py".to_owned()].into_iter().chain(target).chain(part.arguments.iter().cloned()).collect()
    }

    /// The packages it needs, from its own project file.
    pub(super) fn requirements(self, folder: &Path) -> Result<String> {
        let file: PathBuf = folder.join("pyproject.toml");
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let list = dependencies(&text);
        if list.is_empty() {
            bail!("{} lists no dependencies", file.display());
        }
        Ok(list.join("\n") + "\n")
    }
}

/// The strings of the list `dependencies` of a project file.
fn dependencies(text: &str) -> Vec<String> {
    let lines = text.lines().skip_while(|line| !line.starts_with("dependencies = [")).skip(1);
    let lines = lines.take_while(|line| !line.starts_with(']'));
    lines.filter_map(|line| Some(line.trim().strip_prefix('"')?.split_once('"')?.0.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_read_from_the_project_file() {
        let text = "[project]\nname = \"x\"\ndependencies = [\n    \"pytest>=8.0\",\n    # more\n    \"httpx\",\n]\nother = [\n \"no\",\n]\n";
        assert_eq!(dependencies(text), ["pytest>=8.0", "httpx"]);
    }

    #[test]
    fn kit_runs_completely_or_for_some_bindings() {
        let names = |kit: Kit, bindings: &[&str]| -> Vec<String> {
            let bindings: Vec<String> = bindings.iter().map(|name| (*name).into()).collect();
            kit.parts(&bindings).unwrap().into_iter().map(|part| part.name).collect()
        };
        assert_eq!(names(Kit::V1, &[]), ["all"]);
        assert_eq!(names(Kit::V03, &[]).len(), 13);
        assert_eq!(
            names(Kit::V03, &["rest"]),
            ["mandatory rest", "capabilities rest", "quality rest", "features rest"]
        );
        assert_eq!(names(Kit::Main, &["jsonrpc"]), ["mandatory jsonrpc", "capabilities jsonrpc"]);
        assert!(Kit::V1.parts(&["soap".into()]).is_err());
        let part = &Kit::V1.parts(&["rest".into()]).unwrap()[0];
        let command = Kit::V1.command(part, "http://127.0.0.1:1");
        assert_eq!(command, ["run_tck.py", "--sut-host", "http://127.0.0.1:1", "--transport=http_json"]);
    }
}
