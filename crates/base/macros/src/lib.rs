//! The derive `JsonSchema` of a deployed Worker, which describes nothing: `base::schema` uses schemars'
//! derive in its place where a test writes openapi.json.

use proc_macro::TokenStream;

/// Accepts what schemars' derive accepts, and adds nothing to the type.
#[proc_macro_derive(JsonSchema, attributes(schemars))]
pub fn json_schema(_type: TokenStream) -> TokenStream {
    TokenStream::new()
}
