//! Decides which parts of an event are searched: its text, who spoke, and when. The
//! index, the ranking and the snippets all read these parts through this file.

use std::borrow::Cow;

use super::skim::{decode, fields, items, scalars, text};
use super::stem::stem;
use super::words::words;
use base::action::Role;
use base::data_url::find_payload;
use base::days::{DAY_MS, civil};
use base::part::{PartKind, field};

/// The most bytes of an event's text that are searched, and of each body that is read for
/// the text. The longest message may have as many: more than a million words.
pub const MAX_TEXT_BYTES: usize = 8 << 20;

/// A longer string in the metadata does not count as a name.
const MAX_NAME_CHARS: usize = 80;

/// The most names taken from one event's metadata.
const MAX_NAMES: usize = 10;

/// A word that every document contains. The number of documents is counted like any word.
pub const EVERY_DOCUMENT: &str = "\u{E000}";

/// The fields of a tool's part that are searched, in addition to the tool's name.
const TOOL_FIELDS: &[&str] = &[
    field::TOOL_NAME,
    field::INPUT,
    field::OUTPUT,
    field::ERROR_TEXT,
];

/// An event as it is stored, whole.
#[derive(Default)]
pub struct EventText<'a> {
    pub role: Role,
    pub content: &'a str,
    /// The stored JSON of a tool event.
    pub tool: Option<&'a str>,
    pub metadata: Option<&'a str>,
    /// The inside of a stored message's JSON.
    pub message: Option<&'a str>,
    pub created_at: i64,
    /// Only for the ranking: the name may change, and the index would keep the old name.
    pub session_name: Option<&'a str>,
}

/// The text that a reader would see: what was said, a tool's input, and the tool's output. At most
/// `max_bytes` of it.
pub fn text_of(event: &EventText<'_>, max_bytes: usize) -> String {
    let mut text = String::new();
    read_text(event, max_bytes, &mut |piece| text.push_str(piece));
    text
}

/// The text of a stored message's writer: its text parts, or its content if it has no parts. No
/// name, title or content of a file, and nothing of a tool's. At most `max_bytes` of it.
pub fn written_text_of(message: &str, max_bytes: usize) -> String {
    let mut text = String::new();
    let mut emitter = LineCollector {
        emit: &mut |piece| text.push_str(piece),
        left: max_bytes,
        has_emitted: false,
    };
    let message = bounded(message);
    if fields(message).any(|(name, _)| name == "parts") {
        emitter.emit_text_parts(message);
    } else if fields(message)
        .any(|(name, value)| name == "content" && value.trim_start().starts_with('"'))
    {
        emitter.emit_fields(message, &["content"]);
    }
    text
}

/// Like [`text_of`], but passes the text on in pieces, without copying it.
pub fn read_text(event: &EventText<'_>, max_bytes: usize, emit: &mut dyn FnMut(&str)) {
    let mut emitter = LineCollector {
        emit,
        left: max_bytes,
        has_emitted: false,
    };
    match event.message.map(bounded) {
        // The message's text is also the event's content, but the row of a long message lacks the
        // content.
        Some(message) => emitter.emit_message(message),
        None => emitter.emit_line(&mut |emitter| emitter.piece(bounded(event.content))),
    }
    for (name, value) in event.tool.map(bounded).into_iter().flat_map(fields) {
        match name.as_ref() {
            "toolCalls" => {
                for call in items(value) {
                    emitter.emit_fields(call, &["name", "arguments"]);
                }
            }
            "toolName" => emitter.emit_scalars(value),
            _ => {}
        }
    }
}

fn bounded(body: &str) -> &str {
    body.get(..body.floor_char_boundary(MAX_TEXT_BYTES))
        .unwrap_or(body)
}

/// Passes a text on as lines, until `left` bytes are used up.
struct LineCollector<'a> {
    emit: &'a mut dyn FnMut(&str),
    left: usize,
    has_emitted: bool,
}

