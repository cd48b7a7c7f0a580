#include "launch/samples/run_samples.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/trust/foreign_json.hpp"
#include "base/trust/member_json.hpp"
#include "base/trust/trusted_file.hpp"

namespace muster {

namespace {

constexpr char const* schema = "muster.samples/1";

}  // namespace

std::string samples_json(run_samples const& of) {
    auto text = member_json(of);  // never empty: it has numbers
    text.insert(1, fmt::format(R"("schema":"{}",)", schema));
    return text + "\n";
}

std::optional<run_samples> parse_samples(std::string_view text) {
    auto const all = parse_json_or_discard<nlohmann::ordered_json>(text);
    run_samples found;
    if (!all.is_object() || text_at(all, "/schema") != schema || !read_members(all, found)) return std::nullopt;
    return found;
}

std::optional<run_samples> read_samples(std::string const& run_folder) {
    auto const text = read_small_file(fmt::format("{}/{}", run_folder, samples_file), "samples of a run", longest_samples_bytes);
    return text ? parse_samples(*text) : std::nullopt;
}

}  // namespace muster
