//! Which characters a text may contain to apply without review.
//!
//! The rule this file protects: a model must not read what no rule reads. A rule that compares
//! words sees only letters and digits. A model also reads tag characters, flag letters, Braille,
//! and letters that are hidden between variation selectors. So a text with such characters always
//! needs review. The lists name what is allowed: a character that is in no list, also one from a
//! later Unicode version, is rejected.
//!
//! | allowed | where |
//! |---|---|
//! | letters and digits of any script, but those that are drawn around or instead of plain ones | anywhere |
//! | the signs of ordinary sentences, in every script | anywhere |
//! | space, no-break space, thin and ideographic space, tab, line break | anywhere |
//! | combining marks that spelling needs | after a letter, four at most |
//! | joiners | between two letters of a script that joins, or between two pictures |
//! | symbols and pictures | anywhere; by [`is_symbol`], each counts as a word of its own |
//! | the selector of a picture's color | after a symbol, once |

use std::ops::RangeInclusive;

/// The most combining marks on one letter: Vietnamese needs two, Hebrew and Tibetan three.
const MAX_MARKS: usize = 4;

const JOINER: char = '\u{200D}';
const NON_JOINER: char = '\u{200C}';
const COLOR: char = '\u{FE0F}';

/// Letters and digits by their class that are invisible, or look like other letters.
const DISGUISED: &[RangeInclusive<char>] = &[
    '\u{2B0}'..='\u{2B8}', // small letters above and below other letters
    '\u{2E0}'..='\u{2E4}',
    '\u{363}'..='\u{36F}',
    '\u{115F}'..='\u{1160}', // Hangul fillers
    '\u{3164}'..='\u{3164}', // Hangul filler
    '\u{FFA0}'..='\u{FFA0}', // half-width Hangul filler
    '\u{1D2C}'..='\u{1D6A}', // small letters above and below the line
    '\u{1D78}'..='\u{1D78}',
    '\u{1D9B}'..='\u{1DBF}',
    '\u{1DC0}'..='\u{1DFF}',
    '\u{2071}'..='\u{2071}',
    '\u{207F}'..='\u{207F}',
    '\u{2090}'..='\u{209C}',
    '\u{24B6}'..='\u{24E9}',   // letters in circles
    '\u{10780}'..='\u{107BA}', // small letters above the line
    '\u{1D400}'..='\u{1D7FF}', // letters of mathematics
    '\u{1EE00}'..='\u{1EEFF}', // Arabic letters of mathematics
    '\u{1F100}'..='\u{1F1FF}', // letters in squares and circles, flag letters
];

/// Signs of sentences beyond ASCII.
const SIGNS: &[RangeInclusive<char>] = &[
    '\u{A1}'..='\u{AC}',
    '\u{AE}'..='\u{BF}', // without the soft hyphen
    '\u{D7}'..='\u{D7}',
    '\u{F7}'..='\u{F7}',
    '\u{2B9}'..='\u{2BF}',
    '\u{37E}'..='\u{37E}',
    '\u{387}'..='\u{387}',
    '\u{55A}'..='\u{55F}', // Armenian
    '\u{589}'..='\u{58A}',
    '\u{5BE}'..='\u{5BE}', // Hebrew
    '\u{5C0}'..='\u{5C0}',
    '\u{5C3}'..='\u{5C3}',
    '\u{5F3}'..='\u{5F4}',
    '\u{60C}'..='\u{60D}', // Arabic
    '\u{61B}'..='\u{61B}',
    '\u{61E}'..='\u{61F}',
    '\u{66A}'..='\u{66D}',
    '\u{6D4}'..='\u{6D4}',
    '\u{964}'..='\u{965}', // Indic
    '\u{970}'..='\u{970}',
    '\u{DF4}'..='\u{DF4}',
    '\u{E3F}'..='\u{E3F}', // Thai
    '\u{E4F}'..='\u{E4F}',
    '\u{E5A}'..='\u{E5B}',
    '\u{F04}'..='\u{F14}', // Tibetan
    '\u{F3A}'..='\u{F3D}',
    '\u{104A}'..='\u{104F}', // Burmese
    '\u{10FB}'..='\u{10FB}', // Georgian
    '\u{1360}'..='\u{1368}', // Ethiopic
    '\u{1400}'..='\u{1400}',
    '\u{166E}'..='\u{166E}',
    '\u{17D4}'..='\u{17D6}', // Khmer
    '\u{17D8}'..='\u{17DB}',
    '\u{1800}'..='\u{180A}', // Mongolian, without its selectors
    '\u{2010}'..='\u{2027}',
    '\u{2030}'..='\u{205E}',
    '\u{20A0}'..='\u{20C0}', // currencies
    '\u{2212}'..='\u{2212}',
    '\u{3001}'..='\u{3003}', // Chinese, Japanese, Korean
    '\u{3008}'..='\u{3011}',
    '\u{3014}'..='\u{301F}',
    '\u{3030}'..='\u{3030}',
    '\u{30A0}'..='\u{30A0}',
    '\u{30FB}'..='\u{30FB}',
    '\u{FF01}'..='\u{FF0F}', // the same in full and half width
    '\u{FF1A}'..='\u{FF20}',
    '\u{FF3B}'..='\u{FF40}',
    '\u{FF5B}'..='\u{FF65}',
    '\u{FFE0}'..='\u{FFE6}',
];

