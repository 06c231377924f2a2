//! The piece of a text that shows why it was found, the hits marked.

use super::stem::stem;
use super::words::words;

/// Characters of a snippet, about.
const MAX_CHARS: usize = 240;

/// Bytes of a text that are looked through for its snippet.
const MAX_SCANNED_BYTES: usize = 256 << 10;

/// A word of the text: where it stands, and whether it is asked for.
struct Spot {
    start: usize,
    end: usize,
    is_hit: bool,
}

/// `terms` are stems, `prefixes` the beginnings of words.
pub fn snippet(text: &str, terms: &[String], prefixes: &[String]) -> String {
    let text = text
        .get(..text.floor_char_boundary(MAX_SCANNED_BYTES))
        .unwrap_or(text);
    let spots = spots(text, terms, prefixes);
    let (start, end) = densest(text, &spots);
    let mut snippet = String::new();
    if start > 0 {
        snippet.push('…');
    }
    let mut at = start;
    for spot in spots
        .iter()
        .filter(|spot| spot.is_hit && spot.start >= start && spot.end <= end)
    {
        snippet.push_str(text.get(at..spot.start).unwrap_or_default());
        snippet.push_str("<mark>");
        snippet.push_str(text.get(spot.start..spot.end).unwrap_or_default());
        snippet.push_str("</mark>");
        at = spot.end;
    }
    snippet.push_str(text.get(at..end).unwrap_or_default());
    if end < text.len() {
        snippet.push('…');
    }
    snippet
}

fn spots(text: &str, terms: &[String], prefixes: &[String]) -> Vec<Spot> {
    let is_hit = |word: &str| {
        words(word).iter().any(|word| {
            terms.contains(&stem(word)) || prefixes.iter().any(|prefix| word.starts_with(prefix))
        })
    };
    let mut spots = Vec::new();
    let mut start = None;
    let ends = text.char_indices().map(Some).chain(std::iter::once(None));
    for at in ends {
        let is_inside = at.is_some_and(|(_, c)| {
            c.is_alphanumeric() || matches!(c, '\'' | '\u{2019}' | '\u{0300}'..='\u{036F}')
        });
        let offset = at.map_or(text.len(), |(offset, _)| offset);
        match (start, is_inside) {
            (None, true) => start = Some(offset),
            (Some(from), false) => {
                let word = text.get(from..offset).unwrap_or_default();
                spots.push(Spot {
                    start: from,
                    end: offset,
                    is_hit: is_hit(word),
                });
                start = None;
            }
            _ => {}
        }
    }
    spots
}

/// The stretch of about [`MAX_CHARS`] that holds the most hits, cut at words.
fn densest(text: &str, spots: &[Spot]) -> (usize, usize) {
    if text.chars().nth(MAX_CHARS).is_none() {
        return (0, text.len());
    }
    let hits: Vec<&Spot> = spots.iter().filter(|spot| spot.is_hit).collect();
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

    fn marked(text: &str, terms: &[&str], prefixes: &[&str]) -> String {
        let own = |words: &[&str]| {
            words
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>()
        };
        snippet(text, &own(terms), &own(prefixes))
    }

    #[test]
    fn hits_are_marked_in_every_form_of_the_word() {
        assert_eq!(
            marked(
                "Deploying is fun. Deployments, too! Redeploy.",
                &["deploy"],
                &["fu"]
            ),
            "<mark>Deploying</mark> is <mark>fun</mark>. <mark>Deployments</mark>, too! Redeploy."
        );
        assert_eq!(marked("nothing here", &["x"], &[]), "nothing here");
        assert_eq!(marked("", &["x"], &[]), "");
    }

    #[test]
    fn a_long_text_is_cut_around_its_hits() {
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
        assert!(
            snippet.contains("the <mark>needle</mark> in it straw"),
            "{snippet}"
        );
        assert!(
            snippet.chars().count() <= MAX_CHARS + 20,
            "{}",
            snippet.chars().count()
        );
    }

    #[test]
    fn a_cut_never_falls_inside_a_character() {
        let text = "\u{1F600}é東".repeat(300);
        assert!(marked(&text, &["x"], &[]).chars().count() <= MAX_CHARS + 2);
    }
}
