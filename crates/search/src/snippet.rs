//! Cuts out the piece of a text that shows why it was found, and locates the hits in it. The piece
//! is plain text: a page that shows it highlights the hits itself, and renders nothing that
//! somebody stored as markup.

use super::query_words::QueryWords;
use super::words::each_word;

/// The approximate length of a snippet, in characters.
const MAX_CHARS: usize = 240;

/// Bytes of a text that are scanned for its snippet.
pub const MAX_SCANNED_BYTES: usize = 256 << 10;

/// A word of the text: its position, and whether it is in the query.
struct WordSpan {
    start: usize,
    end: usize,
    is_hit: bool,
}

/// A piece of a text, unchanged except for `…` where it was cut.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snippet {
    pub text: String,
    /// The positions of the query's words in the snippet.
    pub highlights: Vec<Highlight>,
}

/// Start and end of a word, in UTF-16 units: as JavaScript counts.
pub type Highlight = [usize; 2];

pub fn snippet(text: &str, wanted: &mut QueryWords<'_>) -> Snippet {
    let text = text
        .get(..text.floor_char_boundary(MAX_SCANNED_BYTES))
        .unwrap_or(text);
    let spots = spots(text, wanted);
    let (start, end) = densest(text, &spots);
    let mut snippet = Snippet::default();
    if start > 0 {
        snippet.text.push('…');
    }
    let mut units = utf16_length(&snippet.text);
    let mut at = start;
    for spot in spots
        .iter()
        .filter(|spot| spot.is_hit && spot.start >= start && spot.end <= end)
    {
        units += utf16_length(text.get(at..spot.start).unwrap_or_default());
        let from = units;
        units += utf16_length(text.get(spot.start..spot.end).unwrap_or_default());
        snippet.highlights.push([from, units]);
        at = spot.end;
    }
    snippet
        .text
        .push_str(text.get(start..end).unwrap_or_default());
    if end < text.len() {
        snippet.text.push('…');
    }
    snippet
}

fn utf16_length(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// The words of a text: letters and digits, with the apostrophes and accents between them.
fn spots(text: &str, wanted: &mut QueryWords<'_>) -> Vec<WordSpan> {
    let is_part =
        |c: char| c.is_alphanumeric() || matches!(c, '\'' | '\u{2019}' | '\u{0300}'..='\u{036F}');
    let mut spots = Vec::new();
    let mut at = 0;
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let start = at + length_while(rest, |c| !is_part(c));
        let rest = text.get(start..).unwrap_or_default();
        let end = start + length_while(rest, is_part);
        if end == start {
            return spots;
        }
        let word = text.get(start..end).unwrap_or_default();
        spots.push(WordSpan {
            start,
            end,
            is_hit: is_hit(word, wanted),
        });
        at = end;
    }
}

/// The bytes up to the first character that does not fit.
fn length_while(text: &str, fits: impl Fn(char) -> bool) -> usize {
    let mut bytes = text.bytes();
    let fits_plainly = |byte: u8| byte.is_ascii() && fits(char::from(byte));
    let plain = bytes.position(|byte| !fits_plainly(byte));
    let plain = plain.unwrap_or(text.len());
    let rest = text.get(plain..).unwrap_or_default();
    match rest.chars().next() {
        Some(c) if !c.is_ascii() => plain + rest.find(|c| !fits(c)).unwrap_or(rest.len()),
        _ => plain,
    }
}

fn is_hit(span: &str, wanted: &mut QueryWords<'_>) -> bool {
    // Most words are excluded by their first letter.
    let mut bytes = span.bytes().skip_while(|byte| *byte == b'\'');
    if let Some(first) = bytes.next()
        && first.is_ascii_alphanumeric()
        && wanted.first_bytes.get(usize::from(first)) == Some(&false)
        && bytes.all(|byte| byte.is_ascii())
    {
        return false;
    }
    let mut is_hit = false;
    each_word(span, &mut |word| is_hit |= wanted.asks_for(word));
    is_hit
}

