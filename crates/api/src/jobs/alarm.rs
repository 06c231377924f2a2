//! The object's single alarm.

use std::cell::Cell;

/// The time of the next alarm, if this activation knows it.
#[derive(Default)]
pub struct AlarmTime(Cell<i64>);

impl AlarmTime {
    /// The alarm was set.
    pub fn set(&self, at_ms: i64) {
        self.0.set(at_ms);
    }

    /// The alarm fired, or was deleted.
    pub fn clear(&self) {
        self.0.set(0);
    }

    /// Whether the alarm is set to this time, or to an earlier time that has not passed.
    pub fn fires_by(&self, at_ms: i64, now_ms: i64) -> bool {
        (now_ms + 1..=at_ms).contains(&self.0.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alarm_is_set_only_if_none_fires_in_time() {
        let alarm = AlarmTime::default();
        assert!(!alarm.fires_by(100, 10));
        alarm.set(50);
        assert!(alarm.fires_by(100, 10) && alarm.fires_by(50, 10));
        assert!(!alarm.fires_by(49, 10));
        // An alarm whose time has passed may have been lost.
        assert!(alarm.fires_by(100, 49) && !alarm.fires_by(100, 50));
        alarm.clear();
        assert!(!alarm.fires_by(100, 10));
    }
}
