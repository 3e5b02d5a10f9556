//! Selects a skill by the text of a message: an example of its skill, its id, a keyword, or a search that is sure.

use std::collections::HashMap;

use crate::{
    catalog::search::{Document, Field, Hit, Index, Matches},
    skill::Skill,
};

// What the best match of a search must have to be chosen. A wrong choice runs a skill that nobody asked for, so these
// values were measured: of the messages in `tests/agents/routing` none is given to a wrong skill.

/// The score. A rare word in the name alone has about 0.6.
const MIN_SCORE: f32 = 0.7;
/// The score as a multiple of that of the second best, unless it is the only one that has all words.
const MIN_LEAD: f32 = 1.25;
/// Words that match, unless all do: one word of several may have another meaning here.
const MIN_MATCHED: usize = 2;

/// In which part of a text keywords are found, in bytes: a message may have megabytes.
const MAX_TEXT: usize = 4 << 10;

/// What the texts of messages are compared with; positions are those of the list it was built from.
pub(super) struct TextMatch {
    examples: HashMap<String, usize>,
    /// `None` if several skills have the keyword.
    keywords: HashMap<String, Option<usize>>,
    index: Index,
}

impl TextMatch {
    pub(super) fn new<'a>(skills: impl Iterator<Item = &'a Skill> + Clone) -> Self {
        let mut examples = HashMap::new();
        let mut keywords: HashMap<String, Option<usize>> = HashMap::new();
        for (position, skill) in skills.clone().enumerate() {
            for example in &skill.card.examples {
                examples.entry(example.clone()).or_insert(position);
            }
            for keyword in &skill.keywords {
                let owner = keywords.entry(keyword.to_lowercase()).or_insert(Some(position));
                *owner = owner.filter(|owner| *owner == position);
            }
        }
        Self { examples, keywords, index: Index::new(skills.map(document)) }
    }

    /// The skill that a text chooses, if it is clear.
    pub(super) fn choose(&self, text: &str) -> Option<usize> {
        let example = self.examples.get(text.trim()).copied();
        example
            .or_else(|| self.by_id(text))
            .or_else(|| self.by_keyword(text))
            .or_else(|| self.by_search(text))
    }

    /// The best skills for a text, best first.
    pub(super) fn best(&self, text: &str, max: usize) -> Vec<usize> {
        self.index.search(text, max).hits.into_iter().map(|hit| hit.document).collect()
    }

    /// The one skill whose id is in the text.
    fn by_id(&self, text: &str) -> Option<usize> {
        match self.index.named(text).as_slice() {
            [only] => Some(*only),
            _ => None,
        }
    }

    /// The skill of the first word, if it is a keyword of one skill only; else the one skill that all keywords in the text
    /// belong to. Keywords of several skills are not clear: "do not delete anything, list the invoices".
    fn by_keyword(&self, text: &str) -> Option<usize> {
        if self.keywords.is_empty() {
            return None;
        }
        let text = &text[..text.floor_char_boundary(MAX_TEXT)];
        let words = text.split(|character: char| !(character.is_alphanumeric() || "-_".contains(character)));
        let mut owners = words
            .filter(|word| !word.is_empty())
            .map(|word| self.keywords.get(&word.to_lowercase()).copied().flatten());
        let first = owners.next().flatten();
        first.or_else(|| {
            let mut owners = owners.flatten();
            let only = owners.next()?;
            owners.all(|owner| owner == only).then_some(only)
        })
    }

    fn by_search(&self, text: &str) -> Option<usize> {
        let found = self.index.search(text, 2);
        found.hits.first().filter(|best| is_sure(best, &found)).map(|best| best.document)
    }
}

fn is_sure(best: &Hit, found: &Matches) -> bool {
    let has_all = best.unmatched == 0;
    let is_only = has_all && found.complete == 1 && best.matched >= MIN_MATCHED;
    let leads = found.hits.get(1).is_none_or(|second| best.score >= second.score * MIN_LEAD);
    best.score >= MIN_SCORE && (is_only || leads && (has_all || best.matched >= MIN_MATCHED))
}

fn document(skill: &Skill) -> Document<'_> {
    let document = Document::of_skill(&skill.card);
    let document = skill.keywords.iter().fold(document, |document, word| document.with(Field::Tag, word));
    match skill.input_schema() {
        Some(schema) => document.with_schema(schema),
        None => document,
    }
}
