//! The last turn of each session: one row, which the session's next turn overwrites.
//!
//! A turn has one row in addition to its events:
//!
//! - The transaction that writes the user's message writes the row. The row records that a turn has
//!   started, and which `seq` its answer gets. An appended message writes no such row, so it starts
//!   no turn.
//! - The answer's first event records in `ends_turn` that the turn is over, with the turn's
//!   spending. So the end writes the assistant's events and no more, in one transaction.
//! - Some answers don't get the `seq`, because of an append in between, and some turns have no
//!   answer. Such a turn writes its end into the row, which then has no `state`.
//!
//! If the object is evicted before the end is committed, the turn is open: it is in [`IS_OPEN`],
//! and `chat/run/recover.rs` continues it. If the object is evicted after that, the turn is over,
//! and nothing is left to clean up.
//!
//! A session's spending is the sum of three: its own row, this row for the turns that were
//! overwritten, and the event that ended the last turn ([`USED_INPUT_TOKENS`]). Reading the sum
//! reads three rows at any length. An event may be deleted or changed, so [`fold_ended`] must run
//! first: it writes the event's numbers into this row.
//!
//! The rows of finished turns stay, up to [`MAX_FINISHED`]. Scans for interrupted turns read them
//! all. [`fold_surplus`] adds them to their sessions and deletes them.

use serde::Deserialize;

use crate::session::spending::TurnSpending;
use crate::session::usage_days::{self, DayUsage};
use crate::tables::LAST_TURNS;
use base::columns::{Joined, find, find_value, load, load_values};
use base::database::{Database, Delete, SqlValue, atomically};
use base::error::{Error, Result};
use base::host::Host;
use base::ids::Id;
use base::json::{self, MAX_INTEGER};
use base::{row, sql};
use store::calibration::Calibration;
use store::erasing::{ErasingDatabase, Overwrite};

/// SQL: whether the turn of row `t` runs or was interrupted.
pub const IS_OPEN: &str = "(t.state IS NOT NULL
    AND NOT EXISTS (SELECT 1
                      FROM cf_agents_events AS answer
                     WHERE answer.session_id = t.session_id
                       AND answer.seq = t.answer_seq
                       AND answer.ends_turn IS NOT NULL))";

/// SQL: joins the last turn `t` of a session `s`, and the event `answer` that may have
/// ended the turn.
pub const JOIN_LAST_TURN: &str = "
    LEFT JOIN cf_agents_last_turns AS t
      ON t.session_id = s.id
    LEFT JOIN cf_agents_events AS answer
      ON answer.session_id = t.session_id
     AND answer.seq = t.answer_seq";

/// SQL: all input tokens of a session `s` with [`JOIN_LAST_TURN`], at most the highest integer that
/// JavaScript represents exactly.
pub const USED_INPUT_TOKENS: &str = "min(9007199254740991,
    s.input_tokens + coalesce(t.input_tokens, 0) + coalesce(answer.ends_turn ->> '$.inputTokens', 0))";

/// SQL: the same for its output tokens.
pub const USED_OUTPUT_TOKENS: &str = "min(9007199254740991,
    s.output_tokens + coalesce(t.output_tokens, 0) + coalesce(answer.ends_turn ->> '$.outputTokens', 0))";

/// SQL: its input tokens that came from the provider's cache.
pub const USED_CACHED_TOKENS: &str = "min(9007199254740991,
    s.cached_input_tokens + coalesce(t.cached_input_tokens, 0)
    + coalesce(answer.ends_turn ->> '$.cachedInputTokens', 0))";

/// SQL: its cost.
pub const USED_COST: &str =
    "(s.cost + coalesce(t.cost, 0) + coalesce(answer.ends_turn ->> '$.cost', 0))";

/// The most days and models in a row. With one more, all of them move to the session's row and to
/// the agent's table. A session that uses one model pays two rows a week for this.
const MAX_DAYS: usize = 7;

/// Rows of finished turns that an agent stores. A session that has a row writes one row less with
/// its next turn.
const MAX_FINISHED: usize = 32;

/// The most rows that are settled at once.
const MAX_FOLDED: usize = 64;

/// The most sessions that one scan for leftovers of turns finds.
pub const MAX_FOUND: usize = 4;

/// The last turn of a session.
pub struct LastTurn {
    pub turn_id: Option<String>,
    pub answer_seq: Option<i64>,
    has_state: bool,
    /// The spending of the session's turns before this turn, as far as it is not in the
    /// session's row.
    earlier: SessionTally,
    /// The spending of the turn, if an event ended it.
    ended: Option<FinishedTurn>,
}

