//! From what somebody typed to what is asked of the index. Nothing in a query is
//! an error, and nothing of it reaches FTS5 but letters and digits in quotes.

use super::stem::stem;
use super::words::{is_stop_word, words};

/// Characters of a query that are read; the rest says nothing more.
const MAX_QUERY_CHARS: usize = 2000;

/// Different words that are asked for.
const MAX_TERMS: usize = 48;

/// Phrases, and words of one.
const MAX_PHRASES: usize = 8;
const MAX_PHRASE_WORDS: usize = 32;

#[derive(Debug, Default, PartialEq)]
pub struct WordQuery {
    /// Stems, any of which may stand in a result.
    pub stems: Vec<String>,
    /// Beginnings of words.
    pub prefixes: Vec<String>,
    /// Words in a row, each row of which must stand in a result.
    pub phrases: Vec<Vec<String>>,
}

impl WordQuery {
    pub fn parse(text: &str) -> Self {
        let text: String = text.chars().take(MAX_QUERY_CHARS).collect();
        let mut query = WordQuery::default();
        let mut loose = Vec::new();
        // Every other piece stands between quotes; an opening one alone opens nothing.
        let pieces: Vec<&str> = text.split(['"', '\u{201C}', '\u{201D}']).collect();
        for (index, piece) in pieces.iter().enumerate() {
            let is_quoted = index % 2 == 1 && index + 1 < pieces.len();
            if is_quoted {
                let phrase: Vec<String> = words(piece).into_iter().take(MAX_PHRASE_WORDS).collect();
                if !phrase.is_empty() && query.phrases.len() < MAX_PHRASES {
                    query.phrases.push(phrase);
                }
            } else {
                query.read_loose(piece, &mut loose);
            }
        }
        let frame_header: Vec<&String> = loose.iter().filter(|word| !is_stop_word(word)).collect();
        // Where there is nothing else, small words are all there is to go by.
        let nothing_else =
            frame_header.is_empty() && query.phrases.is_empty() && query.prefixes.is_empty();
        let chosen = if nothing_else {
            loose.iter().collect()
        } else {
            frame_header
        };
        for word in chosen {
            let stem = stem(word);
            if !query.stems.contains(&stem) && query.stems.len() < MAX_TERMS {
                query.stems.push(stem);
            }
        }
        query
    }

    fn read_loose(&mut self, text: &str, loose: &mut Vec<String>) {
        for token in text.split_whitespace() {
            let mut found = words(token);
            let is_prefix = token.ends_with('*');
            if is_prefix
                && let Some(last) = found.pop()
                && self.prefixes.len() < MAX_TERMS
            {
                self.prefixes.push(last);
            }
            loose.extend(found);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.stems.is_empty() && self.prefixes.is_empty() && self.phrases.is_empty()
    }

    /// Whether something may be found that holds none of its words: nothing in it
    /// says what must stand there.
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

    /// As FTS5 reads it. Words hold letters and digits alone; the quotes are ours.
    pub fn to_fts(&self) -> String {
        if !self.phrases.is_empty() {
            let phrases: Vec<String> = self
                .phrases
                .iter()
                .map(|phrase| format!("words : \"{}\"", phrase.join(" ")))
                .collect();
            return phrases.join(" AND ");
        }
        let stems = self.stems.iter().map(|stem| find_word(stem));
        stems
            .chain(self.prefixes_to_fts())
            .collect::<Vec<_>>()
            .join(" OR ")
    }

    /// The beginnings of words, each as FTS5 reads it.
    pub fn prefixes_to_fts(&self) -> impl Iterator<Item = String> {
        let prefixes = self.prefixes.iter();
        prefixes.map(|prefix| format!("words : \"{prefix}\" *"))
    }
}

/// One word as FTS5 reads it, by its stem: letters and digits alone.
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