/// Symbols and pictures. Each means something to a reader.
const SYMBOLS: &[RangeInclusive<char>] = &[
    '\u{2100}'..='\u{214F}', // ℃ № ™
    '\u{2190}'..='\u{22FF}', // arrows, mathematics
    '\u{231A}'..='\u{231B}', // watch, hourglass
    '\u{23E9}'..='\u{23FA}',
    '\u{25A0}'..='\u{25FF}', // shapes
    '\u{2600}'..='\u{27BF}', // suns, chess, ticks
    '\u{2B05}'..='\u{2B07}',
    '\u{2B1B}'..='\u{2B1C}',
    '\u{2B50}'..='\u{2B55}',
    '\u{3004}'..='\u{3004}',
    '\u{3012}'..='\u{3013}',
    '\u{3200}'..='\u{33FF}', // ㈱ ㎡
    '\u{1F004}'..='\u{1F004}',
    '\u{1F0CF}'..='\u{1F0CF}',
    '\u{1F300}'..='\u{1F64F}', // pictures
    '\u{1F680}'..='\u{1F6FC}',
    '\u{1F7E0}'..='\u{1F7F0}',
    '\u{1F90C}'..='\u{1F9FF}',
    '\u{1FA70}'..='\u{1FAFF}',
];

/// Marks that spelling needs and that Rust does not count as letters.
const MARKS: &[RangeInclusive<char>] = &[
    '\u{300}'..='\u{304}', // Latin, Greek, Cyrillic, Vietnamese
    '\u{306}'..='\u{30C}',
    '\u{30F}'..='\u{30F}',
    '\u{311}'..='\u{315}',
    '\u{31B}'..='\u{31B}',
    '\u{323}'..='\u{328}',
    '\u{32D}'..='\u{331}',
    '\u{342}'..='\u{345}',
    '\u{483}'..='\u{487}',
    '\u{5B0}'..='\u{5BD}', // Hebrew points
    '\u{5BF}'..='\u{5BF}',
    '\u{5C1}'..='\u{5C2}',
    '\u{5C4}'..='\u{5C5}',
    '\u{5C7}'..='\u{5C7}',
    '\u{64B}'..='\u{65F}', // Arabic
    '\u{670}'..='\u{670}',
    '\u{6DF}'..='\u{6E0}',
    '\u{6EA}'..='\u{6EC}',
    '\u{7EB}'..='\u{7F3}', // N'Ko
    '\u{93C}'..='\u{93C}', // Indic: nukta and virama
    '\u{94D}'..='\u{94D}',
    '\u{951}'..='\u{954}',
    '\u{9BC}'..='\u{9BC}',
    '\u{9CD}'..='\u{9CD}',
    '\u{A3C}'..='\u{A3C}',
    '\u{A4D}'..='\u{A4D}',
    '\u{ABC}'..='\u{ABC}',
    '\u{ACD}'..='\u{ACD}',
    '\u{B3C}'..='\u{B3C}',
    '\u{B4D}'..='\u{B4D}',
    '\u{BCD}'..='\u{BCD}',
    '\u{C3C}'..='\u{C3C}',
    '\u{C4D}'..='\u{C4D}',
    '\u{CBC}'..='\u{CBC}',
    '\u{CCD}'..='\u{CCD}',
    '\u{D3B}'..='\u{D3C}',
    '\u{D4D}'..='\u{D4D}',
    '\u{DCA}'..='\u{DCA}',
    '\u{E47}'..='\u{E4E}', // Thai, Lao
    '\u{EBA}'..='\u{EBA}',
    '\u{EC8}'..='\u{ECE}',
    '\u{F18}'..='\u{F19}', // Tibetan
    '\u{F35}'..='\u{F35}',
    '\u{F37}'..='\u{F37}',
    '\u{F39}'..='\u{F39}',
    '\u{F71}'..='\u{F84}',
    '\u{F86}'..='\u{F87}',
    '\u{1037}'..='\u{1037}', // Burmese
    '\u{1039}'..='\u{103A}',
    '\u{1087}'..='\u{108D}',
    '\u{108F}'..='\u{108F}',
    '\u{135D}'..='\u{135F}', // Ethiopic
    '\u{1714}'..='\u{1715}', // Philippine
    '\u{17C9}'..='\u{17D3}', // Khmer
    '\u{17DD}'..='\u{17DD}',
    '\u{1A60}'..='\u{1A60}', // Tai Tham
    '\u{1A75}'..='\u{1A7C}',
    '\u{1B34}'..='\u{1B34}', // Balinese, Sundanese
    '\u{1B44}'..='\u{1B44}',
    '\u{1BAA}'..='\u{1BAB}',
    '\u{2D7F}'..='\u{2D7F}', // Tifinagh
    '\u{3099}'..='\u{309A}', // Japanese
    '\u{A67C}'..='\u{A67D}',
    '\u{A9B3}'..='\u{A9B3}', // Javanese
    '\u{A9C0}'..='\u{A9C0}',
    '\u{ABEC}'..='\u{ABED}',   // Meitei
    '\u{11133}'..='\u{11134}', // Chakma
    '\u{1E944}'..='\u{1E94A}', // Adlam
];

