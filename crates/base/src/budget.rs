//! Limits on the bytes that are in memory at once. An isolate has 128 MB, all objects in it share
//! them, and Wasm memory never shrinks. So the budgets are the isolate's, not an object's. A
//! request that does not fit is rejected before anything is written.
//!
//! ```text
//!   4 MiB  what one answer holds (three to four copies while it is made)
//!  24 MiB  the turns that run, and what their clients have still to read
//!  16 MiB  bodies that are read or worked on, and answers that are being sent
//!  16 MiB  texts of calls that the Worker passes on to objects
//!   8 MiB  small bodies that are still to come
//! ```
//!
//! One agent may use half of the budget of bodies and answers. So answers that its clients don't
//! read block no other agent's answers.
//!
//! Operations run one at a time. The budgets do not count the copies that the running
//! operation makes of its body and its answer; the rest of the memory is for these.

use std::cell::{Cell, RefCell};
use std::thread::LocalKey;

use crate::error::{Code, Error, Result};
use crate::owner::Owner;

/// The most bytes of text in the answer of one read, as they are written: an escaped character
/// takes up to six. A single longer message or event is returned by itself.
pub const MAX_ANSWER_BYTES: usize = 4 << 20;

/// The budget of all running turns of an isolate: their requests, their output and tool
/// results, the bodies of calls to models, and the chunks that wait for a reader.
const MAX_TURNS_BYTES: usize = 24 << 20;

/// The budget of all requests of an isolate: three of the largest bodies, or two of the
/// longest answers, which take twice their length while they are sent.
const MAX_REQUESTS_BYTES: usize = 16 << 20;

/// The most of it for one agent: one of the longest answers. An agent that uses nothing may take
/// more.
const MAX_AGENTS_REQUESTS_BYTES: usize = MAX_REQUESTS_BYTES / 2;

/// The budget of the Worker in front for the texts of calls over Workers RPC: two of the longest.
/// Over HTTP a body streams through the Worker; over RPC the Worker buffers the whole text. An
/// object's own budget counts the text again, as its body.
const MAX_FORWARDS_BYTES: usize = 16 << 20;

/// A body or an answer up to this size is not counted, so that a small request always
/// passes: a thousand of them at once take 16 MiB.
pub const SMALL_BYTES: usize = 16 << 10;

/// The budget of small bodies that have not arrived yet: 512 of them. A small body whose length is
/// announced is read before Rust is entered, and counted there, as long as an object reads few of
/// them (scripts/build/shim.mjs). So a burst of requests is not rejected here.
const MAX_ARRIVING_BYTES: usize = 8 << 20;

/// The seconds after which a rejected caller may retry.
const RETRY_AFTER_S: i64 = 5;

thread_local! {
    pub static TURNS: ByteBudget = const { ByteBudget::new(MAX_TURNS_BYTES) };
    pub static REQUESTS: ByteBudget =
        const { ByteBudget::shared(MAX_REQUESTS_BYTES, MAX_AGENTS_REQUESTS_BYTES) };
    static ARRIVING: ByteBudget = const { ByteBudget::new(MAX_ARRIVING_BYTES) };
    pub static FORWARDS: ByteBudget = const { ByteBudget::new(MAX_FORWARDS_BYTES) };
}

/// The remaining capacity of an answer. The first item always fits, so that an item that is longer
/// than an answer can still be read.
pub struct AnswerCapacity {
    left: usize,
    is_empty: bool,
}

impl AnswerCapacity {
    pub fn of(bytes: usize) -> Self {
        Self {
            left: bytes,
            is_empty: true,
        }
    }

    /// Adds an item of this length; `false`: neither the item nor any after it fits.
    pub fn takes(&mut self, bytes: usize) -> bool {
        let fits = self.is_empty || bytes <= self.left;
        self.is_empty = false;
        self.left = if fits {
            self.left.saturating_sub(bytes)
        } else {
            0
        };
        fits
    }
}

pub struct ByteBudget {
    reserved: Cell<usize>,
    max_bytes: usize,
    /// The most bytes of one agent.
    max_each: usize,
    /// The bytes of each agent that uses any.
    shares: RefCell<Vec<(u64, usize)>>,
}

impl ByteBudget {
    pub const fn new(max_bytes: usize) -> Self {
        Self::shared(max_bytes, usize::MAX)
    }

    pub const fn shared(max_bytes: usize, max_each: usize) -> Self {
        Self {
            reserved: Cell::new(0),
            max_bytes,
            max_each,
            shares: RefCell::new(Vec::new()),
        }
    }

    pub fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    pub fn reserved_bytes(&self) -> usize {
        self.reserved.get()
    }

    fn share_of(&self, agent: u64) -> usize {
        let shares = self.shares.borrow();
        let found = shares.iter().find(|(other, _)| *other == agent);
        found.map_or(0, |(_, bytes)| *bytes)
    }

