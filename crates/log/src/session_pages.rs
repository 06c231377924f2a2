//! Pages of sessions, newest activity first.
//!
//! An append writes nothing but its event, so no table holds the sessions in this order: to
//! find the newest, a page looks at the newest event of each session. It then knows the
//! pages after it too, and its cursor names their sessions. The next pages look at those
//! sessions alone, and at sessions that came meanwhile.

use super::sessions::{ACTIVE_AT, HEAD_JSON, METADATA_JSON, USAGE_JSON, shown_sessions};
use base::columns::{FromRow, find, find_value, load, load_values};
use base::database::{Database, Row, SqlValue};
use base::error::Result;
use base::filter::{Filter, FilteredColumns};
use base::host::Host;
use base::ids::Id;
use base::json;
use base::packed::{pack, unpack};

/// Metadata up to this length is part of a page: 500 sessions with this much are 4 MiB,
/// the longest page. Of sessions with longer metadata, fewer fit.
const SHORT_METADATA_BYTES: usize = 8 << 10;
const MAX_PAGE_BYTES: usize = 4 << 20;

/// How many sessions a page with a filter looks at.
const MAX_FILTERED: i64 = 500;

/// How many pages after its own a cursor names, so that it is short beside its page, and
/// how many sessions at most.
const PAGES_AHEAD: i64 = 8;
const MAX_AHEAD: i64 = 4_000;

/// With more sessions than this that came after a cursor was made, all are looked at again.
const MAX_NEWCOMERS: usize = 500;

/// A session's place in the list.
#[derive(Debug, Clone, Copy, PartialEq)]
struct SessionPlace {
    active_at: i64,
    number: i64,
}

impl SessionPlace {
    fn is_before(self, other: Self) -> bool {
        (self.active_at, self.number) > (other.active_at, other.number)
    }
}

impl FromRow<'_> for SessionPlace {
    fn from_row(row: &Row) -> Result<Self> {
        Ok(Self {
            active_at: row.integer(0)?,
            number: row.integer(1)?,
        })
    }
}

/// The end of a page of sessions: the next page has sessions with earlier activity.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionCursor {
    last: SessionPlace,
    ahead: Option<Ahead>,
}

/// The sessions after a page, as far as the page knew them.
#[derive(Debug, Clone, PartialEq)]
struct Ahead {
    newest: Newest,
    /// Whether there were no sessions beyond those that are named.
    is_all: bool,
    /// The next sessions, in the list's order.
    numbers: Vec<i64>,
}

/// The session with the agent's highest number. As long as it is there, a session that came
/// later has a higher number.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Newest {
    number: i64,
    /// Tells the session's id from the id of another session that gets the number later.
    mark: u32,
}

impl Newest {
    fn of(number: i64, id: &str) -> Self {
        // FNV-1a: the mark guards against chance, not against callers.
        let mark = id.bytes().fold(0x811C_9DC5_u32, |mark, byte| {
            (mark ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        });
        Self { number, mark }
    }

    fn load(db: &dyn Database) -> Result<Self> {
        let sql = "SELECT number, id FROM cf_agents_sessions ORDER BY number DESC LIMIT 1";
        let newest: Option<(i64, String)> = find(db, sql, &[])?;
        Ok(newest.map_or_else(Self::default, |(number, id)| Self::of(number, &id)))
    }

    fn is_there(self, db: &dyn Database) -> Result<bool> {
        let sql = "SELECT number, id FROM cf_agents_sessions WHERE number = ?1";
        let found: Option<(i64, String)> = find(db, sql, &[self.number.into()])?;
        Ok(found.is_some_and(|(number, id)| Self::of(number, &id) == self))
    }
}

impl SessionCursor {
    /// Reads `ACTIVE-NUMBER` or `ACTIVE-NUMBER-NEWEST-MARK-ALL-NUMBERS`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(6, '-');
        let last = SessionPlace {
            active_at: parts.next()?.parse().ok()?,
            number: parts.next()?.parse().ok()?,
        };
        let ahead = match parts.next() {
            None => None,
            Some(number) => Some(Ahead {
                newest: Newest {
                    number: number.parse().ok()?,
                    mark: parts.next()?.parse().ok()?,
                },
                is_all: parts.next()? == "1",
                numbers: unpack(parts.next()?, MAX_AHEAD as usize)?,
            }),
        };
        Some(Self { last, ahead })
    }

