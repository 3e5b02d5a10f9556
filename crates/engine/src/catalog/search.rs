//! Full-text search over skills: a BM25 index in memory.
//!
//! A document is what is known of one skill, in fields of different weight. The index never changes; whoever has another
//! set of skills builds another index. Which skills a caller may see is decided before: a skill that does not exist for a
//! caller must not be in the index that is searched for it, because it would change the scores of the others.

mod tokens;

use std::{borrow::Cow, collections::HashMap};

use protocol::{
    Json,
    json::read::{Node, Path},
    model::AgentSkill,
};

/// How much of a query is read: a message may have megabytes.
const MAX_QUERY_BYTES: usize = 4 << 10;
/// How many different terms of a query are looked up.
const MAX_QUERY_TERMS: usize = 64;

/// How fast repetitions of a term stop to count, and how much long documents are marked down: the usual values of BM25.
const SATURATION: f32 = 1.2;
const LENGTH: f32 = 0.75;

/// A part of a document.
#[derive(Clone, Copy, Debug)]
pub enum Field {
    /// Ids and names.
    Name,
    /// Tags and routing keywords.
    Tag,
    /// Example messages.
    Example,
    /// Names of arguments.
    Property,
    /// Prose.
    Description,
}

impl Field {
    fn weight(self) -> f32 {
        match self {
            Self::Name => 3.0,
            Self::Tag => 2.0,
            Self::Example => 1.5,
            Self::Description => 1.0,
            Self::Property => 0.5,
        }
    }

    /// Whether numbers in it are part of a name. In prose they are values.
    fn has_numbers(self) -> bool {
        match self {
            Self::Name | Self::Tag | Self::Example => true,
            Self::Property | Self::Description => false,
        }
    }
}

/// What is indexed of one skill or agent.
#[derive(Clone, Debug)]
pub struct Document<'a> {
    id: &'a str,
    texts: Vec<(Field, Cow<'a, str>)>,
}

impl<'a> Document<'a> {
    /// A document with this id, which is a name too.
    pub fn new(id: &'a str) -> Self {
        Self { id, texts: Vec::new() }.with(Field::Name, id)
    }

    /// A skill as the card shows it.
    pub fn of_skill(skill: &'a AgentSkill) -> Self {
        let mut document = Self::new(&skill.id);
        // Tools are called by their id, which would count twice.
        if skill.name != skill.id {
            document = document.with(Field::Name, &skill.name);
        }
        document = document.with(Field::Description, &skill.description);
        document = skill.tags.iter().fold(document, |document, tag| document.with(Field::Tag, tag));
        skill.examples.iter().fold(document, |document, example| document.with(Field::Example, example))
    }

    /// Adds a text.
    #[must_use]
    pub fn with(mut self, field: Field, text: impl Into<Cow<'a, str>>) -> Self {
        self.texts.push((field, text.into()));
        self
    }

    /// Adds the names of the properties at the top of a JSON Schema.
    #[must_use]
    pub fn with_schema(self, schema: &Json) -> Self {
        property_names(schema).into_iter().fold(self, |document, name| document.with(Field::Property, name))
    }
}

fn property_names(schema: &Json) -> Vec<String> {
    let names = Node::new(schema.as_raw(), &Path::Root).object().and_then(|schema| {
        schema.maybe("properties", |properties| properties.object()?.entries(|name, _| Ok(name.to_owned())))
    });
    names.ok().flatten().unwrap_or_default()
}

/// The index. Documents are known by their position in the list it was built from.
#[derive(Debug, Default)]
pub struct Index {
    /// The documents with each id, in lower case.
    ids: HashMap<String, Vec<u32>>,
    /// The number of each term.
    terms: HashMap<String, u32>,
    /// By the number of the term, ordered by document.
    postings: Vec<Vec<Posting>>,
    documents: usize,
}

/// A term in a document.
#[derive(Clone, Copy, Debug)]
struct Posting {
    document: u32,
    /// Its frequency over all fields; after the build what it adds to the score, as a share of the term's rarity.
    weight: f32,
}

/// What matches a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Matches {
    /// Best first; equally good ones in their own order.
    pub hits: Vec<Hit>,
    /// How many documents have every term of the query.
    pub complete: usize,
}

