//! SimAI's command line.

/// Files beside `SimAI.conf` in SimAI's command line.
#[derive(Debug, Clone, Copy)]
pub struct SimaiFiles<'a> {
    /// Topology, `-n`.
    pub topology: &'a str,
    /// Workload, `-w`.
    pub workload: &'a str,
}
