//! The derive `JsonSchema` of a deployed Worker, which describes nothing: see `base::schema`.

use proc_macro::TokenStream;

/// Accepts what schemars' derive accepts, and adds nothing to the type.
#[proc_macro_derive(NoSchema, attributes(schemars))]
pub fn no_schema(_type: TokenStream) -> TokenStream {
    TokenStream::new()
}
