//! F-pb: all protobuf messages that either gRPC service decodes.

use protocol::{
    Error, Event, Operation, OperationKind, Reply, Timestamp, Violation,
    dialect::{v1, v03},
    grpc::{Service, decode_status, encode_status},
    json::{
        Raw,
        read::{Node, Path},
    },
    jsonrpc,
};

use crate::Target;

pub(crate) const TARGET: Target = Target {
    id: "F-pb",
    name: "protobuf messages: round trip through decoder and encoder",
    run,
    corpus,
    dictionary: DICTIONARY,
    inputs: 200_000,
};

/// Field keys and small messages, then strings that occur in names and metadata.
#[rustfmt::skip]
const DICTIONARY: &[&str] = &[
    "\u{a}\0", "\u{12}\0", "\u{1a}\0", "\u{22}\0", "\u{2a}\0", "\u{32}\0", "\u{3a}\0", "\u{42}\0", "\u{8}\u{1}",
    "\u{10}\u{2}", "\u{18}\u{3}", " \u{1}", "(\u{1}", "\u{2a}\u{3}\u{a}\u{1}x", "\u{11}\0\0\0\0\0\0\0\0",
    "\u{b}\u{c}", "tasks/", "/pushNotificationConfigs/", "https://", "a2ad", "mediaType", "referenceTaskIds",
    "data_part_compat", "value", "skillId",
];

/// The requests of the JSON target's corpus.
const REQUESTS: &str = include_str!("../../corpus/json/valid.jsonl");
/// Events of the codecs' tests.
const EVENTS: [&str; 6] = [
    include_str!("../../../crates/protocol/tests/samples/v1/event/task-full.json"),
    include_str!("../../../crates/protocol/tests/samples/v1/event/message-full.json"),
    include_str!("../../../crates/protocol/tests/samples/v1/event/status-full.json"),
    include_str!("../../../crates/protocol/tests/samples/v1/event/artifact-full.json"),
    include_str!("../../../crates/protocol/tests/samples/v1/event/task-minimal.json"),
    include_str!("../../../crates/protocol/tests/samples/v1/event/status-minimal.json"),
];
const CARDS: [&str; 2] = [
    include_str!("../../../crates/protocol/tests/samples/v1/card/full.json"),
    include_str!("../../../crates/protocol/tests/cards/samples/full.json"),
];

/// The decoder that parses an input.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Decoder {
    Operation(OperationKind),
    Reply(OperationKind),
    Event,
    Status,
}

/// Every decoder of a service.
fn decoders(service: Service) -> Vec<Decoder> {
    let kinds = || service.methods().iter().map(|row| row.1);
    let methods = kinds().map(Decoder::Operation).chain(kinds().map(Decoder::Reply));
    methods.chain([Decoder::Event, Decoder::Status]).collect()
}

/// The first byte chooses the decoder for the rest, so that most inputs fit their decoder.
fn choose(input: &[u8]) -> Option<(Service, Decoder, &[u8])> {
    let (&choice, body) = input.split_first()?;
    let service = Service::ALL[usize::from(choice) % 2];
    let decoders = decoders(service);
    Some((service, decoders[usize::from(choice) / 2 % decoders.len()], body))
}

/// The input for a decoder.
fn input(service: Service, decoder: Decoder, body: &[u8]) -> Option<Vec<u8>> {
    let at = Service::ALL.iter().position(|known| *known == service)?;
    let index = decoders(service).iter().position(|known| *known == decoder)?;
    Some([&[u8::try_from(index * 2 + at).ok()?], body].concat())
}

fn run(input: &[u8]) {
    let Some((service, decoder, body)) = choose(input) else { return };
    match decoder {
        Decoder::Operation(kind) => check_operation(service, kind, body),
        Decoder::Reply(kind) => check_reply(service, kind, body),
        Decoder::Event => check_event(service, body),
        Decoder::Status => {
            decode_status(body);
        }
    }
}

fn check_operation(service: Service, kind: OperationKind, body: &[u8]) {
    let Ok(first) = service.decode_operation(kind, body) else { return };
    let round_trip =
        |operation: &Operation| service.decode_operation(kind, &service.encode_operation(operation));
    let stable = first_round_trip(service, first, round_trip);
    assert_eq!(round_trip(&stable), Ok(stable));
}

