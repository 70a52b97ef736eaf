//! Command-line arguments.

use crate::collective::CollectiveArguments;
use crate::import::ImportArguments;
use crate::perf::PerfArguments;
use crate::print_arguments::PrintArguments;
use crate::scenario_arguments::ScenarioArguments;
use crate::softswitch::SoftswitchArguments;
use crate::testbed::TestbedArguments;
use crate::transfer::{RecvArguments, SendArguments};
use clap::{Args, Parser, Subcommand, ValueHint};
use clearway_lab::{AttackKind, Scope, Threads};
use clearway_reproduce::{NullSubject, Scale};
use clearway_sweep::Shard;
use clearway_units::Span;
use std::path::PathBuf;
use std::time::Duration;

/// Packet-level simulation of AI/ML cluster networks.
#[derive(Debug, Parser)]
#[command(
    name = "clearway",
    version,
    about,
    after_help = "Start with `clearway run quickstart`."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a scenario and write its results
    Run(RunArguments),
    /// Run variants, or read their results, and show them side by side
    Compare(CompareArguments),
    /// List all names: transports, reliability, controllers, spray, feedback, topologies, switches, workloads, sizes, scenarios,
    /// scale-up, injection, plans
    List {
        /// One group; all groups if left out
        group: Option<String>,
    },
    /// Print a scenario or a plan, to begin from: `clearway show incast-32 > mine.toml`
    Show(ShowArguments),
    /// Write a scenario with its most used keys, each explained, to begin from
    Init(InitArguments),
    /// Make a scenario of the settings of another simulator: htsim's command line, HPCC's config.txt, SimAI.conf
    Import(ImportArguments),
    /// Explain a name: its parameters with default, unit, meaning and source
    Explain {
        /// A name from `clearway list`, or: scenario, links, switch, observe, plan, job, placement
        name: String,
    },
    /// Explain why the slowest flows and iterations of a finished run were slow: where their time went, and the bound for any transport
    Why(WhyArguments),
    /// Print the properties of a topology: nodes, links, path lengths, base RTT, BDP
    Topology(TopologyArguments),
    /// Find out which training jobs can share links, and how far to move each in time so that they do not collide
    Plan(PlanArguments),
    /// Run one scenario at many points, with several seeds; finished runs are not repeated
    Sweep(SweepArguments),
    /// Find the best point of a plan within a budget of runs: better points get more seeds, rung by rung
    Tune(TuneArguments),
    /// Let some hosts attack, and report who gains and who loses: is this network isolated?
    Isolate(IsolateArguments),
    /// Reproduce figures of papers: claims, measured numbers, pass or miss
    Reproduce(ReproduceArguments),
    /// Measure STrack over UDP between two hosts, or on this one: throughput, message rate, round trips, paths, cost
    Perf(PerfArguments),
    /// Emulate the fabric of a scenario between network namespaces: rates, queues, marks, paths, and links that fail (Linux)
    Softswitch(SoftswitchArguments),
    /// Run a scenario over network namespaces on this machine, simulate it, and explain the differences
    Testbed(TestbedArguments),
    /// Send files and folders to a host where `clearway recv` runs; an interrupted transfer resumes
    Send(SendArguments),
    /// Receive files and folders from `clearway send`
    Recv(RecvArguments),
    /// Run collectives between processes over UDP, on this host or on many, check their results and measure them as nccl-tests does
    Collective(CollectiveArguments),
    /// Execute runs of a sweep whose names come on standard input
    #[command(hide = true, name = clearway_sweep::WORKER_COMMAND)]
    CarryOut { folder: PathBuf },
    /// Print a script that completes commands, options and names in a shell
    #[command(after_help = SHELLS)]
    Completions { shell: clap_complete::Shell },
    /// Print the manual page, or write the pages of all commands into a folder such as `~/.local/share/man/man1`
    Man {
        #[arg(value_hint = ValueHint::DirPath)]
        folder: Option<PathBuf>,
    },
}

