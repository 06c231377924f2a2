//! The numbers that a log's rows have, and the one number that a row has among
//! all rows of an agent: the index of words, the vectors and the change feed all
//! count by it, so it is made and taken apart here alone.
//!
//! The rule it protects: no number of one session is ever another session's. A
//! `seq` that grew past its bits would be one of the next session.

/// Bits of a `seq` in a row's number.
const SEQ_BITS: u32 = 32;

/// Bits of a session's number in a row's number.
const SESSION_BITS: u32 = 20;

/// The highest `seq` of a session: four thousand million events.
pub const MAX_SEQ: i64 = (1 << SEQ_BITS) - 1;

/// The highest number of a session: a million of them. A row's number then has 52
/// bits, and one bit more is left for rows that stand for part of an event:
/// JavaScript, through which every number of SQLite's goes, counts exactly to 2^53.
pub const MAX_SESSION_NUMBER: i64 = (1 << SESSION_BITS) - 1;

/// Above every row's number.
pub const BEYOND_PLACES: i64 = 1 << (SEQ_BITS + SESSION_BITS);

/// Bits between two appends' cursors in the change feed: an append's own is its
/// `seq` times 2^20, so the highest cursor has 52 bits, too.
const CURSOR_BITS: u32 = 20;

/// Cursors between two appends.
pub const CURSORS_A_SEQ: i64 = 1 << CURSOR_BITS;

/// The number that the row of an event has among all of the agent's.
pub fn place(session_number: i64, seq: i64) -> i64 {
    (session_number << SEQ_BITS) | seq
}

/// The session's number and the event's `seq`, from what [`place`] made of them.
pub fn split_place(place: i64) -> (i64, i64) {
    (place >> SEQ_BITS, place & MAX_SEQ)
}

/// [`place`] of two expressions, in SQL.
pub fn place_sql(session_number: &str, seq: &str) -> String {
    format!("(({session_number} << {SEQ_BITS}) | {seq})")
}

/// The two halves of [`split_place`] of an expression, in SQL.
pub fn session_number_sql(place: &str) -> String {
    format!("({place} >> {SEQ_BITS})")
}

pub fn seq_sql(place: &str) -> String {
    format!("({place} & {MAX_SEQ})")
}

/// Whether both have their bits. A row without its own number is in no index: one
/// that an earlier build took in a file may be such.
pub fn has_place(session_number: i64, seq: i64) -> bool {
    (0..=MAX_SESSION_NUMBER).contains(&session_number) && (0..=MAX_SEQ).contains(&seq)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_number_of_its_own_that_javascript_can_hold() {
        const EXACT: i64 = 1 << 53;
        let ends = [(0, 0), (0, MAX_SEQ), (1, 0), (MAX_SESSION_NUMBER, MAX_SEQ)];
        for (session, seq) in ends {
            assert!(has_place(session, seq));
            assert_eq!(split_place(place(session, seq)), (session, seq));
        }
        assert!(place(0, MAX_SEQ) < place(1, 0));
        assert!(place(MAX_SESSION_NUMBER, MAX_SEQ) < BEYOND_PLACES);
        const {
            assert!(BEYOND_PLACES < EXACT);
            assert!((MAX_SEQ + 1) * CURSORS_A_SEQ < EXACT);
        }
        assert!(!has_place(0, MAX_SEQ + 1));
        assert!(!has_place(MAX_SESSION_NUMBER + 1, 0));
    }
}
