//! Seals webhooks for the store and opens them again.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use protocol::{PushConfig, model::Secret, push_record};

use crate::{access::scope::Scope, ids::TaskNo, seal::Sealer, store::NewWebhook};

/// Random bytes of a key that the server makes.
const KEY_BYTES: usize = 32;

/// What a receiver gets instead of the secrets that its owner registered.
const MASKED: &str = "***";

pub(crate) struct Records {
    sealer: Arc<Sealer>,
}

/// A webhook that was opened.
pub(crate) struct Opened {
    pub(crate) config: PushConfig,
    /// The text of the key that signs notifications.
    pub(crate) signing_key: Secret,
}

/// The result of sending a notification again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resent {
    /// The receiver has accepted it, and it is deleted.
    Delivered,
    /// It was pending, and is attempted now.
    Scheduled,
    /// The receiver has not accepted it; why.
    Failed(String),
    /// There is none with this id.
    Unknown,
}

impl Records {
    pub(crate) fn new(sealer: Arc<Sealer>) -> Self {
        Self { sealer }
    }

    /// URL and secrets of a webhook, sealed. `made` is the key that signs its notifications, if the client's token is none.
    pub(crate) fn seal(&self, task: TaskNo, config: &PushConfig, made: Option<&Secret>) -> Bytes {
        Bytes::from(self.sealer.seal(&push_record::encode(config, made), &associated_data(task)))
    }

    /// Opens a record; `None` if it was sealed with another key.
    pub(crate) fn open(&self, task: TaskNo, webhook: &NewWebhook) -> Option<Opened> {
        let record = self.sealer.open(&webhook.sealed, &associated_data(task))?;
        let (config, made) = push_record::decode(&record).ok()?;
        let signing_key = made.or_else(|| config.token.clone())?;
        Some(Opened { config: PushConfig { id: Some(webhook.id.clone()), ..config }, signing_key })
    }
}

/// A config without its secrets, for those who read it later.
pub(crate) fn masked(mut config: PushConfig) -> PushConfig {
    let mask = |secret: &mut Option<Secret>| {
        if secret.is_some() {
            *secret = Some(Secret::new(MASKED));
        }
    };
    mask(&mut config.token);
    if let Some(authentication) = &mut config.authentication {
        mask(&mut authentication.credentials);
    }
    config
}

/// A new key that signs notifications.
pub(crate) fn random_key() -> Secret {
    let mut bytes = [0; KEY_BYTES];
    getrandom::fill(&mut bytes).expect("the operating system provides randomness");
    Secret::new(format!("whsec_{}", STANDARD.encode(bytes)))
}

/// A record that somebody moves to another task does not open there.
fn associated_data(task: TaskNo) -> [u8; 16] {
    let mut data = *b"webhook:\0\0\0\0\0\0\0\0";
    data[8..].copy_from_slice(&task.0.to_be_bytes());
    data
}

/// What distinguishes receivers: the tenant, and host and port of the URL in lower case. The host begins where parsers of
/// URLs find it, which ignore how many slashes precede it: the failures of one host must not be counted for another.
pub(crate) fn host_key(scope: &Scope, url: &str) -> String {
    let rest = url.split_once(':').map_or(url, |(_, rest)| rest).trim_start_matches(['/', '\\']);
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default().to_ascii_lowercase();
    format!("{}/{host}", scope.tenant())
}

#[cfg(test)]
mod tests {
    use protocol::{Dialect, dialect::Style, model::PushAuth};

    use super::*;
    use crate::{push::PushEvents, store::NotificationForm};

    fn seal(config: &PushConfig, made: Option<&Secret>) -> (Records, NewWebhook) {
        let records = Records::new(Arc::new(Sealer::new([7; 32])));
        let form = NotificationForm { dialect: Dialect::V1, style: Style::default() };
        let host = host_key(&Scope::anonymous("default", "echo"), &config.url);
        let sealed = records.seal(TaskNo(5), config, made);
        (records, NewWebhook { id: "c".into(), form, events: PushEvents::default(), host, sealed })
    }

    #[test]
    fn a_record_opens_for_its_task_only_and_shows_no_secret() {
        let mut config = PushConfig::new("https://user@Receiver.Example:8443/hook?key=secret-in-url");
        config.token = Some(Secret::new("a-token-of-at-least-24-bytes"));
        config.authentication = Some(PushAuth::new("Bearer", Some(Secret::new("secret-credentials"))));
        let (records, webhook) = seal(&config, None);
        assert_eq!(webhook.host, "default/receiver.example:8443");
        let text = String::from_utf8_lossy(&webhook.sealed);
        assert!(!text.contains("secret") && !text.contains("token-of"));
        assert!(records.open(TaskNo(6), &webhook).is_none());
        let opened = records.open(TaskNo(5), &webhook).unwrap();
        assert_eq!(opened.config, PushConfig { id: Some("c".into()), ..config });
        assert_eq!(opened.signing_key.expose(), "a-token-of-at-least-24-bytes");
        let masked = masked(opened.config);
        assert_eq!(masked.token.unwrap().expose(), "***");
        assert_eq!(masked.authentication.unwrap().credentials.unwrap().expose(), "***");
    }

    #[test]
    fn host_is_found_whatever_precedes_and_follows_it() {
        let scope = Scope::anonymous("default", "echo");
        for url in [
            "https://a.example/",
            "HTTPS://A.EXAMPLE?b",
            "https:a.example/?://b.example/",
            "https:/a.example/://b.example/",
            "https:///a.example#://b.example/",
            "https:\\\\a.example\\b",
        ] {
            assert_eq!(host_key(&scope, url), "default/a.example", "{url}");
        }
    }

    #[test]
    fn a_key_that_was_made_signs_instead_of_the_token() {
        for token in [None, Some("short")] {
            let config = PushConfig { token: token.map(Secret::new), ..PushConfig::new("https://a.example") };
            let made = random_key();
            assert!(made.expose().starts_with("whsec_"));
            let (records, webhook) = seal(&config, Some(&made));
            assert_eq!(records.open(TaskNo(5), &webhook).unwrap().signing_key, made);
        }
    }
}
