//! Embeds the hash of the sources, so that a deployed agent can report its build.

#![expect(
    clippy::expect_used,
    reason = "a build script stops the build by a panic"
)]

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-env=SESSION_AGENT_REVISION={}", revision(&root));
}

/// The commit this build is of, or `unknown` outside a checkout.
fn revision(root: &Path) -> String {
    for read in [".git/HEAD", ".git/logs/HEAD"] {
        println!("cargo:rerun-if-changed={}", root.join(read).display());
    }
    Command::new("git")
        .current_dir(root)
        .args(["rev-parse", "--short=12", "HEAD"])
        .output()
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .map_or_else(|| "unknown".to_owned(), |text| text.trim().to_owned())
}
