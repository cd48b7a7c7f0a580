#include "bench/tools/checked_json.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/throw_error.hpp"
#include "base/trust/foreign_json.hpp"
#include "base/trust/open_output_file.hpp"

namespace muster {

nlohmann::json parse_json(std::string_view text, std::string const& origin) {
    return parse_json_as<nlohmann::json>(text, origin);
}

nlohmann::json read_json_file(std::string const& path, std::string_view hint) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw_system("open", path, 0, hint);
    std::ostringstream text;
    text << file.rdbuf();
    if (file.bad() || text.bad()) throw_system("read", path, 0, "give a file, not a folder");
    return parse_json(text.str(), path);
}

void write_json_file(std::string const& path, nlohmann::json const& value) {
    auto const unfinished = fmt::format("{}.{}.tmp", path, ::getpid());
    // Invalid UTF-8, in a host name or path, is replaced: a result must not be lost because of it.
    auto const text = value.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    try {
        write_output_file(unfinished, text, "check that its folder exists and has room");
    } catch (error const&) {
        std::remove(unfinished.c_str());
        throw;
    }
    if (std::rename(unfinished.c_str(), path.c_str()) != 0) throw_system("rename", path);
}

void checked_json::fail(std::string const& what) const {
    throw_error(errc::invalid_data, "{}: {}: {}", origin_, place_.empty() ? "/" : place_, what);
}

bool checked_json::has(std::string_view name) const {
    return value_->is_object() && value_->contains(name);
}

checked_json checked_json::at(std::string_view name) const {
    if (!value_->is_object()) fail(fmt::format("is {}, expected an object with '{}'", value_->type_name(), name));
    auto const found = value_->find(name);
    if (found == value_->end()) fail(fmt::format("has no '{}'", name));
    return {*found, origin_, fmt::format("{}/{}", place_, name)};
}

std::vector<checked_json> checked_json::items() const {
    if (!value_->is_array()) fail(fmt::format("is {}, expected an array", value_->type_name()));
    std::vector<checked_json> out;
    for (auto const& item : *value_) out.push_back(checked_json(item, origin_, fmt::format("{}/{}", place_, out.size())));
    return out;
}

std::string checked_json::text() const {
    if (!value_->is_string()) fail(fmt::format("is {}, expected a string", value_->type_name()));
    return value_->get<std::string>();
}

double checked_json::number() const {
    if (!value_->is_number()) fail(fmt::format("is {}, expected a number", value_->type_name()));
    double const x = value_->get<double>();
    if (!std::isfinite(x)) fail("is not finite");
    return x;
}

std::int64_t checked_json::integer() const {
    if (!value_->is_number_integer()) fail(fmt::format("is {}, expected a whole number", value_->dump()));
    if (value_->is_number_unsigned() && value_->get<std::uint64_t>() > INT64_MAX)
        fail(fmt::format("is {}, expected a whole number below 2^63", value_->dump()));
    return value_->get<std::int64_t>();
}

std::int64_t checked_json::integer(std::int64_t low, std::int64_t high) const {
    auto const x = integer();
    if (x < low || x > high) fail(fmt::format("is {}, expected {} to {}", x, low, high));
    return x;
}

bool checked_json::boolean() const {
    if (!value_->is_boolean()) fail(fmt::format("is {}, expected true or false", value_->type_name()));
    return value_->get<bool>();
}

}  // namespace muster
