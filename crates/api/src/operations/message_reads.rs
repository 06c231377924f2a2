//! Operations that read a session's messages: one message, a page of a branch, the
//! branches below a message.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::operation::{Agent, Operation, Reply, RunAtOnce};
use crate::session_address::parse_session_id;
use access::{Effect, Needs, permit};
use base::budget::MAX_ANSWER_BYTES;
use base::error::{Error, Result};
use base::ids::Id;
use base::json::JsonObject;
use base::json::Limit;
use chat::run::watchers::load_shown;
use context::for_model::load_page_for_model;
use conversation::log::sessions::session_exists;
use conversation::messages::history::{
    DEFAULT_MAX_BYTES, WalkStart, count_messages, load_newest, load_page,
};
use conversation::messages::page::{HistoryCursor, PageForm, PageQuery};
use conversation::messages::read::{find_message, load_branches, message_at_leaf};
use conversation::messages::tree::leaf::resolve_leaf;
use conversation::messages::tree::path_sums::PathSums;
use conversation::messages::view::Message;
use store::config::{KeepMedia, load_config};

/// The longest page that a caller may request, in bytes.
const MAX_PAGE_BYTES: i64 = 32 << 20;

/// The most bytes of a page, whatever limit the caller sets. A truncated page has
/// `truncated`.
const MAX_HISTORY_BYTES: usize = MAX_ANSWER_BYTES + (3 << 20);

/// A message of the AI SDK as it was appended, with its `createdAt`. The application's own
/// fields are preserved.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("additionalProperties" = true))]
pub struct UiMessage {
    pub id: Id,
    #[schemars(extend("enum" = base::action::Role::OF_MESSAGES.map(base::action::Role::name)))]
    pub role: String,
    pub parts: Vec<JsonObject>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<serde_json::Value>,
    /// Milliseconds since the epoch. A `createdAt` that is not a number, such as a text, is
    /// shown as it was appended.
    pub created_at: serde_json::Value,
}

#[derive(Deserialize, JsonSchema)]
pub struct MessageList {
    pub messages: Vec<UiMessage>,
}

/// A message as an answer; `null` for `None`.
pub fn or_null(message: Option<Message>) -> Reply {
    Reply::text(message.map_or_else(|| "null".to_owned(), |message| message.json))
}

/// Shows a message; `null` if no message has the id.
///
/// A message that is made from more than 4 MiB of events is refused. `loadEvents` reads
/// such events, and the error names the first and the last.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetMessage {
    session_id: Id,
    message_id: Id,
}

impl Operation for GetMessage {
    const NAME: &'static str = "getMessage";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Nothing;
    const IS_LONG: bool = true;
    type Output = Option<UiMessage>;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunAtOnce for GetMessage {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        require_session(agent, &self.session_id)?;
        Ok(or_null(find_message(
            agent.db,
            &self.session_id,
            &self.message_id,
        )?))
    }
}

fn require_session(agent: &Agent<'_>, session_id: &Id) -> Result<()> {
    if session_exists(agent.db, session_id)? {
        return Ok(());
    }
    Err(Error::session_not_found(session_id.as_str()))
}

/// Reads the newest messages of a branch, in root→leaf order: as many as fit into
/// `limit` and `maxBytes`.
///
/// `before` takes the `cursor` of a page and reads the previous page. A page has at most 4
/// MiB, or one message that is longer.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetHistory {
    session_id: Id,
    /// The end of the branch to read. Default: the session's leaf.
    leaf_id: Option<Id>,
    #[serde(default)]
    limit: Limit<100, 1000>,
    #[serde(default)]
    max_bytes: Limit<DEFAULT_MAX_BYTES, MAX_PAGE_BYTES>,
    before: Option<String>,
    /// Returns the messages as a model should receive them: older outputs and texts
    /// shortened, without unloaded documents, and with older files named instead of sent.
    #[serde(default)]
    for_model: bool,
    /// With `forModel`: the number of newest messages whose files are sent. If omitted: the
    /// agent's `keepMedia`.
    keep_media: Option<KeepMedia>,
}

#[derive(Deserialize, JsonSchema)]
pub struct HistoryPage {
    pub messages: Vec<UiMessage>,
    /// Whether there are messages above these.
    pub truncated: bool,
    /// The `before` of the next request; `null` if no message is above these.
    pub cursor: Option<String>,
}

impl Operation for GetHistory {
    const NAME: &'static str = "getHistory";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Nothing;
    const IS_LONG: bool = true;
    type Output = HistoryPage;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunAtOnce for GetHistory {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let ask = PageQuery {
            limit: usize::try_from(self.limit.0).unwrap_or(0),
            max_bytes: usize::try_from(self.max_bytes.0)
                .unwrap_or(0)
                .min(MAX_HISTORY_BYTES),
            form: PageForm::History,
        };
        if self.before.is_none() && self.leaf_id.is_none() && !self.for_model {
            let newest = load_newest(agent.db, &self.session_id, ask)?;
            return Ok(newest.map_or_else(no_messages, |page| Reply::text(page.into_json())));
        }
        let leaf = resolve_leaf(agent.db, &self.session_id, "leafId", self.leaf_id.as_ref())?;
        let start = match &self.before {
            None => WalkStart::At(leaf.unwrap_or(0)),
            Some(before) => {
                let from_seq = HistoryCursor::parse(before)
                    .ok_or_else(|| {
                        Error::invalid(
                            "before",
                            "`before` must be the unchanged `cursor` of an earlier page.",
                        )
                    })?
                    .resolve(agent.db, &self.session_id)?;
                WalkStart::within(agent.db, &self.session_id, from_seq, leaf)?
            }
        };
        if matches!(start, WalkStart::At(0)) {
            return Ok(no_messages());
        }
        let page = if !self.for_model {
            load_page(agent.db, &self.session_id, start, ask)?.into_json()
        } else {
            load_page_for_model(
                agent.db,
                &self.session_id,
                (leaf.unwrap_or(0), start),
                ask,
                keep_media(agent, self.keep_media)?,
            )?
            .into_json()
        };
        Ok(Reply::text(page))
    }
}

/// The page of a session without messages.
fn no_messages() -> Reply {
    let form = PageForm::History;
    Reply::text([form.head(), &form.tail(None)].concat())
}

/// In how many of the newest messages files are sent to a model.
fn keep_media(agent: &Agent<'_>, given: Option<KeepMedia>) -> Result<usize> {
    let keep_media = match given {
        Some(given) => given,
        None => load_config(agent.db, &agent.deployed.memory.config)?.keep_media,
    };
    Ok(usize::try_from(keep_media.0).unwrap_or(0))
}

/// Answers `GET …/get-messages`. Allowed for tokens that may run `getHistory`.
pub fn get_messages(agent: &Agent<'_>, session_id: String) -> Result<Reply> {
    let answer = permit_and_show(agent, &session_id);
    crate::answers::assert_matches_schema("getMessages", &answer);
    answer
}

fn permit_and_show(agent: &Agent<'_>, session_id: &str) -> Result<Reply> {
    let session_id = parse_session_id(session_id)?;
    permit(agent.caller, GetHistory::RULE, Some(&session_id))?;
    load_shown(agent.db, &session_id).map(Reply::text)
}

/// Reads the messages that directly follow a message: its branches.
///
/// If the branches have more than 4 MiB in total, the call is refused. Then read them one by one
/// with `getMessage`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetBranches {
    session_id: Id,
    message_id: Id,
}

impl Operation for GetBranches {
    const NAME: &'static str = "getBranches";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Nothing;
    const IS_LONG: bool = true;
    type Output = MessageList;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunAtOnce for GetBranches {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        require_session(agent, &self.session_id)?;
        let messages = load_branches(agent.db, &self.session_id, &self.message_id)?;
        let messages: Vec<String> = messages.into_iter().map(|message| message.json).collect();
        Ok(Reply::text(format!(
            r#"{{"messages":[{}]}}"#,
            messages.join(",")
        )))
    }
}

/// Shows the last message of the session's default branch; `null` if there is none.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetLatestLeaf {
    session_id: Id,
}

impl Operation for GetLatestLeaf {
    const NAME: &'static str = "getLatestLeaf";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Nothing;
    const IS_LONG: bool = true;
    type Output = Option<UiMessage>;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunAtOnce for GetLatestLeaf {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        match resolve_leaf(agent.db, &self.session_id, "leafId", None)? {
            Some(seq) => Ok(or_null(message_at_leaf(agent.db, &self.session_id, seq)?)),
            None => Ok(or_null(None)),
        }
    }
}

/// Counts the messages of a branch.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetPathLength {
    session_id: Id,
    leaf_id: Option<Id>,
}

#[derive(Serialize, JsonSchema)]
pub struct PathLength {
    length: i64,
}

impl Operation for GetPathLength {
    const NAME: &'static str = "getPathLength";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Nothing;
    type Output = PathLength;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunAtOnce for GetPathLength {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let leaf = resolve_leaf(agent.db, &self.session_id, "leafId", self.leaf_id.as_ref())?;
        let path = PathSums::of(agent.db, &self.session_id, leaf.unwrap_or(0))?;
        let length = match path.whole()?.messages {
            Some(length) => length,
            None => count_messages(agent.db, &self.session_id, path.segments())?,
        };
        Reply::json(&PathLength { length })
    }
}
