//! The common part of all imports of files.

use super::operation::Reply;
use base::database::Database;
use base::error::Result;
use base::host::Host;
use lifecycle::transfer::import::Import;

/// A file that is taken in piece by piece.
pub trait FileImport {
    /// Takes the next bytes. After an error, the import is over.
    fn push(&mut self, db: &dyn Database, host: &dyn Host, bytes: &[u8]) -> Result<()>;

    /// The memory that the import holds between two pieces of the file.
    fn kept_bytes(&self) -> usize;

    /// Deletes what is not whole, because the sender disconnected.
    fn give_up(&mut self, db: &dyn Database) -> Result<()>;

    /// Takes the end of the file.
    fn finish(self, db: &dyn Database, host: &dyn Host) -> Result<Reply>;
}

impl FileImport for Import {
    fn push(&mut self, db: &dyn Database, host: &dyn Host, bytes: &[u8]) -> Result<()> {
        Import::push(self, db, host, bytes)
    }

    fn kept_bytes(&self) -> usize {
        Import::kept_bytes(self)
    }

    fn give_up(&mut self, db: &dyn Database) -> Result<()> {
        Import::give_up(self, db)
    }

    fn finish(self, db: &dyn Database, host: &dyn Host) -> Result<Reply> {
        Reply::json(&Import::finish(self, db, host)?)
    }
}