struct FinishedTurn {
    spent: TurnSpending,
    at: i64,
}

row! {
    /// The columns of a row `t` and the event `answer`.
    for LastTurn {
        turn_id: Option<String> = "t.turn_id",
        answer_seq: Option<i64> = "t.answer_seq",
        has_state: bool = "t.state IS NOT NULL",
        input_tokens: i64 = "t.input_tokens",
        output_tokens: i64 = "t.output_tokens",
        cached_input_tokens: i64 = "t.cached_input_tokens",
        cost: f64 = "t.cost",
        usage_days: Option<&str> = "t.usage_days",
        calibration: Option<&str> = "t.calibration",
        ended_at: Option<i64> = "answer.created_at",
        ended: Option<&str> = "answer.ends_turn",
    }
    Ok(Self {
        turn_id,
        answer_seq,
        has_state,
        earlier: SessionTally {
            input_tokens,
            output_tokens,
            cached_input_tokens,
            cost,
            days: usage_days::parse(usage_days),
            // A value that can't be read is dropped, and measured again.
            calibration: calibration.and_then(|json| json::decode(json).ok()),
        },
        ended: ended.map(|json| FinishedTurn {
            spent: json::decode(json).unwrap_or_default(),
            at: ended_at.unwrap_or_default(),
        }),
    })
}

impl LastTurn {
    /// Whether the turn runs or was interrupted.
    pub fn is_open(&self) -> bool {
        self.has_state && self.ended.is_none()
    }

    /// The event that ended the turn.
    fn ended_seq(&self) -> Option<i64> {
        self.answer_seq.filter(|_| self.ended.is_some())
    }

    /// The spending of the session's turns, this one included if it is over.
    fn over(self) -> SessionTally {
        match &self.ended {
            Some(ended) => self.earlier.with(ended),
            None => self.earlier,
        }
    }
}

/// The spending of turns of a session, and the correction of estimates that they have shown.
#[derive(Clone, Default)]
struct SessionTally {
    input_tokens: i64,
    output_tokens: i64,
    cached_input_tokens: i64,
    cost: f64,
    /// The same by day and model, as far as it is not stored elsewhere.
    days: Vec<DayUsage>,
    /// `None`: nothing was reported yet.
    calibration: Option<Calibration>,
}

impl SessionTally {
    /// The sum with another turn.
    fn with(&self, ended: &FinishedTurn) -> Self {
        let spent = &ended.spent;
        let mut days = self.days.clone();
        usage_days::add(&mut days, DayUsage::of_turn(spent, ended.at));
        let sum = |sum: i64, more: i64| sum.saturating_add(more).clamp(0, MAX_INTEGER);
        let calibration = self.calibration.unwrap_or_default();
        let learnt = calibration.after(spent.estimated, spent.input_tokens);
        Self {
            input_tokens: sum(self.input_tokens, spent.input_tokens),
            output_tokens: sum(self.output_tokens, spent.output_tokens),
            cached_input_tokens: sum(self.cached_input_tokens, spent.cached_input_tokens),
            cost: self.cost + spent.cost,
            days,
            calibration: learnt.or(self.calibration),
        }
    }

    /// Moves the days away if they are many. Part of the transaction that writes the sum.
    fn store_days(&mut self, db: &dyn Database, session_id: &Id) -> Result<()> {
        if self.days.len() > MAX_DAYS {
            usage_days::store(db, session_id, &self.days)?;
            self.days.clear();
        }
        Ok(())
    }

    fn calibration_json(&self) -> Result<Option<String>> {
        let json = self.calibration.as_ref().map(json::encode);
        json.transpose()
    }
}

/// SQL: the last turns `t`, each with the event `answer` that may have ended the turn.
const FROM_LAST_TURNS: &str = "
     FROM cf_agents_last_turns AS t
     LEFT JOIN cf_agents_events AS answer
       ON answer.session_id = t.session_id
      AND answer.seq = t.answer_seq";

pub fn find_last_turn(db: &dyn Database, session_id: &Id) -> Result<Option<LastTurn>> {
    let sql = format!(
        "SELECT {} {FROM_LAST_TURNS} WHERE t.session_id = +?1",
        LastTurn::COLUMNS
    );
    find(db, &sql, &[session_id.as_str().into()])
}

/// Finds the session's turn if it runs or was interrupted.
pub fn find_open_turn(db: &dyn Database, session_id: &Id) -> Result<Option<LastTurn>> {
    Ok(find_last_turn(db, session_id)?.filter(LastTurn::is_open))
}

