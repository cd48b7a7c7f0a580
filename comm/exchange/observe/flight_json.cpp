// Files of the flight recorder: written and read as JSON.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.hpp"
#include "base/trust/open_output_file.hpp"
#include "comm/exchange/observe/flight_recorder.hpp"

namespace muster {

namespace {

using nlohmann::json;
constexpr char const* schema = "muster.flight/1";

exchange_kind kind_of(std::string const& text) {
    for (int kind = 0; kind < exchange_kinds; ++kind)
        if (text == to_string(static_cast<exchange_kind>(kind))) return static_cast<exchange_kind>(kind);
    throw error(errc::invalid_data, "unknown kind \"" + text + "\"");
}

json json_of(flight_record const& one) {
    return {{"sequence", one.sequence},
            {"set", one.set},
            {"kind", to_string(one.kind)},
            {"name", one.name},
            {"bytes", one.bytes},
            {"started_us", one.started_us},
            {"finished_us", one.finished_us}};
}

}  // namespace

std::string to_json(flight_dump const& dump) {
    json all{{"schema", schema},      {"rank", dump.rank},         {"ranks", dump.ranks},     {"host", dump.host},
             {"reason", dump.reason}, {"culprits", dump.culprits}, {"waiting", dump.waiting}, {"records", json::array()}};
    for (auto const& each : dump.records) all["records"].push_back(json_of(each));
    return all.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

flight_dump parse_flight_dump(std::string const& text, std::string const& origin) {
    try {
        json const all = json::parse(text);
        if (all.at("schema").get<std::string>() != schema)
            throw error(errc::invalid_data, std::string("the schema is not ") + schema);
        flight_dump dump;
        dump.rank = all.at("rank").get<int>();
        dump.ranks = all.at("ranks").get<int>();
        dump.host = all.at("host").get<std::string>();
        dump.reason = all.at("reason").get<std::string>();
        dump.culprits = all.at("culprits").get<std::vector<int>>();
        dump.waiting = all.at("waiting").get<std::vector<std::string>>();
        for (auto const& each : all.at("records"))
            dump.records.push_back({each.at("sequence").get<std::uint64_t>(), each.at("set").get<int>(),
                                    kind_of(each.at("kind").get<std::string>()), each.at("bytes").get<std::uint64_t>(),
                                    each.at("started_us").get<std::int64_t>(), each.at("finished_us").get<std::int64_t>(),
                                    each.at("name").get<std::string>()});
        return dump;
    } catch (std::exception const& problem) {
        throw error(errc::invalid_data, fmt::format("{}: not a flight recorder's file: {}", origin, problem.what()));
    }
}

std::string write_flight_dump(flight_dump const& dump, std::string const& folder) {
    std::error_code ignored;
    std::filesystem::create_directories(folder, ignored);
    std::string const path = fmt::format("{}/flight-{}.json", folder, dump.rank);
    auto const file = open_output_file(path, "give a folder of your own");
    std::string const text = to_json(dump);
    for (std::string_view rest = text; !rest.empty();) {
        auto const written = ::write(file.get(), rest.data(), rest.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) throw_system("write", path, 0, "give a folder with room in it");
        rest.remove_prefix(static_cast<std::size_t>(written));
    }
    return path;
}

}  // namespace muster
