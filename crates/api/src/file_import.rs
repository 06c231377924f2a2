//! The interface that all file imports share.

use super::operation::Reply;
use base::database::Database;
use base::error::Result;
use base::host::Host;
use lifecycle::transfer::import::Import;

/// An import that reads a file chunk by chunk.
pub trait FileImport {
    /// Reads the next bytes. After an error, the import is over.
    fn push(&mut self, db: &dyn Database, host: &dyn Host, bytes: &[u8]) -> Result<()>;

    /// The memory that the import uses between two chunks of the file.
    fn buffered_bytes(&self) -> usize;

    /// Deletes the incomplete part of the import, because the sender disconnected.
    fn abandon(&mut self, db: &dyn Database) -> Result<()>;

    /// Completes the import at the end of the file.
    fn finish(self, db: &dyn Database, host: &dyn Host) -> Result<Reply>;
}

impl FileImport for Import {
    fn push(&mut self, db: &dyn Database, host: &dyn Host, bytes: &[u8]) -> Result<()> {
        Import::push(self, db, host, bytes)
    }

    fn buffered_bytes(&self) -> usize {
        Import::buffered_bytes(self)
    }

    fn abandon(&mut self, db: &dyn Database) -> Result<()> {
        Import::abandon(self, db)
    }

    fn finish(self, db: &dyn Database, host: &dyn Host) -> Result<Reply> {
        Reply::json(&Import::finish(self, db, host)?)
    }
}

/// The fewest bytes per second of a file, after the first minute.
const MIN_BYTES_PER_SECOND: i64 = 1 << 10;
const GRACE_MS: i64 = 60_000;

/// Whether a file arrives too slowly, `elapsed_ms` after its beginning.
pub fn is_too_slow(elapsed_ms: i64, received: usize) -> bool {
    (elapsed_ms - GRACE_MS) / 1000 * MIN_BYTES_PER_SECOND > received as i64
}

#[cfg(test)]
mod tests {
    use super::is_too_slow;

    #[test]
    fn an_upload_gets_a_minute_plus_a_second_per_kibibyte() {
        assert!(!is_too_slow(0, 0) && !is_too_slow(60_999, 0));
        assert!(is_too_slow(61_000, 1023) && !is_too_slow(61_000, 1024));
        assert!(is_too_slow(160_000, 100 << 10 >> 1) && !is_too_slow(160_000, 100 << 10));
    }
}
