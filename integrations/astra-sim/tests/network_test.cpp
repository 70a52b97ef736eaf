// Tests of `network`, without ASTRA-sim: matching of sends and receives, times and order of handlers, and what is refused.
#include "../src/network.hh"

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

#define REQUIRE(condition) \
    do { \
        if (!(condition)) { \
            std::fprintf(stderr, "line %d: %s does not hold\n", __LINE__, #condition); \
            std::exit(1); \
        } \
    } while (0)

// A function object as a handler; it lives until the end of the program.
clearway::Handler handler(std::function<void()> work) {
    auto *kept = new std::function<void()>(std::move(work));
    return {[](void *argument) { (*static_cast<std::function<void()> *>(argument))(); }, kept};
}

clearway::NetworkOptions options(uint64_t resolution_ps, uint32_t ranks = 8) {
    clearway::NetworkOptions options;
    options.scenario = "quickstart";
    options.overrides = {"topology.hosts=8", "topology.hosts-per-leaf=4"};
    options.threads = 1;
    options.resolution_ps = resolution_ps;
    options.ranks = ranks;
    return options;
}

void run_all(clearway::Network &network, const int &left) {
    network.run([](void *left) { return *static_cast<const int *>(left) == 0; }, const_cast<int *>(&left));
}

template <typename Work> std::string refusal(Work work) {
    try {
        work();
    } catch (const std::runtime_error &error) {
        return error.what();
    }
    return "";
}

// The k-th receive of a key gets the k-th send, whether it is called before the send, before the arrival, or after it.
void matching() {
    clearway::Network network(options(0));
    int left = 4;
    std::vector<int> order;
    const auto received = [&](int number) {
        return handler([&, number] {
            order.push_back(number);
            left--;
        });
    };
    network.receive(0, 5, 1000, 7, received(1));
    network.send(0, 5, 1000, 7, {});
    network.send(0, 5, 2000, 7, {});
    network.receive(0, 5, 2000, 7, received(2));
    network.send(0, 5, 3000, 7, {});
    network.send(0, 5, 500, 8, {});
    // Long after all have arrived.
    network.schedule(100'000'000, handler([&] {
        REQUIRE(order == std::vector<int>({1, 2}));
        network.receive(0, 5, 500, 8, received(4));
        network.receive(0, 5, 3000, 7, received(3));
        REQUIRE(order.size() == 2);
    }));
    run_all(network, left);
    REQUIRE(order == std::vector<int>({1, 2, 4, 3}));
    REQUIRE(network.now_ps() == 100'000'000);
}

// Handlers see their exact times in ascending order, also timers that fall between an event and the end of its round.
void times() {
    for (const uint64_t resolution : {UINT64_C(0), UINT64_C(10'000)}) {
        clearway::Network network(options(resolution));
        int left = 30;
        uint64_t last = 0, received = 0;
        const auto pass = [&] {
            REQUIRE(network.now_ps() >= last);
            last = network.now_ps();
        };
        std::function<void(uint32_t)> hop = [&](uint32_t rank) {
            const uint32_t next = (rank + 3) % 8;
            network.receive(rank, next, 4000, 1, handler([&, next] {
                pass();
                received = network.now_ps();
                network.schedule(7'000, handler([&, next] {
                    pass();
                    REQUIRE(network.now_ps() == received + 7'000);
                    if (--left > 0) hop(next);
                }));
            }));
            network.send(rank, next, 4000, 1, handler(pass));
        };
        hop(0);
        run_all(network, left);
    }
}

// With a finer resolution a chain of messages is faster, by at most a link's delay for each of them.
void resolution() {
    const auto finished = [](uint64_t resolution) {
        clearway::Network network(options(resolution));
        int left = 20;
        std::function<void()> hop = [&] {
            network.receive(0, 5, 100, 1, handler([&] {
                if (--left > 0) hop();
            }));
            network.send(0, 5, 100, 1, {});
        };
        hop();
        run_all(network, left);
        return network.now_ps();
    };
    const uint64_t coarse = finished(0), fine = finished(10'000), finer = finished(1'000);
    REQUIRE(finer <= fine && fine <= finer + 20 * 10'000);
    REQUIRE(coarse > fine && coarse <= finer + UINT64_C(20) * 2'000'000);
}

// Receives at the acknowledgement end later, by the way back, and after the handler of the send.
void acknowledgement() {
    const auto received_at = [](bool acknowledged) {
        auto given = options(0);
        given.receive_at_acknowledgement = acknowledged;
        clearway::Network network(given);
        int left = 2;
        std::string order;
        uint64_t received = 0;
        network.send(0, 5, 4000, 1, handler([&] {
            order += 's';
            left--;
        }));
        network.receive(0, 5, 4000, 1, handler([&] {
            order += 'r';
            received = network.now_ps();
            left--;
        }));
        run_all(network, left);
        REQUIRE(order == (acknowledged ? "sr" : "rs"));
        REQUIRE(!acknowledged || received == network.now_ps());
        return received;
    };
    // Four links of 1 us each.
    REQUIRE(received_at(true) > received_at(false) + 4'000'000);
}

void refusals() {
    REQUIRE(refusal([] { clearway::Network network(options(0, 9)); }).find("8 hosts for 9 ranks") != std::string::npos);
    auto unknown = options(0);
    unknown.scenario = "no-such-scenario";
    REQUIRE(refusal([&] { clearway::Network network(unknown); }).find("no-such-scenario") != std::string::npos);

    clearway::Network network(options(0));
    network.send(1, 2, 100, 3, {});
    const std::string sizes = refusal([&] { network.receive(1, 2, 50, 3, {}); });
    REQUIRE(sizes.find("a message of 100 bytes from rank 1 to rank 2 with tag 3 meets a receive of 50 bytes") != std::string::npos);

    // A handler whose caller catches everything does not hide the error.
    clearway::Network caught(options(0));
    int left = 1;
    caught.schedule(1000, handler([&] { refusal([&] { caught.send(1, 1, 100, 3, {}); }); }));
    caught.schedule(2000, handler([&] { left = 0; }));
    REQUIRE(refusal([&] { run_all(caught, left); }).find("a message from host 1 to itself") != std::string::npos);
    REQUIRE(caught.now_ps() == 1000 && left == 1);

    clearway::Network waiting(options(0));
    waiting.receive(2, 3, 50, 4, {});
    const std::string unfinished = refusal([&] { run_all(waiting, left); });
    REQUIRE(unfinished.find("1 receives without a message") != std::string::npos);
    REQUIRE(unfinished.find("from rank 2 to rank 3 with tag 4") != std::string::npos);
}

} // namespace

int main() {
    matching();
    times();
    resolution();
    acknowledgement();
    refusals();
    std::puts("the network behaves as documented");
    return 0;
}
