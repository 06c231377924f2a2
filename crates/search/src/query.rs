//! Converts user input into a query for the index. No input is an error, and FTS5 receives
//! only letters and digits in quotes.

use super::stem::stem;
use super::time_words::asks_when;
use super::words::{is_cjk, is_stop_word, words};
use base::action::Role;

/// The maximum number of characters of a query; the rest is ignored.
const MAX_QUERY_CHARS: usize = 2000;

/// The maximum number of different words of a query. Several queries share it.
const MAX_TERMS: usize = 48;

/// The maximum number of queries of one search. Each then has six words.
pub const MAX_QUERIES: usize = 8;

/// The maximum number of prefixes and of phrases of one search. Several queries share them,
/// so with the maximum number of queries each has one of either. Further ones count as
/// words.
const MAX_PREFIXES: usize = 8;
const MAX_PHRASES: usize = 8;

/// The minimum length of a prefix. A shorter one counts as a word: half of all words start
/// with one of six letters. In a script without spaces, one letter is a word.
const MIN_PREFIX_CHARS: usize = 2;

/// The maximum number of words of a phrase, and of all phrases of a query: the engine
/// compares the positions of each word.
const MAX_PHRASE_WORDS: usize = 32;
const MAX_WORDS_IN_PHRASES: usize = 64;

/// The maximum number of words, prefixes and phrases of a query.
#[derive(Clone, Copy)]
struct QueryLimits {
    terms: usize,
    prefixes: usize,
    phrases: usize,
}

impl QueryLimits {
    /// The share of each query, if there are this many queries.
    fn of_each(queries: usize) -> Self {
        let queries = queries.clamp(1, MAX_QUERIES);
        Self {
            terms: MAX_TERMS / queries,
            prefixes: MAX_PREFIXES / queries,
            phrases: MAX_PHRASES / queries,
        }
    }
}

#[derive(Debug, Default, PartialEq)]
pub struct WordQuery {
    /// Stems. A result may contain any of them.
    pub stems: Vec<String>,
    /// Prefixes of words.
    pub prefixes: Vec<String>,
    /// Phrases. A result must contain all of them, each as consecutive words.
    pub phrases: Vec<Vec<String>>,
    /// Whether the query ends with a question mark. The messages around a result are then
    /// part of the answer, even if they contain none of the words.
    pub is_question: bool,
    /// Whether the query asks for messages of the agent itself.
    pub asks_agent: bool,
    /// Whether the query asks for a time.
    pub asks_when: bool,
}

impl WordQuery {
    pub fn parse(text: &str) -> Self {
        Self::parse_within(text, QueryLimits::of_each(1))
    }

    /// Parses the queries of one search. Their common cost is bounded like that of one
    /// query.
    pub fn parse_all<T: AsRef<str>>(texts: &[T]) -> Vec<Self> {
        let capacity = QueryLimits::of_each(texts.len());
        texts
            .iter()
            .take(MAX_QUERIES)
            .map(|text| Self::parse_within(text.as_ref(), capacity))
            .collect()
    }

    fn parse_within(text: &str, capacity: QueryLimits) -> Self {
        let text: String = text.chars().take(MAX_QUERY_CHARS).collect();
        let mut query = WordQuery::default();
        let mut loose = Vec::new();
        // Every second piece is between quotes. A quote that is never closed starts no
        // phrase.
        let pieces: Vec<&str> = text.split(['"', '\u{201C}', '\u{201D}']).collect();
        for (index, piece) in pieces.iter().enumerate() {
            let is_quoted = index % 2 == 1 && index + 1 < pieces.len();
            if is_quoted {
                query.read_phrase(piece, &mut loose, capacity);
            } else {
                query.read_loose(piece, &mut loose, capacity);
            }
        }
        query.is_question = text.trim_end().ends_with(['?', '？']);
        query.asks_agent = asks_agent(&loose);
        query.asks_when = asks_when(&text);
        let content_words: Vec<&String> = loose.iter().filter(|word| !is_stop_word(word)).collect();
        // A query of only stop words keeps them.
        let nothing_else =
            content_words.is_empty() && query.phrases.is_empty() && query.prefixes.is_empty();
        let chosen = if nothing_else {
            loose.iter().collect()
        } else {
            content_words
        };
        for word in chosen {
            let stem = stem(word);
            if !query.stems.contains(&stem) && query.stems.len() < capacity.terms {
                query.stems.push(stem);
            }
        }
        query
    }

    fn read_phrase(&mut self, text: &str, loose: &mut Vec<String>, capacity: QueryLimits) {
        let phrase: Vec<String> = words(text).into_iter().take(MAX_PHRASE_WORDS).collect();
        if phrase.is_empty() || self.phrases.contains(&phrase) {
            return;
        }
        let so_far: usize = self.phrases.iter().map(Vec::len).sum();
        if self.phrases.len() < capacity.phrases && so_far + phrase.len() <= MAX_WORDS_IN_PHRASES {
            self.phrases.push(phrase);
        } else {
            loose.extend(phrase);
        }
    }

