//! Words of time. If a query asks when, a text with a time is likelier to answer.

use super::words::words;

/// The stems of words that name a time.
pub const TIME_STEMS: &[&str] = &[
    "yesterday",
    "today",
    "tonight",
    "tomorrow",
    "ago",
    "last",
    "next",
    "week",
    "weekend",
    "month",
    "year",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
    "januari",
    "februari",
    "march",
    "april",
    "june",
    "juli",
    "august",
    "septemb",
    "octob",
    "novemb",
    "decemb",
    "gestern",
    "heut",
    "morgen",
    "woch",
    "monat",
    "jahr",
    "ayer",
    "hoy",
    "semana",
    "hier",
    "demain",
    "semain",
    "昨天",
    "今天",
    "明天",
    "上周",
    "去年",
];

/// The beginnings of questions about a time, as words.
const WHEN: &[&str] = &["when", "wann", "cuando", "quand"];
const WHAT: &[&str] = &["what", "which", "how"];
const OF_TIME: &[&str] = &["date", "day", "time", "month", "year", "week", "long"];

/// Whether a query asks when something was or is.
pub fn asks_when(query: &str) -> bool {
    let words = words(query);
    let is_one_of = |word: &String, list: &[&str]| list.contains(&word.as_str());
    words.iter().any(|word| is_one_of(word, WHEN))
        || query.contains("什么时候")
        || words
            .windows(2)
            .any(|pair| matches!(pair, [a, b] if is_one_of(a, WHAT) && is_one_of(b, OF_TIME)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stem::stem;

    #[test]
    fn a_query_may_ask_for_a_time() {
        for (text, asks) in [
            ("When did Anna move?", true),
            ("On which day is the exam?", true),
            ("How long has Anna lived here?", true),
            ("Wann war die Hochzeit?", true),
            ("他什么时候搬家的？", true),
            ("What did Anna buy?", false),
            ("whenever", false),
            ("", false),
        ] {
            assert_eq!(asks_when(text), asks, "{text}");
        }
    }

    #[test]
    fn time_words_are_stored_as_stems() {
        for time in TIME_STEMS {
            assert_eq!(stem(time), *time);
        }
    }
}
