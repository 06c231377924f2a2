//! English stems, by the rules of Snowball's English stemmer ("Porter2"), which
//! brings `deploying`, `deployed` and `deployment` together where Porter's first
//! stemmer, the one inside FTS5, does not. Words of other languages mostly pass
//! through: a rule applies only to letters a to z.

/// The stem of a lower-case word.
pub fn stem(word: &str) -> String {
    if word.len() <= 2 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return word.to_owned();
    }
    if let Some((_, stem)) = EXCEPTIONS.iter().find(|(exception, _)| *exception == word) {
        return (*stem).to_owned();
    }
    let mut word = Word::new(word);
    word.step_0_1a();
    if INVARIANT.contains(&word.text().as_str()) {
        return word.text();
    }
    word.step_1b();
    word.step_1c();
    word.step_2();
    word.step_3();
    word.step_4();
    word.step_5();
    word.text().replace('Y', "y")
}

/// `false`: the word certainly has another stem. A stem is never longer than its word, and has the
/// word's letters, except that a `y` may become an `i`, and that a rule may have put an `e` or `l`
/// at its end. The first two letters never change.
pub fn may_have_stem(word: &str, stem: &str) -> bool {
    let (word, stem) = (word.as_bytes(), stem.as_bytes());
    let same = |(letter, other): (&u8, &u8)| folded(*letter) == folded(*other);
    let compared = match stem {
        [_, _, start @ .., b'e' | b'l'] => start.len() + 2,
        _ => stem.len(),
    };
    word.len() >= stem.len() && word.iter().zip(stem).take(compared).all(same)
}

/// As [`may_have_stem`], for all words that begin with this byte.
pub fn may_begin_stem(first: u8, stem: &str) -> bool {
    stem.bytes()
        .next()
        .is_some_and(|other| folded(first) == folded(other))
}

fn folded(letter: u8) -> u8 {
    if letter == b'y' { b'i' } else { letter }
}

const EXCEPTIONS: &[(&str, &str)] = &[
    ("skis", "ski"),
    ("skies", "sky"),
    ("dying", "die"),
    ("lying", "lie"),
    ("tying", "tie"),
    ("idly", "idl"),
    ("gently", "gentl"),
    ("ugly", "ugli"),
    ("early", "earli"),
    ("only", "onli"),
    ("singly", "singl"),
    ("sky", "sky"),
    ("news", "news"),
    ("howe", "howe"),
    ("atlas", "atlas"),
    ("cosmos", "cosmos"),
    ("bias", "bias"),
    ("andes", "andes"),
];

/// Words that stay unchanged once a plural ending is removed.
const INVARIANT: &[&str] = &[
    "inning", "outing", "canning", "herring", "earring", "proceed", "exceed", "succeed",
];

