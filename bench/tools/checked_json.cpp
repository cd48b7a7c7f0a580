#include "bench/tools/checked_json.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.hpp"

namespace muster {

nlohmann::json parse_json(std::string_view text, std::string const& origin) {
    try {
        return nlohmann::json::parse(text);
    } catch (nlohmann::json::parse_error const& e) {
        std::string_view what = e.what();  // "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error …"
        if (auto const at = what.find(": "); at != what.npos) what.remove_prefix(at + 2);
        throw parse_error(origin, text, e.byte > 0 ? e.byte - 1 : 0, std::string(what), errc::invalid_data);
    } catch (nlohmann::json::out_of_range const& e) {  // "… number overflow parsing '1e999'", which tells no place
        std::string_view const what = e.what();
        auto const quote = what.find('\'');
        auto const number = quote == what.npos ? std::string_view() : what.substr(quote + 1, what.rfind('\'') - quote - 1);
        auto const at = text.find(number);
        throw parse_error(origin, text, at == text.npos ? 0 : at, "a number that no double can hold", errc::invalid_data);
    }
}

nlohmann::json read_json_file(std::string const& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw_system("open", path, 0, "give the results.json that muster-bench scale wrote");
    std::ostringstream text;
    text << file.rdbuf();
    if (file.bad() || text.bad()) throw_system("read", path, 0, "is it a directory?");
    return parse_json(text.str(), path);
}

void write_json_file(std::string const& path, nlohmann::json const& value) {
    auto const unfinished = fmt::format("{}.{}.tmp", path, ::getpid());
    {
        std::ofstream file(unfinished, std::ios::binary);
        // Bytes that are no UTF-8, in a host name or path, are replaced: a result is worth more than its spelling.
        file << value.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
        file.close();
        if (!file) {
            int const code = errno;
            std::remove(unfinished.c_str());
            throw_system("write", unfinished, code, "does the folder exist, and is there room?");
        }
    }
    if (std::rename(unfinished.c_str(), path.c_str()) != 0) throw_system("rename", path);
}

void json_reader::complain(std::string const& what) const {
    throw error(errc::invalid_data, fmt::format("{}: {}: {}", origin_, place_.empty() ? "/" : place_, what));
}

bool json_reader::has(std::string_view name) const {
    return value_->is_object() && value_->contains(name);
}

json_reader json_reader::at(std::string_view name) const {
    if (!value_->is_object()) complain(fmt::format("is {}, expected an object with '{}'", value_->type_name(), name));
    auto const found = value_->find(name);
    if (found == value_->end()) complain(fmt::format("has no '{}'", name));
    return {*found, origin_, fmt::format("{}/{}", place_, name)};
}

std::vector<json_reader> json_reader::items() const {
    if (!value_->is_array()) complain(fmt::format("is {}, expected an array", value_->type_name()));
    std::vector<json_reader> out;
    for (auto const& item : *value_) out.push_back(json_reader(item, origin_, fmt::format("{}/{}", place_, out.size())));
    return out;
}

std::string json_reader::text() const {
    if (!value_->is_string()) complain(fmt::format("is {}, expected a string", value_->type_name()));
    return value_->get<std::string>();
}

double json_reader::number() const {
    if (!value_->is_number()) complain(fmt::format("is {}, expected a number", value_->type_name()));
    double const x = value_->get<double>();
    if (!std::isfinite(x)) complain("is not finite");
    return x;
}

std::int64_t json_reader::integer() const {
    if (!value_->is_number_integer()) complain(fmt::format("is {}, expected a whole number", value_->dump()));
    if (value_->is_number_unsigned() && value_->get<std::uint64_t>() > INT64_MAX)
        complain(fmt::format("is {}, expected a whole number below 2^63", value_->dump()));
    return value_->get<std::int64_t>();
}

std::int64_t json_reader::integer(std::int64_t low, std::int64_t high) const {
    auto const x = integer();
    if (x < low || x > high) complain(fmt::format("is {}, expected {} to {}", x, low, high));
    return x;
}

bool json_reader::boolean() const {
    if (!value_->is_boolean()) complain(fmt::format("is {}, expected true or false", value_->type_name()));
    return value_->get<bool>();
}

}  // namespace muster
