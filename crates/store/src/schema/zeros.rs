//! The tables of zeros that fill free pages: see `free_space.rs`.

use base::columns::{find_value, load_values};
use base::database::{Database, atomically};
use base::error::Result;

/// The size of a page, which is fixed in a Durable Object.
pub const PAGE_BYTES: i64 = 4_096;

/// SQLite copies the log into the file after so many pages.
pub(super) const LOG_PAGES: i64 = 1_000;

/// How many pages the steps between two fillings write to the log.
pub(super) const STEP_PAGES: i64 = 32;

/// The most pages that are filled at once, to reach the last free one, or to overwrite the log (64
/// MiB).
pub(super) const MAX_FILLED_PAGES: i64 = 16_384;

/// An earlier activation may have left so many pages in the log (24 MiB): more only if one
/// transaction wrote more.
pub(super) const MAX_LOG_PAGES: i64 = 6_144;

/// By how many pages a filling continues that has not reached the last free page, twice as many
/// each time. If the number of free pages is roughly known, the file grows by few pages with each
/// filling.
pub(super) const MORE_PAGES: i64 = 64;
pub(super) const FEW_PAGES: i64 = 5;
pub(super) const MAX_MORE_PAGES: i64 = 256;

/// The most pages of an index of words that one purge merges at once. A
/// page has 4 KB.
pub(super) const MAX_MERGED_PAGES: i64 = 4_096;

/// The tables of zeros exist between two steps of a clearing. Each has one page of a tree, and
/// overflow pages.
pub(super) const ZEROS: &str = "cf_agents_zeros";
pub(super) const MAX_ROWS_OF_ZEROS: i64 = 8;

/// Tables whose root pages reveal whether pages are free.
pub(super) const ROOTS: [&str; 3] = [
    "cf_agents_zeros_low",
    "cf_agents_zeros_high",
    "cf_agents_zeros_next",
];

/// A permanent table without rows, whose root page is among the last of the file. By it, the next
/// activation of the object knows about how long the file is.
pub(super) const LAST_PAGE: &str = "cf_agents_last_page";
pub(super) const MAX_BEHIND_LAST: i64 = 64;

/// A row of zeros fills so many overflow pages, to the last byte, and this part of its tree's
/// page.
pub(super) const MAX_ROW_PAGES: i64 = 250;
pub(super) const OVERFLOW_BYTES: i64 = PAGE_BYTES - 4;
pub(super) const LOCAL_BYTES: i64 = 489;
pub(super) const MAX_ROW_IN_PAGE: i64 = LOCAL_BYTES + 10;

/// The bytes of a tree's page that rows may fill.
pub(super) const ROWS_BYTES: i64 = PAGE_BYTES - 8;

pub fn empty_free_pages(db: &dyn Database) -> Result<()> {
    atomically(db, || {
        for (name, _) in tables_of_zeros(db)? {
            db.run(&format!("DROP TABLE {name}"), &[])?;
        }
        Ok(())
    })
}

/// The tables of zeros, in the order in which they were created, and their numbers. Those of
/// [`ROOTS`] have none.
pub(super) fn tables_of_zeros(db: &dyn Database) -> Result<Vec<(String, i64)>> {
    let sql = "SELECT name FROM sqlite_master WHERE name GLOB ?1 ORDER BY rowid";
    let names: Vec<String> = load_values(db, sql, &[format!("{ZEROS}_*").into()])?;
    let number = |name: &str| {
        let end = name.strip_prefix(ZEROS)?.strip_prefix('_')?;
        end.parse::<i64>().ok()
    };
    Ok(names
        .into_iter()
        .map(|name| {
            let number = number(&name).unwrap_or(0);
            (name, number)
        })
        .collect())
}

/// The tables of zeros, while they are filled. Every byte of their pages is written: a page that
/// SQLite took without clearing it contains nothing of its old content.
pub(super) struct Zeros<'a> {
    pub(super) db: &'a dyn Database,
    /// How many pages were filled.
    pub(super) pages: i64,
    /// How many pages the file has; 0: unknown.
    pub(super) file_pages: i64,
    /// The table that accepts more rows, and how many bytes of its tree's page are filled.
    pub(super) open: Option<(String, i64)>,
    /// Empty tables.
    pub(super) spare: Vec<String>,
    pub(super) next_number: i64,
    /// Whether this activation knows `file_pages`.
    pub(super) is_known: bool,
}

