//! Measures of a run: numbers that comparisons, sweeps and assertions refer to by name. All follow from the run's summary.

use crate::by_section::FlowFigures;
use crate::by_size::{CLASS_ENDS, Tail, class_bounds, class_name, class_of};
use crate::jobs::JobSummary;
use crate::statistics::Distribution;
use crate::summary::Summary;
pub use crate::unit::Unit;
use clearway_results::{FigureColumn, OperationFigures, PacketCounts, Total};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// A measure of a run.
#[derive(Debug, Clone)]
pub(crate) struct Measure {
    /// Path of the measure in `summary.json`, or another name.
    pub(crate) name: Cow<'static, str>,
    pub(crate) title: Cow<'static, str>,
    pub(crate) unit: Unit,
    pub(crate) shown: ShowIf,
    pub(crate) of: Source,
}

/// Source of the values of a measure.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    Run(fn(&Summary) -> Option<f64>),
    /// Figure of a section of the workload.
    Section(SectionFlows, fn(&FlowFigures) -> Option<f64>),
    /// Figure of the iterations of all jobs of a section or of a tenant.
    Iterations(JobsOf, fn(&Distribution) -> f64),
    Total(&'static Total),
    Figure(&'static FigureColumn<OperationFigures>),
}

/// Jobs that a figure covers.
#[derive(Debug, Clone)]
pub(crate) enum JobsOf {
    /// Jobs of the sections with this name.
    Section(String),
    /// Jobs of the sections of this tenant.
    Tenant(String),
}

impl JobsOf {
    fn has(&self, job: &JobSummary) -> bool {
        match self {
            Self::Section(name) => job.section.as_ref() == Some(name),
            Self::Tenant(name) => job.tenant.as_ref() == Some(name),
        }
    }

    /// Prefix of the names of the measures, and the name of the section or the tenant.
    fn names(&self) -> (&'static str, &str) {
        match self {
            Self::Section(name) => (SECTIONS, name),
            Self::Tenant(name) => (TENANTS, name),
        }
    }
}

/// Flows of a section of the workload.
#[derive(Debug, Clone)]
pub(crate) struct SectionFlows {
    /// Name of the section.
    section: String,
    /// Place of the size class; `None` for all flows of the section.
    class: Option<usize>,
}

impl SectionFlows {
    /// Figures of these flows in a run, if the run has any.
    fn figures<'a>(&self, run: &'a Summary) -> Option<&'a FlowFigures> {
        let mut sections = run.sections.iter();
        let section = sections.find(|section| section.name == self.section)?;
        let Some(class) = self.class else {
            return Some(&section.figures);
        };
        let (_, end) = class_bounds(class);
        let mut classes = section.by_class.iter();
        Some(&classes.find(|class| class.up_to_bytes == end)?.figures)
    }
}

impl Measure {
    /// Value of the measure in a run, if the run has one.
    pub(crate) fn value(&self, run: &Summary) -> Option<f64> {
        match &self.of {
            Source::Run(of) => of(run),
            Source::Section(flows, of) => of(flows.figures(run)?),
            Source::Iterations(whose, of) => Some(of(&iterations_of(run, whose)?)),
            Source::Total(total) => Some((total.of)(&run.packets) as f64),
            Source::Figure(figure) => (figure.of)(&run.operations.as_ref()?.figures),
        }
    }

    /// True for a figure of operations, which only scale-up runs have.
    #[cfg(test)]
    pub(crate) fn is_of_operations(&self) -> bool {
        matches!(self.of, Source::Figure(_))
    }
}

