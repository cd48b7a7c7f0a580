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

step_ender ender_of_step(std::string_view line) {
    if (line.starts_with("srun: Job step aborted")) return step_ender::slurm;
    if (line.starts_with("srun: error: ") || line.starts_with("srun: forcing job termination")) return step_ender::srun;
    bool const by_pmix =
        line.find(" mpi/pmix") != std::string_view::npos && line.find("Error handler invoked") != std::string_view::npos;
    return by_pmix ? step_ender::pmix : step_ender::unknown;
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
    auto const now = ender_of_step(line);
    if (now == step_ender::pmix) cancelled_.clear();  // other nodes' lines may come before this one
    if (now == step_ender::pmix || ender_ == step_ender::unknown) ender_ = now;
    if (ender_ == step_ender::srun || ender_ == step_ender::pmix) return;
    if (auto number = cancelled_step(line); cancelled_.empty()) cancelled_ = std::move(number);
}

}  // namespace muster
