//! Errors in every form they come in: of a JSON-RPC answer, as the body of a refused HTTP+JSON request, and bare.

use protocol::{
    Dialect,
    json::{
        Raw,
        read::{Node, Object, Path},
    },
};

use super::{Recognised, Thing, answer, at, is_set};
use crate::explain::Error;

/// An error that stands in no envelope of JSON-RPC; `None` if it is none.
pub(super) fn refused<'a>(object: &Object<'a, '_>, raw: Raw<'a>) -> Option<Result<Recognised<'a>, Error>> {
    if let Some(error) = object.present("error").filter(|error| error.get().starts_with('{')) {
        return Some(if is_status(error) { refusal(Dialect::V1, raw) } else { answer(object) });
    }
    let coded = object.present("code").is_some_and(|code| code.get().parse::<i64>().is_ok());
    let worded = object.present("message").is_none_or(|message| message.get().starts_with('"'));
    let data = object.present("data").map(Raw::get);
    (coded && worded).then(|| match data {
        // What 0.3 answers over HTTP+JSON is the object by itself; typed details and an empty `data` are others'.
        Some(text) if text.starts_with('[') || text == "null" => answered("", raw),
        _ => refusal(Dialect::V03Proto, raw),
    })
}

/// The error object of a JSON-RPC answer, which stands at this place.
pub(super) fn answered<'a>(place: &str, raw: Raw<'a>) -> Result<Recognised<'a>, Error> {
    let (dialect, what) = (speaker(raw), "an error");
    let error = at(place, dialect, what, raw, |node| dialect.decode_error(node))?;
    Ok(Recognised { dialect, what: what.into(), thing: Thing::Error(error), given: raw })
}

fn refusal(dialect: Dialect, raw: Raw<'_>) -> Result<Recognised<'_>, Error> {
    let what = "an error over HTTP+JSON";
    let error = at("", dialect, what, raw, |node| dialect.decode_refusal(node))?;
    Ok(Recognised { dialect, what: what.into(), thing: Thing::Refusal(error), given: raw })
}

/// Whether an error has the members of HTTP+JSON's in 1.0.
fn is_status(error: Raw<'_>) -> bool {
    let object = Node::new(error, &Path::Root).object();
    object.is_ok_and(|object| is_set(&object, "status") || is_set(&object, "details"))
}

/// The dialect of an error object: 1.0 lists typed details; the draft has `data` even where it holds nothing.
fn speaker(raw: Raw<'_>) -> Dialect {
    let data = Node::new(raw, &Path::Root).object().ok().and_then(|error| error.present("data"));
    match data.map(Raw::get) {
        Some(text) if text.starts_with('[') => Dialect::V1,
        None => Dialect::V03,
        Some(_) => Dialect::Draft,
    }
}
