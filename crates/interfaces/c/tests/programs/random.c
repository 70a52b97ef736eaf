// Random calls in random order, from callbacks too, on valid, destroyed, null and invented handles: each one returns a known code, and with
// a failure comes a text. The seed is fixed; an argument replaces it.
#include "clearway.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 1;

// A number below `limit` (splitmix64).
static uint64_t below(uint64_t limit) {
    uint64_t mixed = (state += UINT64_C(0x9e3779b97f4a7c15));
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
    return (mixed ^ mixed >> 31) % limit;
}

enum { HANDLES = 2 };
static clearway_simulation *handles[HANDLES];
static unsigned long calls, failures, callbacks, depth;

static void require(int holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "call %lu: %s; last error: %s\n", calls, what, clearway_last_error());
        exit(1);
    }
}

static clearway_simulation *any_handle(void) {
    static int local[2];
    switch (below(40)) {
        case 0: return NULL;
        case 1: return (clearway_simulation *)&local[below(2)];
        case 2: return (clearway_simulation *)(uintptr_t)below(1000);
        default: return handles[below(HANDLES)];
    }
}

static void random_call(void);

static void on_event(void *user, const clearway_event *event) {
    callbacks++;
    require(user == &calls && event->kind <= CLEARWAY_EVENT_KIND_ACKNOWLEDGED, "an event is wrong");
    if (depth < 3 && below(3) == 0) random_call();
}

static void on_time(void *user) {
    callbacks++;
    require(user == &failures, "the pointer of a callback is wrong");
    if (depth < 3 && below(2) == 0) random_call();
}

static const char *TEXTS[] = {
    "[topology]\nhosts = 8\nhosts-per-leaf = 4\n", "[topology]\nhosts = 8\nhosts-per-leaf = 2\n[transport]\nkind = \"rocev2\"\n",
    "[stop]\nat-most = \"300us\"\n[topology]\nhosts = 8\nhosts-per-leaf = 8\n", "nonsense", "", "[topology]\nkind = \"none\"\n", NULL,
};

static clearway_status create(void) {
    clearway_options options = {.interface_version = below(30) ? CLEARWAY_INTERFACE_VERSION : 7};
    options.threads = (uint32_t)below(3);
    options.text = TEXTS[below(10) ? below(3) : below(7)];
    options.resolution_ps = below(3) ? 0 : below(100000);
    options.priorities = (uint8_t)(below(9) ? 0 : below(256));
    options.own_traffic = below(4) == 0;
    const char *overrides[] = {"transport.kind=dctcp", below(2) ? "seed=3" : "seed=-3"};
    options.overrides = overrides;
    options.override_count = below(9) ? 0 : below(3);
    uint64_t place = below(HANDLES);
    clearway_status destroyed = clearway_destroy(handles[place]);
    require(destroyed == CLEARWAY_STATUS_OK || destroyed == CLEARWAY_STATUS_MISUSE, "a code of destroy");
    // A running simulation could not be destroyed, and keeps its place.
    uint64_t ps;
    if (clearway_now(handles[place], &ps) == CLEARWAY_STATUS_OK) return CLEARWAY_STATUS_OK;
    return clearway_create(below(50) ? &options : NULL, &handles[place]);
}

static clearway_status post(clearway_simulation *simulation) {
    clearway_message message = {.src = (uint32_t)below(4), .dst = 4 + (uint32_t)below(5), .bytes = below(200000)};
    message.priority = (uint8_t)(below(15) ? 0 : below(256));
    message.tag = below(2) ? 0 : UINT64_MAX;
    if (below(20) == 0) message.bytes = below(UINT64_MAX);
    uint32_t number;
    return clearway_post(simulation, below(50) ? &message : NULL, below(2) ? &number : NULL);
}

static void random_call(void) {
    clearway_simulation *simulation = any_handle();
    uint64_t ps = 0, now = 0;
    uint32_t hosts;
    int taken;
    const char *text = NULL;
    clearway_event event;
    clearway_status status = CLEARWAY_STATUS_OK;
    calls++;
    depth++;
    clearway_now(simulation, &now);
    switch (below(24)) {
        case 0: case 21: status = create(); break;
        case 1: status = clearway_destroy(below(8) ? NULL : simulation); break;
        case 2: status = clearway_now(simulation, below(9) ? &ps : NULL); break;
        case 3: status = clearway_hosts(simulation, below(9) ? &hosts : NULL); break;
        case 4: status = clearway_warning(simulation, below(4), below(9) ? &text : NULL); break;
        case 5: status = clearway_on_event(simulation, below(2) ? on_event : NULL, &calls); break;
        case 6: case 7: status = clearway_schedule(simulation, now + below(9000000), below(9) ? on_time : NULL, &failures); break;
        case 8: status = clearway_next_event(simulation, below(9) ? &ps : NULL); break;
        case 9: case 10: case 11: status = clearway_run_until(simulation, below(9) ? now + below(9000000) : below(now + 1)); break;
        case 12: case 13: status = clearway_run_until_event(simulation, below(9) ? now + below(9000000) : CLEARWAY_NEVER); break;
        case 14: status = clearway_run_to_end(simulation); break;
        case 15: case 16: status = clearway_take_event(simulation, below(9) ? &event : NULL, below(9) ? &taken : NULL); break;
        case 17: status = below(9) ? CLEARWAY_STATUS_OK : clearway_finish(simulation, NULL); break;
        case 18: status = clearway_summary(simulation, below(9) ? &text : NULL); break;
        case 19: status = clearway_scenario(simulation, below(9) ? &text : NULL); break;
        case 20: status = below(20) ? CLEARWAY_STATUS_OK : clearway_interrupt(simulation); break;
        default: status = post(simulation);
    }
    depth--;
    require(status == CLEARWAY_STATUS_OK || status == CLEARWAY_STATUS_MISUSE || status == CLEARWAY_STATUS_INPUT ||
                status == CLEARWAY_STATUS_OVER || status == CLEARWAY_STATUS_INTERRUPTED,
            "an unexpected code");
    if (status != CLEARWAY_STATUS_OK) {
        failures++;
        require(*clearway_last_error() != '\0', "a failure without a text");
    }
    if (text != NULL) require(strlen(text) > 0, "an empty text");
}

int main(int argc, char **argv) {
    state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    unsigned long count = argc > 2 ? strtoul(argv[2], NULL, 10) : 4000;
    while (calls < count) random_call();
    for (int place = 0; place < HANDLES; place++) clearway_destroy(handles[place]);
    printf("%lu calls, %lu refused, %lu callbacks\n", calls, failures, callbacks);
    return 0;
}
