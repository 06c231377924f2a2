//! Recognizes `data:` URLs and finds where their payload starts. There, media is cut out of
//! messages, search skips the payload, and the token estimate counts it separately.

/// The most bytes of a data URL's head, as in `data:image/png;name=x;base64,`.
const MAX_HEAD_BYTES: usize = 256;

/// The offset of a data URL's payload, directly after the comma. `None`: `text` is not a
/// data URL. The head contains no space, so prose that starts with `data:` is not a data
/// URL.
pub fn find_payload(text: &str) -> Option<usize> {
    let scheme = text.get(..5)?;
    if !scheme.eq_ignore_ascii_case("data:") {
        return None;
    }
    let head = text.as_bytes().iter().take(MAX_HEAD_BYTES);
    let comma = head.clone().position(|byte| *byte == b',')?;
    let is_head = |byte: &u8| byte.is_ascii_graphic() && *byte != b'"';
    head.take(comma).all(is_head).then_some(comma + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_url_has_a_head_and_a_payload() {
        for (text, payload) in [
            ("data:image/png;base64,AAAA", Some(22)),
            ("DATA:,x", Some(6)),
            ("data:text/plain;charset=utf-8;name=a%20b,", Some(41)),
            // As written in JSON that escapes slashes.
            ("data:image\\/png;base64,AA", Some(23)),
            ("data: 1, 2 and 3", None),
            ("data:x", None),
            ("the data:,x", None),
            ("", None),
            ("dät", None),
        ] {
            assert_eq!(find_payload(text), payload, "{text}");
        }
        assert_eq!(
            find_payload(&format!("data:{},", "x".repeat(250))),
            Some(256)
        );
        assert_eq!(find_payload(&format!("data:{},", "x".repeat(251))), None);
    }
}
