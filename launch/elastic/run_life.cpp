#include "launch/elastic/run_life.hpp"

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "base/throw_error.hpp"
#include "base/trust/foreign_json.hpp"

namespace muster {

using nlohmann::ordered_json;

namespace {

constexpr auto replace = ordered_json::error_handler_t::replace;

ordered_json json_of(slot const& at) {
    return ordered_json::array({at.host, at.index});
}

slot slot_of(ordered_json const& row) {
    return {row.at(0).get<std::string>(), row.at(1).get<int>()};
}

ordered_json json_of(member const& one) {
    return ordered_json::array({one.number, one.at.host, one.at.index, one.has_state});
}

member member_of(ordered_json const& row) {
    return {row.at(0).get<int>(), {row.at(1).get<std::string>(), row.at(2).get<int>()}, row.at(3).get<bool>()};
}

ordered_json json_of(pool_host const& one) {
    return ordered_json::array({one.name, one.slots});
}

ordered_json json_of(host_pool::cool_down const& one) {
    return ordered_json::array({one.at.host, one.at.index, one.failures, one.until_s});
}

end_kind kind_of(std::string_view word) {
    for (auto const kind : {end_kind::rank, end_kind::node, end_kind::hosts, end_kind::other})
        if (to_string(kind) == word) return kind;
    return end_kind::last;
}

generation_end end_of(ordered_json const& row) {
    generation_end end;
    end.number = row.at("number").get<int>();
    end.kind = kind_of(row.at("kind").get<std::string>());
    end.code = row.at("code").get<int>();
    end.cause = row.at("cause").get<std::string>();
    end.rank = row.at("rank").get<int>();
    end.member = row.at("member").get<int>();
    end.host = row.at("host").get<std::string>();
    end.lost_hosts = row.at("lost_hosts").get<std::vector<std::string>>();
    end.members = row.at("members").get<std::vector<int>>();
    end.folder = row.at("folder").get<std::string>();
    auto const& took = row.at("seconds");
    end.start_s = took.at("start").get<double>();
    end.output_s = took.at("first_output").get<double>();
    end.metric_s = took.at("first_metric").get<double>();
    end.lived_s = took.at("lived").get<double>();
    end.ending_s = took.at("ending").get<double>();
    end.waited_s = took.at("waited").get<double>();
    end.at_s = row.at("at_s").get<double>();
    end.saved_step = row.at("saved_step").get<std::int64_t>();
    end.standstill = row.at("standstill").get<std::string>();
    end.advanced = row.at("advanced").get<bool>();
    end.in_place = row.at("in_place").get<bool>();
    end.from_outside = row.at("from_outside").get<bool>();
    return end;
}

template <typename T>
ordered_json list(std::vector<T> const& all) {
    auto rows = ordered_json::array();
    for (auto const& one : all) rows.push_back(json_of(one));
    return rows;
}

}  // namespace

duration run_life::age() const {
    return began_s < 0 ? duration(0) : duration(seconds_now() - began_s);
}

double draw_chance() {
    std::random_device source;
    return std::uniform_real_distribution<double>(0, 1)(source);
}

double seconds_now() {
    return duration(std::chrono::steady_clock::now().time_since_epoch()).count();
}

ordered_json to_json(generation_end const& end) {
    auto const ms = [](double seconds) { return seconds < 0 ? -1 : std::round(seconds * 1e3) / 1e3; };
    return {{"number", end.number},
            {"kind", to_string(end.kind)},
            {"code", end.code},
            {"cause", end.cause},
            {"rank", end.rank},
            {"member", end.member},
            {"host", end.host},
            {"lost_hosts", end.lost_hosts},
            {"ranks", end.members.size()},
            {"members", end.members},
            {"folder", end.folder},
            {"seconds",
             {{"start", ms(end.start_s)},
              {"first_output", ms(end.output_s)},
              {"first_metric", ms(end.metric_s)},
              {"lived", ms(end.lived_s)},
              {"ending", ms(end.ending_s)},
              {"waited", ms(end.waited_s)}}},
            {"at_s", ms(end.at_s)},
            {"saved_step", end.saved_step},
            {"standstill", end.standstill},
            {"advanced", end.advanced},
            {"in_place", end.in_place},
            {"from_outside", end.from_outside}};
}

std::string to_text(run_life const& life) {
    auto ends = ordered_json::array();
    for (auto const& end : life.ends) ends.push_back(to_json(end));
    return ordered_json{{"began_s", life.began_s},           {"output_dir", life.output_dir},
                        {"number", life.now.number},         {"born", life.now.born},
                        {"members", list(life.now.members)}, {"pool", list(life.pool)},
                        {"lost_hosts", life.lost_hosts},     {"ends", ends},
                        {"hosts", list(life.hosts.hosts)},   {"cooling", list(life.hosts.cooling)},
                        {"first_life", life.first_life},     {"first_size", life.first_size}}
        .dump(-1, ' ', false, replace);
}

run_life parse_life(std::string_view text) try {
    run_life life;
    if (text.empty()) return life;
    auto const all = parse_json_as<ordered_json>(text, "what the former launcher left");
    life.began_s = all.at("began_s").get<double>();
    life.output_dir = all.at("output_dir").get<std::string>();
    life.now.number = all.at("number").get<int>();
    life.now.born = all.at("born").get<int>();
    for (auto const& row : all.at("members")) life.now.members.push_back(member_of(row));
    for (auto const& row : all.at("pool")) life.pool.push_back(slot_of(row));
    life.lost_hosts = all.at("lost_hosts").get<std::vector<std::string>>();
    for (auto const& row : all.at("hosts")) life.hosts.hosts.push_back({row.at(0).get<std::string>(), row.at(1).get<int>()});
    for (auto const& row : all.at("cooling"))
        life.hosts.cooling.push_back({slot_of(row), row.at(2).get<int>(), row.at(3).get<double>()});
    life.first_life = all.at("first_life").get<int>();
    life.first_size = all.at("first_size").get<std::uintmax_t>();
    for (auto const& row : all.at("ends")) life.ends.push_back(end_of(row));
    return life;
} catch (ordered_json::exception const& e) {
    throw_error(errc::parse, "what the former launcher left for generation 1 and later is damaged: {}", json_fault(e));
}

}  // namespace muster