impl LineCollector<'_> {
    fn emit_message(&mut self, message: &str) {
        if !fields(message).any(|(name, _)| name == "parts") {
            return self.emit_fields(message, &["content"]);
        }
        self.emit_text_parts(message);
        for part in parts_of(message) {
            match kind_of(part).as_deref().map(PartKind::parse) {
                Some(PartKind::Text) | None => {}
                Some(PartKind::Reasoning) => self.emit_fields(part, &[field::TEXT]),
                Some(kind @ (PartKind::Tool(_) | PartKind::DynamicTool)) => {
                    let name = kind.find_tool(None).unwrap_or_default();
                    self.emit_line(&mut |emitter| emitter.piece(name));
                    self.emit_fields(part, TOOL_FIELDS);
                }
                Some(PartKind::File | PartKind::StepStart | PartKind::Other) => {
                    self.emit_fields(part, &["title", "filename", "data"]);
                }
            }
        }
    }

    fn emit_text_parts(&mut self, message: &str) {
        for part in parts_of(message) {
            if kind_of(part).as_deref().map(PartKind::parse) == Some(PartKind::Text) {
                self.emit_fields(part, &[field::TEXT]);
            }
        }
    }

    /// Passes on the values of the named fields, in the order of `names`.
    fn emit_fields(&mut self, object: &str, names: &[&str]) {
        for name in names {
            let named = fields(object).find(|(field, _)| field == name);
            if let Some((_, value)) = named.filter(|_| self.left > 0) {
                self.emit_scalars(value);
            }
        }
    }

    /// Passes on every string and number of a JSON value, one per line.
    fn emit_scalars(&mut self, json: &str) {
        scalars(json, &mut |scalar, is_string| {
            // Media contains no words.
            if self.left > 0 && find_payload(scalar).is_none() {
                self.emit_line(&mut |emitter| {
                    if is_string {
                        decode(scalar, &mut |piece| emitter.piece(piece));
                    } else {
                        emitter.piece(scalar);
                    }
                });
            }
        });
    }

    fn emit_line(&mut self, emit: &mut dyn FnMut(&mut Self)) {
        if self.has_emitted {
            self.piece("\n");
        }
        let before = self.left;
        emit(self);
        self.has_emitted |= self.left < before;
    }

    fn piece(&mut self, text: &str) {
        let fitting = text
            .get(..text.floor_char_boundary(self.left))
            .unwrap_or_default();
        // A cut ends the text, even if a later, shorter piece would still fit.
        self.left = if fitting.len() == text.len() {
            self.left - fitting.len()
        } else {
            0
        };
        let text = fitting;
        if !text.is_empty() {
            (self.emit)(text);
        }
    }
}

fn parts_of(message: &str) -> impl Iterator<Item = &str> {
    let parts = fields(message).find(|(name, _)| name == "parts");
    parts.into_iter().flat_map(|(_, parts)| items(parts))
}

fn kind_of(part: &str) -> Option<Cow<'_, str>> {
    let (_, kind) = fields(part).find(|(name, _)| name == field::KIND)?;
    text(kind)
}

/// The words for who spoke, in which session and when. A search finds the event by them,
/// too.
pub fn about(event: &EventText<'_>) -> Vec<String> {
    let mut about = vec![event.role.name().to_owned()];
    let names = metadata_of(event.metadata, event.message)
        .filter_map(|(_, value)| text(value))
        .filter(|name| name.chars().count() <= MAX_NAME_CHARS)
        .take(MAX_NAMES);
    for name in names {
        about.extend(words(&name));
    }
    about.extend(event.session_name.map(words).unwrap_or_default());
    about.extend(date_words(event.created_at));
    about
}

/// The speaker's `name` from an event's metadata.
pub fn find_speaker(metadata: Option<&str>, message: Option<&str>) -> Option<String> {
    metadata_of(metadata, message)
        .filter(|(name, _)| name == "name")
        .filter_map(|(_, value)| text(value))
        .find(|name| !name.is_empty() && name.chars().count() <= MAX_NAME_CHARS)
        .map(Cow::into_owned)
}

