//! What of an event is searched: its text, who spoke, and when. The one place
//! that says so; the index, the ranking and the snippets all read it here.

use serde_json::Value;

use super::stem::stem;
use super::words::words;
use crate::data_url::find_payload;

/// Bytes of one event that are searched: the longest message there may be.
const MAX_TEXT_BYTES: usize = 32 << 20;

/// A string in the metadata that is longer says no name.
const MAX_NAME_CHARS: usize = 80;

/// Names taken from one event's metadata.
const MAX_NAMES: usize = 10;

/// In every document, so that their number can be asked for like a word's.
pub const EVERY_DOCUMENT: &str = "\u{E000}";

/// An event as it is stored, whole.
#[derive(Default)]
pub struct EventText<'a> {
    pub action: &'a str,
    pub content: &'a str,
    /// The stored JSON of a tool event.
    pub tool: Option<&'a str>,
    pub metadata: Option<&'a str>,
    /// The inside of a stored message's JSON.
    pub message: Option<&'a str>,
    pub created_at: i64,
    /// For the ranking alone: it may change, and the index would be behind.
    pub session_name: Option<&'a str>,
}

/// What goes into the index, a column each: words with spaces between them.
pub struct Document {
    pub stems: String,
    pub words: String,
    pub about: String,
}

pub fn role_of(action: &str) -> &'static str {
    match action {
        "user_message" => "user",
        "agent_message" | "tool_call_request" => "assistant",
        "tool_result" => "tool",
        _ => "system",
    }
}

/// The text that a reader would see: what was said, what a tool was given, and
/// what it gave.
pub fn text_of(event: &EventText<'_>) -> String {
    let mut text = String::from(event.content);
    if let Some(tool) = event
        .tool
        .and_then(|tool| serde_json::from_str::<Value>(tool).ok())
    {
        for call in tool
            .get("toolCalls")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            add_strings(call.get("name"), &mut text);
            add_strings(call.get("arguments"), &mut text);
        }
        add_strings(tool.get("toolName"), &mut text);
    }
    let message = event
        .message
        .and_then(|fields| serde_json::from_str::<Value>(&format!("{{{fields}}}")).ok());
    let parts = message
        .as_ref()
        .and_then(|message| message.get("parts")?.as_array());
    for part in parts.into_iter().flatten() {
        match part.get("type").and_then(Value::as_str) {
            // Its text is the event's content.
            Some("text") => {}
            Some("reasoning") => add_strings(part.get("text"), &mut text),
            Some(kind) if kind.starts_with("tool-") || kind == "dynamic-tool" => {
                add(kind.strip_prefix("tool-").unwrap_or_default(), &mut text);
                for field in ["toolName", "input", "output", "errorText"] {
                    add_strings(part.get(field), &mut text);
                }
            }
            Some(_) => {
                for field in ["title", "filename", "data"] {
                    add_strings(part.get(field), &mut text);
                }
            }
            None => {}
        }
    }
    if text.len() > MAX_TEXT_BYTES {
        text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
    }
    text
}

/// Every string and number in a JSON value, a line each. Depth was bounded at the door.
fn add_strings(value: Option<&Value>, text: &mut String) {
    match value {
        // Media says no words.
        Some(Value::String(string)) if find_payload(string).is_some() => {}
        Some(Value::String(string)) => add(string, text),
        Some(Value::Number(number)) => add(&number.to_string(), text),
        Some(Value::Array(items)) => items.iter().for_each(|item| add_strings(Some(item), text)),
        Some(Value::Object(fields)) => fields
            .values()
            .for_each(|value| add_strings(Some(value), text)),
        _ => {}
    }
}

fn add(more: &str, text: &mut String) {
    if !more.is_empty() {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(more);
    }
}

/// Who spoke, in which session, and when: words of the event too.
pub fn about(event: &EventText<'_>) -> Vec<String> {
    let mut about = vec![role_of(event.action).to_owned()];
    let metadata = event
        .metadata
        .and_then(|metadata| serde_json::from_str::<Value>(metadata).ok());
    let message = event
        .message
        .and_then(|fields| serde_json::from_str::<Value>(&format!("{{{fields}}}")).ok());
    let of_message = message.as_ref().and_then(|message| message.get("metadata"));
    let names = metadata
        .iter()
        .chain(of_message)
        .filter_map(Value::as_object);
    let names = names
        .flat_map(|fields| fields.values())
        .filter_map(Value::as_str)
        .filter(|name| name.chars().count() <= MAX_NAME_CHARS)
        .take(MAX_NAMES);
    for name in names.chain(event.session_name) {
        about.extend(words(name));
    }
    about.extend(date_words(event.created_at));
    about
}

/// The `name` that an event's metadata gives whoever spoke.
pub fn find_speaker(metadata: Option<&str>, message: Option<&str>) -> Option<String> {
    let own = metadata.and_then(|metadata| serde_json::from_str::<Value>(metadata).ok());
    let message =
        message.and_then(|fields| serde_json::from_str::<Value>(&format!("{{{fields}}}")).ok());
    let of_message = message.as_ref().and_then(|message| message.get("metadata"));
    let mut names = own
        .iter()
        .chain(of_message)
        .filter_map(|metadata| metadata.get("name")?.as_str());
    names
        .find(|name| !name.is_empty() && name.chars().count() <= MAX_NAME_CHARS)
        .map(str::to_owned)
}

pub fn document(event: &EventText<'_>) -> Document {
    let words = words(&text_of(event));
    let stems: Vec<String> = words.iter().map(|word| stem(word)).collect();
    let about = about(event);
    // Stemmed as a query's words are.
    let about: Vec<String> = about.iter().map(|word| stem(word)).collect();
    Document {
        stems: stems.join(" "),
        words: words.join(" "),
        about: format!("{EVERY_DOCUMENT} {}", about.join(" ")),
    }
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

const DAY_MS: i64 = 86_400_000;

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

/// Days since the epoch as year, month and day, in the proleptic Gregorian
/// calendar: counted from a 1 March, so that the leap day is a year's last.
fn civil(days: i64) -> (i64, usize, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month as usize, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_words() {
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
    fn text_is_what_was_said_given_and_got() {
        let event = EventText {
            action: "tool_call_request",
            content: "Let me look.",
            tool: Some(
                r#"{"toolCalls":[{"id":"c1","name":"weather","arguments":{"city":"Oslo","days":[3,{"unit":"C"}]}}]}"#,
            ),
            ..EventText::default()
        };
        assert_eq!(text_of(&event), "Let me look.\nweather\nOslo\n3\nC");
        let event = EventText {
            action: "agent_message",
            content: "Done.",
            message: Some(
                r#""role":"assistant","parts":[{"type":"text","text":"Done."},{"type":"tool-echo","toolCallId":"c9","input":{"a":"in"},"output":"out"}]"#,
            ),
            ..EventText::default()
        };
        assert_eq!(text_of(&event), "Done.\necho\nin\nout");
    }

    #[test]
    fn who_and_when_are_words_too() {
        let event = EventText {
            action: "user_message",
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
