//! References inside a document. Other documents are never read.

use percent_encoding::percent_decode_str;

use super::{
    Tree,
    document::{Document, shorten},
};

/// How many references in a row are followed.
const MAX_HOPS: usize = 32;

impl Document {
    /// The value behind `$ref`, if there is one, else the value itself. The error is the reason why an operation is
    /// skipped.
    pub(super) fn resolve<'d>(&'d self, value: &'d Tree) -> Result<&'d Tree, String> {
        let mut value = value;
        for _ in 0..MAX_HOPS {
            match value.get("$ref").and_then(Tree::as_str) {
                None => return Ok(value),
                Some(reference) => value = self.lookup(reference)?,
            }
        }
        Err(format!("more than {MAX_HOPS} references in a row"))
    }

    /// The value at a reference such as `#/components/schemas/Pet`.
    pub(super) fn lookup(&self, reference: &str) -> Result<&Tree, String> {
        let shown = shorten(reference, 200);
        let Some(fragment) = reference.strip_prefix('#') else {
            return Err(format!(
                "{shown:?} refers to another document, which is not read: bundle the documents into one"
            ));
        };
        let pointer = percent_decode_str(fragment)
            .decode_utf8()
            .map_err(|_| format!("the reference {shown:?} is not UTF-8"))?;
        self.root.pointer(&pointer).ok_or_else(|| format!("the reference {shown:?} leads to nothing"))
    }
}
