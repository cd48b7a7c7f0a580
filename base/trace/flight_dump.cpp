#include "base/trace/flight_dump.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/process/files.hpp"
#include "base/throw_error.hpp"
#include "base/trace/rank_file.hpp"
#include "base/trust/foreign_json.hpp"
#include "base/trust/open_output_file.hpp"

namespace muster {

namespace {

using nlohmann::json;
constexpr char const* schema = "muster.flight/1";

json json_of(flight_record const& one) {
    return {{"sequence", one.sequence},
            {"set", one.set},
            {"kind", one.kind},
            {"name", one.name},
            {"bytes", one.bytes},
            {"started_us", one.started_us},
            {"finished_us", one.finished_us}};
}

}  // namespace

std::string to_json(flight_dump const& dump) {
    json all{{"schema", schema},        {"generation", dump.generation}, {"rank", dump.rank},         {"ranks", dump.ranks},
             {"host", dump.host},       {"reason", dump.reason},         {"culprits", dump.culprits}, {"waiting", dump.waiting},
             {"records", json::array()}};
    for (auto const& each : dump.records) all["records"].push_back(json_of(each));
    return json_text(all, 1) + "\n";
}

flight_dump parse_flight_dump(std::string const& text, std::string const& origin) {
    try {
        auto const all = parse_json_as<json>(text, origin);
        if (all.at("schema").get<std::string>() != schema)
            throw error(errc::invalid_data, std::string("the schema is not ") + schema);
        flight_dump dump;
        dump.generation = all.value("generation", 0);
        dump.rank = all.at("rank").get<int>();
        dump.ranks = all.at("ranks").get<int>();
        dump.host = all.at("host").get<std::string>();
        dump.reason = all.at("reason").get<std::string>();
        dump.culprits = all.at("culprits").get<std::vector<int>>();
        dump.waiting = all.at("waiting").get<std::vector<std::string>>();
        for (auto const& each : all.at("records"))
            dump.records.push_back({each.at("sequence").get<std::uint64_t>(), each.at("set").get<int>(),
                                    each.at("kind").get<std::string>(), each.at("bytes").get<std::uint64_t>(),
                                    each.at("started_us").get<std::int64_t>(), each.at("finished_us").get<std::int64_t>(),
                                    each.at("name").get<std::string>()});
        return dump;
    } catch (std::exception const& problem) {
        throw_error(errc::invalid_data, "{}: not a flight recorder's file: {}; leave it out", origin, json_fault(problem));
    }
}

std::string write_flight_dump(flight_dump const& dump, std::string const& folder) {
    std::error_code ignored;
    std::filesystem::create_directories(folder, ignored);
    std::string const path = fmt::format("{}/{}", folder, name_of("flight", {dump.generation, dump.rank}));
    auto const file = open_output_file(path, "give a folder of your own");
    write_all(file.get(), to_json(dump), path, "give a folder with room in it");
    return path;
}

}  // namespace muster
