//! Random recursive schemas and values: the walk and the library agree.

use std::fmt::Write as _;

use serde_json::{Map, json as tree};

use super::*;

const SCHEMAS: u64 = 200;
const VALUES: u64 = 200;
/// The schemas that refer to each other.
const DEFINITIONS: u64 = 4;

#[derive(Clone, Copy, PartialEq)]
enum Dialect {
    Draft7,
    Draft201909,
    Draft202012,
}

struct Random(u64);

impl Random {
    /// A number below a bound.
    fn below(&mut self, bound: u64) -> u64 {
        // Multiplier and increment of Knuth's MMIX.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn name(&mut self) -> String {
        ["a", "b", "c"][usize::try_from(self.below(3)).unwrap()].to_owned()
    }

    fn value(&mut self, depth: u64) -> Tree {
        match self.below(if depth == 0 { 4 } else { 9 }) {
            0 => Tree::Null,
            1 => tree!(self.below(4)),
            2 => tree!(self.name()),
            3 => tree!(self.below(2) == 0),
            4 | 5 => (0..self.below(4)).map(|_| self.value(depth - 1)).collect(),
            _ => {
                (0..self.below(4)).map(|_| (self.name(), self.value(depth - 1))).collect::<Map<_, _>>().into()
            }
        }
    }
}

struct Generator {
    random: Random,
    dialect: Dialect,
}

impl Generator {
    fn schema(&mut self) -> String {
        let definitions: Vec<String> =
            (0..DEFINITIONS).map(|number| format!(r#""d{number}":{}"#, self.subschema(3, number))).collect();
        let uri = match self.dialect {
            Dialect::Draft7 => "http://json-schema.org/draft-07/schema#",
            Dialect::Draft201909 => "https://json-schema.org/draft/2019-09/schema",
            Dialect::Draft202012 => "https://json-schema.org/draft/2020-12/schema",
        };
        let definitions = definitions.join(",");
        format!(r##"{{"$schema":"{uri}","allOf":[{{"$ref":"#/$defs/d0"}}],"$defs":{{{definitions}}}}}"##)
    }

    /// On the same value, a definition refers to later ones only: otherwise it would mean nothing.
    fn subschema(&mut self, depth: u64, own: u64) -> String {
        if depth == 0 {
            return match self.random.below(4) {
                0 if own + 1 < DEFINITIONS => self.reference(own + 1),
                1 => self.random.below(2).eq(&0).to_string(),
                _ => format!("{{{}}}", self.assertion()),
            };
        }
        let mut keywords = Vec::new();
        for _ in 0..=self.random.below(3) {
            let keyword = self.keyword(depth - 1, own);
            let name = |text: &str| text.split(':').next().map(str::to_owned);
            if keywords.iter().all(|other: &String| name(other) != name(&keyword)) {
                keywords.push(keyword);
            }
        }
        format!("{{{}}}", keywords.join(","))
    }

    /// Of a part of the value: any definition.
    fn part(&mut self, depth: u64) -> String {
        if self.random.below(2) == 0 { self.reference(0) } else { self.subschema(depth, 0) }
    }

    fn reference(&mut self, first: u64) -> String {
        let number = first + self.random.below(DEFINITIONS - first);
        format!(r##"{{"$ref":"#/$defs/d{number}"}}"##)
    }

    fn assertion(&mut self) -> String {
        match self.random.below(7) {
            0 => r#""type":"object""#.to_owned(),
            1 => r#""type":["array","integer"]"#.to_owned(),
            2 => format!(r#""required":["{}"]"#, self.random.name()),
            3 => format!(r#""minimum":{}"#, self.random.below(4)),
            4 => format!(r#""enum":[{},"a",null]"#, self.random.below(4)),
            5 => r#""uniqueItems":true"#.to_owned(),
            _ => format!(r#""maxProperties":{}"#, self.random.below(4)),
        }
    }

    fn keyword(&mut self, depth: u64, own: u64) -> String {
        let modern = self.dialect != Dialect::Draft7;
        let (a, b) = (self.random.name(), self.random.name());
        match self.random.below(20) {
            0 | 1 => format!(r#""properties":{{"{a}":{}}}"#, self.part(depth)),
            2 => format!(r#""patternProperties":{{"^[{a}{b}]$":{}}}"#, self.part(depth)),
            3 => r#""additionalProperties":false"#.to_owned(),
            4 => format!(r#""additionalProperties":{}"#, self.part(depth)),
            5 => format!(r#""items":{}"#, self.part(depth)),
            6 if self.dialect == Dialect::Draft202012 => {
                format!(r#""prefixItems":[{},{}]"#, self.part(depth), self.part(depth))
            }
            6 => format!(r#""items":[{}],"additionalItems":{}"#, self.part(depth), self.part(depth)),
            7 => format!(r#""contains":{}"#, self.part(depth)),
            8 if modern => format!(
                r#""contains":{},"minContains":{},"maxContains":2"#,
                self.part(depth),
                self.random.below(2)
            ),
            9 => format!(r#""allOf":{}"#, self.list(depth, own)),
            10 => format!(r#""anyOf":{}"#, self.list(depth, own)),
            11 | 12 => format!(r#""oneOf":{}"#, self.list(depth, own)),
            13 => format!(r#""not":{}"#, self.subschema(depth, own)),
            14 => {
                let mut text = format!(r#""if":{}"#, self.subschema(depth, own));
                for keyword in ["then", "else"] {
                    let _ = write!(text, r#","{keyword}":{}"#, self.subschema(depth, own));
                }
                text
            }
            15 if modern => format!(r#""dependentSchemas":{{"{a}":{}}}"#, self.subschema(depth, own)),
            15 => format!(r#""dependencies":{{"{a}":["{b}"],"c":{}}}"#, self.subschema(depth, own)),
            16 if modern => r#""unevaluatedProperties":false"#.to_owned(),
            17 if modern => format!(r#""unevaluatedItems":{}"#, self.part(depth)),
            18 => format!(r#""propertyNames":{{"enum":["{a}","{b}"]}}"#),
            _ => self.assertion(),
        }
    }

    fn list(&mut self, depth: u64, own: u64) -> String {
        let schemas: Vec<String> = (0..2).map(|_| self.subschema(depth, own)).collect();
        format!("[{}]", schemas.join(","))
    }
}

#[test]
fn walk_agrees_with_the_library() {
    let (mut checked, mut allowed) = (0, 0);
    let mut seed = 0;
    while checked < SCHEMAS {
        seed += 1;
        let dialect =
            [Dialect::Draft202012, Dialect::Draft201909, Dialect::Draft7][usize::try_from(seed % 3).unwrap()];
        let text = Generator { random: Random(seed), dialect }.schema();
        let schema = match Schema::new(json(&text)) {
            Ok(schema) => schema,
            Err(InvalidSchema::TooComplex) => continue,
            Err(error) => panic!("{error}: {text}"),
        };
        checked += 1;
        let mut random = Random(seed);
        for _ in 0..VALUES {
            let value = random.value(4);
            let expected = schema.validator().is_valid(&value);
            let mut budget = Budget::steps(u64::MAX);
            let mut walk = Walk::new(schema.graph(), &mut budget);
            assert_eq!(walk.allows(&value), Ok(expected), "{value} for {text}");
            let error = Walk::new(schema.graph(), &mut budget).error("value", &value).unwrap();
            assert_eq!(error.is_none(), expected, "{error:?}: {value} for {text}");
            allowed += u64::from(expected);
        }
    }
    assert!((SCHEMAS * 20..SCHEMAS * 180).contains(&allowed), "{allowed} values are allowed");
}
