// A ring all-reduce whose schedule is in this program: a rank sends its next chunk when one has come.
//
//     cargo build --release --package clearway-c
//     cc -std=c11 -I crates/interfaces/c/include crates/interfaces/c/examples/ring.c -L target/release -lclearway_c -o ring
//     LD_LIBRARY_PATH=target/release ./ring
#include "clearway.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { RANKS = 16, STEPS = 2 * (RANKS - 1) };
static const uint64_t BYTES = 16u << 20; // of each rank's buffer

static void check(clearway_status status) {
    if (status != CLEARWAY_STATUS_OK) {
        fprintf(stderr, "error: %s\n", clearway_last_error());
        exit(status);
    }
}

struct ring {
    clearway_simulation *simulation;
    uint64_t finished_ps;
};

static void send_step(struct ring *ring, uint32_t rank, uint64_t step) {
    clearway_message message = {.src = rank, .dst = (rank + 1) % RANKS, .bytes = BYTES / RANKS, .tag = step};
    check(clearway_post(ring->simulation, &message, NULL));
}

static void on_event(void *user, const clearway_event *event) {
    struct ring *ring = user;
    if (event->kind != CLEARWAY_EVENT_KIND_RECEIVED) return;
    if (event->tag + 1 < STEPS) {
        send_step(ring, event->dst, event->tag + 1);
    } else if (event->time_ps > ring->finished_ps) {
        ring->finished_ps = event->time_ps;
    }
}

int main(int argc, char **argv) {
    clearway_options options = {.interface_version = CLEARWAY_INTERFACE_VERSION,
                                .text = "[topology]\nkind = \"leaf-spine\"\nhosts = 16\nhosts-per-leaf = 4\n"};
    struct ring ring = {0};
    check(clearway_create(&options, &ring.simulation));
    check(clearway_on_event(ring.simulation, on_event, &ring));
    for (uint32_t rank = 0; rank < RANKS; rank++) send_step(&ring, rank, 0);
    check(clearway_run_to_end(ring.simulation));
    check(clearway_finish(ring.simulation, argc > 1 ? argv[1] : NULL));

    double seconds = (double)ring.finished_ps / 1e12;
    double busbw = 2.0 * (RANKS - 1) / RANKS * (double)BYTES / seconds / 1e9;
    printf("all-reduce of %" PRIu64 " bytes by %d ranks: %.1f us, bus bandwidth %.1f GB/s\n", BYTES, RANKS, seconds * 1e6, busbw);
    check(clearway_destroy(ring.simulation));
    return 0;
}
