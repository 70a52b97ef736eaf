// C interface of Clearway: a simulated network that another program drives.
//
// A simulation is created from a scenario and stands at time zero. The program posts messages and schedules callbacks while time stands
// still, and lets it advance with a run function, which calls back at events. Times are picoseconds of simulated time. Equal posts at equal
// times give equal results, for any steps and any number of threads.
//
// Errors: every function that can fail returns a `clearway_status`; `clearway_last_error` has the text.
//
// Pointers: a simulation is a handle, which is checked in each call: a null pointer, a destroyed simulation and any other pointer are
// errors. All other pointers must be null, which is an error unless the function says otherwise, or valid and aligned for their type. Texts
// are UTF-8 and end with a zero byte. Texts and structures that the program passes are copied; texts that it receives belong to the
// simulation or to the library, and must not be freed.
//
// Threads: a simulation is used from one thread at a time; a call while another thread is in a call on it is an error. Other simulations
// are independent. Callbacks run on the thread that called the run function. They may call all functions but the run functions,
// `clearway_finish` and `clearway_destroy` of their own simulation. After a fork, a simulation is of use in the parent only.
//
// Order of callbacks: events of messages before an instant come before the callbacks scheduled for it. Events come in the order of time,
// number of the message, received before acknowledged. Callbacks of one instant come in the order in which they were scheduled.


#pragma once

// Written by cbindgen from src/interface.rs. Do not edit.

#include <stddef.h>
#include <stdint.h>

// Version of this interface. A program is compiled with the version of its header; `clearway_create` compares it with the library's.
#define CLEARWAY_INTERFACE_VERSION 1

// Time that never comes, in picoseconds.
#define CLEARWAY_NEVER UINT64_MAX

// Outcome of a call. A call that returns `MISUSE` or `INPUT` has changed nothing, except that a run may have advanced.
enum clearway_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Success.
  CLEARWAY_STATUS_OK = 0,
  // Wrong use of the interface: a null pointer, an unknown or destroyed handle, a call in the wrong order or from the wrong thread.
  CLEARWAY_STATUS_MISUSE = 1,
  // Invalid input: the scenario, a message or a time.
  CLEARWAY_STATUS_INPUT = 2,
  // Defect of Clearway. The simulation cannot be used any more.
  CLEARWAY_STATUS_DEFECT = 3,
  // Results cannot be written.
  CLEARWAY_STATUS_OUTPUT = 4,
  // The simulation has reached `stop.at-most` of its scenario. Events until then have been delivered.
  CLEARWAY_STATUS_OVER = 5,
  // The simulation was interrupted by `clearway_interrupt`. Events until then have been delivered.
  CLEARWAY_STATUS_INTERRUPTED = 130,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum clearway_status clearway_status;
#else
typedef int32_t clearway_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// What happened to a message.
enum clearway_event_kind
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // The receiver has all bytes.
  CLEARWAY_EVENT_KIND_RECEIVED = 0,
  // The sender has every acknowledgement.
  CLEARWAY_EVENT_KIND_ACKNOWLEDGED = 1,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum clearway_event_kind clearway_event_kind;
#else
typedef int32_t clearway_event_kind;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A simulated network. The pointer is a handle: it points to nothing.
typedef struct clearway_simulation clearway_simulation;

// Options of a simulation. Zero stands for the default in all fields but the first; give either `scenario` or `text`.
typedef struct clearway_options {
  // `CLEARWAY_INTERFACE_VERSION`.
  uint32_t interface_version;
  // Threads of the simulation; 0: more than one if the run is long and processors are free. Results do not depend on it.
  uint32_t threads;
  // Built-in scenario, or path of a scenario file.
  const char *scenario;
  // Text of a scenario file.
  const char *text;
  // Assignments such as `transport.kind=rocev2`, which replace keys of the scenario.
  const char *const *overrides;
  // Number of `overrides`.
  size_t override_count;
  // Limit, in picoseconds, of the time by which the simulation passes an event before its callback runs; 0: the shortest delay of a
  // link. A message that a callback posts starts at most so much later than the event. A smaller limit costs more time.
  uint64_t resolution_ps;
  // Priorities that messages may have, as bits 1 to 7; 0: only priority 1. Switches reserve buffers and queues for them.
  uint8_t priorities;
  // Not 0: the workload of the scenario runs beside the posted messages.
  uint8_t own_traffic;
} clearway_options;

// A message to post.
typedef struct clearway_message {
  // Sending host, from 0.
  uint32_t src;
  // Receiving host, another one.
  uint32_t dst;
  // Length in bytes, above 0.
  uint64_t bytes;
  // Number for the events of the message and its row in `flows.parquet`. It need not be unique.
  uint64_t tag;
  // Priority, 1 to 7, among those of the options; 0: priority 1.
  uint8_t priority;
} clearway_message;

