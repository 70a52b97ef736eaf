//! Unloaded round trip (base RTT) of a flow, as its controller assumes it.

use super::NetworkFacts;
use clearway_units::{Parameter, Span, Value, ValueDomain};

/// Source of the unloaded round trip of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BaseRtt {
    /// Longest round trip in the fabric, the same for all flows.
    Network,
    /// Round trip of the flow's own path.
    Path,
    /// Fixed duration in any network.
    Fixed(Span),
}

impl BaseRtt {
    /// The round trip in a network, as seen by one flow.
    pub fn resolve(self, network: &NetworkFacts) -> Span {
        match self {
            Self::Network => network.base_rtt,
            Self::Path => network.path.rtt,
            Self::Fixed(rtt) => rtt,
        }
        // No time at all has no bandwidth-delay product.
        .max(Span::from_ns(1))
    }
}

impl Parameter for BaseRtt {
    fn expected() -> String {
        "\"network\", \"path\" or a duration such as \"12us\"".into()
    }
    fn domain() -> ValueDomain {
        ValueDomain::Either(vec![
            ValueDomain::Words(vec!["network", "path"]),
            ValueDomain::Duration,
        ])
    }
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Text(text) if text == "network" => Some(Self::Network),
            Value::Text(text) if text == "path" => Some(Self::Path),
            _ => Span::from_value(value).map(Self::Fixed),
        }
    }
    fn advice(value: &Value) -> Option<String> {
        Span::advice(value)
    }
    fn to_value(&self) -> Value {
        match self {
            Self::Network => Value::Text("network".into()),
            Self::Path => Value::Text("path".into()),
            Self::Fixed(rtt) => rtt.to_value(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::PathFacts;
    use crate::testing::network;
    use clearway_units::Rate;

    #[test]
    fn it_reads_what_it_writes_and_resolves() {
        let facts = network(Rate::from_gbps(100), Span::from_us(12)).on_path(PathFacts {
            rtt: Span::from_us(4),
            switches: 1,
        });
        for (choice, rtt) in [
            (BaseRtt::Network, facts.base_rtt),
            (BaseRtt::Path, Span::from_us(4)),
            (BaseRtt::Fixed(Span::from_us(7)), Span::from_us(7)),
        ] {
            assert_eq!(BaseRtt::from_value(&choice.to_value()), Some(choice));
            assert_eq!(choice.resolve(&facts), rtt);
        }
        assert_eq!(BaseRtt::from_value(&Value::Text("pat".into())), None);
        assert!(!BaseRtt::Fixed(Span::ZERO).resolve(&facts).is_zero());
    }
}
