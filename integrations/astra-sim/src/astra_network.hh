// Clearway as the network of ASTRA-sim: one `AstraNetworkAPI` for each rank, all on one simulated fabric.
#pragma once

#include "network.hh"

#include <astra-sim/common/AstraNetworkAPI.hh>

#include <cstdint>
#include <vector>

namespace clearway {

// What the ranks of a job share.
struct Job {
    explicit Job(Network &network, uint32_t ranks) : network(network), finished(ranks, false), unfinished(ranks) {}

    Network &network;
    std::vector<bool> finished;
    uint32_t unfinished;
};

// ASTRA-sim counts in nanoseconds. Times are passed on with their fraction, and ASTRA-sim truncates them where it counts in cycles.
class AstraNetwork final : public AstraSim::AstraNetworkAPI {
  public:
    AstraNetwork(int rank, Job &job) : AstraNetworkAPI(rank), job(job) {}

    int sim_send(void *buffer, uint64_t count, int type, int dst, int tag, AstraSim::sim_request *request,
                 void (*msg_handler)(void *fun_arg), void *fun_arg) override;
    int sim_recv(void *buffer, uint64_t count, int type, int src, int tag, AstraSim::sim_request *request,
                 void (*msg_handler)(void *fun_arg), void *fun_arg) override;
    void sim_schedule(AstraSim::timespec_t delta, void (*fun_ptr)(void *fun_arg), void *fun_arg) override;
    AstraSim::timespec_t sim_get_time() override;
    void sim_notify_finished() override;

  private:
    Job &job;
};

} // namespace clearway