// Event of a message.
typedef struct clearway_event {
  // Time of the event in picoseconds. The simulated time may be later: see `clearway_options.resolution_ps`.
  uint64_t time_ps;
  // Tag of the message; the label of a flow of the scenario.
  uint64_t tag;
  // Length of the message in bytes.
  uint64_t bytes;
  // Number of the message, from `clearway_post`, or of a flow of the scenario.
  uint32_t message;
  // Sending host.
  uint32_t src;
  // Receiving host.
  uint32_t dst;
  // What happened.
  clearway_event_kind kind;
} clearway_event;

// Callback for the events of messages. `event` is valid during the call. A callback must return: it must neither throw nor jump.
typedef void (*clearway_event_callback)(void *user, const struct clearway_event *event);

// Callback for an instant. It must return: it must neither throw nor jump.
typedef void (*clearway_time_callback)(void *user);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Version of the interface of this library, to compare with `CLEARWAY_INTERFACE_VERSION`.
uint32_t clearway_interface_version(void);

// Version of Clearway. The text is valid as long as the library is loaded.
const char *clearway_version(void);

// Text of the last failure of a call of this thread: what is wrong, and how to fix it. Empty before the first one. The text is valid until
// the next failure of the thread.
const char *clearway_last_error(void);

// Creates a simulation that stands at time zero, and writes its handle to `simulation`. Every handle is destroyed by `clearway_destroy`.
clearway_status clearway_create(const struct clearway_options *options,
                                struct clearway_simulation **simulation);

// Ends a simulation, if it has not ended, and releases its memory and threads. Its texts become invalid. Refused in a callback.
clearway_status clearway_destroy(struct clearway_simulation *simulation);

// Writes the simulated time to `ps`. All events before it have happened.
clearway_status clearway_now(struct clearway_simulation *simulation, uint64_t *ps);

// Writes the number of hosts to `hosts`. Hosts are numbered from 0.
clearway_status clearway_hosts(struct clearway_simulation *simulation, uint32_t *hosts);

// Writes warning number `index` about the scenario to `text`, or a null pointer if there are not so many. The text belongs to the
// simulation.
clearway_status clearway_warning(struct clearway_simulation *simulation,
                                 size_t index,
                                 const char **text);

// Posts a message that is ready at the present simulated time, and writes its number to `number`, which may be a null pointer.
clearway_status clearway_post(struct clearway_simulation *simulation,
                              const struct clearway_message *posted,
                              uint32_t *number);

// Sets the callback for the events of all messages, and of the scenario's own flows. Without one, events wait for `clearway_take_event`.
clearway_status clearway_on_event(struct clearway_simulation *simulation,
                                  clearway_event_callback callback,
                                  void *user);

// Calls `callback` once, when all events before `at_ps` have happened and been delivered. Callbacks of one instant run in the order in
// which they were scheduled.
clearway_status clearway_schedule(struct clearway_simulation *simulation,
                                  uint64_t at_ps,
                                  clearway_time_callback callback,
                                  void *user);

// Writes to `ps` the earliest time at which anything may happen, `CLEARWAY_NEVER` if nothing is left. Events of packets and timers of
// transports count, so the next callback may be later.
clearway_status clearway_next_event(struct clearway_simulation *simulation,
                                    uint64_t *ps);

// Simulates all events before `ps`, and runs the callbacks until then, those scheduled for `ps` included.
clearway_status clearway_run_until(struct clearway_simulation *simulation, uint64_t ps);

// Simulates until callbacks have run, or events wait to be taken, but at most to `limit_ps`.
clearway_status clearway_run_until_event(struct clearway_simulation *simulation, uint64_t limit_ps);

// Simulates until nothing is left: no event of the network and no scheduled callback.
clearway_status clearway_run_to_end(struct clearway_simulation *simulation);

// Takes the oldest event that no callback has received. Writes it to `event` and 1 to `taken`, or only 0 to `taken` if there is none.
clearway_status clearway_take_event(struct clearway_simulation *simulation,
                                    struct clearway_event *event,
                                    int32_t *taken);

// Interrupts the run of another thread, which returns `CLEARWAY_STATUS_INTERRUPTED` within a tenth of a second, and every later run. It
// cannot be called from a signal handler.
clearway_status clearway_interrupt(struct clearway_simulation *simulation);

// Ends the simulation at its present time, and writes a result folder as `clearway run --out` does, unless `folder` is a null pointer. If
// the folder cannot be written, the simulation has ended all the same. Afterwards only `clearway_summary`, `clearway_scenario`,
// `clearway_warning` and `clearway_destroy` are of use.
clearway_status clearway_finish(struct clearway_simulation *simulation,
                                const char *folder);

// Writes to `json` the contents of `summary.json` of a finished simulation. The text belongs to the simulation.
clearway_status clearway_summary(struct clearway_simulation *simulation, const char **json);

// Writes to `toml` the scenario that lists the posted messages of a finished simulation. `clearway run` of it has the same digest, if no
// event was left at the end. The text belongs to the simulation.
clearway_status clearway_scenario(struct clearway_simulation *simulation,
                                  const char **toml);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus
