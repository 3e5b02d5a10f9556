//! The SDK resolves each agent card, and its clients reach the right agent.

use a2a::{GetExtendedAgentCardRequest, error_code};

use crate::helpers::{BINDINGS, card, for_each_binding, send, texts, url, user_message};

const AGENTS: [&str; 4] = ["currency", "echo", "approver", "slow-writer"];

#[tokio::test]
async fn each_agent_has_a_card_with_its_urls() {
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
async fn root_card_leads_to_the_default_agent() {
    for_each_binding(async |binding| {
        let client = binding.client_at("").await;
        let task = send(&client, &user_message("echo by the root", None)).await;
        assert_eq!(texts(&task), ["echo by the root"]);
    })
    .await;
}

#[tokio::test]
async fn extended_card_has_more_skills() {
    let public = card("/a2a/club").await;
    assert_eq!(public.capabilities.extended_agent_card, Some(true));
    assert_eq!(public.skills.len(), 1);
    for_each_binding(async |binding| {
        let client = binding.client("club").await;
        let seen =
            client.get_extended_agent_card(&GetExtendedAgentCardRequest { tenant: None }).await.unwrap();
        let ids: Vec<&str> = seen.skills.iter().map(|skill| skill.id.as_str()).collect();
        assert_eq!(ids, ["echo", "approver"]);
    })
    .await;
}

#[tokio::test]
async fn missing_extended_card_is_rejected_with_its_own_code() {
    for_each_binding(async |binding| {
        for (agent, code) in [
            ("promise", error_code::EXTENDED_CARD_NOT_CONFIGURED),
            ("echo", error_code::UNSUPPORTED_OPERATION),
        ] {
            let client = binding.client(agent).await;
            let result = client.get_extended_agent_card(&GetExtendedAgentCardRequest { tenant: None }).await;
            assert_eq!(result.unwrap_err().code, code, "{agent}");
        }
    })
    .await;
}
