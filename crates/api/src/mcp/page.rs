//! Paginates lists. A cursor is the name of the last item of the previous page.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::message::{Request, RpcError};

/// The most items of a page.
pub const MAX_PAGE_ITEMS: usize = 100;

/// The most bytes of a page's items. A single longer item is still returned.
const MAX_PAGE_BYTES: usize = 1 << 20;

/// An item of a list.
pub trait Listed {
    /// The item's unique name in the list.
    fn list_key(&self) -> &str;
    /// The approximate length of the item in the answer.
    fn bytes(&self) -> usize;
}

/// A page of items, and the cursor of the next page.
pub struct Page<T> {
    pub items: Vec<T>,
    pub next_cursor: Option<String>,
}

/// The requested page.
pub fn cut<T: Listed>(items: Vec<T>, request: &Request) -> Result<Page<T>, RpcError> {
    let mut items = items.into_iter();
    if let Some(cursor) = request.find_text("cursor")? {
        let last = URL_SAFE_NO_PAD.decode(cursor).unwrap_or_default();
        if !items.any(|item| item.list_key().as_bytes() == last) {
            return Err(RpcError::params(
                "cursor",
                "`cursor` is not valid for this list, which may have changed. Start again without \
                 one.",
            ));
        }
    }
    let mut page: Vec<T> = Vec::new();
    let mut bytes = 0;
    let mut has_more = false;
    for item in items {
        bytes += item.bytes();
        if page.len() == MAX_PAGE_ITEMS || (bytes > MAX_PAGE_BYTES && !page.is_empty()) {
            has_more = true;
            break;
        }
        page.push(item);
    }
    let last = page.last().filter(|_| has_more);
    Ok(Page {
        next_cursor: last.map(|item| URL_SAFE_NO_PAD.encode(item.list_key())),
        items: page,
    })
}