/// Sessions with rows in this table and without an open turn, at most [`MAX_FOUND`].
pub fn load_without_turn(db: &dyn Database, table: &'static str) -> Result<Vec<Id>> {
    let sql = format!(
        "SELECT DISTINCT row.session_id
           FROM {table} AS row
          WHERE NOT EXISTS (SELECT 1
                              FROM cf_agents_last_turns AS t
                             WHERE t.session_id = row.session_id
                               AND {IS_OPEN})
          ORDER BY row.session_id
          LIMIT ?1"
    );
    let ids: Vec<String> = load_values(db, &sql, &[(MAX_FOUND as i64).into()])?;
    ids.into_iter()
        .map(|id| Id::parse(id).map_err(Error::storage))
        .collect()
}

/// A turn that begins.
pub struct NewTurn<'a> {
    pub session_id: &'a Id,
    pub turn_id: &'a str,
    /// The `seq` of the session's next event.
    pub answer_seq: i64,
}

/// Writes the turn over the session's last turn, whose spending is preserved. Part of the
/// transaction that writes the user's message. `render` makes the new turn's state, as JSON (see
/// `chat/turn/mod.rs`). Its argument is the event that ended the turn before, if that is known.
pub fn begin(
    db: &dyn Database,
    new: NewTurn<'_>,
    render: impl FnOnce(Option<i64>) -> Result<String>,
) -> Result<()> {
    let last = find_last_turn(db, new.session_id)?;
    let (before, mut tally) = match last {
        Some(last) if last.is_open() => {
            return Err(Error::storage("a turn begins while another is open"));
        }
        Some(last) => (last.ended_seq(), last.over()),
        None => {
            let folded = find_folded(db, new.session_id)?;
            let tally = SessionTally {
                calibration: folded.calibration,
                ..SessionTally::default()
            };
            (folded.last_turn, tally)
        }
    };
    let state = render(before)?;
    tally.store_days(db, new.session_id)?;
    db.run(
        "INSERT INTO cf_agents_last_turns
                (session_id, turn_id, answer_seq, input_tokens, output_tokens,
                 cached_input_tokens, cost, usage_days, calibration, state)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
             ON CONFLICT (session_id) DO UPDATE
            SET turn_id = excluded.turn_id,
                recoveries = 0,
                answer_seq = excluded.answer_seq,
                input_tokens = excluded.input_tokens,
                output_tokens = excluded.output_tokens,
                cached_input_tokens = excluded.cached_input_tokens,
                cost = excluded.cost,
                usage_days = excluded.usage_days,
                calibration = excluded.calibration,
                state = excluded.state",
        &[
            new.session_id.as_str().into(),
            new.turn_id.into(),
            new.answer_seq.into(),
            tally.input_tokens.into(),
            tally.output_tokens.into(),
            tally.cached_input_tokens.into(),
            tally.cost.into(),
            usage_days::encode(&tally.days)?.into(),
            tally.calibration_json()?.into(),
            state.into(),
        ],
    )
}

/// Writes the end of the open turn into its row. Part of a transaction.
pub fn end_open_turn(
    db: &dyn Database,
    host: &dyn Host,
    session_id: &Id,
    open: &LastTurn,
    spent: TurnSpending,
) -> Result<()> {
    let at = host.now_ms();
    let ended = FinishedTurn { spent, at };
    write_over(db, session_id, open.earlier.with(&ended))
}

/// Stores an event's numbers about the turn that it ended, and drops the turn's state. Part of the
/// transaction that deletes or changes events. An open turn stays as it is.
pub fn fold_ended(db: &dyn Database, session_id: &Id) -> Result<()> {
    if let Some(last) = find_last_turn(db, session_id)?
        && let Some(ended) = &last.ended
    {
        write_over(db, session_id, last.earlier.with(ended))?;
    }
    Ok(())
}

/// Overwrites what the row still contains of a finished turn. An open turn stays as it is. Returns
/// how many turns these are. Part of the transaction that purges events.
pub fn overwrite_over(db: &ErasingDatabase<'_>, session_id: &Id) -> Result<i64> {
    let condition = format!(
        "session_id IN (SELECT t.session_id
                          FROM cf_agents_last_turns AS t
                         WHERE t.session_id = ?1
                           AND t.state IS NOT NULL
                           AND NOT {IS_OPEN})"
    );
    db.overwrite(&Overwrite {
        table: LAST_TURNS,
        columns: &["state"],
        condition: &condition,
        params: &[session_id.as_str().into()],
    })
}

