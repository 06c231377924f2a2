//! Turns what somebody typed into a query for the index. No query is an error, and FTS5
//! receives nothing of a query but letters and digits in quotes.

use super::stem::stem;
use super::time_words::asks_when;
use super::words::{is_stop_word, words};
use base::action::Role;

/// Characters of a query that are read; the rest is ignored.
const MAX_QUERY_CHARS: usize = 2000;

/// The most different words of a query. Several queries share them.
const MAX_TERMS: usize = 48;

/// The most queries of one search. Each has six words then.
pub const MAX_QUERIES: usize = 8;

/// The most phrases of a query, and the most words of a phrase.
const MAX_PHRASES: usize = 8;
const MAX_PHRASE_WORDS: usize = 32;

#[derive(Debug, Default, PartialEq)]
pub struct WordQuery {
    /// Stems. A result may hold any of them.
    pub stems: Vec<String>,
    /// Beginnings of words.
    pub prefixes: Vec<String>,
    /// Phrases. A result must hold all of them, each as words in a row.
    pub phrases: Vec<Vec<String>>,
    /// Whether the query ends in a question mark. The messages around a result then belong to the
    /// answer, even if they repeat none of the words.
    pub is_question: bool,
    /// Whether the query asks for what the agent itself said.
    pub asks_agent: bool,
    /// Whether the query asks when something was.
    pub asks_when: bool,
}

impl WordQuery {
    pub fn parse(text: &str) -> Self {
        Self::parse_within(text, MAX_TERMS)
    }

    /// Reads the queries of one search. Their common cost is bounded like that of one.
    pub fn parse_all<T: AsRef<str>>(texts: &[T]) -> Vec<Self> {
        let most = MAX_TERMS / texts.len().clamp(1, MAX_QUERIES);
        texts
            .iter()
            .take(MAX_QUERIES)
            .map(|text| Self::parse_within(text.as_ref(), most))
            .collect()
    }

    fn parse_within(text: &str, most_terms: usize) -> Self {
        let text: String = text.chars().take(MAX_QUERY_CHARS).collect();
        let mut query = WordQuery::default();
        let mut loose = Vec::new();
        // Every other piece stands between quotes. A quote that is never closed opens no
        // phrase.
        let pieces: Vec<&str> = text.split(['"', '\u{201C}', '\u{201D}']).collect();
        for (index, piece) in pieces.iter().enumerate() {
            let is_quoted = index % 2 == 1 && index + 1 < pieces.len();
            if is_quoted {
                let phrase: Vec<String> = words(piece).into_iter().take(MAX_PHRASE_WORDS).collect();
                if !phrase.is_empty() && query.phrases.len() < MAX_PHRASES {
                    query.phrases.push(phrase);
                }
            } else {
                query.read_loose(piece, &mut loose, most_terms);
            }
        }
        query.is_question = text.trim_end().ends_with(['?', '？']);
        query.asks_agent = asks_agent(&loose);
        query.asks_when = asks_when(&text);
        let frame_header: Vec<&String> = loose.iter().filter(|word| !is_stop_word(word)).collect();
        // A query of nothing but stop words keeps them.
        let nothing_else =
            frame_header.is_empty() && query.phrases.is_empty() && query.prefixes.is_empty();
        let chosen = if nothing_else {
            loose.iter().collect()
        } else {
            frame_header
        };
        for word in chosen {
            let stem = stem(word);
            if !query.stems.contains(&stem) && query.stems.len() < most_terms {
                query.stems.push(stem);
            }
        }
        query
    }

