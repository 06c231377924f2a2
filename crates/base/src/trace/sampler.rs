//! Which traces are recorded: the samplers that OpenTelemetry names in `OTEL_TRACES_SAMPLER`.

use super::ids::TraceId;

/// Decides whether a trace's spans are recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampler {
    /// Whether the caller's decision applies, if there is one.
    follows_parent: bool,
    /// The share of traces, as a fraction of 2^63.
    bound: u64,
}

/// `parentbased_always_on`, which is OpenTelemetry's own default.
impl Default for Sampler {
    fn default() -> Self {
        Self {
            follows_parent: true,
            bound: ALL,
        }
    }
}

const ALL: u64 = 1 << 63;

impl Sampler {
    /// `name` and `argument`: `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG`. `None`: there
    /// is no such sampler.
    pub fn parse(name: &str, argument: Option<&str>) -> Option<Self> {
        let (follows_parent, root) = match name.trim().strip_prefix("parentbased_") {
            Some(root) => (true, root),
            None => (false, name.trim()),
        };
        let bound = match root {
            "always_on" => ALL,
            "always_off" => 0,
            "traceidratio" => {
                let share = argument.map_or(Some(1.0), |text| text.trim().parse::<f64>().ok());
                let share = share.filter(|share| (0.0..=1.0).contains(share))?;
                (share * ALL as f64) as u64
            }
            _ => return None,
        };
        Some(Self {
            follows_parent,
            bound,
        })
    }

    /// `parent`: the decision of the caller, if the caller named a trace.
    pub fn samples(self, id: TraceId, parent: Option<bool>) -> bool {
        match parent {
            Some(is_sampled) if self.follows_parent => is_sampled,
            // The last bytes of the id: every service of the trace uses the same ones.
            _ => {
                let mut low = [0; 8];
                for (byte, random) in low.iter_mut().zip(id.0.iter().skip(8)) {
                    *byte = *random;
                }
                u64::from_be_bytes(low) >> 1 < self.bound
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(low: u64) -> TraceId {
        let mut id = [7; 16];
        id[8..].copy_from_slice(&low.to_be_bytes());
        TraceId(id)
    }

    #[test]
    fn only_opentelemetry_sampler_names_are_known() {
        let sampler = |name, argument| Sampler::parse(name, argument);
        assert_eq!(
            sampler("parentbased_always_on", None),
            Some(Sampler::default())
        );
        for name in ["", "always", "jaeger_remote", "parentbased_", "ALWAYS_ON"] {
            assert_eq!(sampler(name, None), None, "{name}");
        }
        for argument in ["", "x", "-0.1", "1.1", "NaN"] {
            assert_eq!(sampler("traceidratio", Some(argument)), None, "{argument}");
        }
    }

    #[test]
    fn a_ratio_is_sampled_and_the_parents_decision_counts() {
        let quarter = Sampler::parse("traceidratio", Some("0.25")).unwrap();
        let mut count = 0;
        for step in 0..1_000_u64 {
            count += u32::from(quarter.samples(id(step * (u64::MAX / 1_000)), Some(true)));
        }
        assert_eq!(count, 251);
        let on = Sampler::default();
        assert!(on.samples(id(0), None) && !on.samples(id(0), Some(false)));
        let off = Sampler::parse("parentbased_always_off", None).unwrap();
        assert!(!off.samples(id(0), None) && off.samples(id(0), Some(true)));
        let none = Sampler::parse("always_off", None).unwrap();
        assert!(!none.samples(id(0), Some(true)));
        assert!(
            Sampler::parse("traceidratio", Some("1"))
                .unwrap()
                .samples(id(u64::MAX), None)
        );
    }
}
