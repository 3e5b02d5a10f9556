//! An agent's behaviour matches its card: streaming, push notifications, the extended card, extensions, media types.

use a2ad_inbound::{AgentSettings, ExtendedCard, Profile};
use engine::SkillVisibility;
use protocol::{ErrorKind, ErrorTable, Json, model::AgentExtension};

use crate::common::{
    Answer, Server, Setup, agents,
    generation::{Client, Generation, UserMessage},
    request, send_params,
};

/// A server whose `slow-writer` and `demo` agents have these settings.
async fn with(settings: AgentSettings) -> Server {
    let mut setup = Setup::default();
    for agent in ["slow-writer", "demo"] {
        setup.options.agents.insert(agent.into(), settings.clone());
    }
    setup.open().await
}

/// The error code of a response, if it is an error.
fn code(answer: &Answer) -> Option<i64> {
    let code = answer.body.split_once(r#""error":{"code":"#)?.1;
    code[..code.find(',')?].parse().ok()
}

/// Calls a method of any generation, with a header.
async fn ask(server: &Server, header: &str, method: &str, params: &str) -> Answer {
    let head = format!("POST /a2a/slow-writer HTTP/1.1\r\n{header}");
    server.exchange(&head, &request(method, params)).await
}

#[tokio::test]
async fn streaming_is_rejected_in_every_generation_if_disabled() {
    let server = with(AgentSettings { streaming: false, ..AgentSettings::default() }).await;
    for generation in Generation::ALL {
        let client = Client { server: &server, path: "/a2a/slow-writer", generation };
        client.check_error(&client.try_subscribe("x").await, ErrorKind::UnsupportedOperation);
    }
    for (method, params) in [
        ("SendStreamingMessage", send_params("hi", "")),
        ("message/stream", "{}".into()),
        ("tasks/sendSubscribe", "7".into()),
    ] {
        let refused = server.post("/a2a/slow-writer", &request(method, &params)).await;
        assert_eq!(code(&refused), Some(-32004), "before anybody reads the parameters: {}", refused.body);
    }
    let card = server.get("/a2a/slow-writer/.well-known/agent-card.json").await;
    assert!(card.body.contains(r#""streaming":false"#), "{}", card.body);
}

#[tokio::test]
async fn push_operations_are_rejected_if_disabled_and_otherwise_valid() {
    // Contains the parameters of every method.
    const PARAMS: &str = r#"{"taskId":"t","id":"c","url":"https://hooks.example/",
        "pushNotificationConfig":{"url":"https://hooks.example/"}}"#;
    let server = with(AgentSettings::default()).await;
    for method in [
        "CreateTaskPushNotificationConfig",
        "GetTaskPushNotificationConfig",
        "ListTaskPushNotificationConfigs",
        "DeleteTaskPushNotificationConfig",
        "tasks/pushNotificationConfig/set",
        "tasks/pushNotificationConfig/list",
        "tasks/pushNotification/get",
    ] {
        let refused = server.post("/a2a/slow-writer", &request(method, PARAMS)).await;
        assert_eq!(code(&refused), Some(-32003), "{method}: {}", refused.body);
        let malformed = server.post("/a2a/slow-writer", &request(method, "[]")).await;
        assert_eq!(code(&malformed), Some(-32602), "{method}: {}", malformed.body);
    }
    let params = send_params("hi", "").trim_end_matches('}').to_owned()
        + r#"},"configuration":{"taskPushNotificationConfig":{"url":"https://hooks.example/"}}}"#;
    let refused = ask(&server, "a2a-version: 1.0", "SendMessage", &params).await;
    assert_eq!(code(&refused), Some(-32003), "{}", refused.body);
    let listed = ask(&server, "a2a-version: 1.0", "ListTasks", "{}").await;
    assert!(listed.body.contains(r#""totalSize":0"#), "no task was created: {}", listed.body);
}

#[tokio::test]
async fn extended_card_follows_its_setting() {
    const METHODS: [(&str, &str); 2] = [
        ("a2a-version: 1.0", "GetExtendedAgentCard"),
        ("a2a-version: 0.3", "agent/getAuthenticatedExtendedCard"),
    ];
    for (shown, flag, expected, status) in [
        (ExtendedCard::Off, false, [Some(-32004), Some(-32004)], 200),
        (ExtendedCard::Missing, true, [Some(-32007), Some(-32007)], 200),
        (ExtendedCard::Protected, true, [Some(-32000), Some(-32010)], 401),
        (ExtendedCard::Open, true, [None, None], 200),
    ] {
        let server = with(AgentSettings { extended_card: shown, ..AgentSettings::default() }).await;
        for ((header, method), expected) in METHODS.into_iter().zip(expected) {
            // Parameters are checked last and may be absent.
            let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#);
            let answer = server.exchange(&format!("POST /a2a/slow-writer HTTP/1.1\r\n{header}"), &body).await;
            assert_eq!((code(&answer), answer.status), (expected, status), "{shown:?} {}", answer.body);
            assert_eq!(answer.header("www-authenticate").is_some(), status == 401);
        }
        let card = server.get("/a2a/slow-writer/.well-known/agent-card.json").await.body;
        assert!(card.contains(&format!(r#""extendedAgentCard":{flag}"#)), "{shown:?}: {card}");
        assert_eq!(card.contains(r#""supportsAuthenticatedExtendedCard":true"#), flag, "{shown:?}: {card}");
    }
}

/// Clients of 0.2.1 to 0.2.6 have no method for the extended card: they get it beside the endpoint, or below it.
#[tokio::test]
async fn extended_card_is_served_at_the_paths_of_0_2() {
    const BELOW: &str = "/a2a/slow-writer/agent/authenticatedExtendedCard";
    for (shown, status) in [
        (ExtendedCard::Off, 404),
        (ExtendedCard::Missing, 404),
        (ExtendedCard::Protected, 401),
        (ExtendedCard::Open, 200),
    ] {
        let server = with(AgentSettings { extended_card: shown, ..AgentSettings::default() }).await;
        let answer = server.get(BELOW).await;
        assert_eq!((answer.status, answer.header("content-type")), (status, Some("application/json")));
        assert_eq!(answer.header("www-authenticate").is_some(), status == 401, "{shown:?}");
        if status == 200 {
            let card = &answer.body;
            assert!(card.contains(r#""url":"http://example.test/a2a/slow-writer""#), "{card}");
            assert!(card.contains(r#""supportsAuthenticatedExtendedCard":true"#), "{card}");
            assert!(!card.contains("supportedInterfaces") && !card.contains("jsonrpc"), "{card}");
            // A card for one caller must not be stored in shared caches.
            assert_eq!(answer.header("cache-control"), Some("private"));
        } else {
            assert!(answer.body.starts_with(r#"{"code":-32"#), "{}", answer.body);
        }
    }
    let mut setup = Setup::default();
    let open = AgentSettings { extended_card: ExtendedCard::Open, ..AgentSettings::default() };
    setup.options.agents.insert("echo".into(), open.clone());
    let server = setup.open().await;
    let card = server.get("/agent/authenticatedExtendedCard").await;
    assert_eq!(card.status, 200);
    assert!(card.body.contains(r#""name":"Echo""#), "{}", card.body);
    // No other agent's card is sent.
    for path in ["/a2a/agent/authenticatedExtendedCard", "/a2a/nobody/agent/authenticatedExtendedCard"] {
        assert_eq!(server.get(path).await.status, 404, "{path}");
    }
    // Not served if 0.3 is not accepted.
    let mut setup = Setup::with(|options| options.accepted_versions.v03 = false);
    setup.options.agents.insert("echo".into(), open);
    assert_eq!(setup.open().await.get("/agent/authenticatedExtendedCard").await.status, 404);
}

#[tokio::test]
async fn extended_skills_are_hidden_from_the_public_card() {
    let settings = AgentSettings { extended_card: ExtendedCard::Open, ..AgentSettings::default() };
    let server = Setup::with(|options| {
        options.agents.insert("demo".into(), settings);
        options.extended_skills = vec![("demo", "currency"), ("demo", "echo")];
    })
    .open()
    .await;
    let ids = |card: &str| -> Vec<String> {
        let known = ["currency", "echo", "slow-writer", "approver"];
        known.iter().filter(|id| card.contains(&format!(r#"{{"id":"{id}""#))).map(|id| (*id).into()).collect()
    };
    for name in ["agent-card.json", "agent.json"] {
        let public = server.get(&format!("/a2a/demo/.well-known/{name}")).await.body;
        assert_eq!(ids(&public), ["slow-writer", "approver"], "{name}: {public}");
    }
    for (version, method, member) in [
        ("1.0", "GetExtendedAgentCard", r#""supportedInterfaces":[{"url":"http://example.test/a2a/demo""#),
        ("0.3", "agent/getAuthenticatedExtendedCard", r#""url":"http://example.test/a2a/demo""#),
    ] {
        let head = format!("POST /a2a/demo HTTP/1.1\r\na2a-version: {version}");
        let card = server.exchange(&head, &request(method, "{}")).await.body;
        assert_eq!(ids(&card), ["currency", "echo", "slow-writer", "approver"], "{card}");
        assert!(card.contains(member), "{card}");
    }
}

fn extension(uri: &str, required: bool) -> AgentExtension {
    let params = Json::parse(r#"{"unit":"km"}"#).ok();
    AgentExtension { uri: uri.into(), description: Some("for a test".into()), required, params }
}

#[tokio::test]
async fn required_extension_must_be_named_by_clients_of_1_0() {
    let extensions = vec![extension("urn:test:must", true), extension("urn:test:may", false)];
    let server = with(AgentSettings { extensions, ..AgentSettings::default() }).await;
    let send = send_params("a sections=1 delay=1ms", "");
    let code_and_extensions = |answer: &Answer| {
        let new = answer.header("a2a-extensions").map(str::to_owned);
        (code(answer), new, answer.header("x-a2a-extensions").map(str::to_owned))
    };
    for header in ["a2a-version: 1.0", "a2a-version: 1.0\r\na2a-extensions: urn:test:may"] {
        for (method, params) in
            [("SendMessage", send.as_str()), ("ListTasks", "{}"), ("SendStreamingMessage", &send)]
        {
            let refused = ask(&server, header, method, params).await;
            assert_eq!(
                code_and_extensions(&refused),
                (Some(-32008), None, None),
                "{method} {}",
                refused.body
            );
            assert!(
                refused.body.contains("EXTENSION_SUPPORT_REQUIRED") && refused.body.contains("urn:test:must")
            );
        }
    }
    for (header, active) in [
        ("a2a-extensions: urn:test:must", "urn:test:must"),
        ("a2a-extensions: urn:x, urn:test:may,urn:test:must", "urn:test:must, urn:test:may"),
        ("a2a-extensions: urn:test:may\r\na2a-extensions: urn:test:must", "urn:test:must, urn:test:may"),
        ("x-a2a-extensions: urn:test:must", "urn:test:must"),
    ] {
        for (method, params) in [("SendMessage", send.as_str()), ("ListTasks", "{}")] {
            let answer = ask(&server, &format!("a2a-version: 1.0\r\n{header}"), method, params).await;
            assert_eq!(
                code_and_extensions(&answer),
                (None, Some(active.into()), None),
                "{method} {}",
                answer.body
            );
        }
    }
    // The card, which names the extension, can be read without it; here it is off.
    let card = ask(&server, "a2a-version: 1.0", "GetExtendedAgentCard", "{}").await;
    assert_eq!(code(&card), Some(-32004), "{}", card.body);
    // Naming the extension in the message is sufficient.
    let using = send_params("a sections=1 delay=1ms", r#","extensions":["urn:test:must"]"#);
    let answer = ask(&server, "a2a-version: 1.0", "SendMessage", &using).await;
    assert_eq!(code_and_extensions(&answer), (None, None, None), "{}", answer.body);
    // Older generations do not enforce required extensions, and 0.3 has its own header for activated ones.
    for generation in [Generation::Draft, Generation::V03] {
        let client = Client { server: &server, path: "/a2a/slow-writer", generation };
        assert_eq!(code(&client.try_send(UserMessage::new("a sections=1 delay=1ms")).await), None);
    }
    let draft = Generation::Draft.send_params(UserMessage::new("a sections=1 delay=1ms"));
    let answer = ask(&server, "a2a-extensions: urn:test:may", "tasks/send", &draft).await;
    assert_eq!(code_and_extensions(&answer), (None, None, None), "{}", answer.body);
    let params = Generation::V03.send_params(UserMessage::new("a sections=1 delay=1ms"));
    let answer = ask(&server, "x-a2a-extensions: urn:test:may", "message/send", &params).await;
    assert_eq!(code_and_extensions(&answer), (None, None, Some("urn:test:may".into())), "{}", answer.body);
}

#[tokio::test]
async fn stream_response_lists_activated_extensions() {
    let server = with(AgentSettings {
        extensions: vec![extension("urn:test:may", false)],
        ..AgentSettings::default()
    })
    .await;
    let head = "POST /a2a/slow-writer HTTP/1.1\r\na2a-version: 1.0\r\na2a-extensions: urn:test:may";
    let body = request("SendStreamingMessage", &send_params("a sections=1 delay=1ms", ""));
    let (_, head) = server.open_stream(head, &body).await;
    assert_eq!(head.header("a2a-extensions"), Some("urn:test:may"));
}

#[tokio::test]
async fn extensions_are_listed_on_the_cards_of_generations_that_have_them() {
    let server = with(AgentSettings {
        extensions: vec![extension("urn:test:must", true)],
        ..AgentSettings::default()
    })
    .await;
    let shown = r#""extensions":[{"uri":"urn:test:must","description":"for a test","required":true,"params":{"unit":"km"}}]"#;
    for version in ["", "1.0", "0.3"] {
        let path = "GET /a2a/slow-writer/.well-known/agent-card.json HTTP/1.1";
        let card = server.exchange(&format!("{path}\r\na2a-version: {version}"), "").await.body;
        assert!(card.contains(shown), "{version}: {card}");
    }
}

#[tokio::test]
async fn client_that_accepts_none_of_the_output_modes_is_rejected() {
    let server = with(AgentSettings::default()).await;
    let sends = |modes: &str| {
        let text = "a sections=1 delay=1ms";
        let v1 = send_params(text, "").trim_end_matches('}').to_owned()
            + &format!(r#"}},"configuration":{{"acceptedOutputModes":{modes}}}}}"#);
        let v03 = Generation::V03
            .send_params(UserMessage::new(text))
            .replace(r#""blocking":"#, &format!(r#""acceptedOutputModes":{modes},"blocking":"#));
        let draft = Generation::Draft
            .send_params(UserMessage::new(text))
            .replace(r#""async":"#, &format!(r#""acceptedOutputModes":{modes},"async":"#));
        [("SendMessage", v1), ("message/send", v03), ("tasks/send", draft)]
    };
    for modes in [r#"["image/png"]"#, r#"["application/json","video/*"]"#, r#"["data"]"#, r#"["file"]"#] {
        for (method, params) in sends(modes) {
            let refused = server.post("/a2a/slow-writer", &request(method, &params)).await;
            assert_eq!(code(&refused), Some(-32005), "{method} {modes}: {}", refused.body);
        }
    }
    for modes in
        ["[]", r#"["text"]"#, r#"["image/png","Text/Plain; charset=utf-8"]"#, r#"["*/*"]"#, r#"["text/*"]"#]
    {
        for (method, params) in sends(modes) {
            let answer = server.post("/a2a/slow-writer", &request(method, &params)).await;
            assert_eq!(code(&answer), None, "{method} {modes}: {}", answer.body);
        }
    }
    // The demo agent produces every type; its skill for writing produces text.
    let [(_, v1), ..] = sends(r#"["image/png"]"#);
    let skilled = v1.replacen('{', r#"{"metadata":{"skillId":"slow-writer"},"#, 1);
    assert_eq!(code(&server.call("demo", "SendMessage", &v1).await), None);
    let refused = server.call("demo", "SendMessage", &skilled).await;
    assert_eq!(code(&refused), Some(-32005), "{}", refused.body);
    assert!(refused.body.contains("CONTENT_TYPE_NOT_SUPPORTED"), "{}", refused.body);
}

#[tokio::test]
async fn media_types_of_skills_of_the_extended_card_are_shown_to_callers_with_a_credential() {
    let skilled = agents::skilled(&["open", "secret"]).with_skill("secret", |skill| {
        skill.card.input_modes = vec!["image/secret-input".into()];
        skill.card.output_modes = vec!["image/secret-output".into()];
        skill.visibility = SkillVisibility::Extended;
    });
    let mut setup = Setup { agents: vec![skilled], ..Setup::default() };
    let settings = AgentSettings { extended_card: ExtendedCard::Protected, ..AgentSettings::default() };
    setup.options.agents.insert("skilled".into(), settings);
    let server = setup.open_with_callers().await;
    let refused = async |caller: &str, part: &str, modes: &str| {
        let message = format!(r#"{{"messageId":"m","role":"ROLE_USER","parts":[{part}]}}"#);
        let params = format!(r#"{{"message":{message},"configuration":{{"acceptedOutputModes":{modes}}}}}"#);
        let head = format!("POST /a2a/skilled HTTP/1.1\r\na2a-version: 1.0{caller}");
        let answer = server.exchange(&head, &request("SendMessage", &params)).await.body;
        assert!(answer.contains("CONTENT_TYPE_NOT_SUPPORTED"), "{answer}");
        answer
    };
    for (part, modes, secret) in [
        (r#"{"text":"x"}"#, r#"["video/other"]"#, "image/secret-output"),
        (r#"{"raw":"aGk=","mediaType":"video/other"}"#, "[]", "image/secret-input"),
    ] {
        assert!(!refused("", part, modes).await.contains("secret"));
        assert!(refused("\r\ntest-caller: alice", part, modes).await.contains(secret));
    }
}

#[tokio::test]
async fn part_of_undeclared_media_type_is_rejected_if_checked() {
    let part = |part: &str| send_params("x", "").replace(r#"{"text":"x"}"#, part);
    let image = part(r#"{"text":"a sections=1 delay=1ms"},{"raw":"aGk=","mediaType":"image/png"}"#);
    let unnamed = part(r#"{"text":"a sections=1 delay=1ms","mediaType":"text/plain"},{"raw":"aGk="}"#);
    let old = r#"{"id":"t","message":{"role":"user","parts":[{"type":"text","text":"a sections=1 delay=1ms"},{"type":"file","file":{"bytes":"aGk=","mimeType":"image/png"}}]}}"#;
    for check in [true, false] {
        let server = with(AgentSettings { check_media_types: check, ..AgentSettings::default() }).await;
        let expected = check.then_some(-32005);
        let answer = server.call("slow-writer", "SendMessage", &image).await;
        assert_eq!(code(&answer), expected, "{}", answer.body);
        assert_eq!(
            answer.body.contains("message.parts[1]: this agent accepts text/plain, not image/png"),
            check
        );
        let answer = server.post("/a2a/slow-writer", &request("tasks/send", old)).await;
        assert_eq!(code(&answer), expected, "{}", answer.body);
        let answer = server.call("slow-writer", "SendMessage", &unnamed).await;
        assert_eq!(code(&answer), None, "{}", answer.body);
        // An agent that accepts every type is not checked.
        assert_eq!(code(&server.call("demo", "SendMessage", &image).await), None);
    }
}

#[tokio::test]
async fn wrong_content_type_is_reported_by_the_edition_of_the_error_table() {
    for (errors, code_of_rpc, type_of_rest) in [
        (ErrorTable::V1_0_1, -32600, "application/a2a+json"),
        (ErrorTable::V1_0_0, -32005, "application/json"),
    ] {
        let server = Setup::with(|options| options.errors = errors).open().await;
        let head = "HTTP/1.1\r\na2a-version: 1.0\r\ncontent-type: text/csv";
        let refused = server.exchange(&format!("POST / {head}"), "a,b").await;
        assert_eq!(code(&refused), Some(code_of_rpc), "{}", refused.body);
        let refused = server.exchange(&format!("POST /message:send {head}"), "a,b").await;
        assert_eq!(
            (refused.status, refused.header("content-type")),
            (415, Some(type_of_rest)),
            "{}",
            refused.body
        );
    }
}

#[tokio::test]
async fn send_only_profile_declares_no_other_capability() {
    let settings = AgentSettings {
        profile: Profile::pinkfish(),
        extended_card: ExtendedCard::Open,
        ..AgentSettings::default()
    };
    let server = with(settings).await;
    let card = server.get("/a2a/slow-writer/.well-known/agent-card.json").await.body;
    assert!(card.contains(r#""extendedAgentCard":false"#), "{card}");
    for method in ["GetExtendedAgentCard", "ListTaskPushNotificationConfigs", "SubscribeToTask"] {
        let refused = server.post("/a2a/slow-writer", &request(method, "{}")).await;
        assert_eq!(code(&refused), Some(-32601), "{}", refused.body);
    }
}
