//! A webhook as it is stored, before it is sealed: the config that the client registered, and the key that signs its
//! notifications if the server made one.

use crate::{
    PushConfig, Violation,
    dialect::legacy,
    json::{
        self,
        read::{Node, Path},
        write::Writer,
    },
    model::Secret,
};

/// Encodes the members that do not depend on the task. `signing_key` is the text of a key that the server made.
pub fn encode(config: &PushConfig, signing_key: Option<&Secret>) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.object(|writer| {
        legacy::push::encode_members(writer, config);
        writer.maybe_text("signingKey", signing_key.map(Secret::expose));
    });
    writer.finish()
}

/// Decodes what [`encode`] has written.
///
/// # Errors
///
/// What is wrong with the record: it was not written by this program.
pub fn decode(record: &[u8]) -> Result<(PushConfig, Option<Secret>), Violation> {
    let invalid = || Violation::new(Path::Root, "expected a stored webhook");
    let raw = json::Raw::parse(record).map_err(|_| invalid())?;
    let node = Node::new(raw, &Path::Root);
    let signing_key = node.object()?.text("signingKey")?.map(Secret::new);
    Ok((legacy::push::decode(node)?, signing_key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Json, model::PushAuth};

    #[test]
    fn a_record_round_trips() {
        let config = PushConfig {
            token: Some(Secret::new("to\"ken")),
            authentication: Some(PushAuth {
                schemes: vec!["jwt".into(), "Bearer".into()],
                credentials: Some(Secret::new("c")),
                extra: Some(Json::parse(r#"{"realm":{"a":[1]}}"#).unwrap()),
            }),
            ..PushConfig::new("https://receiver.example/hook?key=1")
        };
        let key = Secret::new("whsec_AAAA");
        assert_eq!(decode(&encode(&config, Some(&key))).unwrap(), (config.clone(), Some(key)));
        assert_eq!(decode(&encode(&config, None)).unwrap(), (config, None));
        assert!(decode(b"{}").is_err() && decode(b"\xff").is_err());
    }
}
