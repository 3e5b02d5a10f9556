//! S1: the draft of the protocol, its published JSON schema and its currency agent sample.

mod behaviours;
mod card;
mod errors;
mod methods;
mod model;
mod push;
mod sample;
mod streams;
mod telemetry;

use super::{Group, Item, agents, not_yet, test, wire};

pub(crate) const GROUP: Group = Group { name: "S1", items: ITEMS };

const ITEMS: &[Item] = &[
    // Principles and credentials.
    agents!(
        1,
        "one long-running task can be polled, streamed and delivered by push notification",
        push::three_ways
    ),
    agents!(2, "text, files and data are returned byte for byte in every protocol generation", model::every_modality, on [Builtin], until 17 [Mcp, Http, Command]),
    wire!(3, "requests are JSON-RPC 2.0 over HTTP, and streams are server-sent events", methods::transport),
    test(
        4,
        "a credential inside a message does not authenticate the caller",
        "crates/inbound/tests/socket/credential_requests.rs::credential_in_a_message_does_not_identify_its_caller",
    ),
    test(
        5,
        "the card lists the required authentication schemes",
        "crates/inbound/tests/socket/declared_credentials.rs::cards_of_every_dialect_declare_what_the_agent_accepts",
    ),
    test(
        6,
        "a missing credential is 401 with the scheme, and a wrong one is 401 or 403",
        "crates/inbound/tests/socket/api_keys.rs::every_binding_accepts_a_key_in_both_headers_and_nothing_else",
    ),
    test(
        7,
        "the card can link to an OIDC discovery document",
        "crates/inbound/tests/socket/declared_credentials.rs::cards_of_every_dialect_declare_what_the_agent_accepts",
    ),
    test(
        8,
        "credentials required during a task set the state input-required and name the credential",
        "crates/inbound/tests/socket/credential_requests.rs::schemes_are_data_in_the_draft_in_every_profile",
    ),
    // The card.
    wire!(9, "the card is at /.well-known/agent.json", card::path),
    wire!(10, "the card has name, url, version, capabilities and skills", card::required),
    wire!(
        11,
        "the card has description and authentication, and our client reads provider and documentationUrl",
        card::optional
    ),
    wire!(
        12,
        "the three capabilities are booleans, and our client reads missing ones as not offered",
        card::capabilities
    ),
    wire!(
        13,
        "the default modes are text for an agent that handles only text and for a card without modes",
        card::default_modes
    ),
    wire!(14, "a skill has id, name, description and tags", card::skill_members),
    wire!(15, "a skill's own modes override the agent's modes on the card and in calls", card::skill_modes),
    wire!(16, "the card is valid against the published schema", card::valid),
    wire!(
        17,
        "our client reads the published sample card, whose authentication scheme is a bare string",
        card::sample_card
    ),
    wire!(18, "authentication.credentials states how to get a private card", card::credentials),
    // Tasks, sessions, messages, parts, artifacts.
    agents!(19, "a task has an id, a session and a status", model::task_members),
    agents!(
        20,
        "the server creates a session if none is given, and several tasks can share one session",
        model::sessions
    ),
    agents!(21, "a status has a state and a timestamp", model::status_members, on [Builtin, Mcp, Command]),
    wire!(22, "every state on the wire is one of the seven states of the draft", model::states_of_the_draft),
    agents!(
        23,
        "the client creates a task, and only the server changes its status",
        model::server_sets_status
    ),
    wire!(
        24,
        "the built-in agents respond, schedule, reject, negotiate, ask for input and delegate",
        behaviours::all
    ),
    agents!(25, "a finished task can be continued under the same id and produces a new artifact", model::continued, on [Builtin], until 17 [Mcp, Http, Command]),
    agents!(26, "a message has a role, parts and metadata", model::message_members, on [Builtin, Mcp, Command]),
    agents!(27, "parts are text, file by bytes or uri, and data, each with metadata", model::part_kinds, on [Builtin], until 17 [Mcp, Http, Command]),
    agents!(28, "a part without a type is recognised by its members", model::untyped_parts, on [Builtin], until 17 [Mcp, Http, Command]),
    agents!(29, "artifacts have indexes that start at 0, and a task can have several", model::artifact_index, on [Builtin], until 17 [Mcp, Http, Command]),
    agents!(30, "a finished artifact never changes, and chunks are appended to an unfinished one", model::artifacts_are_immutable, on [Builtin], until 17 [Mcp, Http, Command]),
    agents!(31, "metadata of the task, message, part, artifact and parameters is preserved", model::metadata_preserved, on [Builtin], until 17 [Mcp, Http, Command]),
    // Methods.
    wire!(32, "tasks/send without id or message is rejected with -32602", methods::send_required_params),
    agents!(33, "tasks/send starts, resumes and reopens a task", methods::send_starts_resumes_reopens, on [Builtin, Mcp, Command]),
    agents!(
        34,
        "the result of tasks/send is the task, and the response has the request's id",
        methods::send_returns_task
    ),
    agents!(35, "tasks/get returns the task with its artifacts", methods::get_returns_task),
    agents!(36, "history is returned only on request, and historyLength N returns the last N messages in order", methods::history_length, on [Builtin, Mcp, Command]),
    agents!(37, "tasks/get of a task past its retention time is an error", methods::past_retention),
    agents!(38, "tasks/cancel returns the canceled task", methods::cancel_returns_task),
    agents!(39, "tasks/cancel of a terminal task is rejected with -32002", methods::cancel_of_terminal_task),
    wire!(40, "tasks/pushNotification/set stores a webhook and returns it", push::set),
    wire!(41, "tasks/pushNotification/get returns the webhook, without its secrets", push::get),
    agents!(42, "tasks/send can contain a webhook", push::inline),
    agents!(43, "the webhook is called when the status changes, with its token and its authentication", push::status_changes, on [Builtin, Mcp, Command]),
    wire!(
        44,
        "a webhook is validated before use, and the server can authenticate with a signed token",
        push::validated_and_signed
    ),
    wire!(45, "a webhook can belong to a third party", push::third_party),
    test(
        46,
        "push methods are rejected with -32003 where push notifications are disabled",
        "crates/inbound/tests/socket/capabilities.rs::push_operations_are_rejected_if_disabled_and_otherwise_valid",
    ),
    agents!(47, "tasks/sendSubscribe streams JSON-RPC responses with statuses and artifacts", streams::events_are_responses, on [Builtin, Http, Command]),
    agents!(48, "a status event has id, status and final", streams::status_members),
    agents!(49, "the chunks of an artifact have index, append and lastChunk", streams::chunks, on [Builtin, Command], until 17 [Http]),
    agents!(50, "the stream ends with a final event when the task finishes and when the agent asks for input", streams::final_events, on [Builtin, Mcp, Command]),
    agents!(51, "tasks/get returns the whole artifact after it was streamed", streams::artifact_after_stream, on [Builtin, Http, Command]),
    agents!(52, "tasks/resubscribe returns the remaining events after a broken connection", streams::resubscribe, on [Builtin, Http, Command]),
    test(
        53,
        "a request without jsonrpc and id is served",
        "crates/inbound/tests/socket/dialects.rs::only_the_draft_may_omit_the_jsonrpc_version",
    ),
    agents!(54, "the agent asks for input, and the next message with the same id completes the task", methods::two_turns, on [Builtin, Mcp, Command]),
    agents!(55, "a structured request for input has a text part and a data part", methods::structured_question, on [Builtin, Mcp, Command]),
    agents!(56, "a task with text and a PDF is working with a status message and later completed", methods::text_and_file, on [Builtin], until 17 [Mcp, Http, Command]),
    not_yet(57, "a result is valid against a schema that was given with a part", 24),
    not_yet(58, "an agent can request structured input with a schema", 24),
    // Errors.
    test(
        59,
        "an error has code, message and data",
        "crates/inbound/tests/socket/dialects.rs::errors_have_the_fixed_texts_of_the_older_generations",
    ),
    test(
        60,
        "invalid JSON is -32700 Invalid JSON payload",
        "crates/inbound/tests/socket/dialects.rs::errors_have_the_fixed_texts_of_the_older_generations",
    ),
    test(
        61,
        "an invalid request is -32600 Request payload validation error",
        "crates/inbound/tests/socket/dialects.rs::errors_have_the_fixed_texts_of_the_older_generations",
    ),
    test(
        62,
        "an unknown method is -32601 Method not found",
        "crates/inbound/tests/socket/dialects.rs::errors_have_the_fixed_texts_of_the_older_generations",
    ),
    test(
        63,
        "invalid parameters are -32602 Invalid parameters",
        "crates/inbound/tests/socket/dialects.rs::errors_have_the_fixed_texts_of_the_older_generations",
    ),
    agents!(64, "a panic in the agent is -32603 Internal error", errors::internal, on [Builtin], until 17 [Mcp, Http, Command]),
    test(
        65,
        "an unknown task is -32001 Task not found",
        "crates/inbound/tests/socket/dialects.rs::errors_have_the_fixed_texts_of_the_older_generations",
    ),
    test(
        66,
        "cancelling a terminal task is -32002 Task cannot be canceled",
        "crates/inbound/tests/socket/dialects.rs::errors_have_the_fixed_texts_of_the_older_generations",
    ),
    test(
        67,
        "a push method is -32003 Push Notification is not supported",
        "crates/inbound/tests/socket/dialects.rs::errors_have_the_fixed_texts_of_the_older_generations",
    ),
    wire!(68, "a message to a canceled task is -32004 This operation is not supported", errors::unsupported),
    agents!(69, "-32005 is returned if the client accepts no output mode of the skill", errors::content_types, on [Builtin], until 17 [Mcp, Http, Command]),
    test(
        70,
        "error codes outside JSON-RPC's own are between -32099 and -32000",
        "crates/protocol/tests/wire/lists.rs::fixed_messages_before_1_0_are_unchanged",
    ),
    wire!(71, "an error during a stream is a JSON-RPC error in an event", streams::error_event),
    // The published schema.
    wire!(
        72,
        "every response is valid against the published schema, whatever the agent's compatibility profile",
        methods::valid_responses
    ),
    test(
        73,
        "the request's id can be a number, a string or null and is returned unchanged",
        "crates/inbound/tests/socket/methods.rs::request_ids_are_echoed_at_both_paths_of_the_agent",
    ),
    test(
        74,
        "a sessionId that is not a string is rejected",
        "crates/protocol/tests/legacy/bad.rs::invalid_send_names_its_field",
    ),
    test(
        75,
        "a file must have either bytes or a uri, and not both",
        "crates/protocol/tests/legacy/bad.rs::invalid_part_names_its_field",
    ),
    wire!(
        76,
        "members of a webhook's authentication that the schema does not name are preserved",
        push::extra_members
    ),
    wire!(77, "unknown parameters are ignored, and acceptedOutputModes is honoured", methods::output_modes),
    // MCP.
    test(
        78,
        "agents are MCP resources, each with its card",
        "crates/inbound/tests/socket/mcp/tools.rs::cards_are_resources",
    ),
    not_yet(79, "tools over MCP and agents over A2A work side by side", 22),
    // The currency sample.
    wire!(80, "the currency sample's configuration file serves POST / on port 10000", sample::port),
    wire!(81, "1 USD to INR completes with one artifact at index 0 and no history", sample::complete),
    wire!(
        82,
        "an incomplete question asks for the target currency, and the next message completes the task",
        sample::incomplete
    ),
    wire!(83, "the streamed task reports looking up and processing, then the artifact", sample::streamed),
    wire!(84, "a short task id chosen by the client is accepted", sample::short_id),
    wire!(85, "a request without sessionId gets a new sessionId", sample::session_made),
    wire!(86, "the sample needs no API key of a language model", sample::no_key),
    test(
        87,
        "the agents are listed with their cards, and can be searched",
        "crates/inbound/tests/socket/agent_list.rs::agents_are_listed_with_their_public_skills",
    ),
    wire!(
        88,
        "a call is counted in the metrics, and its trace reaches the tool that it uses",
        telemetry::measured_and_traced
    ),
    agents!(89, "with stateTransitionHistory, the past statuses of a task can be read", streams::status_history, on [Builtin, Mcp, Command]),
    agents!(90, "a message with the id of a task that failed resumes it", methods::failed_is_resumed, on [Builtin, Mcp, Command]),
    not_yet(91, "a refusal of a content type names the part, its type and the accepted types", 17),
    not_yet(92, "the content of a task or a conversation is deleted on request, everywhere it is kept", 24),
    agents!(93, "the tasks of a session are found by it", model::found_by_session),
];
