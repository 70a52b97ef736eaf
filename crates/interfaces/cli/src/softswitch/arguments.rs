//! Arguments of `clearway softswitch`.

use clap::{Args, ValueHint};
use clearway_units::Bytes;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  clearway softswitch quickstart --set topology.hosts=4 --set topology.hosts-per-leaf=2 --set topology.link-rate=100Mbps \\
      --set topology.link-delay=100us --set transport.rto=50ms --hosts cw-try-h --create
  clearway softswitch my-bed.toml --hosts cw-try-h --json

It prints `ready` when it forwards packets, takes commands on standard input, and ends on SIGTERM or Ctrl-C:
  link leaf0-spine1 down          both directions; `leaf0>spine1` is one direction, and `*` any text
  link *spine1 up
  link host0-leaf0 loss 1% duplicate 1% reorder 5% 200us corrupt 0.1% mark 100% delay 1ms rate 100Mbps
  link * reset                    as in the scenario
  counters                        prints counters as one line of JSON

A FILE with `scenario = \"NAME\"` in it names the scenario, and lists events of links:
  scenario = \"quickstart\"
  set = [\"topology.hosts=4\"]
  [[event]]
  at = \"2s\"
  do = \"link leaf0-spine1 down\"")]
pub(crate) struct SoftswitchArguments {
    /// A built-in scenario (`clearway list scenarios`) or a TOML file; or a file that names a scenario and lists events
    #[arg(value_name = "SCENARIO|FILE", value_hint = ValueHint::FilePath)]
    pub(crate) what: String,
    /// Prefix of the namespaces of hosts: host N is the network namespace PREFIX followed by N
    #[arg(long, value_name = "PREFIX", value_parser = read_prefix)]
    pub(crate) hosts: String,
    /// Create the namespaces first, and delete them at the end
    #[arg(long)]
    pub(crate) create: bool,
    /// Set any key of the scenario
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) overrides: Vec<String>,
    /// Seed of hashes, marks and losses; the same as `--set seed=S`
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub(crate) seed: Option<u64>,
    /// Longest IP packet; 1500 if left out, or more if the scenario's packets are longer
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(1280..))]
    pub(crate) mtu: Option<u16>,
    /// Queue in front of the link of each host; it drops packets that do not fit and marks none; 4MB if left out
    #[arg(long, value_name = "SIZE", value_parser = read_queue)]
    pub(crate) host_queue: Option<Bytes>,
    /// Print counters as JSON at the end instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    /// Print nothing but `ready`, answers and errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// End as on SIGTERM when standard input ends: for parent programs that may be killed
    #[arg(long, hide = true)]
    pub(crate) end_with_input: bool,
}

fn read_prefix(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let fits = !text.is_empty() && !text.starts_with(['.', '-']) && text.chars().all(is_plain);
    match fits {
        true => Ok(text.to_owned()),
        false => Err("expected the beginning of a name, such as `cw-try-h`".to_owned()),
    }
}

fn read_queue(text: &str) -> Result<Bytes, String> {
    let size: Option<Bytes> = text.parse().ok();
    size.filter(|size| (10_000..=1_000_000_000).contains(&size.as_u64()))
        .ok_or_else(|| "expected a size from `10KB` to `1GB`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_parts_of_file_names() {
        assert!(read_prefix("cw-a_1.h").is_ok());
        for bad in ["", "../", "a/b", ".a", "-h", "a b", "ä"] {
            assert!(read_prefix(bad).is_err(), "{bad}");
        }
    }
}
