//! `plan.json`: jobs that can share links, the rotation of each, and the result.
//!
//! Within schema 1 fields are only ever added, at any level. A reader must skip unknown fields. The order of the fields is fixed,
//! and the same plan gives the same bytes. A field without a value is `null`. Jobs and circles are referred to by their places in
//! the lists, from 0.
//!
//! | field | type, unit | meaning |
//! |---|---|---|
//! | `schema` | 1 | version of this table |
//! | `version`, `revision`, `command` | text | program, source revision and command that made the plan |
//! | `name`, `hash` | text | name, and hash of jobs, links and settings |
//! | `verdict` | text | `compatible`, `incompatible` (proven) or `unknown` (the search ended before it knew) |
//! | `missing` | number | sum of one minus the score, over all links and GPUs |
//! | `missing_before` | number | the same sum at the given placements |
//! | `settings` | keys and texts | `[plan]` with every default |
//! | `jobs` | list | every job |
//! | `….name` | text | its name |
//! | `….placement` | text or null | planned placement; null without a choice |
//! | `….circle` | place or null | circle of the job; null if the job shares no resource that could run short |
//! | `….alone_us` | us | iteration time of the job alone |
//! | `….period_us` | us | time between the starts of successive iterations in the plan |
//! | `….communication_share` | 0 to 1 | the part of `alone_us` in which the job communicates |
//! | `….repeats` | integer | iterations in a turn of its circle |
//! | `….shift_us` | us | time by which the iterations are moved; less than `period_us` |
//! | `….angle_degrees` | 0 to 360 | the same as an angle of its circle, counter-clockwise |
//! | `….priority` | integer | 0 is the most urgent; no two jobs that meet on a link have the same priority |
//! | `….communication`, `….compute` | lists | phases from the start of an iteration: `start_us`, `length_us`, `share` or `rate_bps` |
//! | `links` | list | every link and GPU that a job uses |
//! | `….name`, `….kind` | text | its name; `link` or `gpu` |
//! | `….jobs` | places | the jobs that use it |
//! | `….circle` | place or null | circle of these jobs; null if they can never demand more than the capacity |
//! | `….load` | number | mean demand over capacity |
//! | `….score` | number | one minus the weighted share of time in which the demand exceeds the capacity |
//! | `….score_before` | number | the same score if no job were moved in time |
//! | `….overlap_us` | us | time in a turn in which the demand exceeds the capacity |
//! | `….compatible` | boolean | `overlap_us` is zero |
//! | `circles` | list | jobs that are planned together |
//! | `….jobs` | places | these jobs |
//! | `….perimeter_us`, `….tick_us` | us | length of a turn, and of one of its sectors |
//! | `….sectors` | integer | number of sectors in a turn |
//! | `….overlap_us`, `….least_overlap_us` | us | collisions of all links in a turn, and a proven lower bound over all rotations |
//! | `….verdict` | text | as above |
//! | `….work` | integer | sectors that the search examined |
//! | `moves` | list | jobs that change their placement: `job` (place), `from`, `to` (texts), `missing_without` (`missing` if it stayed) |
//! | `reasons` | texts | reasons for the plan, for people |
//! | `profiled` | boolean | phases were measured in the simulator, job by job |
//! | `trials` | object or null | trials of the jobs in the simulator |
//! | `….iterations` | integer | iterations of each job in a run together with others |
//! | `….alone_us` | us | the median iteration of each job alone; here and below null if a job did not complete all iterations |
//! | `….trials` | list | `mechanism` (text), and for each job `predicted_us`, `simulated_us` (medians) and `mean_us` |
//! | `….left_out` | list | mechanisms that are not available: `mechanism`, `reason` |
//! | `….stretch` | number | share by which slots are longer than planned |
//! | `….interrupted` | boolean | the user stopped the simulations before the end |

mod trials;

pub use trials::{LeftOut, TrialRow, TrialsRecord};

use crate::quantity;
use serde::{Serialize, Serializer};

/// The name of the document in the folder of a plan.
pub const FILE_NAME: &str = "plan.json";

