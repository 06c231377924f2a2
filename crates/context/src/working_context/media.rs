//! Files in the context. The files of the newest messages are sent to the model. Older
//! files are only named, because each turn would upload and count them again.
//!
//! A tool's output may also contain files, as `data:` URLs. A model can't read these.

use super::window::NumberedMessage;
use base::action::Role;
use base::data_url::find_payload;
use models::attachment::label;
use models::file::File;
use models::message::ContextMessage;

/// `data:` URLs in a tool's output that are longer than this are replaced by a label.
const MAX_URL_BYTES: usize = 1_000;

/// The label of a file that was sent earlier.
pub fn name_file(file: &File) -> String {
    let label = label(file);
    let label = label.strip_suffix(']').unwrap_or(&label);
    format!("{label}; shown earlier, omitted here]")
}

/// Replaces the message's files by their names.
pub fn name_files(message: &mut ContextMessage) {
    if message.files.is_empty() {
        return;
    }
    message.forget_given();
    for file in std::mem::take(&mut message.files) {
        if !message.content.is_empty() {
            message.content.push('\n');
        }
        message.content.push_str(&name_file(&file));
    }
}

/// The `seq` of the newest event whose files are not sent; 0: all are sent. The files of
/// the newest `keep` messages are sent. Consecutive messages of the agent and its tools
/// count as one. `messages` are newest first.
pub fn media_cutoff<'a>(
    messages: impl IntoIterator<Item = &'a NumberedMessage>,
    keep: usize,
) -> i64 {
    let mut count = MessageCount::default();
    messages
        .into_iter()
        .find(|numbered| count.add(numbered.message.role) > keep)
        .map_or(0, |numbered| numbered.seq)
}

/// Counts messages as a reader of the conversation would.
#[derive(Default)]
pub struct MessageCount {
    count: usize,
    is_in_run: bool,
}

impl MessageCount {
    /// Adds the next message; returns the count.
    pub fn add(&mut self, role: Role) -> usize {
        let joins = matches!(role, Role::Assistant | Role::Tool);
        self.count += usize::from(!(joins && self.is_in_run));
        self.is_in_run = joins;
        self.count
    }
}

/// Replaces the files of all messages up to `line` by their names.
pub fn name_older_files(messages: &mut [NumberedMessage], line: i64) {
    for numbered in messages {
        if numbered.seq <= line {
            name_files(&mut numbered.message);
        }
    }
}

/// Replaces long `data:` URLs in a tool's output by labels.
pub fn name_urls(output: &mut String) {
    if output.len() <= MAX_URL_BYTES || !output.contains("data:") {
        return;
    }
    // The pieces between quotes are JSON strings, or the text between two strings.
    let is_named = |piece: &str| piece.len() > MAX_URL_BYTES && find_payload(piece).is_some();
    if !output.split('"').any(is_named) {
        return;
    }
    let pieces: Vec<String> = output
        .split('"')
        .map(|piece| {
            if is_named(piece) {
                let kind = piece.get("data:".len()..).unwrap_or_default();
                let kind: String = kind
                    .chars()
                    .take_while(|c| !",;".contains(*c))
                    .take(100)
                    .collect();
                format!("[a file, {kind}, {} bytes, omitted here]", piece.len())
            } else {
                piece.to_owned()
            }
        })
        .collect();
    *output = pieces.join("\"");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(seq: i64, role: Role) -> NumberedMessage {
        NumberedMessage {
            seq,
            message: ContextMessage::of_text(role, "x".to_owned()),
        }
    }

    #[test]
    fn only_the_newest_messages_send_their_files() {
        use Role::{Assistant, Tool, User};
        let roles = [User, Assistant, Tool, Assistant, User, Assistant, User];
        let messages: Vec<NumberedMessage> = (1..)
            .zip(roles)
            .map(|(seq, role)| numbered(seq, role))
            .collect();
        for (keep, line) in [(1, 6), (2, 5), (3, 4), (4, 1), (5, 0), (100, 0)] {
            assert_eq!(media_cutoff(messages.iter().rev(), keep), line, "{keep}");
        }
    }

    #[test]
    fn an_omitted_file_is_named() {
        let mut message: ContextMessage = serde_json::from_str(
            r#"{"role":"user","content":"See.","files":[
                {"mediaType":"image/png","url":"data:image/png;base64,AAAA","filename":"a.png"},
                {"mediaType":"image/png","url":"https://example.com/b.png"}]}"#,
        )
        .unwrap();
        name_files(&mut message);
        assert!(message.files.is_empty());
        assert_eq!(
            message.content,
            "See.\n[Attachment: a.png, image/png; shown earlier, omitted here]\n[Attachment: \
             image/png, https://example.com/b.png; shown earlier, omitted here]"
        );
    }

    #[test]
    fn a_data_url_in_an_output_is_replaced_by_its_name() {
        let url = format!("data:image/png;base64,{}", "A".repeat(2_000));
        let mut output = format!(r#"{{"a":"{url}","b":"data:,x","c":"\"data:"}}"#);
        name_urls(&mut output);
        assert_eq!(
            output,
            r#"{"a":"[a file, image/png, 2022 bytes, omitted here]","b":"data:,x","c":"\"data:"}"#
        );
        let mut bare = url;
        name_urls(&mut bare);
        assert_eq!(bare, "[a file, image/png, 2022 bytes, omitted here]");
    }
}