    fn read_loose(&mut self, text: &str, loose: &mut Vec<String>, most_terms: usize) {
        for token in text.split_whitespace() {
            let mut found = words(token);
            let is_prefix = token.ends_with('*');
            if is_prefix
                && let Some(last) = found.pop()
                && self.prefixes.len() < most_terms
            {
                self.prefixes.push(last);
            }
            loose.extend(found);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.stems.is_empty() && self.prefixes.is_empty() && self.phrases.is_empty()
    }

    /// Whether a result may hold none of the query's words: so it is for plain words,
    /// without phrases and prefixes.
    pub fn is_open(&self) -> bool {
        !self.stems.is_empty() && self.phrases.is_empty() && self.prefixes.is_empty()
    }

    /// The words that count for the ranking.
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

    /// The query in FTS5's syntax, without the words that `is_wanted` leaves out. Words hold
    /// only letters and digits; we add the quotes.
    pub fn to_fts_of(&self, is_wanted: &dyn Fn(&str) -> bool) -> String {
        if !self.phrases.is_empty() {
            let phrases: Vec<String> = self
                .phrases
                .iter()
                .map(|phrase| format!("words : \"{}\"", phrase.join(" ")))
                .collect();
            return phrases.join(" AND ");
        }
        let stems = self.stems.iter().filter(|stem| is_wanted(stem));
        let stems = stems.map(|stem| find_word(stem));
        stems
            .chain(self.prefixes_to_fts())
            .collect::<Vec<_>>()
            .join(" OR ")
    }

    /// The whole query in FTS5's syntax.
    pub fn to_fts(&self) -> String {
        self.to_fts_of(&|_| true)
    }

    /// Each prefix in FTS5's syntax.
    pub fn prefixes_to_fts(&self) -> impl Iterator<Item = String> {
        let prefixes = self.prefixes.iter();
        prefixes.map(|prefix| format!("words : \"{prefix}\" *"))
    }
}

/// How people address an agent whose words they look for, in some languages.
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

/// Words after which `you` begins a polite request: `could you remind me`, `do you think`.
const POLITE_WORDS: &[&str] = &[
    "can", "could", "do", "kannst", "konntest", "pouvez", "will", "would",
];

/// Words before which `you` begins one: `if you could remind me`.
const POLITE_AFTER: &[&str] = &["can", "could", "think"];

fn asks_agent(words: &[String]) -> bool {
    let is_agent = |word: &String| {
        word == Role::Assistant.name()
            || AGENT_WORDS.contains(&word.as_str())
            || word.contains('你')
    };
    words.iter().enumerate().any(|(place, word)| {
        let before = place.checked_sub(1).and_then(|place| words.get(place));
        let after = words.get(place + 1);
        is_agent(word)
            && !before.is_some_and(|word| POLITE_WORDS.contains(&word.as_str()))
            && !after.is_some_and(|word| POLITE_AFTER.contains(&word.as_str()))
    })
}

/// The FTS5 query for one stem, which holds only letters and digits.
pub fn find_word(stem: &str) -> String {
    format!("{{stems about}} : \"{stem}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_words_phrases_and_prefixes() {
        let query = WordQuery::parse(r#"When did Anna's "two words" deploy* to Oslo?"#);
        assert_eq!(query.stems, ["anna", "oslo"]);
        assert_eq!(query.prefixes, ["deploy"]);
        assert_eq!(query.phrases, [["two", "words"]]);
        assert_eq!(query.to_fts(), r#"words : "two words""#);
        assert_eq!(query.terms(), ["anna", "oslo", "two", "word"]);
        assert_eq!(
            WordQuery::parse("deploying depl*").to_fts(),
            r#"{stems about} : "deploy" OR words : "depl" *"#
        );
    }

    #[test]
    fn several_queries_have_as_many_words_as_one() {
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
    fn a_query_may_ask_for_what_the_agent_said() {
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
    fn small_words_count_where_there_is_nothing_else() {
        assert_eq!(
            WordQuery::parse("to be or not to be").stems,
            ["to", "be", "or", "not"]
        );
        assert_eq!(WordQuery::parse("to be Oslo").stems, ["oslo"]);
    }

    #[test]
    fn nothing_in_a_query_is_syntax() {
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
            let fts = WordQuery::parse(text).to_fts();
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