const SHELLS: &str = "\
Location of the script:
  bash        ~/.local/share/bash-completion/completions/clearway
  zsh         _clearway in a folder of $fpath
  fish        ~/.config/fish/completions/clearway.fish
  elvish      at the end of ~/.config/elvish/rc.elv
  powershell  at the end of the file $PROFILE";

/// Help of `--dry-run` of studies.
const DRY_RUN: &str = "Print the number of runs and an estimate of their cost; run only a few of them, cut short, for the estimate";

/// Help of `--threads`.
const THREADS: &str = "Worker threads of a simulation; results do not depend on them. `auto`: one thread, and as many as there are free \
    processors after a tenth of a second, or at once to set up 2048 hosts and more";

/// Scale of a reproduction.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum ScaleArgument {
    /// Small networks that show the effects within minutes
    Small,
    /// Size of the paper
    Full,
}

impl From<ScaleArgument> for Scale {
    fn from(scale: ScaleArgument) -> Self {
        match scale {
            ScaleArgument::Small => Self::Small,
            ScaleArgument::Full => Self::Full,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ReproduceArguments {
    /// Figures such as `strack/fig9`, or a paper for all of its figures; lists all figures if left out
    #[arg(value_name = "FIGURE")]
    pub(crate) figures: Vec<String>,
    /// All figures of all papers
    #[arg(long, conflicts_with = "figures")]
    pub(crate) all: bool,
    /// Scale of the reproduction
    #[arg(long, value_enum, default_value = "small")]
    pub(crate) scale: ScaleArgument,
    /// Run with seeds 1 to N instead of as many as the figure asks for
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) seeds: Option<u64>,
    /// Change a key of every run, in place of the figure's value, and see which claims still hold
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) changes: Vec<String>,
    /// Run with a null subject in place of all transports, and see which claims still pass: one-packet, wrong-protocol
    #[arg(long, value_name = "SUBJECT", conflicts_with = "changes")]
    pub(crate) null: Option<NullSubject>,
    /// Runs at a time; results do not depend on it
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: u16,
    /// Folder for the results
    #[arg(long, value_name = "DIR", default_value_os_t = reproduction_folder())]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) print: PrintArguments,
}

/// Default folder of the results of `clearway reproduce`.
pub(crate) fn reproduction_folder() -> PathBuf {
    PathBuf::from("out").join("reproduce")
}

impl RunArguments {
    /// The scenario with the overrides that other arguments stand for.
    pub(crate) fn scenario(&self) -> ScenarioArguments {
        let mut scenario = self.scenario.clone();
        for (key, value) in [("error", &self.fast_forward), ("verify", &self.verify)] {
            let text = value
                .iter()
                .map(|value| format!("fast-forward.{key}={value}"));
            scenario.overrides.extend(text);
        }
        scenario
    }
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArguments,
    /// Remember calls of collectives that repeat, and skip time while long flows are steady, within this error, such as `1%`; the same as
    /// `--set fast-forward.error=ERROR`
    #[arg(long, value_name = "ERROR", conflicts_with = "why")]
    pub(crate) fast_forward: Option<String>,
    /// Simulate this share of the remembered calls or skipped stretches, such as `5%`, and report the error found; the same as `--set
    /// fast-forward.verify=SHARE`
    #[arg(long, value_name = "SHARE")]
    pub(crate) verify: Option<String>,
    /// Folder for the results; `out/NAME-HASH` if left out
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Also write completed flows in the format of HPCC's ns-3 simulator: sip dip sport dport size start fct standalone-fct; `-` prints
    #[arg(long, value_name = "FILE")]
    pub(crate) fct_txt: Option<PathBuf>,
    /// Also write starts and ends of flows in the format of htsim: Flow … finished at US …; `-` prints
    #[arg(long, value_name = "FILE")]
    pub(crate) htsim_txt: Option<PathBuf>,
    /// Leave `report.html` out of the results
    #[arg(long)]
    pub(crate) no_report: bool,
    /// Run a second time to explain why the slowest flows were slow, as `clearway why` does
    #[arg(long)]
    pub(crate) why: bool,
    /// Do not run: print the estimated packets, memory and CPU time, after a third of a second
    #[arg(long, conflicts_with_all = ["why", "live", "json", "out", "fct_txt", "htsim_txt"])]
    pub(crate) dry_run: bool,
    #[arg(long, help = THREADS, value_name = "N", default_value = "auto", value_parser = read_threads)]
    pub(crate) threads: Threads,
    /// Show the running simulation on a page of this machine, whose address is printed; it can pause and stop the run
    #[arg(long)]
    pub(crate) live: bool,
    /// Port of the live page; a free one if left out
    #[arg(long, value_name = "N", requires = "live")]
    pub(crate) live_port: Option<u16>,
    /// Pause after the first round, so that even a short run can be watched
    #[arg(long, requires = "live")]
    pub(crate) live_paused: bool,
    /// Time for which the page stays after the run, such as `300s`, or `forever`; Ctrl-C ends it with the exit code of the run. If left
    /// out, `forever` on a terminal, and `0s` elsewhere or if CI is set
    #[arg(long, value_name = "TIME", requires = "live", value_parser = read_stay)]
    pub(crate) live_stay: Option<PageLifetime>,
    #[command(flatten)]
    pub(crate) print: PrintArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  clearway compare quickstart :transport.spray=oblivious :transport.kind=rocev2,switch.kind=shared-buffer
  clearway compare quickstart --vary transport.spray=adaptive,oblivious,single --seeds 5
  clearway compare ours=my.toml theirs=:transport.kind=uet
  clearway compare out/quickstart-1a2b3c4d my.toml")]
pub(crate) struct CompareArguments {
    /// Scenarios, which run now, and result folders; ratios are to the first. `NAME:KEY=VALUE,KEY=VALUE` changes a scenario,
    /// `:KEY=VALUE` is the scenario before it with changes; `LABEL=` in front of any of them sets its name in tables
    #[arg(value_name = "SCENARIO|FOLDER", required = true, value_hint = ValueHint::AnyPath)]
    pub(crate) what: Vec<String>,
    /// Set a key of all scenarios
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) overrides: Vec<String>,
    /// Run each scenario once with each value; with several keys, with each combination
    #[arg(long, value_name = "KEY=VALUE,VALUE")]
    pub(crate) vary: Vec<String>,
    /// Run each scenario with N seeds, from the scenario's seed on; 1 if left out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) seeds: Option<u64>,
    #[arg(long, help = THREADS, value_name = "N", default_value = "auto", value_parser = read_threads)]
    pub(crate) threads: Threads,
    /// Folder for all output, including the results of all runs, or a file: `.html`, `.json`; `out/compare-HASH` if left out
    #[arg(long, value_name = "FILE|FOLDER")]
    pub(crate) out: Option<PathBuf>,
    /// Do not run: print the estimated packets and CPU time of each variant, a third of a second for each
    #[arg(long, conflicts_with_all = ["json", "out"])]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) print: PrintArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  clearway plan vgg-pair
  clearway plan dumbbell-pair --simulate
  clearway plan jobs.toml --profile --out out/tonight

Exit codes: 0 all jobs are compatible, 1 they are not, 2 the file is wrong or the plan cannot be written.")]
pub(crate) struct PlanArguments {
    /// A built-in plan (`clearway list plans`) or a TOML file with jobs and links
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) jobs: String,
    #[command(flatten)]
    pub(crate) simulator: SimulatorArguments,
    /// Iterations that each job runs together with others
    #[arg(long, value_name = "N", default_value_t = 15, requires = "simulate", value_parser = clap::value_parser!(u32).range(3..=100_000))]
    pub(crate) iterations: u32,
    #[arg(long, help = THREADS, value_name = "N", default_value = "auto", requires = "simulator", value_parser = read_threads)]
    pub(crate) threads: Threads,
    /// Folder for `plan.json` and `report.html`; `out/plan-NAME-HASH` if left out
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) print: PrintArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  clearway isolate incast-32 --attackers 5
  clearway isolate incast-32 --attackers 5-6 --transport strack,rocev2,hpcc --seeds 3
  clearway isolate tenants-mixed --attackers tenant:storage --attacks parallel
  clearway isolate my.toml --attacks staggered --set workload.attack.bytes=150KB
  clearway isolate my.toml --attacks incast,short-flows --set workload.attack.target=7
  clearway isolate incast-32 --attackers 5 --attacks disobey --transport 1rc --set workload.attack.breaks=leaving

Exit codes: 0 no attack gains or harms, 1 an attack does, or nothing was contended or
measured, 2 the scenario is wrong or the study cannot be written.")]
pub(crate) struct IsolateArguments {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArguments,
    /// Hosts that attack, such as `0-3,8`; or a tenant of the workload, `tenant:NAME`, or some of its hosts, `tenant:NAME:0-3,8`. If left
    /// out and the scenario attacks, the hosts of `workload.attack.hosts`
    #[arg(long, value_name = "HOSTS|TENANT")]
    pub(crate) attackers: Option<String>,
    /// Attacks to run, each separately: parallel, staggered, overlay, parallel-overlay, fan-out, short-flows, incast, disobey,
    /// pause-storm. If left out, the first three as far as the workload allows them. Keys `workload.attack.*` set the details
    #[arg(long, value_name = "ATTACK,…", value_delimiter = ',', value_parser = read_attack)]
    pub(crate) attacks: Vec<AttackKind>,
    /// Transports to attack (`clearway list transports`); the scenario's transport if left out
    #[arg(long = "transport", value_name = "TRANSPORT,…", value_delimiter = ',')]
    pub(crate) transports: Vec<String>,
    /// Enforcement scopes to attack: queue-pair, destination, pair, service-level, host; the scenario's scope if left out
    #[arg(long = "scope", value_name = "SCOPE,…", value_delimiter = ',', value_parser = read_scope)]
    pub(crate) scopes: Vec<Scope>,
    /// All transports and all scopes that are not named, in one table of gains
    #[arg(long)]
    pub(crate) matrix: bool,
    /// Run each with N seeds, from the scenario's seed on
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) seeds: u64,
    #[arg(long, help = THREADS, value_name = "N", default_value = "auto", value_parser = read_threads)]
    pub(crate) threads: Threads,
    #[arg(long, help = DRY_RUN)]
    pub(crate) dry_run: bool,
    /// Folder for `isolation.json` and `isolation.html`; `out/isolate-NAME-HASH` if left out
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) print: PrintArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  clearway sweep spray-study
  clearway sweep my-plan.toml --jobs 4 --out /data/my-sweep
  clearway sweep my-plan.toml --shard 3/10 --out shard-3
  clearway sweep my-plan.toml --merge shard-1 shard-2 shard-3

