//! Memory left by the control groups of this process (Slurm, Kubernetes, systemd), of either version.
//!
//! A limit holds for a group and all groups below it, so the group of the process and each group above it count. Memory of inactive file
//! pages counts as free, because the system reclaims it on demand.

use std::fs;
use std::path::{Path, PathBuf};

/// Version of control groups, which determines file names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Version {
    /// Names of the limit file, the usage file, and the key of inactive file pages in the statistics file.
    fn files(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::One => (
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
                "total_inactive_file",
            ),
            Self::Two => ("memory.max", "memory.current", "inactive_file"),
        }
    }
}

/// Bytes left below the nearest limit; `None` without a limit.
pub(super) fn memory_left() -> Option<u64> {
    let read = |name: &str| fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default();
    let groups = groups(&read("cgroup"), &read("mountinfo"));
    let left = groups
        .iter()
        .filter_map(|(folder, version)| left(folder, *version));
    left.min()
}

/// Folders of the control groups of a process, from the texts `cgroup` and `mountinfo`: its own group and all groups above.
fn groups(cgroup: &str, mountinfo: &str) -> Vec<(PathBuf, Version)> {
    let mut found = Vec::new();
    for line in cgroup.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let version = match controllers {
            "" => Version::Two,
            some if some.split(',').any(|name| name == "memory") => Version::One,
            _ => continue,
        };
        for (root, mounted) in mounts(mountinfo, version) {
            // In a container, the root of the mount may be a group of the host.
            let below = Path::new(path)
                .strip_prefix(root)
                .unwrap_or(Path::new(path));
            let below = below.strip_prefix("/").unwrap_or(below);
            let all = below
                .ancestors()
                .map(|group| Path::new(mounted).join(group));
            found.extend(all.map(|folder| (folder, version)));
        }
    }
    found
}

/// Root and mount point of each hierarchy of this version with a memory controller.
fn mounts(mountinfo: &str, version: Version) -> impl Iterator<Item = (&str, &str)> {
    mountinfo.lines().filter_map(move |line| {
        let (first, second) = line.split_once(" - ")?;
        let mut second = second.split(' ');
        let (kind, options) = (second.next()?, second.next_back()?);
        let is_it = match version {
            Version::One => kind == "cgroup" && options.split(',').any(|name| name == "memory"),
            Version::Two => kind == "cgroup2",
        };
        let mut first = first.split(' ').skip(3);
        is_it.then_some((first.next()?, first.next()?))
    })
}

/// Bytes left below the limit of a group; `None` without a limit.
fn left(folder: &Path, version: Version) -> Option<u64> {
    let (limit, used, idle) = version.files();
    let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let number = |name: &str| read(name)?.trim().parse::<u64>().ok();
    let statistics = read("memory.stat").unwrap_or_default();
    let idle = statistics.lines().find_map(|line| {
        let (name, value) = line.split_once(' ')?;
        (name == idle).then(|| value.trim().parse::<u64>().ok())?
    });
    let used = number(used)?.saturating_sub(idle.unwrap_or(0));
    // Version 1 expresses "no limit" as a number beyond the memory of any machine.
    let limit = number(limit).filter(|limit| *limit < 1 << 60)?;
    Some(limit.saturating_sub(used))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_testing::Folder;

    #[test]
    fn the_group_of_a_process_and_all_above_it_count() {
        let slurm = "0::/system.slice/slurmstepd.scope/job_7/step_0\n";
        let mounts = "24 1 0:21 / /proc rw - proc proc rw\n\
                      31 24 0:27 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
        let folders: Vec<_> = groups(slurm, mounts)
            .into_iter()
            .map(|(folder, version)| {
                assert_eq!(version, Version::Two);
                folder.to_string_lossy().into_owned()
            })
            .collect();
        assert_eq!(
            folders,
            [
                "/sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/step_0",
                "/sys/fs/cgroup/system.slice/slurmstepd.scope/job_7",
                "/sys/fs/cgroup/system.slice/slurmstepd.scope",
                "/sys/fs/cgroup/system.slice",
                "/sys/fs/cgroup/",
            ]
        );
    }

    #[test]
    fn in_a_container_the_root_of_the_mount_is_a_group_of_the_host() {
        let cgroup = "4:memory:/docker/abc/inner\n3:cpuset:/docker/abc\n0::/\n";
        let mounts = "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n\
                      36 31 0:33 /docker/abc /sys/fs/cgroup/cpuset ro - cgroup cgroup rw,cpuset\n";
        let folders: Vec<_> = groups(cgroup, mounts);
        assert_eq!(
            folders,
            [
                ("/sys/fs/cgroup/memory/inner".into(), Version::One),
                ("/sys/fs/cgroup/memory/".into(), Version::One),
            ]
        );
        assert_eq!(groups("nonsense\n", "nonsense\n"), []);
    }

    #[test]
    fn a_limit_leaves_what_is_not_in_use() {
        let folder = Folder::new("control-group");
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
        write("memory.max", "1000\n");
        write("memory.current", "700\n");
        write("memory.stat", "anon 300\nfile 400\ninactive_file 350\n");
        assert_eq!(left(&folder, Version::Two), Some(650));
        write("memory.max", "max\n");
        assert_eq!(left(&folder, Version::Two), None);
        write("memory.limit_in_bytes", "9223372036854771712\n");
        write("memory.usage_in_bytes", "700\n");
        assert_eq!(left(&folder, Version::One), None);
    }
}
