#include "astra_network.hh"

#include <cmath>
#include <stdexcept>

namespace clearway {

namespace {

// Picoseconds of a time of ASTRA-sim.
uint64_t picoseconds(const AstraSim::timespec_t &time) {
    const auto factor = [&]() -> long double {
        switch (time.time_res) {
            case AstraSim::SE: return 1e12L;
            case AstraSim::MS: return 1e9L;
            case AstraSim::US: return 1e6L;
            case AstraSim::NS: return 1e3L;
            case AstraSim::FS: return 1e-3L;
        }
        throw std::runtime_error("a time of an unknown unit");
    }();
    const long double ps = std::round(time.time_val * factor);
    if (!(ps >= 0.0L && ps < 9.2e18L)) throw std::runtime_error("a time that is negative or too long");
    return static_cast<uint64_t>(ps);
}

} // namespace

int AstraNetwork::sim_send(void *, uint64_t count, int, int dst, int tag, AstraSim::sim_request *, void (*msg_handler)(void *),
                           void *fun_arg) {
    const auto source = static_cast<uint32_t>(rank), destination = static_cast<uint32_t>(dst);
    job.network.send(source, destination, count, tag, {msg_handler, fun_arg});
    return 0;
}

int AstraNetwork::sim_recv(void *, uint64_t count, int, int src, int tag, AstraSim::sim_request *, void (*msg_handler)(void *),
                           void *fun_arg) {
    const auto source = static_cast<uint32_t>(src), destination = static_cast<uint32_t>(rank);
    job.network.receive(source, destination, count, tag, {msg_handler, fun_arg});
    return 0;
}

void AstraNetwork::sim_schedule(AstraSim::timespec_t delta, void (*fun_ptr)(void *), void *fun_arg) {
    job.network.schedule(picoseconds(delta), {fun_ptr, fun_arg});
}

AstraSim::timespec_t AstraNetwork::sim_get_time() {
    return {AstraSim::NS, static_cast<long double>(job.network.now_ps()) / 1e3L};
}

void AstraNetwork::sim_notify_finished() {
    if (!job.finished[rank]) {
        job.finished[rank] = true;
        job.unfinished--;
    }
}

} // namespace clearway
