//! Arguments of `clearway testbed`.

use crate::scenario_arguments::ScenarioArguments;
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  clearway testbed run testbed-permutation --out out/bed
  clearway testbed run testbed-dead-path --set transport.kind=rocev2 --out out/bed
  clearway testbed up testbed-permutation       # then: ip netns exec cw-bed-h0 clearway perf --listen --key both.key
  clearway testbed down

It creates network namespaces, and needs root; it changes nothing outside of them.")]
pub(crate) struct TestbedArguments {
    #[command(subcommand)]
    pub(crate) command: TestbedCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TestbedCommand {
    /// Create the namespaces, links and routes of a scenario's fabric
    Up(UpArguments),
    /// Remove a test bed, or the rest of it
    Down {
        #[command(flatten)]
        name: NameArguments,
    },
    /// Run a scenario's flows over a test bed, simulate them, and show both side by side
    Run(BedRunArguments),
    /// Send many messages of mixed sizes through losses, copies, reordering, marks, a failing spine and a receiver that forgets, and count
    /// the arrivals
    Soak(SoakArguments),
    /// Act as a host: started by `run`, in a separate namespace
    #[command(hide = true)]
    Host,
}

#[derive(Debug, Args)]
pub(crate) struct NameArguments {
    /// Name of the test bed; namespaces are cw-NAME-h0 and so on
    #[arg(long, value_name = "NAME", default_value = "bed")]
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct FabricArguments {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArguments,
    #[command(flatten)]
    pub(crate) name: NameArguments,
    /// Forwarding switches; "auto" is soft if switches mark, lose or delay packets
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) switches: SwitchesArgument,
    /// Print nothing but results and errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct UpArguments {
    #[command(flatten)]
    pub(crate) fabric: FabricArguments,
    /// Print the commands for `ip` and `tc`, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BedRunArguments {
    #[command(flatten)]
    pub(crate) fabric: FabricArguments,
    /// Folder for `results.json` and `report.html`
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,
    /// Keep the namespaces
    #[arg(long)]
    pub(crate) keep: bool,
    /// Print JSON instead of tables
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SoakArguments {
    #[command(flatten)]
    pub(crate) name: NameArguments,
    /// Number of messages to send
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub(crate) messages: u64,
    /// Seed of the sizes and contents of messages
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Print nothing but results and errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Switches of a test bed.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum SwitchesArgument {
    /// As the scenario needs
    Auto,
    /// Namespaces that route, with rates by tbf: no congestion marks, and losses only at full queues
    Kernel,
    /// `clearway softswitch`: everything that the scenario specifies
    Soft,
}
