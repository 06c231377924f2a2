//! The native stand-in for the bucket of backups: a map of whole objects.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::outbound::{Archive, ArchivePiece, ArchiveUpload};
use crate::outbound::{CallFailure, ListedObject, LocalBoxFuture, ObjectListing};

type Objects = Rc<RefCell<BTreeMap<String, Vec<u8>>>>;

#[derive(Default)]
pub struct MemoryArchive {
    pub objects: Objects,
    /// The lengths of the uploaded parts.
    pub parts: Rc<RefCell<Vec<usize>>>,
    /// How many parts are accepted before one fails; `None`: all.
    pub fails_after: Rc<RefCell<Option<usize>>>,
    pub aborted: Rc<RefCell<usize>>,
    /// The first call is never answered.
    pub waits: Cell<bool>,
}

struct MemoryUpload {
    key: String,
    bytes: Vec<u8>,
    objects: Objects,
    parts: Rc<RefCell<Vec<usize>>>,
    fails_after: Rc<RefCell<Option<usize>>>,
    aborted: Rc<RefCell<usize>>,
}

impl Archive for MemoryArchive {
    fn begin<'a>(
        &'a self,
        key: &'a str,
    ) -> LocalBoxFuture<'a, Result<Box<dyn ArchiveUpload>, CallFailure>> {
        let upload = MemoryUpload {
            key: key.to_owned(),
            bytes: Vec::new(),
            objects: Rc::clone(&self.objects),
            parts: Rc::clone(&self.parts),
            fails_after: Rc::clone(&self.fails_after),
            aborted: Rc::clone(&self.aborted),
        };
        Box::pin(async move {
            if self.waits.get() {
                std::future::pending::<()>().await;
            }
            Ok(Box::new(upload) as Box<dyn ArchiveUpload>)
        })
    }

    fn list<'a>(
        &'a self,
        prefix: &'a str,
        cursor: Option<&'a str>,
        limit: u32,
    ) -> LocalBoxFuture<'a, Result<ObjectListing, CallFailure>> {
        Box::pin(async move {
            let objects = self.objects.borrow();
            let ours =
                |key: &str| key.starts_with(prefix) && cursor.is_none_or(|cursor| key > cursor);
            let mut listed = objects.iter().filter(|(key, _)| ours(key));
            let page = listed.by_ref().take(limit as usize);
            let objects: Vec<ListedObject> = page
                .map(|(key, bytes)| ListedObject {
                    key: key.clone(),
                    bytes: bytes.len() as i64,
                    description: None,
                })
                .collect();
            let last = objects.last().map(|object| object.key.clone());
            let cursor = last.filter(|_| listed.next().is_some());
            Ok(ObjectListing { objects, cursor })
        })
    }

    fn read<'a>(
        &'a self,
        key: &'a str,
        offset: i64,
        length: i64,
    ) -> LocalBoxFuture<'a, Result<Option<ArchivePiece>, CallFailure>> {
        Box::pin(async move {
            let objects = self.objects.borrow();
            let Some(bytes) = objects.get(key) else {
                return Ok(None);
            };
            let from = (offset as usize).min(bytes.len());
            let to = (from + length as usize).min(bytes.len());
            Ok(Some(ArchivePiece {
                bytes: bytes[from..to].to_vec(),
                total: bytes.len() as i64,
            }))
        })
    }

    fn delete<'a>(&'a self, key: &'a str) -> LocalBoxFuture<'a, Result<(), CallFailure>> {
        self.objects.borrow_mut().remove(key);
        Box::pin(async { Ok(()) })
    }
}

impl ArchiveUpload for MemoryUpload {
    fn put(&mut self, part: Vec<u8>) -> LocalBoxFuture<'_, Result<(), CallFailure>> {
        let mut parts = self.parts.borrow_mut();
        let fails = *self.fails_after.borrow() == Some(parts.len());
        parts.push(part.len());
        self.bytes.extend(part);
        Box::pin(async move {
            if fails {
                Err(CallFailure::Unreachable {
                    cause: "the bucket is away".to_owned(),
                })
            } else {
                Ok(())
            }
        })
    }

    fn complete(&mut self) -> LocalBoxFuture<'_, Result<(), CallFailure>> {
        let bytes = std::mem::take(&mut self.bytes);
        self.objects.borrow_mut().insert(self.key.clone(), bytes);
        Box::pin(async { Ok(()) })
    }

    fn abort(&mut self) -> LocalBoxFuture<'_, Result<(), CallFailure>> {
        *self.aborted.borrow_mut() += 1;
        Box::pin(async { Ok(()) })
    }
}
