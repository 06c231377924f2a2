//! A chat turn's note about an event, in addition to the event's content: the model's reasoning,
//! approvals, the format of an output. The message view includes the note; `loadEvents` doesn't.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use access::{Authority, MemoryScope};
use base::database::{Database, find_row};
use base::error::{Error, Result};
use base::ids::Id;
use base::json::{self, JsonObject};
use base::part::{InputRequest, PartApproval};
use store::limits::PrincipalLimits;

/// Bytes of reasoning that are stored per step.
pub const MAX_REASONING_BYTES: usize = 64 << 10;

/// Bytes of [`ProviderData`] per step. Longer data is not stored.
pub const MAX_PROVIDER_DATA_BYTES: usize = 64 << 10;

/// The data that a provider expects back with a step of its model: signatures of thoughts and of
/// calls, ids of its own. It is opaque here, and is sent only to the model that produced it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProviderData {
    /// The model's name.
    pub by: String,
    pub parts: JsonObject,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Note {
    /// The model's reasoning before its answer.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reasoning: String,
    /// With calls: the calls that wait for the user's approval, with the approval's id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub approvals: BTreeMap<String, String>,
    /// With calls that wait for the user's approval: the fingerprints of their tools when
    /// the user was asked.
    #[serde(rename = "askedOf", skip_serializing_if = "BTreeMap::is_empty")]
    pub fingerprints: BTreeMap<String, String>,
    /// With calls: the calls that the client answers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub client_calls: Vec<String>,
    /// With calls: the user's decisions on calls that have no result yet.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub decided: BTreeMap<String, Approval>,
    /// With calls: the questions that their tools asked the user. A result ends a call's
    /// questions; they stay as a record, without the answers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub questions: BTreeMap<String, Question>,
    /// With calls: those that the user has approved or answered, but no turn has made yet.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub deferred: BTreeSet<String>,
    /// With a result: the user's decision on its call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// With a result: `content` is the output as JSON, not as text.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_json: bool,
    /// With calls: arguments that are not a JSON object, as the model sent them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub bad_arguments: BTreeMap<String, String>,
    /// The scope of the caller who caused the event. It bounds a turn that continues from the
    /// event, and where facts learned from the event are written.
    #[serde(rename = "reach", skip_serializing_if = "MemoryScope::is_agent")]
    pub memory_scope: MemoryScope,
    /// Whether a minted token caused the event.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub by_token: bool,
    /// The limits of that token, which also apply to what is made from the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<PrincipalLimits>,
    /// With a user's message that `runTurn` wrote: the id of the message that answers it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_answer: Option<String>,
    /// With a model's answer: the source of untrusted content that the model read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untrusted: Option<String>,
    /// With a model's answer: the data that its provider expects back.
    #[serde(rename = "kept", skip_serializing_if = "Option::is_none")]
    pub provider_data: Option<ProviderData>,
}

/// The questions that a tool asked the user during a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// The server whose tool asks, by the name given to `defineTool`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The questions by their ids, as clients see them.
    pub requests: JsonObject,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<OpenQuestion>,
}

/// What is needed to repeat a call with the answers. No client sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenQuestion {
    /// The tool's own state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// How many times the call has asked.
    pub round: u32,
    /// The fingerprint of the tool that asked.
    #[serde(rename = "askedOf", default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// Whether the class decided that the call needs no approval.
    #[serde(
        rename = "isSpared",
        default,
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub skips_approval: bool,
    /// The user's answers, until the call is repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<JsonObject>,
}

impl Question {
    /// The record of a question that no answer can follow here.
    #[must_use]
    pub fn closed(self) -> Self {
        Self { open: None, ..self }
    }

    /// Whether the user still has to answer.
    pub fn awaits_answers(&self) -> bool {
        let open = self.open.as_ref();
        open.is_some_and(|open| open.answers.is_none())
    }

    /// The questions of this call, as clients see them.
    pub fn to_part(&self, call_id: &str, tool: &str) -> InputRequest {
        InputRequest {
            tool_call_id: call_id.to_owned(),
            tool: tool.to_owned(),
            server: self.server.clone(),
            requests: self.requests.clone().into_raw(),
            is_closed: !self.awaits_answers(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    pub id: String,
    pub approved: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl From<Approval> for PartApproval {
    fn from(approval: Approval) -> Self {
        Self {
            id: Some(approval.id),
            approved: Some(approval.approved),
            reason: approval.reason,
        }
    }
}

impl Note {
    pub fn parse(json: Option<&str>) -> Option<Self> {
        json.map_or_else(|| Some(Self::default()), |json| json::decode(json).ok())
    }

    /// The note of an event that this authority caused.
    pub fn of(authority: Authority) -> Self {
        Self::default().with_authority(authority)
    }

    /// The note of an event that an operation writes. `None`: full authority needs no note.
    pub fn of_caller(authority: &Authority) -> Option<Self> {
        (!authority.is_full()).then(|| Self::of(authority.clone()))
    }

    #[must_use]
    pub fn with_authority(self, authority: Authority) -> Self {
        Self {
            memory_scope: authority.memory_scope,
            by_token: authority.is_token,
            limits: authority.limits,
            ..self
        }
    }

    pub fn authority(&self) -> Authority {
        Authority {
            is_token: self.by_token,
            memory_scope: self.memory_scope,
            limits: self.limits.clone(),
        }
    }

    /// The note of a text that both authorities caused. Has nothing else of the two notes.
    pub fn joined(&self, last: &Self) -> Self {
        Self::of(self.authority().joined(last.authority()))
    }

    /// The note in another log, where no answer can continue its calls.
    #[must_use]
    pub fn closed(self) -> Self {
        let questions = self.questions.into_iter();
        Self {
            questions: questions
                .map(|(id, question)| (id, question.closed()))
                .collect(),
            deferred: BTreeSet::new(),
            ..self
        }
    }

    /// `None` if the note is empty: the event then stores no note.
    pub fn json(&self) -> Option<String> {
        if *self == Self::default() {
            return None;
        }
        json::encode(self).ok()
    }
}

/// The current note of an event.
pub fn get_note(db: &dyn Database, session_id: &Id, seq: i64) -> Result<Note> {
    find_note(db, session_id, seq)?.ok_or_else(|| Error::storage(format!("event {seq} is missing")))
}

/// The current note of an event. `None`: the event no longer exists.
pub fn find_note(db: &dyn Database, session_id: &Id, seq: i64) -> Result<Option<Note>> {
    let sql = "SELECT note, id
                 FROM cf_agents_events
                WHERE session_id = ?1
                  AND seq = ?2";
    let Some(row) = find_row(db, sql, &[session_id.as_str().into(), seq.into()])? else {
        return Ok(None);
    };
    let (note, id): (Option<&str>, &str) = row.read()?;
    let note = Note::parse(note).ok_or_else(|| Error::corrupt_row(id, "note"))?;
    Ok(Some(note))
}
