// Misuse of the interface: every call is refused with a code and a text, and the program goes on.
#include "clearway.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifndef _WIN32
#include <sys/wait.h>
#include <unistd.h>
#endif

#define EXPECT(call, status, text) expect(call, status, text, #call, __LINE__)

static void expect(clearway_status got, clearway_status wanted, const char *text, const char *call, int line) {
    const char *error = clearway_last_error();
    if (got != wanted || (wanted != CLEARWAY_STATUS_OK && (!strstr(error, text) || (*text && !strstr(error, "fix: "))))) {
        fprintf(stderr, "line %d: %s: status %d instead of %d, error \"%s\"\n", line, call, (int)got, (int)wanted, error);
        exit(1);
    }
}

static void ok(clearway_status got, int line) { expect(got, CLEARWAY_STATUS_OK, "", "a call", line); }
#define OK(call) ok(call, __LINE__)

static const char *FABRIC = "[topology]\nkind = \"leaf-spine\"\nhosts = 8\nhosts-per-leaf = 4\n";

static clearway_options options_of(const char *text) {
    clearway_options options = {.interface_version = CLEARWAY_INTERFACE_VERSION, .threads = 1, .text = text};
    return options;
}

static clearway_simulation *create(void) {
    clearway_options options = options_of(FABRIC);
    clearway_simulation *simulation = NULL;
    OK(clearway_create(&options, &simulation));
    return simulation;
}

static void creation(void) {
    clearway_simulation *none = NULL;
    clearway_options options = options_of(FABRIC);
    EXPECT(clearway_create(NULL, &none), CLEARWAY_STATUS_MISUSE, "`options` is a null pointer");
    EXPECT(clearway_create(&options, NULL), CLEARWAY_STATUS_MISUSE, "`simulation` is a null pointer");
    options.interface_version = 99;
    EXPECT(clearway_create(&options, &none), CLEARWAY_STATUS_MISUSE, "version 99");
    options = options_of(NULL);
    EXPECT(clearway_create(&options, &none), CLEARWAY_STATUS_MISUSE, "neither");
    options = options_of(FABRIC);
    options.scenario = "quickstart";
    EXPECT(clearway_create(&options, &none), CLEARWAY_STATUS_MISUSE, "both");
    options = options_of("[topology]\nhosts = -1\n");
    EXPECT(clearway_create(&options, &none), CLEARWAY_STATUS_INPUT, "hosts");
    options = options_of("\xff");
    EXPECT(clearway_create(&options, &none), CLEARWAY_STATUS_MISUSE, "UTF-8");
    options = options_of(NULL);
    options.scenario = "no-such-scenario";
    EXPECT(clearway_create(&options, &none), CLEARWAY_STATUS_INPUT, "no-such-scenario");
    options = options_of(FABRIC);
    options.priorities = 1;
    EXPECT(clearway_create(&options, &none), CLEARWAY_STATUS_MISUSE, "bit 0");
    options = options_of(FABRIC);
    options.override_count = 1;
    EXPECT(clearway_create(&options, &none), CLEARWAY_STATUS_MISUSE, "`overrides` is a null pointer");
    const char *overrides[] = {"transport.kind=none-such"};
    options.overrides = overrides;
    EXPECT(clearway_create(&options, &none), CLEARWAY_STATUS_INPUT, "none-such");
    if (none != NULL) exit(1);
}

static void handles(void) {
    uint64_t ps = 0;
    int local = 0;
    EXPECT(clearway_now(NULL, &ps), CLEARWAY_STATUS_MISUSE, "null pointer");
    EXPECT(clearway_now((clearway_simulation *)&local, &ps), CLEARWAY_STATUS_MISUSE, "no simulation");
    EXPECT(clearway_destroy(NULL), CLEARWAY_STATUS_MISUSE, "null pointer");
    clearway_simulation *simulation = create();
    EXPECT(clearway_now(simulation, NULL), CLEARWAY_STATUS_MISUSE, "`ps` is a null pointer");
    EXPECT(clearway_now(simulation, (uint64_t *)((char *)&ps + 1)), CLEARWAY_STATUS_MISUSE, "aligned");
    OK(clearway_destroy(simulation));
    EXPECT(clearway_destroy(simulation), CLEARWAY_STATUS_MISUSE, "destroyed");
    EXPECT(clearway_now(simulation, &ps), CLEARWAY_STATUS_MISUSE, "destroyed");
    EXPECT(clearway_run_to_end(simulation), CLEARWAY_STATUS_MISUSE, "destroyed");
    // A new handle is never one of the old.
    clearway_simulation *other = create();
    if (other == simulation) exit(1);
    OK(clearway_destroy(other));
}

static clearway_simulation *current;
static int calls;

static void from_event(void *user, const clearway_event *event) {
    (void)user;
    (void)event;
    calls++;
    EXPECT(clearway_run_until(current, UINT64_C(1000000000)), CLEARWAY_STATUS_MISUSE, "running");
    EXPECT(clearway_finish(current, NULL), CLEARWAY_STATUS_MISUSE, "running");
    EXPECT(clearway_destroy(current), CLEARWAY_STATUS_MISUSE, "running");
    uint64_t ps = 0;
    OK(clearway_now(current, &ps));
    OK(clearway_next_event(current, &ps));
}

