//! The numbers of a log's rows, and the one number that identifies a row among all rows
//! of an agent. The word index, the vectors and the change feed all use this number, so
//! only this file composes it and takes it apart.
//!
//! The rule this file protects: two sessions never share a number. A `seq` that outgrew
//! its bits would be a number of the next session.

/// The bits of the `seq` in a row's number.
const SEQ_BITS: u32 = 32;

/// The bits of the session's number in a row's number.
const SESSION_BITS: u32 = 20;

/// The highest `seq` of a session: about four thousand million events.
pub const MAX_SEQ: i64 = (1 << SEQ_BITS) - 1;

/// The highest `seq` in a file: as many events again may follow an import.
pub const MAX_FILE_SEQ: i64 = MAX_SEQ / 2;

/// The latest time in a file, in milliseconds since the epoch: the latest that a date of JavaScript
/// can be.
pub const MAX_FILE_TIME_MS: i64 = 8_640_000_000_000_000;

/// The highest cost in a file: that of a thousand million calls, each with the highest cost
/// that `addUsage` takes. No sum of such costs overflows.
pub const MAX_FILE_COST: f64 = 1e24;

/// The highest number of a session: about a million sessions. A row's number then has 52 bits. One
/// more bit is left for rows that represent a part of an event, since every number from SQLite
/// passes through JavaScript, which is exact up to 2^53.
pub const MAX_SESSION_NUMBER: i64 = (1 << SESSION_BITS) - 1;

/// Higher than every row's number.
pub const ROW_NUMBERS_END: i64 = 1 << (SEQ_BITS + SESSION_BITS);

/// The bits between the cursors of two appends in the change feed. An append's cursor
/// is its `seq` times 2^20, so the highest cursor has 52 bits, too.
const CURSOR_BITS: u32 = 20;

/// The number of cursors from one append to the next.
pub const CURSORS_A_SEQ: i64 = 1 << CURSOR_BITS;

/// The number of an event's row among all rows of the agent.
pub fn row_number(session_number: i64, seq: i64) -> i64 {
    (session_number << SEQ_BITS) | seq
}

/// The number of a row that represents a part of an event: the `part`th part of this session. All
/// parts of a session are one range, beyond the row numbers of events.
pub fn part_row_number(session_number: i64, part: i64) -> i64 {
    ROW_NUMBERS_END + row_number(session_number, part)
}

/// The session's number and the event's `seq`: the reverse of [`row_number`].
pub fn split_row_number(row_number: i64) -> (i64, i64) {
    (row_number >> SEQ_BITS, row_number & MAX_SEQ)
}

/// [`row_number`] as an SQL expression of two expressions.
pub fn row_number_sql(session_number: &str, seq: &str) -> String {
    format!("(({session_number} << {SEQ_BITS}) | {seq})")
}

/// The session's number of [`split_row_number`], as an SQL expression.
pub fn session_number_sql(row_number: &str) -> String {
    format!("({row_number} >> {SEQ_BITS})")
}

pub fn seq_sql(row_number: &str) -> String {
    format!("({row_number} & {MAX_SEQ})")
}

/// Whether both numbers fit into their bits. A row whose numbers don't fit is in no
/// index; an import by an earlier build may have left such a row.
pub fn fits_row_number(session_number: i64, seq: i64) -> bool {
    (0..=MAX_SESSION_NUMBER).contains(&session_number) && (0..=MAX_SEQ).contains(&seq)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_numbers_are_unique_and_exact_in_javascript() {
        const EXACT: i64 = 1 << 53;
        let ends = [(0, 0), (0, MAX_SEQ), (1, 0), (MAX_SESSION_NUMBER, MAX_SEQ)];
        for (session, seq) in ends {
            assert!(fits_row_number(session, seq));
            assert_eq!(split_row_number(row_number(session, seq)), (session, seq));
        }
        assert!(row_number(0, MAX_SEQ) < row_number(1, 0));
        assert!(row_number(MAX_SESSION_NUMBER, MAX_SEQ) < ROW_NUMBERS_END);
        assert!(part_row_number(MAX_SESSION_NUMBER, MAX_SEQ) < EXACT);
        const {
            assert!(ROW_NUMBERS_END < EXACT);
            assert!((MAX_SEQ + 1) * CURSORS_A_SEQ < EXACT);
        }
        assert!(!fits_row_number(0, MAX_SEQ + 1));
        assert!(!fits_row_number(MAX_SESSION_NUMBER + 1, 0));
    }
}