Exit codes: 0 all runs are complete, 1 some failed, did not complete or are missing after a merge, or an assertion does
not hold, 2 the plan is wrong or the results cannot be written, 130 interrupted. Finished runs are kept in any case, and
the same command continues from there.")]
pub(crate) struct SweepArguments {
    #[command(flatten)]
    pub(crate) study: StudyArguments,
    /// Part I of N equal parts of the runs, counted from 1
    #[arg(long, value_name = "I/N", conflicts_with = "merge")]
    pub(crate) shard: Option<Shard>,
    /// Run nothing, but take over the finished runs in these folders of the same plan
    #[arg(long, value_name = "DIR", num_args = 1..)]
    pub(crate) merge: Vec<PathBuf>,
    #[arg(long, help = DRY_RUN)]
    pub(crate) dry_run: bool,
}

/// Arguments of everything that carries out the runs of a plan.
#[derive(Debug, Args)]
pub(crate) struct StudyArguments {
    /// A built-in plan (`clearway list plans`) or a TOML file
    #[arg(value_name = "PLAN", value_hint = ValueHint::FilePath)]
    pub(crate) plan: String,
    /// Folder of the runs, which several processes may share; `out/COMMAND-NAME` if left out
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Maximum number of runs at once; if left out, the number of cores, or fewer if memory does not suffice
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Run plans of more than 10000 runs
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) print: PrintArguments,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  clearway tune my-plan.toml
  clearway tune spray-study --measure fct_us.max
  clearway tune my-plan.toml --measure slowdown.p99 --budget 200

