//! Schemas of arguments and results: the name of a JSON file, or a table.

use std::path::Path;

use outbound::schema::Schema;
use protocol::Json;

use super::{
    files,
    json_value::object,
    read::Parsed,
    tree::{Item, Value},
};

/// Maximum size of a file.
const MAX_SCHEMA: u64 = 1 << 20;

/// A schema; an empty string is none.
pub(super) fn schema(item: &Item, directory: &Path) -> Parsed<Option<Schema>> {
    let json = match &item.value {
        Value::Table(_) => object(item)?,
        _ => match item.text().map_err(|_| "expected the name of a file, or a table".to_owned())? {
            "" => return Ok(None),
            name => read(&directory.join(name))?,
        },
    };
    Schema::new(json).map(Some).map_err(|error| error.to_string())
}

fn read(path: &Path) -> Parsed<Json> {
    let text = files::read(path, MAX_SCHEMA)?;
    Json::parse(&text)
        .map_err(|expected| format!("the file {} is not JSON; expected {expected}", path.display()))
}
