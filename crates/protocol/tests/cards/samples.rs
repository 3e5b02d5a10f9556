//! The output of each form, byte for byte except for white space.

use a2ad_protocol::{
    AgentCard, Json,
    dialect::{draft, v03},
    model::AgentInterface,
};

use crate::codec::{Form, card, sample};

#[test]
fn full_card_is_written_in_each_form() {
    check("full.json", Form::V03, "full.v03.json");
    check("full.json", Form::V03Proto, "full.v03-proto.json");
    check("full.json", Form::AgentJson, "full.agent.json");
    check("full.json", Form::Merged, "full.merged.json");
}

#[test]
fn card_of_a_draft_only_agent_has_no_newer_members() {
    check("draft-only.json", Form::AgentJson, "draft-only.agent.json");
}

#[test]
fn card_is_offered_if_its_generation_is_supported() {
    let cases = [
        // version, binding, a card of 0.3, agent.json
        ("1.0", "JSONRPC", false, false),
        ("1.0.1", "GRPC", false, false),
        ("0.3", "JSONRPC", true, true),
        ("0.3.0", "GRPC", true, true),
        ("0.2.6", "HTTP+JSON", true, true),
        ("0.2", "https://bindings.example/semaphore", true, true),
        ("0.1", "JSONRPC", false, true),
        ("0.1.0", "GRPC", false, false),
        ("draft", "JSONRPC", false, true),
        ("0.5", "JSONRPC", false, false),
        ("3", "JSONRPC", false, false),
        ("", "JSONRPC", false, false),
    ];
    for (version, binding, in_v03, in_agent_json) in cases {
        let card = with_interfaces(&[(version, binding, "u")]);
        assert_eq!(v03::card::offered(&card), in_v03, "{version} {binding}");
        assert_eq!(draft::card::offered(&card), in_agent_json, "{version} {binding}");
    }
}

#[test]
fn first_known_transport_is_the_preferred_one() {
    let card = with_interfaces(&[
        ("1.0", "JSONRPC", "new"),
        ("0.3", "urn:example:flags", "flags"),
        ("0.3", "GRPC", "grpc"),
        ("0.3", "JSONRPC", "rpc"),
    ]);
    let start = |text: &str| text.split(r#","protocolVersion""#).next().unwrap().to_owned();
    assert_eq!(
        start(&Form::V03.encode(&card)),
        r#"{"name":"n","description":"","url":"grpc","preferredTransport":"GRPC","additionalInterfaces":[{"url":"flags","transport":"urn:example:flags"},{"url":"rpc","transport":"JSONRPC"}]"#
    );
    // Draft clients support JSON-RPC only.
    assert_eq!(
        start(&Form::AgentJson.encode(&card)),
        r#"{"name":"n","description":"","url":"rpc","preferredTransport":"JSONRPC","additionalInterfaces":[{"url":"flags","transport":"urn:example:flags"},{"url":"grpc","transport":"GRPC"}]"#
    );
}

#[test]
fn merged_card_without_older_interfaces_is_the_signed_1_0_card() {
    let card =
        AgentCard { signatures: card("full.json").signatures, ..with_interfaces(&[("1.0", "JSONRPC", "u")]) };
    assert_eq!(Form::Merged.encode(&card), Form::V1.encode(&card));
}

#[test]
fn merged_card_reads_the_same_in_both_generations() {
    let card = card("full.json");
    let merged = Form::Merged.encode(&card);
    let unsigned = AgentCard { signatures: Vec::new(), ..card.clone() };
    assert_eq!(Form::V1.decode(&merged), Ok(unsigned.clone()));
    assert_eq!(Form::Merged.decode(&merged), Ok(unsigned));

    let old = Form::V03.decode(&merged).unwrap();
    assert_eq!(old, Form::V03.decode(&Form::V03.encode(&card)).unwrap());
    let addresses = |card: &AgentCard| {
        let accepted_versions =
            card.interfaces.iter().filter(|interface| interface.version.starts_with("0.3"));
        let mut pairs: Vec<_> = accepted_versions
            .map(|accepted_versions| (accepted_versions.url.clone(), accepted_versions.binding.clone()))
            .collect();
        pairs.sort();
        pairs
    };
    assert_eq!(addresses(&old), addresses(&card));
}

#[test]
fn card_with_many_skills_is_merged() {
    let mut card = card("full.json");
    card.skills = (0..15_000)
        .map(|at| a2ad_protocol::model::AgentSkill { id: format!("skill-{at}"), ..card.skills[0].clone() })
        .collect();
    assert_eq!(Form::Merged.decode(&Form::Merged.encode(&card)).unwrap().skills, card.skills);
}

fn check(source: &str, form: Form, expected: &str) {
    let written = form.encode(&card(source));
    assert_eq!(written, Json::parse(&sample(expected)).unwrap().as_str(), "{expected}");
    let read = form.decode(&written).unwrap();
    assert_eq!(form.decode(&form.encode(&read)), Ok(read), "{expected}");
}

fn with_interfaces(interfaces: &[(&str, &str, &str)]) -> AgentCard {
    let interfaces = interfaces.iter().map(|(version, binding, url)| AgentInterface {
        url: (*url).into(),
        binding: (*binding).into(),
        tenant: None,
        version: (*version).into(),
    });
    let minimal = Form::V03.decode(r#"{"name":"n","url":"u"}"#).unwrap();
    AgentCard { interfaces: interfaces.collect(), ..minimal }
}
