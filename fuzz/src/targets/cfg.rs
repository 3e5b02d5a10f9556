//! F-cfg: configuration files, as `a2ad check` reads them. Reading starts nothing and opens no connection; the files that
//! an input names are looked for in an empty directory.

use std::{path::PathBuf, sync::LazyLock};

use a2ad_cli::check_config;
use tempfile::TempDir;

use crate::Target;

pub(crate) const TARGET: Target = Target {
    id: "F-cfg",
    name: "configuration files: every problem names its line and key",
    run,
    corpus,
    dictionary: DICTIONARY,
    inputs: 100_000,
};

#[rustfmt::skip]
const DICTIONARY: &[&str] = &[
    "[", "]", "[[", "]]", "{", "}", "=", ".", ",", "\"", "'''", "\"\"\"", "#", "\n", "\r\n", "\t", "\\u0000", "\\U0010ffff",
    "server", "listen", "store", "url", "retention", "card", "protocol", "dialects", "limits", "outbound", "allow",
    "allow_http", "mcp", "command", "env", "inherit_env", "cwd", "pool", "isolation", "skills", "http", "headers",
    "headers_env", "bearer_env", "query", "method", "timeout", "argv", "input_schema", "output_schema", "type",
    "properties", "required", "$ref", "openapi", "file", "operations", "base_url", "agents", "description", "tags",
    "builtin", "auth", "tenants", "mcp:clock/*", "openapi:shop/*", "pipeline:*", "127.0.0.1:4242", "[::1]:0", "10.0.0.0/8",
    "::/0", "10s", "18446744073709551615d", "16MiB", "99999999999GiB", "http://127.0.0.1:9000/{x}", "https://a@b/",
    "/dev/zero", "/dev/stdin", "/", "..", "PATH", "0x7fffffffffffffff", "1e400", "inf", "nan", "2026-01-02T03:04:05Z",
];

/// An empty directory for all inputs, and the name of a file in it, which does not exist.
static FILE: LazyLock<(TempDir, PathBuf)> = LazyLock::new(|| {
    let directory = TempDir::new().expect("a temporary directory can be created");
    let file = directory.path().join("a2ad.toml");
    (directory, file)
});

fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let file = &FILE.1;
    let Err(problems) = check_config(file, text) else { return };
    assert!(!problems.is_empty(), "rejected without a reason");
    let lines = 1 + text.matches('\n').count();
    for problem in problems {
        let rest = problem.strip_prefix(&format!("{}:", file.display()));
        let (line, what) = rest.and_then(|rest| rest.split_once(": ")).unwrap_or_else(|| panic!("{problem}"));
        let line: usize = line.parse().unwrap_or_else(|_| panic!("{problem}"));
        assert!((1..=lines).contains(&line), "{problem}");
        assert!(what.contains(": "), "neither a key nor a problem of the format: {problem}");
        assert!(!what.contains(char::is_control), "not one line of text: {problem:?}");
    }
}

/// The examples, and texts with every kind of backend; valid ones, and some that are not.
fn corpus() -> Vec<Vec<u8>> {
    let files = [
        include_str!("../../../examples/currency.toml"),
        include_str!("../../../examples/office.toml"),
        include_str!("../../../examples/tck.toml"),
    ];
    let parts = include_str!("../../corpus/cfg/backends.toml").split("\n# ---\n");
    files.into_iter().chain(parts).map(|text| text.as_bytes().to_vec()).chain([nested(), wide()]).collect()
}

fn nested() -> Vec<u8> {
    format!("[server]\nlisten = {}{}\n", "[".repeat(5_000), "]".repeat(5_000)).into()
}

fn wide() -> Vec<u8> {
    (0..2_000).map(|number| format!("[skills.s{number}]\nbuiltin = \"echo\"\n")).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutate::Mutator;

    #[test]
    fn corpus_passes_and_some_mutated_files_are_valid() {
        corpus().iter().for_each(|input| run(input));
        let mutator = Mutator::new(corpus(), DICTIONARY, 7);
        let is_valid = |number: &u64| {
            let input = mutator.input(1_000 + *number);
            std::str::from_utf8(&input).is_ok_and(|text| check_config(&FILE.1, text).is_ok())
        };
        let valid = (0..500).filter(is_valid).count();
        assert!((10..450).contains(&valid), "{valid} of 500");
    }
}
