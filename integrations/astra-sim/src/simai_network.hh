// Clearway as the network of SimAI: one `AstraNetworkAPI` of SimAI's older variant for each GPU, all on one simulated fabric.
#pragma once

#include "network.hh"

#include <astra-sim/system/AstraNetworkAPI.hh>

#include <cstdint>
#include <deque>
#include <map>
#include <tuple>

namespace clearway {

// State that the GPUs of a SimAI job share.
//
// Matching. SimAI does not pair sends and receives one by one: a receive takes the oldest arrived message of its (source, destination, tag),
// or waits for the next one. A receive of three that already wait is dropped, as in SimAI's ns-3 front end. The collectives of SimAI call such
// receives again for each flow of a step.
struct SimaiJob {
    SimaiJob(Network &network, uint64_t send_latency_ps) : network(network), send_latency_ps(send_latency_ps) {}

    using Key = std::tuple<uint32_t, uint32_t, int>;

    struct Arrived {
        uint64_t bytes;
        AstraSim::ncclFlowTag tag;
    };

    struct Waiting {
        uint64_t bytes;
        Handler handler;
    };

    // One of the two is empty.
    struct Inbox {
        std::deque<Arrived> arrived;
        std::deque<Waiting> waiting;
    };

    Network &network;
    // Time from the call of a send to its message: the software of the sender.
    const uint64_t send_latency_ps;
    std::map<Key, Inbox> inboxes;
    // SimAI's last GPU has finished.
    bool finished = false;
};

// SimAI counts in nanoseconds. The flow tag of a send reaches the handlers of both sides, which find the next flows in it.
class SimaiNetwork final : public AstraSim::AstraNetworkAPI {
  public:
    SimaiNetwork(int rank, SimaiJob &job) : AstraNetworkAPI(rank), job(job) {}

    int sim_comm_size(AstraSim::sim_comm comm, int *size) override;
    int sim_finish() override;
    double sim_time_resolution() override;
    int sim_init(AstraSim::AstraMemoryAPI *memory) override;
    AstraSim::timespec_t sim_get_time() override;
    void sim_schedule(AstraSim::timespec_t delta, void (*fun_ptr)(void *fun_arg), void *fun_arg) override;
    int sim_send(void *buffer, uint64_t count, int type, int dst, int tag, AstraSim::sim_request *request,
                 void (*msg_handler)(void *fun_arg), void *fun_arg) override;
    int sim_recv(void *buffer, uint64_t count, int type, int src, int tag, AstraSim::sim_request *request,
                 void (*msg_handler)(void *fun_arg), void *fun_arg) override;

  private:
    SimaiJob &job;
};

} // namespace clearway
