// The lives of a program over the jobs of a chain and the starts of a requeued job: how each ended, and whether another one is
// worthwhile.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"

namespace muster {

/// One `muster run` with all of its generations.
struct program_life {
    int number = 0;                          ///< MUSTER_LIFE of its latest generation
    std::string job = {};                    ///< the scheduler's number of the job
    std::optional<int> code = std::nullopt;  ///< exit code; nothing: the job ended before the run could record it
    bool measured = false;                   ///< it wrote a line with muster-metric:
    std::int64_t saved_step = -1;            ///< of the last checkpoint that it told of; below 0: it told of none
    std::string standstill = {};             ///< the sign that it made no progress; empty: there is no sign
    bool operator==(program_life const&) const = default;
};

/// Returns the number of a run's first generation: one more than the last of `former`, but at least what the link of a chain
/// (from 1) and the scheduler's restarts of its job imply. Pure.
int life_number(std::span<program_life const> former, int chain_link, int restarts);

/// Says what a run has shown of its progress by its end.
struct progress_signs {
    /// saved: `code` says so; from_outside: the scheduler, the user, a time limit, a lost node or a signal that the run itself had
    /// not sent ended it.
    enum class ending { by_itself, saved, from_outside };
    /// Says which was the last life with a line with muster-metric:.
    enum class measured { never, before, now };

    int code = 0;
    ending ended = ending::by_itself;
    duration lived{0};
    std::string must_grow = {};  ///< file or folder of checkpoints that shows progress; or empty
    bool grew = false;
    measured metric = measured::never;
    bool saved_further = false;  ///< it told of a checkpoint of a later step than those before
};

/// Says why a run or generation made no progress; empty if it made some, or without a sign. The first rule that applies decides:
/// an end with 0 or from outside counts as progress; then the file that must grow; then a save with code 75 or a checkpoint of a
/// later step, which are progress; then lines with muster-metric:; and last, if `judges_failures`, its own failure within a minute, which is no progress. Pure.
std::string find_standstill(progress_signs const& signs, bool judges_failures);

/// Returns why no other life should follow: the last two made no progress. Returns an empty text if one may follow. Pure.
std::string why_no_more(std::span<program_life const> lives);

// The file that records the lives: it has a line for each beginning, also of later generations, and for each end.

std::string began_line(program_life const& life, int generation);
std::string ended_line(program_life const& life);
/// Skips damaged lines, as a node that is lost during a write leaves. Pure.
std::vector<program_life> parse_lives(std::string_view text);

}  // namespace muster