impl<'a> Zeros<'a> {
    /// Starts without tables: an interrupted step may have left some.
    pub(super) fn begin(db: &'a dyn Database, file_pages: i64) -> Result<Self> {
        empty_free_pages(db)?;
        Self::resume(db, file_pages)
    }

    /// Continues with the existing tables.
    pub(super) fn resume(db: &'a dyn Database, file_pages: i64) -> Result<Self> {
        let last = tables_of_zeros(db)?.into_iter().map(|(_, number)| number);
        Ok(Self {
            db,
            pages: 0,
            file_pages,
            open: None,
            spare: Vec::new(),
            next_number: last.max().unwrap_or(0) + 1,
            is_known: true,
        })
    }

    pub(super) fn used_pages(&self) -> Result<i64> {
        Ok(self.db.size_bytes()? / PAGE_BYTES)
    }

    pub(super) fn make_table(&mut self) -> Result<String> {
        let name = format!("{ZEROS}_{}", self.next_number);
        self.next_number += 1;
        self.db
            .run(&format!("CREATE TABLE {name} (zeros BLOB NOT NULL)"), &[])?;
        Ok(name)
    }

    pub(super) fn make_spare(&mut self, count: i64) -> Result<()> {
        for _ in 0..count {
            let name = self.make_table()?;
            self.spare.push(name);
        }
        Ok(())
    }

    /// Fills so many pages.
    pub(super) fn add(&mut self, pages: i64) -> Result<()> {
        let mut left = pages;
        while left > 0 {
            if self.open.is_none() {
                let name = match self.spare.pop() {
                    Some(name) => name,
                    None => {
                        left -= 1;
                        self.make_table()?
                    }
                };
                self.open = Some((name, 0));
            } else {
                let row_pages = left.min(MAX_ROW_PAGES);
                self.add_row(row_pages)?;
                left -= row_pages;
            }
        }
        Ok(())
    }

    pub(super) fn add_row(&mut self, pages: i64) -> Result<()> {
        let Some((name, used)) = self.open.take() else {
            return Ok(());
        };
        let bytes = LOCAL_BYTES + OVERFLOW_BYTES * pages;
        // The head of the row has its own length, and that of the zeros.
        let head = match pages {
            1 => 3,
            _ => 4,
        };
        self.insert(&name, bytes - head)?;
        self.pages += pages;
        // With the row's length and number, the next page's number, and its offset in the page.
        let used = used + LOCAL_BYTES + length_bytes(bytes) + 1 + 4 + 2;
        self.open = Some((name, used));
        if used + MAX_ROW_IN_PAGE <= ROWS_BYTES {
            Ok(())
        } else {
            self.close()
        }
    }

    pub(super) fn insert(&self, table: &str, bytes: i64) -> Result<()> {
        let sql = format!("INSERT INTO {table} (zeros) VALUES (zeroblob(?1))");
        self.db.run(&sql, &[bytes.into()])
    }

    /// Fills the rest of the open table's tree page.
    pub(super) fn close(&mut self) -> Result<()> {
        let Some((name, used)) = self.open.take() else {
            return Ok(());
        };
        if used == 0 {
            // Its page has no row, and is filled by two.
            self.insert(&name, 2_000 - 3)?;
            let used = 2_000 + 2 + 1 + 2;
            return self.insert_rest(&name, ROWS_BYTES - used);
        }
        self.insert_rest(&name, ROWS_BYTES - used)
    }

    pub(super) fn insert_rest(&mut self, name: &str, left: i64) -> Result<()> {
        self.pages += 1;
        // The row's number, its length, its offset in the page, and the head of the row.
        let head = if left - 4 < 128 { 4 + 3 } else { 5 + 3 };
        self.insert(name, left - head)
    }

    /// How many pages the existing tables have.
    pub(super) fn count_filled(&self) -> Result<i64> {
        let mut sum = 0;
        for (name, number) in tables_of_zeros(self.db)? {
            sum += 1;
            if number > 0 {
                let sql = format!("SELECT sum(octet_length(zeros)) FROM {name}");
                let bytes: Option<i64> = find_value::<Option<i64>>(self.db, &sql, &[])?.flatten();
                sum += bytes.unwrap_or(0) / OVERFLOW_BYTES;
            }
        }
        Ok(sum)
    }

    /// Frees tables with so many pages, as far as there are any. Returns how many pages it freed.
    pub(super) fn give(&mut self, pages: i64) -> Result<i64> {
        self.close()?;
        let before = self.used_pages()?;
        let mut freed = 0;
        for (name, number) in tables_of_zeros(self.db)? {
            if freed >= pages {
                break;
            }
            if number > 0 && !self.spare.contains(&name) {
                self.db.run(&format!("DROP TABLE {name}"), &[])?;
                freed = before - self.used_pages()?;
            }
        }
        Ok(freed)
    }

