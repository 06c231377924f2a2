//! The blocks that exist: blocks of the deployed configuration, and blocks that
//! operations defined. An operation's definition takes precedence. Defining a block again
//! never deletes its content.

use super::backends::source_error;
use super::block::{Block, BlockContent, load_content_here, read_or_omit};
use super::content::find_newest;
use super::definition::{Definition, WhenChanged, unresolved};
use super::label::Label;
use super::origin::Origin;
use super::source::{BlockBackend, BlockLocation, BlockSource};
use super::{BlockScope, Memory};
use crate::kind::BlockKind;
use crate::tables::{BLOCKS, delete_content};
use access::needs_secret;
use base::columns::{find_value, load};
use base::database::{Database, Delete, Row, SqlValue, atomically, find_row};
use base::error::{Code, Error, Result};
use base::ids::Id;
use base::json;
use base::tags::{Metadata, Tags};
use base::{row, sql};
use conversation::session::retention::record_block_rules;

/// The most blocks of an agent, and of each session.
pub const MAX_BLOCKS: i64 = 100;

row! {
    /// A block's row.
    struct DefinitionRow<'r> {
        scope: &'r str = "scope",
        label: &'r str = "label",
        kind: &'r str = "kind",
        description: Option<&'r str> = "description",
        max_tokens: Option<i64> = "max_tokens",
        default_content: Option<&'r str> = "default_content",
        source: Option<&'r str> = "source",
        when_changed: &'r str = "when_changed",
        defined_at: i64 = "defined_at",
        /// Whether this row hides a block of the deployed configuration.
        is_removed: bool = "is_removed",
        model_writes: Option<i64> = "model_writes",
        number: i64 = "number",
        /// The label in lower case, by which the row is found.
        key: &'r str = "key",
        retention: Option<&'r str> = "retention",
        metadata: Option<&'r str> = "metadata",
        tags: Option<&'r str> = "tags",
        origin: Option<&'r str> = "origin",
    }
}

impl DefinitionRow<'_> {
    /// The definition, whose source is not resolved yet.
    fn definition(&self) -> Result<Definition> {
        let damaged = || Error::corrupt_row(self.label, "definition");
        let source = self
            .source
            .map(json::decode::<BlockSource>)
            .transpose()
            .map_err(|_| damaged())?;
        Ok(Definition {
            scope: self.scope.to_owned(),
            label: Label::parse(self.label).map_err(|_| damaged())?,
            kind: BlockKind::parse(self.kind).ok_or_else(damaged)?,
            description: self.description.map(str::to_owned),
            max_tokens: self.max_tokens,
            default_content: self.default_content.map(str::to_owned),
            source,
            location: unresolved(),
            when_changed: match self.when_changed {
                "remind" => WhenChanged::Remind,
                _ => WhenChanged::Wait,
            },
            model_writes: self.model_writes.map(|writes| writes == 1),
            retention: self
                .retention
                .map(json::decode)
                .transpose()
                .map_err(|_| damaged())?,
            metadata: Metadata::read(self.metadata, self.label)?,
            tags: Tags::read(self.tags, self.label)?,
            origin: self.origin.and_then(Origin::parse),
            defined_at: Some(self.defined_at),
        })
    }
}

/// A definition's row for an export.
pub struct DefinedBlock {
    pub number: i64,
    /// Its source is not resolved.
    pub block: Definition,
    /// The row hides a block of the deployed configuration.
    pub is_removed: bool,
}

/// Up to `limit` definitions of a session, or of the agent, with numbers above this
/// number, ordered by number.
pub fn load_rows_after(
    db: &dyn Database,
    scope: &str,
    after_number: i64,
    limit: i64,
) -> Result<Vec<DefinedBlock>> {
    let sql = format!(
        "SELECT {}
           FROM cf_agents_blocks
          WHERE scope = ?1
            AND number > ?2
          ORDER BY number
          LIMIT ?3",
        DefinitionRow::COLUMNS
    );
    let params = [scope.into(), after_number.into(), limit.into()];
    let rows = db.rows(&sql, &params)?;
    rows.iter()
        .map(|row| {
            let row: DefinitionRow = row.read()?;
            Ok(DefinedBlock {
                number: row.number,
                is_removed: row.is_removed,
                block: row.definition()?,
            })
        })
        .collect()
}

