//! A block's text and its versions. The newest version is the content. A write adds one
//! row, and older versions are kept for a while.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Memory;
use super::change_events::ChangeEvent;
use super::definition::Definition;
use super::label::Label;
use super::origin::Origin;
use super::validity::Validity;
use super::writer::MemoryWriter;
use crate::tables::BLOCK_VERSIONS;
use base::columns::{find, find_value, load};
use base::database::{Database, Delete, SqlValue};
use base::error::{Code, Error, Result};
use base::json;
use base::numbers::ROW_NUMBERS_END;
use base::row;
use base::tags::{Metadata, Tags};
use base::tokens;

/// How many versions of a block are stored, and how many bytes of them. The newest version
/// is always kept.
pub const MAX_VERSIONS: i64 = 50;
pub const MAX_VERSIONS_BYTES: i64 = 8 << 20;

/// The most characters of a reason.
const MAX_REASON_CHARS: usize = 500;

/// One version of a block's text, or of an entry's or a document's.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Version {
    pub version: i64,
    pub content: String,
    pub tokens: i64,
    /// An entry's title, or a document's description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Whether the entry or the document was deleted with this version.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
    /// `tool`: a model wrote the text. `operation`: a caller of the API did.
    #[schemars(extend("enum" = [WrittenBy::Tool.name(), WrittenBy::Operation.name()]))]
    pub written_by: String,
    /// The session in which the text was written.
    pub session_id: Option<String>,
    pub turn_id: Option<String>,
    /// The answer in which a model wrote the text: the id of the answer's first event. The
    /// log has no such event if the turn ended without an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    pub reason: Option<String>,
    pub written_at: i64,
    /// The source of the text. For a block's text, it can be absent: then a model wrote it if
    /// `writtenBy` is `tool`, and otherwise the operator did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Origin>,
    /// The events that the text of an entry or a document comes from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// Whether the words of an entry are those of a caller narrowed to the session.
    #[serde(skip)]
    pub is_narrowed: bool,
    /// The custom data of the entry or the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    #[serde(default, skip_serializing_if = "Tags::is_empty")]
    pub tags: Tags,
    #[serde(flatten)]
    pub validity: Validity,
}

/// The writer of a version: a model with its tools, or a caller of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WrittenBy {
    Tool,
    Operation,
}

impl WrittenBy {
    pub fn parse(name: &str) -> Self {
        match name {
            "tool" => Self::Tool,
            _ => Self::Operation,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Operation => "operation",
        }
    }

    /// The default source of a text, if only the kind of its writer is known.
    pub fn default_origin(self) -> Origin {
        match self {
            Self::Tool => Origin::Agent,
            Self::Operation => Origin::Operator,
        }
    }
}

/// A text to write as the next version.
pub struct NewVersion<'a> {
    pub content: &'a str,
    pub reason: Option<&'a str>,
    pub writer: MemoryWriter<'a>,
    /// The source of the text. The writer may have written only a part of it.
    pub source: Origin,
}

pub fn check_reason(reason: Option<&str>) -> Result<()> {
    match reason {
        Some(reason) if reason.chars().count() > MAX_REASON_CHARS => Err(Error::invalid(
            "reason",
            format!("`reason` must have at most {MAX_REASON_CHARS} characters."),
        )),
        _ => Ok(()),
    }
}

/// Refuses a write that expects a version other than the newest.
pub fn check_version(label: &Label, expected: Option<i64>, version: i64) -> Result<()> {
    match expected {
        Some(expected) if expected != version => Err(Error::new(
            Code::VersionConflict,
            format!(
                "Block `{label}` is at version {version}, not at the expected one. Read the block, then write your change again."
            ),
        )
        .with("label", label.as_str())
        .with("expectedVersion", expected)
        .with("version", version)),
        _ => Ok(()),
    }
}

impl Version {
    /// The source of a block's text.
    pub fn origin(&self) -> Origin {
        let default = WrittenBy::parse(&self.written_by).default_origin();
        self.source.unwrap_or(default)
    }
}

row! {
    for Version {
        version: i64 = "version",
        content: &str = "content",
        written_by: String = "written_by",
        session_id: Option<String> = "session_id",
        turn_id: Option<String> = "turn_id",
        reason: Option<String> = "reason",
        written_at: i64 = "written_at",
        event_id: Option<String> = "event_id",
        source: Option<&str> = "source",
    }
    {
        let content = content.to_owned();
        Ok(Self {
            version,
            tokens: tokens::estimate(&content),
            content,
            written_by,
            session_id,
            turn_id,
            reason,
            written_at,
            event_id,
            source: source.and_then(Origin::parse),
            ..Self::default()
        })
    }
}

fn row_key(block: &Definition) -> [SqlValue; 2] {
    [block.scope.as_str().into(), block.content_key().into()]
}

/// The newest version; `None`: the block was never written.
pub fn find_newest(db: &dyn Database, block: &Definition) -> Result<Option<Version>> {
    let sql = format!(
        "SELECT {}
           FROM cf_agents_block_versions
          WHERE scope = +?1
            AND key = +?2
          ORDER BY version DESC
          LIMIT 1",
        Version::COLUMNS
    );
    find(db, &sql, &row_key(block))
}

pub fn find_version(
    db: &dyn Database,
    block: &Definition,
    version: i64,
) -> Result<Option<Version>> {
    let sql = format!(
        "SELECT {}
           FROM cf_agents_block_versions
          WHERE scope = ?1
            AND key = ?2
            AND version = ?3",
        Version::COLUMNS
    );
    let [scope, key] = row_key(block);
    find(db, &sql, &[scope, key, version.into()])
}