/// A document that matches a query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// Its position in the list the index was built from.
    pub document: usize,
    /// The sum over the query's terms, each between 0 and 1: a term counts more the rarer it is in all documents and the
    /// more frequent in this one. Comparable between indexes of different size.
    pub score: f32,
    /// How many different terms of the query it has.
    pub matched: usize,
    /// How many it does not have.
    pub unmatched: usize,
}

impl Index {
    /// Indexes documents.
    pub fn new<'a>(documents: impl IntoIterator<Item = Document<'a>>) -> Self {
        let mut index = Self::default();
        let mut lengths = Vec::new();
        for (number, document) in documents.into_iter().enumerate() {
            lengths.push(index.add(number as u32, &document));
        }
        index.documents = lengths.len();
        let average = (lengths.iter().sum::<f32>() / lengths.len().max(1) as f32).max(f32::MIN_POSITIVE);
        for posting in index.postings.iter_mut().flatten() {
            let length = lengths[posting.document as usize] / average;
            let scale = SATURATION * (1.0 - LENGTH + LENGTH * length);
            posting.weight /= posting.weight + scale;
        }
        index
    }

    /// Returns the length of the document, weighted.
    fn add(&mut self, document: u32, content: &Document<'_>) -> f32 {
        let mut length = 0.0;
        self.ids.entry(content.id.to_lowercase()).or_default().push(document);
        for (field, text) in &content.texts {
            tokens::for_each_term(text, |term| {
                length += field.weight();
                self.add_term(document, term, field.weight());
            });
            if field.has_numbers() {
                // They change nothing for messages without them, so they do not count as length.
                tokens::for_each_number(text, |number| self.add_term(document, number, field.weight()));
            }
        }
        length
    }

    fn add_term(&mut self, document: u32, term: &str, weight: f32) {
        let number = match self.terms.get(term) {
            Some(number) => *number as usize,
            None => {
                self.terms.insert(term.to_owned(), self.postings.len() as u32);
                self.postings.push(Vec::new());
                self.postings.len() - 1
            }
        };
        let postings = &mut self.postings[number];
        match postings.last_mut() {
            Some(last) if last.document == document => last.weight += weight,
            _ => postings.push(Posting { document, weight }),
        }
    }

    /// The best documents for a query; before all others those whose id is in it.
    pub fn search(&self, query: &str, max: usize) -> Matches {
        let mut hits = self.scores(query);
        let complete = hits.iter().filter(|hit| hit.unmatched == 0).count();
        let named = self.named(query);
        for document in &named {
            // Its id may consist of words that are no terms.
            if !hits.iter().any(|hit| hit.document == *document) {
                hits.push(Hit { document: *document, score: 0.0, matched: 0, unmatched: 0 });
            }
        }
        let is_named = |hit: &Hit| named.contains(&hit.document);
        let by_score = |one: &Hit, other: &Hit| {
            let by_id = is_named(other).cmp(&is_named(one));
            by_id.then(other.score.total_cmp(&one.score)).then(one.document.cmp(&other.document))
        };
        if max < hits.len() {
            hits.select_nth_unstable_by(max, by_score);
            hits.truncate(max);
        }
        hits.sort_unstable_by(by_score);
        Matches { hits, complete }
    }

    /// Every document that has a term of the query.
    fn scores(&self, query: &str) -> Vec<Hit> {
        let query = beginning(query);
        let mut terms = tokens::distinct_terms(query, MAX_QUERY_TERMS);
        tokens::for_each_whole_number(query, |number| {
            // Any other number is a value, not a topic.
            let is_known = self.terms.contains_key(number) && terms.len() < MAX_QUERY_TERMS;
            if is_known && !terms.iter().any(|term| term == number) {
                terms.push(number.to_owned());
            }
        });
        let mut sums = vec![(0.0, 0); self.documents];
        for number in terms.iter().filter_map(|term| self.terms.get(term)) {
            let postings = &self.postings[*number as usize];
            let rarity = self.rarity(postings.len());
            for posting in postings {
                let (score, matched) = &mut sums[posting.document as usize];
                *score += rarity * posting.weight;
                *matched += 1;
            }
        }
        let found = sums.into_iter().enumerate().filter(|(_, (_, matched))| *matched > 0);
        let hit =
            |(document, (score, matched))| Hit { document, score, matched, unmatched: terms.len() - matched };
        found.map(hit).collect()
    }

    /// The documents whose ids are in a query: the whole query, or a word that is clearly an id, which has other characters
    /// than letters.
    pub fn named(&self, query: &str) -> Vec<usize> {
        let mut named = Vec::new();
        let whole = query.trim();
        let is_id = |word: &&str| {
            word.contains(char::is_alphabetic) && word.contains(|sign: char| !sign.is_alphabetic())
        };
        let words = beginning(query).split_whitespace().map(|word| word.trim_matches(is_quote)).filter(is_id);
        for word in std::iter::once(beginning(whole)).chain(words.take(MAX_QUERY_TERMS)) {
            for document in self.ids.get(&word.to_lowercase()).into_iter().flatten() {
                if !named.contains(&(*document as usize)) {
                    named.push(*document as usize);
                }
            }
        }
        named
    }

    /// How rare a term is that occurs in so many documents: 1 in one of them, near 0 in all.
    fn rarity(&self, occurrences: usize) -> f32 {
        let of =
            |occurrences: f32| ((self.documents as f32 - occurrences + 0.5) / (occurrences + 0.5)).ln_1p();
        of(occurrences as f32) / of(1.0)
    }
}