/// All blocks of a scope: first the deployed blocks in the configuration's order,
/// then the other blocks in the order of their definition.
pub fn load_definitions(memory: &Memory<'_>, scope: BlockScope<'_>) -> Result<Vec<Definition>> {
    let sql = format!(
        "SELECT {}
           FROM cf_agents_blocks
          WHERE scope = +?1
          ORDER BY number
          LIMIT ?2 + 0",
        DefinitionRow::COLUMNS
    );
    let rows = memory
        .db
        .rows(&sql, &[scope.column().into(), (2 * MAX_BLOCKS).into()])?;
    let mut rows: Vec<DefinitionRow> = rows.iter().map(Row::read).collect::<Result<_>>()?;
    let mut blocks = Vec::new();
    if scope == BlockScope::Agent {
        for block in &memory.deployed.blocks {
            let key = block.label.key();
            match rows.iter().position(|row| row.key == key) {
                None => blocks.push(block.clone()),
                Some(index) => {
                    let row = rows.remove(index);
                    if !row.is_removed {
                        blocks.push(row.definition()?);
                    }
                }
            }
        }
    }
    for row in rows.iter().filter(|row| !row.is_removed) {
        blocks.push(row.definition()?);
    }
    let blocks = blocks.into_iter();
    Ok(blocks
        .map(|block| block.resolve_for(memory.agent))
        .collect())
}

pub fn find_definition(
    memory: &Memory<'_>,
    scope: BlockScope<'_>,
    label: &Label,
) -> Result<Option<Definition>> {
    find_in(memory, scope.column(), label)
}

/// The block of this label in a scope, given as the column's value.
pub fn find_in(memory: &Memory<'_>, scope: &str, label: &Label) -> Result<Option<Definition>> {
    match find_row_of(memory.db, scope, label)? {
        Some(row) => match row.read::<DefinitionRow>()? {
            row if row.is_removed => Ok(None),
            row => Ok(Some(row.definition()?.resolve_for(memory.agent))),
        },
        None => Ok(find_default(memory, scope, label)),
    }
}

pub fn get_definition(
    memory: &Memory<'_>,
    scope: BlockScope<'_>,
    label: &Label,
) -> Result<Definition> {
    find_definition(memory, scope, label)?.ok_or_else(|| block_not_found(label))
}

pub fn block_not_found(label: &Label) -> Error {
    Error::new(
        Code::BlockNotFound,
        format!(
            "There is no block `{label}` here. Define it with `defineBlock`, or list the existing \
             ones with `getBlocks`. For a session's block, set `sessionId`."
        ),
    )
    .with("label", label.as_str())
}

fn find_row_of(db: &dyn Database, scope: &str, label: &Label) -> Result<Option<Row>> {
    let sql = format!(
        "SELECT {}
           FROM cf_agents_blocks
          WHERE scope = ?1
            AND key = ?2",
        DefinitionRow::COLUMNS
    );
    find_row(db, &sql, &[scope.into(), label.key().into()])
}

/// The deployed block of this label, which every agent has.
fn find_default(memory: &Memory<'_>, scope: &str, label: &Label) -> Option<Definition> {
    if scope != BlockScope::Agent.column() {
        return None;
    }
    let found = memory.deployed.find_block(&label.key())?;
    Some(found.resolve_for(memory.agent))
}

/// Defines a block, or changes its definition. `may_call_outside`: the caller may choose the
/// block's backend.
pub async fn define(
    memory: &Memory<'_>,
    block: Definition,
    may_call_outside: bool,
) -> Result<Block> {
    let (block, loaded) = write_definition(memory, block, may_call_outside)?;
    match loaded {
        Some(loaded) => Ok(Block::new(&block, loaded)),
        None => read_or_omit(memory, &block).await,
    }
}

/// Writes the definition. Returns the content too if this object stores it.
fn write_definition(
    memory: &Memory<'_>,
    block: Definition,
    may_call_outside: bool,
) -> Result<(Definition, Option<BlockContent>)> {
    let mut block = block.resolve_for(memory.agent);
    check_location(&block)?;
    if let Some(binding) = block.backend().binding()
        && !memory.outbound.is_bound(binding)
    {
        return Err(base::outbound::CallFailure::not_configured(binding));
    }
    atomically(memory.db, || {
        let before = find_in(memory, &block.scope, &block.label)?;
        let had_source = before
            .as_ref()
            .is_some_and(|before| before.source.is_some());
        if (block.source.is_some() || had_source) && !may_call_outside {
            return Err(calls_outside(&block.label));
        }
        let ruled = before.as_ref().and_then(|before| before.retention.clone());
        if !may_call_outside {
            if block.retention.is_some() && block.retention != ruled {
                return Err(needs_secret("retention"));
            }
            block.retention = ruled;
        }
        check_retention(&block)?;
        let defined_at = before.as_ref().and_then(|before| before.defined_at);
        block.defined_at = defined_at;
        // Agents may define their blocks at every start: an equal definition writes no row.
        if defined_at.is_none() || before.as_ref() != Some(&block) {
            if find_row_of(memory.db, &block.scope, &block.label)?.is_none() {
                check_capacity(memory.db, &block.scope)?;
            }
            check_kind(memory.db, &block)?;
            // What a session loaded since then comes from its own block (`log_copies.rs`), so a new
            // definition of a block of documents does not change the time.
            let is_own = !block.scope.is_empty() && block.kind == BlockKind::Loadable;
            if !is_own || defined_at.is_none() {
                block.defined_at = Some(memory.host.now_ms()).max(defined_at);
            }
            write(memory.db, &block)?;
        }
        let loaded = match block.backend() {
            BlockBackend::Object => Some(load_content_here(memory, &block)?),
            BlockBackend::Bucket { .. }
            | BlockBackend::BucketPrefix { .. }
            | BlockBackend::Agent { .. }
            | BlockBackend::Service { .. }
            | BlockBackend::Unresolved { .. } => None,
        };
        Ok((block, loaded))
    })
}

