//! Skips through plain text, which is most of most texts: ASCII letters, digits and punctuation
//! without apostrophes. Eight bytes are processed together. Words that can't be in the query are
//! counted, and never read.

/// Longer words are truncated: nobody searches for a whole key or base64 text.
pub const MAX_WORD_CHARS: usize = 64;

/// For each first byte, whether a word of the query may begin with it.
pub type FirstBytes = [bool; 256];

/// Receives words in lower case, each with the number of words that were skipped before it. An
/// empty word: only skipped words.
pub type OnWord<'a> = dyn FnMut(usize, &str) + 'a;

const ONES: u64 = 0x0101_0101_0101_0101;
/// The highest bit of each byte. The functions below mark bytes by this bit.
const HIGH: u64 = ONES * 0x80;

/// Whether a byte needs a closer look: an apostrophe joins words, and a byte beyond ASCII may
/// belong to a letter.
pub fn is_special(byte: u8) -> bool {
    byte == b'\'' || !byte.is_ascii()
}

/// Whether a byte certainly separates words.
pub fn is_between(byte: u8) -> bool {
    !is_special(byte) && !byte.is_ascii_alphanumeric()
}

/// The same for eight bytes.
fn has_special(block: u64) -> bool {
    let others = (block & !HIGH) ^ (ONES * u64::from(b'\''));
    let apostrophes = !(others + ONES * 0x7F);
    (block | apostrophes) & HIGH != 0
}

/// Marks the letters and digits of eight bytes of ASCII. No sum overflows its byte.
fn mark_word_bytes(block: u64) -> u64 {
    let small = block | (ONES * 0x20);
    let from_a = small + ONES * (0x80 - u64::from(b'a'));
    let beyond_z = small + ONES * (0x7F - u64::from(b'z'));
    let from_0 = block + ONES * (0x80 - u64::from(b'0'));
    let beyond_9 = block + ONES * (0x7F - u64::from(b'9'));
    ((from_a & !beyond_z) | (from_0 & !beyond_9)) & HIGH
}

/// Reads plain text, from a position between words on. Returns the rest, which begins with a word
/// or between words, and contains a special byte or the text's end.
pub fn skip_fast_path<'t>(
    text: &'t str,
    first_bytes: &FirstBytes,
    take: &mut OnWord<'_>,
) -> &'t str {
    let bytes = text.as_bytes();
    let mut skipped = 0;
    let mut at = 0;
    // The end of the last word that was passed on.
    let mut word_end = 0;
    // Marks the first byte of a block if the block before ended inside a word.
    let mut inside = 0;
    for block in bytes.as_chunks::<8>().0 {
        let block = u64::from_le_bytes(*block);
        if has_special(block) {
            break;
        }
        let marks = mark_word_bytes(block);
        let mut starts = marks & !((marks << 8) | inside);
        inside = (marks >> 63) << 7;
        while starts != 0 {
            let start = at + starts.trailing_zeros() as usize / 8;
            starts &= starts - 1;
            let first = bytes.get(start).copied().unwrap_or_default();
            if first_bytes.get(usize::from(first)) != Some(&true) {
                skipped += 1;
                continue;
            }
            let Some(word) = whole_word(text, start) else {
                take(skipped, "");
                return text.get(start..).unwrap_or_default();
            };
            emit(word, skipped, take);
            skipped = 0;
            word_end = start + word.len();
        }
        at += 8;
    }
    let mut rest = at.max(word_end);
    if word_end < at {
        // The last word may continue.
        let done = bytes.get(word_end..at).unwrap_or_default().iter().rev();
        let partial = done.take_while(|byte| byte.is_ascii_alphanumeric()).count();
        skipped -= usize::from(partial > 0);
        rest -= partial;
    }
    take(skipped, "");
    text.get(rest..).unwrap_or_default()
}

/// The word that begins here; `None`: the word's end is not plain, or not in this text.
fn whole_word(text: &str, start: usize) -> Option<&str> {
    let rest = text.get(start..)?;
    let length = rest
        .bytes()
        .position(|byte| !byte.is_ascii_alphanumeric())?;
    let (word, after) = rest.split_at_checked(length)?;
    after
        .bytes()
        .next()
        .is_some_and(|byte| !is_special(byte))
        .then_some(word)
}

fn emit(word: &str, skipped: usize, take: &mut OnWord<'_>) {
    let beginning = word.get(..MAX_WORD_CHARS).unwrap_or(word);
    let mut small = [0; MAX_WORD_CHARS];
    match small.get_mut(..beginning.len()) {
        Some(small) if beginning.bytes().any(|byte| byte.is_ascii_uppercase()) => {
            small.copy_from_slice(beginning.as_bytes());
            small.make_ascii_lowercase();
            take(skipped, str::from_utf8(small).unwrap_or_default());
        }
        _ => take(skipped, beginning),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_bytes_are_classified_as_each_byte_alone() {
        for byte in 0..=u8::MAX {
            for index in 0..8 {
                for others in [b' ', b'a', b'/', b'~', 0, 0x7F] {
                    let mut block = [others; 8];
                    block[index] = byte;
                    assert_eq!(
                        has_special(u64::from_le_bytes(block)),
                        is_special(byte),
                        "{byte}"
                    );
                    if !is_special(byte) {
                        let marks = mark_word_bytes(u64::from_le_bytes(block)).to_le_bytes();
                        let expected =
                            block.map(|byte| u8::from(byte.is_ascii_alphanumeric()) << 7);
                        assert_eq!(marks, expected, "{byte}");
                    }
                }
            }
        }
    }
}
