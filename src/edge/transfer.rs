//! Export and import as streams. An export's pages are rendered when the client reads them; an
//! import's bytes are parsed as they arrive. No file is ever in memory as a whole.

use std::cell::Cell;

use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;

use super::host::{Runtime, pause};
use super::http::RequestBody;
use super::storage::{ObjectStorage, Sqlite};
use super::stream::watched;
use api::file_import::{FileImport, is_too_slow};
use api::operation::Reply;
use base::budget::{REQUESTS, Reservation};
use base::error::{Error, Result};
use base::host::Host as _;
use base::outbound::{LocalBoxFuture, in_time};
use base::owner::Owner;
use conversation::log::slices::MAX_EVENT_BYTES;
use lifecycle::transfer::export::render_failure;
use lifecycle::transfer::{PAGE_BYTES, PagedFile};
use store::schema;
use store::schema::blank::{BlankDatabase, MadeListener};

/// Bytes of a page per piece: a page may be one long line.
const PIECE_BYTES: usize = 64 << 10;

/// The memory that must be free before a page is rendered. A page of one long line is in memory
/// three times: as its row, as its line and as the bytes that are sent. So no two such pages are
/// rendered or sent at once.
const PAGE_MEMORY_BYTES: usize = PAGE_BYTES + 3 * MAX_EVENT_BYTES;

/// How long a page waits for free memory, and the pause between two checks.
const MAX_WAITING_MS: i64 = 30_000;
const WAIT_MS: i64 = 50;

/// Is called with the length of each page of an export, before the page is sent.
pub type PageListener = Box<dyn Fn(usize) -> LocalBoxFuture<'static, ()>>;

/// The file as a stream. The stream renders a page after the client has read the last. `is_blank`:
/// nobody has written to the agent, so there are no tables.
pub fn to_stream(
    storage: &ObjectStorage,
    is_blank: bool,
    export: impl PagedFile + 'static,
    on_page: PageListener,
) -> Result<JsValue> {
    let owner = Owner::current();
    let source = ExportStream {
        storage: storage.clone(),
        is_blank,
        export: Some(Box::new(export)),
        on_page,
        page: String::new(),
        sent: 0,
        reservation: None,
    };
    watched(source, move |mut source: ExportStream| {
        owner.run(async move {
            let piece = source.next().await?;
            Some((piece, source))
        })
    })
}

/// An export, and the rest of its page that is still to be sent.
struct ExportStream {
    storage: ObjectStorage,
    is_blank: bool,
    /// `None`: the export is over.
    export: Option<Box<dyn PagedFile>>,
    on_page: PageListener,
    page: String,
    sent: usize,
    /// Counts the page's memory.
    reservation: Option<Reservation>,
}

impl ExportStream {
    async fn next(&mut self) -> Option<Uint8Array> {
        if self.sent == self.page.len() {
            self.take_page().await?;
        }
        let end = self.page.len().min(self.sent + PIECE_BYTES);
        let piece = self.page.as_bytes().get(self.sent..end)?;
        self.sent = end;
        Some(Uint8Array::from(piece))
    }

    async fn take_page(&mut self) -> Option<()> {
        self.page = String::new();
        self.sent = 0;
        self.reservation = None;
        let export = self.export.as_mut()?;
        let page = match wait_for_memory().await {
            Ok(()) => read_page(&self.storage, &mut self.is_blank, export.as_mut()),
            Err(error) => Err(error),
        };
        self.page = page.unwrap_or_else(|error| {
            super::http::log(&error);
            self.export = None;
            Some(render_failure(&error))
        })?;
        self.reservation = Some(Reservation::unchecked(&REQUESTS, self.page.capacity()));
        (self.on_page)(self.page.len()).await;
        Some(())
    }
}

/// Renders the next page. An export only reads, so it creates no tables.
fn read_page(
    storage: &ObjectStorage,
    is_blank: &mut bool,
    export: &mut dyn PagedFile,
) -> Result<Option<String>> {
    let db = Sqlite::new(storage);
    // Somebody may have written since the previous page.
    *is_blank = *is_blank && !schema::open(&db, &Runtime)?;
    if !*is_blank {
        return export.next_page(&db);
    }
    export.next_page(&BlankDatabase {
        db: &db,
        host: &Runtime,
        are_made: &Cell::new(false),
        on_made: &NoListener,
    })
}

/// An export creates no tables, so there is nothing to notify of.
struct NoListener;

impl MadeListener for NoListener {
    fn tables_made(&self) {}
}

/// Waits for free memory: once the file has started, a page can't be refused any more.
async fn wait_for_memory() -> Result<()> {
    for _ in 0..MAX_WAITING_MS / WAIT_MS {
        if Reservation::for_request(PAGE_MEMORY_BYTES).is_ok() {
            return Ok(());
        }
        pause(WAIT_MS).await;
    }
    Reservation::for_request(PAGE_MEMORY_BYTES).map(drop)
}

/// How long a file may pause. After that the import is aborted, and its pending rows are deleted.
const MAX_SILENCE_MS: i64 = 25_000;

/// The next piece of a file, if it comes in time.
async fn next_piece(
    body: &mut RequestBody,
    began_ms: i64,
    received: usize,
) -> Result<Option<Vec<u8>>> {
    let piece = if is_too_slow(Runtime.now_ms() - began_ms, received) {
        None
    } else {
        in_time(pause(MAX_SILENCE_MS), body.next()).await
    };
    piece.unwrap_or_else(|| {
        Err(Error::invalid(
            "body",
            format!(
                "The upload stalled for {} seconds, or was too slow. Nothing was imported: send \
                     the file again.",
                MAX_SILENCE_MS / 1000
            ),
        ))
    })
}

/// Reads the whole body. `on_piece` is called with the length of each piece, after it was written.
pub async fn receive(
    db: &Sqlite<'_>,
    mut import: impl FileImport,
    body: Option<RequestBody>,
    on_piece: impl AsyncFn(usize),
) -> Result<Reply> {
    let Some(mut body) = body else {
        return import.finish(db, &Runtime);
    };
    let mut reservation = Reservation::for_request(0)?;
    let (began_ms, mut received) = (Runtime.now_ms(), 0);
    loop {
        match next_piece(&mut body, began_ms, received).await {
            Ok(Some(bytes)) => {
                received += bytes.len();
                // The import buffers the unfinished line and the rows to be written.
                drop(reservation);
                reservation = match Reservation::for_request(import.buffered_bytes() + bytes.len())
                {
                    Ok(reservation) => reservation,
                    Err(error) => {
                        import.abandon(db)?;
                        body.discard().await;
                        return Err(error);
                    }
                };
                if let Err(error) = import.push(db, &Runtime, &bytes) {
                    body.discard().await;
                    return Err(error);
                }
                on_piece(bytes.len()).await;
            }
            Ok(None) => return import.finish(db, &Runtime),
            Err(error) => {
                import.abandon(db)?;
                return Err(error);
            }
        }
    }
}
