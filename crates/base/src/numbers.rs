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

/// The highest number of a session: about a million sessions. A row's number then has
/// 52 bits. One more bit is left for rows that stand for a part of an event, since
/// every number from SQLite passes through JavaScript, which is exact up to 2^53.
pub const MAX_SESSION_NUMBER: i64 = (1 << SESSION_BITS) - 1;

/// Higher than every row's number.
pub const BEYOND_PLACES: i64 = 1 << (SEQ_BITS + SESSION_BITS);

/// The bits between the cursors of two appends in the change feed. An append's cursor
/// is its `seq` times 2^20, so the highest cursor has 52 bits, too.
const CURSOR_BITS: u32 = 20;

/// The number of cursors from one append to the next.
pub const CURSORS_A_SEQ: i64 = 1 << CURSOR_BITS;

/// The number of an event's row among all rows of the agent.
pub fn place(session_number: i64, seq: i64) -> i64 {
    (session_number << SEQ_BITS) | seq
}

/// The number of a row that stands for a part of an event: the `part`th part of this
/// session. All parts of a session are one range, beyond the places.
pub fn part_place(session_number: i64, part: i64) -> i64 {
    BEYOND_PLACES + place(session_number, part)
}

/// The session's number and the event's `seq`: the reverse of [`place`].
pub fn split_place(place: i64) -> (i64, i64) {
    (place >> SEQ_BITS, place & MAX_SEQ)
}

/// [`place`] as an SQL expression of two expressions.
pub fn place_sql(session_number: &str, seq: &str) -> String {
    format!("(({session_number} << {SEQ_BITS}) | {seq})")
}

/// The session's number of [`split_place`], as an SQL expression.
pub fn session_number_sql(place: &str) -> String {
    format!("({place} >> {SEQ_BITS})")
}

pub fn seq_sql(place: &str) -> String {
    format!("({place} & {MAX_SEQ})")
}

/// Whether both numbers fit into their bits. A row whose numbers don't fit is in no
/// index; an import by an earlier build may have left such a row.
pub fn has_place(session_number: i64, seq: i64) -> bool {
    (0..=MAX_SESSION_NUMBER).contains(&session_number) && (0..=MAX_SEQ).contains(&seq)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_unique_and_exact_in_javascript() {
        const EXACT: i64 = 1 << 53;
        let ends = [(0, 0), (0, MAX_SEQ), (1, 0), (MAX_SESSION_NUMBER, MAX_SEQ)];
        for (session, seq) in ends {
            assert!(has_place(session, seq));
            assert_eq!(split_place(place(session, seq)), (session, seq));
        }
        assert!(place(0, MAX_SEQ) < place(1, 0));
        assert!(place(MAX_SESSION_NUMBER, MAX_SEQ) < BEYOND_PLACES);
        assert!(part_place(MAX_SESSION_NUMBER, MAX_SEQ) < EXACT);
        const {
            assert!(BEYOND_PLACES < EXACT);
            assert!((MAX_SEQ + 1) * CURSORS_A_SEQ < EXACT);
        }
        assert!(!has_place(0, MAX_SEQ + 1));
        assert!(!has_place(MAX_SESSION_NUMBER + 1, 0));
    }
}
