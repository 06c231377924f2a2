//! A learning pass over a conversation: the messages since the previous pass are sent to
//! the model, and its answer becomes a proposal. After the answer, one transaction writes
//! the position, the proposal, and the changes that apply immediately. If the object is
//! evicted before that, the pass is repeated.

use super::answer::{self, ReadAnswer, WantedAction, WantedChange, key_for};
use super::ask::{LearnedAnswer, ask};
use super::capacity::{RequestCapacity, is_retried};
use super::material::{Material, load_material};
use super::prompt::render_pass_prompt;
use super::related_entries::{find_alike, find_related};
use super::retraction::find_retractions;
use super::target::{PassTarget, get_settings, into_block};
use super::trust::{TrustDecision, decide_trust, is_supported_name};
use base::database::atomically;
use base::error::{Error, ErrorKind, Result};
use base::ids::Id;
use conversation::log::learning_watermarks::{
    LearningWatermark, find_watermark, move_watermark, note_failure, postpone,
};
use memory::Memory;
use memory::entry::Entry;
use memory::entry_rows;
use memory::proposals::apply::apply;
use memory::proposals::rows::{StoredProposal, check_capacity, insert};
use memory::proposals::{
    ChangeAction, ChangeStatus, DecidedBy, EvidenceEvent, MemoryChange, ProposalKind, ProposalNote,
};
use search::words::words;
use store::consolidation::ask_when_idle;
use store::learn_failure::is_enough;
use store::learn_settings::IDLE_MS;
use store::learn_settings::{LearnReview, LearnSettings, LearnTrigger};

/// How many keys are tried for a fact whose key is already used.
const MAX_KEYS: usize = 50;

const NARROWED: &str = "The writer of the message can only write to their own session's memory, and all sessions \
     share this block.";

/// The result of a pass.
#[derive(Debug, Default)]
pub struct PassResult {
    /// How many events it covered.
    pub events: i64,
    pub proposal: Option<StoredProposal>,
    /// Whether there are more events than the pass covered.
    pub has_more: bool,
    /// Why the pass was postponed, though nothing failed.
    pub waits: Option<Error>,
}

/// Runs one pass over a session, and stores why it failed. If the limits of the caller whose
/// messages it covers are exhausted, or that caller has too many proposals, the pass is postponed.
/// That is not a failure of the call: other sessions continue.
pub async fn run_pass(memory: &Memory<'_>, session_id: &Id) -> Result<PassResult> {
    let PassError {
        error,
        is_invalid_answer,
        is_callers,
    } = match try_pass(memory, session_id).await {
        Ok(result) => return Ok(result),
        Err(failed) => failed,
    };
    atomically(memory.db, || {
        note_failure(
            memory.db,
            memory.host,
            session_id,
            &error,
            is_invalid_answer,
        )
    })?;
    if !is_callers {
        return Err(error);
    }
    Ok(PassResult {
        waits: Some(error),
        ..PassResult::default()
    })
}

/// Why a pass, or a step of consolidation, failed.
pub struct PassError {
    pub error: Error,
    /// Whether the model's answer didn't have the requested form.
    pub is_invalid_answer: bool,
    /// Whether only the limits of the caller whose words the pass covers were reached.
    pub is_callers: bool,
}

impl From<Error> for PassError {
    fn from(error: Error) -> Self {
        Self {
            is_callers: error.kind == Some(ErrorKind::TokenLimited),
            error,
            is_invalid_answer: false,
        }
    }
}

/// Sends the request, and retries while the model refuses it because of its length.
pub async fn ask_shorter<T>(
    ask: impl AsyncFn(u32) -> Result<T, PassError>,
) -> Result<T, PassError> {
    let mut refusals = 0;
    loop {
        match ask(refusals).await {
            Err(failed) if is_retried(&failed.error, refusals) => refusals += 1,
            answer => return answer,
        }
    }
}

async fn try_pass(memory: &Memory<'_>, session_id: &Id) -> Result<PassResult, PassError> {
    ask_shorter(async |refusals| run_pass_once(memory, session_id, refusals).await).await
}

