//! Deletes the old parts of a scope's memory: versions, the remains of deletions, and
//! entries. Each stage goes from block to block; if a block has no rule, none of its rows
//! are read.

use std::collections::HashMap;

use super::work::StepWork;
use base::database::Database;
use base::error::Result;
use base::json;
use memory::ages::{self, AgedRows, AgedVersion, BlockOf};
use memory::change_events::{Selection, delete_callbacks};
use memory::counts::CountChange;
use memory::deployed::DeployedMemory;
use memory::label::Label;
use memory::past::{MAX_DELETED, MAX_ENTRY_VERSIONS, forget_up_to};
use memory::proposals::rows::forget_before;
use memory::purge::{ItemKeys, erase_entry_at};
use memory::{content, definitions, frozen};
use store::erasing::ErasingDatabase;
use store::retention::{BlockRetention, MemoryRules};
use store::retention_progress::{RetentionPosition, RunStage};

/// Milliseconds in a day.
pub const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// The approximate number of rows that are deleted with an entry: the entry, its index row,
/// a vector and some versions.
const ROWS_OF_ENTRY: i64 = 8;

/// A scope's memory, and the rules that apply to it.
pub struct MemoryRetention<'a> {
    db: &'a ErasingDatabase<'a>,
    scope: &'a str,
    outer: MemoryRules,
    /// The rules of blocks that have their own.
    own: HashMap<String, BlockRetention>,
    /// The time of the run.
    now_ms: i64,
    /// A frozen prompt older than this may show a deleted version.
    prompts_cutoff: Option<i64>,
    /// The key of the only block to process. `None`: all blocks.
    only: Option<&'a str>,
}

/// The blocks of this scope with their own rules.
pub fn load_block_rules(
    db: &dyn Database,
    scope: &str,
    deployed: &DeployedMemory,
) -> Result<HashMap<String, BlockRetention>> {
    let mut own: HashMap<String, BlockRetention> = match scope {
        "" => deployed
            .blocks
            .iter()
            .filter_map(|block| Some((block.label.key(), block.retention.clone()?)))
            .collect(),
        _ => HashMap::new(),
    };
    for block in definitions::load_rules(db, scope)? {
        // The agent's own definition replaces the deployed one.
        own.remove(&block.key);
        if let Some(text) = &block.retention
            && let Ok(rules) = json::decode(text)
        {
            own.insert(block.key, rules);
        }
    }
    Ok(own)
}

/// The shortest time for which a scope stores earlier versions.
pub fn versions_days(own: &HashMap<String, BlockRetention>, outer: MemoryRules) -> Option<i64> {
    let rules = own.values().map(|own| own.within(outer).versions_days);
    rules.chain([outer.versions_days]).flatten().min()
}

impl<'a> MemoryRetention<'a> {
    pub fn load(
        db: &'a ErasingDatabase<'a>,
        deployed: &DeployedMemory,
        scope: &'a str,
        outer: MemoryRules,
        now_ms: i64,
        shown_days: Option<i64>,
    ) -> Result<Self> {
        let own = load_block_rules(db, scope, deployed)?;
        let days = [shown_days, versions_days(&own, outer)];
        let days = days.into_iter().flatten().min();
        Ok(Self {
            prompts_cutoff: days.map(|days| now_ms - days * DAY_MS),
            own,
            db,
            scope,
            outer,
            now_ms,
            only: None,
        })
    }

    /// Processes only one block. `rules` replace the block's own rules.
    pub fn only(mut self, block: &'a str, rules: Option<BlockRetention>) -> Self {
        self.only = Some(block);
        if let Some(rules) = rules {
            self.own.insert(block.to_owned(), rules);
        }
        self
    }

    /// Deletes a frozen prompt that may show a deleted version. Its next use renders it
    /// again. Must run in a transaction.
    pub fn forget_old_prompt(&self, work: &mut StepWork) -> Result<()> {
        let Some(cutoff) = self.prompts_cutoff.filter(|_| !work.is_dry) else {
            return Ok(());
        };
        work.count_scanned(1);
        frozen::forget_until(self.db, self.scope, cutoff)
    }

    /// Deletes old proposals, which contain texts of facts: decided ones after the time
    /// limit of versions, and all after that of entries. Must run in a transaction.
    pub fn forget_old_proposals(&self, work: &mut StepWork) -> Result<()> {
        if work.is_dry || !self.scope.is_empty() {
            return Ok(());
        }
        for (stage, keeps_pending) in [(RunStage::ItemVersions, true), (RunStage::Entries, false)] {
            if let Some(days) = days_of(stage, self.outer) {
                work.count_scanned(1);
                forget_before(self.db, self.now_ms - days * DAY_MS, keeps_pending)?;
            }
        }
        Ok(())
    }

    /// The time before which a stage considers items of a block old.
    fn cutoff(&self, stage: RunStage, block: &str) -> Option<i64> {
        let rules = match self.own.get(block) {
            Some(own) => own.within(self.outer),
            None => self.outer,
        };
        let days = days_of(stage, rules)?;
        Some(self.now_ms - days * DAY_MS)
    }

