#include "launch/elastic/run_life.hpp"

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "base/codec/codec.hpp"
#include "base/throw_error.hpp"

namespace muster {

using nlohmann::ordered_json;

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
    auto left = life;
    left.file_size = 0;
    return codec::encode(left);
}

run_life parse_life(std::string_view text) try {
    run_life life;
    if (text.empty()) return life;
    codec::reader from(text);
    from >> life;
    from.end();
    return life;
} catch (error const& e) {
    throw_error(errc::parse, "what the former launcher left for generation 1 and later is damaged: {}", e.what());
}

}  // namespace muster