/// A longer ending comes before the shorter endings that it ends with.
const STEP_2: &[(&str, &str)] = &[
    ("ization", "ize"),
    ("ational", "ate"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("iveness", "ive"),
    ("tional", "tion"),
    ("biliti", "ble"),
    ("lessli", "less"),
    ("entli", "ent"),
    ("ation", "ate"),
    ("alism", "al"),
    ("aliti", "al"),
    ("ousli", "ous"),
    ("iviti", "ive"),
    ("fulli", "ful"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("abli", "able"),
    ("izer", "ize"),
    ("ator", "ate"),
    ("alli", "al"),
    ("bli", "ble"),
];

const STEP_3: &[(&str, &str)] = &[
    ("ational", "ate"),
    ("tional", "tion"),
    ("alize", "al"),
    ("icate", "ic"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ness", ""),
    ("ful", ""),
];

const STEP_4: &[&str] = &[
    "ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous",
    "ive", "ize", "al", "er", "ic",
];

/// A word's letters, with a consonant `y` written as `Y`, and the starts of the regions
/// R1 and R2. Most rules remove an ending only within a region.
struct Word {
    letters: Vec<u8>,
    r1: usize,
    r2: usize,
}

impl Word {
    fn new(word: &str) -> Self {
        let mut letters = word.as_bytes().to_vec();
        let mut after_vowel = true;
        for letter in &mut letters {
            // At the start, and after a vowel, a `y` is a consonant.
            if *letter == b'y' && after_vowel {
                *letter = b'Y';
            }
            after_vowel = is_vowel(*letter);
        }
        let r1 = ["gener", "commun", "arsen"]
            .iter()
            .find(|start| word.starts_with(**start))
            .map_or_else(|| region(&letters, 0), |start| start.len());
        let r2 = region(&letters, r1);
        Self { letters, r1, r2 }
    }

    fn text(&self) -> String {
        self.letters
            .iter()
            .map(|letter| char::from(*letter))
            .collect()
    }

    fn ends_with(&self, ending: &str) -> bool {
        self.letters.ends_with(ending.as_bytes())
    }

    fn at_end(&self, back: usize) -> u8 {
        self.letters
            .len()
            .checked_sub(back)
            .and_then(|at| self.letters.get(at))
            .copied()
            .unwrap_or(0)
    }

    /// Whether the last `length` letters are in a region.
    fn ends_in(&self, region: usize, length: usize) -> bool {
        self.letters.len() >= region + length
    }

    fn replace(&mut self, length: usize, with: &str) {
        self.letters
            .truncate(self.letters.len().saturating_sub(length));
        self.letters.extend_from_slice(with.as_bytes());
    }

    fn has_vowel_before(&self, length: usize) -> bool {
        let end = self.letters.len().saturating_sub(length);
        self.letters
            .iter()
            .take(end)
            .any(|letter| is_vowel(*letter))
    }

    fn step_0_1a(&mut self) {
        if self.ends_with("sses") {
            self.replace(2, "");
        } else if self.ends_with("ied") || self.ends_with("ies") {
            let short = self.letters.len() <= 4;
            self.replace(3, if short { "ie" } else { "i" });
        } else if self.ends_with("s") && !self.ends_with("us") && !self.ends_with("ss") {
            // The vowel must not be right before the `s`: `gas` keeps its `s`, `gaps`
            // loses it.
            if self.has_vowel_before(2) {
                self.replace(1, "");
            }
        }
    }

    fn step_1b(&mut self) {
        for ending in ["eedly", "eed"] {
            if self.ends_with(ending) {
                if self.ends_in(self.r1, ending.len()) {
                    self.replace(ending.len(), "ee");
                }
                return;
            }
        }
        let Some(ending) = ["ingly", "edly", "ing", "ed"]
            .into_iter()
            .find(|ending| self.ends_with(ending))
        else {
            return;
        };
        if !self.has_vowel_before(ending.len()) {
            return;
        }
        self.replace(ending.len(), "");
        if self.ends_with("at") || self.ends_with("bl") || self.ends_with("iz") {
            self.replace(0, "e");
        } else if self.ends_in_double() {
            self.replace(1, "");
        } else if self.is_short() {
            self.replace(0, "e");
        }
    }

    fn ends_in_double(&self) -> bool {
        let last = self.at_end(1);
        last == self.at_end(2) && b"bdfgmnprt".contains(&last)
    }

    /// Whether the word ends in a short syllable and its first region is empty.
    fn is_short(&self) -> bool {
        self.letters.len() <= self.r1 && self.ends_in_short_syllable()
    }

    fn ends_in_short_syllable(&self) -> bool {
        let (last, middle, first) = (self.at_end(1), self.at_end(2), self.at_end(3));
        if self.letters.len() == 2 {
            return is_vowel(middle) && !is_vowel(last);
        }
        !is_vowel(first) && is_vowel(middle) && !is_vowel(last) && !b"wxY".contains(&last)
    }

    fn step_1c(&mut self) {
        let last = self.at_end(1);
        if (last == b'y' || last == b'Y') && self.letters.len() > 2 && !is_vowel(self.at_end(2)) {
            self.replace(1, "i");
        }
    }

    fn step_2(&mut self) {
        if let Some((ending, with)) = STEP_2.iter().find(|(ending, _)| self.ends_with(ending)) {
            if self.ends_in(self.r1, ending.len()) {
                self.replace(ending.len(), with);
            }
        } else if self.ends_with("ogi") && self.at_end(4) == b'l' && self.ends_in(self.r1, 3) {
            self.replace(3, "og");
        } else if self.ends_with("li")
            && self.ends_in(self.r1, 2)
            && b"cdeghkmnrt".contains(&self.at_end(3))
        {
            self.replace(2, "");
        }
    }

    fn step_3(&mut self) {
        if let Some((ending, with)) = STEP_3.iter().find(|(ending, _)| self.ends_with(ending)) {
            if self.ends_in(self.r1, ending.len()) {
                self.replace(ending.len(), with);
            }
        } else if self.ends_with("ative") && self.ends_in(self.r2, 5) {
            self.replace(5, "");
        }
    }

    fn step_4(&mut self) {
        if let Some(ending) = STEP_4.iter().find(|ending| self.ends_with(ending)) {
            if self.ends_in(self.r2, ending.len()) {
                self.replace(ending.len(), "");
            }
        } else if self.ends_with("ion")
            && self.ends_in(self.r2, 3)
            && b"st".contains(&self.at_end(4))
        {
            self.replace(3, "");
        }
    }

    fn step_5(&mut self) {
        match self.at_end(1) {
            b'e' => {
                let in_r1 = self.ends_in(self.r1, 1);
                let in_r2 = self.ends_in(self.r2, 1);
                self.replace(1, "");
                if !(in_r2 || in_r1 && !self.ends_in_short_syllable()) {
                    self.replace(0, "e");
                }
            }
            b'l' if self.at_end(2) == b'l' && self.ends_in(self.r2, 1) => self.replace(1, ""),
            _ => {}
        }
    }
}

/// The start of the region after the first consonant that follows a vowel.
fn region(letters: &[u8], from: usize) -> usize {
    let tail = letters.get(from..).unwrap_or_default();
    tail.windows(2)
        .position(
            |pair| matches!(pair, [vowel, consonant] if is_vowel(*vowel) && !is_vowel(*consonant)),
        )
        .map_or(letters.len(), |at| from + at + 2)
}

fn is_vowel(letter: u8) -> bool {
    b"aeiouy".contains(&letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn related_words_share_a_stem() {
        for family in [
            &[
                "deploy",
                "deploys",
                "deployed",
                "deploying",
                "deployment",
                "deployments",
            ][..],
            &[
                "connect",
                "connected",
                "connecting",
                "connection",
                "connections",
            ],
            &["paint", "paints", "painting", "painted"],
            &["hope", "hoping", "hoped", "hopes"],
            &["hop", "hopping", "hopped", "hops"],
            &["study", "studies", "studied", "studying"],
            &["organize", "organizes", "organizing", "organized"],
            &["run", "running", "runs"],
            &["adopt", "adopting", "adoption", "adopted"],
            &["die", "dies", "dying", "died"],
        ] {
            let stems: Vec<String> = family.iter().map(|word| stem(word)).collect();
            assert!(
                stems.iter().all(|stem| *stem == stems[0]),
                "{family:?} {stems:?}"
            );
        }
    }

    #[test]
    fn stems_match_the_published_vocabulary() {
        for (word, expected) in [
            ("consign", "consign"),
            ("consistency", "consist"),
            ("consolation", "consol"),
            ("knightly", "knight"),
            ("knotted", "knot"),
            ("generously", "generous"),
            ("gas", "gas"),
            ("this", "this"),
            ("gaps", "gap"),
            ("kiwis", "kiwi"),
            ("cries", "cri"),
            ("ties", "tie"),
            ("by", "by"),
            ("say", "say"),
            ("cry", "cri"),
            ("luxuriated", "luxuri"),
            ("national", "nation"),
            ("relational", "relat"),
            ("happiness", "happi"),
            ("controll", "control"),
            ("proceed", "proceed"),
            ("agreed", "agre"),
            ("feed", "feed"),
            ("bed", "bed"),
            ("sing", "sing"),
            ("communication", "communic"),
            ("rolling", "roll"),
        ] {
            assert_eq!(stem(word), expected, "{word}");
        }
    }

    #[test]
    fn non_english_words_are_unchanged() {
        for word in ["", "a", "42", "naïve", "東京", "x1s"] {
            assert_eq!(stem(word), word);
        }
    }

    #[test]
    fn a_words_own_stem_passes_the_quick_check() {
        let check = |word: &str| {
            let stem = stem(word);
            assert!(may_have_stem(word, &stem), "{word}: {stem}");
        };
        for (word, _) in EXCEPTIONS {
            check(word);
        }
        // Every word of up to four of these letters, before every ending that a rule takes.
        let endings = [
            "", "s", "ies", "ied", "sses", "eed", "eedly", "ed", "ing", "edly", "ingly", "y",
            "ogi", "li", "ative", "ion", "sion", "tion", "e", "ll",
        ];
        let steps = STEP_2.iter().chain(STEP_3).map(|(ending, _)| *ending);
        let endings: Vec<&str> = steps.chain(STEP_4.iter().copied()).chain(endings).collect();
        let mut starts = vec![String::new()];
        for _ in 0..4 {
            let longer = starts.iter().flat_map(|start| {
                b"aeiybls".map(|letter| format!("{start}{}", char::from(letter)))
            });
            starts = starts.iter().cloned().chain(longer).collect();
            starts.sort();
            starts.dedup();
        }
        for start in &starts {
            for ending in &endings {
                check(&format!("{start}{ending}"));
            }
        }
    }

    #[test]
    fn the_quick_check_rejects_words_with_another_start() {
        assert!(!may_have_stem("paint", "point"));
        assert!(!may_have_stem("go", "goal"));
        assert!(may_have_stem("dying", "die") && may_have_stem("points", "point"));
        assert!(!may_have_stem("", "a") && may_have_stem("a", "a"));
        assert!(!may_have_stem("é", "è") && may_have_stem("東京", "東京"));
    }
}
