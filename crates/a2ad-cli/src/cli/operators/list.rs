//! Lists of the operators' API as commands: a table with a line for each element, or the elements as JSON.

use protocol::json::{
    read::{Object, Read},
    write::Writer,
};

use super::{Access, OperatorFlags, counted, read_document};
use crate::cli::{
    failure::{Failure, code},
    output::Output,
    table::columns,
};

/// The largest page.
const PAGE: usize = 100;
/// How many pages with fewer elements than asked for are read at most: a filter that matches few tasks has many of them.
const MAX_SPARSE_PAGES: usize = 1_000;

/// A list of the operators' API.
pub(in crate::cli) struct List<'a, const N: usize> {
    /// What one element is, and several. The latter is also the path, and the member with the elements.
    pub(in crate::cli) nouns: [&'static str; 2],
    /// The parameters of the query, as far as they have a value.
    pub(in crate::cli) filters: &'a [(&'a str, Option<&'a str>)],
    /// The cells of an element.
    pub(in crate::cli) row: fn(&Object<'_, '_>) -> Read<[String; N]>,
}

impl<const N: usize> List<'_, N> {
    /// Prints a list that is one document.
    pub(in crate::cli) fn print(&self, access: &Access, flags: &OperatorFlags) -> Result<u8, Failure> {
        let document = access.get(&self.path(&[]))?;
        let rows = read_document(&document, |object| {
            object.list(self.nouns[1], |node| (self.row)(&node.object()?))
        })?;
        self.report(access, rows.len(), "");
        print_table(&access.output, flags, &document, &rows)
    }

    /// Prints at most `limit` elements of a list that has pages; 0 prints all.
    pub(in crate::cli) fn print_pages(
        &self,
        access: &Access,
        flags: &OperatorFlags,
        limit: usize,
    ) -> Result<u8, Failure> {
        let limit = if limit == 0 { usize::MAX } else { limit };
        let (mut rows, mut elements) = (Vec::new(), Vec::new());
        let (mut token, mut sparse_pages): (Option<String>, _) = (None, 0);
        while rows.len() < limit && sparse_pages < MAX_SPARSE_PAGES {
            let size = PAGE.min(limit - rows.len());
            let text = size.to_string();
            let document =
                access.get(&self.path(&[("pageSize", Some(&text)), ("pageToken", token.as_deref())]))?;
            let (page, next) = read_document(&document, |object| {
                let page = object
                    .list(self.nouns[1], |node| Ok(((self.row)(&node.object()?)?, node.text().to_owned())))?;
                Ok((page, object.text("nextPageToken")?))
            })?;
            sparse_pages += usize::from(page.len() < size);
            for (row, element) in page {
                rows.push(row);
                elements.push(element);
            }
            token = next;
            if token.is_none() {
                break;
            }
        }
        self.report(
            access,
            rows.len(),
            if token.is_some() { "; there are more: --limit shows them" } else { "" },
        );
        let mut writer = Writer::new();
        writer.object(|out| {
            out.key(self.nouns[1]).array(&elements, |out, element| out.raw(element));
            out.key("complete").boolean(token.is_none());
        });
        print_table(&access.output, flags, &writer.finish(), &rows)
    }

    /// The path with the filters and these parameters.
    fn path(&self, page: &[(&str, Option<&str>)]) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        for (name, value) in self.filters.iter().chain(page) {
            query.extend_pairs(value.map(|value| (name, value)));
        }
        format!("/{}?{}", self.nouns[1], query.finish()).trim_end_matches('?').to_owned()
    }

    fn report(&self, access: &Access, number: usize, more: &str) {
        let [one, several] = self.nouns;
        access.output.message(&format!("a2ad: {} {}{more}", counted(number, one, several), access.place()));
    }
}

/// Prints rows as a table, or with `--json` the document that they were read from.
pub(in crate::cli) fn print_table<const N: usize>(
    output: &Output,
    flags: &OperatorFlags,
    document: &[u8],
    rows: &[[String; N]],
) -> Result<u8, Failure> {
    if flags.json {
        output.document(document)?;
    } else {
        output.text(&columns(rows))?;
    }
    Ok(code::SUCCESS)
}
