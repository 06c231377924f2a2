//! The headers of the W3C's Trace Context.

use std::rc::Rc;

use super::ids::{SpanId, TraceId};

/// Bytes of a `traceparent`: a version, a trace, a span and flags.
const TRACEPARENT_BYTES: usize = 55;

/// The most bytes of a `tracestate`, and the most entries. The specification requires every service
/// to pass on that much.
const MAX_STATE_BYTES: usize = 512;
const MAX_STATE_ENTRIES: usize = 32;

const SAMPLED: u8 = 1;

/// The span that a caller named.
#[derive(Clone, Debug, PartialEq)]
pub struct CallerSpan {
    pub id: TraceId,
    pub span: SpanId,
    pub is_sampled: bool,
    pub state: Option<Rc<str>>,
}

/// Reads the headers. A header that is not in the strict form counts as absent.
pub fn parse_parent(traceparent: Option<&str>, tracestate: Option<&str>) -> Option<CallerSpan> {
    let text = traceparent.filter(|text| text.len() == TRACEPARENT_BYTES)?;
    let mut parts = text.split('-');
    let [version] = parse_hex(parts.next()?)?;
    let id: [u8; 16] = parse_hex(parts.next()?)?;
    let span: [u8; 8] = parse_hex(parts.next()?)?;
    let [flags] = parse_hex(parts.next()?)?;
    let is_valid = version != 0xff && id != [0; 16] && span != [0; 8] && parts.next().is_none();
    is_valid.then(|| CallerSpan {
        id: TraceId(id),
        span: SpanId(span),
        is_sampled: flags & SAMPLED != 0,
        state: tracestate.filter(|state| is_state(state)).map(Rc::from),
    })
}

/// Reads lower-case hexadecimal digits, exactly as many as fit.
fn parse_hex<const BYTES: usize>(text: &str) -> Option<[u8; BYTES]> {
    if text.len() != 2 * BYTES {
        return None;
    }
    let mut bytes = [0; BYTES];
    let (pairs, _) = text.as_bytes().as_chunks::<2>();
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

/// Whether a text has the form of a `tracestate`: entries with a name and a value.
fn is_state(state: &str) -> bool {
    let is_value = |value: &str| {
        let is_char = |byte| matches!(byte, 0x20..=0x7e) && !matches!(byte, b',' | b'=');
        (1..=256).contains(&value.len()) && value.bytes().all(is_char) && !value.ends_with(' ')
    };
    let is_name = |name: &str| {
        let is_char =
            |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/' | b'@');
        (1..=256).contains(&name.len()) && name.bytes().all(is_char)
    };
    let is_entry = |entry: &str| {
        let entry = entry.trim_matches([' ', '\t']);
        let parts = entry.split_once('=');
        parts.is_some_and(|(name, value)| is_name(name) && is_value(value))
    };
    state.len() <= MAX_STATE_BYTES
        && state.split(',').count() <= MAX_STATE_ENTRIES
        && state.split(',').all(is_entry)
}

pub fn render_hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
    digits.collect()
}

pub fn render_traceparent(id: TraceId, span: SpanId, is_sampled: bool) -> String {
    let (id, span) = (render_hex(&id.0), render_hex(&span.0));
    format!("00-{id}-{span}-0{}", u8::from(is_sampled))
}

/// The id of a span, parsed from its digits.
pub fn parse_span(text: &str) -> Option<SpanId> {
    parse_hex(text).map(SpanId)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn only_a_strict_traceparent_is_accepted() {
        let parent = parse_parent(Some(GOOD), None).unwrap();
        assert!(parent.is_sampled && parent.state.is_none());
        let unsampled = GOOD.replace("-01", "-00");
        assert!(!parse_parent(Some(&unsampled), None).unwrap().is_sampled);
        let later = GOOD.replacen("00-", "cc-", 1);
        assert!(parse_parent(Some(&later), None).is_some());
        for bad in [
            "",
            "00",
            &GOOD.to_uppercase(),
            &GOOD.replacen("00-", "ff-", 1),
            &format!("{GOOD}-"),
            &format!(" {}", &GOOD[..54]),
            &GOOD.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            &GOOD.replace("00f067aa0ba902b7", &"0".repeat(16)),
            &GOOD.replace("4bf92f35", "4bf92f3g"),
            &GOOD.replace('-', "_"),
            &"é".repeat(27),
            "00-4bf92f3577b34da6a3ce929d0e0e473-000f067aa0ba902b7-01",
        ] {
            assert_eq!(parse_parent(Some(bad), None), None, "{bad}");
        }
        assert_eq!(parse_parent(None, Some("a=1")), None);
    }

    #[test]
    fn a_valid_tracestate_is_forwarded_and_others_are_dropped() {
        let state = |state: &str| {
            let parent = parse_parent(Some(GOOD), Some(state)).unwrap();
            parent.state.map(|state| state.to_string())
        };
        for good in ["a=1", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", "a@b=x y"] {
            assert_eq!(state(good).as_deref(), Some(good));
        }
        let many = vec!["a=1"; 33].join(",");
        let long = format!("a={}", "x".repeat(511));
        for bad in [
            "",
            "a",
            "a=",
            "A=1",
            "a=é",
            "a=1\r\nx: y",
            "a=1,,",
            &many,
            &long,
        ] {
            assert_eq!(state(bad), None, "{bad}");
        }
    }
}