Exit codes: 0 done, 1 no point has a value with all seeds, 2 the plan is wrong or the results cannot be written, 130 interrupted.")]
pub(crate) struct TuneArguments {
    #[command(flatten)]
    pub(crate) study: StudyArguments,
    /// Measure to optimise, named as in `compare.json`; if left out, the measure of the plan's `[tune]`
    #[arg(long, value_name = "NAME")]
    pub(crate) measure: Option<String>,
    /// Maximum number of runs; as many points are drawn as it allows
    #[arg(long, value_name = "RUNS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) budget: Option<u64>,
    #[arg(long, help = DRY_RUN)]
    pub(crate) dry_run: bool,
}

/// Time for which the page of a run stays after the end of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageLifetime {
    For(Duration),
    Forever,
}

impl PageLifetime {
    /// True if the lifetime is longer than the time that has `passed`.
    pub(crate) fn lasts(self, passed: Duration) -> bool {
        match self {
            Self::For(time) => passed < time,
            Self::Forever => true,
        }
    }
}

fn read_stay(text: &str) -> Result<PageLifetime, String> {
    if text == "forever" {
        return Ok(PageLifetime::Forever);
    }
    let time: Result<Span, _> = text.parse();
    let time = time.map_err(|_| "expected a time such as `300s`, or `forever`".to_owned());
    time.map(|time| PageLifetime::For(Duration::from_nanos(time.as_ps() / 1000)))
}

