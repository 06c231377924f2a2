//! placeholder
#[cfg(target_arch = "wasm32")]
mod edge;
