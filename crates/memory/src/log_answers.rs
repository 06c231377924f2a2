//! Finds the copies of a document in a log: results of `load_context`, and message parts
//! that contain such a call with its result.
//!
//! Invariant: a result is matched to a call by position, because models reuse ids
//! (`models/call_ids.rs`). It belongs to the newest event above it on its path that has an
//! open call with its id, and to the first such call of that event. The message view uses
//! the same rule.

use std::collections::{BTreeMap, BTreeSet};

use super::label::Label;
use base::database::Database;
use base::error::Result;
use base::ids::Id;
use base::json::{self, RawValue};
use base::part::PartOfCall;
use conversation::log::logged_calls::{load_callers, load_calling, load_results};
use conversation::log::row::get_event_text;
use conversation::log::tool::{RenderedTool, ShownCall};
use conversation::messages::erased_results::calls_in;
use conversation::messages::tree::path::Branches;

/// The text that replaces an erased document.
pub const ERASED: &str = "[This document was erased.]";

/// The tool whose results are documents.
const TOOL: &str = "load_context";

/// The document whose copies are searched for in a log.
pub struct TargetDocument<'a> {
    pub label: &'a Label,
    /// `None`: all documents of the block.
    pub key: Option<&'a str>,
    /// Only copies requested until this time. `None`: at any time.
    pub until_ms: Option<i64>,
    /// Whether the document is the agent's. Then copies in the context with the text of the
    /// session's own document of this key are excluded.
    pub is_agents: bool,
}

/// Where copies of the document were found.
#[derive(Default)]
pub struct FoundAnswers {
    /// The `seq` of results.
    pub results: BTreeSet<i64>,
    /// The message parts that contain a result, by the `seq` of the message.
    pub parts: BTreeMap<i64, BTreeSet<usize>>,
}

impl FoundAnswers {
    pub fn seqs(&self) -> BTreeSet<i64> {
        let messages = self.parts.keys();
        self.results.iter().chain(messages).copied().collect()
    }

    pub fn count(&self) -> i64 {
        let parts = self.parts.values().map(BTreeSet::len);
        (self.results.len() + parts.sum::<usize>()) as i64
    }

    fn add(&mut self, call: &LoggedCall) {
        match call.part {
            Some(part) => {
                self.parts.entry(call.seq).or_default().insert(part);
            }
            None => {
                self.results.insert(call.seq);
            }
        }
    }
}

/// A call or a result in a log.
struct LoggedCall {
    seq: i64,
    /// The index of a message's part. `None`: the event itself.
    part: Option<usize>,
    state: LoggedState,
}

enum LoggedState {
    /// A call without a result. `loads`: whether it requests the document.
    Open { loads: bool },
    /// A call with its result, in one message part.
    Answered { loads: bool, is_erased: bool },
    /// A result. `is_context`: whether it is a result of `load_context`. `is_erased`:
    /// whether its content was erased.
    Result { is_context: bool, is_erased: bool },
}

/// Finds the copies of a document in a session's log.
pub fn find_answers(
    db: &dyn Database,
    session_id: &Id,
    sought: &TargetDocument<'_>,
) -> Result<FoundAnswers> {
    let log = AnswerSearch {
        db,
        session_id,
        sought,
    };
    let mut by_id: BTreeMap<String, Vec<LoggedCall>> = BTreeMap::new();
    let loading = load_calling(db, session_id, TOOL)?;
    for (seq, called_at) in &loading {
        for (id, call) in log.read_calls(*seq, *called_at)? {
            by_id.entry(id).or_default().push(call);
        }
    }
    by_id.retain(|_, calls| calls.iter().any(LoggedCall::loads));
    let mut found = FoundAnswers::default();
    if by_id.is_empty() {
        return Ok(found);
    }
    for (id, call) in log.load_namesakes(&by_id, &loading)? {
        if let Some(calls) = by_id.get_mut(&id) {
            calls.push(call);
        }
    }
    let branches = Branches::load(db, session_id)?;
    for mut calls in by_id.into_values() {
        calls.sort_by_key(|call| call.seq);
        pair(&calls, &branches, &mut found);
    }
    Ok(found)
}

/// The log that is searched for a document.
struct AnswerSearch<'a> {
    db: &'a dyn Database,
    session_id: &'a Id,
    sought: &'a TargetDocument<'a>,
}

