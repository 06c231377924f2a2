//! The numbered migrations as a checked table, with the standard library alone.
//!
//! A gap, a duplicate, or a statement that a Durable Object rejects is a build error here, not a
//! surprise in production.

#![expect(
    clippy::expect_used,
    clippy::disallowed_macros,
    reason = "a build script stops the build by a panic"
)]

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

const MIGRATIONS: &str = "src/schema/migrations";

/// The words of SQL that workerd rejects, by first word or by name.
const REFUSED: &[&str] = &[
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT",
    "RELEASE",
    "ATTACH",
    "DETACH",
    "VACUUM",
    "PRAGMA",
    "sqlite_version",
    "_cf_",
];

fn main() {
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    for read in ["build.rs", MIGRATIONS] {
        println!("cargo:rerun-if-changed={}", package.join(read).display());
    }

    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("migrations.rs"), migrations_table(&package)).expect("OUT_DIR is writable");
}

fn migrations_table(package: &Path) -> String {
    let mut files: Vec<PathBuf> = fs::read_dir(package.join(MIGRATIONS))
        .expect("the migrations folder exists")
        .map(|entry| entry.expect("a readable folder").path())
        .collect();
    files.sort();

    let mut table = String::from("&[\n");
    for (file, number) in files.iter().zip(1..) {
        let name = file
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        assert!(
            name.starts_with(&format!("{number:04}_")) && name.ends_with(".sql"),
            "migrations are numbered without a gap or a duplicate: expected {number:04}_….sql, found {name}"
        );
        let sql = fs::read_to_string(file).expect("a readable migration");
        refuse_forbidden(name, &sql);
        let sql = without_headings(&sql);
        writeln!(
            table,
            "    Migration {{ number: {number}, name: {name:?}, sql: {sql:?} }},"
        )
        .expect("a String takes all");
    }
    table.push(']');
    table
}

/// The migration without the comments between its statements. SQLite stores the text of a statement
/// that creates something, comments included, so these stay.
fn without_headings(sql: &str) -> String {
    let mut is_between = true;
    let mut without_comments = String::new();
    for line in sql.lines() {
        let code = line.split("--").next().unwrap_or_default().trim();
        if is_between && code.is_empty() {
            continue;
        }
        if !code.is_empty() {
            is_between = code.ends_with(';');
        }
        without_comments.push_str(line);
        without_comments.push('\n');
    }
    without_comments
}

fn refuse_forbidden(name: &str, sql: &str) {
    let code: String = sql
        .lines()
        .map(|line| line.split("--").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join(" ");
    let words: Vec<&str> = code
        .split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .collect();
    for refused in REFUSED {
        let found = words.iter().any(|word| {
            word.eq_ignore_ascii_case(refused)
                || (refused.ends_with('_') && word.to_ascii_lowercase().starts_with(refused))
        });
        assert!(!found, "{name}: a Durable Object refuses {refused}");
    }
}
