//! `google.protobuf.Struct` and `Value`: encodings with one fault each.

use super::schema::entry;
use super::values::INVALID_UTF8;
use super::wire::{FIXED32, bytes, double, group, int, key};

/// A description and the bytes.
pub(crate) type Named = (String, Vec<u8>);

/// Invalid values.
pub(crate) fn wrong() -> Vec<Named> {
    let mut wrong: Vec<Named> = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY]
        .map(|number| (format!("the number {number}"), double(2, number)))
        .into();
    wrong.extend(INVALID_UTF8.iter().take(4).map(|text| (format!("the text {text:02x?}"), bytes(3, text))));
    // Null, number, string, bool, struct, list: each with a wrong wire type.
    for number in 1..=6 {
        let short = [key(number, FIXED32), vec![0; 4]].concat();
        wrong.push((format!("kind {number} in four bytes"), short));
        wrong.push((format!("kind {number} as a group"), group(number, &[])));
        if !matches!(number, 1 | 4) {
            wrong.push((format!("kind {number} as a varint"), int(number, 1)));
        }
        if number != 2 {
            wrong.push((format!("kind {number} as a double"), double(number, 1.0)));
        }
        if matches!(number, 1 | 2 | 4) {
            wrong.push((format!("kind {number} with a length"), bytes(number, "x")));
        }
    }
    for (what, inside) in broken() {
        wrong.push((format!("an object of {what}"), bytes(5, &inside)));
        wrong.push((format!("a list of {what}"), bytes(6, &inside)));
    }
    wrong.push(("a name that is not UTF-8".to_owned(), bytes(5, entry([0xff], double(2, 1.0)))));
    wrong.push(("a name that is a number".to_owned(), bytes(5, bytes(1, int(1, 5)))));
    for depth in [31, 65, 100, 2_000] {
        wrong.push((format!("{depth} lists deep"), nested(depth, |value| bytes(6, bytes(1, value)))));
        wrong.push((format!("{depth} objects deep"), nested(depth, |value| bytes(5, entry("a", value)))));
    }
    let null = || bytes(1, int(1, 0));
    wrong.push(("10001 elements".to_owned(), bytes(6, null().repeat(10_001))));
    wrong.push(("20000 empty elements".to_owned(), bytes(6, bytes(1, "").repeat(20_000))));
    let members: Vec<u8> = (0..10_001).flat_map(|at| entry(format!("k{at}"), int(1, 0))).collect();
    wrong.push(("10001 members".to_owned(), bytes(5, members)));
    wrong
}

/// Invalid objects.
pub(crate) fn wrong_objects() -> Vec<Named> {
    let mut wrong: Vec<Named> =
        self::wrong().into_iter().map(|(what, value)| (what, entry("k", value))).collect();
    wrong.extend(broken().into_iter().map(|(what, raw)| (format!("members of {what}"), raw)));
    wrong.push(("a member whose name is not UTF-8".to_owned(), entry([0xff], double(2, 1.0))));
    wrong.push(("a member whose name is a number".to_owned(), bytes(1, int(1, 5))));
    wrong
        .push(("a member whose value is a number".to_owned(), bytes(1, [bytes(1, "k"), int(2, 5)].concat())));
    wrong.push(("a member that ends early".to_owned(), bytes(1, [0x0a, 5, b'k'])));
    wrong
}

/// Invalid contents of an object or a list.
fn broken() -> Vec<Named> {
    let broken = [
        ("a number", int(1, 1)),
        ("a double", double(1, 1.0)),
        ("four bytes", [key(1, FIXED32), vec![0; 4]].concat()),
        ("a group", group(1, &[])),
        ("a key alone", vec![0x0a]),
        ("a length beyond the end", vec![0x0a, 5, 0]),
        ("the field 0", vec![0, 0]),
        ("an end of group without a start", vec![0x0c]),
        ("a group that ends as another", vec![0x9b, 0x06, 0xa4, 0x06]),
        ("a truncated varint", vec![0x98, 0x06, 0xff]),
    ];
    broken.map(|(what, raw)| (what.to_owned(), raw)).into()
}

fn nested(depth: usize, around: impl Fn(Vec<u8>) -> Vec<u8>) -> Vec<u8> {
    (0..depth).fold(double(2, 1.0), |value, _| around(value))
}
