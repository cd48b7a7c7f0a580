#include "bench/collectives/collectives_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/process/this_process.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
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
            throw_error(errc::usage, "{} {}: no such choice; give {}, all or none", option, word, join(known, ", "));
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

void read_memory(collectives_plan& what, given_options const& given) {
    auto const text = what.in_job && !given.has("memory") ? "plain" : given.text("memory");
    if (text != "plain" && text != "allocated" && (text != "both" || what.in_job))
        throw_error(errc::usage, "--memory {}: no such choice{}; give plain{}", text, what.in_job ? " of a rank" : "",
                    what.in_job ? " or allocated" : ", allocated or both");
    what.plain = text != "allocated";
    what.allocated = text != "plain";
}

void read_pair(collectives_plan& what, given_options const& given) {
    auto const text = given.text("pair");
    int const least_ranks = *std::ranges::min_element(what.ranks);
    what.messages = text != "none" && what.gradients.empty() && *std::ranges::max_element(what.ranks) > 1;
    if (text == "none" || text.empty()) return;
    if (least_ranks < 2)
        throw_error(errc::usage, "--pair {}: one rank runs, which has no other; start it with muster run -n 2, or give --ranks 2",
                    text);
    auto const two = parse_list(text, "--pair", 0, least_ranks - 1);
    if (two.size() != 2 || two[0] == two[1])
        throw_error(errc::usage, "--pair {}: not two ranks; give two different ones, such as 0,{}", text, least_ranks - 1);
    what.pair = {two[0], two[1]};
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
    if (given.text("op") == "none") {
        if (!what.messages) throw error(errc::usage, "nothing to measure: give a collective with --op, or two ranks with --pair");
        return;
    }
    what.cases =
        cases_of(parse_kinds(given.text("op")), parse_types(given.text("type")), parse_reductions(given.text("reduction")), root);
    if (what.cases.empty())
        throw_error(errc::usage, "--reduction {} --type {}: integers have no average; give --reduction sum",
                    given.text("reduction"), given.text("type"));
}

}  // namespace

