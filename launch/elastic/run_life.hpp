// The life of a run of several generations: what one launcher leaves to the next, through the guardian.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "launch/elastic/generation.hpp"
#include "launch/elastic/host_pool.hpp"
#include "launch/elastic/restart_policy.hpp"

namespace muster {

/// Each generation has its own launcher, session folder, nspace and ports. A launcher that gets an empty text starts generation
/// 0.
struct run_life {
    double began_s = -1;          ///< when the first launcher of the run began, by seconds_now(); below 0: it begins now
    std::string output_dir = {};  ///< the folder that the first generation made; or empty
    std::vector<slot> pool = {};  ///< the slots that the run may use, spares at the end
    generation now = {};          ///< without members in the first one: the mapping names them
    std::vector<std::string> lost_hosts = {};
    std::vector<generation_end> ends = {};  ///< those of earlier generations
    host_pool hosts = {};                   ///< those of --host-discovery-script
    int first_life = 0;                     ///< MUSTER_LIFE of generation 0
    std::uintmax_t first_size = 0;          ///< the size of the file that must grow, when generation 0 began
    std::uintmax_t file_size = 0;           ///< the size of that file when this generation began; not left to the next
    bool operator==(run_life const&) const = default;

    bool is_first() const noexcept { return now.number == 0; }
    duration age() const;
};

/// Returns the time of a clock that only goes forward and is the same in all processes of this machine.
double seconds_now();

/// Returns a random number from 0 to 1.
double draw_chance();

/// Returns the entry in the record of a run.
nlohmann::ordered_json to_json(generation_end const& end);

std::string to_text(run_life const& life);
/// Throws errc::parse for any text that to_text() has not made; an empty text is the first life.
run_life parse_life(std::string_view text);

}  // namespace muster
