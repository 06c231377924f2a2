//! Splits a text into sentences, only by punctuation.

/// Abbreviations, whose full stop ends no sentence.
const SHORTENED: &[&str] = &[
    "mr", "mrs", "ms", "dr", "prof", "st", "mt", "jr", "sr", "vs", "e.g", "i.e", "approx",
];

const ENDS: [char; 8] = ['.', '!', '?', '\n', ';', '。', '！', '？'];

/// Whether the full stop between these two ends no sentence: in `3.5`, `example.com`, `Dr. No`
/// and `J. Doe`.
fn is_inside(before: &str, after: &str) -> bool {
    if after.starts_with(|next: char| !next.is_whitespace()) {
        return true;
    }
    let word = before
        .rsplit(char::is_whitespace)
        .next()
        .unwrap_or_default();
    let word = word.trim_start_matches(|sign: char| !sign.is_alphanumeric());
    let mut letters = word.chars();
    let is_initial = match (letters.next(), letters.next()) {
        (Some(letter), None) => letter.is_uppercase() && letter != 'I',
        _ => false,
    };
    is_initial || SHORTENED.contains(&word.to_lowercase().as_str())
}

/// The sentences of a text, each with the sign that ends it.
pub fn sentences(text: &str) -> Vec<&str> {
    let mut sentences: Vec<&str> = Vec::new();
    let mut begin = 0;
    for (at, sign) in text.char_indices() {
        let end = at + sign.len_utf8();
        let around = text.get(begin..at).zip(text.get(end..));
        let is_inside = |(before, after)| sign == '.' && is_inside(before, after);
        if ENDS.contains(&sign) && !around.is_some_and(is_inside) {
            sentences.extend(text.get(begin..end));
            begin = end;
        }
    }
    sentences.extend(text.get(begin..));
    let sentences = sentences.into_iter().map(str::trim);
    sentences.filter(|sentence| !sentence.is_empty()).collect()
}

/// The sentences of a text that are not questions.
pub fn claims(text: &str) -> Vec<&str> {
    let mut sentences = sentences(text);
    sentences.retain(|sentence| !sentence.ends_with(['?', '？']));
    sentences
}
