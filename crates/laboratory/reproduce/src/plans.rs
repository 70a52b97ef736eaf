//! Runs that are plans: the planner answers, and no packet is sent (HotNets'22 §3 and §5).

use super::options::Options;
use clearway_lab::ScenarioError;
use clearway_plan::{
    CompatibilityVerdict, JobsFile, Phase, PhaseKind, Placed, PlannedJob, PlannedResource,
    builtin_plans,
};
use clearway_units::{Span, nearest, suggestion};
use std::collections::BTreeMap;

/// A plan, and its jobs.
#[derive(Debug)]
pub(crate) struct PlanData {
    file: JobsFile,
    placed: Placed,
}

/// Reads the jobs of a run: `plan` is the name of a built-in file or the text of a file; `seed` is the seed of the local search.
pub(super) fn jobs_file(figure: &str, plan: &str, seed: u64) -> Result<JobsFile, ScenarioError> {
    let is_text = plan.contains('\n');
    let mut file = match is_text {
        true => JobsFile::read(figure, plan)?,
        false => JobsFile::load(plan)?,
    };
    file.settings.seed = seed;
    Ok(file)
}

/// Settings of a planned run: the lines of its file of jobs, without comments.
pub(super) fn lines(plan: &str) -> Vec<String> {
    let builtin = builtin_plans().iter().find(|(name, _)| *name == plan);
    let text = builtin.map_or(plan, |(_, text)| text);
    let lines = text.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

impl PlanData {
    /// Plans the jobs of `file`.
    pub(super) fn compute(file: &JobsFile) -> Result<Self, ScenarioError> {
        let (file, placed) = (file.clone(), file.plan()?);
        Ok(Self { file, placed })
    }

    /// Hash of everything that the plan depends on.
    pub(super) fn digest(&self) -> String {
        self.file.hash()
    }

    /// All scalar measures of the plan, by name.
    pub(super) fn measures(&self) -> BTreeMap<String, f64> {
        let plan = &self.placed.plan;
        let mut measures = BTreeMap::new();
        for (job, planned) in self.file.jobs.iter().zip(&plan.jobs) {
            measures.insert(format!("shift-us({job})"), planned.shift.as_us());
            measures.insert(format!("angle-degrees({job})"), planned.angle);
            measures.insert(format!("period-us({job})"), planned.period.as_us());
        }
        for used in &plan.resources {
            let name = self.file.resource_name(used.resource);
            measures.insert(format!("collision-us({name})"), used.overlap.as_us());
            measures.insert(format!("score({name})"), used.score);
        }
        measures
    }

    fn job(&self, options: &Options) -> Result<&PlannedJob, String> {
        let job = self.placed.plan.jobs.get(options.job);
        job.ok_or_else(|| format!("there is no job {}", options.job))
    }

    /// The requested link, or all links.
    fn links(&self, options: &Options) -> Result<Vec<&PlannedResource>, String> {
        let name = |used: &PlannedResource| self.file.resource_name(used.resource);
        let all = self.placed.plan.resources.iter();
        let wanted =
            |used: &&PlannedResource| options.link.is_empty() || name(used) == options.link;
        let links: Vec<_> = all.clone().filter(wanted).collect();
        if links.is_empty() {
            let near = nearest(&options.link, all.map(name));
            return Err(suggestion(
                near,
                &format!("no job uses a link `{}`", options.link),
            ));
        }
        Ok(links)
    }

    /// The first arc of a job's communication.
    fn arc(&self, options: &Options) -> Result<&Phase, String> {
        let job = self.file.problem.jobs().get(options.job);
        let job = job.ok_or_else(|| format!("there is no job {}", options.job))?;
        let arc = job.profile.phases(PhaseKind::Communication).first();
        arc.ok_or_else(|| format!("job {} does not communicate", options.job))
    }
}

/// The perimeter of a job's unified circle, us; for a job without contention, its iteration.
pub(super) fn perimeter_us(plan: &PlanData, options: &Options) -> Result<f64, String> {
    let job = plan.job(options)?;
    let circle = job
        .circle
        .map(|circle| plan.placed.plan.circles[circle].perimeter());
    Ok(circle.unwrap_or(job.period).as_us())
}

/// Time between the starts of successive iterations of a job, us.
pub(super) fn period_us(plan: &PlanData, options: &Options) -> Result<f64, String> {
    Ok(plan.job(options)?.period.as_us())
}

/// Number of times that a job repeats in a turn of its circle.
pub(super) fn repeats(plan: &PlanData, options: &Options) -> Result<f64, String> {
    Ok(f64::from(plan.job(options)?.repeats))
}

/// Start of the first arc of a job's communication, from the beginning of its iteration, us; without its shift.
pub(super) fn arc_start_us(plan: &PlanData, options: &Options) -> Result<f64, String> {
    Ok(plan.arc(options)?.start.as_us())
}

/// Length of the first arc of a job's communication, us.
pub(super) fn arc_us(plan: &PlanData, options: &Options) -> Result<f64, String> {
    Ok(plan.arc(options)?.length.as_us())
}

/// Shift of a job, us.
pub(super) fn shift_us(plan: &PlanData, options: &Options) -> Result<f64, String> {
    Ok(plan.job(options)?.shift.as_us())
}

/// Shift of a job as an angle of the unified circle, degrees.
pub(super) fn angle_degrees(plan: &PlanData, options: &Options) -> Result<f64, String> {
    Ok(plan.job(options)?.angle)
}

/// Load of a link: mean demand of jobs over time, divided by its capacity; the highest of all links if none is named.
pub(super) fn load(plan: &PlanData, options: &Options) -> Result<f64, String> {
    let loads = plan.links(options)?.into_iter().map(|used| used.load);
    Ok(loads.fold(0.0, f64::max))
}

/// Time of a turn in which demand exceeds a link's capacity, us; over all links if none is named.
pub(super) fn collision_us(plan: &PlanData, options: &Options) -> Result<f64, String> {
    let links = plan.links(options)?.into_iter();
    Ok(links.map(|used| used.overlap.as_us()).sum())
}

/// Lower bound of the time of collisions in a turn of a job's circle, over all its links and GPUs, us.
pub(super) fn least_collision_us(plan: &PlanData, options: &Options) -> Result<f64, String> {
    let circle = plan.job(options)?.circle;
    let least = circle.map(|circle| plan.placed.plan.circles[circle].least_overlap);
    Ok(least.unwrap_or(Span::ZERO).as_us())
}

/// Score without shifts: 1 less the share of time in which jobs collide on a link; the worst link if none is named.
pub(super) fn score_before(plan: &PlanData, options: &Options) -> Result<f64, String> {
    let links = plan.links(options)?.into_iter();
    Ok(links.map(|used| used.score_before).fold(1.0, f64::min))
}

/// Score of the plan: 1 less the share of time in which jobs collide on a link; the worst link if none is named.
pub(super) fn score(plan: &PlanData, options: &Options) -> Result<f64, String> {
    let links = plan.links(options)?.into_iter();
    Ok(links.map(|used| used.score).fold(1.0, f64::min))
}

/// Compatibility of the jobs on a link, or on all links: 1 if they are compatible, 0 if they are proven incompatible.
pub(super) fn is_compatible(plan: &PlanData, options: &Options) -> Result<f64, String> {
    let circles = &plan.placed.plan.circles;
    let mut all = 1.0_f64;
    for used in plan.links(options)? {
        let verdict = used.circle.map(|circle| circles[circle].verdict);
        all = match verdict {
            None | Some(CompatibilityVerdict::Compatible) => all,
            Some(CompatibilityVerdict::Incompatible) => 0.0,
            Some(CompatibilityVerdict::Unknown) => return Err("neither found nor ruled out".into()),
        };
    }
    Ok(all)
}
