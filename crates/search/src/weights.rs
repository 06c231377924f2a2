//! The constants of the ranking, in one table. docs/search.md documents what each
//! contributes: how much recall drops without it.

/// The parameters of a text's score for a query.
#[derive(Clone, Copy, Debug)]
pub struct Weights {
    /// How quickly repeats of a word saturate: at this many, a word reaches half of its
    /// maximum.
    pub repeats: f64,
    /// The maximum of a word's count, however often it occurs in a text.
    pub most: f64,
    /// The word count of a text of average length.
    pub typical_words: f64,
    /// How much a text's length lowers what a word counts.
    pub length_share: f64,
    /// The weight of a word found only in the who, where or when, not in the text.
    pub about: f64,
    /// The share of its words' weights that a neighbor contributes: the question directly
    /// before, another turn directly before, the turn directly after, two before, two
    /// after, three away.
    pub after_question: f64,
    pub after: f64,
    pub before: f64,
    pub two_after: f64,
    pub two_before: f64,
    pub three_away: f64,
    /// The bonus for two adjacent query words, as a share of the lower of their rarities.
    pub together: f64,
    /// The minimum share of a score that remains when few of the query's words are found.
    pub least_coverage: f64,
    /// The minimum weight at which a word counts as found.
    pub found: f64,
    /// From this many words on, a text's length lowers its score, by this power.
    pub long_words: f64,
    pub long_power: f64,
    /// The power of the length ratio by which texts of the less verbose role are boosted.
    pub role_power: f64,
    /// The factor for the agent's texts, instead of the two above, if the query asks about
    /// the agent's words.
    pub agent_factor: f64,
    /// Factors for a text that ends in a question, that contains a number, and whose
    /// speaker the query names.
    pub question: f64,
    pub number: f64,
    pub speaker: f64,
    /// The factor for a text that contains a time, if the query asks when.
    pub time: f64,
}

pub const WEIGHTS: Weights = Weights {
    repeats: 0.9,
    most: 1.9,
    typical_words: 25.0,
    length_share: 0.5,
    about: 0.7,
    after_question: 0.5,
    after: 0.1,
    before: 0.4,
    two_after: 0.4,
    two_before: 0.1,
    three_away: 0.1,
    together: 0.7,
    least_coverage: 0.3,
    found: 0.4,
    long_words: 100.0,
    long_power: 0.4,
    role_power: 0.25,
    agent_factor: 1.3,
    question: 0.8,
    number: 1.1,
    speaker: 1.2,
    time: 1.2,
};