collectives_plan read_collectives_plan(given_options const& given, std::optional<int> job_ranks) {
    collectives_plan what;
    what.in_job = job_ranks.has_value();
    what.json = given.text("json");
    what.csv = given.text("csv");
    what.repeats = count_of(given, "repeats");
    if (what.in_job) {
        for (auto const* name : {"ranks", "peers", "pretend-nodes", "python", "muster"})
            if (given.has(name))
                throw_error(errc::usage,
                            "--{} is for the command that starts the ranks itself; leave it out under muster run, or leave out "
                            "muster run",
                            name);
        what.ranks = {*job_ranks};
    } else {
        what.self = self_program().string();
        what.muster = launcher_of(given);
        what.python = given.text("python");
        what.nodes = count_of(given, "pretend-nodes");
        what.ranks = parse_list(given.text("ranks"), "--ranks", 1, 1024);
        read_contenders(what, given);
    }
    what.time = parse_duration(what.in_job && !given.has("time") ? "30s" : given.text("time"), "--time");
    read_memory(what, given);
    read_sizes(what, given);
    read_pair(what, given);
    read_cases(what, given);
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

namespace {

using kind = collective::kind;

template <typename Value>
struct spelling {
    std::string_view word;
    Value value;
    bool alias = false;  ///< another word for it, not listed
};

constexpr std::array kinds{spelling<kind>{"allreduce", kind::allreduce}, spelling<kind>{"allgather", kind::allgather},
                           spelling<kind>{"broadcast", kind::broadcast}, spelling<kind>{"reducescatter", kind::reducescatter},
                           spelling<kind>{"alltoall", kind::alltoall}};

constexpr std::array types{
    spelling<dtype>{"f32", dtype::f32},         spelling<dtype>{"f64", dtype::f64},
    spelling<dtype>{"f16", dtype::f16},         spelling<dtype>{"bf16", dtype::bf16},
    spelling<dtype>{"i32", dtype::i32},         spelling<dtype>{"i64", dtype::i64},
    spelling<dtype>{"u8", dtype::u8},           spelling<dtype>{"i8", dtype::i8},
    spelling<dtype>{"float", dtype::f32, true}, spelling<dtype>{"double", dtype::f64, true},
    spelling<dtype>{"half", dtype::f16, true},  spelling<dtype>{"bfloat16", dtype::bf16, true},
    spelling<dtype>{"int32", dtype::i32, true}, spelling<dtype>{"int64", dtype::i64, true},
    spelling<dtype>{"uint8", dtype::u8, true},  spelling<dtype>{"int8", dtype::i8, true},
};

constexpr std::array reductions{
    spelling<reduction>{"sum", reduction::sum},
    spelling<reduction>{"prod", reduction::product},
    spelling<reduction>{"min", reduction::min},
    spelling<reduction>{"max", reduction::max},
    spelling<reduction>{"avg", reduction::average},
    spelling<reduction>{"product", reduction::product, true},
    spelling<reduction>{"average", reduction::average, true},
};

template <typename Value, std::size_t Count>
std::vector<Value> parse(std::array<spelling<Value>, Count> const& known, std::string_view text, char const* option) {
    std::vector<Value> chosen;
    std::vector<std::string> words;
    for (auto const& each : known) {
        if (each.alias) continue;
        words.emplace_back(each.word);
        if (text == "all") chosen.push_back(each.value);
    }
    if (text == "all") return chosen;
    for (auto const piece : split(text, ',')) {
        auto const word = trim(piece);
        auto const found = std::find_if(known.begin(), known.end(), [&](auto const& each) { return each.word == word; });
        if (found == known.end())
            throw_error(errc::usage, "{} {}: no such choice; give {} or all", option, word, join(words, ", "));
        chosen.push_back(found->value);
    }
    return chosen;
}

}  // namespace

std::string redop_of(collective_case const& of) {
    if (!of.reduces()) return "none";
    for (auto const& each : reductions)
        if (each.value == of.how) return std::string(each.word);
    return "?";
}

std::string root_of(collective_case const& of) {
    return of.what == kind::broadcast ? std::to_string(of.root) : "-1";
}

std::vector<kind> parse_kinds(std::string_view text) {
    return parse(kinds, text, "--op");
}
std::vector<dtype> parse_types(std::string_view text) {
    return parse(types, text, "--type");
}
std::vector<reduction> parse_reductions(std::string_view text) {
    return parse(reductions, text, "--reduction");
}

std::vector<collective_case> cases_of(std::vector<kind> const& what, std::vector<dtype> const& elements,
                                      std::vector<reduction> const& how, int root) {
    std::vector<collective_case> all;
    for (auto const each : what)
        for (auto const type : elements)
            for (auto const reduced : how) {
                collective_case const next{each, type, reduced, root};
                if (!next.reduces() && reduced != how.front()) continue;
                if (next.reduces() && reduced == reduction::average && !is_floating(type)) continue;
                all.push_back(next);
            }
    return all;
}

std::size_t fitting_bytes(collective_case const& of, std::size_t bytes, int ranks) noexcept {
    std::size_t const unit = size_of(of.type) * (of.parted() ? static_cast<std::size_t>(ranks) : 1);
    return std::max(bytes / unit, std::size_t{1}) * unit;
}

std::size_t count_of(collective_case const& of, std::size_t bytes, int ranks) noexcept {
    return bytes / size_of(of.type) / (of.parted() ? static_cast<std::size_t>(ranks) : 1);
}

double bus_factor(kind what, int ranks) noexcept {
    double const most = static_cast<double>(ranks - 1) / ranks;
    if (what == kind::broadcast) return 1;
    return what == kind::allreduce ? 2 * most : most;
}

double bound_factor(kind what, int ranks) noexcept {
    switch (what) {
        case kind::allreduce: return 3.0 * ranks + 1;
        case kind::reducescatter: return ranks + 1.0;
        case kind::broadcast: return 2.0 * (ranks - 1);
        default: return 2.0 * ranks;
    }
}

std::string_view bound_formula(kind what) noexcept {
    switch (what) {
        case kind::allreduce: return "S (3P+1)";
        case kind::reducescatter: return "S (P+1)";
        case kind::broadcast: return "S (2P-2)";
        default: return "S 2P";
    }
}

std::string peer_lacks(std::string_view peer, collective_case const& of) {
    if (peer == "raw-nccl") return {};
    bool const gloo = peer == "gloo";
    if (gloo && of.type == dtype::bf16) return "torch's Gloo does not know bf16";
    if (gloo && of.what == kind::reducescatter) return "torch's Gloo has no reducescatter";
    if (!of.reduces()) return {};
    if (of.how == reduction::average) return gloo ? "Gloo has no average" : "MPI has no average";
    if (!gloo && (of.type == dtype::f16 || of.type == dtype::bf16)) return "MPI has no type for it";
    return {};
}

}  // namespace muster
