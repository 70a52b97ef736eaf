#!/usr/bin/env bash
# Builds ASTRA-sim with Clearway as its network, and runs the microbenchmarks of a checkout on rings.
#
#     integrations/astra-sim/check.sh /path/to/astra-sim [BUILD_FOLDER]
#
# Further arguments of CMake: CMAKE_ARGUMENTS. Each collective must finish, with one digest for any number of threads.
set -euo pipefail

astra="$(cd "$1" && pwd)"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
build="${2:-$(mktemp -d)}"
libraries="$(cargo metadata --manifest-path "$root/Cargo.toml" --no-deps --format-version 1 |
    sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/release"

cargo build --quiet --release --manifest-path "$root/Cargo.toml" --package clearway-c
# shellcheck disable=SC2086
cmake -S "$here" -B "$build" -DASTRA_SIM="$astra" -DCLEARWAY_LIBRARY_DIR="$libraries" ${CMAKE_ARGUMENTS:-} >"$build.log"
cmake --build "$build" --parallel >>"$build.log"

printf '%-16s %6s %12s %8s\n' collective ranks us CPU-s
for ranks in 4 8 16; do
    echo "{\"logical-dims\": [\"$ranks\"]}" >"$build/dims.json"
    for collective in all_reduce all_gather reduce_scatter all_to_all; do
        run() {
            LD_LIBRARY_PATH="$libraries" "$build/bin/AstraSim_Clearway" --network-configuration quickstart \
                --set topology.kind=ring --set "topology.hosts=$ranks" --set topology.link-delay=500ns \
                --workload-configuration "$astra/examples/workload/microbenchmarks/$collective/${ranks}npus_1MB/$collective" \
                --system-configuration "$astra/examples/system/native_collectives/Ring_4chunks.json" \
                --remote-memory-configuration "$astra/examples/remote_memory/analytical/no_memory_expansion.json" \
                --logical-topology-configuration "$build/dims.json" --logging-folder "$build/log" --threads "$1" |
                sed -n 's/^finished at \(.*\) us, \(.*\) CPU s, digest \(.*\)/\1 \2 \3/p'
        }
        one="$(run 1)" two="$(run 2)"
        [[ -n "$one" && "${one##* }" == "${two##* }" ]] || { echo "FAILED: $collective of $ranks: '$one' and '$two'" >&2 && exit 1; }
        # shellcheck disable=SC2086
        printf '%-16s %6s %12s %8s\n' "$collective" "$ranks" ${one% *}
    done
done
