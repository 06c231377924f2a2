//! Days of the calendar, in UTC.

pub const DAY_MS: i64 = 86_400_000;

/// Converts days since the epoch into year, month and day of the proleptic Gregorian
/// calendar. Internally, years start on 1 March, so that the leap day is a year's last day.
pub fn civil(days: i64) -> (i64, usize, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month as usize, day)
}

/// The day of a time, as `2026-01-31`.
pub fn day_of(ms: i64) -> String {
    let (year, month, day) = civil(ms.div_euclid(DAY_MS));
    format!("{year:04}-{month:02}-{day:02}")
}

/// The last millisecond of a day such as `2026-01-31`. `None`: it is not a valid day.
pub fn end_of_day(day: &str) -> Option<i64> {
    let mut parts = day.trim().splitn(3, '-');
    let mut number = || parts.next()?.parse::<i64>().ok();
    let (year, month, date) = (number()?, number()?, number()?);
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) {
        return None;
    }
    // Years start on 1 March, as above.
    let (from, months) = match month {
        1 | 2 => (year - 1, month + 9),
        _ => (year, month - 3),
    };
    let leaps = from.div_euclid(4) - from.div_euclid(100) + from.div_euclid(400);
    let days = 365 * from + leaps + (153 * months + 2) / 5 + date - 1 - 719_468;
    let end = (days + 1) * DAY_MS - 1;
    (day_of(end) == day.trim()).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_round_trips() {
        for (ms, day) in [
            (0, "1970-01-01"),
            (951_782_400_000, "2000-02-29"),
            (1_683_554_160_000, "2023-05-08"),
            (4_107_542_399_000, "2100-02-28"),
        ] {
            assert_eq!(day_of(ms), day);
            let end = end_of_day(day).unwrap();
            assert_eq!((day_of(end).as_str(), end % DAY_MS), (day, DAY_MS - 1));
        }
        for wrong in [
            "",
            "2026",
            "2026-02-30",
            "2026-13-01",
            "26-01-01",
            "2026-1-1",
            "soon",
            "2026-01-01-x",
            "9999999999999999999-01-01",
        ] {
            assert_eq!(end_of_day(wrong), None, "{wrong}");
        }
    }
}
