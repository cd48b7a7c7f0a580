#include "bench/collectives/collectives_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/text.hpp"

namespace muster {

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
            throw error(errc::usage, fmt::format("{} {}: no such choice; give {} or all", option, word, join(words, ", ")));
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