/// Records in the row that its turn is over, and the sums that the next turn continues.
fn write_over(db: &dyn Database, session_id: &Id, mut tally: SessionTally) -> Result<()> {
    tally.store_days(db, session_id)?;
    db.run(
        "UPDATE cf_agents_last_turns
            SET answer_seq = NULL,
                input_tokens = ?2,
                output_tokens = ?3,
                cached_input_tokens = ?4,
                cost = ?5,
                usage_days = ?6,
                calibration = ?7,
                state = NULL
          WHERE session_id = ?1",
        &[
            session_id.as_str().into(),
            tally.input_tokens.into(),
            tally.output_tokens.into(),
            tally.cached_input_tokens.into(),
            tally.cost.into(),
            usage_days::encode(&tally.days)?.into(),
            tally.calibration_json()?.into(),
        ],
    )
}

/// If there are more than `MAX_FINISHED` rows of finished turns, adds some of them to their
/// sessions and deletes them.
pub fn fold_surplus(db: &dyn Database) -> Result<()> {
    let sql = format!(
        "SELECT t.session_id
           FROM cf_agents_last_turns AS t
          WHERE NOT {IS_OPEN}
          LIMIT ?1"
    );
    let limit = (MAX_FINISHED + MAX_FOLDED) as i64;
    let over: Vec<String> = load_values(db, &sql, &[limit.into()])?;
    if over.len() <= MAX_FINISHED {
        return Ok(());
    }
    atomically(db, || {
        let mut days = Vec::new();
        for session_id in over.iter().take(MAX_FOLDED) {
            let id = Id::parse(session_id.clone()).map_err(Error::storage)?;
            let Some(last) = find_last_turn(db, &id)? else {
                continue;
            };
            let ended_seq = last.ended_seq();
            let tally = last.over();
            let usage_days = usage_days::encode_with(db, id.as_str(), &tally.days)?;
            // `updated_at` stays: the session is not written to.
            let params: [SqlValue; 9] = [
                id.as_str().into(),
                tally.input_tokens.into(),
                tally.output_tokens.into(),
                MAX_INTEGER.into(),
                tally.cached_input_tokens.into(),
                tally.cost.into(),
                usage_days.into(),
                tally.calibration_json()?.into(),
                ended_seq.into(),
            ];
            db.run(
                "UPDATE cf_agents_sessions
                    SET input_tokens = min(input_tokens + ?2, ?4),
                        output_tokens = min(output_tokens + ?3, ?4),
                        cached_input_tokens = min(cached_input_tokens + ?5, ?4),
                        cost = cost + ?6,
                        usage_days = ?7,
                        compaction = CASE
                          WHEN NOT json_valid(coalesce(compaction, '{}')) THEN compaction
                          WHEN ?8 IS NULL AND ?9 IS NULL THEN json_remove(compaction, '$.lastTurn')
                          WHEN ?8 IS NULL THEN json_set(coalesce(compaction, '{}'), '$.lastTurn', CAST(?9 AS INTEGER))
                          ELSE json_set(coalesce(compaction, '{}'),
                                        '$.calibration', json(?8), '$.lastTurn', CAST(?9 AS INTEGER))
                        END
                  WHERE id = ?1",
                &params,
            )?;
            Delete::from(LAST_TURNS, "session_id = ?1", &[id.as_str().into()]).run(db)?;
            for day in tally.days {
                usage_days::add(&mut days, day);
            }
        }
        // One row per day and model for all these sessions.
        usage_days::count_for_agent(db, &days)
    })
}

/// Adds the spending of a session's last turns to the agent's table. Their row is about
/// to be deleted. Part of the transaction that deletes it.
pub fn add_to_agent(db: &dyn Database, session_id: &Id) -> Result<()> {
    match find_last_turn(db, session_id)? {
        Some(last) => usage_days::count_for_agent(db, &last.over().days),
        None => Ok(()),
    }
}

/// The days and models in the rows of last turns: of one session, or of all.
pub fn load_days(db: &dyn Database, session_id: Option<&Id>) -> Result<Vec<DayUsage>> {
    let rows: Vec<LastTurn> = match session_id {
        Some(id) => find_last_turn(db, id)?.into_iter().collect(),
        None => load(
            db,
            &format!("SELECT {} {FROM_LAST_TURNS}", LastTurn::COLUMNS),
            &[],
        )?,
    };
    let mut days = Vec::new();
    for row in rows {
        for day in row.earlier.days {
            usage_days::add(&mut days, day);
        }
        if let Some(ended) = &row.ended {
            usage_days::add(&mut days, DayUsage::of_turn(&ended.spent, ended.at));
        }
    }
    Ok(days)
}