    /// Whether any block has a rule for this stage.
    fn has_rule(&self, stage: RunStage) -> bool {
        let mut own = self.own.values();
        days_of(stage, self.outer).is_some()
            || own.any(|own| days_of(stage, own.within(self.outer)).is_some())
    }

    /// Processes one page of the stage at `position`, and advances it.
    pub fn advance(&self, position: &mut RetentionPosition, work: &mut StepWork) -> Result<()> {
        let stage = position.stage;
        let Some(rows) = rows_of(stage).filter(|_| self.has_rule(stage)) else {
            next_stage(position);
            return Ok(());
        };
        if let Some(cutoff) = self
            .cutoff(stage, &position.block)
            .filter(|_| !position.block.is_empty())
        {
            let is_over = match stage {
                RunStage::BlockVersions => self.block_versions(position, cutoff, work)?,
                RunStage::ItemVersions => self.item_versions(position, cutoff, work)?,
                RunStage::Deleted => self.deleted(position, cutoff, work)?,
                _ => self.entries(position, cutoff, work)?,
            };
            if !is_over {
                return Ok(());
            }
        }
        work.count_scanned(1);
        match self.find_next_block(rows, &position.block)? {
            Some(block) => {
                position.block = block;
                position.key.clear();
            }
            None => next_stage(position),
        }
        Ok(())
    }

    /// The block at this position.
    fn block<'p>(&'p self, position: &'p RetentionPosition) -> BlockOf<'p> {
        (self.scope, &position.block)
    }

    fn find_next_block(&self, rows: AgedRows, after: &str) -> Result<Option<String>> {
        if let Some(only) = self.only {
            return Ok((after < only).then(|| only.to_owned()));
        }
        ages::find_next_block(self.db, rows, (self.scope, after))
    }

    /// The earlier versions of a block's own text. A block has at most 50 of them.
    fn block_versions(
        &self,
        position: &RetentionPosition,
        cutoff: i64,
        work: &mut StepWork,
    ) -> Result<bool> {
        let versions = content::load_times(self.db, self.scope, &position.block)?;
        work.count_scanned(versions.len());
        let mut deleted = Vec::new();
        for (version, next) in versions.iter().zip(versions.iter().skip(1)) {
            let ((version, written_at), (_, replaced_at)) = (*version, *next);
            if replaced_at <= cutoff {
                work.counts.versions.add(written_at);
                deleted.push(version);
            }
        }
        if deleted.is_empty() || work.is_dry {
            return Ok(true);
        }
        work.delete(deleted.len() as i64, 0);
        content::delete_versions(self.db, self.scope, &position.block, &deleted)?;
        delete_callbacks(
            self.db,
            self.scope,
            &position.block,
            None,
            Selection::Versions(&deleted),
        )?;
        Ok(true)
    }

    /// The earlier versions of a block's entries and documents.
    fn item_versions(
        &self,
        position: &mut RetentionPosition,
        cutoff: i64,
        work: &mut StepWork,
    ) -> Result<bool> {
        // At least one whole item, plus one row.
        let limit = work.page().max(MAX_ENTRY_VERSIONS + 1);
        let rows = ages::load_versions(self.db, self.block(position), &position.key, limit)?;
        work.count_scanned(rows.len());
        let is_last = (rows.len() as i64) < limit;
        let mut items: Vec<(String, Vec<AgedVersion>)> = Vec::new();
        for row in rows {
            match items.last_mut() {
                Some((key, versions)) if *key == row.key => versions.push(row),
                Some(_) | None => items.push((row.key.clone(), vec![row])),
            }
        }
        if !is_last {
            // Its other versions are on the next page.
            items.pop();
        }
        for (key, mut versions) in items {
            versions.sort_by_key(|row| row.version);
            self.item(&position.block, &key, &versions, cutoff, work)?;
            position.key = key;
        }
        Ok(is_last)
    }

    /// The earlier versions of one entry or document, in order.
    fn item(
        &self,
        block: &str,
        key: &str,
        versions: &[AgedVersion],
        cutoff: i64,
        work: &mut StepWork,
    ) -> Result<()> {
        let mut replaced: Vec<Option<i64>> = versions
            .iter()
            .skip(1)
            .map(|next| Some(next.written_at))
            .collect();
        replaced.push(match versions.last() {
            // The last version records that the item was deleted: see `deleted`.
            Some(last) if last.is_deletion || last.written_at > cutoff => None,
            Some(last) => {
                work.count_scanned(1);
                let written_at = ages::find_written_at(self.db, (self.scope, block), key)?;
                Some(written_at.unwrap_or(last.written_at))
            }
            None => None,
        });
        let is_old = |at: &Option<i64>| at.is_some_and(|at| at <= cutoff);
        let deleted = versions.iter().zip(&replaced).filter(|(_, at)| is_old(at));
        let deleted: Vec<&AgedVersion> = deleted.map(|(row, _)| row).collect();
        for row in &deleted {
            work.counts.versions.add(row.written_at);
        }
        if deleted.is_empty() || work.is_dry {
            return Ok(());
        }
        work.delete(deleted.len() as i64, 0);
        let numbers: Vec<i64> = deleted.iter().map(|row| row.version).collect();
        ages::delete_versions(self.db, (self.scope, block), key, &numbers)?;
        delete_callbacks(
            self.db,
            self.scope,
            block,
            Some(key),
            Selection::Versions(&numbers),
        )?;
        let deletions = deleted.iter().filter(|row| row.is_deletion).count();
        self.count_forgotten(block, deletions as i64)
    }