/// Verdict on jobs that share links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PlanVerdict {
    /// The jobs never demand more than the capacity.
    Compatible,
    /// The jobs demand more than the capacity with any rotations.
    Incompatible,
    /// The search found no rotations, and did not prove that there are none.
    Unknown,
}

impl PlanVerdict {
    /// The verdict as one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Compatible => "compatible",
            Self::Incompatible => "incompatible",
            Self::Unknown => "unknown",
        }
    }
}

/// A part of an iteration.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlannedPhase {
    /// Start of the phase, from the start of the iteration.
    pub start_us: f64,
    /// Length of the phase.
    pub length_us: f64,
    /// Share of a link or GPU that the phase takes, if it is known as a share.
    pub share: Option<f64>,
    /// Rate on a link that the phase takes, if it is known as a rate.
    pub rate_bps: Option<u64>,
}

/// A job in a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlannedJobRow {
    /// Name of the job.
    pub name: String,
    /// Planned placement of the job; `None` without a choice.
    pub placement: Option<String>,
    /// Circle of the job; `None` if the job shares no resource that could run short.
    pub circle: Option<usize>,
    /// Iteration time of the job alone.
    pub alone_us: f64,
    /// The time from one iteration to the next.
    pub period_us: f64,
    /// Part of `alone_us` in which the job communicates.
    pub communication_share: f64,
    /// Iterations in a turn.
    pub repeats: u32,
    /// Time by which the iterations are moved.
    pub shift_us: f64,
    /// The same as an angle.
    pub angle_degrees: f64,
    /// Priority of the job: 0 is the most urgent.
    pub priority: u32,
    /// Phases in which the job loads links.
    pub communication: Vec<PlannedPhase>,
    /// Phases in which the job loads GPUs.
    pub compute: Vec<PlannedPhase>,
}

/// A link or a GPU in a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlannedLinkRow {
    /// Name of the link or GPU.
    pub name: String,
    /// `link` or `gpu`.
    pub kind: &'static str,
    /// The jobs that use the link or GPU.
    pub jobs: Vec<u32>,
    /// Circle of these jobs; `None` if they can never demand more than the capacity.
    pub circle: Option<usize>,
    /// Mean demand.
    pub load: f64,
    /// 1 if jobs never collide.
    pub score: f64,
    /// The same score if no job were moved in time.
    pub score_before: f64,
    /// Time in a turn in which they collide.
    pub overlap_us: f64,
    /// True if the jobs never collide.
    pub compatible: bool,
    /// Share of the link or GPU that each phase of each of `jobs` takes, for the drawing.
    #[serde(skip)]
    pub shares: Vec<Vec<f64>>,
}

/// Jobs that are planned together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CircleRow {
    /// Jobs on the circle.
    pub jobs: Vec<u32>,
    /// Length of a turn.
    pub perimeter_us: f64,
    /// Length of a sector.
    pub tick_us: f64,
    /// Number of sectors in a turn.
    pub sectors: u32,
    /// Collisions of all links in a turn.
    pub overlap_us: f64,
    /// Proven lower bound of `overlap_us` over all rotations.
    pub least_overlap_us: f64,
    /// Verdict on the jobs of the circle.
    pub verdict: PlanVerdict,
    /// Sectors that the search looked at.
    pub work: u64,
}

/// A job that changes its place.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MoveRow {
    /// The job.
    pub job: usize,
    /// Placement at which the job is.
    pub from: String,
    /// Placement at which the job should be.
    pub to: String,
    /// Value of [`PlanRecord::missing`] if only this job stayed.
    pub missing_without: f64,
}

/// A plan as it is written and shown.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanRecord {
    /// The version of the program.
    pub version: String,
    /// Source revision of the program.
    pub revision: String,
    /// The command.
    pub command: String,
    /// Name of the plan.
    pub name: String,
    /// Hash of all inputs of the plan.
    pub hash: String,
    /// Verdict on all circles together.
    pub verdict: PlanVerdict,
    /// Sum of the shortfalls from a full score, over all links and GPUs.
    pub missing: f64,
    /// The same sum at the current placements of the jobs.
    pub missing_before: f64,
    /// `[plan]`: keys and values.
    #[serde(serialize_with = "as_map")]
    pub settings: Vec<(&'static str, String)>,
    /// Every job.
    pub jobs: Vec<PlannedJobRow>,
    /// Every link and GPU in use.
    pub links: Vec<PlannedLinkRow>,
    /// Jobs that are planned together.
    pub circles: Vec<CircleRow>,
    /// Jobs that move.
    pub moves: Vec<MoveRow>,
    /// Reasons for the plan, for people.
    pub reasons: Vec<String>,
    /// True if phases were measured in the simulator.
    pub profiled: bool,
    /// Trials of the jobs in the simulator.
    pub trials: Option<TrialsRecord>,
}

