//! Plans for the traffic of training jobs, computed instead of simulated: which jobs can share links, and the optimum of TMDML.
//!
//! # Example
//!
//! Two training jobs share a link. Are they compatible, and by how much should the second job be shifted?
//!
//! ```
//! use clearway_planner::compatibility::{Job, Load, CandidatePlacement, PlanParameters, Problem, JobProfile, CompatibilityVerdict, plan};
//! use clearway_units::{Rate, Span};
//!
//! let job = |compute, communication| -> Result<Job, Box<dyn std::error::Error>> {
//!     Ok(Job {
//!         profile: JobProfile::on_off(Span::from_ms(compute), Span::from_ms(communication))?,
//!         placements: vec![CandidatePlacement { links: vec![Load::whole(0)], gpus: Vec::new() }],
//!     })
//! };
//! let link = vec![Rate::from_gbps(400)];
//! // Both iterations take 100 ms, of which they communicate 40 and 50 ms.
//! let problem = Problem::new(link.clone(), 0, vec![job(60, 40)?, job(50, 50)?])?;
//! let both = plan(&problem, &PlanParameters::default())?;
//! assert_eq!(both.verdict(), CompatibilityVerdict::Compatible);
//! for (number, job) in both.jobs.iter().enumerate() {
//!     println!("job {number}: shift {} of {}", job.shift, job.period);
//! }
//! println!("score of the link: {} -> {}", both.resources[0].score_before, both.resources[0].score);
//! assert!(both.resources[0].is_compatible() && both.resources[0].score_before < 1.0);
//!
//! // A third job is too much for the link: 130 ms of communication do not fit into 100 ms.
//! let problem = Problem::new(link, 0, vec![job(60, 40)?, job(50, 50)?, job(60, 40)?])?;
//! let all = plan(&problem, &PlanParameters::default())?;
//! assert_eq!(all.verdict(), CompatibilityVerdict::Incompatible);
//! println!("the three overlap by {} in each turn", all.circles[0].overlap);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Stability
//!
//! In versions 0.x a minor release (0.2.0) may change the interface, and `CHANGELOG.md` names each change; a patch release (0.1.1) only
//! adds items. [`compatibility::plan`], [`compatibility::place`], and their problems and plans are meant to stay unchanged. The models in
//! [`compatibility::fluid`] and [`tmdml`] follow papers and may change. A better search may find other rotations for the same problem.
//! `docs/interfaces/clearway-planner.txt` lists all public items.
//!
//! # Features
//!
//! There are no cargo features.
//!
//! # Modules
//!
//! * [`compatibility`]: rotations, priorities and placements that let training jobs share links without slowing each other down.
//! * [`tmdml`]: the rates that make the slowest flow of a parameter synchronisation finish as early as possible, and its completion time.
//!
//! **Architecture Invariant:** this crate does not know packets, transports or simulations. A plan is a pure function of its input; float
//! arithmetic uses only `+ - * /` and `sqrt`, so a plan is the same on any machine.

pub mod compatibility;
pub mod tmdml;
