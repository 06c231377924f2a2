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
    fn give_up(&mut self, db: &dyn Database) -> Result<()>;

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

    fn give_up(&mut self, db: &dyn Database) -> Result<()> {
        Import::give_up(self, db)
    }

    fn finish(self, db: &dyn Database, host: &dyn Host) -> Result<Reply> {
        Reply::json(&Import::finish(self, db, host)?)
    }
}
