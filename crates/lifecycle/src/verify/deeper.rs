//! Verification checks that need more than SQL: hashes of media, and paths of summaries.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use super::finding::{Finding, FindingLocation};
use crate::table_pages::PageRange;
use base::checks::FindingCode;
use base::columns::{find_value, load};
use base::database::{Database, SqlValue};
use base::error::Result;
use base::ids::Id;
use base::row;
use conversation::messages::tree::path::is_path_between;
use conversation::tables;

const MEDIA: &str = tables::MEDIA.name;
const OVERLAYS: &str = tables::COMPACTIONS.name;

/// The most parts of a media payload: an event has at most 4 MiB, and a part has a million
/// bytes. Media of earlier builds may be longer.
const MAX_PARTS: i64 = 64;

/// Checks that the media starting in these rows matches its hash.
pub fn check_media(db: &dyn Database, range: &PageRange) -> Result<Vec<Finding>> {
    let sql = format!(
        "SELECT t.session_id, t.hash
           FROM {MEDIA} AS t
          WHERE {}
            AND t.part = 0
          ORDER BY {}",
        range.condition, range.order
    );
    let mut findings = Vec::new();
    for (session_id, hash) in load::<(String, String)>(db, &sql, &range.params)? {
        if hash_media(db, &session_id, &hash)? != hash {
            let location = FindingLocation {
                session_id: Some(session_id),
                id: Some(hash),
                ..FindingLocation::default()
            };
            findings.push(Finding::new(FindingCode::MediaDamaged, MEDIA, location));
        }
    }
    Ok(findings)
}

/// The hash of stored media. Its parts are read one after the other, because all at once
/// would be in memory twice.
fn hash_media(db: &dyn Database, session_id: &str, hash: &str) -> Result<String> {
    let mut digest = Sha256::new();
    for part in 0..MAX_PARTS {
        let sql = format!(
            "SELECT text
               FROM {MEDIA}
              WHERE session_id = ?1
                AND hash = ?2
                AND part = ?3"
        );
        let params: [SqlValue; 3] = [session_id.into(), hash.into(), part.into()];
        let Some(text) = find_value::<String>(db, &sql, &params)? else {
            break;
        };
        digest.update(text);
    }
    Ok(URL_SAFE_NO_PAD.encode(digest.finalize()))
}

row! {
    /// A summary's range.
    struct OverlayRange {
        session_id: String = "t.session_id",
        id: String = "t.id",
        from_seq: i64 = "t.from_seq",
        to_seq: i64 = "t.to_seq",
    }
}

/// Checks that each summary's range lies on one path.
pub fn check_paths(db: &dyn Database, range: &PageRange) -> Result<Vec<Finding>> {
    let sql = format!(
        "SELECT {}
           FROM {OVERLAYS} AS t
          WHERE {}
          ORDER BY {}",
        OverlayRange::COLUMNS,
        range.condition,
        range.order
    );
    let mut findings = Vec::new();
    for overlay in load::<OverlayRange>(db, &sql, &range.params)? {
        if !is_on_one_path(db, &overlay)? {
            let location = FindingLocation {
                session_id: Some(overlay.session_id),
                id: Some(overlay.id),
                ..FindingLocation::default()
            };
            findings.push(Finding::new(
                FindingCode::OverlayOffPath,
                OVERLAYS,
                location,
            ));
        }
    }
    Ok(findings)
}

fn is_on_one_path(db: &dyn Database, overlay: &OverlayRange) -> Result<bool> {
    let Ok(session_id) = Id::parse(overlay.session_id.clone()) else {
        return Ok(false);
    };
    let OverlayRange {
        from_seq, to_seq, ..
    } = *overlay;
    Ok(from_seq <= to_seq && is_path_between(db, &session_id, from_seq, to_seq)?)
}
