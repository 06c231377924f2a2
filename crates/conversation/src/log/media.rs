//! Deduplicated inline media. The payload of a long `data:` URL in a message's parts is cut
//! out of the text and stored by its hash, once per session however many messages contain
//! it. Its position is stored separately from the text. The restored message is identical
//! to the original, because the payload keeps its JSON escapes.
//!
//! Two invariants: no text can forge a reference, because positions are not stored in the
//! text; and a payload is deleted with its last use, neither earlier nor later.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::slices;
use crate::tables::MEDIA;
use base::data_url::find_payload;
use base::database::{Database, Delete, SqlValue, find_row};
use base::error::Result;
use base::ids::Id;
use base::json::{self, JsonPiece, RawValue, json, pieces};
use base::part::PartKind;

/// The minimum size of a payload that is stored separately, because that costs one row,
/// plus one row per use.
const MIN_BYTES: usize = 4 << 10;

/// The most payloads that are cut out of one message. Their positions take about 20 KB of
/// its row; further payloads stay in the text.
const MAX_CUTS: usize = 256;

/// A payload's position in the remaining text, and its hash.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct PayloadPosition(usize, String);

/// A message's text without its media, and the media.
#[derive(Debug, PartialEq)]
pub struct StrippedText<'a> {
    pub text: Cow<'a, str>,
    /// The positions, for the event's `media` column; `None` if nothing was cut.
    pub positions: Option<String>,
    pub payloads: Vec<Payload<'a>>,
    /// The bytes that were cut. A payload counts once per occurrence.
    pub bytes: usize,
}

/// One payload. A payload that occurs twice is listed once.
#[derive(Debug, PartialEq)]
pub struct Payload<'a> {
    pub hash: String,
    pub text: &'a str,
}

/// Cuts the media out of a message. `fields` is the content of its JSON object.
pub fn cut(fields: &str) -> StrippedText<'_> {
    let mut cut = StrippedText {
        text: Cow::Borrowed(fields),
        positions: None,
        payloads: Vec::new(),
        bytes: 0,
    };
    let mut spans = find_spans(fields).unwrap_or_default();
    spans.truncate(MAX_CUTS);
    if spans.is_empty() {
        return cut;
    }
    let mut text = String::new();
    let mut positions = Vec::new();
    let mut copied = 0;
    for (start, end) in spans {
        let (Some(before), Some(payload)) = (fields.get(copied..start), fields.get(start..end))
        else {
            continue;
        };
        text.push_str(before);
        let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(payload));
        if !cut.payloads.iter().any(|known| known.hash == hash) {
            cut.payloads.push(Payload {
                hash: hash.clone(),
                text: payload,
            });
        }
        positions.push(PayloadPosition(text.len(), hash));
        copied = end;
    }
    text.push_str(fields.get(copied..).unwrap_or_default());
    cut.bytes = fields.len() - text.len();
    cut.text = Cow::Owned(text);
    cut.positions = Some(json::text(&json!(positions)));
    cut
}

#[derive(Deserialize)]
struct MediaMessage<'a> {
    #[serde(borrow)]
    parts: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct MediaPart<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
}

/// The starts and ends of payloads in `fields`, in order. `None`: `fields` can't contain a
/// payload.
fn find_spans(fields: &str) -> Option<Vec<(usize, usize)>> {
    if fields.len() < MIN_BYTES || !may_contain_data_url(fields) {
        return None;
    }
    let whole = ["{", fields, "}"].concat();
    let message: MediaMessage<'_> = json::decode(&whole).ok()?;
    let mut spans = Vec::new();
    for part in message.parts {
        let is_text = json::decode::<MediaPart<'_>>(part.get())
            .map_or(true, |part| PartKind::parse(&part.kind) == PartKind::Text);
        if is_text {
            continue;
        }
        // The part's offset: `part` is a slice of `whole`, which has one more brace.
        let at = (part.get().as_ptr() as usize).checked_sub(whole.as_ptr() as usize + 1)?;
        spans.extend(strings_of(part.get()).filter_map(|(start, string)| {
            let payload = start + find_payload(string)?;
            let end = start + string.len();
            (end - payload >= MIN_BYTES).then_some((at + payload, at + end))
        }));
    }
    Some(spans)
}

fn may_contain_data_url(fields: &str) -> bool {
    fields.match_indices(':').any(|(colon, _)| {
        let name = colon
            .checked_sub(5)
            .and_then(|start| fields.get(start..colon));
        name.is_some_and(|name| name.eq_ignore_ascii_case("\"data"))
    })
}