    fn read_loose(&mut self, text: &str, loose: &mut Vec<String>, capacity: QueryLimits) {
        for token in text.split_whitespace() {
            let mut found = words(token);
            if token.ends_with('*')
                && let Some(last) = found.pop_if(|last| is_prefix(last))
                && !self.prefixes.contains(&last)
            {
                if self.prefixes.len() < capacity.prefixes {
                    self.prefixes.push(last);
                } else {
                    found.push(last);
                }
            }
            loose.extend(found);
        }
    }

    /// The prefixes that produce results on their own. With phrases, prefixes only count in
    /// the results of the phrases.
    pub fn prefixes_alone(&self) -> Vec<String> {
        if self.phrases.is_empty() {
            self.prefixes.clone()
        } else {
            Vec::new()
        }
    }

    pub fn is_empty(&self) -> bool {
        self.stems.is_empty() && self.prefixes.is_empty() && self.phrases.is_empty()
    }

    /// Whether a result may contain none of the query's words. This is so for plain words,
    /// without phrases and prefixes.
    pub fn is_open(&self) -> bool {
        !self.stems.is_empty() && self.phrases.is_empty() && self.prefixes.is_empty()
    }

    /// The words that the ranking uses.
    pub fn terms(&self) -> Vec<String> {
        let in_phrases = self.phrases.iter().flatten().map(|word| stem(word));
        let mut terms = self.stems.clone();
        for term in in_phrases {
            if !terms.contains(&term) && terms.len() < MAX_TERMS {
                terms.push(term);
            }
        }
        terms
    }

    /// The phrases in FTS5 syntax: a result must contain all of them.
    pub fn phrases_to_fts(&self) -> String {
        let phrases = self.phrases.iter();
        let phrases = phrases.map(|phrase| find_as_written(&phrase.join(" ")));
        phrases.collect::<Vec<_>>().join(" AND ")
    }
}

/// Words that address the agent, in several languages, in a query for the agent's messages.
const AGENT_WORDS: &[&str] = &[
    "dijiste",
    "du",
    "recomendaste",
    "tu",
    "usted",
    "vous",
    "you",
    "your",
    "您",
];

/// Words after which `you` starts a polite request: `could you remind me`, `do you think`.
const POLITE_WORDS: &[&str] = &[
    "can", "could", "do", "kannst", "konntest", "pouvez", "will", "would",
];

/// Words before which `you` starts a polite request: `if you could remind me`.
const POLITE_AFTER: &[&str] = &["can", "could", "think"];

fn asks_agent(words: &[String]) -> bool {
    let is_agent = |word: &String| {
        word == Role::Assistant.name()
            || AGENT_WORDS.contains(&word.as_str())
            || word.contains('你')
    };
    words.iter().enumerate().any(|(index, word)| {
        let before = index.checked_sub(1).and_then(|index| words.get(index));
        let after = words.get(index + 1);
        is_agent(word)
            && !before.is_some_and(|word| POLITE_WORDS.contains(&word.as_str()))
            && !after.is_some_and(|word| POLITE_AFTER.contains(&word.as_str()))
    })
}

/// Whether a word is long enough for a prefix.
fn is_prefix(word: &str) -> bool {
    word.chars().count() >= MIN_PREFIX_CHARS || is_whole_word(word)
}

/// Whether a prefix is itself a word, in a script without spaces: each letter there and
/// each pair of letters is a word, so every word with this prefix contains it.
pub fn is_whole_word(prefix: &str) -> bool {
    prefix.chars().all(is_cjk)
}

/// The FTS5 query for one stem, which contains only letters and digits.
pub fn find_word(stem: &str) -> String {
    format!("{{stems about}} : \"{stem}\"")
}

/// The FTS5 query for consecutive words as written.
pub fn find_as_written(words: &str) -> String {
    format!("words : \"{words}\"")
}