/// The scripts in which a joiner between letters changes their form.
const JOINING: &[RangeInclusive<char>] = &[
    '\u{620}'..='\u{6FF}', // Arabic, Persian, Urdu
    '\u{750}'..='\u{77F}',
    '\u{8A0}'..='\u{8C9}',
    '\u{900}'..='\u{DFF}',   // Indic
    '\u{1000}'..='\u{109F}', // Burmese
    '\u{1780}'..='\u{17DD}', // Khmer
    '\u{1820}'..='\u{1878}', // Mongolian
];

/// How a reader sees a character.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Sign,
    Mark,
    Symbol,
    /// A joiner, or the selector of a picture's color.
    Joining,
    Hidden,
}

fn is_in_ranges(c: char, list: &[RangeInclusive<char>]) -> bool {
    list.iter().any(|range| range.contains(&c))
}

impl Class {
    fn of(c: char) -> Self {
        match c {
            ' '..='~' if c.is_ascii_alphanumeric() => Self::Letter,
            ' '..='~' | '\n' | '\r' | '\t' => Self::Sign,
            '\u{A0}' | '\u{2009}' | '\u{202F}' | '\u{3000}' => Self::Sign,
            JOINER | NON_JOINER | COLOR => Self::Joining,
            c if is_in_ranges(c, DISGUISED) => Self::Hidden,
            c if is_in_ranges(c, MARKS) => Self::Mark,
            c if is_in_ranges(c, SYMBOLS) && !c.is_alphanumeric() => Self::Symbol,
            c if c.is_alphanumeric() => Self::Letter,
            c if is_in_ranges(c, SIGNS) => Self::Sign,
            _ => Self::Hidden,
        }
    }
}

/// Whether this is a symbol or a picture, which no rule about words sees.
pub fn is_symbol(c: char) -> bool {
    !c.is_ascii() && Class::of(c) == Class::Symbol
}

