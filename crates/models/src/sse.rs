//! Parses server-sent events from bytes that may be cut anywhere: within a character,
//! between CR and LF, in the middle of a field. The events are the same wherever the cuts
//! are.
//!
//! The parser doesn't interpret the events. It also returns an event that the end of the stream
//! cuts off, which the standard would drop: servers forget the last blank line, and the decoder
//! decides whether an answer is whole.

/// The most bytes of one line. The longest line that a provider sends is an image that it made, in
/// base64.
pub const MAX_LINE_BYTES: usize = 4 << 20;

/// The most bytes of one event's `data` lines together.
pub const MAX_EVENT_BYTES: usize = MAX_LINE_BYTES;

/// The most bytes of an event's id. A longer one is ignored.
const MAX_ID_BYTES: usize = 1_000;

const BYTE_ORDER_MARK: &str = "\u{feff}";

#[derive(Debug, PartialEq)]
pub struct SseEvent {
    /// Empty if the stream has no name for it.
    pub name: String,
    /// Its `data` lines, joined by line feeds.
    pub data: String,
}

/// A line or an event is longer than its limit.
#[derive(Debug, PartialEq)]
pub struct TooLong;

#[derive(Default)]
pub struct Parser {
    line: Vec<u8>,
    /// The last byte was a CR: an LF that follows is part of the same line ending.
    after_cr: bool,
    has_started: bool,
    name: String,
    data: Option<String>,
    /// The id of the event that is being read.
    id: Option<String>,
    last_id: Option<String>,
    retry_ms: Option<i64>,
}

impl Parser {
    /// The id of the last whole event that had one. A client sends it when it reconnects.
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// How long a client must wait before it reconnects, according to the stream.
    pub fn retry_ms(&self) -> Option<i64> {
        self.retry_ms
    }