/// A number of worker threads, or `auto`.
fn read_threads(text: &str) -> Result<Threads, String> {
    match text {
        "auto" => Ok(Threads::Automatic),
        number => match number.parse::<usize>() {
            Ok(threads @ 1..=1024) => Ok(threads.into()),
            Ok(_) => Err("not from 1 to 1024".into()),
            Err(_) => Err("neither a number nor `auto`".into()),
        },
    }
}

/// An enforcement scope.
fn read_scope(text: &str) -> Result<Scope, String> {
    let found = Scope::ALL.iter().find(|scope| scope.name() == text);
    found.copied().ok_or_else(|| {
        let names: Vec<&str> = Scope::ALL.iter().map(|scope| scope.name()).collect();
        format!("expected one of {}", names.join(", "))
    })
}

/// A kind of attack, but none.
fn read_attack(text: &str) -> Result<AttackKind, String> {
    let kinds = || {
        AttackKind::ALL
            .iter()
            .filter(|kind| **kind != AttackKind::None)
    };
    let found = kinds().find(|kind| kind.name() == text).copied();
    found.ok_or_else(|| {
        let names: Vec<&str> = kinds().map(|kind| kind.name()).collect();
        format!("expected one of {}", names.join(", "))
    })
}

/// Simulations of `clearway plan`.
#[derive(Debug, Args)]
#[group(id = "simulator", multiple = true)]
pub(crate) struct SimulatorArguments {
    /// Run each job alone in the packet simulator and plan with its measured phases; needs a `[topology]`
    #[arg(long)]
    pub(crate) profile: bool,
    /// Run the jobs in the packet simulator: alone, together, and with each way to keep them apart; needs a `[topology]`
    #[arg(long)]
    pub(crate) simulate: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    /// A built-in scenario or plan (`clearway list scenarios`, `clearway list plans`), or a file
    pub(crate) name: String,
    /// Print every key of the scenario with its value, including defaults, as a run writes them beside its results
    #[arg(long)]
    pub(crate) resolved: bool,
    /// Set any key of the scenario first
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "resolved")]
    pub(crate) overrides: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  clearway init
  clearway init mine.toml --transport rocev2 --workload incast --topology fat-tree
  clearway init big.toml --topology fat-tree --set topology.hosts=1024 --set topology.oversubscription=2")]
