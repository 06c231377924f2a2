//! Finds prefixes of words in texts.

use super::fast_path::FirstBytes;
use super::query_words::QueryWords;
use super::words::WordSplitter;

/// Finds which of some prefixes the words of a text have.
pub struct PrefixScan<'a> {
    prefixes: &'a [String],
    first_bytes: FirstBytes,
}

impl<'a> PrefixScan<'a> {
    pub fn new(prefixes: &'a [String]) -> Self {
        Self {
            prefixes,
            first_bytes: QueryWords::new([], prefixes).first_bytes,
        }
    }

    pub fn find_in(&self, text: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        let mut is_found = vec![false; self.prefixes.len()];
        let mut splitter = WordSplitter::default();
        let mut take = |word: &str| {
            for (prefix, is_found) in self.prefixes.iter().zip(&mut is_found) {
                *is_found = *is_found || word.starts_with(prefix.as_str());
            }
        };
        splitter.skim(text, &self.first_bytes, &mut |_, word| take(word));
        splitter.end(&mut take);
        let found = self.prefixes.iter().zip(is_found);
        found.filter_map(|(prefix, is_found)| is_found.then_some(prefix.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::words;

    #[test]
    fn a_scan_finds_every_word_that_begins_with_a_prefix() {
        let prefixes = ["de", "東", "caf", "x1"].map(str::to_owned);
        let scan = PrefixScan::new(&prefixes);
        for text in [
            "we deploy",
            "Deploying it",
            "undeployed",
            "the CAFÉ",
            "X10 and x1",
            "大東京",
            "I de'ploy, o'de",
            "",
        ] {
            let found: Vec<&str> = scan.find_in(text).collect();
            let is_prefix =
                |prefix: &&str| words(text).iter().any(|word| word.starts_with(*prefix));
            let expected: Vec<&str> = prefixes
                .iter()
                .map(String::as_str)
                .filter(is_prefix)
                .collect();
            assert_eq!(found, expected, "{text}");
        }
    }
}
