#include "network.hh"

#include <algorithm>
#include <sstream>
#include <stdexcept>

namespace clearway {

namespace {

void check(clearway_status status) {
    if (status != CLEARWAY_STATUS_OK) throw std::runtime_error(clearway_last_error());
}

std::string named(uint32_t source, uint32_t destination, int tag) {
    std::ostringstream text;
    text << "from rank " << source << " to rank " << destination << " with tag " << tag;
    return text.str();
}

} // namespace

Network::Network(const NetworkOptions &given) : receive_at_acknowledgement(given.receive_at_acknowledgement) {
    clearway_options options{};
    options.interface_version = CLEARWAY_INTERFACE_VERSION;
    options.scenario = given.scenario.c_str();
    options.threads = given.threads;
    options.resolution_ps = given.resolution_ps;
    std::vector<const char *> overrides;
    for (const auto &override : given.overrides) overrides.push_back(override.c_str());
    options.overrides = overrides.data();
    options.override_count = overrides.size();
    clearway_simulation *created = nullptr;
    check(clearway_create(&options, &created));
    simulation.reset(created);
    check(clearway_hosts(created, &host_count));
    if (host_count < given.ranks) {
        std::ostringstream text;
        text << given.scenario << " has " << host_count << " hosts for " << given.ranks
             << " ranks\n  fix: give the topology more hosts, or the job fewer ranks";
        throw std::runtime_error(text.str());
    }
}

void Network::schedule(uint64_t delay_ps, Handler handler) {
    timers.push({now + delay_ps, scheduled++, handler});
}

void Network::send(uint32_t source, uint32_t destination, uint64_t bytes, int tag, Handler handler) {
    const Key key{source, destination, tag};
    const std::size_t place = messages.size();
    messages.push_back({key, bytes, handler, {}, false, false});
    under_way++;
    auto &waiting = unmatched[key];
    if (waiting.receives.empty()) {
        waiting.messages.push_back(place);
    } else {
        const auto [expected, receive] = waiting.receives.front();
        waiting.receives.pop_front();
        match(messages[place], expected, receive);
    }
    guarded([&] { post(place); });
}

void Network::post(std::size_t place) {
    const auto &[source, destination, tag] = messages[place].key;
    clearway_message message{};
    message.src = source;
    message.dst = destination;
    // The simulation has no empty messages; one of a single byte has the same delay but for the byte.
    message.bytes = std::max<uint64_t>(messages[place].bytes, 1);
    message.tag = static_cast<uint32_t>(tag);
    uint32_t number = 0;
    check(clearway_post(simulation.get(), &message, &number));
    numbers.resize(std::max<std::size_t>(numbers.size(), number + std::size_t{1}));
    numbers[number] = place;
}

void Network::receive(uint32_t source, uint32_t destination, uint64_t bytes, int tag, Handler handler) {
    auto &waiting = unmatched[{source, destination, tag}];
    if (waiting.messages.empty()) {
        waiting.receives.emplace_back(bytes, handler);
        return;
    }
    Message &message = messages[waiting.messages.front()];
    waiting.messages.pop_front();
    match(message, bytes, handler);
    // A handler may receive again, so that one for a message that is there already does not run inside this call.
    if (message.has_arrived) schedule(0, handler);
}

void Network::match(Message &message, uint64_t bytes, Handler handler) {
    if (message.bytes != bytes) {
        const auto &[source, destination, tag] = message.key;
        std::ostringstream text;
        text << "a message of " << message.bytes << " bytes " << named(source, destination, tag) << " meets a receive of " << bytes
             << " bytes";
        guarded([&] { throw std::runtime_error(text.str()); });
    }
    message.received = handler;
    message.has_receive = true;
}

void Network::deliver(const clearway_event &event) {
    const std::size_t place = numbers[event.message];
    if (event.kind == CLEARWAY_EVENT_KIND_RECEIVED) {
        if (!receive_at_acknowledgement) arrive(place);
        return;
    }
    under_way--;
    // The handler may send, which moves the messages.
    const Handler sent = messages[place].sent;
    sent();
    if (receive_at_acknowledgement) arrive(place);
}

void Network::arrive(std::size_t place) {
    Message &message = messages[place];
    message.has_arrived = true;
    const Handler received = message.has_receive ? message.received : Handler{};
    received();
}

// Simulates until something happens to a message, or the next timer is due.
void Network::step() {
    const uint64_t limit = timers.empty() ? CLEARWAY_NEVER : timers.top().time_ps;
    if (limit > simulated) {
        uint64_t next = 0;
        check(clearway_next_event(simulation.get(), &next));
        if (next == CLEARWAY_NEVER && timers.empty()) throw std::runtime_error(unfinished());
        check(clearway_run_until_event(simulation.get(), limit));
        check(clearway_now(simulation.get(), &simulated));
    }
    for (;;) {
        clearway_event event;
        int32_t taken = 0;
        check(clearway_take_event(simulation.get(), &event, &taken));
        if (!taken) return;
        events.push_back(event);
    }
}

// Runs the handlers of all events and timers up to the time at which the simulation stands, and of timers that these set until then.
void Network::run_handlers() {
    for (;;) {
        if (failure) std::rethrow_exception(failure);
        const bool has_timer = !timers.empty() && timers.top().time_ps <= simulated;
        if (!events.empty() && !(has_timer && timers.top().time_ps < events.front().time_ps)) {
            const clearway_event event = events.front();
            events.pop_front();
            now = event.time_ps;
            deliver(event);
        } else if (has_timer) {
            const Timer timer = timers.top();
            timers.pop();
            now = timer.time_ps;
            timer.handler();
        } else {
            return;
        }
    }
}

void Network::run(bool (*is_done)(void *), void *argument) {
    run_handlers();
    while (!is_done(argument)) {
        step();
        run_handlers();
    }
}

std::string Network::unfinished() const {
    std::size_t sends = 0, receives = 0;
    std::string first;
    for (const auto &[key, waiting] : unmatched) {
        const auto &[source, destination, tag] = key;
        if (first.empty() && !waiting.receives.empty()) {
            first = "; the first receive waits for a message " + named(source, destination, tag);
        }
        sends += waiting.messages.size();
        receives += waiting.receives.size();
    }
    std::ostringstream text;
    text << "nothing is left to happen, but the job has not finished: " << receives << " receives without a message, " << sends
         << " messages without a receive, " << under_way << " messages not acknowledged" << first;
    return text.str();
}

std::string Network::finish(const std::string &folder) {
    check(clearway_finish(simulation.get(), folder.empty() ? nullptr : folder.c_str()));
    const char *summary = nullptr;
    check(clearway_summary(simulation.get(), &summary));
    return summary;
}

std::vector<std::string> Network::warnings() const {
    std::vector<std::string> found;
    for (std::size_t index = 0;; index++) {
        const char *text = nullptr;
        check(clearway_warning(simulation.get(), index, &text));
        if (text == nullptr) return found;
        found.emplace_back(text);
    }
}

} // namespace clearway
