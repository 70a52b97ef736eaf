// Steps, events and timers: their order, and equal digests for equal posts. Prints the digest; writes results to the given folder.
#include "clearway.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(clearway_status status) {
    if (status != CLEARWAY_STATUS_OK) {
        fprintf(stderr, "error: %s\n", clearway_last_error());
        exit(1);
    }
}

#define REQUIRE(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "line %d: %s does not hold\n", __LINE__, #condition); \
            exit(1); \
        } \
    } while (0)

static const char *SCENARIO = "[topology]\nkind = \"leaf-spine\"\nhosts = 16\nhosts-per-leaf = 4\n"
                              "[transport]\nkind = \"rocev2\"\n[switch]\nkind = \"shared-buffer\"\n";

struct log {
    clearway_simulation *simulation;
    uint64_t last_ps; // of events and timers
    int received, acknowledged, timers;
};

static void on_event(void *user, const clearway_event *event) {
    struct log *log = user;
    uint64_t now = 0;
    check(clearway_now(log->simulation, &now));
    REQUIRE(event->time_ps >= log->last_ps && event->time_ps < now);
    REQUIRE(event->tag == event->message + 100 && event->bytes == 100000 + event->src);
    log->last_ps = event->time_ps;
    if (event->kind == CLEARWAY_EVENT_KIND_RECEIVED) log->received++;
    else log->acknowledged++;
}

static void post_round(struct log *log) {
    for (uint32_t src = 0; src < 15; src++) {
        clearway_message message = {.src = src, .dst = 15, .bytes = 100000 + src, .priority = src % 2 ? 3 : 0};
        message.tag = (uint64_t)(log->timers * 15) + src + 100;
        uint32_t number = 0;
        check(clearway_post(log->simulation, &message, &number));
        REQUIRE(number + 100 == message.tag);
    }
}

static void on_time(void *user) {
    struct log *log = user;
    uint64_t now = 0;
    check(clearway_now(log->simulation, &now));
    // All events before the instant were delivered, and time stands exactly there.
    REQUIRE(now == (uint64_t)(log->timers + 1) * 20000000 && log->last_ps < now);
    log->timers++;
    post_round(log);
}

static clearway_simulation *create(uint32_t threads) {
    clearway_options options = {.interface_version = CLEARWAY_INTERFACE_VERSION, .threads = threads, .text = SCENARIO};
    options.priorities = 1 << 1 | 1 << 3;
    clearway_simulation *simulation = NULL;
    check(clearway_create(&options, &simulation));
    return simulation;
}

// Returns the digest; the caller frees it.
static char *finish(clearway_simulation *simulation, const char *folder) {
    check(clearway_finish(simulation, folder));
    const char *summary = NULL;
    check(clearway_summary(simulation, &summary));
    const char *digest = strstr(summary, "\"digest\": \"");
    REQUIRE(digest != NULL);
    char *copy = calloc(17, 1);
    memcpy(copy, digest + strlen("\"digest\": \""), 16);
    check(clearway_destroy(simulation));
    return copy;
}

static char *with_callbacks(const char *folder) {
    struct log log = {.simulation = create(2)};
    check(clearway_on_event(log.simulation, on_event, &log));
    for (uint64_t timer = 1; timer <= 3; timer++) check(clearway_schedule(log.simulation, timer * 20000000, on_time, &log));
    post_round(&log);
    check(clearway_run_to_end(log.simulation));
    REQUIRE(log.timers == 3 && log.received == 60 && log.acknowledged == 60);
    uint64_t next = 0;
    check(clearway_next_event(log.simulation, &next));
    REQUIRE(next == CLEARWAY_NEVER);
    return finish(log.simulation, folder);
}

// The same posts, with events that are taken instead of delivered, in steps of 3.3 us.
static char *with_polling(void) {
    struct log log = {.simulation = create(1)};
    uint64_t now = 0;
    for (; log.timers < 4; log.timers++) {
        post_round(&log);
        while (now < (uint64_t)(log.timers + 1) * 20000000) {
            uint64_t step = now + 3300000, end = (uint64_t)(log.timers + 1) * 20000000;
            check(clearway_run_until(log.simulation, step < end ? step : end));
            check(clearway_now(log.simulation, &now));
        }
    }
    check(clearway_run_to_end(log.simulation));
    clearway_event event;
    int taken = 1, events = 0;
    for (;;) {
        check(clearway_take_event(log.simulation, &event, &taken));
        if (!taken) break;
        REQUIRE(event.time_ps >= log.last_ps);
        log.last_ps = event.time_ps;
        events++;
    }
    REQUIRE(events == 120);
    return finish(log.simulation, NULL);
}

int main(int argc, char **argv) {
    char *delivered = with_callbacks(argc > 1 ? argv[1] : NULL), *taken = with_polling();
    REQUIRE(strcmp(delivered, taken) == 0);
    puts(delivered);
    free(delivered);
    free(taken);
    return 0;
}