/// The FTS5 query for all words with this prefix. To build the list, the engine visits
/// every text of each such word, including texts outside the search.
pub fn find_beginning(prefix: &str) -> String {
    format!("{} *", find_as_written(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_has_words_phrases_and_prefixes() {
        let query = WordQuery::parse(r#"When did Anna's "two words" deploy* to Oslo?"#);
        assert_eq!(query.stems, ["anna", "oslo"]);
        assert_eq!(query.prefixes, ["deploy"]);
        assert_eq!(query.phrases, [["two", "words"]]);
        assert_eq!(query.phrases_to_fts(), r#"words : "two words""#);
        assert_eq!(query.terms(), ["anna", "oslo", "two", "word"]);
    }

    #[test]
    fn prefixes_and_phrases_beyond_the_limits_become_words() {
        let query = WordQuery::parse("a* é* x-y* 東* 東京* de*");
        assert_eq!(query.prefixes, ["東", "東京", "de"]);
        assert_eq!(query.stems, ["e", "x", "y", "東", "京"]);
        for letters in 2..6 {
            let of = |n: usize| format!("{n:0>letters$}");
            for many in 0..12 {
                let names: Vec<String> = (0..many).map(of).collect();
                let text: String = names
                    .iter()
                    .map(|name| format!("{name}* {name}* "))
                    .collect();
                let query = WordQuery::parse(&text);
                let (prefixes, stems) = names.split_at(many.min(MAX_PREFIXES));
                assert_eq!((&query.prefixes[..], &query.stems[..]), (prefixes, stems));
                let text: String = names.iter().map(|name| format!("\"b {name}\" ")).collect();
                let query = WordQuery::parse(&text);
                let phrases: Vec<Vec<String>> = prefixes
                    .iter()
                    .map(|name| vec!["b".to_owned(), name.clone()])
                    .collect();
                assert_eq!(query.phrases, phrases);
                assert_eq!(
                    query.stems.len(),
                    stems.len() + usize::from(!stems.is_empty())
                );
            }
        }
        // Several queries share the maximum.
        let shared = ["aa* bb* cc* \"a a\" \"b b\"", "aa*", "", ""];
        let queries = WordQuery::parse_all(&shared);
        assert_eq!(queries[0].prefixes, ["aa", "bb"]);
        assert_eq!(queries[0].phrases.len(), 2);
        let queries = WordQuery::parse_all(&[shared[0]; MAX_QUERIES]);
        assert!(
            queries
                .iter()
                .all(|query| (query.prefixes.len(), query.phrases.len()) == (1, 1))
        );
        // Long phrases share the maximum number of words.
        let long = format!("\"{}\" ", "w ".repeat(MAX_PHRASE_WORDS));
        let other = long.replace('w', "v");
        let query = WordQuery::parse(&format!("{long}{other}\"one more\""));
        assert_eq!(query.phrases.len(), 2);
        assert_eq!(query.stems, ["one"]);
    }

    #[test]
    fn several_queries_share_one_word_limit() {
        let long: String = (0..100).map(|n| format!("w{n} ")).collect();
        for (queries, words) in [(1, 48), (2, 24), (8, 6)] {
            let parsed = WordQuery::parse_all(&vec![long.as_str(); queries]);
            assert_eq!(parsed.len(), queries);
            assert!(parsed.iter().all(|query| query.stems.len() == words));
        }
        assert_eq!(WordQuery::parse_all(&[""; 9]).len(), MAX_QUERIES);
        assert_eq!(WordQuery::parse_all::<&str>(&[]), []);
    }

    #[test]
    fn a_query_may_ask_for_the_agents_messages() {
        for (text, asks_agent) in [
            ("What did you recommend in Lisbon?", true),
            ("can you remind me of your third tip", true),
            ("Could you find my sister's name?", false),
            ("my sister's name", false),
            ("I wonder if you could suggest a hotel", false),
            ("Do you have any ideas for my sister's party?", false),
            ("Do you remember what you said about Basel?", true),
            ("Was hast du über Basel gesagt?", true),
            ("你推荐的第一个地方", true),
        ] {
            assert_eq!(WordQuery::parse(text).asks_agent, asks_agent, "{text}");
        }
    }

    #[test]
    fn stop_words_count_only_if_there_is_nothing_else() {
        assert_eq!(
            WordQuery::parse("to be or not to be").stems,
            ["to", "be", "or", "not"]
        );
        assert_eq!(WordQuery::parse("to be Oslo").stems, ["oslo"]);
    }

    #[test]
    fn a_query_has_no_syntax_errors() {
        for text in [
            "",
            "\"",
            "\"\"",
            "*",
            "**",
            "\"a",
            "a\"b\"",
            "NEAR(a b)",
            "a OR",
            "-a",
            "{}:",
            "a:b",
            "(",
            "^a",
            "\u{0}",
            "\u{1F600}",
            "'; DROP TABLE x; --",
            "stems : a",
        ] {
            let query = WordQuery::parse(text);
            let prefixes = query.prefixes.iter().map(|prefix| find_beginning(prefix));
            let words = query.stems.iter().map(|stem| find_word(stem));
            let fts = prefixes.chain(words).collect::<String>() + &query.phrases_to_fts();
            let inside: Vec<&str> = fts.split('"').skip(1).step_by(2).collect();
            assert!(
                inside
                    .iter()
                    .all(|word| word.chars().all(|c| c.is_alphanumeric() || c == ' ')),
                "{text}: {fts}"
            );
            assert_eq!(fts.matches('"').count() % 2, 0);
        }
        assert!(WordQuery::parse(" * \" ").is_empty());
        let long: String = (0..10_000).map(|n| format!("w{n} ")).collect();
        assert_eq!(WordQuery::parse(&long).stems.len(), MAX_TERMS);
    }
}