fn as_map<S: Serializer>(
    settings: &[(&'static str, String)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(settings.iter().map(|(key, value)| (key, value)))
}

impl PlanRecord {
    /// `plan.json`.
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Versioned<'a> {
            schema: u32,
            #[serde(flatten)]
            plan: &'a PlanRecord,
        }
        let document = Versioned {
            schema: 1,
            plan: self,
        };
        let json = serde_json::to_string_pretty(&document);
        json.expect("a plan is plain data") + "\n"
    }

    /// The verdict in a sentence.
    pub fn headline(&self) -> String {
        let contended = self
            .links
            .iter()
            .filter(|link| link.circle.is_some())
            .count();
        let bad = self.links.iter().filter(|link| !link.compatible).count();
        let places = |count: usize| match self.links.iter().any(|link| link.kind == "gpu") {
            true => format!("{} links and GPUs", quantity::count(count as u64)),
            false if count == 1 => "1 link".into(),
            false => format!("{} links", quantity::count(count as u64)),
        };
        match self.verdict {
            PlanVerdict::Compatible if contended == 0 => {
                "Compatible: no jobs could ever ask for more than there is.".into()
            }
            PlanVerdict::Compatible => format!(
                "Compatible: on {} with several jobs none collide.",
                places(contended)
            ),
            PlanVerdict::Incompatible => format!(
                "Incompatible: jobs collide on {} of {} whatever the rotations; these are the best that were found.",
                bad,
                places(contended)
            ),
            PlanVerdict::Unknown => format!(
                "Unknown: jobs collide on {} of {}, and the search ended before it could exclude that others do better.",
                bad,
                places(contended)
            ),
        }
    }

    /// True if a job has a choice of places.
    pub fn has_placements(&self) -> bool {
        self.jobs.iter().any(|job| job.placement.is_some())
    }

    /// Names of jobs in a line.
    pub fn names(&self, jobs: &[u32]) -> String {
        let names = jobs.iter().take(8);
        let names: Vec<&str> = names
            .map(|&job| self.jobs[job as usize].name.as_str())
            .collect();
        match jobs.len().saturating_sub(8) {
            0 => names.join(", "),
            more => format!("{} and {more} more", names.join(", ")),
        }
    }
}

/// A share in percent: `44.7 %`.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A score with three digits, which is 1 only if nothing is missing.
pub fn score(score: f64) -> String {
    match score {
        1.0 => "1".into(),
        near if near > 0.9995 => ">0.999".into(),
        other => format!("{other:.3}"),
    }
}

/// An angle: `160.9°`.
pub fn degrees(angle: f64) -> String {
    let text = format!("{angle:.1}");
    format!("{}°", text.trim_end_matches(".0"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::plan;

    #[test]
    fn the_document_has_its_schema_and_names_first() {
        let json = plan().to_json();
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["schema"], 1);
        assert_eq!(value["verdict"], "incompatible");
        assert_eq!(value["settings"]["grid"], "1ms");
        assert_eq!(value["jobs"][1]["shift_us"], 10_000.0);
        assert_eq!(value["links"][0]["jobs"][1], 1);
        assert!(value["links"][0].get("shares").is_none());
        assert!(json.starts_with("{\n  \"schema\": 1,\n  \"version\""));
    }

    #[test]
    fn only_a_full_score_is_one() {
        assert_eq!(score(1.0), "1");
        assert_eq!(score(0.99999), ">0.999");
        assert_eq!(score(0.5), "0.500");
        assert_eq!(degrees(30.0), "30°");
        assert_eq!(degrees(160.94), "160.9°");
    }
}
