//! Purging one version of a block's text.

use super::label::Label;
use super::proposals::erase::erase_of_block;
use super::purge::forget_prompts;
use crate::tables::BLOCK_VERSIONS;
use base::database::{Database, Delete, SqlValue};
use base::error::Result;
use store::erasing::{ErasingDatabase, Overwrite};

/// Erases a version of a block's text. The newest version is kept with an empty text: otherwise the
/// version before it would become the block's text again.
pub fn erase_text(
    db: &ErasingDatabase<'_>,
    scope: &str,
    label: &Label,
    version: i64,
) -> Result<bool> {
    let version_key: [SqlValue; 3] = [scope.into(), label.key().into(), version.into()];
    // A frozen prompt contains the version of its time.
    forget_prompts(db, scope)?;
    erase_of_block(db, scope, &label.key(), None)?;
    let older = Delete::from(
        BLOCK_VERSIONS,
        "scope = ?1
         AND key = ?2
         AND version = ?3
         AND version < (SELECT max(newer.version)
                          FROM cf_agents_block_versions AS newer
                         WHERE newer.scope = ?1
                           AND newer.key = ?2)",
        &version_key,
    );
    if older.run(db)? > 0 {
        return Ok(true);
    }
    let texts = Overwrite {
        table: BLOCK_VERSIONS,
        columns: &["content", "reason"],
        condition: "scope = ?1
                    AND key = ?2
                    AND version = ?3",
        params: &version_key,
    };
    if db.overwrite(&texts)? == 0 {
        return Ok(false);
    }
    db.run(
        "UPDATE cf_agents_block_versions
            SET content = '',
                reason = NULL
          WHERE scope = ?1
            AND key = ?2
            AND version = ?3",
        &version_key,
    )?;
    db.count(|erased| erased.versions += 1);
    forget_prompts(db, scope)?;
    Ok(true)
}
