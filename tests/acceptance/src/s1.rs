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

use super::{Check, agents, wire};

/// The checks, by the number of their requirement.
pub(crate) const CHECKS: &[(u16, Check)] = &[
    (1, agents!(push::three_ways)),
    (2, agents!(model::every_modality, until 17 [Mcp, Http, Command])),
    (3, wire!(methods::transport)),
    (9, wire!(card::path)),
    (10, wire!(card::required)),
    (11, wire!(card::optional)),
    (12, wire!(card::capabilities)),
    (13, wire!(card::default_modes)),
    (14, wire!(card::skill_members)),
    (15, wire!(card::skill_modes)),
    (16, wire!(card::valid)),
    (17, wire!(card::sample_card)),
    (18, wire!(card::credentials)),
    (19, agents!(model::task_members)),
    (20, agents!(model::sessions)),
    (21, agents!(model::status_members, on [Builtin, Mcp, Command])),
    (22, wire!(model::states_of_the_draft)),
    (23, agents!(model::server_sets_status)),
    (24, wire!(behaviours::all)),
    (25, agents!(model::continued, until 17 [Mcp, Http, Command])),
    (26, agents!(model::message_members, on [Builtin, Mcp, Command])),
    (27, agents!(model::part_kinds, until 17 [Mcp, Http, Command])),
    (28, agents!(model::untyped_parts, until 17 [Mcp, Http, Command])),
    (29, agents!(model::artifact_index, until 17 [Mcp, Http, Command])),
    (30, agents!(model::artifacts_are_immutable, until 17 [Mcp, Http, Command])),
    (31, agents!(model::metadata_preserved, until 17 [Mcp, Http, Command])),
    (32, wire!(methods::send_required_params)),
    (33, agents!(methods::send_starts_resumes_reopens, on [Builtin, Mcp, Command])),
    (34, agents!(methods::send_returns_task)),
    (35, agents!(methods::get_returns_task)),
    (36, agents!(methods::history_length, on [Builtin, Mcp, Command])),
    (37, agents!(methods::past_retention)),
    (38, agents!(methods::cancel_returns_task)),
    (39, agents!(methods::cancel_of_terminal_task)),
    (40, wire!(push::set)),
    (41, wire!(push::get)),
    (42, agents!(push::inline)),
    (43, agents!(push::status_changes, on [Builtin, Mcp, Command])),
    (44, wire!(push::validated_and_signed)),
    (45, wire!(push::third_party)),
    (47, agents!(streams::events_are_responses, on [Builtin, Http, Command])),
    (48, agents!(streams::status_members)),
    (49, agents!(streams::chunks, on [Builtin, Http, Command], until 17 [Http])),
    (50, agents!(streams::final_events, on [Builtin, Mcp, Command])),
    (51, agents!(streams::artifact_after_stream, on [Builtin, Http, Command])),
    (52, agents!(streams::resubscribe, on [Builtin, Http, Command])),
    (54, agents!(methods::two_turns, on [Builtin, Mcp, Command])),
    (55, agents!(methods::structured_question, on [Builtin, Mcp, Command])),
    (56, agents!(methods::text_and_file, until 17 [Mcp, Http, Command])),
    (64, agents!(errors::internal, until 17 [Http, Command])),
    (68, wire!(errors::unsupported)),
    (69, agents!(errors::content_types, until 17 [Mcp, Http, Command])),
    (71, wire!(streams::error_event)),
    (72, wire!(methods::valid_responses)),
    (76, wire!(push::extra_members)),
    (77, wire!(methods::output_modes)),
    (80, wire!(sample::port)),
    (81, wire!(sample::complete)),
    (82, wire!(sample::incomplete)),
    (83, wire!(sample::streamed)),
    (84, wire!(sample::short_id)),
    (85, wire!(sample::session_made)),
    (86, wire!(sample::no_key)),
    (88, wire!(telemetry::measured_and_traced)),
    (89, agents!(streams::status_history, on [Builtin, Mcp, Command])),
    (90, agents!(methods::failed_is_resumed, on [Builtin, Mcp, Command])),
    (93, agents!(model::found_by_session)),
];
