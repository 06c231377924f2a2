//! An object that was written by a newer build.

use base::database::Database as _;
use base::testing::FixedHost;
use lifecycle::testing::migrated;
use store::schema::{migrate, newest};

#[test]
fn rows_of_a_newer_version_are_refused_and_unchanged() {
    let db = migrated();
    let newer = newest() + 3;
    let insert = "INSERT INTO cf_agents_migrations (number, name, applied_at) VALUES (?1, 'x', 1)";
    db.run(insert, &[newer.into()]).unwrap();
    let before = db.dump();
    for _ in 0..2 {
        let error = migrate(&db, &FixedHost::default()).unwrap_err();
        assert_eq!(error.code.name(), "storage_failed");
        assert_eq!(error.details()["stored"], newer);
        assert_eq!(error.details()["known"], newest());
        assert!(error.message.contains("newer version"), "{}", error.message);
        assert!(!error.message.contains("cf_agents"), "{}", error.message);
    }
    assert!(db.dump() == before);
}