impl AnswerSearch<'_> {
    /// The results with these ids, and the calls of other tools. `read` lists the events
    /// that were already read.
    fn load_namesakes(
        &self,
        ids: &BTreeMap<String, Vec<LoggedCall>>,
        read: &[(i64, i64)],
    ) -> Result<Vec<(String, LoggedCall)>> {
        let ids: Vec<&str> = ids.keys().map(String::as_str).collect();
        let results = load_results(self.db, self.session_id, &ids, TOOL, ERASED)?;
        let results = results.into_iter().map(|result| {
            let state = LoggedState::Result {
                is_context: result.is_of_tool,
                is_erased: result.has_content,
            };
            let call = LoggedCall {
                seq: result.seq,
                part: None,
                state,
            };
            (result.call_id, call)
        });
        let mut namesakes: Vec<(String, LoggedCall)> = results.collect();
        let callers = load_callers(self.db, self.session_id, &ids)?;
        let is_read = |seq: &i64| read.binary_search_by_key(seq, |(seq, _)| *seq).is_ok();
        for seq in callers.into_iter().filter(|seq| !is_read(seq)) {
            namesakes.extend(self.read_calls(seq, 0)?);
        }
        Ok(namesakes)
    }

    /// The calls of an event with their ids, last first. Of several open calls with one id,
    /// the first is answered first, and `pair` takes the newest.
    fn read_calls(&self, seq: i64, called_at: i64) -> Result<Vec<(String, LoggedCall)>> {
        let row = get_event_text(self.db, self.session_id, seq)?;
        let calls = match (&row.message, &row.tool) {
            (Some(fields), _) => self.read_parts(fields, called_at),
            (None, Some(tool)) => self.read_tool(tool, called_at),
            (None, None) => Vec::new(),
        };
        let calls = calls.into_iter().rev();
        let logged = calls.map(|(id, part, state)| (id, LoggedCall { seq, part, state }));
        Ok(logged.collect())
    }

    fn read_parts(
        &self,
        fields: &str,
        called_at: i64,
    ) -> Vec<(String, Option<usize>, LoggedState)> {
        let message = ["{", fields, "}"].concat();
        let erased = json::quoted(ERASED);
        let read = |(index, call): (usize, PartOfCall<'_>)| {
            let input = call.input.map_or("{}", RawValue::get);
            let named = read_named(call.name.as_deref(), input);
            let is_answered = !call.results.is_empty();
            let is_erased = call.results.iter().all(|result| result.get() == erased);
            let state = match named {
                // A result without its call: the call is in a message above.
                Some(named) if is_answered && named.is_empty() => LoggedState::Result {
                    is_context: true,
                    is_erased,
                },
                named => {
                    let loads = named.is_some_and(|named| self.is_eligible(&named, called_at));
                    if is_answered {
                        LoggedState::Answered { loads, is_erased }
                    } else {
                        LoggedState::Open { loads }
                    }
                }
            };
            (call.call_id.unwrap_or_default(), Some(index), state)
        };
        calls_in(&message).into_iter().map(read).collect()
    }

    fn read_tool(&self, tool: &str, called_at: i64) -> Vec<(String, Option<usize>, LoggedState)> {
        let tool: RenderedTool = json::decode(tool).unwrap_or_default();
        let read = |call: ShownCall| {
            let named = read_named(Some(&call.name), call.arguments.get());
            let loads = named.is_some_and(|named| self.is_eligible(&named, called_at));
            (call.id, None, LoggedState::Open { loads })
        };
        tool.tool_calls.into_iter().flatten().map(read).collect()
    }

    fn is_eligible(&self, named: &NamedDocument, called_at: i64) -> bool {
        let is_key = |wanted: &str| named.key.as_deref() == Some(wanted);
        named.label.as_deref() == Some(&self.sought.label.key())
            && self.sought.key.is_none_or(is_key)
            && self.sought.until_ms.is_none_or(|until| called_at <= until)
    }
}

/// The document that a call of the tool requests.
struct NamedDocument {
    /// In lower case.
    label: Option<String>,
    key: Option<String>,
}

impl NamedDocument {
    fn is_empty(&self) -> bool {
        self.label.is_none() && self.key.is_none()
    }
}

/// `None`: a call to another tool.
fn read_named(tool: Option<&str>, arguments: &str) -> Option<NamedDocument> {
    if tool != Some(TOOL) {
        return None;
    }
    let arguments = json::decode_tree(arguments).unwrap_or_default();
    let text = |name: &str| arguments.get(name)?.as_str();
    let label = text("label").or_else(|| text("block"));
    Some(NamedDocument {
        label: label.map(|label| label.trim().to_lowercase()),
        key: text("key").map(str::to_owned),
    })
}

impl LoggedCall {
    fn loads(&self) -> bool {
        match self.state {
            LoggedState::Open { loads } | LoggedState::Answered { loads, .. } => loads,
            LoggedState::Result { .. } => false,
        }
    }
}

/// The state of the calls with one id on a path, after one of its events.
#[derive(Clone, Copy, Default)]
struct CallsAbove {
    /// The index of the newest call without a result among the open calls.
    open: Option<usize>,
    /// Whether the newest call requests the document.
    newest_loads: bool,
}

/// An open call, and the index of the previous open call on its path.
struct UnansweredCall {
    loads: bool,
    before: Option<usize>,
}

/// Adds the results that contain the document. `calls` share one id and are ordered by
/// `seq`.
fn pair(calls: &[LoggedCall], branches: &Branches, found: &mut FoundAnswers) {
    let mut open: Vec<UnansweredCall> = Vec::new();
    let mut after: Vec<CallsAbove> = Vec::with_capacity(calls.len());
    for call in calls {
        let above = find_above(
            calls.get(..after.len()).unwrap_or_default(),
            branches,
            call.seq,
        );
        let mut calls_above = above
            .and_then(|above| after.get(above))
            .copied()
            .unwrap_or_default();
        let holds = match call.state {
            LoggedState::Open { loads } => {
                open.push(UnansweredCall {
                    loads,
                    before: calls_above.open,
                });
                calls_above.open = open.len().checked_sub(1);
                calls_above.newest_loads = loads;
                false
            }
            LoggedState::Answered { loads, is_erased } => {
                calls_above.newest_loads = loads;
                loads && !is_erased
            }
            LoggedState::Result {
                is_context,
                is_erased,
            } => {
                let call = calls_above.open.and_then(|index| open.get(index));
                let loads = match call {
                    Some(call) => {
                        calls_above.open = call.before;
                        call.loads
                    }
                    // The call already has a result, and this is another one.
                    None => is_context && calls_above.newest_loads,
                };
                loads && !is_erased
            }
        };
        after.push(calls_above);
        if holds {
            found.add(call);
        }
    }
}

/// The newest of these calls on the path that ends at `seq`.
fn find_above(calls: &[LoggedCall], branches: &Branches, seq: i64) -> Option<usize> {
    branches.path_up(seq).find_map(|segment| {
        let newest = calls
            .partition_point(|call| call.seq <= segment.to_seq)
            .checked_sub(1)?;
        (calls.get(newest)?.seq >= segment.from_seq).then_some(newest)
    })
}
