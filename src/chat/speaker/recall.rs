//! A speaker that takes over where another broke off: an object that was evicted
//! in the middle of a turn has only the chunks that were kept. What they left open
//! has to be closed before anything else is said.

use serde::Deserialize;

use super::{Kind, Place, Speaker};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Said {
    #[serde(rename = "type")]
    kind: String,
    id: Option<String>,
    tool_call_id: Option<String>,
}

impl Speaker {
    /// `chunks`: all that were said of the turn, in their order; `earlier_calls` as
    /// for [`Speaker::new`]. Calls whose arguments broke off stay as they are: the
    /// client shows them as unfinished.
    pub fn recall<'a>(
        earlier_calls: Vec<String>,
        chunks: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let mut speaker = Self::new(earlier_calls);
        for chunk in chunks {
            if let Ok(said) = serde_json::from_str(chunk) {
                speaker.hear(said);
            }
        }
        speaker
    }

    fn hear(&mut self, said: Said) {
        match said.kind.as_str() {
            "start" => self.place = Place::BetweenSteps,
            "start-step" => {
                self.place = Place::InStep;
                self.has_outcome = false;
                self.is_bare = true;
            }
            "finish-step" => self.place = Place::BetweenSteps,
            "text-start" => self.hear_block(Kind::Text, said.id),
            "reasoning-start" => self.hear_block(Kind::Reasoning, said.id),
            "text-end" | "reasoning-end" => self.open = None,
            "finish" | "abort" | "error" => self.place = Place::Ended,
            "tool-output-available"
            | "tool-output-error"
            | "tool-output-denied"
            | "tool-input-error" => self.has_outcome = true,
            _ => {}
        }
        if let Some(id) = said.tool_call_id {
            self.learn(&id);
        }
    }

    fn hear_block(&mut self, kind: Kind, id: Option<String>) {
        self.blocks += 1;
        self.is_bare = false;
        self.open = id.map(|id| (kind, id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::chunks::Chunk;
    use crate::models::{FinishReason, Part};

    fn json(chunks: Vec<Chunk>) -> Vec<String> {
        chunks.iter().map(Chunk::json).collect()
    }

    fn recalled(said: &[String]) -> Speaker {
        Speaker::recall(Vec::new(), said.iter().map(String::as_str))
    }

    #[test]
    fn it_goes_on_exactly_as_the_one_that_broke_off_would_have() {
        let text = |text: &str| Part::Text(text.to_owned());
        let call = Part::Call {
            index: 0,
            id: "c".to_owned(),
            name: "echo".to_owned(),
            arguments: "{}".to_owned(),
        };
        let parts = [
            Part::Reasoning("hm".to_owned()),
            text("a"),
            call,
            text("b"),
            text("c"),
        ];
        for broke_after in 0..=parts.len() {
            let (before, after) = parts.split_at(broke_after);
            let mut first = Speaker::new(Vec::new());
            let mut said = json(first.start("m", None));
            for part in before {
                said.extend(json(first.say(part)));
            }
            let mut second = recalled(&said);
            for part in after {
                assert_eq!(json(second.say(part)), json(first.say(part)));
            }
            assert_eq!(
                json(second.finish(FinishReason::Stop, None)),
                json(first.finish(FinishReason::Stop, None))
            );
        }
    }

    #[test]
    fn what_was_left_open_is_closed_by_a_failure() {
        let said = [
            r#"{"type":"start","messageId":"m"}"#,
            r#"{"type":"start-step"}"#,
            r#"{"type":"text-start","id":"p0"}"#,
            r#"{"type":"text-delta","id":"p0","delta":"half"}"#,
        ]
        .map(str::to_owned);
        assert_eq!(
            json(recalled(&said).fail("It broke off.")),
            [
                r#"{"type":"text-end","id":"p0"}"#,
                r#"{"type":"error","errorText":"It broke off."}"#
            ]
        );
    }

    #[test]
    fn an_ended_turn_stays_ended() {
        for end in [
            r#"{"type":"finish","finishReason":"stop"}"#,
            r#"{"type":"abort"}"#,
            r#"{"type":"error","errorText":"no"}"#,
        ] {
            let said = [r#"{"type":"start","messageId":"m"}"#, end].map(str::to_owned);
            assert!(recalled(&said).has_ended());
        }
    }

    #[test]
    fn outcomes_of_calls_that_were_told_can_still_be_told() {
        let said = [
            r#"{"type":"start","messageId":"m"}"#,
            r#"{"type":"start-step"}"#,
            r#"{"type":"tool-input-available","toolCallId":"c","toolName":"echo","input":{}}"#,
        ]
        .map(str::to_owned);
        assert_eq!(
            json(recalled(&said).output_error("c", "It broke off.")),
            [r#"{"type":"tool-output-error","toolCallId":"c","errorText":"It broke off."}"#]
        );
    }
}
