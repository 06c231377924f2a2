#!/usr/bin/env bash
# How the gate compiles Rust's tests (native.mjs): once, for the lints and for the run. Cargo
# calls this as its RUSTC_WORKSPACE_WRAPPER, with the compiler and its arguments.
#
# Clippy compiles each unit of tests, which has all lines of its crate. The crate without tests is
# linted for WebAssembly. A crate's own tests run for seconds, and optimizing them takes minutes:
# only those of `store`, one of which deletes thousands of keys, and the crates that other tests
# use are optimized.
set -euo pipefail
level=0
if [[ ${CARGO_PKG_NAME:-} == session-agent-store ]]; then level=1; fi
for word in "$@"; do
  # shellcheck disable=SC2086
  if [[ $word == --test ]]; then exec clippy-driver "$@" -C "opt-level=$level" --deny warnings $SESSION_AGENT_LINTS; fi
done
# Without an edition, cargo only asks the compiler about itself.
if [[ " $* " == *" --edition="* ]]; then exec "$@" --deny warnings; fi
exec "$@"
