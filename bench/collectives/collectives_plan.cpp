#include "bench/collectives/collectives_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/process/this_process.hpp"
#include "base/text.hpp"
#include "bench/collectives/raw_nccl.hpp"
#include "bench/tools/gradient_sets.hpp"
#include "bench/tools/options.hpp"

namespace muster {

namespace {

/// "all" is `usual`.
std::vector<std::string> choose(std::string const& text, std::vector<std::string> const& known,
                                std::vector<std::string> const& usual, char const* option) {
    if (text == "all") return usual;
    std::vector<std::string> chosen;
    if (text == "none") return chosen;
    for (auto const piece : split(text, ',')) {
        std::string const word(trim(piece));
        if (std::find(known.begin(), known.end(), word) == known.end())
            throw error(errc::usage, fmt::format("{} {}: no such choice; give {}, all or none", option, word, join(known, ", ")));
        if (std::find(chosen.begin(), chosen.end(), word) == chosen.end()) chosen.push_back(word);
    }
    return chosen;
}

void read_contenders(collectives_plan& what, given_options const& given) {
    std::vector<std::string> backends{"shm", "mpi"}, peers{"openmpi", "mpich", "impi", "oneccl", "gloo"};
    if (nccl_lacks().empty()) {
        backends.emplace_back("nccl");
        peers.emplace_back("raw-nccl");
    }
    what.backends = choose(given.text("backend"), {"shm", "mpi", "tcp", "hierarchical", "nccl"}, backends, "--backend");
    what.peers = choose(given.text("peers"), {"openmpi", "mpich", "impi", "oneccl", "gloo", "raw-nccl"}, peers, "--peers");
}

void read_memory(collectives_plan& what, std::string const& text) {
    if (text != "plain" && text != "allocated" && text != "both")
        throw error(errc::usage, fmt::format("--memory {}: no such choice; give plain, allocated or both", text));
    what.plain = text != "allocated";
    what.allocated = text != "plain";
}

void read_sizes(collectives_plan& what, given_options const& given) {
    if (given.has("gradients")) {
        auto const set = gradients_of(given.text("gradients"));
        what.gradients =
            fmt::format("{}: {} tensors, {} parameters ({})", set.name, set.elements.size(), set.parameters(), set.source);
        what.gradient_elements = set.elements;
        return;
    }
    auto const least = parse_bytes(given.text("min"), "--min"), most = parse_bytes(given.text("max"), "--max");
    int const factor = count_of(given, "factor", 2);
    if (least < 1 || most < least) throw error(errc::usage, "--min is below 1 byte, or --max below --min; give 1 <= min <= max");
    for (auto bytes = least; bytes < most; bytes *= static_cast<unsigned>(factor)) what.sizes.push_back(bytes);
    what.sizes.push_back(most);
}

void read_cases(collectives_plan& what, given_options const& given) {
    int const least_ranks = *std::min_element(what.ranks.begin(), what.ranks.end());
    auto const root = static_cast<int>(given.integer("root", 0, least_ranks - 1));
    what.cases =
        cases_of(parse_kinds(given.text("op")), parse_types(given.text("type")), parse_reductions(given.text("reduction")), root);
    if (what.cases.empty())
        throw error(errc::usage, fmt::format("--reduction {} --type {}: integers have no average; give --reduction sum",
                                             given.text("reduction"), given.text("type")));
}

}  // namespace

collectives_plan read_collectives_plan(given_options const& given) {
    collectives_plan what;
    what.self = self_program().string();
    what.muster = launcher_of(given);
    what.python = given.text("python");
    what.json = given.text("json");
    what.csv = given.text("csv");
    what.time = parse_duration(given.text("time"), "--time");
    what.pair = given.text("pair");
    what.least = given.text("min");
    what.most = given.text("max");
    what.factor = given.text("factor");
    what.repeats = count_of(given, "repeats");
    what.nodes = count_of(given, "pretend-nodes");
    what.ranks = parse_list(given.text("ranks"), "--ranks", 1, 1024);
    read_contenders(what, given);
    read_memory(what, given.text("memory"));
    read_cases(what, given);
    read_sizes(what, given);
    return what;
}

std::vector<std::vector<std::size_t>> tensor_sets(collectives_plan const& what, collective_case const& of, int ranks) {
    std::vector<std::vector<std::size_t>> sets;
    if (!what.gradient_elements.empty()) {
        auto& tensors = sets.emplace_back();
        for (auto const count : what.gradient_elements) tensors.push_back(fitting_bytes(of, count * size_of(of.type), ranks));
        return sets;
    }
    for (auto const bytes : what.sizes) {
        auto const fitting = fitting_bytes(of, bytes, ranks);
        if (sets.empty() || sets.back().front() != fitting) sets.push_back({fitting});
    }
    return sets;
}

}  // namespace muster