/// What may be around an id in a sentence.
fn is_quote(sign: char) -> bool {
    ".,;:!?\"'`()[]{}<>".contains(sign)
}

/// The beginning of a query, up to [`MAX_QUERY_BYTES`].
fn beginning(query: &str) -> &str {
    &query[..query.floor_char_boundary(MAX_QUERY_BYTES)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(id: &str, description: &str) -> AgentSkill {
        AgentSkill {
            id: id.into(),
            name: id.into(),
            description: description.into(),
            tags: vec!["tag-of-".to_owned() + id],
            examples: vec!["such as ".to_owned() + id],
            input_modes: Vec::new(),
            output_modes: Vec::new(),
            security_requirements: Vec::new(),
        }
    }

    fn found(index: &Index, query: &str) -> Vec<usize> {
        index.search(query, 10).hits.into_iter().map(|hit| hit.document).collect()
    }

    #[test]
    fn every_field_is_searched_and_names_count_most() {
        let schema = Json::parse(r#"{"properties":{"zipCode":{"type":"string"}}}"#).unwrap();
        let forecast = skill("getForecast", "The weather of the next days");
        let post = skill("post_office", "Where the next forecast of parcels is shown");
        let documents = [Document::of_skill(&post), Document::of_skill(&forecast).with_schema(&schema)];
        let index = Index::new(documents.map(|document| document.with(Field::Tag, "everywhere")));
        for query in ["weather", "zip", "code", "zip_code"] {
            assert_eq!(found(&index, query), [1], "{query}");
        }
        assert_eq!(found(&index, "parcel"), [0]);
        assert_eq!(found(&index, "forecasts"), [1, 0]);
        assert!(found(&index, "the of and 12").is_empty());
        assert_eq!(found(&index, "everywhere").len(), 2);
        let found = index.search("weather in Oslo", 1);
        assert_eq!((found.hits[0].matched, found.hits[0].unmatched, found.complete), (1, 1, 0));
        assert_eq!(index.search("forecast", 1).complete, 2);
    }

    #[test]
    fn numbers_and_ids_are_found_and_an_exact_id_is_first() {
        let ids = ["tool_14997", "tool14998", "tools", "get_tools"];
        let skills =
            ids.map(|id| AgentSkill { tags: Vec::new(), examples: Vec::new(), ..skill(id, "Costs 14999") });
        let index = Index::new(skills.iter().map(Document::of_skill));
        assert_eq!(found(&index, "14997"), [0]);
        assert_eq!(found(&index, "the tool 14998, please")[0], 1);
        assert_eq!(found(&index, "tool14998"), [1]);
        assert!(found(&index, "14999").is_empty(), "numbers in prose are values");
        assert_eq!(found(&index, "TOOLS")[0], 2);
        assert_eq!(found(&index, "tools: run `get_tools`!")[0], 3);
        assert_eq!(index.search("tool 3", 1).hits[0].unmatched, 0, "an unknown number is a value");
    }

    #[test]
    fn long_query_is_cut() {
        let end = skill("end", "");
        let index = Index::new([Document::of_skill(&end)]);
        let query = "ü".repeat(MAX_QUERY_BYTES) + " end";
        assert_eq!((found(&index, &query), found(&index, "end")), (vec![], vec![0]));
        assert!(found(&Index::default(), "end").is_empty());
    }
}
