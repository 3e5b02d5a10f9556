//! The cards the SDK resolves lead its clients to the right agents.

use a2a::{GetExtendedAgentCardRequest, error_code};

use crate::talk::{BINDINGS, ask, card, each, say, texts, url};

const AGENTS: [&str; 4] = ["currency", "echo", "approver", "slow-writer"];

#[tokio::test]
async fn each_agent_has_a_card_that_leads_to_it() {
    for agent in AGENTS {
        let card = card(&format!("/a2a/{agent}")).await;
        for binding in BINDINGS {
            let offered = |one: &&a2a::AgentInterface| {
                (one.protocol_binding.as_str(), one.protocol_version.as_str()) == (binding.0, "1.0")
            };
            let interface = card.supported_interfaces.iter().find(offered).expect(binding.0);
            let url = url();
            let expected = match binding.0 {
                "GRPC" => url.trim_start_matches("http://").to_owned(),
                _ => format!("{url}/a2a/{agent}"),
            };
            assert_eq!(interface.url, expected, "{agent} {binding:?}");
        }
        assert!(!card.name.is_empty() && !card.description.is_empty() && !card.version.is_empty());
        assert_eq!(card.capabilities.streaming, Some(true));
        assert!(!card.skills.is_empty());
        for skill in &card.skills {
            assert!(!skill.id.is_empty() && !skill.description.is_empty() && !skill.tags.is_empty());
        }
    }
}

#[tokio::test]
async fn the_default_agent_is_reached_by_the_card_at_the_root() {
    each(async |binding| {
        let client = binding.client_at("").await;
        let task = ask(&client, &say("echo by the root", None)).await;
        assert_eq!(texts(&task), ["echo by the root"]);
    })
    .await;
}

#[tokio::test]
async fn an_extended_card_shows_more() {
    let public = card("/a2a/club").await;
    assert_eq!(public.capabilities.extended_agent_card, Some(true));
    assert_eq!(public.skills.len(), 1);
    each(async |binding| {
        let client = binding.client("club").await;
        let seen =
            client.get_extended_agent_card(&GetExtendedAgentCardRequest { tenant: None }).await.unwrap();
        let ids: Vec<&str> = seen.skills.iter().map(|skill| skill.id.as_str()).collect();
        assert_eq!(ids, ["echo", "approver"]);
    })
    .await;
}

#[tokio::test]
async fn an_extended_card_that_is_not_there_is_refused_as_such() {
    each(async |binding| {
        for (agent, code) in [
            ("promise", error_code::EXTENDED_CARD_NOT_CONFIGURED),
            ("echo", error_code::UNSUPPORTED_OPERATION),
        ] {
            let client = binding.client(agent).await;
            let asked = client.get_extended_agent_card(&GetExtendedAgentCardRequest { tenant: None }).await;
            assert_eq!(asked.unwrap_err().code, code, "{agent}");
        }
    })
    .await;
}