    fn render(&self) -> String {
        let SessionPlace { active_at, number } = self.last;
        match &self.ahead {
            None => format!("{active_at}-{number}"),
            Some(ahead) => format!(
                "{active_at}-{number}-{}-{}-{}-{}",
                ahead.newest.number,
                ahead.newest.mark,
                i64::from(ahead.is_all),
                pack(&ahead.numbers)
            ),
        }
    }
}

/// The content of a page of sessions.
#[derive(Clone, Copy)]
pub struct WantedSessions<'a> {
    pub limit: i64,
    pub before: Option<&'a SessionCursor>,
    pub only: Option<&'a Id>,
    /// The filter that a session must pass.
    pub filter: Option<&'a Filter>,
}

/// A page of sessions as JSON. `only` narrows the page to one session, for a caller who
/// may see no other session; the rows of others are not read.
pub fn list_sessions(
    db: &dyn Database,
    host: &dyn Host,
    wanted: &WantedSessions<'_>,
) -> Result<String> {
    let WantedSessions {
        limit: most,
        before,
        only,
        filter,
    } = *wanted;
    // With a filter, more sessions are looked at than the page shows.
    let limit = match filter {
        Some(_) => MAX_FILTERED,
        None => most,
    };
    let last = before.map(|cursor| cursor.last);
    let found = match (only, before.and_then(|cursor| cursor.ahead.as_ref())) {
        (Some(id), _) => find_only(db, id, last)?,
        (None, Some(ahead)) => match follow(db, limit, ahead, last)? {
            Some(found) => found,
            None => look_at_all(db, limit, last)?,
        },
        (None, None) => look_at_all(db, limit, last)?,
    };
    let limit = usize::try_from(limit).unwrap_or(0);
    let page = found.places.get(..limit).unwrap_or(&found.places);
    let looked_at = page.len();
    let passing: Vec<(usize, SessionPlace)> = match filter {
        Some(filter) => load_passing(db, page, filter, most)?,
        None => page.iter().copied().enumerate().collect(),
    };
    let places: Vec<SessionPlace> = passing.iter().map(|(_, place)| *place).collect();
    let rows = load_shown(db, &places)?;
    let rows: Vec<ListedSession> = rows.iter().map(Row::read).collect::<Result<_>>()?;
    let mut sessions = String::new();
    let mut shown = 0_usize;
    for row in &rows {
        let session = session_of(db, row)?;
        if shown > 0 && sessions.len() + session.len() > MAX_PAGE_BYTES {
            break;
        }
        if shown > 0 {
            sessions.push(',');
        }
        sessions.push_str(&session);
        shown += 1;
    }
    // The page ends with the last session that it shows, or, if a filter let no more through,
    // with the last one that was looked at.
    let is_whole = shown == rows.len() && (filter.is_none() || (shown as i64) < most);
    let end = match (is_whole, shown.checked_sub(1)) {
        (false, Some(last)) => passing.get(last).map_or(0, |(index, _)| index + 1),
        _ => looked_at,
    };
    let cursor = match end.checked_sub(1).and_then(|last| page.get(last)) {
        Some(last) => found.cursor_after(*last, end, host.now_ms()),
        None => None,
    };
    let cursor = cursor.map_or("null".to_owned(), |cursor| {
        format!("\"{}\"", cursor.render())
    });
    Ok(format!(r#"{{"sessions":[{sessions}],"cursor":{cursor}}}"#))
}

/// Which of these sessions pass the filter: the first `most`, each with its index.
fn load_passing(
    db: &dyn Database,
    page: &[SessionPlace],
    filter: &Filter,
    most: i64,
) -> Result<Vec<(usize, SessionPlace)>> {
    let sql = format!(
        "SELECT wanted.key, s.number
           FROM json_each(?1) AS wanted
          CROSS JOIN cf_agents_sessions AS s
             ON s.number = wanted.value
          WHERE {}
          ORDER BY wanted.key
          LIMIT ?3 + 0",
        filter.condition(&FilteredColumns::of_session(), "?2")
    );
    let numbers: Vec<i64> = page.iter().map(|place| place.number).collect();
    let params: [SqlValue; 3] = [
        json::encode(&numbers)?.into(),
        filter.param().into(),
        most.into(),
    ];
    let passing: Vec<(i64, i64)> = load(db, &sql, &params)?;
    let places = passing.into_iter().filter_map(|(index, _)| {
        let index = usize::try_from(index).ok()?;
        Some((index, *page.get(index)?))
    });
    Ok(places.collect())
}

/// Sessions from some place on, in the list's order.
struct FoundSessions {
    places: Vec<SessionPlace>,
    /// The numbers of the sessions that follow, as far as they are known.
    rest: Vec<i64>,
    newest: Newest,
    /// Whether no more sessions follow.
    is_all: bool,
}

impl FoundSessions {
    /// The cursor of a page that shows this many of the sessions; `last` is the last of them.
    /// It names the next sessions, unless one of them may get a place right after `last` by
    /// a write in this millisecond. Later writes move a session above the page.
    fn cursor_after(&self, last: SessionPlace, shown: usize, now_ms: i64) -> Option<SessionCursor> {
        let places = self.places.iter().skip(shown);
        // A reader that follows the cursor looks at newer sessions anyway.
        let numbers = places.map(|place| place.number);
        let numbers = numbers.filter(|number| *number <= self.newest.number);
        let numbers: Vec<i64> = numbers.chain(self.rest.iter().copied()).collect();
        let is_over = self.is_all && self.rest.is_empty() && self.places.len() <= shown;
        (!is_over).then_some(SessionCursor {
            last,
            ahead: (last.active_at < now_ms).then_some(Ahead {
                newest: self.newest,
                is_all: self.is_all,
                numbers,
            }),
        })
    }
}

/// The one session that the caller may see, if its place is after `last`.
fn find_only(db: &dyn Database, id: &Id, last: Option<SessionPlace>) -> Result<FoundSessions> {
    let sql = format!(
        "SELECT {ACTIVE_AT}, s.number
           FROM cf_agents_sessions AS s
          WHERE s.id = +?1"
    );
    let mut places: Vec<SessionPlace> = load(db, &sql, &[id.as_str().into()])?;
    // A cursor's number counts all sessions, and tells this caller nothing.
    places.retain(|place| last.is_none_or(|last| place.active_at < last.active_at));
    Ok(FoundSessions {
        places,
        rest: Vec::new(),
        newest: Newest::default(),
        is_all: true,
    })
}

/// The sessions after `last`, found by looking at each session of the agent.
fn look_at_all(db: &dyn Database, limit: i64, last: Option<SessionPlace>) -> Result<FoundSessions> {
    let sql = format!(
        "SELECT active_at, number
           FROM (SELECT {ACTIVE_AT} AS active_at, s.number
                   FROM cf_agents_sessions AS s)
          WHERE ?1 IS NULL OR (active_at, number) < (?1, ?2)
          ORDER BY active_at DESC, number DESC
          LIMIT ?3 + 0"
    );
    let most = limit + (limit * PAGES_AHEAD).min(MAX_AHEAD);
    let params: [SqlValue; 3] = [
        last.map(|last| last.active_at).into(),
        last.map(|last| last.number).into(),
        (most + 1).into(),
    ];
    let mut places: Vec<SessionPlace> = load(db, &sql, &params)?;
    let most = usize::try_from(most).unwrap_or(0);
    let is_all = places.len() <= most;
    places.truncate(most);
    Ok(FoundSessions {
        places,
        rest: Vec::new(),
        newest: Newest::load(db)?,
        is_all,
    })
}

/// The sessions after `last`, found among those that an earlier page named and those that
/// came later. `None`: these are not enough for a page, or the later sessions are not
/// known, or are too many.
fn follow(
    db: &dyn Database,
    limit: i64,
    ahead: &Ahead,
    last: Option<SessionPlace>,
) -> Result<Option<FoundSessions>> {
    if !ahead.newest.is_there(db)? {
        return Ok(None);
    }
    let newcomers: Vec<i64> = load_values(
        db,
        "SELECT number FROM cf_agents_sessions WHERE number > ?1 ORDER BY number LIMIT ?2",
        &[
            ahead.newest.number.into(),
            (MAX_NEWCOMERS as i64 + 1).into(),
        ],
    )?;
    if newcomers.len() > MAX_NEWCOMERS {
        return Ok(None);
    }
    let is_below = |place: &SessionPlace| last.is_none_or(|last| last.is_before(*place));
    let mut newcomers = load_places(db, &newcomers)?;
    newcomers.retain(is_below);
    // Sessions that were written to meanwhile are above the page, and leave room on it.
    let limit = usize::try_from(limit).unwrap_or(0);
    let mut rest = ahead.numbers.as_slice();
    let mut places: Vec<SessionPlace> = Vec::new();
    while places.len() <= limit && !rest.is_empty() {
        let (next, others) = rest.split_at_checked(limit + 1).unwrap_or((rest, &[]));
        let mut next = load_places(db, next)?;
        next.retain(is_below);
        places.extend(next);
        rest = others;
    }
    let end = places.last().copied();
    // A newcomer beyond the last session that was looked at has its turn on a later page.
    if !rest.is_empty() || !ahead.is_all {
        newcomers.retain(|place| end.is_some_and(|end| place.is_before(end)));
    }
    places.extend(newcomers);
    places.sort_by_key(|place| std::cmp::Reverse((place.active_at, place.number)));
    places.dedup();
    if places.len() <= limit && rest.is_empty() && !ahead.is_all {
        return Ok(None);
    }
    Ok(Some(FoundSessions {
        places,
        rest: rest.to_vec(),
        newest: ahead.newest,
        is_all: ahead.is_all,
    }))
}

/// The places of the sessions with these numbers that are still there.
fn load_places(db: &dyn Database, numbers: &[i64]) -> Result<Vec<SessionPlace>> {
    let sql = format!(
        "SELECT {ACTIVE_AT}, s.number
           FROM json_each(?1) AS wanted
          CROSS JOIN cf_agents_sessions AS s
             ON s.number = wanted.value
          ORDER BY wanted.key"
    );
    load(db, &sql, &[json::encode(&numbers)?.into()])
}

/// A session of a page: the three parts of its JSON.
struct ListedSession<'r> {
    number: i64,
    head: &'r str,
    /// `None`: the metadata is long, and a separate statement reads it.
    metadata: Option<&'r str>,
    usage: &'r str,
}

/// The sessions at these places, in this order.
fn load_shown(db: &dyn Database, places: &[SessionPlace]) -> Result<Vec<Row>> {
    let shown = shown_sessions(
        "wanted.key AS place, wanted.value ->> 0",
        "json_each(?1) AS wanted
          CROSS JOIN cf_agents_sessions AS s
             ON s.number = wanted.value ->> 1",
    );
    // Long metadata is read by a separate statement, if the page still has space for it.
    let sql = format!(
        r#"SELECT s.number,
                  {HEAD_JSON} || ',"metadata":',
                  iif(octet_length(s.metadata) > {SHORT_METADATA_BYTES}, NULL, {METADATA_JSON}),
                  {USAGE_JSON}
                  || iif(json_valid(coalesce(s.metadata, 'null')), '', ',"corrupt":true')
                  || '}}'
             FROM ({shown}) AS s
            ORDER BY s.place"#
    );
    let places = places.iter().map(|place| [place.active_at, place.number]);
    let places: Vec<[i64; 2]> = places.collect();
    db.rows(&sql, &[json::encode(&places)?.into()])
}

impl<'r> FromRow<'r> for ListedSession<'r> {
    fn from_row(row: &'r Row) -> Result<Self> {
        Ok(Self {
            number: row.integer(0)?,
            head: row.text(1)?,
            metadata: row.find_text(2),
            usage: row.text(3)?,
        })
    }
}

/// A session's JSON, made from its row of a page.
fn session_of(db: &dyn Database, row: &ListedSession<'_>) -> Result<String> {
    let (head, usage) = (row.head, row.usage);
    if let Some(metadata) = row.metadata {
        return Ok(format!("{head}{metadata}{usage}"));
    }
    let sql = format!("SELECT {METADATA_JSON} FROM cf_agents_sessions AS s WHERE s.number = ?1");
    let metadata: Option<Option<String>> = find_value(db, &sql, &[row.number.into()])?;
    let metadata = metadata.flatten();
    Ok(format!(
        "{head}{}{usage}",
        metadata.as_deref().unwrap_or("null")
    ))
}
