//! The numbers of the ranking, in one table. docs/search.md says what each is worth: how much
//! less is found without it.

/// How a text's score is made of the query's words.
#[derive(Clone, Copy, Debug)]
pub struct Weights {
    /// How fast a repeated word stops adding: with this many, it counts half of the most.
    pub repeats: f64,
    /// The most that a word counts, however often it stands in a text.
    pub most: f64,
    /// The words of a text that is neither short nor long.
    pub typical_words: f64,
    /// How much a text's length lowers what a word counts.
    pub length_share: f64,
    /// The weight of a word found in who, where or when, and not in the text.
    pub about: f64,
    /// The share of its words' weights that a neighbour lends: the question right before,
    /// another turn right before, the turn right after, two before, two after, three away.
    pub after_question: f64,
    pub after: f64,
    pub before: f64,
    pub two_after: f64,
    pub two_before: f64,
    pub three_away: f64,
    /// The bonus for two of the query's words side by side, as a share of the lower rarity.
    pub together: f64,
    /// The share of a score that stays when few of the query's words are found.
    pub least_coverage: f64,
    /// The weight from which on a word counts as found.
    pub found: f64,
    /// From so many words on, a text's length lowers its score, by this power.
    pub long_words: f64,
    pub long_power: f64,
    /// The power of the ratio of lengths by which the role that says less is lifted.
    pub role_power: f64,
    /// The factor of what the agent said, in place of the two above, if the query asks for it.
    pub asked_agent: f64,
    /// Factors of a text that ends in a question, that holds a number, and whose speaker is
    /// named in the query.
    pub question: f64,
    pub number: f64,
    pub speaker: f64,
    /// The factor of a text that says a time, if the query asks when.
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
    asked_agent: 1.3,
    question: 0.8,
    number: 1.1,
    speaker: 1.2,
    time: 1.2,
};