/// Rejects a source that can't be resolved although it is not a template. A template may be
/// unresolvable for one agent: the same definition is sent to many.
pub fn check_location(block: &Definition) -> Result<()> {
    match &block.location {
        BlockLocation::Unresolved(reason) if !block.has_template() => Err(source_error(reason)),
        BlockLocation::Local(_) | BlockLocation::Remote(_) | BlockLocation::Unresolved(_) => Ok(()),
    }
}

/// Rejects rules for content that is not in this object.
pub fn check_retention(block: &Definition) -> Result<()> {
    if block.retention.is_none() || block.backend().is_this_object() || block.has_template() {
        return Ok(());
    }
    Err(Error::invalid(
        "retention",
        "The content of this block is stored outside this agent, so this agent can't delete it. \
         Set `retention` where the content is stored.",
    ))
}

fn calls_outside(label: &Label) -> Error {
    Error::new(
        Code::Forbidden,
        "Only the Worker's secret may define a block with a `source`; a minted token may not. A \
         block without a `source` is stored in this agent: define one with another label.",
    )
    .with_field("source")
    .with("label", label.as_str())
}

fn check_capacity(db: &dyn Database, scope: &str) -> Result<()> {
    let sql = "SELECT count(*) FROM cf_agents_blocks WHERE scope = ?1";
    let count: i64 = find_value(db, sql, &[scope.into()])?.unwrap_or(0);
    if count >= MAX_BLOCKS {
        return Err(Error::invalid(
            "label",
            format!("There are already {MAX_BLOCKS} blocks, which is the limit. Remove one first."),
        ));
    }
    Ok(())
}

/// Rejects a kind that would make the label's existing content unreadable.
fn check_kind(db: &dyn Database, block: &Definition) -> Result<()> {
    let holds = |table: &str, column: &str| -> Result<bool> {
        let sql = format!("SELECT 1 FROM {table} WHERE scope = ?1 AND {column} = ?2 LIMIT 1");
        let params = [block.scope.as_str().into(), block.content_key().into()];
        Ok(find_row(db, &sql, &params)?.is_some())
    };
    let lost = if !block.kind.has_content() && holds("cf_agents_block_versions", "key")? {
        "a text"
    } else if block.kind != BlockKind::Searchable && holds("cf_agents_entries", "block")? {
        "entries"
    } else if block.kind != BlockKind::Loadable && holds("cf_agents_skills", "block")? {
        "documents"
    } else {
        return Ok(());
    };
    Err(Error::invalid(
        "kind",
        format!(
            "Block `{}` has {lost}, which a {} block can't show. Nothing was changed: keep its \
             `kind`, or remove it with `purge` first.",
            block.label,
            block.kind.name()
        ),
    ))
}

