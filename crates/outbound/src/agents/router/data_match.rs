//! Chooses a route by the data part of a message: the only one whose input schema allows it.

use std::collections::HashSet;

use protocol::{
    Content, Json, Message,
    json::read::{Node, Path},
};

use super::Route;

/// Up to this product of its size and the number of schemas, a data part is validated.
const MAX_VALIDATED: usize = 16 << 20;

/// The only route whose schema allows the data part of a message. Only schemas whose required properties are there are
/// validated, because the compiled form of a schema is large and there may be thousands of them.
pub(super) fn only_match<'a>(
    message: &Message,
    routes: impl Iterator<Item = &'a Route>,
) -> Option<&'a Route> {
    let data = message.parts.iter().find_map(|part| match &part.content {
        Content::Data(data) => Some(data),
        _ => None,
    })?;
    let names = property_names(data);
    let schemas = routes.filter_map(|route| Some((route, route.input_schema.as_ref()?)));
    let candidates = schemas.filter(|(_, schema)| schema.required().iter().all(|name| names.contains(name)));
    let mut only = None;
    for (validated, (route, schema)) in candidates.enumerate() {
        if validated.saturating_mul(data.as_str().len()) > MAX_VALIDATED {
            return None;
        }
        if schema.allows(data) && only.replace(route).is_some() {
            return None;
        }
    }
    only
}

/// The names in an object; none of another value.
fn property_names(data: &Json) -> HashSet<String> {
    let object = Node::new(data.as_raw(), &Path::Root).object();
    let names = object.and_then(|object| object.entries(|name, _| Ok(name.to_owned())));
    names.unwrap_or_default().into_iter().collect()
}