/// The first character of a text that the rules can't read. `None`: the text is plain.
pub fn find_hidden(text: &str) -> Option<char> {
    let mut chars = text.chars().peekable();
    // The character before, and the marks since the last letter.
    let mut before: Option<char> = None;
    let mut marks = 0;
    while let Some(c) = chars.next() {
        let class = Class::of(c);
        let joins = |c: char| is_in_ranges(c, JOINING);
        let is_plain = match class {
            Class::Letter | Class::Sign | Class::Symbol => true,
            Class::Mark => {
                let follows = before.map(Class::of);
                marks += 1;
                marks <= MAX_MARKS && matches!(follows, Some(Class::Letter | Class::Mark))
            }
            Class::Joining => match (c, before, chars.peek().copied()) {
                (COLOR, Some(before), _) => Class::of(before) == Class::Symbol,
                (JOINER, Some(before), Some(after)) if Class::of(after) == Class::Symbol => {
                    before == COLOR || Class::of(before) == Class::Symbol
                }
                (_, Some(before), Some(after)) => joins(before) && joins(after),
                _ => false,
            },
            Class::Hidden => false,
        };
        if !is_plain {
            return Some(c);
        }
        if class != Class::Mark {
            marks = 0;
        }
        before = Some(c);
    }
    None
}

/// Whether rules about words can read all characters of a text.
pub fn is_plain(text: &str) -> bool {
    find_hidden(text).is_none()
}