/// Condition under which the table shows a measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShowIf {
    Always,
    /// Unless all runs are scale-up runs, which have no flows.
    IfFlows,
    /// If some variant has a value above zero: for events that most runs do not have.
    IfAny,
    /// If some variant has a value of the named measure.
    IfKnown(&'static str),
    /// If some variant has a value.
    IfHas,
    /// If every variant has a value.
    IfAllHave,
    /// As `IfFlows`, if some variant has a value, or not every variant has a value of the named measure.
    UnlessAllHave(&'static str),
    /// If some variant has flows of the class, and the flows of all variants do not all belong to one class.
    IfClassesDiffer,
}

const fn shown_if(
    shown: ShowIf,
    name: &'static str,
    title: &'static str,
    unit: Unit,
    of: fn(&Summary) -> Option<f64>,
) -> Measure {
    Measure {
        name: Cow::Borrowed(name),
        title: Cow::Borrowed(title),
        unit,
        shown,
        of: Source::Run(of),
    }
}

const fn measure(
    name: &'static str,
    title: &'static str,
    unit: Unit,
    of: fn(&Summary) -> Option<f64>,
) -> Measure {
    shown_if(ShowIf::Always, name, title, unit, of)
}

const fn if_flows(
    name: &'static str,
    title: &'static str,
    unit: Unit,
    of: fn(&Summary) -> Option<f64>,
) -> Measure {
    shown_if(ShowIf::IfFlows, name, title, unit, of)
}

/// Measure of completion times, which flows of jobs do not have.
const fn completion(
    name: &'static str,
    title: &'static str,
    unit: Unit,
    of: fn(&Summary) -> Option<f64>,
) -> Measure {
    shown_if(ShowIf::UnlessAllHave(MEAN_ITERATION), name, title, unit, of)
}

const fn if_known(
    name: &'static str,
    of_what: &'static str,
    title: &'static str,
    unit: Unit,
    of: fn(&Summary) -> Option<f64>,
) -> Measure {
    shown_if(ShowIf::IfKnown(of_what), name, title, unit, of)
}

/// A percentile of the slowdown of a size class.
const fn of_class(
    name: &'static str,
    title: &'static str,
    of: fn(&Summary) -> Option<f64>,
) -> Measure {
    shown_if(ShowIf::IfClassesDiffer, name, title, Unit::Ratio, of)
}

/// The class that ends at `PLACE` of [`CLASS_ENDS`], or the last class.
fn class<const PLACE: usize>(run: &Summary) -> Option<Tail> {
    let end = CLASS_ENDS.get(PLACE).copied();
    let mut classes = run.slowdown_by_class.iter();
    Some(classes.find(|class| class.up_to_bytes == end)?.slowdown)
}

/// Median and tail of each class: the figures that differ between transports.
macro_rules! class_measures {
    ($($place:literal $name:literal $title:literal),+) => {
        [$(
            of_class(concat!("slowdown_", $name, ".p50"), concat!("p50 ", $title), |run| {
                Some(class::<$place>(run)?.p50)
            }),
            of_class(concat!("slowdown_", $name, ".p999"), concat!("p99.9 ", $title), |run| {
                Some(class::<$place>(run)?.p999)
            })
        ),+]
    };
}

/// Number of measures of each class.
pub(crate) const PER_CLASS: usize = 2;

pub(crate) const CLASS_MEASURES: [Measure; PER_CLASS * (CLASS_ENDS.len() + 1)] = class_measures![
    0 "up_to_1KB" "up to 1 KB",
    1 "up_to_10KB" "up to 10 KB",
    2 "up_to_100KB" "up to 100 KB",
    3 "up_to_1MB" "up to 1 MB",
    4 "up_to_10MB" "up to 10 MB",
    5 "up_to_100MB" "up to 100 MB",
    6 "over_100MB" "over 100 MB"
];

/// The measures of these runs, in the order of the table: operations, iterations of jobs, completion times, slowdown by size, sections
/// of the workload, then the rest.
pub(crate) fn measures_of<'a>(runs: impl Iterator<Item = &'a Summary> + Clone) -> Vec<Measure> {
    let has_operations = runs.clone().any(|run| run.operations.is_some());
    let mut parts = section_measures(runs.clone());
    parts.extend(tenant_measures(runs));
    in_order(has_operations, parts).collect()
}

/// Measures that do not depend on the runs: all except measures of sections and tenants.
pub(crate) fn fixed_measures() -> impl Iterator<Item = Measure> {
    in_order(true, Vec::new())
}

fn in_order(has_operations: bool, parts: Vec<Measure>) -> impl Iterator<Item = Measure> {
    figures()
        .filter(move |_| has_operations)
        .chain(JOB_MEASURES)
        .chain(COMPLETION_MEASURES)
        .chain(CLASS_MEASURES)
        .chain(parts)
        .chain(PARTY_MEASURES)
        .chain(SHARING_MEASURES)
        .chain(OTHER_MEASURES)
        .chain(totals())
}

