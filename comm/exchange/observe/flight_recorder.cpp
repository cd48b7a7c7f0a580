#include "comm/exchange/observe/flight_recorder.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/trust/foreign_json.hpp"
#include "base/trust/open_output_file.hpp"
#include "comm/exchange/observe/rank_file.hpp"

namespace muster {

namespace {

std::int64_t now_us() noexcept {
    using namespace std::chrono;
    return duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
}

}  // namespace

flight_recorder::session::session(flight_recorder& of) noexcept : of_(of), lock_(of.guard_), now_us_(now_us()) {}

std::uint64_t flight_recorder::session::begin(int set, std::uint64_t sequence, exchange_kind kind, std::string_view name,
                                              std::uint64_t bytes) noexcept {
    slot& into = of_.ring_[of_.next_ % depth];
    into.sequence = sequence;
    into.bytes = bytes;
    into.started_us = now_us_;
    into.finished_us = 0;
    into.set = set;
    into.kind = kind;
    into.name_size = static_cast<std::uint8_t>(std::min(name.size(), longest_name));
    std::copy_n(name.data(), into.name_size, into.name.data());
    return of_.next_++;
}

void flight_recorder::session::end(std::uint64_t which) noexcept {
    if (of_.next_ - which <= depth) of_.ring_[which % depth].finished_us = now_us_;
}

std::uint64_t flight_recorder::begin(int set, std::uint64_t sequence, exchange_kind kind, std::string_view name,
                                     std::uint64_t bytes) noexcept {
    return session(*this).begin(set, sequence, kind, name, bytes);
}

void flight_recorder::end(std::uint64_t which) noexcept {
    session(*this).end(which);
}

std::vector<flight_record> flight_recorder::records() const {
    std::scoped_lock const lock(guard_);
    std::vector<flight_record> all;
    for (std::uint64_t i = next_ > depth ? next_ - depth : 0; i < next_; ++i) {
        slot const& from = ring_[i % depth];
        all.push_back({from.sequence, from.set, from.kind, from.bytes, from.started_us, from.finished_us,
                       std::string(from.name.data(), from.name_size)});
    }
    return all;
}

// Files of the flight recorder: written and read as JSON.

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
    json all{{"schema", schema},        {"generation", dump.generation}, {"rank", dump.rank},         {"ranks", dump.ranks},
             {"host", dump.host},       {"reason", dump.reason},         {"culprits", dump.culprits}, {"waiting", dump.waiting},
             {"records", json::array()}};
    for (auto const& each : dump.records) all["records"].push_back(json_of(each));
    return all.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
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
                                    kind_of(each.at("kind").get<std::string>()), each.at("bytes").get<std::uint64_t>(),
                                    each.at("started_us").get<std::int64_t>(), each.at("finished_us").get<std::int64_t>(),
                                    each.at("name").get<std::string>()});
        return dump;
    } catch (std::exception const& problem) {
        throw error(errc::invalid_data,
                    fmt::format("{}: not a flight recorder's file: {}; leave it out", origin, json_fault(problem)));
    }
}

std::string write_flight_dump(flight_dump const& dump, std::string const& folder) {
    std::error_code ignored;
    std::filesystem::create_directories(folder, ignored);
    std::string const path = fmt::format("{}/{}", folder, name_of("flight", {dump.generation, dump.rank}));
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
