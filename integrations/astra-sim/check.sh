#!/usr/bin/env bash
# Builds ASTRA-sim and SimAI with Clearway as their network, and runs microbenchmarks of ASTRA-sim on rings, and a step of SimAI.
#
#     integrations/astra-sim/check.sh /path/to/astra-sim [BUILD_FOLDER]
#     SIMAI=/path/to/SimAI integrations/astra-sim/check.sh /path/to/astra-sim [BUILD_FOLDER]
#
# An empty path of ASTRA-sim leaves it out. Further arguments of CMake: CMAKE_ARGUMENTS. Each run must finish, with one digest for any
# number of threads. SimAI's step must take as long as in `clearway run` of the same workload, within 2 %.
set -euo pipefail

astra="${1:+$(cd "$1" && pwd)}"
simai="${SIMAI:+$(cd "$SIMAI" && pwd)}"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
build="${2:-$(mktemp -d)}"
libraries="$(cargo metadata --manifest-path "$root/Cargo.toml" --no-deps --format-version 1 |
    sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/release"
export LD_LIBRARY_PATH="$libraries"

cargo build --quiet --release --manifest-path "$root/Cargo.toml" --package clearway-c --package clearway
# shellcheck disable=SC2086
cmake -S "$here" -B "$build" -DASTRA_SIM="$astra" -DSIMAI="$simai" -DCLEARWAY_LIBRARY_DIR="$libraries" ${CMAKE_ARGUMENTS:-} >"$build.log"
cmake --build "$build" --parallel >>"$build.log"

# The time, CPU seconds and digest of the last line of a front end.
finished() {
    sed -n 's/^finished at \(.*\) us, \(.*\) CPU s, digest \(.*\)/\1 \2 \3/p'
}

# Runs a command with one and with two threads, and prints time and CPU seconds.
check() {
    local what="$1" one two
    shift
    one="$("$@" 1)" two="$("$@" 2)"
    [[ -n "$one" && "${one##* }" == "${two##* }" ]] || { echo "FAILED: $what: '$one' and '$two'" >&2 && exit 1; }
    echo "${one% *}"
}

collective() {
    "$build/bin/AstraSim_Clearway" --network-configuration quickstart \
        --set topology.kind=ring --set "topology.hosts=$2" --set topology.link-delay=500ns \
        --workload-configuration "$astra/examples/workload/microbenchmarks/$1/${2}npus_1MB/$1" \
        --system-configuration "$astra/examples/system/native_collectives/Ring_4chunks.json" \
        --remote-memory-configuration "$astra/examples/remote_memory/analytical/no_memory_expansion.json" \
        --logical-topology-configuration "$build/dims.json" --logging-folder "$build/log" --threads "$3" | finished
}

# Two servers of 8 GPUs, each with an NVSwitch; the k-th GPUs share leaf k; a spine.
topology() {
    echo "27 8 2 9 40 A100"
    echo {16..26}
    for gpu in {0..15}; do
        echo "$gpu $((16 + gpu / 8)) 2400Gbps 0.000025ms 0"
        echo "$gpu $((18 + gpu % 8)) 400Gbps 0.0005ms 0"
    done
    for leaf in {18..25}; do echo "$leaf 26 800Gbps 0.0005ms 0"; done
}

# A layer with tensor parallelism, and the gradients.
workload() {
    echo "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 16 checkpoints: 0" \
        "checkpoint_initiates: 0"
    echo 2
    echo "attention -1 200000 ALLREDUCE 16777216 200000 ALLREDUCE 16777216 200000 NONE 0 100"
    echo "gradients -1 1 NONE 0 1 NONE 0 1 REDUCESCATTER 33554432 100"
}

SETTINGS=(--set transport.kind=rocev2 --set transport.payload=9000B --set switch.kind=shared-buffer)

training() {
    AS_SEND_LAT=0 "$build/bin/SimAI_Clearway" -w "$build/workload.txt" -n "$build/topology.txt" -r "$build/simai_" -t "$1" "${SETTINGS[@]}" |
        finished
}

printf '%-16s %6s %12s %8s\n' workload ranks us CPU-s
if [[ -n "$astra" ]]; then
    for ranks in 4 8 16; do
        echo "{\"logical-dims\": [\"$ranks\"]}" >"$build/dims.json"
        for name in all_reduce all_gather reduce_scatter all_to_all; do
            result="$(check "$name of $ranks" collective "$name" "$ranks")"
            # shellcheck disable=SC2086
            printf '%-16s %6s %12s %8s\n' "$name" "$ranks" $result
        done
    done
else
    echo "SKIPPED: ASTRA-sim: give its checkout as the first argument" >&2
fi
if [[ -n "$simai" ]]; then
    topology >"$build/topology.txt"
    workload >"$build/workload.txt"
    result="$(check SimAI training)"
    # shellcheck disable=SC2086
    printf '%-16s %6s %12s %8s\n' SimAI 16 $result
    "$libraries/clearway" run -q --set topology.file="$build/topology.txt" --set workload.kind=trace \
        --set workload.file="$build/workload.txt" "${SETTINGS[@]}" --out "$build/trace"
    trace="$(tr -d '\n ' <"$build/trace/summary.json" | sed 's/.*"iterations_us":\[\([0-9.]*\).*/\1/')"
    awk -v simai="${result% *}" -v trace="$trace" 'BEGIN { exit !(simai > 0.98 * trace && simai < 1.02 * trace) }' ||
        { echo "FAILED: SimAI: ${result% *} us, but $trace us in clearway run" >&2 && exit 1; }
else
    echo "SKIPPED: SimAI: set SIMAI to its checkout" >&2
fi
