//! Writes the source of the operations from the API's document, `openapi.json`.

#![expect(
    clippy::print_stdout,
    reason = "cargo reads what a build script prints"
)]

mod document;
mod names;
mod render;
mod shapes;

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

use document::Document;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build");
    println!("cargo:rerun-if-changed=openapi.json");
    let document = read(&fs::read("openapi.json")?)?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("operations.rs"), render::operations(&document)?)?;
    fs::write(out.join("each.rs"), render::each(&document))?;
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "`base::json` is not for the crate's build"
)]
fn read(json: &[u8]) -> serde_json::Result<Document> {
    serde_json::from_slice(json)
}