    /// The remains of deleted entries and documents. The index finds the oldest deletions;
    /// a block stores at most 1,000.
    fn deleted(
        &self,
        position: &RetentionPosition,
        cutoff: i64,
        work: &mut StepWork,
    ) -> Result<bool> {
        // A dry run has already counted these as versions. A real run has already deleted
        // them.
        let counted = if work.is_dry {
            self.cutoff(RunStage::ItemVersions, &position.block)
        } else {
            None
        };
        let limit = if work.is_dry {
            MAX_DELETED
        } else {
            (work.page() / MAX_ENTRY_VERSIONS).max(1)
        };
        let block = self.block(position);
        let deletions = ages::load_deletions(self.db, block, cutoff, counted, limit)?;
        work.count_scanned(deletions.len());
        for deletion in &deletions {
            work.counts.deleted.add(deletion.written_at);
        }
        let is_last = work.is_dry || (deletions.len() as i64) < limit;
        if work.is_dry {
            return Ok(is_last);
        }
        let items: Vec<(&str, i64)> = deletions
            .iter()
            .map(|deletion| (deletion.key.as_str(), deletion.version))
            .collect();
        let forgotten = forget_up_to(self.db, (self.scope, &position.block), &items)?;
        work.delete(forgotten.rows, 0);
        for (key, version) in items {
            let selection = Selection::UpTo(version);
            delete_callbacks(self.db, self.scope, &position.block, Some(key), selection)?;
        }
        self.count_forgotten(&position.block, forgotten.deletions)?;
        Ok(is_last)
    }

    fn count_forgotten(&self, block: &str, deletions: i64) -> Result<()> {
        let change = CountChange {
            deleted: -deletions,
            ..CountChange::default()
        };
        change.write(self.db, self.scope, block)
    }

    /// The entries that were last written long ago.
    fn entries(
        &self,
        position: &mut RetentionPosition,
        cutoff: i64,
        work: &mut StepWork,
    ) -> Result<bool> {
        let limit = work.page();
        let rows = ages::load_entries(self.db, self.block(position), &position.key, limit)?;
        // Two reads per entry: the index row, and the entry with its time.
        work.count_scanned(2 * rows.len());
        let is_last = (rows.len() as i64) < limit;
        for (key, updated_at) in rows {
            if updated_at <= cutoff {
                if !work.is_dry && !work.has_capacity() {
                    return Ok(false);
                }
                work.counts.entries.add(updated_at);
                if !work.is_dry {
                    self.erase_entry(&position.block, &key)?;
                    work.delete(ROWS_OF_ENTRY, 0);
                }
            }
            position.key = key;
        }
        Ok(is_last)
    }

    /// Deletes an entry and all its versions.
    fn erase_entry(&self, block: &str, key: &str) -> Result<()> {
        // No block has a label that can't be parsed.
        if let Ok(label) = Label::parse(block) {
            erase_entry_at(self.db, &ItemKeys::new(self.scope, &label, key))?;
        }
        Ok(())
    }
}

fn days_of(stage: RunStage, rules: MemoryRules) -> Option<i64> {
    match stage {
        RunStage::BlockVersions | RunStage::ItemVersions => rules.versions_days,
        RunStage::Deleted => rules.deleted_days,
        RunStage::Entries => rules.entries_days,
        RunStage::Idle | RunStage::Checkpoints | RunStage::Events | RunStage::Over => None,
    }
}

fn rows_of(stage: RunStage) -> Option<AgedRows> {
    match stage {
        RunStage::BlockVersions => Some(AgedRows::BlockVersions),
        RunStage::ItemVersions | RunStage::Deleted => Some(AgedRows::ItemVersions),
        RunStage::Entries => Some(AgedRows::Entries),
        RunStage::Idle | RunStage::Checkpoints | RunStage::Events | RunStage::Over => None,
    }
}

fn next_stage(position: &mut RetentionPosition) {
    position.stage = match position.stage {
        RunStage::BlockVersions => RunStage::ItemVersions,
        RunStage::ItemVersions => RunStage::Deleted,
        RunStage::Deleted => RunStage::Entries,
        _ => RunStage::Over,
    };
    position.block.clear();
    position.key.clear();
}
