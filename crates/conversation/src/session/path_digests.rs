//! Digests of the paths that requests in a provider's API followed. A client of such an API sends
//! its whole history with each request and names no session. The digest of the history's messages
//! identifies the event that the history ends with, without a scan of any session.
//!
//! A turn that such a request began has two rows: one for the path to the question, and one for the
//! path to the answer. Each costs two rows written, for the table and its index. Other turns have
//! no rows. A row whose event was deleted is ignored.
//! turns have none. A row whose event was deleted is ignored.

use base::columns::load;
use base::database::Database;
use base::error::Result;
use base::ids::Id;
use base::json;
use base::{row, sql};

/// The most rows that one lookup reads: several sessions may have the same path.
const MAX_FOUND: i64 = 64;

/// The number of digests in one lookup.
const BATCH: usize = 500;

row! {
    /// A position in a session, by the digest of the path that leads to it.
    #[derive(Debug, PartialEq)]
    pub struct PathEnd {
        pub digest: String = "d.digest",
        pub session_id: String = "d.session_id",
        pub seq: i64 = "d.seq",
    /// Whether the agent's answer ends here; else what it answered.
        pub is_answer: bool = "d.is_answer",
    }
}

/// Records the end of a path. If a path occurs again, its newest end counts. Part of a transaction.
pub fn record(
    db: &dyn Database,
    session_id: &Id,
    digest: &str,
    seq: i64,
    is_answer: bool,
) -> Result<()> {
    db.run(
        "INSERT INTO cf_agents_path_digests (digest, session_id, seq, is_answer)
         VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (digest, session_id)
             DO UPDATE SET seq = excluded.seq, is_answer = excluded.is_answer",
        &[
            digest.into(),
            session_id.as_str().into(),
            seq.into(),
            i64::from(is_answer).into(),
        ],
    )
}

/// Deletes the digest or id of an answer, in this session or in all of them.
pub fn forget(db: &dyn Database, session_id: Option<&Id>, name: &str) -> Result<()> {
    db.run(
        "DELETE FROM cf_agents_path_digests
          WHERE digest = ?1
            AND (?2 IS NULL OR session_id = ?2)",
        &[name.into(), session_id.map(Id::as_str).into()],
    )
}

/// The ends of the longest of these paths that any session has, in this session or in all of them.
/// `digests`: the shortest path first.
pub fn find_longest(
    db: &dyn Database,
    session_id: Option<&Id>,
    digests: &[String],
    answers_only: bool,
) -> Result<Vec<PathEnd>> {
    for some in digests.rchunks(BATCH) {
        let wanted = json::encode(&some)?;
        let found: Vec<PathEnd> = load(
            db,
            sql!(
                "SELECT ",
                PathEnd::COLUMNS,
                " FROM json_each(?1) AS wanted
              CROSS JOIN cf_agents_path_digests AS d
                 ON d.digest = wanted.value
                AND (?2 IS NULL OR d.session_id = ?2)
                AND (?3 = 0 OR d.is_answer = 1)
              CROSS JOIN cf_agents_events AS e
                 ON e.session_id = d.session_id
                AND e.seq = d.seq
              ORDER BY wanted.key DESC
              LIMIT ?4 + 0"
            ),
            &[
                wanted.into(),
                session_id.map(Id::as_str).into(),
                i64::from(answers_only).into(),
                MAX_FOUND.into(),
            ],
        )?;
        if let Some(longest) = found.first().map(|end| end.digest.clone()) {
            let is_longest = |end: &PathEnd| end.digest == longest;
            return Ok(found.into_iter().filter(is_longest).collect());
        }
    }
    Ok(Vec::new())
}
