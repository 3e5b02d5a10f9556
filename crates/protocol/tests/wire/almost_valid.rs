//! Documents made of the protocol's own names and values in any place, so that most of it is almost valid.

use proptest::{
    collection::vec,
    prelude::{BoxedStrategy, Strategy, prop_oneof},
    sample::select,
};

use crate::values::{json_text, quoted};

pub(crate) fn almost_valid(
    names: &'static [&'static str],
    values: &'static [&'static str],
) -> BoxedStrategy<String> {
    let leaf = prop_oneof![4 => select(values).prop_map(str::to_owned), 1 => json_text()];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        let member =
            (select(names), inner.clone()).prop_map(|(name, value)| format!("{}:{value}", quoted(name)));
        prop_oneof![
            5 => vec(member, 0..7).prop_map(|members| format!("{{{}}}", members.join(","))),
            1 => vec(inner, 0..3).prop_map(|items| format!("[{}]", items.join(","))),
        ]
    })
    .boxed()
}
