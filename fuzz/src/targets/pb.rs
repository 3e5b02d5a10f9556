//! F-pb: protobuf messages, every one that either service reads.

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
    name: "protobuf messages: what is read survives being written",
    run,
    corpus,
    dictionary: DICTIONARY,
    inputs: 200_000,
};

/// Keys and small messages; the rest of the words stand in names and metadata.
const DICTIONARY: &[&str] = &[
    "\u{a}\0",
    "\u{12}\0",
    "\u{1a}\0",
    "\u{22}\0",
    "\u{2a}\0",
    "\u{32}\0",
    "\u{3a}\0",
    "\u{42}\0",
    "\u{8}\u{1}",
    "\u{10}\u{2}",
    "\u{18}\u{3}",
    " \u{1}",
    "(\u{1}",
    "\u{2a}\u{3}\u{a}\u{1}x",
    "\u{11}\0\0\0\0\0\0\0\0",
    "\u{b}\u{c}",
    "tasks/",
    "/pushNotificationConfigs/",
    "https://",
    "a2ad",
    "mediaType",
    "referenceTaskIds",
    "data_part_compat",
    "value",
    "skillId",
];

/// The requests of the JSON codecs' corpus.
const REQUESTS: &str = include_str!("../../corpus/json/valid.jsonl");
/// Events and answers of the codecs' own tests.
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
    include_str!("../../../crates/protocol/tests/old_cards/samples/full.json"),
];

/// Who reads an input.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reader {
    Operation(OperationKind),
    Reply(OperationKind),
    Event,
    Status,
}

/// Every reader of a service.
fn readers(service: Service) -> Vec<Reader> {
    let kinds = || service.methods().iter().map(|row| row.1);
    let methods = kinds().map(Reader::Operation).chain(kinds().map(Reader::Reply));
    methods.chain([Reader::Event, Reader::Status]).collect()
}

/// The first byte chooses who reads the rest, so that most of what is fed fits its reader.
fn choose(input: &[u8]) -> Option<(Service, Reader, &[u8])> {
    let (&choice, body) = input.split_first()?;
    let service = Service::ALL[usize::from(choice) % 2];
    let readers = readers(service);
    Some((service, readers[usize::from(choice) / 2 % readers.len()], body))
}

/// The input for a reader.
fn input(service: Service, reader: Reader, body: &[u8]) -> Option<Vec<u8>> {
    let at = Service::ALL.iter().position(|known| *known == service)?;
    let place = readers(service).iter().position(|known| *known == reader)?;
    Some([&[u8::try_from(place * 2 + at).ok()?], body].concat())
}

fn run(input: &[u8]) {
    let Some((service, reader, body)) = choose(input) else { return };
    match reader {
        Reader::Operation(kind) => check_operation(service, kind, body),
        Reader::Reply(kind) => check_reply(service, kind, body),
        Reader::Event => check_event(service, body),
        Reader::Status => {
            decode_status(body);
        }
    }
}

fn check_operation(service: Service, kind: OperationKind, body: &[u8]) {
    let Ok(first) = service.decode_operation(kind, body) else { return };
    let again = |operation: &Operation| service.decode_operation(kind, &service.encode_operation(operation));
    let settled = settle(service, first, again);
    assert_eq!(again(&settled), Ok(settled));
}

fn check_reply(service: Service, kind: OperationKind, body: &[u8]) {
    let Ok(first) = service.decode_reply(kind, body) else { return };
    let again = |reply: &Reply| service.decode_reply(kind, &service.encode_reply(reply));
    if let (Service::V03, Reply::Card(card)) = (service, &first)
        && !v03::card::offered(card)
    {
        // A card of another generation cannot be shown there.
        return;
    }
    let settled = settle(service, first, again);
    assert_eq!(again(&settled), Ok(settled));
}

fn check_event(service: Service, body: &[u8]) {
    let Ok(first) = service.decode_event(body) else { return };
    let again = |event: &Event| service.decode_event(&service.encode_event(event));
    let settled = settle(service, first, again);
    assert_eq!(again(&settled), Ok(settled));
}

/// 1.0 can say everything. What 0.3 makes of a value the first time may lose what it cannot say.
fn settle<T>(service: Service, first: T, again: impl Fn(&T) -> Result<T, Error>) -> T {
    match service {
        Service::V1 => first,
        Service::V03 => again(&first).expect("what was read is read again"),
    }
}

/// The same things in both services, as far as each has a method for them.
fn corpus() -> Vec<Vec<u8>> {
    let mut corpus = Vec::new();
    for service in Service::ALL {
        let mut add = |reader, body: Vec<u8>| corpus.extend(input(service, reader, &body));
        for line in REQUESTS.lines() {
            let request = jsonrpc::decode(line.as_bytes()).expect("the corpus is valid");
            let operation = v1::operation::decode(&request.method, request.params).expect("it is");
            add(Reader::Operation(operation.kind()), service.encode_operation(&operation));
        }
        for text in EVENTS {
            let event = v1::event::decode_bytes(text.as_bytes()).expect("a sample");
            if let Event::Task(task) = &event {
                let sent = service.encode_reply(&Reply::SentTask(task.clone()));
                add(Reader::Reply(OperationKind::SendMessage), sent);
                add(Reader::Reply(OperationKind::GetTask), service.encode_reply(&Reply::Task(task.clone())));
            }
            add(Reader::Event, service.encode_event(&event));
        }
        for text in CARDS {
            let raw = Raw::parse_text(text).expect("a sample");
            let card = v1::card::decode(Node::new(raw, &Path::Root)).expect("a sample");
            let card = service.encode_reply(&Reply::Card(Box::new(card)));
            add(Reader::Reply(OperationKind::GetExtendedCard), card);
        }
        let error = Error::invalid_params(Violation::new("message.parts", "expected at least one part"));
        add(Reader::Status, encode_status(&error, 3, Timestamp::from_millis(0)));
    }
    corpus
}

#[cfg(test)]
mod tests {
    use super::{Reader, Service, TARGET, choose, corpus, decode_status, run};
    use crate::mutate::Mutator;

    fn accepted(input: &[u8]) -> bool {
        choose(input).is_some_and(|(service, reader, body)| match reader {
            Reader::Operation(kind) => service.decode_operation(kind, body).is_ok(),
            Reader::Reply(kind) => service.decode_reply(kind, body).is_ok(),
            Reader::Event => service.decode_event(body).is_ok(),
            Reader::Status => decode_status(body).is_some(),
        })
    }

    #[test]
    fn the_corpus_is_read_and_holds_every_method() {
        let corpus = corpus();
        for input in &corpus {
            assert!(accepted(input), "{input:?}");
            run(input);
        }
        let chosen: Vec<_> = corpus.iter().filter_map(|input| choose(input)).collect();
        for service in Service::ALL {
            let has = |reader| chosen.iter().any(|known| (known.0, known.1) == (service, reader));
            assert!(has(Reader::Event) && has(Reader::Status));
            for (method, kind) in service.methods() {
                assert!(has(Reader::Operation(*kind)), "{method}");
            }
        }
    }

    #[test]
    fn damaged_messages_are_often_messages_still() {
        let mutator = Mutator::new(corpus(), TARGET.dictionary, 7);
        let accepted = (1_000..3_000).filter(|number| accepted(&mutator.input(*number))).count();
        assert!((100..1_900).contains(&accepted), "{accepted} of 2000");
    }
}