    /// The events that these bytes complete.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<SseEvent>, TooLong> {
        let mut events = Vec::new();
        for byte in bytes {
            let after_cr = std::mem::take(&mut self.after_cr);
            match byte {
                b'\n' if after_cr => {}
                b'\n' | b'\r' => {
                    self.after_cr = *byte == b'\r';
                    let is_whole = self.line.is_empty();
                    events.extend(self.end_line()?);
                    if is_whole && self.id.is_some() {
                        self.last_id = self.id.take();
                    }
                }
                _ if self.line.len() >= MAX_LINE_BYTES => return Err(TooLong),
                _ => self.line.push(*byte),
            }
        }
        Ok(events)
    }

    /// The event that the end of the stream cuts off, if any.
    pub fn end(&mut self) -> Result<Option<SseEvent>, TooLong> {
        // A last line without a line end counts as a line.
        let last = self.end_line()?;
        Ok(last.or_else(|| self.take_event()))
    }

    fn end_line(&mut self) -> Result<Option<SseEvent>, TooLong> {
        let bytes = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&bytes);
        let mut line = text.as_ref();
        if !std::mem::replace(&mut self.has_started, true) {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.is_empty() {
            return Ok(self.take_event());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => self.add_data(value)?,
            "event" => value.clone_into(&mut self.name),
            "id" if value.len() <= MAX_ID_BYTES && !value.contains('\0') => {
                self.id = Some(value.to_owned());
            }
            "retry" if value.bytes().all(|byte| byte.is_ascii_digit()) => {
                self.retry_ms = value.parse().ok().or(self.retry_ms);
            }
            // Comments keep a connection alive.
            _ => {}
        }
        Ok(None)
    }

    fn add_data(&mut self, value: &str) -> Result<(), TooLong> {
        let data = match &mut self.data {
            Some(data) => {
                data.push('\n');
                data
            }
            None => self.data.insert(String::new()),
        };
        if data.len() + value.len() > MAX_EVENT_BYTES {
            return Err(TooLong);
        }
        data.push_str(value);
        Ok(())
    }

    fn take_event(&mut self) -> Option<SseEvent> {
        let name = std::mem::take(&mut self.name);
        self.data.take().map(|data| SseEvent { name, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_event_id_and_the_retry_delay_are_tracked() {
        let mut parser = Parser::default();
        assert_eq!((parser.last_id(), parser.retry_ms()), (None, None));
        // An event may have an id and no data, and one that is cut off does not count.
        parser
            .push(b"id: a\nretry: 500\n\ndata: x\n\nid: b")
            .unwrap();
        assert_eq!(
            (parser.last_id(), parser.retry_ms()),
            (Some("a"), Some(500))
        );
        parser.push(b"\nretry: soon\n\r\n").unwrap();
        assert_eq!(
            (parser.last_id(), parser.retry_ms()),
            (Some("b"), Some(500))
        );
        let long = format!("id: {}\n\n", "x".repeat(MAX_ID_BYTES + 1));
        parser.push(long.as_bytes()).unwrap();
        assert_eq!(parser.last_id(), Some("b"));
    }

    fn parse(chunks: &[&[u8]]) -> Vec<(String, String)> {
        let mut parser = Parser::default();
        let mut events = Vec::new();
        for chunk in chunks {
            events.extend(parser.push(chunk).unwrap());
        }
        events.extend(parser.end().unwrap());
        events
            .into_iter()
            .map(|event| (event.name, event.data))
            .collect()
    }

    fn data(text: &str) -> Vec<String> {
        parse(&[text.as_bytes()])
            .into_iter()
            .map(|(_, data)| data)
            .collect()
    }

    #[test]
    fn a_blank_line_ends_an_event_with_any_line_ending() {
        for (text, expected) in [
            ("data: a\n\ndata: b\n\n", ["a", "b"]),
            ("data: a\r\n\r\ndata: b\r\n\r\n", ["a", "b"]),
            ("data: a\r\rdata: b\r\r", ["a", "b"]),
            ("data:a\n\r\ndata: b\r\n\n", ["a", "b"]),
            ("\n\n\ndata: a\n\n\n\ndata: b\n\n", ["a", "b"]),
        ] {
            assert_eq!(data(text), expected, "{text:?}");
        }
    }

    #[test]
    fn data_lines_are_joined_and_one_leading_space_is_removed() {
        assert_eq!(data("data: a\ndata:  b\ndata\ndata:\n\n"), ["a\n b\n\n"]);
    }

    #[test]
    fn comments_and_unknown_fields_are_ignored() {
        assert_eq!(
            data(": keep-alive\n\nid: 1\nretry: 5\nfoo: x\ndata: a\n:\n\n: bye\n\n"),
            ["a"]
        );
    }

    #[test]
    fn an_event_name_applies_to_one_event() {
        assert_eq!(
            parse(&[b"event: ping\ndata: {}\n\ndata: x\n\nevent: only a name\n\n"]),
            [
                ("ping".to_owned(), "{}".to_owned()),
                (String::new(), "x".to_owned())
            ]
        );
    }

    #[test]
    fn a_byte_order_mark_is_not_part_of_the_first_field() {
        assert_eq!(data("\u{feff}data: a\n\n"), ["a"]);
    }

    #[test]
    fn the_last_event_needs_no_blank_line() {
        assert_eq!(data("data: a\n\ndata: b"), ["a", "b"]);
        assert_eq!(data("data: a\n\ndata: b\n"), ["a", "b"]);
        assert_eq!(data(""), Vec::<String>::new());
    }

    #[test]
    fn chunk_boundaries_do_not_matter() {
        let text =
            "\u{feff}: hi\r\nevent: e\r\ndata: é €\rdata: \u{1F600}\n\ndata: b\r\n\r\ndata: c";
        let expected = parse(&[text.as_bytes()]);
        assert_eq!(expected.len(), 3);
        for cut in 0..=text.len() {
            let (head, tail) = text.as_bytes().split_at(cut);
            assert_eq!(parse(&[head, tail]), expected, "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(parse(&bytes), expected);
    }

    #[test]
    fn lines_and_events_are_limited_in_length() {
        let line = |bytes: usize| format!("data: {}\n\n", "x".repeat(bytes - 6));
        assert!(
            Parser::default()
                .push(line(MAX_LINE_BYTES).as_bytes())
                .is_ok()
        );
        assert_eq!(
            Parser::default().push(line(MAX_LINE_BYTES + 1).as_bytes()),
            Err(TooLong)
        );
        let lines = format!("data: {}\n", "x".repeat(MAX_EVENT_BYTES / 4)).repeat(4);
        assert_eq!(Parser::default().push(lines.as_bytes()), Err(TooLong));
    }
}