fn check_reply(service: Service, kind: OperationKind, body: &[u8]) {
    let Ok(first) = service.decode_reply(kind, body) else { return };
    let round_trip = |reply: &Reply| service.decode_reply(kind, &service.encode_reply(reply));
    if let (Service::V03, Reply::Card(card)) = (service, &first)
        && !v03::card::offered(card)
    {
        // A card without a 0.3 interface cannot be encoded in 0.3.
        return;
    }
    let stable = first_round_trip(service, first, round_trip);
    assert_eq!(round_trip(&stable), Ok(stable));
}

fn check_event(service: Service, body: &[u8]) {
    let Ok(first) = service.decode_event(body) else { return };
    let round_trip = |event: &Event| service.decode_event(&service.encode_event(event));
    let stable = first_round_trip(service, first, round_trip);
    assert_eq!(round_trip(&stable), Ok(stable));
}

/// 1.0 can express everything. The first round trip in 0.3 may lose what 0.3 cannot express.
fn first_round_trip<T>(service: Service, first: T, round_trip: impl Fn(&T) -> Result<T, Error>) -> T {
    match service {
        Service::V1 => first,
        Service::V03 => round_trip(&first).expect("an encoded value can be decoded"),
    }
}

/// The same messages for both services, where each has a method for them.
fn corpus() -> Vec<Vec<u8>> {
    let mut corpus = Vec::new();
    for service in Service::ALL {
        let mut add = |decoder, body: Vec<u8>| corpus.extend(input(service, decoder, &body));
        for line in REQUESTS.lines() {
            let request = jsonrpc::decode(line.as_bytes()).expect("the corpus is valid");
            let operation =
                v1::operation::decode(&request.method, request.params).expect("the corpus is valid");
            add(Decoder::Operation(operation.kind()), service.encode_operation(&operation));
        }
        for text in EVENTS {
            let event = v1::event::decode_bytes(text.as_bytes()).expect("the sample is valid");
            if let Event::Task(task) = &event {
                let sent = service.encode_reply(&Reply::SentTask(task.clone()));
                add(Decoder::Reply(OperationKind::SendMessage), sent);
                add(Decoder::Reply(OperationKind::GetTask), service.encode_reply(&Reply::Task(task.clone())));
            }
            add(Decoder::Event, service.encode_event(&event));
        }
        for text in CARDS {
            let raw = Raw::parse_text(text).expect("the sample is valid");
            let card = v1::card::decode(Node::new(raw, &Path::Root)).expect("the sample is valid");
            let card = service.encode_reply(&Reply::Card(Box::new(card)));
            add(Decoder::Reply(OperationKind::GetExtendedCard), card);
        }
        let error = Error::invalid_params(Violation::new("message.parts", "expected at least one part"));
        add(Decoder::Status, encode_status(&error, 3, Timestamp::from_millis(0)));
    }
    corpus
}

#[cfg(test)]
mod tests {
    use super::{Decoder, Service, TARGET, choose, corpus, decode_status, run};
    use crate::mutate::Mutator;

    fn accepted(input: &[u8]) -> bool {
        choose(input).is_some_and(|(service, decoder, body)| match decoder {
            Decoder::Operation(kind) => service.decode_operation(kind, body).is_ok(),
            Decoder::Reply(kind) => service.decode_reply(kind, body).is_ok(),
            Decoder::Event => service.decode_event(body).is_ok(),
            Decoder::Status => decode_status(body).is_some(),
        })
    }

    #[test]
    fn corpus_is_accepted_and_has_every_method() {
        let corpus = corpus();
        for input in &corpus {
            assert!(accepted(input), "{input:?}");
            run(input);
        }
        let chosen: Vec<_> = corpus.iter().filter_map(|input| choose(input)).collect();
        for service in Service::ALL {
            let has = |decoder| chosen.iter().any(|known| (known.0, known.1) == (service, decoder));
            assert!(has(Decoder::Event) && has(Decoder::Status));
            for (method, kind) in service.methods() {
                assert!(has(Decoder::Operation(*kind)), "{method}");
            }
        }
    }

    #[test]
    fn some_mutated_messages_are_still_accepted() {
        let mutator = Mutator::new(corpus(), TARGET.dictionary, 7);
        let accepted = (1_000..3_000).filter(|number| accepted(&mutator.input(*number))).count();
        assert!((100..1_900).contains(&accepted), "{accepted} of 2000");
    }
}
