//! The card documents of one agent, or the lists of a tenant's agents, so that each is encoded and hashed once.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::memory::SharedBytes;

/// The most documents kept for one agent. Clients choose the host in the URLs of a card, so without a limit they could
/// fill the memory.
const MAX_DOCUMENTS: usize = 64;
/// The most bytes of documents kept for one agent, for the same reason: the card of 15,000 skills has megabytes.
const MAX_BYTES: usize = 32 << 20;

/// What distinguishes the card documents of one agent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CardKey {
    /// The form of the document and the server's options that affect it.
    pub form: u8,
    /// The URL of the agent as the client sees it; all other URLs in the card follow from it.
    pub url: String,
}

/// An encoded card.
#[derive(Debug)]
pub struct CardDocument {
    /// The JSON document.
    pub body: SharedBytes,
    /// Its entity tag, with quotes.
    pub etag: String,
}

/// The encoded cards of an agent. A clone is empty, because what it belongs to may have other settings.
#[derive(Debug, Default)]
pub struct CardCache(Mutex<Documents>);

/// The oldest first. They are few enough to be searched one by one.
type Documents = VecDeque<(CardKey, Arc<CardDocument>)>;

impl CardCache {
    /// The document of this key, built if it is not kept. An error is returned and not kept.
    pub fn get_or_build<E>(
        &self,
        key: CardKey,
        build: impl FnOnce() -> Result<CardDocument, E>,
    ) -> Result<Arc<CardDocument>, E> {
        // Locked while it is built, so that no two requests build the same document. That takes microseconds, and
        // milliseconds with thousands of skills.
        let mut documents = self.documents();
        if let Some((_, document)) = documents.iter().find(|(kept, _)| *kept == key) {
            return Ok(Arc::clone(document));
        }
        let document = Arc::new(build()?);
        let mut bytes: usize = documents.iter().map(|(_, document)| document.body.bytes().len()).sum();
        while documents.len() >= MAX_DOCUMENTS || bytes + document.body.bytes().len() > MAX_BYTES {
            let Some((_, oldest)) = documents.pop_front() else { break };
            bytes -= oldest.body.bytes().len();
        }
        documents.push_back((key, Arc::clone(&document)));
        Ok(document)
    }

    /// How many documents are kept.
    pub fn len(&self) -> usize {
        self.documents().len()
    }

    /// Whether no document is kept.
    pub fn is_empty(&self) -> bool {
        self.documents().is_empty()
    }

    fn documents(&self) -> MutexGuard<'_, Documents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clone for CardCache {
    fn clone(&self) -> Self {
        Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(form: u8, url: &str) -> CardKey {
        CardKey { form, url: url.into() }
    }

    fn document(text: &str) -> Result<CardDocument, &'static str> {
        Ok(CardDocument { body: SharedBytes::new(text.to_owned()), etag: format!("\"{text}\"") })
    }

    #[test]
    fn a_document_is_built_once_per_form_and_url() {
        let cache = CardCache::default();
        let mut built = 0;
        let mut get = |form, url| {
            let build = || {
                built += 1;
                document(url)
            };
            cache.get_or_build(key(form, url), build).unwrap()
        };
        let first = get(0, "http://a/");
        assert!(Arc::ptr_eq(&first, &get(0, "http://a/")));
        assert!(!Arc::ptr_eq(&first, &get(1, "http://a/")));
        assert_eq!(get(0, "http://b/").etag, "\"http://b/\"");
        assert_eq!((built, cache.len()), (3, 3));
    }

    #[test]
    fn an_error_is_not_kept() {
        let cache = CardCache::default();
        assert_eq!(cache.get_or_build(key(0, "u"), || Err("refused")).unwrap_err(), "refused");
        assert!(cache.is_empty());
        assert_eq!(cache.get_or_build(key(0, "u"), || document("x")).unwrap().body.bytes(), "x");
    }

    #[test]
    fn the_oldest_documents_are_removed_first() {
        let cache = CardCache::default();
        let is_kept = |form, url: &str| cache.get_or_build(key(form, url), || Err("not kept")).is_ok();
        for number in 0..=MAX_DOCUMENTS {
            cache.get_or_build(key(0, &number.to_string()), || document("x")).unwrap();
        }
        assert!(!is_kept(0, "0") && is_kept(0, "1"));
        let large = "x".repeat(MAX_BYTES - 10);
        cache.get_or_build(key(1, "large"), || document(&large)).unwrap();
        // Ten of the small ones fit beside it: the newest.
        assert_eq!(cache.len(), 11);
        assert!(is_kept(0, &MAX_DOCUMENTS.to_string()) && !is_kept(0, "1"));
    }

    #[test]
    fn the_number_of_documents_is_bounded() {
        let cache = CardCache::default();
        for host in 0..1_000 {
            let url = format!("http://{host}.test/");
            assert_eq!(cache.get_or_build(key(0, &url), || document(&url)).unwrap().body.bytes(), &url);
            assert!(cache.len() <= MAX_DOCUMENTS);
        }
        let large = "x".repeat(MAX_BYTES / 2 + 1);
        for url in ["a", "b"] {
            cache.get_or_build(key(1, url), || document(&large)).unwrap();
        }
        assert_eq!(cache.len(), 1);
        // A document that is too large for the cache is kept alone.
        let larger = "x".repeat(MAX_BYTES + 1);
        cache.get_or_build(key(2, "a"), || document(&larger)).unwrap();
        assert_eq!(cache.len(), 1);
        let copy = cache.clone();
        assert!(copy.is_empty() && !cache.is_empty());
    }
}
