//! Consolidates a block of facts: a model merges duplicates, retires facts that a newer one
//! contradicts, and rewrites a profile. Its answer is a proposal. One step shows a bounded
//! number of entries. The progress is stored with the step's proposal, in one transaction.

use std::collections::BTreeSet;

use super::answer::{ReadAnswer, WantedAction, WantedChange, read_consolidation};
use super::ask::{LearnedAnswer, ask};
use super::capacity::{LINE_BYTES, RequestCapacity};
use super::consolidation_trust::{ConsolidationTrust, find_title};
use super::pass::{PassError, ask_shorter};
use super::prompt::{render_consolidation_prompt, shown_text};
use super::target::{get_settings, into_block};
use super::trust::TrustDecision;
use base::database::atomically;
use base::error::{Error, Result};
use base::ids::Id;
use base::tokens;
use memory::block::newest_of;
use memory::definition::Definition;
use memory::entry_text::MAX_SUPERSEDED;
use memory::kind::BlockKind;
use memory::numbered_entries::{NumberedEntry, find_with_version, load_below};
use memory::proposals::apply::{apply, block_of, entries_of};
use memory::proposals::rows::{StoredProposal, check_capacity, insert};
use memory::proposals::{
    ChangeAction, ChangeStatus, DecidedBy, MemoryChange, ProposalKind, ProposalNote, ProposalOrigin,
};
use memory::validity::FactState;
use memory::{BlockScope, Memory};
use store::config::Config;
use store::consolidation::{Consolidation, PAUSE_MS, find_consolidation, write_consolidation};
use store::learn_failure::is_enough;
use store::learn_settings::LearnSettings;

/// The most entries of one step, and the most bytes of their texts.
const MAX_ENTRIES: i64 = 100;
const MAX_BYTES: usize = 24 << 10;

const MAY_NOT_WRITE: &str = "The caller may not write to this block.";

/// The result of a step.
#[derive(Debug)]
pub struct StepResult {
    pub proposal: Option<StoredProposal>,
    /// Whether the steps have covered the whole block.
    pub is_complete: bool,
}

/// The input of a step.
struct ConsolidationStep<'a> {
    memory: &'a Memory<'a>,
    settings: &'a LearnSettings,
    block: &'a Definition,
    /// Whether it is the block of learned facts.
    is_into: bool,
    request: ConsolidationRequest<'a>,
    /// Newest first.
    shown: &'a [NumberedEntry],
    profile: Option<&'a Profile>,
    /// The number of purges when the entries were read.
    purges: u64,
    /// The progress before this step.
    state: Consolidation,
    /// The next step continues with the entries below this number; `None`: this was the
    /// last step.
    next: Option<i64>,
}

/// The block that is the profile, and its text before the step.
struct Profile {
    block: Definition,
    version: i64,
    content: String,
}

/// Which block to consolidate, and how.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConsolidationRequest<'a> {
    /// The block of facts, if it is not the one that the agent learns into.
    pub label: Option<&'a str>,
    /// The block that the first step rewrites; `None`: `learn.profile`, if the block is the
    /// one that the agent learns into.
    pub profile: Option<&'a str>,
    /// Whether the step was due automatically. The number of retries after an unreadable
    /// answer is then bounded.
    pub is_timed: bool,
    /// Whether changes of the entries, and of the profile, need review, because the caller
    /// could not write them with an operation.
    pub entries_wait: bool,
    pub profile_waits: bool,
}

/// Runs one step that a caller requested.
pub async fn consolidate(
    memory: &Memory<'_>,
    request: ConsolidationRequest<'_>,
) -> Result<StepResult> {
    step(memory, request).await.map_err(|failed| failed.error)
}

/// Runs one step.
pub async fn step(
    memory: &Memory<'_>,
    request: ConsolidationRequest<'_>,
) -> Result<StepResult, PassError> {
    ask_shorter(async |refusals| step_once(memory, request, refusals).await).await
}