/// The strings of a JSON text, including names: each with its offset, and as written
/// between its quotes.
fn strings_of(json: &str) -> impl Iterator<Item = (usize, &str)> {
    pieces(json).filter_map(|piece| match piece {
        JsonPiece::String { inside, start } => Some((start, inside)),
        _ => None,
    })
}

const INSERT: &str = "INSERT INTO cf_agents_media (session_id, hash, part, text)";
const INSERT_USE: &str = "INSERT INTO cf_agents_media_uses (session_id, hash, seq)";

/// Stores the payloads of the event at `seq`. Must run in the transaction that writes the
/// event.
pub fn write(db: &dyn Database, session_id: &Id, seq: i64, payloads: &[Payload<'_>]) -> Result<()> {
    for Payload { hash, text } in payloads {
        let key: [SqlValue; 2] = [session_id.as_str().into(), hash.as_str().into()];
        let sql = "SELECT 1 FROM cf_agents_media WHERE session_id = ?1 AND hash = ?2 LIMIT 1";
        if find_row(db, sql, &key)?.is_none() {
            for (part, piece) in slices::cut(text).into_iter().enumerate() {
                let [session_id, hash] = key.clone();
                db.run(
                    &format!("{INSERT} VALUES (?1, ?2, ?3, ?4)"),
                    &[session_id, hash, (part as i64).into(), piece.into()],
                )?;
            }
        }
        let [session_id, hash] = key;
        db.run(
            &format!("{INSERT_USE} VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING"),
            &[session_id, hash, seq.into()],
        )?;
    }
    Ok(())
}

/// Deletes the uses of these events, given as (`seq`, `media` column), and then the
/// payloads without a use. `still_used` are hashes that a rewritten event still uses. Must run in
/// the transaction that deletes or rewrites the events.
pub fn forget(
    db: &dyn Database,
    session_id: &Id,
    uses: &[(i64, &str)],
    still_used: &[&str],
) -> Result<()> {
    let mut removed: HashSet<(String, i64)> = HashSet::new();
    for (seq, positions) in uses {
        // A damaged row can still be deleted; its payloads are deleted with its session.
        for PayloadPosition(_, hash) in parse_positions(positions).unwrap_or_default() {
            if !still_used.contains(&hash.as_str()) {
                removed.insert((hash, *seq));
            }
        }
    }
    if removed.is_empty() {
        return Ok(());
    }
    let params: [SqlValue; 2] = [
        session_id.as_str().into(),
        SqlValue::Text(json::encode(&removed)?),
    ];
    db.run(
        "DELETE FROM cf_agents_media_uses
          WHERE session_id = ?1
            AND (hash, seq) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?2))",
        &params,
    )?;
    Delete::from(
        MEDIA,
        "session_id = ?1
         AND hash IN (SELECT value ->> 0 FROM json_each(?2))
         AND NOT EXISTS (SELECT 1
                           FROM cf_agents_media_uses AS uses
                          WHERE uses.session_id = ?1
                            AND uses.hash = cf_agents_media.hash)",
        &params,
    )
    .run(db)?;
    Ok(())
}

/// Copies the media that a fork's events use. The events must already be copied.
pub fn copy(db: &dyn Database, original_id: &Id, id: &Id) -> Result<()> {
    let sql = "SELECT 1 FROM cf_agents_media WHERE session_id = ?1 LIMIT 1";
    if find_row(db, sql, &[original_id.as_str().into()])?.is_none() {
        return Ok(());
    }
    db.run(
        &format!(
            "{INSERT_USE}
             SELECT DISTINCT e.session_id, cut.value ->> 1, e.seq
               FROM cf_agents_events AS e, json_each(e.media) AS cut
              WHERE e.session_id = ?1
                AND e.media IS NOT NULL"
        ),
        &[id.as_str().into()],
    )?;
    db.run(
        &format!(
            "{INSERT}
             SELECT ?2, original.hash, original.part, original.text
               FROM (SELECT DISTINCT hash FROM cf_agents_media_uses WHERE session_id = ?2) AS used
              CROSS JOIN cf_agents_media AS original
                 ON original.session_id = ?1
                AND original.hash = used.hash"
        ),
        &[original_id.as_str().into(), id.as_str().into()],
    )
}

