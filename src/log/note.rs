//! What a chat turn knows of an event beside what the event says: how the model
//! came to it, who was asked, of what shape an output is. The message view shows
//! it; `loadEvents` doesn't.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::access::ModelReach;
use crate::base::database::{Database, find_row};
use crate::base::error::{Error, Result};
use crate::base::ids::Id;

/// Bytes of reasoning that are kept of one step.
pub const MAX_REASONING_BYTES: usize = 64 << 10;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Note {
    /// What the model thought before it spoke.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reasoning: String,
    /// With calls: those that wait for the user's approval, and under which name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub approvals: BTreeMap<String, String>,
    /// With calls: what their tools were when the user was asked, for those that
    /// wait for the user's approval.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub asked_of: BTreeMap<String, String>,
    /// With calls: those that the client answers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub client_calls: Vec<String>,
    /// With calls: what the user decided of one whose result is still to come.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub decided: BTreeMap<String, Approval>,
    /// With a result: what the user decided before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// With a result: its content is the JSON of the output, not the output.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_json: bool,
    /// With a call: arguments that were no JSON object, as the model sent them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub bad_arguments: BTreeMap<String, String>,
    /// How far the model reached that said it. Whoever goes on with it reaches no
    /// further.
    #[serde(skip_serializing_if = "ModelReach::is_agent")]
    pub reach: ModelReach,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    pub id: String,
    pub approved: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Note {
    pub fn parse(json: Option<&str>) -> Option<Self> {
        json.map_or_else(
            || Some(Self::default()),
            |json| serde_json::from_str(json).ok(),
        )
    }

    /// `None` where there is nothing to note: a plain event pays no byte for it.
    pub fn json(&self) -> Option<String> {
        if *self == Self::default() {
            return None;
        }
        serde_json::to_string(self).ok()
    }
}

/// The note of an event as it stands now.
pub fn get_note(db: &dyn Database, session_id: &Id, seq: i64) -> Result<Note> {
    let sql = "SELECT note, id
                 FROM cf_agents_events
                WHERE session_id = ?1
                  AND seq = ?2";
    let row = find_row(db, sql, &[session_id.as_str().into(), seq.into()])?
        .ok_or_else(|| Error::storage(format!("event {seq} is missing")))?;
    let (note, id): (Option<&str>, &str) = row.read()?;
    Note::parse(note).ok_or_else(|| Error::corrupt_row(id, "note"))
}