/// SQL: the event that ended the last turn of a session `s` that may have a last turn `t`. It is in
/// the session's journal (`context/compaction/journal.rs`) if the turn has no row any more, so that
/// what is shown of a session's turns depends on no other session.
pub const ENDED_SEQ: &str = "CASE
         WHEN t.session_id IS NOT NULL THEN t.answer_seq
         WHEN json_valid(s.compaction) THEN s.compaction ->> '$.lastTurn'
       END";

/// SQL: the sums of a session `s` whose last turn has no row any more. They are in the
/// session's journal, too.
const FOLDED_CALIBRATION: &str = "(SELECT session.compaction -> '$.calibration'
                                   FROM cf_agents_sessions AS session
                                  WHERE session.id = s.id
                                    AND json_valid(session.compaction))";

fn find_folded_calibration(db: &dyn Database, session_id: &Id) -> Result<Option<Calibration>> {
    Ok(find_folded(db, session_id)?.calibration)
}

/// The sums that a session's journal has of turns that have no row any more.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct FoldedTurns {
    calibration: Option<Calibration>,
    last_turn: Option<i64>,
}

fn find_folded(db: &dyn Database, session_id: &Id) -> Result<FoldedTurns> {
    let sql = "SELECT compaction
                 FROM cf_agents_sessions
                WHERE id = +?1";
    let stored: Option<Option<String>> = find_value(db, sql, &[session_id.as_str().into()])?;
    let journal = stored.flatten().and_then(|json| json::decode(&json).ok());
    Ok(journal.unwrap_or_default())
}

/// The correction of estimates of a session's tokens. It follows from the reported tokens of its
/// own turns, and of the contexts that its callers sent.
pub fn load_calibration(db: &dyn Database, session_id: &Id) -> Result<Calibration> {
    let sql = format!(
        "SELECT {}
           FROM (SELECT +?1 AS id) AS s {JOIN_LAST_TURN}",
        CalibrationRow::COLUMNS
    );
    let found: Option<CalibrationRow> = find(db, &sql, &[session_id.as_str().into()])?;
    let found = found.ok_or_else(|| Error::storage("a row that is always there is missing"))?;
    Ok(found.0.unwrap_or_default())
}

/// Learns from usage that a caller reports for a context: `estimated` is the estimate of the
/// context that the caller received, and `reported` is the provider's count. Part of the
/// transaction that counts the usage. Returns sums that belong into the session's own row, for the
/// statement that writes the row anyway.
pub fn learn(
    db: &dyn Database,
    session_id: &Id,
    estimated: i64,
    reported: i64,
) -> Result<Option<String>> {
    if estimated <= 0 || reported <= 0 {
        return Ok(None);
    }
    let Some(last) = find_last_turn(db, session_id)? else {
        let folded = find_folded_calibration(db, session_id)?.unwrap_or_default();
        let learnt = folded.after(folded.uncorrect(estimated), reported);
        return learnt.as_ref().map(json::encode).transpose();
    };
    let is_settled = last.ended.is_none();
    let mut tally = last.over();
    let known = tally.calibration.unwrap_or_default();
    let Some(learnt) = known.after(known.uncorrect(estimated), reported) else {
        return Ok(None);
    };
    tally.calibration = Some(learnt);
    if is_settled {
        db.run(
            "UPDATE cf_agents_last_turns SET calibration = ?2 WHERE session_id = ?1",
            &[session_id.as_str().into(), tally.calibration_json()?.into()],
        )?;
    } else {
        // The report of the turn's event comes before this report.
        write_over(db, session_id, tally)?;
    }
    Ok(None)
}

/// The correction of a session's estimates, if its turns have reported anything.
struct CalibrationRow(Option<Calibration>);

row! {
    for CalibrationRow {
        last: Joined<LastTurn> = sql!("t.session_id, ", LastTurn::COLUMNS),
        folded: Option<&str> = sql!("CASE WHEN t.session_id IS NULL THEN ", FOLDED_CALIBRATION, " END"),
    }
    {
        Ok(Self(match last {
            Joined(Some(last)) => last.over().calibration,
            Joined(None) => folded.and_then(|json| json::decode(json).ok()),
        }))
    }
}