/// The stretch of about [`MAX_CHARS`] with the most hits, cut at words.
fn densest(text: &str, spots: &[WordSpan]) -> (usize, usize) {
    if text.chars().nth(MAX_CHARS).is_none() {
        return (0, text.len());
    }
    let hits: Vec<&WordSpan> = spots.iter().filter(|spot| spot.is_hit).collect();
    let mut best = (0, 0);
    let mut first = 0;
    for (last, hit) in hits.iter().enumerate() {
        while hits
            .get(first)
            .is_some_and(|spot| hit.end - spot.start > MAX_CHARS)
        {
            first += 1;
        }
        let count = last + 1 - first.min(last);
        if count > best.0 {
            best = (
                count,
                hits.get(first.min(last)).map_or(0, |spot| spot.start),
            );
        }
    }
    // Some words before the first hit show what it is about.
    let from = best.1.saturating_sub(MAX_CHARS / 4);
    let start = spots
        .iter()
        .map(|spot| spot.start)
        .find(|start| *start >= from)
        .unwrap_or(0);
    let start = if from == 0 { 0 } else { start };
    let rest = text.get(start..).unwrap_or_default();
    let cut = rest
        .char_indices()
        .nth(MAX_CHARS)
        .map_or(text.len(), |(offset, _)| start + offset);
    let end = spots
        .iter()
        .take_while(|spot| spot.end <= cut)
        .last()
        .map(|spot| spot.end)
        .filter(|end| *end > start && cut < text.len())
        .unwrap_or(cut);
    (start, end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stem::stem;
    use crate::words::words;

    fn cut(text: &str, terms: &[&str], prefixes: &[&str]) -> Snippet {
        let own = |words: &[&str]| {
            words
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>()
        };
        let (terms, prefixes) = (own(terms), own(prefixes));
        let mut wanted = QueryWords::new(terms.iter().map(String::as_str), &prefixes);
        snippet(text, &mut wanted)
    }

    /// The texts that a reader in JavaScript finds at the highlights, with `[` and `]` around.
    fn marked(text: &str, terms: &[&str], prefixes: &[&str]) -> String {
        let snippet = cut(text, terms, prefixes);
        let units: Vec<u16> = snippet.text.encode_utf16().collect();
        let mut marked = String::new();
        let mut at = 0;
        for [start, end] in snippet.highlights {
            assert!(at <= start && start < end && end <= units.len());
            marked.push_str(&String::from_utf16(&units[at..start]).unwrap());
            marked.push('[');
            marked.push_str(&String::from_utf16(&units[start..end]).unwrap());
            marked.push(']');
            at = end;
        }
        marked + &String::from_utf16(&units[at..]).unwrap()
    }

    #[test]
    fn hits_are_marked_in_every_form_of_the_word() {
        assert_eq!(
            marked(
                "Deploying is fun. Deployments, too! Redeploy.",
                &["deploy"],
                &["fu"]
            ),
            "[Deploying] is [fun]. [Deployments], too! Redeploy."
        );
        assert_eq!(marked("nothing here", &["x"], &[]), "nothing here");
        assert_eq!(marked("", &["x"], &[]), "");
    }

    #[test]
    fn a_long_text_is_trimmed_around_its_hits() {
        let text = format!(
            "{} the needle in it {}",
            "hay ".repeat(500),
            "straw ".repeat(500)
        );
        let snippet = marked(&text, &["needl"], &[]);
        assert!(
            snippet.starts_with('…') && snippet.ends_with('…'),
            "{snippet}"
        );
        assert!(snippet.contains("the [needle] in it straw"), "{snippet}");
        assert!(
            snippet.chars().count() <= MAX_CHARS + 20,
            "{}",
            snippet.chars().count()
        );
    }

    #[test]
    fn highlights_use_utf16_offsets() {
        let text = "\u{1F600}\u{1F468}\u{200D}\u{1F469} le cafe\u{0301}, Cafés 東京 <b>café</b>";
        assert_eq!(
            marked(text, &["cafe", "東"], &[]),
            "\u{1F600}\u{1F468}\u{200D}\u{1F469} le [cafe\u{0301}], [Cafés] [東京] <b>[café]</b>"
        );
        assert_eq!(
            cut("\u{1F600} an apple", &["appl"], &[]),
            Snippet {
                text: "\u{1F600} an apple".to_owned(),
                highlights: vec![[6, 11]],
            }
        );
        // The ellipses count, too.
        let text = format!("{}the needle", "\u{1F600} ".repeat(300));
        let found = cut(&text, &["needl"], &[]);
        let [[start, end]] = found.highlights[..] else {
            panic!("{found:?}")
        };
        let units: Vec<u16> = found.text.encode_utf16().collect();
        assert!(found.text.starts_with('…'));
        assert_eq!(String::from_utf16(&units[start..end]).unwrap(), "needle");
    }

    /// The offsets of a text's words, and which of them are hits, found character by character.
    fn spots_plainly(
        text: &str,
        terms: &[String],
        prefixes: &[String],
    ) -> Vec<(usize, usize, bool)> {
        let is_wanted = |word: &str| {
            terms.contains(&stem(word)) || prefixes.iter().any(|prefix| word.starts_with(prefix))
        };
        let mut spots = Vec::new();
        let mut start = None;
        for at in text.char_indices().map(Some).chain(std::iter::once(None)) {
            let is_inside = at.is_some_and(|(_, c)| {
                c.is_alphanumeric() || matches!(c, '\'' | '\u{2019}' | '\u{0300}'..='\u{036F}')
            });
            let offset = at.map_or(text.len(), |(offset, _)| offset);
            match (start, is_inside) {
                (None, true) => start = Some(offset),
                (Some(from), false) => {
                    let is_hit = words(&text[from..offset])
                        .iter()
                        .any(|word| is_wanted(word));
                    spots.push((from, offset, is_hit));
                    start = None;
                }
                _ => {}
            }
        }
        spots
    }

    #[test]
    fn the_fast_search_matches_a_scan_of_each_character() {
        let pieces = [
            "point",
            "Points",
            "pointing",
            "x",
            "'",
            "\u{2019}",
            " ",
            ", ",
            "é",
            "\u{301}",
            "東",
            "京",
            "Yes",
            "ies",
            "\u{1F600}",
            "_",
            "\n",
            "9",
            "𝒜",
        ];
        let terms: Vec<String> = ["point", "y", "東", "ye"].map(str::to_owned).into();
        let prefixes = vec!["xp".to_owned(), "é".to_owned(), "京".to_owned()];
        let mut wanted = QueryWords::new(terms.iter().map(String::as_str), &prefixes);
        let mut state = 5_usize;
        for _ in 0..5_000 {
            let mut text = String::new();
            for _ in 0..14 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                text.push_str(pieces[(state >> 33) % pieces.len()]);
            }
            let found: Vec<(usize, usize, bool)> = spots(&text, &mut wanted)
                .iter()
                .map(|spot| (spot.start, spot.end, spot.is_hit))
                .collect();
            assert_eq!(found, spots_plainly(&text, &terms, &prefixes), "{text:?}");
        }
    }

    #[test]
    fn a_cut_never_falls_inside_a_character() {
        let text = "\u{1F600}é東".repeat(300);
        assert!(cut(&text, &["x"], &[]).text.chars().count() <= MAX_CHARS + 2);
    }
}