/// A message's text with its media restored; `None` if `positions` is damaged. `positions` is the
/// event's `media` column.
pub fn restore(
    db: &dyn Database,
    session_id: &Id,
    text: &str,
    positions: &str,
) -> Result<Option<String>> {
    let Some(positions) = parse_positions(positions) else {
        return Ok(None);
    };
    let hashes: HashSet<&str> = positions
        .iter()
        .map(|PayloadPosition(_, hash)| hash.as_str())
        .collect();
    let rows = db.rows(
        "SELECT media.hash, media.text
           FROM json_each(?2) AS wanted
          CROSS JOIN cf_agents_media AS media
             ON media.session_id = +?1
            AND media.hash = wanted.value
          ORDER BY media.hash, media.part",
        &[
            session_id.as_str().into(),
            SqlValue::Text(json::encode(&hashes)?),
        ],
    )?;
    let mut payloads: HashMap<&str, Vec<&str>> = HashMap::new();
    for row in &rows {
        let (hash, text): (&str, &str) = row.read()?;
        payloads.entry(hash).or_default().push(text);
    }
    let mut whole = String::with_capacity(text.len() + MIN_BYTES * positions.len());
    let mut copied = 0;
    for PayloadPosition(at, hash) in &positions {
        let (Some(before), Some(pieces)) = (text.get(copied..*at), payloads.get(hash.as_str()))
        else {
            return Ok(None);
        };
        whole.push_str(before);
        pieces.iter().for_each(|piece| whole.push_str(piece));
        copied = *at;
    }
    whole.push_str(text.get(copied..).unwrap_or_default());
    Ok(Some(whole))
}

fn parse_positions(positions: &str) -> Option<Vec<PayloadPosition>> {
    json::decode(positions).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload() -> String {
        "iVBOR/+=".repeat(MIN_BYTES / 8)
    }

    #[test]
    fn only_the_payload_is_extracted() {
        let payload = payload();
        let fields = format!(
            r#""role":"user","parts":[{{"type":"file","url":"data:image/png;base64,{payload}"}},{{"url":"DATA:image\/png;name=\"x\";base64,{payload}","type":"file"}},{{"type":"file","url":"data:image/png;name=x;base64,{payload}"}}]"#
        );
        let cut = cut(&fields);
        // The second has a quote in its head, so it is not a data URL.
        assert_eq!(cut.payloads.len(), 1);
        assert_eq!(cut.payloads[0].text, payload);
        assert_eq!(cut.text.len(), fields.len() - 2 * payload.len());
        assert!(cut.text.contains(r#""url":"data:image/png;base64,"}"#));
        let positions = parse_positions(cut.positions.as_deref().unwrap()).unwrap();
        assert_eq!(positions.len(), 2);
    }

    #[test]
    fn short_urls_and_urls_outside_parts_are_kept() {
        let payload = payload();
        let short = &payload[1..];
        for fields in [
            format!(r#""parts":[{{"type":"file","url":"data:image/png;base64,{short}"}}]"#),
            format!(r#""parts":[{{"text":"data:image/png;base64,{payload}","type":"text"}}]"#),
            format!(r#""parts":[],"metadata":{{"avatar":"data:image/png;base64,{payload}"}}"#),
            format!(r#""parts":[{{"type":"file","url":"https://x/data:,{payload}"}}]"#),
            format!(r#""parts":[{{"type":"file","note":"\"data:,{payload}"}}]"#),
        ] {
            let cut = cut(&fields);
            assert_eq!((cut.text.as_ref(), cut.positions), (fields.as_str(), None));
        }
    }

    #[test]
    fn media_is_extracted_at_any_depth_in_any_spelling() {
        let payload = payload();
        for inner in [
            format!(r#"{{"images":[{{"data":"data:image/png;base64,{payload}"}}]}}"#),
            format!(r#""data:text/plain,\u00e9\"\\{payload}""#),
            format!(r#"["\\\\","data:,{payload}\\"]"#),
        ] {
            let fields =
                format!(r#""parts":[{{"type":"tool-x","output":{inner}}}],"role":"assistant""#);
            let cut = cut(&fields);
            assert_eq!(cut.payloads.len(), 1, "{inner}");
            let positions = parse_positions(cut.positions.as_deref().unwrap()).unwrap();
            let mut restored = cut.text.into_owned();
            restored.insert_str(positions[0].0, cut.payloads[0].text);
            assert_eq!(restored, fields);
        }
    }

    #[test]
    fn the_number_of_media_positions_is_bounded() {
        let payload = payload();
        let parts = vec![format!(r#"{{"type":"file","url":"data:,{payload}"}}"#); MAX_CUTS + 1];
        let fields = format!(r#""parts":[{}]"#, parts.join(","));
        let cut = cut(&fields);
        assert_eq!(cut.text.len(), fields.len() - MAX_CUTS * payload.len());
    }
}