/// Runs a step whose request was refused `refusals` times because of its length.
async fn step_once(
    memory: &Memory<'_>,
    request: ConsolidationRequest<'_>,
    refusals: u32,
) -> Result<StepResult, PassError> {
    let (config, settings) = get_settings(memory)?;
    let into = into_block(memory, &settings);
    let block = match request.label {
        Some(label) => entries_of(memory, BlockScope::Agent, label)?,
        None => into.as_ref().map_err(Error::clone)?.clone(),
    };
    let is_into = into.is_ok_and(|into| into.label.key() == block.label.key());
    let set = settings
        .profile
        .as_ref()
        .filter(|_| is_into)
        .map(Id::as_str);
    let profile = request
        .profile
        .or(set)
        .map(|label| find_profile(memory, label))
        .transpose()?;
    check_capacity(memory.db, &ProposalOrigin::default())?;
    let state = find_consolidation(memory.db)?;
    let below = (state.block == Some(block.label.key())).then_some(state.below);
    let purges = memory.pages.purges();
    // The profile is built from the newest entries, which the first step shows.
    let profile = profile.filter(|_| below.is_none());
    let capacity = RequestCapacity::load(memory, &config, &settings, refusals)?;
    let profile_bytes = profile.as_ref().map_or(0, |profile| profile.content.len());
    let bytes = (capacity.events + capacity.entries).saturating_sub(profile_bytes);
    let (shown, next) = load_page(memory, &block, below, bytes)?;
    let is_needed = shown.len() > 1 || (profile.is_some() && !shown.is_empty());
    let passes_over = request.is_timed && is_enough(state.failure.as_ref());
    let task = ConsolidationStep {
        memory,
        settings: &settings,
        block: &block,
        is_into,
        request,
        shown: &shown,
        profile: profile.as_ref(),
        purges,
        state,
        next,
    };
    if !is_needed {
        return Ok(task.store(&ReadAnswer::default(), None)?);
    }
    let LearnedAnswer { text, model } = task.ask(&config, &capacity).await?;
    let answer = match read_consolidation(&text, block.label.as_str()) {
        Ok(answer) => answer,
        Err(_) if passes_over => ReadAnswer {
            refused: 1,
            ..ReadAnswer::default()
        },
        Err(error) => {
            return Err(PassError {
                error,
                is_invalid_answer: true,
                is_callers: false,
            });
        }
    };
    Ok(task.store(&answer, Some(model))?)
}

fn find_profile(memory: &Memory<'_>, label: &str) -> Result<Profile> {
    let block = block_of(memory, BlockScope::Agent, label).map_err(|error| match error.field {
        Some(_) => error.with_field("profile"),
        None => error,
    })?;
    if block.kind != BlockKind::Writable {
        return Err(Error::invalid(
            "profile",
            format!(
                "Block `{label}` is {}; a profile must be a writable block.",
                block.kind.name()
            ),
        ));
    }
    let newest = newest_of(memory, &block)?;
    Ok(Profile {
        version: newest.version,
        content: newest.content,
        block,
    })
}

/// The entries that the step shows within this many bytes, newest first, and the number
/// below which the next step continues. Entries from a caller limited to a session are
/// excluded: their text must not be merged with anybody else's, or be part of anybody
/// else's profile.
fn load_page(
    memory: &Memory<'_>,
    block: &Definition,
    below: Option<i64>,
    capacity: usize,
) -> Result<(Vec<NumberedEntry>, Option<i64>)> {
    let loaded = load_below(memory.db, block, below, MAX_ENTRIES + 1)?;
    let now_ms = memory.host.now_ms();
    let mut shown = Vec::new();
    let mut last = None;
    let (mut bytes, mut lines) = (0, 0);
    let mut is_cut = false;
    for entry in loaded {
        bytes += entry.entry.content.len();
        // A line also contains the source and the time.
        lines += shown_text(&entry.entry).len() + entry.entry.key.len() + 2 * LINE_BYTES;
        let is_full = shown.len() as i64 >= MAX_ENTRIES || bytes > MAX_BYTES || lines > capacity;
        if is_full && last.is_some() {
            is_cut = true;
            break;
        }
        last = Some(entry.number);
        if !entry.is_narrowed && entry.entry.validity.state(now_ms, None) == FactState::Holds {
            shown.push(entry);
        }
    }
    Ok((shown, last.filter(|_| is_cut)))
}