/// Writes a definition's row unchanged. Part of a transaction.
pub fn write(db: &dyn Database, block: &Definition) -> Result<()> {
    let source = block.source.as_ref().map(json::encode).transpose()?;
    let retention = block.retention.as_ref().map(json::encode).transpose()?;
    let when_changed = match block.when_changed {
        WhenChanged::Wait => "wait",
        WhenChanged::Remind => "remind",
    };
    db.run(
        "INSERT INTO cf_agents_blocks
                (scope, key, label, kind, description, max_tokens, default_content, source, when_changed, defined_at,
                 model_writes, retention, metadata, tags, origin)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
             ON CONFLICT (scope, key) DO UPDATE
            SET label = excluded.label,
                kind = excluded.kind,
                description = excluded.description,
                max_tokens = excluded.max_tokens,
                default_content = excluded.default_content,
                source = excluded.source,
                when_changed = excluded.when_changed,
                is_removed = 0,
                model_writes = excluded.model_writes,
                retention = excluded.retention,
                metadata = excluded.metadata,
                tags = excluded.tags,
                origin = excluded.origin,
                defined_at = excluded.defined_at",
        &[
            block.scope.as_str().into(),
            block.label.key().into(),
            block.label.as_str().into(),
            block.kind.name().into(),
            block.description.as_deref().into(),
            block.max_tokens.into(),
            block.default_content.as_deref().into(),
            source.into(),
            when_changed.into(),
            block.defined_at.into(),
            block.model_writes.map_or(SqlValue::Null, SqlValue::from),
            retention.into(),
            block.metadata.as_ref().map(Metadata::as_str).into(),
            block.tags.to_column()?.into(),
            block.origin.map(Origin::name).into(),
        ],
    )?;
    match block.retention {
        Some(_) => record_block_rules(db, &block.scope),
        None => Ok(()),
    }
}

row! {
    /// The retention rules of a block, in rows.
    pub struct BlockRules {
        pub key: String = "key",
        pub retention: Option<String> = "retention",
    }
}

/// The blocks that rows of this scope define, with their rules.
pub fn load_rules(db: &dyn Database, scope: &str) -> Result<Vec<BlockRules>> {
    let sql = sql!(
        "SELECT ",
        BlockRules::COLUMNS,
        " FROM cf_agents_blocks
          WHERE scope = ?1"
    );
    load(db, sql, &[scope.into()])
}

/// Whether blocks of this session have retention rules of their own.
pub fn has_own_rules(db: &dyn Database, session_id: &Id) -> Result<bool> {
    let sql = "SELECT 1
                 FROM cf_agents_blocks
                WHERE scope = ?1
                  AND retention IS NOT NULL
                LIMIT 1";
    Ok(find_value::<i64>(db, sql, &[session_id.as_str().into()])?.is_some())
}

/// Records that blocks of this session have rules of their own, if any has. Part of the transaction
/// that writes the session's row after its blocks.
pub fn record_own_rules(db: &dyn Database, session_id: &Id) -> Result<()> {
    if has_own_rules(db, session_id)? {
        record_block_rules(db, session_id.as_str())
    } else {
        Ok(())
    }
}

/// Marks a row as one that hides a deployed block. Part of a transaction.
pub fn hide(db: &dyn Database, scope: &str, label: &Label) -> Result<()> {
    db.run(
        "UPDATE cf_agents_blocks SET is_removed = 1 WHERE scope = ?1 AND key = ?2",
        &[scope.into(), label.key().into()],
    )
}

/// Removes a block's definition; `false` if there is none. Content in this object stays for a later
/// block of the same label, unless `purge` is set. Content elsewhere always stays.
/// `may_call_outside`: as in [`define`]. Without this check, a caller who may not choose a backend
/// could remove the block and define another one.
pub fn remove(
    memory: &Memory<'_>,
    scope: BlockScope<'_>,
    label: &Label,
    purge: bool,
    may_call_outside: bool,
) -> Result<bool> {
    atomically(memory.db, || {
        let existing = find_definition(memory, scope, label)?;
        let has_source = |block: &Definition| block.source.is_some();
        if existing.as_ref().is_some_and(has_source) && !may_call_outside {
            return Err(calls_outside(label));
        }
        let has_rules = |block: &Definition| block.retention.is_some();
        if existing.as_ref().is_some_and(has_rules) && !may_call_outside {
            return Err(needs_secret("retention"));
        }
        match find_default(memory, scope.column(), label) {
            // This row hides the deployed block, which the next read would show again.
            Some(deployed) if existing.is_some() => {
                let defined_at = Some(memory.host.now_ms());
                write(
                    memory.db,
                    &Definition {
                        defined_at,
                        ..deployed
                    },
                )?;
                hide(memory.db, scope.column(), label)?;
            }
            Some(_) => {}
            None => {
                let row_key = [scope.column().into(), label.key().into()];
                Delete::from(BLOCKS, "scope = ?1 AND key = ?2", &row_key).run(memory.db)?;
            }
        }
        let purged = purge && delete_content(memory.db, scope.column(), &label.key())?;
        Ok(existing.is_some() || purged)
    })
}

/// The newest version of a block's text; 0: the text was never written.
pub fn version_of(db: &dyn Database, block: &Definition) -> Result<i64> {
    Ok(find_newest(db, block)?.map_or(0, |newest| newest.version))
}
