// A simulated network with ranks: sends and receives that are matched by tag, and timers. It knows Clearway's C interface and no simulator of
// training; `astra_network` adapts it to ASTRA-sim.
#pragma once

#include "clearway.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <tuple>
#include <vector>

namespace clearway {

// Function of the simulator of training, with its argument.
struct Handler {
    void (*function)(void *) = nullptr;
    void *argument = nullptr;

    void operator()() const {
        if (function != nullptr) function(argument);
    }
};

struct NetworkOptions {
    // Built-in scenario, or path of a scenario file.
    std::string scenario;
    // Assignments such as `transport.kind=rocev2`.
    std::vector<std::string> overrides;
    uint32_t threads = 0;
    // Limit of the time by which a send can start too late; 0: the shortest delay of a link.
    uint64_t resolution_ps = 0;
    // Number of ranks. Rank n is host n.
    uint32_t ranks = 0;
    // The handler of a receive runs when the sender has every acknowledgement, after that of the send: as in ASTRA-sim's ns-3 back end.
    bool receive_at_acknowledgement = false;
};

// Ranks of a training job on the hosts of a simulated fabric.
//
// Matching. The k-th receive of (source, destination, tag) belongs to the k-th send of the same three, as in MPI; both have the same length.
// The handler of a receive runs when the message has arrived and the receive was called, whichever is later; the handler of a send when the
// sender has every acknowledgement.
//
// Time. Handlers see the exact time of their event or timer in `now_ps`. The simulation may stand later, by at most the resolution, because it
// advances in rounds; only a send that answers an event notices: it starts when the round ends. Timers are exact.
//
// Order. Handlers run in the order of time; at one time those of messages first, by number of the message and receiver before sender, then
// timers in the order of their calls.
//
// Errors. Simulators of training catch the exceptions of their handlers, and go on. `run` therefore throws the first error of a send or a
// receive again.
class Network {
  public:
    // Throws std::runtime_error with Clearway's text if the scenario is wrong, or has fewer hosts than there are ranks.
    explicit Network(const NetworkOptions &options);

    uint32_t hosts() const { return host_count; }

    void send(uint32_t source, uint32_t destination, uint64_t bytes, int tag, Handler handler);
    void receive(uint32_t source, uint32_t destination, uint64_t bytes, int tag, Handler handler);
    void schedule(uint64_t delay_ps, Handler handler);
    uint64_t now_ps() const { return now; }

    // Calls `work`, and remembers its exception for `run`.
    template <typename Work> void guarded(Work work) {
        try {
            work();
        } catch (...) {
            if (!failure) failure = std::current_exception();
            throw;
        }
    }

    // Runs until `is_done` returns true after a handler. Throws std::runtime_error if nothing is left to happen before.
    void run(bool (*is_done)(void *), void *argument);

    // Writes a result folder, unless `folder` is empty; returns the contents of summary.json.
    std::string finish(const std::string &folder);

    std::vector<std::string> warnings() const;

  private:
    using Key = std::tuple<uint32_t, uint32_t, int>;

    // Messages and receives of one key that have no partner yet. One of the two is empty.
    struct Unmatched {
        std::deque<std::size_t> messages;
        std::deque<std::pair<uint64_t, Handler>> receives;
    };

    struct Message {
        Key key;
        uint64_t bytes;
        Handler sent, received;
        bool has_receive, has_arrived;
    };

    struct Timer {
        uint64_t time_ps, number;
        Handler handler;

        // For a heap with the earliest timer on top.
        bool operator<(const Timer &other) const {
            return std::tie(other.time_ps, other.number) < std::tie(time_ps, number);
        }
    };

    struct Destroy {
        void operator()(clearway_simulation *simulation) const { clearway_destroy(simulation); }
    };

    void post(std::size_t place);
    void step();
    void run_handlers();
    void deliver(const clearway_event &event);
    void arrive(std::size_t place);
    void match(Message &message, uint64_t bytes, Handler handler);
    std::string unfinished() const;

    std::unique_ptr<clearway_simulation, Destroy> simulation;
    uint32_t host_count = 0;
    const bool receive_at_acknowledgement;
    std::vector<Message> messages;
    // Message of each number of the simulation.
    std::vector<std::size_t> numbers;
    std::map<Key, Unmatched> unmatched;
    std::size_t under_way = 0;
    std::priority_queue<Timer> timers;
    uint64_t scheduled = 0;
    // Events of the last step that were not delivered yet.
    std::deque<clearway_event> events;
    // Time of the event or timer whose handler runs, and time at which the simulation stands.
    uint64_t now = 0, simulated = 0;
    std::exception_ptr failure;
};

} // namespace clearway
