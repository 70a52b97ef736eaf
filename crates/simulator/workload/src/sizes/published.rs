//! Distributions that were measured and published.

use super::{SizeDistribution, SizePoint};
use clearway_units::Bytes;

/// A distribution that is known by name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PublishedSizes {
    /// Name of the distribution in a scenario.
    pub name: &'static str,
    /// Description in one line.
    pub summary: &'static str,
    /// Publication of the measurement, and origin of the points.
    pub source: &'static str,
    points: &'static [(u64, f64)],
}

impl PublishedSizes {
    /// All published distributions.
    pub const ALL: &'static [Self] = &[
        Self {
            name: "hadoop",
            summary: "Hadoop at Facebook: mean 120 KB, half of the flows below 700 B, the largest 10 MB",
            source: "Roy et al., SIGCOMM 2015, as used by HPCC, SIGCOMM 2019, §5.1",
            points: &[
                (0, 0.0),
                (100, 1.0),
                (200, 2.0),
                (300, 5.0),
                (350, 15.0),
                (400, 20.0),
                (500, 30.0),
                (600, 40.0),
                (700, 50.0),
                (1_000, 60.0),
                (2_000, 67.0),
                (7_000, 70.0),
                (30_000, 72.0),
                (50_000, 82.0),
                (80_000, 87.0),
                (120_000, 90.0),
                (300_000, 95.0),
                (1_000_000, 97.5),
                (2_000_000, 99.0),
                (10_000_000, 100.0),
            ],
        },
        Self {
            name: "websearch",
            summary: "web search: mean 1.7 MB, half of the flows below 73 KB, the largest 30 MB",
            source: "DCTCP (Alizadeh et al., SIGCOMM 2010), as used by HPCC, SIGCOMM 2019, §5.1",
            points: &[
                (0, 0.0),
                (10_000, 15.0),
                (20_000, 20.0),
                (30_000, 30.0),
                (50_000, 40.0),
                (80_000, 53.0),
                (200_000, 60.0),
                (1_000_000, 70.0),
                (2_000_000, 80.0),
                (5_000_000, 90.0),
                (10_000_000, 97.0),
                (30_000_000, 100.0),
            ],
        },
        Self {
            name: "ali-storage",
            summary: "storage at Alibaba in 2019: mean 41 KB, half of the flows below 6.3 KB, the largest 2 MB",
            source: "published with the simulator of HPCC, SIGCOMM 2019",
            points: &[
                (0, 0.0),
                (4_000, 22.93),
                (8_000, 69.21),
                (16_000, 80.61),
                (32_000, 90.47),
                (64_000, 93.53),
                (128_000, 96.77),
                (256_000, 97.53),
                (2_000_000, 100.0),
            ],
        },
    ];

    /// Distribution with the name `name`.
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|published| published.name == name)
    }

    /// The distribution itself.
    pub fn distribution(&self) -> SizeDistribution {
        let point = |&(bytes, percent): &(u64, f64)| SizePoint {
            bytes: Bytes::new(bytes),
            percent,
        };
        SizeDistribution {
            points: self.points.iter().map(point).collect(),
        }
    }
}
