//! The longest or the requested iteration of a job, with its critical path.

use super::request::WhyRequest;
use crate::failure::Failure;
use clearway_lab::units::{HostId, Span};
use clearway_lab::why::{CriticalPath, MessageDelays, PathStep, StepKind, TooManyPackets};
use clearway_lab::{Assembly, Finished, JobResult};
use clearway_report::why::{PathStepRow, RankTimeline, SlowIteration, StepName};

/// A chosen iteration.
struct Choice {
    job: usize,
    iteration: u32,
    /// Description of the choice, such as `the longest of the run`.
    words: String,
}

/// Finished iterations, with their durations.
fn over(jobs: &[JobResult]) -> impl Iterator<Item = (usize, u32, Span)> {
    jobs.iter().enumerate().flat_map(|(job, result)| {
        let times = (0..).zip(&result.times);
        times.filter_map(move |(number, times)| Some((job, number, times.span()?)))
    })
}

/// The iteration to explain: the longest that matches the request. `None` without a match, if the request names no iteration.
fn choose(jobs: &[JobResult], question: &WhyRequest<'_>) -> Result<Option<Choice>, Failure> {
    let (name, number) = (question.job, question.iteration);
    let is_meant = |&(job, iteration, _): &(usize, u32, Span)| {
        name.is_none_or(|name| jobs[job].label == name)
            && number.is_none_or(|number| iteration == number)
    };
    let mut longest: Option<(usize, u32, Span)> = None;
    for candidate in over(jobs).filter(is_meant) {
        if longest.is_none_or(|longest| candidate.2 > longest.2) {
            longest = Some(candidate);
        }
    }
    let Some((job, iteration, _)) = longest else {
        return match (name, number) {
            (None, None) => Ok(None),
            _ => Err(missing(jobs, question)),
        };
    };
    let words = match (name, number) {
        (Some(_), Some(_)) => "as asked",
        (Some(_), None) => "the longest of this job",
        (None, Some(_)) => "the longest of this number",
        (None, None) => "the longest of the run",
    };
    Ok(Some(Choice {
        job,
        iteration,
        words: words.into(),
    }))
}

/// Error for a request that no iteration matches.
fn missing(jobs: &[JobResult], question: &WhyRequest<'_>) -> Failure {
    const LISTED: usize = 8;
    let job = question.job.map(|name| format!("--job {name:?}"));
    let iteration = question
        .iteration
        .map(|number| format!("--iteration {number}"));
    let asked: Vec<String> = job.into_iter().chain(iteration).collect();
    let mut names: Vec<String> = Vec::new();
    for result in jobs {
        let over = result
            .times
            .iter()
            .filter(|times| times.over.is_some())
            .count();
        let name = match over {
            0 => format!("{:?} (no iteration is over)", result.label),
            1 => format!("{:?} (iteration 0)", result.label),
            several => format!("{:?} (iterations 0 to {})", result.label, several - 1),
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let more = if names.len() > LISTED { ", …" } else { "" };
    names.truncate(LISTED);
    let fix = match names.is_empty() {
        true => "this run has no jobs: ask about a flow with `--flow`".to_owned(),
        false => format!("the jobs are {}{more}", names.join(", ")),
    };
    Failure::new(format!(
        "{}: this iteration does not exist or is not over\n  fix: {fix}",
        asked.join(" ")
    ))
}

/// The critical path of the requested iteration in a recorded run; `None` if there are no jobs, and the request names no iteration.
pub(super) fn path(
    assembly: &Assembly,
    finished: &Finished,
    question: &WhyRequest<'_>,
) -> Result<Option<(CriticalPath, String)>, Failure> {
    let Some(choice) = choose(&finished.jobs, question)? else {
        return Ok(None);
    };
    let path = assembly.critical_path(finished, choice.job, choice.iteration);
    Ok(path.map(|path| (path, choice.words)))
}

/// The iteration as rows. For messages with too many packets, at least the durations are known.
pub(super) fn slow_iteration(
    assembly: &Assembly,
    finished: &Finished,
    (path, words): &(CriticalPath, String),
    delays: Result<Vec<MessageDelays>, TooManyPackets>,
) -> SlowIteration {
    let job = &finished.jobs[path.job];
    let mut steps: Vec<PathStepRow> = path.steps.iter().map(|step| row(assembly, step)).collect();
    for message in delays.iter().flatten() {
        let parts = message.parts.iter().map(|delay| {
            let link = delay.link.map(|link| assembly.topology.link_name(link));
            (delay.part, link, delay.span.as_ps())
        });
        steps[message.step].parts = parts.collect();
    }
    let mut iteration = SlowIteration::new(&job.label, path.iteration, words, steps);
    if delays.is_err() {
        let cause = " The messages of the path have too many packets to follow, so the parts of their time are unknown.";
        iteration.sentence.push_str(cause);
    }
    let all = assembly.rank_steps(finished, path.job, path.iteration);
    let all = all.iter().map(|step| row(assembly, step));
    let costly = iteration.hosts.iter().map(|row| row.host);
    let hosts = job.hosts.iter().map(|host| host.0);
    iteration.ranks = RankTimeline::new(costly, hosts, all);
    iteration
}

fn row(assembly: &Assembly, step: &PathStep) -> PathStepRow {
    let HostId(host) = step.host;
    let (from, span) = (step.from.as_ps(), step.span().as_ps());
    let mut row = PathStepRow::new(StepName::Computation, host, from, span);
    match step.kind {
        StepKind::Message {
            flow,
            bytes,
            acknowledged,
            ideal,
        } => {
            row.what = StepName::Message;
            row.to = Some(assembly.workload.flow(flow).dst.0);
            row.flow = Some(flow.0);
            row.bytes = Some(bytes.as_u64());
            row.acknowledged = Some(acknowledged);
            row.ideal_ps = ideal.as_ps();
        }
        StepKind::Computation => {}
        StepKind::Slot => row.what = StepName::Slot,
        StepKind::Turn { flow } => {
            row.what = StepName::Turn;
            row.flow = Some(flow.0);
        }
    }
    row
}