    pub(super) fn update_file_pages(&mut self) -> Result<()> {
        self.file_pages = self.file_pages.max(self.used_pages()?);
        Ok(())
    }

    /// Fills all free pages, where the number of the file's pages is known.
    pub(super) fn fill_known(&mut self) -> Result<()> {
        if self.file_pages == 0 {
            return self.fill_all();
        }
        self.update_file_pages()?;
        self.add(self.file_pages - self.used_pages()?)
    }

    /// Fills pages until none is free, and so determines how many the file has. It fills the last
    /// two after the check, so that the file does not grow if its length is unchanged.
    pub(super) fn fill_all(&mut self) -> Result<()> {
        let before = self.pages;
        let known_pages = self.file_pages;
        // The table that is open fills its page when it is closed.
        let left = known_pages - FREED_ROOTS - self.used_pages()?;
        self.add(left.min(MAX_FILLED_PAGES))?;
        let mut more = match known_pages {
            0 => MORE_PAGES,
            _ => FEW_PAGES,
        };
        self.file_pages = 0;
        let mut is_certain = self.is_known && self.used_pages()? + FREED_ROOTS <= known_pages;
        self.is_known = true;
        while self.pages - before < MAX_FILLED_PAGES {
            if self.takes_new_pages()? {
                if is_certain {
                    self.file_pages = self.used_pages()? + FREED_ROOTS;
                    self.add(FREED_ROOTS)?;
                    break;
                }
                // A full list of free pages makes the check wrong once.
                self.add(FEW_PAGES)?;
                is_certain = true;
            } else {
                self.add(more)?;
                more = (2 * more).min(MAX_MORE_PAGES);
                is_certain = false;
            }
        }
        Ok(())
    }

    /// The root page of the table [`LAST_PAGE`].
    pub(super) fn find_last_page(&self) -> Result<Option<i64>> {
        let sql = "SELECT rootpage FROM sqlite_master WHERE name = ?1";
        find_value(self.db, sql, &[LAST_PAGE.into()])
    }

    /// Stores about how many pages the file has, for the next activation. Called when no page is
    /// free.
    pub(super) fn keep_last_page(&mut self) -> Result<()> {
        let last = self.find_last_page()?;
        if self.file_pages == 0
            || last.is_some_and(|page| page + MAX_BEHIND_LAST >= self.file_pages)
        {
            return Ok(());
        }
        if last.is_some() {
            self.db.run(&format!("DROP TABLE {LAST_PAGE}"), &[])?;
            self.fill_known()?;
        }
        self.db
            .run(&format!("CREATE TABLE {LAST_PAGE} (number INTEGER)"), &[])?;
        self.update_file_pages()
    }

    /// Whether no page is free. SQLite records free pages in lists. The first page that is freed
    /// when none is becomes the list, and is taken last; otherwise it is recorded in a list, from
    /// which a new table takes the lowest page. So two pages are freed, the lower one first: only
    /// if none was free is the higher one taken again. (If a list is full, the next page that is
    /// freed becomes another list. A second check finds it shorter.)
    pub(super) fn takes_new_pages(&self) -> Result<bool> {
        let [low, high, next] = ROOTS;
        let mut made = [(self.make_root(low)?, low), (self.make_root(high)?, high)];
        made.sort_unstable();
        for (_, name) in made {
            self.db.run(&format!("DROP TABLE {name}"), &[])?;
        }
        let [_, (highest, _)] = made;
        let root = self.make_root(next)?;
        self.db.run(&format!("DROP TABLE {next}"), &[])?;
        Ok(root == highest)
    }

    pub(super) fn make_root(&self, table: &str) -> Result<i64> {
        self.db
            .run(&format!("CREATE TABLE {table} (number INTEGER)"), &[])?;
        let sql = "SELECT rootpage FROM sqlite_master WHERE name = ?1";
        Ok(find_value(self.db, sql, &[table.into()])?.unwrap_or(0))
    }
}

/// How many bytes SQLite uses to store this length.
pub(super) fn length_bytes(length: i64) -> i64 {
    if length < 16_384 { 2 } else { 3 }
}

/// The pages that [`Zeros::takes_new_pages`] leaves free.
pub(super) const FREED_ROOTS: i64 = 2;
