use engine::{SchemaCheck, SkillSchema as _};

use super::{walk::Walk, *};

mod random;

fn json(text: &str) -> Json {
    Json::parse(text).unwrap()
}

fn schema(text: &str) -> Schema {
    Schema::new(json(text)).unwrap()
}

fn result(schema: &Schema, value: &str) -> Result<(), String> {
    match schema.check("arguments", &json(value)) {
        SchemaCheck::Done(result) => result,
        SchemaCheck::Large(_) => panic!("the check is large"),
    }
}

fn error(schema: &Schema, value: &str) -> String {
    result(schema, value).unwrap_err()
}

/// An expression of operators with one operand and of numbers, as a filter or query language has it.
fn expression(operators: usize) -> Schema {
    let one = |number| {
        format!(
            r##"{{"type":"object","required":["op{number}"],"properties":{{"op{number}":{{"$ref":"#/$defs/e"}}}}}}"##
        )
    };
    let operators: Vec<String> = (0..operators).map(one).collect();
    let lit = r#"{"type":"object","required":["lit"],"properties":{"lit":{"type":"number"}}}"#;
    let alternatives = operators.join(",");
    schema(&format!(r##"{{"$ref":"#/$defs/e","$defs":{{"e":{{"oneOf":[{alternatives},{lit}]}}}}}}"##))
}

fn nested(depth: usize, innermost: &str) -> String {
    let open: String = (0..depth).map(|_| r#"{"op0":"#).collect();
    format!("{open}{innermost}{}", "}".repeat(depth))
}

/// The definitions `d0` to `dN`, each made of the next one, and the last one.
fn chain(length: usize, link: impl Fn(&str) -> String) -> String {
    let next = |number| format!(r##"{{"$ref":"#/$defs/d{number}"}}"##);
    let links: Vec<String> =
        (0..length).map(|number| format!(r#""d{number}":{}"#, link(&next(number + 1)))).collect();
    let last = format!(r#""d{length}":{{"type":"string"}}"#);
    format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{},{last}}}}}"##, links.join(","))
}

#[test]
fn error_names_the_field() {
    let schema = schema(r#"{"type":"object","properties":{"a":{"type":"array","items":{"type":"number"}}}}"#);
    assert_eq!(error(&schema, r#"{"a":[1,"x"]}"#), r#"arguments.a.1: "x" is not of type "number""#);
}

#[test]
fn errors_are_those_of_the_library() {
    let cases = [
        (r#"{"additionalProperties":false,"properties":{"a":{}}}"#, r#"{"b":1}"#),
        (r#"{"required":["a"],"properties":{"b":{"type":"string"}}}"#, r#"{"b":1}"#),
        (r#"{"anyOf":[{"type":"string"},{"type":"null"}]}"#, "1"),
        (r#"{"oneOf":[{"type":"integer"},{"minimum":2}]}"#, "3"),
        (r#"{"not":{"type":"integer"}}"#, "1"),
        (r#"{"propertyNames":{"maxLength":1}}"#, r#"{"ab":1}"#),
        (r#"{"contains":{"minimum":5}}"#, "[1,2]"),
        (r#"{"unevaluatedProperties":false}"#, r#"{"a":1}"#),
        (r#"{"properties":{"a/b":{"enum":[1]}}}"#, r#"{"a/b":2}"#),
        (r#"{"if":{"type":"string"},"else":{"minimum":3}}"#, "1"),
        (r#"{"items":{"patternProperties":{"^x":false}}}"#, r#"[{"xy":1}]"#),
    ];
    for (text, value) in cases {
        let schema = schema(text);
        let tree = parse(&json(value)).unwrap();
        let expected = schema.validator().validate(&tree).unwrap_err();
        let path = expected.instance_path().to_string().replace('/', ".");
        assert_eq!(error(&schema, value), format!("arguments{path}: {expected}"), "{text}");
    }
}

#[test]
fn error_of_alternatives_is_that_of_the_best_one() {
    let schema = expression(3);
    let text = error(&schema, r#"{"op0":{"op1":{"lit":"x"}}}"#);
    assert_eq!(text, r#"arguments.op0.op1.lit: "x" is not of type "number""#);
    assert_eq!(result(&schema, r#"{"op0":{"op1":{"lit":1}}}"#), Ok(()));
}

#[test]
fn work_grows_with_depth_and_not_with_alternatives_per_level() {
    for operators in [2, 5, 10, 20] {
        let schema = expression(operators);
        for depth in [10, 30, 60] {
            let mut steps = u64::MAX;
            let value = json(&nested(depth, r#"{"lit":"x"}"#));
            assert_eq!(schema.allows(&value, &mut steps), Some(false));
            let (used, pairs) = (u64::MAX - steps, schema.steps(&parse(&value).unwrap()));
            assert!(used <= 2 * pairs, "{used} steps for {operators} operators, depth {depth}");
        }
    }
}

#[test]
fn doubling_references_are_refused_before_the_library_sees_them() {
    for link in ["allOf", "anyOf", "oneOf"] {
        let text = chain(60, |next| format!(r#"{{"{link}":[{next},{next}]}}"#));
        assert!(text.len() < 5_000);
        let refused = Schema::new(json(&text));
        assert!(matches!(refused, Err(InvalidSchema::TooComplex)), "{link}");
    }
    let repeated = chain(20, |next| format!(r#"{{"anyOf":[{next}],"unevaluatedProperties":false}}"#));
    assert!(matches!(Schema::new(json(&repeated)), Err(InvalidSchema::TooComplex)));
}

#[test]
fn references_that_double_below_each_other_cost_no_more_than_others() {
    let schema =
        schema(&chain(40, |next| format!(r#"{{"properties":{{"op0":{{"anyOf":[{next},{next}]}}}}}}"#)));
    let text = error(&schema, &nested(40, "1"));
    assert!(text.starts_with("arguments.op0.") && text.contains("anyOf"), "{text}");
    assert_eq!(result(&schema, &nested(40, r#""x""#)), Ok(()));
}

#[test]
fn long_chains_of_references_need_little_stack() {
    let chained = schema(&chain(100, |next| next.to_owned()));
    assert_eq!(error(&chained, "1"), r#"arguments: 1 is not of type "string""#);
    let text = chain(900, |next| format!(r#"{{"properties":{{"op0":{next}}},"allOf":[{next}]}}"#));
    match Schema::new(json(&text)) {
        Ok(chained) => {
            let _ = chained.allows(&json(&nested(60, "1")), &mut { INLINE_STEPS });
        }
        Err(refused) => assert!(matches!(refused, InvalidSchema::TooComplex)),
    }
}

/// Runs on a thread whose stack is that of a worker of the runtime.
fn on_worker_stack<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let thread = std::thread::Builder::new().stack_size(1 << 20);
    std::thread::scope(|scope| thread.spawn_scoped(scope, work).unwrap().join().unwrap())
}

fn with_unevaluated(chain: &str) -> String {
    chain.replacen('{', r#"{"unevaluatedProperties":false,"#, 1)
}

#[test]
fn long_chains_on_one_value_are_refused_before_the_library_sees_them() {
    let references = with_unevaluated(&chain(4_500, |next| next.to_owned()));
    let alternatives = with_unevaluated(&chain(1_500, |next| format!(r#"{{"anyOf":[true,{next}]}}"#)));
    let dangling = references.replace(r#"{"type":"string"}"#, r##"{"$ref":"#/$defs/missing"}"##);
    for text in [references, alternatives] {
        let refused = on_worker_stack(|| Schema::new(json(&text)).map(drop));
        assert!(matches!(refused, Err(InvalidSchema::TooComplex)), "{refused:?}");
    }
    let refused = on_worker_stack(|| Schema::new(json(&dangling)).map(drop)).unwrap_err().to_string();
    assert!(refused.contains("/$defs/missing"), "{refused}");
}

/// A circle of chains: the way through all of them is long, but not the one from the first definition.
#[test]
fn circles_on_one_value_are_refused_by_all_that_they_contain() {
    const CHAINS: usize = 60;
    const LENGTH: usize = 60;
    let name = |chain: usize, link: usize| format!(r##"{{"$ref":"#/$defs/c{chain}x{link}"}}"##);
    let mut definitions = Vec::new();
    for chain in 0..CHAINS {
        let next = if chain + 1 < CHAINS { name(chain + 1, 0) } else { "true".to_owned() };
        let back = if chain > 0 { name(chain - 1, 0) } else { "true".to_owned() };
        definitions.push(format!(r#""c{chain}x0":{{"anyOf":[{next},{}]}}"#, name(chain, 1)));
        for link in 1..LENGTH {
            let target = if link + 1 < LENGTH { name(chain, link + 1) } else { back.clone() };
            definitions.push(format!(r#""c{chain}x{link}":{target}"#));
        }
    }
    let definitions = definitions.join(",");
    let text = format!(r##"{{"$ref":"#/$defs/c0x0","$defs":{{{definitions}}}}}"##);
    let refused = on_worker_stack(|| Schema::new(json(&text)).map(drop));
    assert!(matches!(refused, Err(InvalidSchema::TooComplex)), "{refused:?}");
}

#[test]
fn longest_chains_that_are_taken_need_little_stack() {
    let (mut taken, value) = (0, json(&nested(60, "1")));
    for length in (10..400).step_by(10) {
        let references = with_unevaluated(&chain(length, |next| next.to_owned()));
        let below = chain(length, |next| {
            format!(r##"{{"properties":{{"op0":{{"$ref":"#"}}}},"anyOf":[{{"type":"array"}},{next}]}}"##)
        });
        for text in [references, with_unevaluated(&below)] {
            on_worker_stack(|| {
                let Ok(schema) = Schema::new(json(&text)) else { return };
                let _ = schema.allows(&value, &mut { 100_000 });
                taken = taken.max(length);
            });
        }
    }
    assert!(taken >= 100, "{taken}");
}

#[test]
fn long_chains_below_each_other_need_little_stack() {
    let text = chain(2_400, |next| format!(r#"{{"properties":{{"op0":{next}}}}}"#));
    let allowed =
        on_worker_stack(|| Schema::new(json(&text)).unwrap().allows(&json(&nested(60, "1")), &mut 50_000));
    assert_eq!(allowed, Some(true));
}

#[test]
fn what_was_looked_at_is_found_with_little_stack() {
    let text = with_unevaluated(&chain(1_500, |next| format!(r#"{{"anyOf":[true,{next}]}}"#)));
    let allowed = on_worker_stack(|| {
        let graph = Graph::new(&parse(&json(&text)).unwrap()).unwrap_or_else(|_| panic!("no graph"));
        Walk::new(&graph, &mut Budget::steps(1_000_000)).allows(&parse(&json(r#"{"a":1}"#)).unwrap())
    });
    assert_eq!(allowed, Err(TooComplex));
}

#[test]
fn reference_that_leads_back_on_the_same_value_is_satisfied() {
    let schema = schema(
        r##"{"$ref":"#/$defs/parent","$defs":{"parent":{"required":["a"],"oneOf":[{"$ref":"#/$defs/child"}]},
        "child":{"allOf":[{"$ref":"#/$defs/parent"},{"required":["b"]}]}}}"##,
    );
    assert_eq!(result(&schema, r#"{"a":1,"b":1}"#), Ok(()));
    assert!(error(&schema, r#"{"a":1}"#).contains("oneOf"));
}

#[test]
fn checks_share_one_budget() {
    let schema = expression(3);
    let value = json(&nested(10, r#"{"lit":1}"#));
    let mut steps = u64::MAX;
    assert_eq!(schema.allows(&value, &mut steps), Some(true));
    steps = 2 * (u64::MAX - steps);
    let results: Vec<_> = (0..3).map(|_| schema.allows(&value, &mut steps)).collect();
    assert_eq!(results, [Some(true), Some(true), None]);
}

#[tokio::test]
async fn large_check_ends_at_its_deadline() {
    let numbers = |length: usize| format!("[{}]", vec!["1"; length].join(","));
    let large = async |schema: &Schema, value: &str| match schema.check("arguments", &json(value)) {
        SchemaCheck::Large(check) => check.await.await,
        SchemaCheck::Done(_) => panic!("the check is small"),
    };
    let list = schema(r#"{"items":{"anyOf":[{"type":"number"},{"type":"string"}]}}"#);
    assert_eq!(large(&list, &numbers(9_000)).await, Ok(()));
    let alternatives = vec![r##"{"items":{"$ref":"#/$defs/e"}}"##; 200].join(",");
    let endless =
        schema(&format!(r##"{{"$ref":"#/$defs/e","$defs":{{"e":{{"allOf":[{alternatives}]}}}}}}"##));
    let started = std::time::Instant::now();
    let refused = large(&endless, &format!("[{}]", vec!["[[]]"; 4_900].join(","))).await.unwrap_err();
    assert!(refused.starts_with("arguments: too complex to check"), "{refused}");
    assert!(started.elapsed().as_millis() < 2_000, "{:?}", started.elapsed());
}

#[tokio::test]
async fn large_checks_beyond_the_bound_are_refused() {
    static PLACES: Places = Places::new(128);
    let numbers = schema(r#"{"items":{"type":"number"}}"#);
    let tree = || Tree::from(vec![1; 9_000]);
    let check = || PLACES.check(numbers.clone(), "arguments", tree(), numbers.steps(&tree()));
    let (mut taken, mut refused) = (Vec::new(), Vec::new());
    for _ in 0..1_000 {
        match check() {
            SchemaCheck::Large(check) => taken.push(check),
            SchemaCheck::Done(result) => refused.push(result.unwrap_err()),
        }
    }
    assert_eq!(taken.len(), 128);
    assert!(refused[0].contains("try again"), "{}", refused[0]);
    for check in taken {
        assert_eq!(check.await.await, Ok(()));
    }
    assert!(matches!(check(), SchemaCheck::Large(_)));
    // A flood of arguments does not delay results.
    assert!(!std::ptr::eq(Places::of("arguments"), Places::of("result")));
}

#[tokio::test]
async fn regular_expression_that_backtracks_ends_at_the_deadline() {
    let pattern = r"^((a+)\\2?)+$";
    let texts = |length: usize| format!("[{}]", vec![format!(r#""{}!""#, "a".repeat(60)); length].join(","));
    let schema = schema(&format!(r#"{{"items":{{"not":{{"pattern":"{pattern}"}}}}}}"#));
    let started = std::time::Instant::now();
    match schema.check("arguments", &json(&texts(9_000))) {
        SchemaCheck::Large(check) => {
            let refused = check.await.await.unwrap_err();
            assert!(refused.starts_with("arguments: too complex to check"), "{refused}");
        }
        SchemaCheck::Done(result) => panic!("the check is small: {result:?}"),
    }
    assert_eq!(schema.allows(&json(&texts(9_000)), &mut { 100_000 }), None);
    assert!(started.elapsed().as_millis() < 2_000, "{:?}", started.elapsed());
    // What is common costs little.
    let password = self::schema(r#"{"properties":{"p":{"pattern":"^(?=.*[a-z])(?=.*[0-9]).{8,}$"}}}"#);
    assert_eq!(result(&password, r#"{"p":"abcdefg1"}"#), Ok(()));
    assert!(error(&password, r#"{"p":"abcdefgh"}"#).contains("does not match"));
    let names =
        self::schema(r#"{"patternProperties":{"^(?!_)":{"type":"number"}},"additionalProperties":false}"#);
    assert_eq!(result(&names, r#"{"a":1}"#), Ok(()));
    assert!(error(&names, r#"{"_a":1}"#).contains("_a"));
}

#[test]
fn regular_expressions_that_need_much_memory_are_refused() {
    let refused = Schema::new(json(r#"{"properties":{"a":{"pattern":"^([a-z]{1,200}x){1,250}$"}}}"#));
    assert!(matches!(refused, Err(InvalidSchema::Invalid(_))), "{refused:?}");
    schema(r#"{"pattern":"^[\\w.-]{1,256}@[\\p{L}0-9-]{1,63}[.][a-z]{2,63}$"}"#);
}

#[tokio::test]
async fn compilation_does_not_count_towards_the_time_of_a_check() {
    let slow = |number| format!(r#""p{number}":{{"pattern":"^{number}([a-z]{{1,100}}x){{1,30}}$"}}"#);
    let fast = |number| format!(r#""q{number}":{{"type":"string"}}"#);
    let properties = (0..40).map(slow).chain((0..200).map(fast)).collect::<Vec<_>>().join(",");
    let schema = schema(&format!(r##"{{"properties":{{"next":{{"$ref":"#"}},{properties}}}}}"##));
    let member = |kind: &str, number: u32| (format!("{kind}{number}"), format!("{number}ax"));
    let members = (0..40).map(|number| member("p", number)).chain((0..200).map(|number| member("q", number)));
    match Places::of("arguments").check(schema, "arguments", Tree::from_iter(members), u64::MAX) {
        SchemaCheck::Large(check) => assert_eq!(check.await.await, Ok(())),
        SchemaCheck::Done(result) => panic!("the check is small: {result:?}"),
    }
}

#[test]
fn names_of_properties_count_by_their_length() {
    let schema = schema(r##"{"properties":{"a":{"$ref":"#"}},"propertyNames":{"not":{"maxLength":0}}}"##);
    let value = parse(&json(&format!(r#"{{"{}":1}}"#, "x".repeat(1 << 20)))).unwrap();
    assert_eq!(Walk::new(schema.graph(), &mut Budget::steps(17_000)).allows(&value), Err(TooComplex));
    assert_eq!(Walk::new(schema.graph(), &mut Budget::steps(40_000)).allows(&value), Ok(true));
}

/// Each of its resources can be reached by many ways, which differ in what a dynamic reference means.
#[test]
fn dynamic_references_with_many_ways_are_refused() {
    let resource = |number: usize| {
        let next = (number + 1..16).map(|next| format!(r#""p{next}":{{"$ref":"r{next}"}}"#));
        let next = next.collect::<Vec<_>>().join(",");
        format!(r##""r{number}":{{"$id":"r{number}","properties":{{"d":{{"$dynamicRef":"#x"}},{next}}},"$defs":{{"x":{{"$dynamicAnchor":"x"}}}}}}"##)
            .replace(",}", "}")
    };
    let resources = (0..16).map(resource).collect::<Vec<_>>().join(",");
    let refused =
        Schema::new(json(&format!(r#"{{"$id":"http://a.example/","$ref":"r0","$defs":{{{resources}}}}}"#)));
    assert!(matches!(refused, Err(InvalidSchema::TooComplex)), "{refused:?}");
}

#[test]
fn value_that_cannot_be_represented_is_an_error() {
    let any = schema("{}");
    for text in ["1e400", r#"{"a":"\ud800"}"#] {
        assert!(error(&any, text).starts_with("arguments: it cannot be checked"));
        assert_eq!(any.allows(&json(text), &mut { INLINE_STEPS }), Some(false));
        assert!(Schema::new(json(&format!(r#"{{"const":{text}}}"#))).is_err());
    }
}

#[test]
fn reference_to_another_document_is_rejected() {
    assert!(Schema::new(json(r#"{"$ref":"http://127.0.0.1:9/schema.json"}"#)).is_err());
    assert!(Schema::new(json(r#"{"$ref":"file:///etc/passwd"}"#)).is_err());
}

#[test]
fn single_required_string_takes_a_plain_text() {
    let one = schema(r#"{"required":["q"],"properties":{"q":{"type":"string"},"n":{"type":"integer"}}}"#);
    assert_eq!(one.single_text(), Some("q"));
    let two = schema(r#"{"required":["q","r"],"properties":{"q":{"type":"string"},"r":{"type":"string"}}}"#);
    assert_eq!(two.single_text(), None);
}
