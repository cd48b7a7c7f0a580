#include "launch/jobs/queue/job_poll.hpp"

#include <fmt/format.h>

#include "base/throw_error.hpp"

namespace muster {

std::optional<std::vector<queued_job>> job_poll::ask(std::vector<std::string> const& ids) {
    try {
        auto answers = ask_(ids);
        failures_ = 0;
        return answers;
    } catch (error const& e) {
        if (e.code() != errc::unavailable && e.code() != errc::parse && e.code() != errc::system) throw;
        if (++failures_ >= most_failures)
            throw_error(e.code(), "the scheduler has not answered {} questions in a row; the last: {}", failures_, e.what());
        if (failures_ == 1) note_(fmt::format("note: the scheduler does not answer, and is asked again: {}", e.what()));
        return std::nullopt;
    }
}

}  // namespace muster
