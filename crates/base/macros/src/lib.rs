//! The derive `JsonSchema` of a deployed Worker, which generates nothing: see
//! `base::schema`.

use proc_macro::TokenStream;

/// Accepts the attributes of schemars' derive, and generates nothing.
#[proc_macro_derive(NoSchema, attributes(schemars))]
pub fn no_schema(_type: TokenStream) -> TokenStream {
    TokenStream::new()
}
