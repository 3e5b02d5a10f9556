//! S1: the first draft of the protocol, with its JSON schema and its sample of a currency agent.

mod card;
mod errors;
mod methods;
mod model;
mod sample;
mod stances;
mod streams;

use super::{
    Item, Seed,
    Step::{Bindings, Client, Identity, Product, Push, Tools},
    not_yet, wire,
};

pub(super) const SEED: Seed = Seed { name: "S1", items: ITEMS };

const ITEMS: &[Item] = &[
    // Principles and credentials.
    not_yet(1, "one long task polled, streamed and pushed", Push),
    wire!(2, "text, files and data come back byte by byte, in every generation", model::every_modality),
    wire!(3, "JSON-RPC 2.0 over HTTP, streams as server-sent events", methods::transport),
    not_yet(4, "a credential inside a message lets nobody in", Identity),
    not_yet(5, "the card says which credentials are wanted", Identity),
    not_yet(6, "no credential is 401 with the scheme, a wrong one 401 or 403", Identity),
    not_yet(7, "an OIDC discovery document may be linked", Identity),
    not_yet(8, "credentials wanted in the middle of a task: input-required that says which", Identity),
    // The card.
    wire!(9, "the card is at /.well-known/agent.json", card::path),
    wire!(10, "name, url, version, capabilities and skills are on the card", card::required),
    wire!(
        11,
        "description and authentication are on the card; provider and documentationUrl are read on others",
        card::optional
    ),
    wire!(12, "the three capabilities are flags, false where there is nothing", card::capabilities),
    wire!(
        13,
        "the modes of an agent that knows text only are text, as of a card that names none",
        card::default_modes
    ),
    wire!(14, "a skill has id, name, description and tags", card::skill_members),
    wire!(15, "a skill's own modes count before the agent's, on the card and in calls", card::skill_modes),
    wire!(16, "the card is valid by the published schema", card::valid),
    wire!(17, "our client reads the published sample card, its scheme a bare string", card::sample_is_read),
    wire!(18, "authentication.credentials tell the way to private cards", card::credentials),
    // Tasks, sessions, messages, parts, artifacts.
    wire!(19, "a task has an id, a session and a status", model::task_members),
    wire!(20, "a session is made where none is given, and several tasks share one", model::sessions),
    wire!(21, "a status has a state and a date and time", model::status_members),
    wire!(22, "every state on the wire is one of the seven", model::states_of_the_draft),
    wire!(23, "the client makes the task, the server alone changes its status", model::server_sets_status),
    wire!(24, "an agent answers, schedules, rejects, negotiates, asks, delegates", stances::all),
    wire!(25, "a finished task goes on under the same id and makes a new artifact", model::continued),
    wire!(26, "a message has a role, parts and metadata", model::message_members),
    wire!(27, "text, file by bytes or uri, data, each with metadata", model::part_kinds),
    wire!(28, "a part without its type is known by its member", model::untyped_parts),
    wire!(29, "artifacts are numbered from 0, several in a task", model::artifact_index),
    wire!(30, "a finished artifact never changes; a growing one is appended to", model::artifacts_stay),
    wire!(31, "metadata of task, message, part, artifact and parameters is kept", model::metadata_kept),
    // Methods.
    wire!(32, "tasks/send wants id and message, else -32602", methods::send_wants),
    wire!(33, "tasks/send starts, resumes and reopens", methods::send_stages),
    wire!(34, "the answer is the task, under the request's id", methods::send_answers),
    wire!(35, "tasks/get gives the task with its artifacts", methods::get_gives),
    wire!(36, "no history unless asked for; N is the last N messages in order", methods::history_length),
    wire!(37, "a task past its time is an error", methods::past_retention),
    wire!(38, "tasks/cancel gives the canceled task", methods::cancel_gives),
    wire!(39, "what cannot be cancelled is -32002", methods::cancel_refused),
    not_yet(40, "tasks/pushNotification/set", Push),
    not_yet(41, "tasks/pushNotification/get", Push),
    not_yet(42, "a webhook may be named in the send", Push),
    not_yet(43, "the webhook is called when the status changes", Push),
    not_yet(44, "a webhook is asked first, and can tell who calls", Push),
    not_yet(45, "the webhook may be somebody else's", Push),
    not_yet(46, "-32003 where push is switched off", Push),
    wire!(47, "tasks/sendSubscribe streams JSON-RPC answers with statuses and artifacts", streams::answers),
    wire!(48, "a status event has id, status and final", streams::status_members),
    wire!(49, "chunks of an artifact say index, append and lastChunk", streams::chunks),
    wire!(50, "the stream ends with final, when it is done and when the agent asks", streams::finals),
    wire!(51, "tasks/get gives the whole artifact afterwards", streams::whole_afterwards),
    wire!(52, "tasks/resubscribe gives the rest after a broken connection", streams::resubscribe),
    wire!(53, "a request without jsonrpc and id is served", streams::bare_request),
    wire!(54, "the agent asks, the next message under the same id finishes", methods::two_turns),
    wire!(55, "a structured question is text and data", methods::structured_question),
    wire!(56, "text and a PDF: working with a word about it, later completed", methods::with_a_file),
    not_yet(57, "a schema on a part: the result is valid by it", Bindings),
    not_yet(58, "the agent may ask for structured answers too", Bindings),
    // Errors.
    wire!(59, "an error is code, message and data", errors::members),
    wire!(60, "-32700 Invalid JSON payload", errors::parse),
    wire!(61, "-32600 Request payload validation error", errors::invalid_request),
    wire!(62, "-32601 Method not found", errors::method_not_found),
    wire!(63, "-32602 Invalid parameters", errors::invalid_params),
    wire!(64, "-32603 Internal error", errors::internal),
    wire!(65, "-32001 Task not found", errors::task_not_found),
    wire!(66, "-32002 Task cannot be canceled", errors::not_cancelable),
    wire!(67, "-32003 Push Notification is not supported", errors::no_push),
    wire!(68, "-32004 This operation is not supported", errors::unsupported),
    wire!(69, "-32005 where the client takes nothing the skill can give", errors::content_types),
    wire!(70, "codes of our own are between -32099 and -32000", errors::own_codes),
    wire!(71, "an error of a stream is a JSON-RPC error in an event", streams::error_event),
    // The published schema.
    wire!(
        72,
        "every answer is valid by the published schema, whatever the house of the agent",
        methods::valid_answers
    ),
    wire!(73, "the request's id may be a number, a string or null and comes back", methods::ids),
    wire!(74, "sessionId is a string", methods::session_is_text),
    wire!(75, "a file has bytes or a uri, never both, never none", errors::file_content),
    not_yet(76, "what a webhook's authentication says beyond the schema is kept", Push),
    wire!(77, "unknown members are let pass, and acceptedOutputModes is heard", methods::output_modes),
    // MCP.
    not_yet(78, "agents are MCP resources", Tools),
    not_yet(79, "tools by MCP and agents by A2A side by side", Tools),
    // The currency sample.
    wire!(80, "the sample as it comes: POST / at port 10000", sample::port),
    wire!(81, "1 USD to INR: completed, one artifact, index 0, no history", sample::complete),
    wire!(82, "1 USD: asks for the other currency, and the next message completes", sample::incomplete),
    wire!(83, "streamed: looking up, processing, the artifact", sample::streamed),
    wire!(84, "a short id of the client's", sample::short_id),
    wire!(85, "no sessionId given: one comes back", sample::session_made),
    wire!(86, "no key of a language model is needed", sample::no_key),
    not_yet(87, "cards in a catalogue", Client),
    not_yet(88, "traces and metrics", Product),
    wire!(89, "stateTransitionHistory: the past statuses of a task can be read", streams::past_statuses),
];
