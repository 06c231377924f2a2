//! `bindgen MODULE.wasm FOLDER`: writes `index.js` and `index_bg.wasm` into FOLDER.
//!
//! `wasm-bindgen` prints the same two files. This program is that program
//! without its command line, its test runner and all targets but ours, so that
//! a first set-up compiles a third of the crates.

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;

use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let args: Vec<OsString> = env::args_os().skip(1).collect();
    let [module, folder] = args.as_slice() else {
        eprintln!("Usage: bindgen MODULE.wasm FOLDER");
        return ExitCode::FAILURE;
    };
    match write(module, folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:?}");
            ExitCode::FAILURE
        }
    }
}

fn write(module: &OsString, folder: &OsString) -> anyhow::Result<()> {
    Bindgen::new()
        .input_path(module)
        .out_name("index")
        .typescript(false)
        // JavaScript that imports the module by name, as a Worker does.
        .module(true)?
        // After a crash the Worker goes on with a fresh instance of the module:
        // the first line writes the function that makes one, the second has
        // every call look first whether the instance has crashed.
        .reset_state_function(true)
        .force_enable_abort_handler(true)
        .generate(folder)
}