/// Runs a pass whose request was refused `refusals` times because of its length.
async fn run_pass_once(
    memory: &Memory<'_>,
    session_id: &Id,
    refusals: u32,
) -> Result<PassResult, PassError> {
    let (config, settings) = get_settings(memory)?;
    into_block(memory, &settings)?;
    let db = memory.db;
    let Some(watermark) = find_watermark(db, session_id)? else {
        return Ok(PassResult::default());
    };
    let purges = memory.pages.purges();
    let capacity = RequestCapacity::load(memory, &config, &settings, refusals)?;
    let material = load_material(db, session_id, &watermark, &capacity)?;
    let Some(material) = material else {
        if watermark.due_at.is_some() {
            move_watermark(db, session_id, watermark.learned_seq, None)?;
        }
        return Ok(PassResult::default());
    };
    let find_target = || PassTarget::find(memory, &settings, session_id, &material.authority);
    let target = find_target()?;
    let task = |target| PassTask {
        memory,
        settings: &settings,
        target,
        session_id,
        material: &material,
        purges,
        capacity,
    };
    if material.shown.is_empty() {
        return Ok(task(&target).store(&ReadAnswer::default(), None)?);
    }
    check_capacity(db, &target.origin).map_err(|error| PassError {
        error,
        is_invalid_answer: false,
        is_callers: !target.origin.scope.is_agent(),
    })?;
    let payer = material.authority.limits.as_ref();
    let memory = &Memory { payer, ..*memory };
    let touched = find_related(memory, &target, &material.shown, &capacity).await?;
    let prompt = render_pass_prompt(&touched, &material.shown, settings.instructions.as_deref());
    let LearnedAnswer { text, model } = ask(memory, &config, &settings, prompt, &capacity).await?;
    // The block may have been redefined in the meantime.
    let before = target;
    let target = find_target()?;
    if target.origin != before.origin {
        // The model saw the entries of another block.
        postpone(db, session_id, memory.host.now_ms())?;
        return Ok(PassResult {
            has_more: true,
            ..PassResult::default()
        });
    }
    let label = target.block.label.as_str();
    let read = match answer::read(&text, label, &material.shown) {
        Ok(read) => read,
        // These events are skipped, so that later events are still learned from.
        Err(_) if is_enough(watermark.failure.as_ref()) => ReadAnswer {
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
    Ok(task(&target).store(&read, Some(model))?)
}

/// A pass whose answer has arrived.
struct PassTask<'a> {
    memory: &'a Memory<'a>,
    settings: &'a LearnSettings,
    target: &'a PassTarget,
    session_id: &'a Id,
    material: &'a Material,
    /// The number of purges when the conversation and its entries were read.
    purges: u64,
    capacity: RequestCapacity,
}

impl PassTask<'_> {
    /// Stores the proposal, applies the changes that need no review, and advances the
    /// position. Does nothing if the conversation changed since the model saw it.
    fn store(&self, read: &ReadAnswer, model: Option<String>) -> Result<PassResult> {
        let db = self.memory.db;
        atomically(db, || {
            let Some(watermark) = find_watermark(db, self.session_id)? else {
                return Ok(PassResult::default());
            };
            if watermark.learned_seq != self.material.after_seq {
                // A concurrent pass was faster.
                return Ok(PassResult {
                    has_more: watermark.newest_seq > watermark.learned_seq,
                    ..PassResult::default()
                });
            }
            // The answer may also repeat an entry that was erased in the meantime.
            if self.memory.pages.purges() != self.purges || !self.is_as_shown(&watermark)? {
                // Nothing that was deleted or changed in the meantime may get into memory.
                postpone(db, self.session_id, self.memory.host.now_ms())?;
                return Ok(PassResult {
                    has_more: true,
                    ..PassResult::default()
                });
            }
            let (changes, refused) = self.to_changes(read)?;
            let proposal = self.propose(changes, refused, model)?;
            let has_more = watermark.newest_seq > self.material.to_seq;
            let due_at = has_more.then(|| self.due_at(&watermark)).flatten();
            move_watermark(db, self.session_id, self.material.to_seq, due_at)?;
            Ok(PassResult {
                events: self.material.shown.len() as i64,
                proposal,
                has_more,
                waits: None,
            })
        })
    }

    /// When the next pass, over the messages that arrived in the meantime, is due.
    fn due_at(&self, watermark: &LearningWatermark) -> Option<i64> {
        match self.settings.after {
            // It waits for its own idle period.
            LearnTrigger::Idle => {
                Some(watermark.newest_at.min(self.memory.host.now_ms()) + IDLE_MS)
            }
            LearnTrigger::Manual => watermark.due_at,
            LearnTrigger::Turn => Some(self.memory.host.now_ms()),
        }
    }

    /// Applies the changes that need no review, and stores them with the rest. `None`:
    /// nothing changes.
    fn propose(
        &self,
        mut changes: Vec<MemoryChange>,
        refused: i64,
        model: Option<String>,
    ) -> Result<Option<StoredProposal>> {
        if changes.is_empty() {
            return Ok(None);
        }
        let now_ms = self.memory.host.now_ms();
        let mut has_applied = false;
        for change in &mut changes {
            if change.status == ChangeStatus::Applied {
                apply(self.memory, &self.target.origin, change)?;
                has_applied = true;
            }
        }
        if has_applied && self.target.origin.scope.is_agent() {
            ask_when_idle(self.memory.db, self.settings, now_ms)?;
        }
        let stored = StoredProposal {
            number: 0,
            session_id: self.session_id.as_str().to_owned(),
            kind: ProposalKind::Learn,
            label: self.target.block.label.as_str().to_owned(),
            note: ProposalNote {
                created_at: now_ms,
                model,
                decided_at: has_applied.then_some(now_ms),
                decided_by: has_applied.then_some(DecidedBy::Trust),
                refused,
                scope: self.target.origin.scope,
            },
            changes,
        };
        insert(self.memory, stored).map(Some)
    }

    /// Whether the events that the model saw still exist, with the same words.
    fn is_as_shown(&self, watermark: &LearningWatermark) -> Result<bool> {
        let now = load_material(self.memory.db, self.session_id, watermark, &self.capacity)?;
        let Some(now) = now else {
            return Ok(false);
        };
        // More events may follow them.
        let shown = &self.material.shown;
        let is_same = now.shown.get(..shown.len()) == Some(shown.as_slice());
        let last = now.shown.get(shown.len());
        let is_same = is_same && now.authority == self.material.authority;
        Ok(is_same && last.is_none_or(|next| next.seq > self.material.to_seq))
    }

    /// The changes to store, and how many of the answer's were refused.
    fn to_changes(&self, read: &ReadAnswer) -> Result<(Vec<MemoryChange>, i64)> {
        let mut changes = Vec::new();
        let mut refused = read.refused;
        for wanted in &read.changes {
            match self.to_change(wanted, &changes)? {
                Some(change) => changes.push(change),
                None => refused += 1,
            }
        }
        Ok((changes, refused))
    }

    /// The change to store, `Applied` if it is applied immediately. `None`: it breaks a
    /// rule.
    fn to_change(
        &self,
        wanted: &WantedChange,
        before: &[MemoryChange],
    ) -> Result<Option<MemoryChange>> {
        let is_named = |key: &str| before.iter().any(|other| other.key.as_deref() == Some(key));
        let shown = &self.material.shown;
        let title = wanted
            .title
            .clone()
            .filter(|title| is_supported_name(title, &wanted.content, shown));
        let (key, current) = match wanted.action {
            WantedAction::Add => {
                if self.is_known(wanted, before)? {
                    return Ok(None);
                }
                let given = wanted
                    .key
                    .clone()
                    .filter(|key| is_supported_name(key, &wanted.content, shown));
                let preferred = given.unwrap_or_else(|| key_for(&wanted.content));
                let Some(key) = self.find_free_key(&preferred, &is_named)? else {
                    return Ok(None);
                };
                (key, None)
            }
            WantedAction::Replace | WantedAction::Retire | WantedAction::Forget => {
                let key = wanted.key.clone().unwrap_or_default();
                let current = self.target.find_entry(self.memory, &key)?;
                if current.is_none() || is_named(&key) {
                    return Ok(None);
                }
                (key, current)
            }
        };
        let entry = current.as_ref().map(|(entry, _)| entry);
        if wanted.action == WantedAction::Replace
            && entry.is_some_and(|entry| has_same_words(&entry.content, &wanted.content))
        {
            return Ok(None);
        }
        let TrustDecision { source, waits } =
            decide_trust(wanted, entry, &self.alike(wanted)?, shown, self.settings);
        let waits = match self.settings.review {
            LearnReview::Auto if self.target.is_narrowed() => Some(NARROWED),
            LearnReview::Auto | LearnReview::Propose => waits,
        };
        Ok(Some(MemoryChange {
            index: before.len() as i64,
            action: match wanted.action {
                WantedAction::Add => ChangeAction::Add,
                WantedAction::Replace => ChangeAction::Replace,
                WantedAction::Retire => ChangeAction::Retire,
                WantedAction::Forget => ChangeAction::Forget,
            },
            label: self.target.block.label.as_str().to_owned(),
            key: Some(key),
            title: title.or_else(|| match wanted.action {
                WantedAction::Replace => entry.and_then(|entry| entry.title.clone()),
                _ => None,
            }),
            content: Some(wanted.content.clone()).filter(|content| !content.is_empty()),
            supersedes: Vec::new(),
            events: self.evidence(wanted),
            source,
            status: match waits {
                None => ChangeStatus::Applied,
                Some(_) => ChangeStatus::Pending,
            },
            reason: waits.map(str::to_owned),
            made_for: current.map_or(0, |(_, version)| version),
            version: None,
            outdated: false,
            before: None,
        }))
    }

    /// The entries that a retraction in the named messages may refer to.
    fn alike(&self, wanted: &WantedChange) -> Result<Vec<Entry>> {
        if !matches!(wanted.action, WantedAction::Retire | WantedAction::Forget) {
            return Ok(Vec::new());
        }
        let shown = &self.material.shown;
        let named = wanted.events.iter().filter_map(|index| shown.get(*index));
        let mut alike = Vec::new();
        for retraction in find_retractions(named.map(|event| event.text.as_str())) {
            alike.extend(find_alike(self.memory, self.target, &retraction.subject)?);
        }
        Ok(alike)
    }

    fn evidence(&self, wanted: &WantedChange) -> Vec<EvidenceEvent> {
        let named = wanted
            .events
            .iter()
            .filter_map(|index| self.material.shown.get(*index));
        named
            .map(|event| EvidenceEvent {
                session_id: self.session_id.as_str().to_owned(),
                id: event.id.clone(),
                seq: event.seq,
            })
            .collect()
    }

    /// Whether an entry of the same key, or another change, already has this content.
    fn is_known(&self, wanted: &WantedChange, before: &[MemoryChange]) -> Result<bool> {
        let same = |content: &str| has_same_words(content, &wanted.content);
        if before
            .iter()
            .any(|other| other.content.as_deref().is_some_and(same))
        {
            return Ok(true);
        }
        let keys = [wanted.key.clone(), Some(key_for(&wanted.content))];
        for key in keys.into_iter().flatten() {
            let entry = entry_rows::find_entry(self.memory.db, &self.target.block, &key)?;
            if entry.is_some_and(|entry| same(&entry.content)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The requested key, or the first numbered variant that no entry has.
    fn find_free_key(
        &self,
        preferred: &str,
        is_named: &dyn Fn(&str) -> bool,
    ) -> Result<Option<String>> {
        for number in 1..=MAX_KEYS {
            let key = match number {
                1 => preferred.to_owned(),
                number => format!("{preferred}-{number}"),
            };
            if !is_named(&key)
                && entry_rows::find_entry(self.memory.db, &self.target.block, &key)?.is_none()
            {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }
}

/// Whether two texts consist of the same words in the same order.
fn has_same_words(one: &str, other: &str) -> bool {
    words(one) == words(other)
}