/// Up to `limit` versions, newest first. Each statement reads one version, because texts
/// read together would be in memory twice, in JavaScript and in Rust.
pub fn load_versions(db: &dyn Database, block: &Definition, limit: i64) -> Result<Vec<Version>> {
    let sql = format!(
        "SELECT {}
           FROM cf_agents_block_versions
          WHERE scope = ?1
            AND key = ?2
            AND version < ?3
          ORDER BY version DESC
          LIMIT 1",
        Version::COLUMNS
    );
    let mut versions: Vec<Version> = Vec::new();
    for _ in 0..limit {
        let below = versions
            .last()
            .map_or(ROW_NUMBERS_END, |older| older.version);
        let [scope, key] = row_key(block);
        let Some(version) = find(db, &sql, &[scope, key, below.into()])? else {
            break;
        };
        versions.push(version);
    }
    Ok(versions)
}

/// Writes a version's row unchanged. Must run in a transaction.
pub fn insert_version(db: &dyn Database, scope: &str, key: &str, version: &Version) -> Result<()> {
    db.run(
        "INSERT INTO cf_agents_block_versions
                (scope, key, version, content, written_by, session_id, turn_id, reason, written_at,
                 event_id, source)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        &[
            scope.into(),
            key.into(),
            version.version.into(),
            version.content.as_str().into(),
            version.written_by.as_str().into(),
            version.session_id.as_deref().into(),
            version.turn_id.as_deref().into(),
            version.reason.as_deref().into(),
            version.written_at.into(),
            version.event_id.as_deref().into(),
            version.source.map(Origin::name).into(),
        ],
    )
}

/// When a version was written; 0: it is not stored. If the clock is set back, a version
/// still isn't older than the previous one.
fn find_written_at(db: &dyn Database, block: &Definition, version: i64) -> Result<i64> {
    let [scope, key] = row_key(block);
    let sql = "SELECT written_at
                 FROM cf_agents_block_versions
                WHERE scope = ?1
                  AND key = ?2
                  AND version = ?3";
    let written_at = find_value(db, sql, &[scope, key, version.into()])?;
    Ok(written_at.unwrap_or(0))
}

/// Writes the version after `newest`, and deletes the oldest. Must run in a transaction.
pub fn write_version(
    memory: &Memory<'_>,
    block: &Definition,
    newest: i64,
    new: &NewVersion<'_>,
) -> Result<Version> {
    let (db, host) = (memory.db, memory.host);
    let written_by = if new.writer.is_tool {
        WrittenBy::Tool
    } else {
        WrittenBy::Operation
    };
    let version = Version {
        version: newest + 1,
        content: new.content.to_owned(),
        tokens: tokens::estimate(new.content),
        written_by: written_by.name().to_owned(),
        source: Some(new.source).filter(|source| *source != written_by.default_origin()),
        session_id: new.writer.session_id.map(|id| id.as_str().to_owned()),
        turn_id: new.writer.turn_id.map(str::to_owned),
        event_id: new.writer.event_id.map(str::to_owned),
        reason: new.reason.map(str::to_owned),
        written_at: host.now_ms().max(find_written_at(db, block, newest)?),
        ..Version::default()
    };
    insert_version(db, &block.scope, &block.content_key(), &version)?;
    let [scope, key] = row_key(block);
    Delete::from(
        BLOCK_VERSIONS,
        "scope = ?1
         AND key = ?2
         AND version < ?3
         AND (version <= ?3 - ?4
              OR version <= (SELECT max(version)
                               FROM (SELECT version,
                                            sum(octet_length(content)) OVER (ORDER BY version DESC) AS bytes
                                       FROM cf_agents_block_versions
                                      WHERE scope = ?1
                                        AND key = ?2)
                              WHERE bytes > ?5))",
        &[
            scope,
            key,
            version.version.into(),
            MAX_VERSIONS.into(),
            MAX_VERSIONS_BYTES.into(),
        ],
    )
    .run(db)?;
    ChangeEvent::of_text(block, version.version).notify(memory, new.writer)?;
    Ok(version)
}

/// The versions of a block's text with their times, oldest first. A block has at most
/// [`MAX_VERSIONS`].
pub fn load_times(db: &dyn Database, scope: &str, key: &str) -> Result<Vec<(i64, i64)>> {
    let sql = "SELECT version, written_at
                 FROM cf_agents_block_versions
                WHERE scope = ?1
                  AND key = ?2
                ORDER BY version";
    load(db, sql, &[scope.into(), key.into()])
}

/// Deletes versions of a block's text. Must run in a transaction.
pub fn delete_versions(db: &dyn Database, scope: &str, key: &str, versions: &[i64]) -> Result<()> {
    Delete::from(
        BLOCK_VERSIONS,
        "scope = ?1
         AND key = ?2
         AND version IN (SELECT value FROM json_each(?3))",
        &[scope.into(), key.into(), json::encode(&versions)?.into()],
    )
    .run(db)?;
    Ok(())
}

/// How often a write is attempted in a backend with concurrent writers.
pub const MAX_TRIES: usize = 4;

/// The error if another writer was faster at every attempt.
pub fn too_many_conflicts(block: &Definition) -> Error {
    Error::new(
        Code::VersionConflict,
        format!(
            "Block `{}` was changed by others {MAX_TRIES} times during this write. Nothing was written: read the block, and try again.",
            block.label
        ),
    )
    .with("label", block.label.as_str())
}