/// Measures of the sections that runs have, and of their classes of sizes if a section has several.
fn section_measures<'a>(runs: impl Iterator<Item = &'a Summary>) -> Vec<Measure> {
    let mut sections: Vec<(&str, BTreeSet<usize>)> = Vec::new();
    for section in runs.flat_map(|run| &run.sections) {
        let known = sections.iter().position(|(name, _)| *name == section.name);
        let place = known.unwrap_or_else(|| {
            sections.push((&section.name, BTreeSet::new()));
            sections.len() - 1
        });
        // The lower bound of a class, plus one byte, identifies the class.
        let classes = section.by_class.iter();
        sections[place]
            .1
            .extend(classes.map(|class| class_of(class.above_bytes + 1)));
    }
    let of_section = sections.iter().flat_map(|(name, classes)| {
        let classes = classes.iter().filter(|_| classes.len() > 1);
        of_section(name, classes.copied())
    });
    of_section.collect()
}

/// Measures of the tenants that jobs of runs have.
fn tenant_measures<'a>(runs: impl Iterator<Item = &'a Summary>) -> Vec<Measure> {
    let mut tenants: Vec<&str> = Vec::new();
    for tenant in runs
        .flat_map(|run| &run.jobs)
        .filter_map(|job| job.tenant.as_deref())
    {
        if !tenants.contains(&tenant) {
            tenants.push(tenant);
        }
    }
    let measures = tenants.into_iter().flat_map(measures_of_tenant);
    measures.collect()
}

/// Measures that runs may have for a tenant.
pub(crate) fn measures_of_tenant(name: &str) -> impl Iterator<Item = Measure> + use<> {
    iterations_measures(JobsOf::Tenant(name.to_owned()))
}

/// Measures of a section and of these size classes.
fn of_section(name: &str, classes: impl Iterator<Item = usize>) -> impl Iterator<Item = Measure> {
    let whole = of_flows(name, None, &SECTION_FIGURES);
    let classes = classes.flat_map(|class| of_flows(name, Some(class), &SECTION_CLASS_FIGURES));
    whole
        .into_iter()
        .chain(iterations_measures(JobsOf::Section(name.to_owned())))
        .chain(classes)
}

/// Times of the iterations of all jobs of a section or of a tenant in a run, in microseconds. A job with more than
/// [`MOST_ITERATIONS`](crate::jobs::MOST_ITERATIONS) iterations contributes the iterations listed in its summary.
fn iterations_of(run: &Summary, whose: &JobsOf) -> Option<Distribution> {
    let own = run.jobs.iter().filter(|job| whose.has(job));
    let times: Vec<f64> = own.flat_map(|job| job.iterations_us.clone()).collect();
    Distribution::of_ratios(times)
}

/// Measures of the iterations of jobs.
fn iterations_measures(whose: JobsOf) -> impl Iterator<Item = Measure> + use<> {
    type IterationFigure = (&'static str, &'static str, fn(&Distribution) -> f64);
    let figures: [IterationFigure; 3] = [
        ("p50", "iteration p50", |us| us.p50),
        ("p99", "iteration p99", |us| us.p99),
        ("max", "iteration max", |us| us.max),
    ];
    figures.into_iter().map(move |(name, title, of)| {
        let (part, own) = whose.names();
        Measure {
            name: format!("{part}{own}.iteration_us.{name}").into(),
            title: match whose {
                JobsOf::Section(_) => format!("{own}: {title}").into(),
                JobsOf::Tenant(_) => format!("tenant {own}: {title}").into(),
            },
            unit: Unit::Us,
            shown: ShowIf::IfHas,
            of: Source::Iterations(whose.clone(), of),
        }
    })
}

/// Measures that runs may have for a section, for all sizes of its flows.
pub(crate) fn measures_of_section(name: &str) -> Vec<Measure> {
    of_section(name, 0..=CLASS_ENDS.len()).collect()
}

/// Prefix of the names of measures of sections.
pub(crate) const SECTIONS: &str = "sections.";

/// Prefix of the names of measures of tenants.
pub(crate) const TENANTS: &str = "tenants.";

/// Name in `summary.json`, title, unit and function of a figure.
type SectionFigure = (
    &'static str,
    &'static str,
    Unit,
    fn(&FlowFigures) -> Option<f64>,
);

/// Figures of all flows of a section.
const SECTION_FIGURES: [SectionFigure; 8] = [
    ("completed", "completed", Unit::Flows, |figures| {
        Some(figures.completed as f64)
    }),
    ("fct_us.p50", "FCT p50", Unit::Us, |figures| {
        Some(figures.fct_us?.p50)
    }),
    ("fct_us.p99", "FCT p99", Unit::Us, |figures| {
        Some(figures.fct_us?.p99)
    }),
    ("fct_us.p999", "FCT p99.9", Unit::Us, |figures| {
        Some(figures.fct_us?.p999)
    }),
    ("slowdown.p50", "slowdown p50", Unit::Ratio, |figures| {
        Some(figures.slowdown?.p50)
    }),
    ("slowdown.p99", "slowdown p99", Unit::Ratio, |figures| {
        Some(figures.slowdown?.p99)
    }),
    ("slowdown.p999", "slowdown p99.9", Unit::Ratio, |figures| {
        Some(figures.slowdown?.p999)
    }),
    ("goodput_bps", "goodput", Unit::Bps, |figures| {
        figures.goodput_bps
    }),
];