/// A text as rules about words read it: full-width letters become plain ones, and invisible
/// characters are removed, so that they don't split a word.
pub fn unfolded(text: &str) -> String {
    let plain = text.chars().filter_map(|c| match c {
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(u32::from(c) - 0xFEE0),
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{180B}'..='\u{180F}' => None,
        '\u{200B}' | '\u{200E}'..='\u{200F}' | '\u{202A}'..='\u{202E}' => None,
        '\u{2060}'..='\u{206F}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' => None,
        '\u{E0000}'..='\u{E0FFF}' => None,
        c => Some(c),
    });
    plain.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_in_natural_languages_is_plain() {
        for text in [
            "The user likes window seats, \"always\"; 3.5 € (or £4)!",
            "Größe: 42 – naïve café, cafe\u{301} façade…",
            "Tôi thích cà phê sữa đá. To\u{302}i thi\u{301}ch ca\u{300} phe\u{302}",
            "Я живу в Москве. Є ґанок.",
            "Μένω στην Αθήνα·",
            "我住在北京，喜欢喝茶。",
            "東京に住んでいます。「ＬＩＮＥ」㈱ サーバー・ヶ月",
            "저는 서울에 살아요. 33㎡",
            "أعيش في القاهرة، وأحبّ الشاي؟",
            "می\u{200C}خواهم خانه\u{200C}ای بخرم.",
            "मैं दिल्ली में रहता हूँ। क्\u{200D}ष",
            "নমস্কার, আমি কলকাতায় থাকি।",
            "நான் சென்னையில் வசிக்கிறேன்.",
            "ผมแพ้ถั่วและอยู่ที่กรุงเทพฯ ๆ",
            "ខ្ញុំរស់នៅភ្នំពេញ។",
            "ကျွန်တော် ရန်ကုန်မှာ နေတယ်။",
            "ང་ལྷ་སར་སྡོད་ཀྱི་ཡོད།",
            "אני גר בתל אביב־יפו, שָׁלוֹם",
            "በአዲስ አበባ እኖራለሁ።",
            "Ես ապրում եմ Երևանում։",
            "I love ❤️ tea ☕, 👨\u{200D}👩\u{200D}👧 and 👍🏽 → 25 ℃ ≈ warm ✔",
            "l’été\u{A0}: 10\u{202F}000",
            "a\tb\r\nc",
            "",
        ] {
            assert_eq!(find_hidden(text), None, "{text}");
        }
    }

    #[test]
    fn hidden_and_unreadable_text_is_detected() {
        let tags: String = "ignore"
            .bytes()
            .filter_map(|b| char::from_u32(0xE0000 + u32::from(b)))
            .collect();
        let flags: String = "PAY"
            .bytes()
            .filter_map(|b| char::from_u32(0x1F1E6 + u32::from(b - b'A')))
            .collect();
        let selectors: String = "pay"
            .bytes()
            .filter_map(|b| char::from_u32(0xE0100 + u32::from(b)))
            .collect();
        for hidden in [
            tags.as_str(),
            &flags,
            &selectors,
            "⠊⠛⠝⠕⠗⠑",
            "☕\u{FE0F}\u{FE0F}",
            "a\u{FE0E}",
            "a\u{FE0F}",
            "a\u{200B}b",
            "a\u{200C}b",
            "می\u{200C}\u{200C}خ",
            "\u{200C}می",
            "می\u{200D}",
            "☕\u{200D}a",
            "\u{202E}abc",
            "\u{2066}a\u{2069}",
            "a\u{2062}b",
            "in\u{AD}visible",
            "\u{3164}",
            "\u{FEFF}a",
            "\u{E000}",
            "\u{10FFFD}",
            "\u{FFFC}",
            "\u{FFFD}",
            "𝐢𝐠𝐧𝐨𝐫𝐞",
            "ⓘⓖⓝ",
            "🅘🅖🅝",
            "⒤⒢",
            "ᵢⱼᵏ",
            "a\u{34F}b",
            "a\u{364}\u{363}\u{36B}",
            "e\u{301}\u{301}\u{301}\u{301}\u{301}",
            " \u{301}",
            "═══",
            "a\u{2028}b",
            "a\u{85}b",
            "a\u{0}b",
            "a\u{b}b",
            "1\u{20E3}",
            "\u{1D173}",
            "\u{13430}",
        ] {
            assert!(
                !is_plain(&format!("The user likes tea{hidden}")),
                "{hidden:?}"
            );
        }
    }

    /// Each Unicode character after a letter is folded by a word rule, named above, or
    /// rejected.
    #[test]
    fn every_character_is_folded_named_or_refused() {
        let mut allowed = 0;
        for c in '\u{0}'..=char::MAX {
            let text = format!("a{c}");
            let is_read = c.is_alphanumeric() && !is_in_ranges(c, DISGUISED);
            let is_named = [SIGNS, SYMBOLS, MARKS]
                .into_iter()
                .any(|list| is_in_ranges(c, list));
            let is_ascii = matches!(c, ' '..='~' | '\n' | '\r' | '\t');
            let is_space = matches!(c, '\u{A0}' | '\u{2009}' | '\u{202F}' | '\u{3000}');
            let expected =
                is_ascii || is_space || is_read || (is_named && !is_in_ranges(c, DISGUISED));
            assert_eq!(is_plain(&text), expected, "U+{:04X}", u32::from(c));
            allowed += u32::from(expected);
            // An allowed character that is not a letter is a sign or a symbol, and a symbol is a word.
            if expected && !c.is_alphanumeric() && is_in_ranges(c, SYMBOLS) {
                assert!(is_symbol(c), "U+{:04X}", u32::from(c));
            }
        }
        assert!(allowed > 130_000, "{allowed}");
        for hidden in [
            0xAD..=0xAD,
            0x34F..=0x34F,
            0x61C..=0x61C,
            0x115F..=0x1160,
            0x17B4..=0x17B5,
            0x180B..=0x180F,
            0x200B..=0x200F,
            0x2028..=0x202E,
            0x2060..=0x206F,
            0x2800..=0x28FF,
            0x3164..=0x3164,
            0xE000..=0xF8FF,
            0xFE00..=0xFE0F,
            0xFEFF..=0xFEFF,
            0xFFA0..=0xFFA0,
            0xFFF0..=0xFFFF,
            0x1BCA0..=0x1BCA3,
            0x1D173..=0x1D17A,
            0x1D400..=0x1D7FF,
            0x1F100..=0x1F1FF,
            0xE0000..=0x10FFFF,
        ] {
            for c in hidden.filter_map(char::from_u32) {
                assert!(!is_plain(&format!("a{c}")), "U+{:04X}", u32::from(c));
            }
        }
    }

    #[test]
    fn look_alike_and_split_words_are_folded() {
        assert_eq!(unfolded("ｎｏｔ n\u{AD}o\u{200B}t １２"), "not not 12");
        assert_eq!(unfolded("می\u{200C}خ café"), "می\u{200C}خ café");
    }
}
