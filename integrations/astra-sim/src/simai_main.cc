// SimAI with Clearway as its network. The options are those of SimAI's front ends; the configuration is a scenario of Clearway.
#include "simai_network.hh"

#include <astra-sim/system/Sys.hh>

#include <getopt.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

// SimAI 1.7 moved its model of NCCL to another repository.
#if __has_include("SimCCL/mock/MockNcclLog.h")
#include "SimCCL/mock/MockNcclLog.h"
#else
#include "astra-sim/system/MockNcclLog.h"
#endif

namespace {

constexpr const char *HELP =
    "SimAI with Clearway as its network\n"
    "  -w, --workload FILE        Workload, as for SimAI's other front ends\n"
    "  -n, --topology FILE        Topology: SimAI's file, or another one that Clearway reads; without it, that of the scenario\n"
    "  -c, --scenario FILE        Clearway scenario: a built-in name or a file; quickstart without it\n"
    "  -g, --gpus N               GPUs; without it, as many as the topology has hosts\n"
    "      --gpus-per-server N    GPUs of a server; without it, as in SimAI's topology file, or 8\n"
    "      --gpu-type TYPE        A100, A800, H100, H800 or H20; without it, as in SimAI's topology file, or A100\n"
    "  -t, --threads N            Threads of the network simulation; 0, as without it: automatic\n"
    "  -r, --result PREFIX        Prefix of SimAI's CSV files; without it, ./ncclFlowModel_\n"
    "      --set KEY=VALUE        Key of the scenario; may be repeated\n"
    "      --resolution-ns NS     Limit of the time by which a message starts too late; 10 without it, 0: the shortest delay of a link\n"
    "      --out FOLDER           Folder for Clearway's results\n"
    "  -h, --help                 This text\n"
    "Variables: AS_SEND_LAT, in ns, 6000 without it: from the call of a send to its message; SimAI's AS_LOG_LEVEL and AS_PXN_ENABLE\n";

struct Options {
    std::string workload, topology, scenario = "quickstart", result = "./ncclFlowModel_", out;
    std::string gpu_type = "A100";
    std::vector<std::string> overrides;
    uint32_t gpus = 0, gpus_per_server = 8, threads = 0;
    uint64_t resolution_ps = 10000, send_latency_ps = 6000000;
    bool help = false;
};

uint64_t whole_number(const std::string &name, const std::string &text, uint64_t least) {
    std::size_t end = 0;
    unsigned long number = 0;
    try {
        number = std::stoul(text, &end);
    } catch (const std::exception &) {
    }
    if (text.empty() || end != text.size() || text[0] == '-' || number < least || number > 1000000000) {
        throw std::runtime_error(name + " is \"" + text + "\"\n  fix: give a whole number from " + std::to_string(least) + " to 10^9");
    }
    return number;
}

GPUType gpu_type(const std::string &name) {
    if (name == "A100") return GPUType::A100;
    if (name == "A800") return GPUType::A800;
    if (name == "H100") return GPUType::H100;
    if (name == "H800") return GPUType::H800;
    if (name == "H20") return GPUType::H20;
    throw std::runtime_error("the GPU type is \"" + name + "\"\n  fix: --gpu-type A100, A800, H100, H800 or H20");
}

// Takes GPUs of a server and their type from the first line of a topology of SimAI, which has six words. Others know neither.
void read_topology(Options &options) {
    std::ifstream file(options.topology);
    if (!file) throw std::runtime_error("cannot open " + options.topology + "\n  fix: give a topology file to -n");
    std::string line;
    std::getline(file, line);
    std::istringstream words(line);
    std::vector<std::string> fields;
    for (std::string word; words >> word;) fields.push_back(word);
    if (fields.size() != 6) return;
    if (options.gpus_per_server == 0) options.gpus_per_server = whole_number(options.topology + ":1: gpus_per_server", fields[1], 1);
    if (options.gpu_type.empty()) options.gpu_type = fields[5];
}

Options options_of(int argc, char **argv) {
    enum { SET = 256, RESOLUTION, OUT, GPUS_PER_SERVER, GPU_TYPE };
    const option known[] = {{"workload", required_argument, nullptr, 'w'}, {"topology", required_argument, nullptr, 'n'},
                            {"scenario", required_argument, nullptr, 'c'}, {"gpus", required_argument, nullptr, 'g'},
                            {"threads", required_argument, nullptr, 't'},  {"result", required_argument, nullptr, 'r'},
                            {"set", required_argument, nullptr, SET},      {"resolution-ns", required_argument, nullptr, RESOLUTION},
                            {"out", required_argument, nullptr, OUT},      {"gpus-per-server", required_argument, nullptr, GPUS_PER_SERVER},
                            {"gpu-type", required_argument, nullptr, GPU_TYPE}, {"help", no_argument, nullptr, 'h'}, {}};
    Options options;
    options.gpus_per_server = 0;
    options.gpu_type = "";
    for (int name; (name = getopt_long(argc, argv, "w:n:c:g:t:r:h", known, nullptr)) != -1;) {
        const std::string value = optarg == nullptr ? "" : optarg;
        switch (name) {
            case 'w': options.workload = value; break;
            case 'n': options.topology = value; break;
            case 'c': options.scenario = value; break;
            case 'g': options.gpus = whole_number("-g", value, 1); break;
            case 't': options.threads = whole_number("-t", value, 0); break;
            case 'r': options.result = value; break;
            case SET: options.overrides.push_back(value); break;
            case RESOLUTION: options.resolution_ps = whole_number("--resolution-ns", value, 0) * 1000; break;
            case OUT: options.out = value; break;
            case GPUS_PER_SERVER: options.gpus_per_server = whole_number("--gpus-per-server", value, 1); break;
            case GPU_TYPE: options.gpu_type = value; break;
            case 'h': options.help = true; return options;
            default: throw std::runtime_error("an option is wrong; --help lists them");
        }
    }
    if (optind < argc) throw std::runtime_error(std::string("\"") + argv[optind] + "\" is no option; --help lists them");
    if (options.workload.empty()) throw std::runtime_error("-w is missing; --help lists the options");
    if (!options.topology.empty()) {
        read_topology(options);
        options.overrides.insert(options.overrides.begin(), "topology.file=" + options.topology);
    }
    if (options.gpus_per_server == 0) options.gpus_per_server = 8;
    if (options.gpu_type.empty()) options.gpu_type = "A100";
    if (const char *latency = std::getenv("AS_SEND_LAT")) options.send_latency_ps = whole_number("AS_SEND_LAT", latency, 0) * 1000;
    return options;
}

// Refuses collectives in NVSwitches, which SimAI simulates as ranks.
void check_algorithms() {
    const char *nvls = std::getenv("AS_NVLS_ENABLE");
    if (nvls != nullptr && std::string(nvls) == "1") {
        throw std::runtime_error("AS_NVLS_ENABLE is 1, but NVSwitches forward packets here, and are no ranks\n  fix: unset AS_NVLS_ENABLE");
    }
}

// Refuses a number of GPUs for which SimAI's groups do not come out even. It would divide by zero, or leave its arrays.
void check_groups(const Options &options, uint32_t gpus) {
    std::ifstream file(options.workload);
    if (!file) throw std::runtime_error("cannot open " + options.workload + "\n  fix: give a workload file to -w");
    std::string line;
    std::getline(file, line);
    std::istringstream words(line);
    uint64_t tensor = gpus, expert = 1;
    for (std::string word; words >> word;) {
        uint64_t *number = word == "model_parallel_NPU_group:" ? &tensor : word == "ep:" ? &expert : nullptr;
        if (number == nullptr) continue;
        std::string value;
        words >> value;
        *number = whole_number(options.workload + ":1: " + word, value, 1);
    }
    if (gpus % options.gpus_per_server != 0) {
        throw std::runtime_error(std::to_string(gpus) + " GPUs are no whole servers of " + std::to_string(options.gpus_per_server) +
                                 "\n  fix: give another -g or --gpus-per-server");
    }
    if (gpus % (tensor * expert) != 0) {
        throw std::runtime_error(options.workload + ":1: groups of " + std::to_string(tensor) + " GPUs with ep " + std::to_string(expert) +
                                 " do not divide " + std::to_string(gpus) + " GPUs\n  fix: give another -g, or another workload");
    }
}

// The system layers of all GPUs. SimAI destroys each when its workload has finished.
void create_systems(const Options &options, uint32_t gpus, clearway::SimaiJob &job) {
    std::vector<int> switches;
    for (uint32_t server = 0; server < gpus / options.gpus_per_server; server++) switches.push_back(gpus + server);
    const int nodes = static_cast<int>(gpus + switches.size());
    std::vector<AstraSim::Sys *> systems;
    for (uint32_t rank = 0; rank < gpus; rank++) {
        systems.push_back(new AstraSim::Sys(new clearway::SimaiNetwork(rank, job), nullptr, rank, 0, 1, {nodes}, {1}, "", options.workload, 1,
                                            1, 1, 1, 0, options.result, "test1", true, false, gpu_type(options.gpu_type),
                                            {static_cast<int>(gpus)}, switches, static_cast<int>(options.gpus_per_server)));
        systems.back()->nvswitch_id = switches[rank / options.gpus_per_server];
        systems.back()->num_gpus = static_cast<int>(gpus);
    }
    for (auto *system : systems) system->workload->fire();
}

std::string digest(const std::string &summary) {
    const std::string name = "\"digest\": \"";
    const std::size_t start = summary.find(name);
    if (start == std::string::npos) return "";
    const std::size_t first = start + name.size();
    return summary.substr(first, summary.find('"', first) - first);
}

void run(const Options &options) {
    check_algorithms();
    MockNcclLog::set_log_name("SimAI.log");
    clearway::NetworkOptions given;
    given.scenario = options.scenario;
    given.overrides = options.overrides;
    given.threads = options.threads;
    given.resolution_ps = options.resolution_ps;
    given.ranks = options.gpus;
    clearway::Network network(given);
    for (const auto &warning : network.warnings()) std::fprintf(stderr, "warning: %s\n", warning.c_str());
    const uint32_t gpus = options.gpus == 0 ? network.hosts() : options.gpus;
    check_groups(options, gpus);
    clearway::SimaiJob job(network, options.send_latency_ps);
    create_systems(options, gpus, job);
    network.run([](void *argument) { return static_cast<clearway::SimaiJob *>(argument)->finished; }, &job);
    const double finished_us = static_cast<double>(network.now_ps()) / 1e6;
    const std::string summary = network.finish(options.out);
    std::printf("finished at %.3f us, %.2f CPU s, digest %s\n", finished_us, static_cast<double>(std::clock()) / CLOCKS_PER_SEC,
                digest(summary).c_str());
}

} // namespace

int main(int argc, char **argv) try {
    const Options options = options_of(argc, argv);
    if (options.help) {
        std::fputs(HELP, stdout);
        return 0;
    }
    run(options);
    return 0;
} catch (const std::exception &error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
}
