// The program `muster-bench`: calls the subcommand that the first word names.
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "bench/collectives/collectives_command.hpp"
#include "bench/collectives/collectives_rank.hpp"
#include "bench/exchange/exchange_command.hpp"
#include "bench/exchange/gpu_exchange_command.hpp"
#include "bench/exchange/gpu_kernels_command.hpp"
#include "bench/exchange/wire_command.hpp"
#include "bench/launching/launch_command.hpp"
#include "bench/loading/loader_command.hpp"
#include "bench/scaling/compare_command.hpp"
#include "bench/scaling/report_command.hpp"
#include "bench/scaling/scale_command.hpp"
#include "bench/training/train_command.hpp"

namespace {

using namespace muster;

struct subcommand {
    char const* name;
    char const* what;
    int (*run)(std::vector<std::string> const& args, environment const& variables);
};

constexpr subcommand subcommands[]{
    {"train", "train the MNIST network, data-parallel, timed", train_command},
    {"scale", "train on several numbers of ranks: table, results, report", scale_command},
    {"compare", "one rank against PyTorch, one thread each", compare_command},
    {"exchange", "negotiation and fusion, beside one call a tensor", exchange_command},
    {"launch", "start ranks by muster, mpirun and Hydra, taking turns", launch_command},
    {"wire", "allreduces with f16 or bf16 on the wire", wire_command},
    {"loader", "shuffled samples out of memory, beside memcpy", loader_command},
    {"collectives", "collectives beside Open MPI, MPICH, Gloo and NCCL", collectives_command},
    {"gpu-exchange", "gradients on GPUs through the exchange, beside NCCL alone", gpu_exchange_command},
    {"gpu-kernels", "packing and converting tensors on a GPU, beside the driver's copies", gpu_kernels_command},
    {"report", "table, JSON and HTML page of a scaling study", report_command},
    {"collectives-rank", nullptr, collectives_rank},  // started by collectives
};

void print_help(std::FILE* to) {
    fmt::print(to,
               "muster-bench {}: measure training, scaling, launching, loading\n\n  muster-bench scale --ranks 1,2,4 --data "
               "fashion-mnist.h5\n\n"
               "commands (each has --help)\n",
               version());
    for (auto const& s : subcommands)
        if (s.what != nullptr) fmt::print(to, "  {:12}{}\n", s.name, s.what);
}

int dispatch(std::vector<std::string> const& words, environment const& variables) {
    if (words.empty()) {
        print_help(stderr);
        return 2;
    }
    if (words.front() == "--help" || words.front() == "-h" || words.front() == "help") {
        print_help(stdout);
        return 0;
    }
    if (words.front() == "--version") {
        fmt::print("muster-bench {}\n", version());
        return 0;
    }
    std::vector<std::string> names;
    for (auto const& s : subcommands) {
        if (words.front() == s.name) return s.run({words.begin() + 1, words.end()}, variables);
        names.emplace_back(s.name);
    }
    auto const near = nearest(words.front(), names);
    throw error(errc::usage, fmt::format("no command '{}'{}; muster-bench --help lists them", words.front(),
                                         near ? fmt::format(", did you mean '{}'?", *near) : ""));
}

}  // namespace

int main(int argc, char** argv) try {
    auto const variables = muster::environment::capture();
    muster::init_log(variables.get_or("MUSTER_LOG", "warning"));
    return dispatch({argv + 1, argv + argc}, variables);
} catch (muster::error const& e) {
    fmt::print(stderr, "muster-bench: error: {}\n", e.what());
    return muster::exit_code(e.code());
} catch (std::exception const& e) {
    fmt::print(stderr, "muster-bench: error: {}\n", e.what());
    return muster::exit_code(muster::errc::internal);
}