pub(crate) struct InitArguments {
    /// File to write; `-` prints
    #[arg(value_name = "FILE", default_value = "scenario.toml")]
    pub(crate) file: PathBuf,
    /// Kind of topology (`clearway list topologies scale-up`); leaf-spine if left out
    #[arg(long, value_name = "KIND")]
    pub(crate) topology: Option<String>,
    /// Kind of switch (`clearway list switches`); one that suits the transport if left out
    #[arg(long, value_name = "KIND")]
    pub(crate) switch: Option<String>,
    /// Transport (`clearway list transports`); strack if left out
    #[arg(long, value_name = "KIND")]
    pub(crate) transport: Option<String>,
    /// Injection control of a scale-up fabric (`clearway list injection`)
    #[arg(long, value_name = "KIND")]
    pub(crate) injection: Option<String>,
    /// Kind of workload (`clearway list workloads`)
    #[arg(long, value_name = "KIND")]
    pub(crate) workload: Option<String>,
    /// Write any key with this value
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) overrides: Vec<String>,
    /// Replace the file if there is one
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  clearway run quickstart --out out/first && clearway why out/first
  clearway why out/first --flow 17 --flow 99
  clearway why out/training --job \"ring-all-reduce 3\" --iteration 1
  clearway compare quickstart :transport.spray=single --out out/both && clearway why out/both

Simulates the run again and follows these flows, and for jobs the critical path of the longest iteration.
Writes `why.json`, and the section into `report.html`.")]
pub(crate) struct WhyArguments {
    /// Result folder of a run, or folder of a comparison
    #[arg(value_name = "FOLDER")]
    pub(crate) out: PathBuf,
    /// Explain the flow with this number; the slowest ones if left out
    #[arg(long = "flow", value_name = "N")]
    pub(crate) flows: Vec<u32>,
    /// Explain the K slowest flows, by slowdown
    #[arg(long, value_name = "K", default_value_t = SLOWEST, conflicts_with = "flows", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) slowest: u16,
    /// Explain the longest iteration of the job with this name; the longest of all jobs if left out
    #[arg(long, value_name = "NAME")]
    pub(crate) job: Option<String>,
    /// Explain the iteration with this number, from 0
    #[arg(long, value_name = "K")]
    pub(crate) iteration: Option<u32>,
    #[arg(long, help = THREADS, value_name = "N", default_value = "auto", value_parser = read_threads)]
    pub(crate) threads: Threads,
    #[command(flatten)]
    pub(crate) print: PrintArguments,
}

/// Number of flows that are explained if the user names none.
pub(crate) const SLOWEST: u16 = 5;

#[derive(Debug, Args)]
pub(crate) struct TopologyArguments {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArguments,
    /// List every link with its rate and delay
    #[arg(long)]
    pub(crate) links: bool,
    /// Also write the topology as InfraGraph, a file that `topology.file` reads: JSON if the name ends with .json, else YAML; `-` prints
    /// the YAML alone
    #[arg(long, value_name = "FILE", conflicts_with = "links")]
    pub(crate) infragraph: Option<PathBuf>,
    /// Also write a page with a map of the network, and open it with any browser
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}
