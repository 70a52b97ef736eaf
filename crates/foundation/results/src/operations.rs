//! The table of operation figures: results of a scale-up run, in which GPUs read and write each other's memory.

use crate::totals::ShowCondition;
use serde::{Deserialize, Serialize};

/// Unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureUnit {
    /// Operations.
    Operations,
    /// GPUs.
    Gpus,
    /// Cycles, in each of which a link carries one flit.
    Cycles,
    /// Picoseconds.
    Ps,
    /// Flits.
    Flits,
    /// Flits per GPU and cycle.
    FlitsPerCycle,
    /// Packets.
    Packets,
    /// Entries of a reduction table.
    Entries,
    /// Responses.
    Responses,
}

/// Declaration of a figure: a line of a table of figures of `T`.
#[derive(Debug)]
pub struct FigureColumn<T> {
    /// Path in `summary.json`.
    pub path: &'static str,
    /// Unit of the figure.
    pub unit: FigureUnit,
    /// Condition under which comparisons of runs show it.
    pub shown: ShowCondition,
    /// Heading in a comparison of runs, and in tables.
    pub label: &'static str,
    /// Words after the number on the terminal; empty for a figure that the terminal shows in a table.
    pub phrase: &'static str,
    /// Meaning, in a sentence.
    pub meaning: &'static str,
    /// Value of the figure; `None` if the run has none.
    pub of: fn(&T) -> Option<f64>,
}

