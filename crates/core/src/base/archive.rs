//! The seam to the bucket of backups. An object appears there whole: its parts are sent one
//! after the other, and seen by nobody until the upload is completed.

use super::outbound::{CallFailure, LocalBoxFuture, ObjectListing};

pub trait Archive {
    /// Begins the upload of an object.
    fn begin<'a>(
        &'a self,
        key: &'a str,
    ) -> LocalBoxFuture<'a, Result<Box<dyn ArchiveUpload>, CallFailure>>;

    /// Lists objects in the order of their keys.
    fn list<'a>(
        &'a self,
        prefix: &'a str,
        cursor: Option<&'a str>,
        limit: u32,
    ) -> LocalBoxFuture<'a, Result<ObjectListing, CallFailure>>;

    fn delete<'a>(&'a self, key: &'a str) -> LocalBoxFuture<'a, Result<(), CallFailure>>;
}

/// An object on its way to the bucket. All parts but the last have the same length.
pub trait ArchiveUpload {
    fn put(&mut self, part: Vec<u8>) -> LocalBoxFuture<'_, Result<(), CallFailure>>;

    /// Makes the parts an object.
    fn complete(&mut self) -> LocalBoxFuture<'_, Result<(), CallFailure>>;

    /// Drops the parts.
    fn abort(&mut self) -> LocalBoxFuture<'_, Result<(), CallFailure>>;
}