/// Figures of one size class of the flows of a section.
const SECTION_CLASS_FIGURES: [SectionFigure; 2] = [
    ("slowdown.p50", "p50", Unit::Ratio, |figures| {
        Some(figures.slowdown?.p50)
    }),
    ("slowdown.p999", "p99.9", Unit::Ratio, |figures| {
        Some(figures.slowdown?.p999)
    }),
];

fn of_flows(section: &str, class: Option<usize>, figures: &[SectionFigure]) -> Vec<Measure> {
    let class_name = class.map(|class| {
        let (above, up_to) = class_bounds(class);
        class_name(above, up_to)
    });
    let measure = |&(name, title, unit, of): &SectionFigure| {
        let (name, title) = match &class_name {
            None => (
                format!("{SECTIONS}{section}.{name}"),
                format!("{section}: {title}"),
            ),
            Some(class) => (
                format!("{SECTIONS}{section}.{}.{name}", path_of_class(class)),
                format!("{section}: {title} {class}"),
            ),
        };
        let section = section.to_owned();
        Measure {
            name: name.into(),
            title: title.into(),
            unit,
            shown: ShowIf::IfHas,
            of: Source::Section(SectionFlows { section, class }, of),
        }
    };
    figures.iter().map(measure).collect()
}

/// Name of a class as part of a measure's name: `up_to_10KB`.
fn path_of_class(name: &str) -> String {
    let (words, unit) = name.rsplit_once(' ').unwrap_or((name, ""));
    words.replace(' ', "_") + unit
}

const fn if_all_have(
    name: &'static str,
    title: &'static str,
    unit: Unit,
    of: fn(&Summary) -> Option<f64>,
) -> Measure {
    shown_if(ShowIf::IfAllHave, name, title, unit, of)
}

/// Name of the mean over jobs of each job's mean iteration time.
pub const MEAN_ITERATION: &str = "jobs_us.mean";

/// Measures of the iterations of jobs.
pub(crate) const JOB_MEASURES: [Measure; 4] = {
    use Unit::{GigabytesPerSecond, Us};
    [
        if_all_have(MEAN_ITERATION, "iteration mean", Us, |run| {
            Some(run.jobs_us?.mean)
        }),
        if_all_have("jobs_us.max", "slowest job", Us, |run| {
            Some(run.jobs_us?.max)
        }),
        if_all_have("iteration_us.max", "iteration max", Us, |run| {
            let jobs = run.jobs.iter();
            let longest = jobs.filter_map(|job| Some(job.iteration_us?.max));
            longest.max_by(f64::total_cmp)
        }),
        if_all_have(
            "busbw_gb_per_s",
            "bus bandwidth",
            GigabytesPerSecond,
            |run| {
                let jobs = run.jobs.iter();
                let rates = jobs.filter_map(|job| job.busbw_gb_per_s).collect();
                Some(Distribution::of_ratios(rates)?.mean)
            },
        ),
    ]
};

/// Measures of both sides of an attack.
pub(crate) const PARTY_MEASURES: [Measure; 5] = {
    use Unit::{Bps, Index, Ratio};
    const ATTACKERS: &str = "parties.attackers.goodput_bps.mean";
    const VICTIMS: &str = "parties.victims.goodput_bps.mean";
    const P99: &str = "parties.victims.slowdown.p99";
    const P999: &str = "parties.victims.slowdown.p999";
    const FAIRNESS: &str = "parties.user_fairness";
    [
        if_known(ATTACKERS, ATTACKERS, "goodput of an attacker", Bps, |run| {
            let parties = run.parties.as_ref()?;
            Some(parties.attackers.goodput_bps?.mean)
        }),
        if_known(VICTIMS, VICTIMS, "goodput of a victim", Bps, |run| {
            let parties = run.parties.as_ref()?;
            Some(parties.victims.goodput_bps?.mean)
        }),
        if_known(P99, P99, "p99 of victims", Ratio, |run| {
            let parties = run.parties.as_ref()?;
            Some(parties.victims.slowdown?.p99)
        }),
        if_known(P999, P999, "p99.9 of victims", Ratio, |run| {
            let parties = run.parties.as_ref()?;
            Some(parties.victims.slowdown?.p999)
        }),
        if_known(FAIRNESS, FAIRNESS, "fairness of users", Index, |run| {
            run.parties.as_ref()?.user_fairness
        }),
    ]
};

