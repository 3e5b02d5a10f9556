//! What a client is informed of when an agent asks for credentials: a data part `{"schemes": ["Bearer"]}`.
//!
//! The draft of A2A requires this structure in the message of such a status. It is in the message of every such task, so
//! that clients of every version find it.

use protocol::{
    Content, Json, Message, Part,
    json::{
        read::{Node, Path},
        write::Writer,
    },
};

/// The scheme of an agent that names none.
const DEFAULT_SCHEME: &str = "Bearer";

/// The part that names authentication schemes.
pub(super) fn part<S: AsRef<str>>(schemes: &[S]) -> Part {
    let mut writer = Writer::new();
    writer.object(|out| out.texts("schemes", schemes));
    let text = String::from_utf8(writer.finish()).expect("the writer was given UTF-8 only");
    // A list with thousands of schemes is too large for a part.
    Part::data(Json::parse(&text).unwrap_or_else(|_| default_schemes()))
}

/// The message with the default scheme, unless it names schemes itself.
pub(crate) fn with_schemes(mut message: Message) -> Message {
    if !message.parts.iter().any(names_schemes) {
        message.parts.push(Part::data(default_schemes()));
    }
    message
}

fn default_schemes() -> Json {
    Json::parse(&format!(r#"{{"schemes":["{DEFAULT_SCHEME}"]}}"#)).expect("this is a JSON object")
}

/// Whether a part is an object with a list of schemes.
fn names_schemes(part: &Part) -> bool {
    let Content::Data(json) = &part.content else { return false };
    let Ok(object) = Node::new(json.as_raw(), &Path::Root).object() else { return false };
    object.texts("schemes").is_ok_and(|schemes| !schemes.is_empty())
}