    /// Sets the bytes that an agent uses, and the sum.
    fn set_share(&self, agent: u64, bytes: usize) {
        let before = self.share_of(agent);
        let reserved = self
            .reserved
            .get()
            .saturating_sub(before)
            .saturating_add(bytes);
        self.reserved.set(reserved);
        let mut shares = self.shares.borrow_mut();
        shares.retain(|(other, _)| *other != agent);
        if bytes > 0 {
            shares.push((agent, bytes));
        }
    }

    /// Replaces `before` by `after` in the sum; `false`: the budget would be exceeded,
    /// and nothing changed.
    fn replace(&self, agent: u64, before: usize, after: usize) -> bool {
        let others = self.share_of(agent).saturating_sub(before);
        let share = others.saturating_add(after);
        let reserved = self
            .reserved
            .get()
            .saturating_sub(before)
            .saturating_add(after);
        let is_within_share = share <= self.max_each || others == 0;
        let fits = after <= before || reserved <= self.max_bytes && is_within_share;
        if fits {
            self.set_share(agent, share);
        }
        fits
    }
}

/// Reserved bytes of a budget, which are released when this value is dropped.
pub struct Reservation {
    budget: &'static LocalKey<ByteBudget>,
    agent: u64,
    bytes: Cell<usize>,
}

impl Reservation {
    /// Reserves bytes, or fails. `what` begins the error's sentence: "The turns that run".
    pub fn take(budget: &'static LocalKey<ByteBudget>, bytes: usize, what: &str) -> Result<Self> {
        let hold = Self {
            budget,
            agent: Owner::current().agent,
            bytes: Cell::new(0),
        };
        if hold.resize(bytes) {
            return Ok(hold);
        }
        Err(Self::refusal(what))
    }

    fn refusal(what: &str) -> Error {
        Error::new(
            Code::RateLimited,
            format!(
                "{what} use all available memory. Nothing was written: try again in \
                     {RETRY_AFTER_S} seconds."
            ),
        )
        .with_retry_after(RETRY_AFTER_S)
    }

    /// Reserves memory for a body or an answer.
    pub fn for_request(bytes: usize) -> Result<Self> {
        let counted = if bytes <= SMALL_BYTES { 0 } else { bytes };
        // A stored text may be longer than the whole budget: it is allowed if nothing else is reserved.
        if REQUESTS.with(|budget| budget.reserved_bytes() == 0) {
            return Ok(Self::unchecked(&REQUESTS, counted));
        }
        Self::take(&REQUESTS, counted, "Running requests")
    }

    /// Whether there is memory for an answer of this length, in addition to the reserved memory.
    pub fn check_capacity(bytes: usize) -> Result<()> {
        let is_free = REQUESTS.with(|budget| {
            let reserved = budget.reserved_bytes();
            reserved == 0 || reserved.saturating_add(bytes) <= budget.max_bytes()
        });
        if is_free {
            Ok(())
        } else {
            Err(Self::refusal("Running requests"))
        }
    }

    /// Reserves memory for a body that has not arrived yet, until it has. A large body is counted
    /// by `for_request`.
    pub fn for_arrival(announced: Option<usize>) -> Result<Self> {
        let counted = match announced {
            Some(bytes) if bytes > SMALL_BYTES => 0,
            Some(_) | None => SMALL_BYTES,
        };
        Self::take(&ARRIVING, counted, "Pending requests")
    }

    /// Reserves bytes that are in memory already and can't be rejected any more.
    pub fn unchecked(budget: &'static LocalKey<ByteBudget>, bytes: usize) -> Self {
        let agent = Owner::current().agent;
        budget.with(|budget| {
            budget.set_share(agent, budget.share_of(agent).saturating_add(bytes));
        });
        Self {
            budget,
            agent,
            bytes: Cell::new(bytes),
        }
    }

