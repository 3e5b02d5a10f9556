//! Properties of any card.

use a2ad_protocol::{AgentCard, dialect::Dialect};
use proptest::prelude::*;

use crate::{
    codec::{Form, read},
    values,
};

proptest! {
    #[test]
    fn every_card_round_trips_in_the_older_forms(card in values::card()) {
        let shown = AgentCard {
            interfaces: card.interfaces.iter().filter(|interface| interface.version != "1.0").cloned().collect(),
            ..card.clone()
        };
        for form in Form::OLD {
            let text = form.encode(&card);
            prop_assert_eq!(form.decode(&text), Ok(shown.clone()), "{:?} {}", form, text);
            prop_assert_eq!(read(&text), Ok((Dialect::V03, shown.clone())), "{:?} {}", form, text);
        }
    }

    #[test]
    fn every_merged_card_can_be_read_in_both_generations(card in values::card()) {
        let text = Form::Merged.encode(&card);
        prop_assert_eq!(Form::V03.decode(&text), Form::V03.decode(&Form::V03.encode(&card)), "{}", text);
        prop_assert_eq!(read(&text), Ok((Dialect::V1, card)), "{}", text);
    }
}
