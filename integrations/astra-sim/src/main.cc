// ASTRA-sim with Clearway as its network. The options are those of ASTRA-sim's other front ends; the network is a scenario of Clearway.
#include "astra_network.hh"

#include <astra-sim/common/Logging.hh>
#include <astra-sim/system/Sys.hh>
#include <cxxopts/cxxopts.hpp>
#include <json/json.hpp>
#include <remote_memory_backend/analytical/AnalyticalRemoteMemory.hh>

#include <cstdio>
#include <ctime>
#include <exception>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

cxxopts::Options options_of(const char *program) {
    cxxopts::Options options(program, "ASTRA-sim with Clearway as its network");
    const auto text = [] { return cxxopts::value<std::string>(); };
    options.set_width(110).add_options()
        ("workload-configuration", "Prefix of the execution traces", text())
        ("comm-group-configuration", "Communicator groups", text()->default_value("empty"))
        ("system-configuration", "System configuration", text())
        ("remote-memory-configuration", "Remote memory configuration", text())
        ("network-configuration", "Clearway scenario: a built-in name or a file", text())
        ("logical-topology-configuration", "JSON with \"logical-dims\", as for the ns-3 front end", text())
        ("set", "KEY=VALUE of the scenario; may be repeated", cxxopts::value<std::vector<std::string>>())
        ("resolution-ns", "Limit in ns of the time by which a message starts too late; 0: the shortest delay of a link",
            cxxopts::value<double>()->default_value("10"))
        ("completion", "When a message is received: \"received\", or \"acknowledged\" as in the ns-3 back end",
            text()->default_value("received"))
        ("threads", "Threads of the network simulation; 0: automatic", cxxopts::value<uint32_t>()->default_value("0"))
        ("out", "Folder for Clearway's results", text()->default_value(""))
        ("logging-configuration", "Logging configuration", text()->default_value("empty"))
        ("logging-folder", "Logging folder", text()->default_value("log"))
        ("num-queues-per-dim", "Number of queues per dimension", cxxopts::value<int>()->default_value("1"))
        ("comm-scale", "Communication scale", cxxopts::value<double>()->default_value("1"))
        ("injection-scale", "Injection scale", cxxopts::value<double>()->default_value("1"))
        ("rendezvous-protocol", "Whether to enable the rendezvous protocol", cxxopts::value<bool>()->default_value("false"))
        ("help", "This text");
    return options;
}

// Sizes of the dimensions: texts or numbers.
std::vector<int> logical_dims(const std::string &path) {
    std::ifstream file(path);
    if (!file) throw std::runtime_error("cannot open " + path);
    const auto document = nlohmann::json::parse(file);
    if (!document.contains("logical-dims")) throw std::runtime_error(path + " has no \"logical-dims\"");
    std::vector<int> dims;
    for (const auto &size : document["logical-dims"]) {
        dims.push_back(size.is_string() ? std::stoi(size.get<std::string>()) : size.get<int>());
        if (dims.back() < 1) throw std::runtime_error(path + ": a dimension has no ranks");
    }
    if (dims.empty()) throw std::runtime_error(path + ": \"logical-dims\" is empty");
    return dims;
}

clearway::NetworkOptions network_options(const cxxopts::ParseResult &given, uint32_t ranks) {
    clearway::NetworkOptions options;
    options.scenario = given["network-configuration"].as<std::string>();
    if (given.count("set")) options.overrides = given["set"].as<std::vector<std::string>>();
    options.threads = given["threads"].as<uint32_t>();
    const double resolution = given["resolution-ns"].as<double>();
    if (!(resolution >= 0 && resolution < 1e9)) throw std::runtime_error("--resolution-ns is not between 0 and 10^9");
    options.resolution_ps = static_cast<uint64_t>(resolution * 1000);
    options.ranks = ranks;
    const auto completion = given["completion"].as<std::string>();
    if (completion != "received" && completion != "acknowledged") {
        throw std::runtime_error("--completion is neither \"received\" nor \"acknowledged\"");
    }
    options.receive_at_acknowledgement = completion == "acknowledged";
    return options;
}

void run(const cxxopts::ParseResult &given) {
    const auto text = [&](const char *name) { return given[name].as<std::string>(); };
    AstraSim::LoggerFactory::init(text("logging-configuration"), text("logging-folder"));
    const std::vector<int> dims = logical_dims(text("logical-topology-configuration"));
    uint32_t ranks = 1;
    for (const int size : dims) ranks *= static_cast<uint32_t>(size);
    const std::vector<int> queues(dims.size(), given["num-queues-per-dim"].as<int>());

    clearway::Network network(network_options(given, ranks));
    for (const auto &warning : network.warnings()) std::fprintf(stderr, "warning: %s\n", warning.c_str());
    clearway::Job job(network, ranks);
    Analytical::AnalyticalRemoteMemory memory(text("remote-memory-configuration"));
    std::vector<std::unique_ptr<clearway::AstraNetwork>> networks;
    std::vector<std::unique_ptr<AstraSim::Sys>> systems;
    for (uint32_t rank = 0; rank < ranks; rank++) {
        networks.push_back(std::make_unique<clearway::AstraNetwork>(rank, job));
        systems.push_back(std::make_unique<AstraSim::Sys>(rank, text("workload-configuration"), text("comm-group-configuration"),
                                                          text("system-configuration"), &memory, networks.back().get(), dims, queues,
                                                          given["injection-scale"].as<double>(), given["comm-scale"].as<double>(),
                                                          given["rendezvous-protocol"].as<bool>()));
    }
    for (const auto &system : systems) system->workload->fire();
    network.run([](void *argument) { return static_cast<clearway::Job *>(argument)->unfinished == 0; }, &job);
    const double finished_us = static_cast<double>(network.now_ps()) / 1e6;
    const std::string summary = network.finish(text("out"));
    const auto document = nlohmann::json::parse(summary);
    std::printf("finished at %.3f us, %.2f CPU s, digest %s\n", finished_us, static_cast<double>(std::clock()) / CLOCKS_PER_SEC,
                document["digest"].get<std::string>().c_str());
    // ASTRA-sim's destructors free the plans of communicator groups twice; its ns-3 front end does not call them either.
    for (auto &system : systems) system.release();
    AstraSim::LoggerFactory::shutdown();
}

} // namespace

int main(int argc, char **argv) try {
    auto options = options_of(argv[0]);
    const auto given = options.parse(argc, argv);
    if (given.count("help")) {
        std::puts(options.help().c_str());
        return 0;
    }
    for (const char *needed : {"workload-configuration", "system-configuration", "remote-memory-configuration", "network-configuration",
                               "logical-topology-configuration"}) {
        if (!given.count(needed)) throw std::runtime_error(std::string("--") + needed + " is missing; --help lists the options");
    }
    run(given);
    return 0;
} catch (const std::exception &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
}