/// The fields of the event's metadata, then those of its message's metadata.
fn metadata_of<'a>(
    metadata: Option<&'a str>,
    message: Option<&'a str>,
) -> impl Iterator<Item = (Cow<'a, str>, &'a str)> {
    let of_message = message
        .map(bounded)
        .and_then(|message| fields(message).find(|(name, _)| name == "metadata"))
        .map(|(_, value)| value);
    metadata
        .map(bounded)
        .into_iter()
        .chain(of_message)
        .flat_map(fields)
}

/// The index column for who, where and when. Its words are stemmed like a query's words.
pub fn about_column(event: &EventText<'_>) -> String {
    let about: Vec<String> = about(event).iter().map(|word| stem(word)).collect();
    format!("{EVERY_DOCUMENT} {}", about.join(" "))
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

const WEEKDAYS: [&str; 7] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];

/// `2023 may 8 monday`, in UTC.
fn date_words(ms: i64) -> Vec<String> {
    let days = ms.div_euclid(DAY_MS);
    let (year, month, day) = civil(days);
    // The epoch was a Thursday.
    let weekday = (days + 3).rem_euclid(7) as usize;
    let mut words = vec![year.to_string(), day.to_string()];
    words.extend(MONTHS.get(month - 1).map(|name| (*name).to_owned()));
    words.extend(WEEKDAYS.get(weekday).map(|name| (*name).to_owned()));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_indexed_as_words() {
        for (ms, expected) in [
            (0, ["1970", "1", "january", "thursday"]),
            (1_683_554_160_000, ["2023", "8", "may", "monday"]),
            (951_782_400_000, ["2000", "29", "february", "tuesday"]),
            (4_107_542_399_000, ["2100", "28", "february", "sunday"]),
        ] {
            assert_eq!(date_words(ms), expected);
        }
    }

    #[test]
    fn text_includes_messages_tool_inputs_and_results() {
        let event = EventText {
            role: Role::Assistant,
            content: "Let me look.",
            tool: Some(
                r#"{"toolCalls":[{"id":"c1","name":"weather","arguments":{"city":"Oslo","days":[3,{"unit":"C"}]}}]}"#,
            ),
            ..EventText::default()
        };
        assert_eq!(
            text_of(&event, MAX_TEXT_BYTES),
            "Let me look.\nweather\nOslo\n3\nC"
        );
        let event = EventText {
            role: Role::Assistant,
            content: "Done.",
            message: Some(
                r#""role":"assistant","parts":[{"type":"text","text":"Done."},{"type":"tool-echo","toolCallId":"c9","input":{"a":"in"},"output":"out"}]"#,
            ),
            ..EventText::default()
        };
        assert_eq!(text_of(&event, MAX_TEXT_BYTES), "Done.\necho\nin\nout");
    }

    #[test]
    fn reading_stops_at_the_requested_length() {
        let event = EventText {
            content: "ab\u{e9}d",
            tool: Some(r#"{"toolName":"echo"}"#),
            ..EventText::default()
        };
        for (most, text) in [
            (0, ""),
            (3, "ab"),
            (4, "ab\u{e9}"),
            (6, "ab\u{e9}d\n"),
            (99, "ab\u{e9}d\necho"),
        ] {
            assert_eq!(text_of(&event, most), text);
        }
    }

    #[test]
    fn speaker_and_date_are_indexed_as_words() {
        let event = EventText {
            role: Role::User,
            metadata: Some(r#"{"speaker":"Caroline Berg","n":5}"#),
            session_name: Some("Trip to Oslo"),
            ..EventText::default()
        };
        assert_eq!(
            about(&event),
            [
                "user", "caroline", "berg", "trip", "to", "oslo", "1970", "1", "january",
                "thursday"
            ]
        );
    }
}