    /// Changes the reservation to `bytes`; `false`: the budget would be exceeded, and
    /// the reservation stays as it was.
    pub fn resize(&self, bytes: usize) -> bool {
        let fits = self
            .budget
            .with(|budget| budget.replace(self.agent, self.bytes.get(), bytes));
        if fits {
            self.bytes.set(bytes);
        }
        fits
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.resize(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Dice;
    use crate::testing::wait_for;

    thread_local! {
        static TEN: ByteBudget = const { ByteBudget::new(10) };
    }

    #[test]
    fn a_request_that_does_not_fit_is_refused_with_a_time_to_retry() {
        let first = Reservation::take(&TEN, 6, "These").unwrap();
        let error = Reservation::take(&TEN, 5, "Those").map(drop).unwrap_err();
        assert_eq!(error.code, Code::RateLimited);
        assert_eq!(error.details()["retryAfter"], 5);
        drop(first);
        assert!(Reservation::take(&TEN, 10, "Those").is_ok());
    }

    #[test]
    fn small_requests_always_fit_and_a_large_one_runs_alone() {
        let large = Reservation::for_request(MAX_REQUESTS_BYTES + 1).unwrap();
        assert!(Reservation::for_request(SMALL_BYTES).is_ok());
        let error = Reservation::for_request(SMALL_BYTES + 1)
            .map(drop)
            .unwrap_err();
        assert_eq!(error.code, Code::RateLimited);
        drop(large);
        assert!(Reservation::for_request(SMALL_BYTES + 1).is_ok());
        assert_eq!(REQUESTS.with(ByteBudget::reserved_bytes), 0);
    }

    #[test]
    fn one_agent_may_take_at_most_half() {
        let of = |agent: &str, bytes: usize| {
            wait_for(Owner::agent(agent).run(async { Reservation::for_request(bytes) }))
        };
        let share = MAX_AGENTS_REQUESTS_BYTES;
        let first = of("a", share - 20_000).unwrap();
        let second = of("a", 20_000).unwrap();
        assert!(of("a", 17_000).is_err());
        assert!(of("a", SMALL_BYTES).is_ok());
        // Another agent's longest answer fits, and passes the check before it.
        assert!(Reservation::check_capacity(share).is_ok());
        let other = of("b", share).unwrap();
        assert!(of("c", 17_000).is_err());
        assert!(Reservation::check_capacity(17_000).is_err());
        drop((second, first));
        // An agent that uses nothing may take more than the share, if there is capacity.
        let large = of("a", MAX_REQUESTS_BYTES - share).unwrap();
        drop(other);
        assert!(!large.resize(MAX_REQUESTS_BYTES + 1) && large.resize(MAX_REQUESTS_BYTES));
        drop(large);
        assert_eq!(REQUESTS.with(ByteBudget::reserved_bytes), 0);
        assert!(REQUESTS.with(|budget| budget.shares.borrow().is_empty()));
    }

    /// After random reservations and releases, the sums are right, no agent that uses anything has
    /// more than its share, and a new agent has capacity for a page.
    #[test]
    fn another_agent_always_finds_capacity() {
        for seed in 1..=100_u64 {
            let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            let mut reserved: Vec<(usize, usize, Reservation)> = Vec::new();
            for step in 0..200 {
                let case = format!("seed {seed}, step {step}");
                let bytes = [17_000, 500_000, 3 << 20, 8 << 20][dice.roll(4)];
                let agent = dice.roll(4);
                match dice.roll(3) {
                    0 if !reserved.is_empty() => {
                        drop(reserved.swap_remove(dice.roll(reserved.len())));
                    }
                    _ => {
                        let name = agent.to_string();
                        let taking = async { Reservation::for_request(bytes) };
                        if let Ok(reservation) = wait_for(Owner::agent(&name).run(taking)) {
                            reserved.push((agent, bytes, reservation));
                        }
                    }
                }
                let sum: usize = reserved.iter().map(|(_, bytes, _)| bytes).sum();
                assert_eq!(REQUESTS.with(ByteBudget::reserved_bytes), sum, "{case}");
                assert!(sum <= MAX_REQUESTS_BYTES, "{case}");
                for agent in 0..4 {
                    let own = reserved.iter().filter(|(other, _, _)| *other == agent);
                    let own: Vec<usize> = own.map(|(_, bytes, _)| *bytes).collect();
                    let share: usize = own.iter().sum();
                    assert!(share <= MAX_AGENTS_REQUESTS_BYTES, "{case}: {own:?}");
                }
                let agents = reserved.iter().map(|(agent, _, _)| *agent);
                if agents.collect::<std::collections::BTreeSet<_>>().len() <= 1 {
                    assert!(Reservation::check_capacity(8 << 20).is_ok(), "{case}");
                }
            }
        }
    }

    #[test]
    fn pending_small_bodies_are_bounded() {
        let arrival = |announced| Reservation::for_arrival(announced);
        let few: Vec<Reservation> = (0..512)
            .map(|n| arrival((n % 2 == 0).then_some(5)).unwrap())
            .collect();
        let error = arrival(None).map(drop).unwrap_err();
        assert_eq!(error.code, Code::RateLimited);
        assert!(arrival(Some(SMALL_BYTES)).is_err());
        assert!(arrival(Some(SMALL_BYTES + 1)).is_ok());
        drop(few);
        assert!(arrival(None).is_ok());
    }

    #[test]
    fn an_unconditional_reservation_is_counted_and_released() {
        let first = Reservation::unchecked(&TEN, 15);
        assert!(Reservation::take(&TEN, 1, "Those").is_err());
        drop(first);
        assert_eq!(TEN.with(ByteBudget::reserved_bytes), 0);
    }

    #[test]
    fn a_reservation_that_cannot_grow_keeps_its_size() {
        let first = Reservation::take(&TEN, 6, "These").unwrap();
        assert!(!first.resize(11));
        assert_eq!(TEN.with(ByteBudget::reserved_bytes), 6);
        assert!(first.resize(10) && first.resize(2));
        assert!(Reservation::take(&TEN, 8, "Those").is_ok());
    }
}