/// Measures of how flows share the network.
pub(crate) const SHARING_MEASURES: [Measure; 4] = {
    use Unit::{Index, Us};
    const STARTS_DIFFER: &str = "start_finish.spearman";
    const GOODPUT: &str = "fairness.goodput.settled_us";
    const RATE: &str = "fairness.allowed_rate.settled_us";
    [
        if_known(STARTS_DIFFER, STARTS_DIFFER, "finish order", Index, |run| {
            run.start_finish?.spearman
        }),
        // If flows start together, this measure adds nothing to the completion times.
        if_known(
            "start_finish.finish_spread_us",
            STARTS_DIFFER,
            "finish spread",
            Us,
            |run| Some(run.start_finish?.finish_spread_us),
        ),
        if_known(GOODPUT, GOODPUT, "goodput fair in", Us, |run| {
            run.fairness?.goodput?.settled_us
        }),
        if_known(RATE, RATE, "rates fair in", Us, |run| {
            run.fairness?.allowed_rate?.settled_us
        }),
    ]
};

pub(crate) const COMPLETION_MEASURES: [Measure; 8] = {
    use Unit::{Ratio, Us};
    [
        completion("fct_us.max", "FCT max", Us, |run| Some(run.fct_us?.max)),
        completion("fct_us.p99", "FCT p99", Us, |run| Some(run.fct_us?.p99)),
        completion("fct_us.p50", "FCT p50", Us, |run| Some(run.fct_us?.p50)),
        completion("fct_us.mean", "FCT mean", Us, |run| Some(run.fct_us?.mean)),
        completion("slowdown.max", "slowdown max", Ratio, |run| {
            Some(run.slowdown?.max)
        }),
        completion("slowdown.p99", "slowdown p99", Ratio, |run| {
            Some(run.slowdown?.p99)
        }),
        completion("slowdown.p50", "slowdown p50", Ratio, |run| {
            Some(run.slowdown?.p50)
        }),
        completion("slowdown.mean", "slowdown mean", Ratio, |run| {
            Some(run.slowdown?.mean)
        }),
    ]
};

/// Name of the estimated error of runs with `fast-forward`.
pub(crate) const ESTIMATED_ERROR: &str = "fast_forward.estimated";

pub(crate) const OTHER_MEASURES: [Measure; 4] = {
    use Unit::{Bps, Flows, Fraction, Us};
    [
        measure("simulated_us", "simulated time", Us, |run| {
            Some(run.simulated_us)
        }),
        shown_if(
            ShowIf::IfHas,
            ESTIMATED_ERROR,
            "estimated error",
            Fraction,
            |run| Some(run.fast_forward.as_ref()?.estimated),
        ),
        if_flows("goodput_bps", "goodput", Bps, |run| run.goodput_bps),
        if_flows("flows.completed", "completed", Flows, |run| {
            Some(run.flows.completed as f64)
        }),
    ]
};

/// Measures that the table of operation figures declares.
fn figures() -> impl Iterator<Item = Measure> {
    OperationFigures::figures().filter_map(|figure| {
        let shown = match figure.shown {
            clearway_results::ShowCondition::Always => ShowIf::IfKnown(figure.path),
            clearway_results::ShowCondition::IfAny => ShowIf::IfAny,
            clearway_results::ShowCondition::Never => return None,
        };
        Some(Measure {
            name: figure.path.into(),
            title: figure.label.into(),
            unit: Unit::Figure(figure.unit),
            shown,
            of: Source::Figure(figure),
        })
    })
}

/// Measures that the table of totals declares.
pub(crate) fn totals() -> impl Iterator<Item = Measure> {
    PacketCounts::TOTALS.iter().filter_map(|total| {
        let shown = match total.shown {
            clearway_results::ShowCondition::Always => ShowIf::IfFlows,
            clearway_results::ShowCondition::IfAny => ShowIf::IfAny,
            clearway_results::ShowCondition::Never => return None,
        };
        Some(Measure {
            name: total.path.into(),
            title: total.label.into(),
            unit: Unit::Total(total.unit),
            shown,
            of: Source::Total(total),
        })
    })
}
