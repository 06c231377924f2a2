//! `#[derive(FromJson)]`: reads a struct from a JSON object, as serde's `Deserialize`
//! does, in a third of the code.
//!
//! serde writes the loop over an object's fields anew for each type: it compares the
//! names, refuses the unknown and the repeated, and looks for the missing. Here that loop
//! is written once (`src/base/json/object.rs`). The derive writes what differs from type
//! to type: which field a value goes to.
//!
//! It knows the attributes of serde that this project's structs use, and refuses others.
//! Enums, tuples and structs with `flatten` derive `Deserialize`.

mod input;
mod output;

use proc_macro::TokenStream;

#[proc_macro_derive(FromJson, attributes(serde))]
pub fn from_json(item: TokenStream) -> TokenStream {
    let code = match input::Struct::parse(item) {
        Ok(parsed) => output::implementation(&parsed),
        Err(problem) => format!("compile_error!({problem:?});"),
    };
    code.parse().unwrap_or_else(|error| {
        let problem = format!("FromJson wrote what is no Rust: {error}");
        format!("compile_error!({problem:?});")
            .parse()
            .unwrap_or_default()
    })
}