/// Declares the struct `$Group`, which holds the figures whose path begins with `$path`, and the table of them. `$via` finds
/// it in a `$Whole`.
macro_rules! figures {
    (
        $(#[doc = $about:literal])+
        $Group:ident, $path:literal, $table:ident of $Whole:ty, $via:expr;
        $(
            $(#[doc = $meaning:literal])+
            $field:ident: $type:ty, $unit:ident, $shown:ident, $label:literal, $phrase:literal;
        )+
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
        pub struct $Group {
            $($(#[doc = $meaning])+ pub $field: $type,)+
        }

        const $table: &[FigureColumn<$Whole>] = &[$(FigureColumn {
            path: concat!($path, stringify!($field)),
            unit: FigureUnit::$unit,
            shown: ShowCondition::$shown,
            label: $label,
            phrase: $phrase,
            meaning: concat!($($meaning),+).trim_ascii(),
            of: |whole| {
                let via: fn(&$Whole) -> Option<&$Group> = $via;
                Some(via(whole)?.$field as f64)
            },
        }),+];
    };
}

figures! {
    /// Work of a run and the time that it took: the head of the object `operations` of `summary.json`.
    OperationTotals, "operations.", TOTALS of OperationFigures, |all| Some(&all.totals);
    /// Operations whose response came.
    completed: u64, Operations, Always, "completed", "";
    /// Operations that programs posted.
    posted: u64, Operations, Never, "posted", "";
    /// GPUs of the fabric.
    gpus: u64, Gpus, Never, "GPUs", "";
    /// Length of a cycle in picoseconds.
    cycle_ps: u64, Ps, Never, "cycle", "";
    /// Cycles from the first injection to the last response.
    cycles: u64, Cycles, Always, "duration", "";
    /// Flits that GPUs received, each response counted as often as GPUs answered, per GPU and cycle of the duration.
    effective_bandwidth: f64, FlitsPerCycle, Always, "effective bandwidth", "effective flits per GPU and cycle";
}

figures! {
    /// Latency of completed operations: the object `operations.latency_cycles` of `summary.json`.
    LatencyCycles, "operations.latency_cycles.", LATENCY of OperationFigures, |all| all.latency_cycles.as_ref();
    /// Least latency in cycles, from injection to response.
    min: u64, Cycles, Never, "min", "";
    /// Mean latency in cycles, from injection to response.
    mean: f64, Cycles, Always, "latency mean", "";
    /// Median of the latency in cycles, from injection to response.
    p50: u64, Cycles, Always, "latency p50", "";
    /// Latency in cycles, from injection to response, that 99 % of the operations do not exceed.
    p99: u64, Cycles, Always, "latency p99", "";
    /// Latency in cycles, from injection to response, that 99.9 % of the operations do not exceed.
    p999: u64, Cycles, Always, "latency p99.9", "";
    /// Greatest latency in cycles, from injection to response.
    max: u64, Cycles, Always, "latency max", "";
}

figures! {
    /// Use of the reduction tables of switches: the object `operations.reduction_table` of `summary.json`.
    ReductionTableUse, "operations.reduction_table.", REDUCTION_TABLE of OperationFigures, |all| Some(&all.reduction_table);
    /// The most entries of a switch's reduction table in use at once.
    peak_entries: u64, Entries, IfAny, "reduction entries, peak", "entries of a reduction table in use at once, at most";
    /// Mean number of entries in use of a switch's reduction table, over all switches and the time of the run.
    mean_entries: f64, Entries, IfAny, "reduction entries, mean", "entries of a reduction table in use, mean over time";
    /// Requests that waited for an entry of a reduction table.
    waits: u64, Packets, IfAny, "waits for an entry", "requests that waited for an entry";
}

figures! {
    /// Use of links and queues: the end of the object `operations` of `summary.json`.
    FabricUse, "operations.", FABRIC of OperationFigures, |all| Some(&all.fabric);
    /// Flits in the longest output queue of a switch, at any time.
    peak_queue_flits: u64, Flits, Always, "longest queue", "flits in the longest output queue";
    /// The most responses that waited for injection at a GPU.
    peak_responses: u64, Responses, Always, "waiting responses", "responses that waited at a GPU, at most";
    /// Flits over links, summed over links.
    flit_hops: u64, Flits, Always, "flit-hops", "flits over links";
    /// Packets over links, summed over links.
    packet_hops: u64, Packets, Always, "packet-hops", "packets over links";
}

figures! {
    /// Latency of the operations of one kind in one section of the workload: columns of a row of `operations.by_section`.
    BreakdownFigures, "operations.by_section.", BREAKDOWN of BreakdownFigures, |all| Some(all);
    /// Operations that completed.
    count: u64, Operations, Never, "count", "";
    /// Mean latency in cycles.
    mean: f64, Cycles, Never, "mean", "";
    /// Median of the latency in cycles.
    p50: u64, Cycles, Never, "p50", "";
    /// Latency in cycles that 99 % of the operations do not exceed.
    p99: u64, Cycles, Never, "p99", "";
    /// Greatest latency in cycles.
    max: u64, Cycles, Never, "max", "";
    /// Mean over GPUs of the mean latency of each, in cycles: a GPU with few operations counts as much as one with many.
    latency_of_gpus_mean_cycles: f64, Cycles, Never, "mean of GPUs", "";
}

/// Figures of a scale-up run: the object `operations` of `summary.json`, without its breakdown.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct OperationFigures {
    /// Work and time.
    #[serde(flatten)]
    pub totals: OperationTotals,
    /// Latency; `None` if no operation completed.
    pub latency_cycles: Option<LatencyCycles>,
    /// Reduction tables.
    pub reduction_table: ReductionTableUse,
    /// Links and queues.
    #[serde(flatten)]
    pub fabric: FabricUse,
}

impl OperationFigures {
    /// All figures, in the order of the tables.
    pub fn figures() -> impl Iterator<Item = &'static FigureColumn<Self>> {
        TOTALS
            .iter()
            .chain(LATENCY)
            .chain(REDUCTION_TABLE)
            .chain(FABRIC)
    }
}

impl BreakdownFigures {
    /// Columns of the breakdown.
    pub const COLUMNS: &'static [FigureColumn<Self>] = BREAKDOWN;
}

/// Kind of an operation: the direction of its data, and whether it goes to a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OperationClass {
    /// Write to all members of a group.
    #[serde(rename = "multicast write")]
    MulticastWrite,
    /// Read from all members of a group, merged on the way.
    Reduction,
    /// Write to one GPU.
    Write,
    /// Read from one GPU.
    Read,
}

impl OperationClass {
    /// All kinds.
    pub const ALL: [Self; 4] = [
        Self::MulticastWrite,
        Self::Reduction,
        Self::Write,
        Self::Read,
    ];

    /// Name of the kind, for people and files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MulticastWrite => "multicast write",
            Self::Reduction => "reduction",
            Self::Write => "write",
            Self::Read => "read",
        }
    }

    /// True if the target is a group, false if it is a GPU.
    pub const fn goes_to_group(self) -> bool {
        match self {
            Self::MulticastWrite | Self::Reduction => true,
            Self::Write | Self::Read => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::collections::BTreeSet;

    /// Figures with a number of its own in each field.
    fn numbered() -> OperationFigures {
        let mut number = 0;
        let mut next = || {
            number += 1;
            number
        };
        let mut fill = |value: Value| match value {
            Value::Object(fields) => fields
                .into_iter()
                .map(|(name, _)| (name, json!(next())))
                .collect(),
            other => other,
        };
        let latency = fill(json!(LatencyCycles::default()));
        let table = fill(json!(ReductionTableUse::default()));
        let mut all = fill(json!(OperationFigures::default()));
        all["latency_cycles"] = latency;
        all["reduction_table"] = table;
        serde_json::from_value(all).unwrap()
    }

    #[test]
    fn every_figure_reads_the_field_of_its_path() {
        let all = numbered();
        let document = json!({ "operations": all });
        let mut paths = BTreeSet::new();
        for figure in OperationFigures::figures() {
            let pointer = format!("/{}", figure.path.replace('.', "/"));
            let found = document.pointer(&pointer).and_then(Value::as_f64);
            assert_eq!((figure.of)(&all), found, "{}", figure.path);
            assert!(found.is_some() && paths.insert(figure.path));
        }
        assert_eq!(paths.len(), 6 + 6 + 3 + 4);
        let none = OperationFigures::default();
        for figure in LATENCY {
            assert_eq!((figure.of)(&none), None);
        }
    }

    #[test]
    fn meanings_are_sentences() {
        let columns = BreakdownFigures::COLUMNS.iter();
        let columns = columns.map(|column| column.meaning);
        let figures = OperationFigures::figures().map(|figure| figure.meaning);
        for meaning in figures.chain(columns) {
            assert!(
                meaning.ends_with('.') && !meaning.contains("  "),
                "{meaning}"
            );
        }
    }

    #[test]
    fn columns_read_their_fields() {
        let row = BreakdownFigures {
            count: 1,
            mean: 2.5,
            p50: 3,
            p99: 4,
            max: 5,
            latency_of_gpus_mean_cycles: 6.5,
        };
        let document = json!(row);
        for column in BreakdownFigures::COLUMNS {
            let (_, field) = column.path.rsplit_once('.').unwrap();
            assert_eq!((column.of)(&row), document[field].as_f64(), "{field}");
        }
    }
}
