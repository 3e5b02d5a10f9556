//! Texts become terms: words in lower case and singular, without those that name no topic.

use std::collections::HashSet;

/// Calls `each` with the terms of a text, in order and with repetitions. Names in camel case, snake case and kebab case
/// become their words. Numbers are left out: they are terms of their own ([`for_each_number`]).
pub(super) fn for_each_term(text: &str, mut each: impl FnMut(&str)) {
    // One buffer for all terms: there are millions in the descriptions of a large agent.
    let mut term = String::new();
    for word in text.split(|character: char| !character.is_alphanumeric()).flat_map(camel_case_words) {
        term.clear();
        match word.is_ascii() {
            true => term.extend(word.chars().map(|character| character.to_ascii_lowercase())),
            false => term.push_str(&word.to_lowercase()),
        }
        if is_topic(&term) {
            make_singular(&mut term);
            each(&term);
        }
    }
}

/// Calls `each` with the numbers in a text, those within words too: `tool14998` has 14998.
pub(super) fn for_each_number(text: &str, each: impl FnMut(&str)) {
    text.split(|character: char| !character.is_numeric()).filter(|run| !run.is_empty()).for_each(each);
}

/// The same with numbers that are words of their own.
pub(super) fn for_each_whole_number(text: &str, each: impl FnMut(&str)) {
    let words = text.split(|character: char| !character.is_alphanumeric());
    words.filter(|word| !word.is_empty() && word.chars().all(char::is_numeric)).for_each(each);
}

/// The distinct terms of a query, in order, at most `max`.
pub(super) fn distinct_terms(text: &str, max: usize) -> Vec<String> {
    let (mut seen, mut terms) = (HashSet::new(), Vec::new());
    for_each_term(text, |term| {
        if terms.len() < max && seen.insert(term.to_owned()) {
            terms.push(term.to_owned());
        }
    });
    terms
}

/// `readTextFile` is three words, and so is `getHTTPStatus`.
fn camel_case_words(run: &str) -> impl Iterator<Item = &str> {
    let mut rest = run;
    std::iter::from_fn(move || {
        let (word, after) = rest.split_at(end_of_word(rest));
        rest = after;
        (!word.is_empty()).then_some(word)
    })
}

/// A word ends before a capital letter that follows a small one, and before the last of several capital letters if a
/// small one follows.
fn end_of_word(run: &str) -> usize {
    let mut characters = run.char_indices().peekable();
    let mut before: Option<char> = None;
    while let Some((at, character)) = characters.next() {
        let next_is_small = characters.peek().is_some_and(|(_, next)| next.is_lowercase());
        let begins_word = match before {
            Some(before) if character.is_uppercase() => {
                before.is_lowercase() || before.is_uppercase() && next_is_small
            }
            _ => false,
        };
        if begins_word {
            return at;
        }
        before = Some(character);
    }
    run.len()
}

/// Removes the ending of English plurals, which is also that of verbs in descriptions: "lists branches" has the terms of
/// "list branch".
fn make_singular(word: &mut String) {
    let keeps_s = ["ss", "us", "is"].iter().any(|ending| word.ends_with(ending));
    if word.len() < 4 || !word.ends_with('s') || keeps_s {
        return;
    }
    if word.ends_with("ies") && word.len() > 4 {
        word.truncate(word.len() - 3);
        word.push('y');
        return;
    }
    let takes_es = ["ches", "shes", "sses", "xes"].iter().any(|ending| word.ends_with(ending));
    word.truncate(word.len() - if takes_es { 2 } else { 1 });
}

fn is_topic(word: &str) -> bool {
    let is_letter = word.len() == 1 && word.is_ascii();
    let is_number = word.chars().all(char::is_numeric);
    !(is_letter || is_number || FUNCTION_WORDS.binary_search(&word).is_ok())
}

/// English words that occur in descriptions and messages of every kind. In an agent with few skills such a word is as
/// rare as a topic, and would decide. In alphabetical order.
const FUNCTION_WORDS: &[&str] = &[
    "about", "after", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been", "before",
    "being", "but", "by", "can", "could", "did", "do", "does", "doing", "for", "from", "had", "has", "have",
    "he", "help", "her", "here", "hers", "hi", "him", "his", "how", "if", "in", "into", "is", "it", "its",
    "just", "let", "may", "me", "might", "mine", "more", "most", "must", "my", "need", "no", "nor", "not",
    "now", "of", "off", "ok", "on", "once", "only", "or", "other", "our", "ours", "out", "over", "own",
    "please", "shall", "she", "should", "so", "some", "such", "than", "thank", "thanks", "that", "the",
    "their", "theirs", "them", "then", "there", "these", "they", "this", "those", "through", "to", "too",
    "under", "until", "up", "us", "very", "want", "was", "we", "were", "what", "when", "where", "which",
    "while", "who", "whom", "whose", "why", "will", "with", "would", "yes", "you", "your", "yours",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> String {
        let mut terms = Vec::new();
        for_each_term(text, |term| terms.push(term.to_owned()));
        terms.join(" ")
    }

    #[test]
    fn names_become_words() {
        assert_eq!(
            terms("readTextFile read_text_file read-text-file"),
            "read text file read text file read text file"
        );
        assert_eq!(
            terms("getHTTPStatus XMLParser repos/list-branches"),
            "get http status xml parser repo list branch"
        );
        assert_eq!(terms("Größe der Dateien, ÉTÉ; 12 v2 sha256"), "größe der dateien été v2 sha256");
    }

    #[test]
    fn plurals_and_verbs_have_the_term_of_the_singular() {
        assert_eq!(terms("branches directories files shows fixes"), "branch directory file show fix");
        assert_eq!(terms("status access ties gas analysis"), "status access tie gas analysis");
    }

    #[test]
    fn function_words_are_no_terms() {
        assert!(FUNCTION_WORDS.is_sorted());
        assert_eq!(terms("What is THE status of these, please? I'd say so"), "status say");
    }
}
