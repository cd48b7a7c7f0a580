#include "launch/scheduler/slurm/step_end.hpp"

#include <cstddef>
#include <utility>

namespace muster {

namespace {

constexpr std::size_t longest_line = 4096;

}  // namespace

std::string cancelled_step(std::string_view line) {
    constexpr std::string_view begin = "*** STEP ", on = " ON ", cancelled = " CANCELLED AT ", why = " DUE ",
                               by_signal = " DUE to SIGNAL ";
    auto const at = line.find(begin);
    if (at == std::string_view::npos) return {};
    auto const said = line.substr(at + begin.size());
    auto const number = said.substr(0, said.find(on));
    auto const time = said.find(cancelled);
    if (time == std::string_view::npos || number.size() > time) return {};
    if (number.empty() || number.find_first_not_of("0123456789+.") != std::string_view::npos) return {};
    auto const reason = said.find(why, time);
    if (reason != std::string_view::npos && !said.substr(reason).starts_with(by_signal)) return {};
    return std::string(number);
}

bool tells_of_own_end(std::string_view line) {
    return line.starts_with("srun: error: ") || line.starts_with("srun: forcing job termination");
}

void step_words::take(std::string_view bytes) {
    part_ += bytes;
    std::size_t start = 0;
    for (std::size_t end; (end = part_.find('\n', start)) != std::string::npos; start = end + 1)
        take_line(std::string_view(part_).substr(start, end - start));
    part_.erase(0, start);
    if (part_.size() > longest_line) part_.clear();
}

void step_words::take_line(std::string_view line) {
    by_srun_ = by_srun_ || tells_of_own_end(line);
    if (auto number = cancelled_step(line); cancelled_.empty() && !by_srun_) cancelled_ = std::move(number);
}

}  // namespace muster
