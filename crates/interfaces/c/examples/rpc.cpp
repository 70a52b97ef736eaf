// Remote procedure calls: a client sends a request, a server computes for 5 us and answers, and the client goes on.
//
//     cargo build --release --package clearway-c
//     c++ -std=c++17 -I crates/interfaces/c/include crates/interfaces/c/examples/rpc.cpp -L target/release -lclearway_c -o rpc
//     LD_LIBRARY_PATH=target/release ./rpc
#include "clearway.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <vector>

namespace {

void check(clearway_status status) {
    if (status != CLEARWAY_STATUS_OK) throw std::runtime_error(clearway_last_error());
}

struct Destroy {
    void operator()(clearway_simulation *simulation) const { clearway_destroy(simulation); }
};
using Simulation = std::unique_ptr<clearway_simulation, Destroy>;

Simulation create(const char *scenario, const std::vector<const char *> &overrides) {
    clearway_options options{};
    options.interface_version = CLEARWAY_INTERFACE_VERSION;
    options.scenario = scenario;
    options.overrides = overrides.data();
    options.override_count = overrides.size();
    options.resolution_ps = 10'000;
    clearway_simulation *simulation = nullptr;
    check(clearway_create(&options, &simulation));
    return Simulation(simulation);
}

constexpr uint32_t SERVER = 0, CLIENTS = 8, CALLS = 20;
constexpr uint64_t WORK_PS = 5'000'000;

// All callbacks of one run. Exceptions must not leave a callback, so each one ends the program.
class Rpc {
public:
    explicit Rpc(clearway_simulation *simulation) : simulation(simulation), started(CLIENTS + 1), calls(CLIENTS + 1) {}

    void begin() {
        check(clearway_on_event(simulation, [](void *self, const clearway_event *event) noexcept {
            static_cast<Rpc *>(self)->on_event(*event);
        }, this));
        for (uint32_t client = 1; client <= CLIENTS; client++) request(client);
    }

    std::vector<double> latencies;

private:
    struct Answer {
        Rpc *rpc;
        uint32_t client;
    };

    void request(uint32_t client) {
        check(clearway_now(simulation, &started[client]));
        post(client, SERVER, 4'000);
    }

    void post(uint32_t src, uint32_t dst, uint64_t bytes) {
        clearway_message message{};
        message.src = src;
        message.dst = dst;
        message.bytes = bytes;
        check(clearway_post(simulation, &message, nullptr));
    }

    void on_event(const clearway_event &event) {
        if (event.kind != CLEARWAY_EVENT_KIND_RECEIVED) return;
        if (event.dst == SERVER) {
            auto answer = std::make_unique<Answer>(Answer{this, event.src});
            check(clearway_schedule(simulation, event.time_ps + WORK_PS, [](void *user) noexcept {
                std::unique_ptr<Answer> answer(static_cast<Answer *>(user));
                answer->rpc->post(SERVER, answer->client, 100'000);
            }, answer.release()));
        } else {
            latencies.push_back(static_cast<double>(event.time_ps - started[event.dst]) / 1e6);
            if (++calls[event.dst] < CALLS) request(event.dst);
        }
    }

    clearway_simulation *simulation;
    std::vector<uint64_t> started;
    std::vector<uint32_t> calls;
};

} // namespace

int main(int argc, char **argv) try {
    Simulation simulation = create("quickstart", {"topology.hosts=16", "topology.hosts-per-leaf=16"});
    Rpc rpc(simulation.get());
    rpc.begin();
    check(clearway_run_to_end(simulation.get()));
    check(clearway_finish(simulation.get(), argc > 1 ? argv[1] : nullptr));
    std::sort(rpc.latencies.begin(), rpc.latencies.end());
    std::printf("%zu calls: fastest %.2f us, median %.2f us, slowest %.2f us\n", rpc.latencies.size(), rpc.latencies.front(),
                rpc.latencies[rpc.latencies.size() / 2], rpc.latencies.back());
    return 0;
} catch (const std::exception &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
}
