//! The bucket for backups. R2 shows an object only after its upload is completed, and
//! deletes an upload that is never completed.

use js_sys::{Array, Uint8Array};
use wasm_bindgen::prelude::*;

use super::reflect::{failed, get, method, object};
use super::{Bindings, pause, settle};
use base::outbound::{Archive, ArchivePiece, ArchiveUpload};
use base::outbound::{CallFailure, ListedObject, LocalBoxFuture, ObjectListing, in_time};
use base::settings::Setting;

/// How long one call of the bucket may take.
const MAX_CALL_MS: i64 = 60_000;

async fn ask(target: &JsValue, name: &str, args: &[JsValue]) -> Result<JsValue, CallFailure> {
    let called = method(target, name, args)?;
    let answer = in_time(pause(MAX_CALL_MS), settle(called)).await;
    let late = CallFailure::DeadlineExceeded {
        total_ms: MAX_CALL_MS,
    };
    answer.ok_or(late)?.map_err(failed)
}

struct R2Upload {
    upload: JsValue,
    parts: Array,
}

impl Archive for Bindings {
    fn begin<'a>(
        &'a self,
        key: &'a str,
    ) -> LocalBoxFuture<'a, Result<Box<dyn ArchiveUpload>, CallFailure>> {
        Box::pin(async move {
            let bucket = self.binding(Setting::BackupBucket.name())?;
            let upload = ask(&bucket, "createMultipartUpload", &[key.into()]).await?;
            let parts = Array::new();
            Ok(Box::new(R2Upload { upload, parts }) as Box<dyn ArchiveUpload>)
        })
    }

    fn list<'a>(
        &'a self,
        prefix: &'a str,
        cursor: Option<&'a str>,
        limit: u32,
    ) -> LocalBoxFuture<'a, Result<ObjectListing, CallFailure>> {
        Box::pin(async move {
            let bucket = self.binding(Setting::BackupBucket.name())?;
            let options = object(&[
                ("prefix", prefix.into()),
                ("limit", limit.into()),
                ("cursor", cursor.map_or(JsValue::UNDEFINED, JsValue::from)),
            ])?;
            let listing = ask(&bucket, "list", &[options.into()]).await?;
            let objects = Array::from(&get(&listing, "objects"));
            let listed = objects.iter().map(|listed| ListedObject {
                key: get(&listed, "key").as_string().unwrap_or_default(),
                bytes: get(&listed, "size").as_f64().unwrap_or_default() as i64,
                description: None,
            });
            Ok(ObjectListing {
                objects: listed.collect(),
                cursor: get(&listing, "cursor").as_string(),
            })
        })
    }

    fn read<'a>(
        &'a self,
        key: &'a str,
        offset: i64,
        length: i64,
    ) -> LocalBoxFuture<'a, Result<Option<ArchivePiece>, CallFailure>> {
        Box::pin(async move {
            let bucket = self.binding(Setting::BackupBucket.name())?;
            // The bucket refuses a range that starts at an object's end, so the first
            // chunk's answer also provides the length.
            let range = object(&[
                ("offset", (offset as f64).into()),
                ("length", (length as f64).into()),
            ])?;
            let options = object(&[("range", range.into())])?;
            let found = ask(&bucket, "get", &[key.into(), options.into()]).await?;
            if found.is_null() || found.is_undefined() {
                return Ok(None);
            }
            let total = get(&found, "size").as_f64().unwrap_or_default() as i64;
            let bytes = ask(&found, "arrayBuffer", &[]).await?;
            Ok(Some(ArchivePiece {
                bytes: Uint8Array::new(&bytes).to_vec(),
                total,
            }))
        })
    }

    fn delete<'a>(&'a self, key: &'a str) -> LocalBoxFuture<'a, Result<(), CallFailure>> {
        Box::pin(async move {
            let bucket = self.binding(Setting::BackupBucket.name())?;
            ask(&bucket, "delete", &[key.into()]).await.map(drop)
        })
    }
}

impl ArchiveUpload for R2Upload {
    fn put(&mut self, part: Vec<u8>) -> LocalBoxFuture<'_, Result<(), CallFailure>> {
        Box::pin(async move {
            let number = self.parts.length() + 1;
            let bytes = Uint8Array::from(part.as_slice());
            drop(part);
            let put = ask(&self.upload, "uploadPart", &[number.into(), bytes.into()]).await?;
            self.parts.push(&put);
            Ok(())
        })
    }

    fn complete(&mut self) -> LocalBoxFuture<'_, Result<(), CallFailure>> {
        Box::pin(async move {
            let parts = JsValue::from(self.parts.clone());
            ask(&self.upload, "complete", &[parts]).await.map(drop)
        })
    }

    fn abort(&mut self) -> LocalBoxFuture<'_, Result<(), CallFailure>> {
        Box::pin(async move { ask(&self.upload, "abort", &[]).await.map(drop) })
    }
}