static void order(void) {
    current = create();
    clearway_message message = {.src = 0, .dst = 5, .bytes = 1000};
    const char *text = NULL;
    EXPECT(clearway_summary(current, &text), CLEARWAY_STATUS_MISUSE, "clearway_finish");
    OK(clearway_on_event(current, from_event, NULL));
    OK(clearway_post(current, &message, NULL));
    OK(clearway_run_until_event(current, CLEARWAY_NEVER));
    if (calls == 0) exit(1);
    EXPECT(clearway_run_until(current, 1), CLEARWAY_STATUS_INPUT, "is past");
    EXPECT(clearway_schedule(current, 1, NULL, NULL), CLEARWAY_STATUS_MISUSE, "`callback` is a null pointer");
    EXPECT(clearway_run_until(current, CLEARWAY_NEVER), CLEARWAY_STATUS_INPUT, "clearway_run_to_end");
    OK(clearway_run_to_end(current));
    if (calls != 2) exit(1);
    OK(clearway_finish(current, NULL));
    OK(clearway_summary(current, &text));
    if (!strstr(text, "\"digest\"")) exit(1);
    EXPECT(clearway_post(current, &message, NULL), CLEARWAY_STATUS_MISUSE, "has ended");
    EXPECT(clearway_run_to_end(current), CLEARWAY_STATUS_MISUSE, "has ended");
    EXPECT(clearway_finish(current, NULL), CLEARWAY_STATUS_MISUSE, "has ended");
    OK(clearway_destroy(current));
}

static void messages(void) {
    clearway_simulation *simulation = create();
    clearway_message message = {.src = 0, .dst = 8, .bytes = 1};
    EXPECT(clearway_post(simulation, NULL, NULL), CLEARWAY_STATUS_MISUSE, "`posted` is a null pointer");
    // A refused call has posted nothing.
    uint32_t numbers[2];
    uint64_t next = 0;
    clearway_message good = {.src = 0, .dst = 1, .bytes = 1};
    EXPECT(clearway_post(simulation, &good, (uint32_t *)((char *)numbers + 1)), CLEARWAY_STATUS_MISUSE, "`number` is not aligned");
    OK(clearway_next_event(simulation, &next));
    if (next != CLEARWAY_NEVER) exit(1);
    EXPECT(clearway_post(simulation, &message, NULL), CLEARWAY_STATUS_INPUT, "no host 8");
    message.dst = 0;
    EXPECT(clearway_post(simulation, &message, NULL), CLEARWAY_STATUS_INPUT, "to itself");
    message.dst = 1;
    message.bytes = 0;
    EXPECT(clearway_post(simulation, &message, NULL), CLEARWAY_STATUS_INPUT, "no bytes");
    message.bytes = UINT64_MAX / 16;
    EXPECT(clearway_post(simulation, &message, NULL), CLEARWAY_STATUS_INPUT, "30 days");
    message.bytes = 1;
    message.priority = 200;
    EXPECT(clearway_post(simulation, &message, NULL), CLEARWAY_STATUS_INPUT, "priority 200");
    OK(clearway_destroy(simulation));
}

// Time may go as far as 2^64 - 2 when nothing is left; messages start within 30 days.
static void far_times(void) {
    clearway_simulation *simulation = create();
    clearway_message message = {.src = 0, .dst = 1, .bytes = 1};
    OK(clearway_run_until(simulation, CLEARWAY_NEVER - 1));
    EXPECT(clearway_post(simulation, &message, NULL), CLEARWAY_STATUS_INPUT, "too late");
    OK(clearway_run_to_end(simulation));
    OK(clearway_finish(simulation, NULL));
    OK(clearway_destroy(simulation));
}

static void over(void) {
    clearway_options options = options_of("[stop]\nat-most = \"5us\"\n");
    clearway_simulation *simulation = NULL;
    OK(clearway_create(&options, &simulation));
    clearway_message message = {.src = 0, .dst = 1, .bytes = 10000000};
    OK(clearway_post(simulation, &message, NULL));
    EXPECT(clearway_run_to_end(simulation), CLEARWAY_STATUS_OVER, "stop.at-most");
    EXPECT(clearway_run_to_end(simulation), CLEARWAY_STATUS_OVER, "stop.at-most");
    OK(clearway_finish(simulation, NULL));
    OK(clearway_destroy(simulation));
}

static void interrupted(void) {
    clearway_simulation *simulation = create();
    OK(clearway_interrupt(simulation));
    if (clearway_run_to_end(simulation) != CLEARWAY_STATUS_INTERRUPTED) exit(1);
    OK(clearway_finish(simulation, NULL));
    OK(clearway_destroy(simulation));
}

static void results(void) {
    clearway_simulation *simulation = create();
    EXPECT(clearway_finish(simulation, "/dev/null/results"), CLEARWAY_STATUS_OUTPUT, "");
    const char *text = NULL;
    OK(clearway_summary(simulation, &text));
    OK(clearway_destroy(simulation));
}

static void fork_of_the_process(void) {
#ifndef _WIN32
    clearway_simulation *simulation = create();
    pid_t child = fork();
    if (child == 0) {
        uint64_t ps = 0;
        EXPECT(clearway_now(simulation, &ps), CLEARWAY_STATUS_MISUSE, "forked");
        OK(clearway_destroy(simulation));
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) exit(1);
    OK(clearway_destroy(simulation));
#endif
}

int main(void) {
    if (clearway_interface_version() != CLEARWAY_INTERFACE_VERSION || *clearway_last_error() != '\0') return 1;
    creation();
    handles();
    order();
    messages();
    far_times();
    over();
    interrupted();
    results();
    fork_of_the_process();
    puts("refused as documented");
    return 0;
}
