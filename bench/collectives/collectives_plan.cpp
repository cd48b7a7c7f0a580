#include "bench/collectives/collectives_plan.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/error.hpp"
#include "base/process/self_program.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "bench/collectives/raw_nccl.hpp"
#include "bench/tools/gradient_sets.hpp"
#include "bench/tools/options.hpp"

namespace muster {

namespace po = boost::program_options;
namespace fs = std::filesystem;

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

void read_contenders(collectives_plan& what, po::variables_map const& values) {
    std::vector<std::string> backends{"shm", "mpi"}, peers{"openmpi", "mpich", "gloo"};
    if (nccl_lacks().empty()) {
        backends.emplace_back("nccl");
        peers.emplace_back("raw-nccl");
    }
    what.backends = choose(values["backend"].as<std::string>(), {"shm", "mpi", "hierarchical", "nccl"}, backends, "--backend");
    what.peers = choose(values["peers"].as<std::string>(), {"openmpi", "mpich", "gloo", "raw-nccl"}, peers, "--peers");
}

void read_memory(collectives_plan& what, std::string const& text) {
    if (text != "plain" && text != "allocated" && text != "both")
        throw error(errc::usage, fmt::format("--memory {}: no such choice; give plain, allocated or both", text));
    what.plain = text != "allocated";
    what.allocated = text != "plain";
}

void read_sizes(collectives_plan& what, po::variables_map const& values) {
    if (values.count("gradients") != 0) {
        auto const set = gradients_of(values["gradients"].as<std::string>());
        what.gradients =
            fmt::format("{}: {} tensors, {} parameters ({})", set.name, set.elements.size(), set.parameters(), set.source);
        what.gradient_elements = set.elements;
        return;
    }
    auto const least = parse_bytes(values["min"].as<std::string>(), "--min"),
               most = parse_bytes(values["max"].as<std::string>(), "--max");
    int const factor = values["factor"].as<int>();
    if (factor < 2) throw error(errc::usage, fmt::format("--factor is {}, expected at least 2", factor));
    if (least < 1 || most < least) throw error(errc::usage, "--min is below 1 byte, or --max below --min; give 1 <= min <= max");
    for (auto bytes = least; bytes < most; bytes *= static_cast<unsigned>(factor)) what.sizes.push_back(bytes);
    what.sizes.push_back(most);
}

void read_cases(collectives_plan& what, po::variables_map const& values) {
    auto const word = [&](char const* name) { return values[name].as<std::string>(); };
    int const root = values["root"].as<int>();
    int const least_ranks = *std::min_element(what.ranks.begin(), what.ranks.end());
    if (root < 0 || root >= least_ranks)
        throw error(errc::usage, fmt::format("--root is {}, expected a rank from 0 to {}", root, least_ranks - 1));
    what.cases = cases_of(parse_kinds(word("op")), parse_types(word("type")), parse_reductions(word("reduction")), root);
    if (what.cases.empty())
        throw error(errc::usage, fmt::format("--reduction {} --type {}: integers have no average; give --reduction sum",
                                             word("reduction"), word("type")));
}

}  // namespace

collectives_plan read_collectives_plan(std::vector<std::string> const& args, bool& wants_help) {
    po::options_description known;
    auto const text = [](char const* usual) { return po::value<std::string>()->default_value(usual); };
    known.add_options()("ranks", text("2"))("op", text("allreduce"))("type,d", text("f32"))("reduction,o", text("sum"))(
        "root,r", po::value<int>()->default_value(0))("backend", text("all"))("peers", text("all"))("min,b", text("8"))(
        "max,e", text("64MiB"))("factor,f", po::value<int>()->default_value(4))("gradients", po::value<std::string>())(
        "memory", text("both"))("repeats", po::value<int>()->default_value(7))(
        "pretend-nodes", po::value<int>()->default_value(1))("python", text("/usr/bin/python3"))(
        "muster", po::value<std::string>())("json", text(""))("help,h", po::bool_switch());
    auto const values = read_options(args, known);
    collectives_plan what;
    wants_help = values["help"].as<bool>();
    if (wants_help) return what;
    what.self = self_program().string();
    what.muster = values.count("muster") != 0 ? values["muster"].as<std::string>()
                                              : (fs::path(what.self).parent_path() / "muster").string();
    if (::access(what.muster.c_str(), X_OK) != 0)
        throw error(errc::not_found, fmt::format("no launcher at {}; give --muster PATH", what.muster));
    what.python = values["python"].as<std::string>();
    what.json = values["json"].as<std::string>();
    what.repeats = values["repeats"].as<int>();
    if (what.repeats < 1) throw error(errc::usage, fmt::format("--repeats is {}, expected at least 1", what.repeats));
    what.nodes = values["pretend-nodes"].as<int>();
    if (what.nodes < 1) throw error(errc::usage, fmt::format("--pretend-nodes is {}, expected at least 1", what.nodes));
    what.ranks = parse_list(values["ranks"].as<std::string>(), "--ranks", 1, 1024);
    read_contenders(what, values);
    read_memory(what, values["memory"].as<std::string>());
    read_cases(what, values);
    read_sizes(what, values);
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
