//! A new object's tables, which one file creates, equal the result of all migrations.
//!
//! `UPDATE=1 cargo test the_schema_of_a_new_object` rewrites the file, on the commit that
//! adds a migration.

use std::fs;
use std::path::Path;

use base::columns::{find_value, load, load_values};
use base::testing::{FixedHost, Sqlite};
use lifecycle::testing::migrated;
use store::schema::{create_by_migrations, migrate, newest};

/// What an FTS5 table creates by itself.
const SHADOWS: [&str; 5] = ["_data", "_idx", "_content", "_docsize", "_config"];

/// The statements that created what is there, in their order.
fn statements(db: &Sqlite) -> Vec<(String, String)> {
    let sql = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid";
    let all: Vec<(String, String)> = load(db, sql, &[]).unwrap();
    let is_virtual = |name: &str| {
        all.iter()
            .any(|(other, sql)| other == name && sql.starts_with("CREATE VIRTUAL TABLE"))
    };
    let is_shadow = |name: &str| {
        let owner = SHADOWS.iter().find_map(|end| name.strip_suffix(end));
        owner.is_some_and(is_virtual)
    };
    let own = all.iter().filter(|(name, _)| !is_shadow(name));
    own.map(|(name, sql)| (name.clone(), without_comments(sql)))
        .collect()
}

/// SQLite keeps a statement's comments, and appends new columns after the last one.
fn without_comments(sql: &str) -> String {
    let lines = sql
        .lines()
        .map(|line| line.split("--").next().unwrap_or_default().trim_end());
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    lines.join("\n")
}

fn by_migrations() -> Sqlite {
    let db = Sqlite::new();
    create_by_migrations(&db, &FixedHost::default()).unwrap();
    db
}

#[test]
fn the_schema_of_a_new_object_equals_that_of_the_migrations() {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/store/src/schema/newest.sql");
    let text: Vec<String> = statements(&by_migrations())
        .iter()
        .map(|(_, sql)| format!("{sql};\n"))
        .collect();
    let text = text.join("\n");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&file, &text).unwrap();
    }
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        text,
        "crates/store/src/schema/newest.sql differs from the migrations: `UPDATE=1 cargo test \
         the_schema_of_a_new_object` rewrites it"
    );
}

#[test]
fn a_new_object_equals_one_migrated_through_every_build() {
    let (new, old) = (migrated(), by_migrations());
    assert_eq!(statements(&new), statements(&old));
    for (name, sql) in statements(&new) {
        let is_table = sql.starts_with("CREATE TABLE") || sql.starts_with("CREATE VIRTUAL TABLE");
        if is_table && name != "cf_agents_migrations" {
            let sql = format!("SELECT count(*) FROM {name}");
            let count = |db: &Sqlite| find_value::<i64>(db, &sql, &[]).unwrap();
            assert_eq!([count(&new), count(&old)], [Some(0), Some(0)], "{name}");
        }
    }
    for db in [&new, &old] {
        let before = db.dump();
        migrate(db, &FixedHost::default()).unwrap();
        assert!(db.dump() == before);
        let sql = "SELECT max(number) FROM cf_agents_migrations";
        assert_eq!(load_values::<i64>(db, sql, &[]).unwrap(), [newest()]);
    }
}
