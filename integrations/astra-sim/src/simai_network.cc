#include "simai_network.hh"

#include <astra-sim/system/RecvPacketEventHadndlerData.hh>
#include <astra-sim/system/SendPacketEventHandlerData.hh>

#include <cmath>
#include <sstream>
#include <stdexcept>

namespace clearway {

namespace {

using AstraSim::RecvPacketEventHadndlerData;
using AstraSim::SendPacketEventHandlerData;

// A message from the call of the send to the last event.
struct Flow {
    SimaiJob &job;
    SimaiJob::Key key;
    uint64_t bytes;
    AstraSim::ncclFlowTag tag;
    Handler sent;
    bool has_arrived = false, is_sent = false;
};

void release(Flow *flow) {
    if (flow->has_arrived && flow->is_sent) delete flow;
}

RecvPacketEventHadndlerData *receive_data(void *argument) {
    auto *data = static_cast<RecvPacketEventHadndlerData *>(argument);
    if (data == nullptr || data->event != AstraSim::EventType::PacketReceived) {
        throw std::runtime_error("a receive of SimAI whose handler is not that of a packet");
    }
    return data;
}

void check_length(Network &network, const SimaiJob::Key &key, uint64_t sent, uint64_t expected) {
    if (sent == expected) return;
    const auto &[source, destination, tag] = key;
    std::ostringstream text;
    text << "a message of " << sent << " bytes from rank " << source << " to rank " << destination << " with tag " << tag
         << " meets a receive of " << expected << " bytes";
    network.guarded([&] { throw std::runtime_error(text.str()); });
}

void on_arrival(void *argument) {
    auto *flow = static_cast<Flow *>(argument);
    flow->has_arrived = true;
    auto &inbox = flow->job.inboxes[flow->key];
    if (inbox.waiting.empty()) {
        inbox.arrived.push_back({flow->bytes, flow->tag});
        release(flow);
        return;
    }
    const SimaiJob::Waiting receive = inbox.waiting.front();
    inbox.waiting.pop_front();
    check_length(flow->job.network, flow->key, flow->bytes, receive.bytes);
    receive_data(receive.handler.argument)->flowTag = flow->tag;
    release(flow);
    receive.handler();
}

void on_sent(void *argument) {
    auto *flow = static_cast<Flow *>(argument);
    flow->is_sent = true;
    const Handler handler = flow->sent;
    static_cast<SendPacketEventHandlerData *>(handler.argument)->flowTag = flow->tag;
    release(flow);
    handler();
}

void post(void *argument) {
    auto *flow = static_cast<Flow *>(argument);
    const auto &[source, destination, tag] = flow->key;
    Network &network = flow->job.network;
    network.receive(source, destination, flow->bytes, tag, {on_arrival, flow});
    network.send(source, destination, flow->bytes, tag, {on_sent, flow});
}

} // namespace

int SimaiNetwork::sim_comm_size(AstraSim::sim_comm, int *) {
    return 0;
}

int SimaiNetwork::sim_finish() {
    job.finished = true;
    return 0;
}

double SimaiNetwork::sim_time_resolution() {
    return 0;
}

int SimaiNetwork::sim_init(AstraSim::AstraMemoryAPI *) {
    return 0;
}

AstraSim::timespec_t SimaiNetwork::sim_get_time() {
    return {AstraSim::NS, static_cast<double>(job.network.now_ps()) / 1e3};
}

void SimaiNetwork::sim_schedule(AstraSim::timespec_t delta, void (*fun_ptr)(void *), void *fun_arg) {
    const double ps = std::round(delta.time_val * 1e3);
    if (!(ps >= 0 && ps < 9.2e18)) throw std::runtime_error("a time that is negative or too long");
    job.network.schedule(static_cast<uint64_t>(ps), {fun_ptr, fun_arg});
}

int SimaiNetwork::sim_send(void *, uint64_t count, int, int dst, int tag, AstraSim::sim_request *request, void (*msg_handler)(void *),
                           void *fun_arg) {
    const auto source = static_cast<uint32_t>(rank), destination = static_cast<uint32_t>(dst);
    auto *flow = new Flow{job, {source, destination, tag}, count, request->flowTag, {msg_handler, fun_arg}};
    if (job.send_latency_ps == 0) {
        post(flow);
    } else {
        job.network.schedule(job.send_latency_ps, {post, flow});
    }
    return 0;
}

int SimaiNetwork::sim_recv(void *, uint64_t count, int, int src, int, AstraSim::sim_request *, void (*msg_handler)(void *),
                           void *fun_arg) {
    RecvPacketEventHadndlerData *data = receive_data(fun_arg);
    // The tag of the call is the channel; that of the sends is here.
    const SimaiJob::Key key{static_cast<uint32_t>(src), static_cast<uint32_t>(rank), data->flowTag.tag_id};
    auto &inbox = job.inboxes[key];
    if (!inbox.arrived.empty()) {
        const SimaiJob::Arrived message = inbox.arrived.front();
        inbox.arrived.pop_front();
        check_length(job.network, key, message.bytes, count);
        data->flowTag = message.tag;
        job.network.schedule(0, {msg_handler, fun_arg});
    } else if (inbox.waiting.empty()) {
        inbox.waiting.push_back({count, {msg_handler, fun_arg}});
    } else {
        delete data;
    }
    return 0;
}

} // namespace clearway