impl ConsolidationStep<'_> {
    async fn ask(&self, config: &Config, capacity: &RequestCapacity) -> Result<LearnedAnswer> {
        let entries: Vec<_> = self.shown.iter().map(|shown| shown.entry.clone()).collect();
        let profile = self
            .profile
            .map(|profile| (profile.content.as_str(), profile.block.max_tokens));
        let instructions = self.settings.instructions.as_deref();
        let prompt = render_consolidation_prompt(&entries, profile, instructions);
        ask(self.memory, config, self.settings, prompt, capacity).await
    }

    /// The progress after this step. `now` is the currently stored progress.
    fn state_after(&self, now: &Consolidation, now_ms: i64) -> Consolidation {
        let is_over = self.next.is_none() && self.is_into;
        let due_at = if is_over {
            now.due_at
                .filter(|due_at| self.state.due_at != Some(*due_at))
                .map(|due_at| due_at.max(now_ms + PAUSE_MS))
        } else {
            now.due_at
        };
        Consolidation {
            block: self.next.map(|_| self.block.label.key()),
            below: self.next.unwrap_or(0),
            steps: now.steps + 1,
            due_at,
            ended_at: if is_over { Some(now_ms) } else { now.ended_at },
            failure: None,
        }
    }

    /// Stores the proposal and the progress, and applies the changes that need no review.
    fn store(self, read: &ReadAnswer, model: Option<String>) -> Result<StepResult> {
        let (db, host) = (self.memory.db, self.memory.host);
        atomically(db, || {
            let now = find_consolidation(db)?;
            if now.steps != self.state.steps || self.memory.pages.purges() != self.purges {
                // A concurrent step was faster, or a text was erased that the answer may
                // repeat.
                return Ok(StepResult {
                    proposal: None,
                    is_complete: false,
                });
            }
            let mut changes: Vec<MemoryChange> = Vec::new();
            let mut refused = read.refused;
            for wanted in &read.changes {
                match self.to_change(wanted, &changes)? {
                    Some(change) => changes.push(change),
                    None => refused += 1,
                }
            }
            match self.profile_change(read.profile.as_deref(), changes.len() as i64)? {
                ProfileChange::None => {}
                ProfileChange::Refused => refused += 1,
                ProfileChange::Wanted(change) => changes.push(*change),
            }
            let mut has_applied = false;
            for change in &mut changes {
                if change.status == ChangeStatus::Applied {
                    apply(self.memory, &ProposalOrigin::default(), change)?;
                    has_applied = true;
                }
            }
            // If there is nothing to do, the progress is unchanged.
            let idles = model.is_none() && now.block.is_none() && now.due_at.is_none();
            if !idles || self.next.is_some() {
                write_consolidation(db, &self.state_after(&now, host.now_ms()))?;
            }
            let is_complete = self.next.is_none();
            if changes.is_empty() {
                return Ok(StepResult {
                    proposal: None,
                    is_complete,
                });
            }
            let now_ms = host.now_ms();
            let note = ProposalNote {
                created_at: now_ms,
                model,
                decided_at: has_applied.then_some(now_ms),
                decided_by: has_applied.then_some(DecidedBy::Trust),
                refused,
                ..ProposalNote::default()
            };
            let proposal = insert(
                self.memory,
                StoredProposal {
                    number: 0,
                    session_id: String::new(),
                    kind: ProposalKind::Consolidate,
                    label: self.block.label.as_str().to_owned(),
                    note,
                    changes,
                },
            )?;
            Ok(StepResult {
                proposal: Some(proposal),
                is_complete,
            })
        })
    }

    /// The entry with this key, if the model saw it and it was not written since then.
    fn find_shown(&self, key: &str) -> Result<Option<&NumberedEntry>> {
        let Some(shown) = self.shown.iter().find(|shown| shown.entry.key == key) else {
            return Ok(None);
        };
        let current = find_with_version(self.memory.db, self.block, key)?;
        let is_same = current.is_some_and(|(_, version)| version == shown.version);
        Ok(Some(shown).filter(|_| is_same))
    }

    /// `None`: the change breaks a rule.
    fn to_change(
        &self,
        wanted: &WantedChange,
        before: &[MemoryChange],
    ) -> Result<Option<MemoryChange>> {
        let is_named = |key: &String| {
            before
                .iter()
                .any(|other| other.key.as_ref() == Some(key) || other.supersedes.contains(key))
        };
        let Some(key) = &wanted.key else {
            return Ok(None);
        };
        // A newer entry that retires an older one is rewritten with a reference to it.
        let (stays, merged, content) = match (wanted.action, &wanted.by) {
            (WantedAction::Replace, None) => (key, wanted.merges.clone(), Some(&wanted.content)),
            (WantedAction::Retire, Some(by)) => (by, vec![key.clone()], None),
            _ => return Ok(None),
        };
        if merged.iter().chain([stays]).any(is_named) || merged.contains(stays) {
            return Ok(None);
        }
        let Some(survivor) = self.find_shown(stays)? else {
            return Ok(None);
        };
        let mut sources = vec![survivor];
        for key in &merged {
            match self.find_shown(key)? {
                Some(shown) => sources.push(shown),
                None => return Ok(None),
            }
        }
        let decision = match content {
            Some(content) => self.trust().decide_merge(content, &sources),
            None => match self.trust().decide_retired(&sources) {
                Some(decision) => decision,
                None => return Ok(None),
            },
        };
        // An entry that retires another one takes no text from it.
        let titling = match content {
            Some(_) => sources.as_slice(),
            None => &[survivor],
        };
        let mut supersedes = survivor.entry.validity.supersedes.clone();
        supersedes.extend(merged);
        let mut seen = BTreeSet::new();
        supersedes.retain(|key| seen.insert(key.clone()));
        let is_nothing = content.is_some_and(|content| *content == survivor.entry.content)
            && supersedes.len() == survivor.entry.validity.supersedes.len();
        if supersedes.len() > MAX_SUPERSEDED || is_nothing {
            return Ok(None);
        }
        Ok(Some(self.change(
            before.len() as i64,
            ChangeAction::Replace,
            ChangeParts {
                key: Some(stays.clone()),
                title: find_title(wanted.title.as_ref(), titling),
                content: content.unwrap_or(&survivor.entry.content).clone(),
                supersedes,
                decision,
                made_for: survivor.version,
            },
        )))
    }

    fn trust(&self) -> ConsolidationTrust<'_> {
        ConsolidationTrust {
            settings: self.settings,
        }
    }

    fn profile_change(&self, text: Option<&str>, index: i64) -> Result<ProfileChange> {
        let (Some(profile), Some(text)) = (self.profile, text.map(str::trim)) else {
            return Ok(ProfileChange::None);
        };
        if text == profile.content.trim() {
            return Ok(ProfileChange::None);
        }
        let is_long = profile
            .block
            .max_tokens
            .is_some_and(|most| tokens::estimate(text) > most);
        let current_version = newest_of(self.memory, &profile.block)?.version;
        if text.is_empty() || is_long || current_version != profile.version {
            return Ok(ProfileChange::Refused);
        }
        let mut change = self.change(
            index,
            ChangeAction::Write,
            ChangeParts {
                key: None,
                title: None,
                content: text.to_owned(),
                supersedes: Vec::new(),
                decision: self.trust().decide_profile(text, self.shown),
                made_for: profile.version,
            },
        );
        change.label = profile.block.label.as_str().to_owned();
        Ok(ProfileChange::Wanted(Box::new(change)))
    }

    fn change(&self, index: i64, action: ChangeAction, parts: ChangeParts) -> MemoryChange {
        let may_not_write = match action {
            ChangeAction::Write => self.request.profile_waits,
            _ => self.request.entries_wait,
        };
        let waits = parts.decision.waits;
        let waits = waits.or(may_not_write.then_some(MAY_NOT_WRITE));
        MemoryChange {
            index,
            action,
            label: self.block.label.as_str().to_owned(),
            key: parts.key,
            title: parts.title,
            content: Some(parts.content),
            supersedes: parts.supersedes,
            events: Vec::new(),
            source: parts.decision.source,
            status: match waits {
                None => ChangeStatus::Applied,
                Some(_) => ChangeStatus::Pending,
            },
            reason: waits.map(str::to_owned),
            made_for: parts.made_for,
            version: None,
            outdated: false,
            before: None,
        }
    }
}

enum ProfileChange {
    None,
    Refused,
    Wanted(Box<MemoryChange>),
}

struct ChangeParts {
    key: Option<String>,
    title: Option<String>,
    content: String,
    supersedes: Vec<String>,
    decision: TrustDecision,
    made_for: i64,
}
