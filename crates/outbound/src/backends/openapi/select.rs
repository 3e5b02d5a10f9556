//! The operations of a document, and which of them the configuration selects.

use http::Method;

use super::{OpenApiError, Tree, document::Document, id, operation::Skipped};
use crate::skill::is_like;

/// Maximum number of operations of a document.
const MAX_OPERATIONS: usize = 20_000;

/// One operation as the document describes it.
pub(super) struct Entry<'d> {
    /// Skill id.
    pub(super) id: String,
    pub(super) operation_id: Option<&'d str>,
    pub(super) method: Method,
    pub(super) path: &'d str,
    /// Path Item Object.
    pub(super) item: &'d Tree,
    /// Operation Object.
    pub(super) operation: &'d Tree,
}

impl Entry<'_> {
    /// `METHOD /path`.
    pub(super) fn target(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

/// All operations, ordered by path and method, so that ids do not depend on anything but their document.
/// Also the paths that cannot be read.
pub(super) fn entries(document: &Document) -> Result<(Vec<Entry<'_>>, Vec<Skipped>), OpenApiError> {
    // TRACE is not used: servers respond with the request, credentials included.
    const METHODS: [Method; 7] = [
        Method::GET,
        Method::PUT,
        Method::POST,
        Method::DELETE,
        Method::OPTIONS,
        Method::HEAD,
        Method::PATCH,
    ];
    let (mut entries, mut skipped) = (Vec::new(), Vec::new());
    for (path, item) in document.root["paths"].as_object().into_iter().flatten() {
        let item = match document.resolve(item) {
            Ok(item) => item,
            Err(reason) => {
                skipped.push(Skipped { id: None, target: path.clone(), reason });
                continue;
            }
        };
        for method in METHODS {
            let operation = &item[method.as_str().to_ascii_lowercase()];
            if operation.is_object() {
                let operation_id = operation["operationId"].as_str();
                let id = id::natural(operation_id, method.as_str(), path);
                entries.push(Entry { id, operation_id, method, path, item, operation });
            }
        }
    }
    if entries.len() > MAX_OPERATIONS {
        return Err(OpenApiError::TooManyOperations { count: entries.len(), max: MAX_OPERATIONS });
    }
    entries.sort_by(|one, other| (one.path, one.method.as_str()).cmp(&(other.path, other.method.as_str())));
    let natural: Vec<String> = entries.iter().map(|entry| entry.id.clone()).collect();
    for (entry, id) in entries.iter_mut().zip(id::unique(&natural)) {
        entry.id = id;
    }
    Ok((entries, skipped))
}

/// The operations that one of the patterns matches. Every pattern must match something.
pub(super) fn selected<'d>(
    entries: Vec<Entry<'d>>,
    patterns: &[String],
) -> Result<Vec<Entry<'d>>, OpenApiError> {
    let has_match = |pattern: &&String| entries.iter().any(|entry| matches(pattern, entry));
    let no_match = |pattern: &String| {
        let ids = entries.iter().flat_map(|entry| [Some(entry.id.as_str()), entry.operation_id]).flatten();
        let hint = protocol::nearest(pattern, ids).map(|id| format!("; did you mean {id:?}?"));
        format!("{pattern:?} matches no operation of the document{}", hint.unwrap_or_default())
    };
    let missing: Vec<String> = patterns.iter().filter(|pattern| !has_match(pattern)).map(no_match).collect();
    if !missing.is_empty() {
        return Err(OpenApiError::NoMatch { missing });
    }
    let is_selected = |entry: &Entry<'_>| patterns.iter().any(|pattern| matches(pattern, entry));
    Ok(entries.into_iter().filter(is_selected).collect())
}

fn matches(pattern: &str, entry: &Entry<'_>) -> bool {
    // `get /pets` means the same as `GET /pets`.
    let pattern = match pattern.split_once(' ') {
        Some((method, path)) => format!("{} {}", method.to_ascii_uppercase(), path.trim_start()),
        None => pattern.to_owned(),
    };
    let matches = |name: &str| is_like(name, &pattern);
    matches(&entry.id) || entry.operation_id.is_some_and(matches) || matches(&entry.target())
}

#[cfg(test)]
mod tests {
    use super::{super::parse, *};

    const DOCUMENT: &str = "
openapi: 3.0.0
paths:
  /pets:
    get: { operationId: pets/list }
    post: { operationId: pets/create }
  /pets/{id}:
    $ref: '#/x-items/one'
  /broken: { $ref: other.yaml }
x-items:
  one:
    delete: {}
";

    fn ids(patterns: &[&str]) -> Result<Vec<String>, String> {
        let document = parse(DOCUMENT).unwrap();
        let patterns: Vec<_> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        let entries =
            selected(entries(&document).unwrap().0, &patterns).map_err(|error| error.to_string())?;
        Ok(entries.into_iter().map(|entry| entry.id).collect())
    }

    #[test]
    fn patterns_select_by_id_and_by_path() {
        for (patterns, expected) in [
            (vec!["*"], vec!["pets/list", "pets/create", "delete_pets_id"]),
            (vec!["pets/*"], vec!["pets/list", "pets/create"]),
            (vec!["*/create"], vec!["pets/create"]),
            (vec!["p*s*li*st"], vec!["pets/list"]),
            (vec!["pets/create", "delete /pets/{id}"], vec!["pets/create", "delete_pets_id"]),
            (vec!["GET /*"], vec!["pets/list"]),
            (vec![], vec![]),
        ] {
            assert_eq!(ids(&patterns).unwrap(), expected);
        }
    }

    #[test]
    fn document_may_have_20_000_operations() {
        let document = |count: usize| {
            let paths: Vec<String> =
                (0..count).map(|number| format!(r#""/tools/{number}":{{"get":{{}}}}"#)).collect();
            parse(&format!(r#"{{"openapi":"3.0.0","paths":{{{}}}}}"#, paths.join(","))).unwrap()
        };
        assert_eq!(entries(&document(20_000)).unwrap().0.len(), 20_000);
        let error = entries(&document(20_001)).err().unwrap().to_string();
        assert!(error.contains("has 20001 operations; at most 20000"), "{error}");
    }

    #[test]
    fn pattern_that_matches_nothing_is_named() {
        let error = ids(&["pets/creat"]).unwrap_err();
        assert_eq!(
            error,
            r#"operations: "pets/creat" matches no operation of the document; did you mean "pets/create"?"#
        );
    }
}
