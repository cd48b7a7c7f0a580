// Logs the spares of a run: prints notes on them for the user and writes their lines in the run's record.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "launch/elastic/generation.hpp"
#include "launch/run/rank_group.hpp"
#include "launch/settings/run_context.hpp"

namespace muster {

/// Follows processes that wait for the places of lost ranks, from their start until they get one or end. Seats are numbers of
/// ranks at the start. Used from the loop's thread.
class spare_log {
  public:
    /// Says that a place stays empty.
    static constexpr std::string_view not_needed = "it is not needed any more";

    /// All arguments must outlive it.
    spare_log(run_context const& run, evidence& known, group_events& events) : run_(run), known_(known), events_(events) {}

    /// Notes that the spare of that seat has started, or that its place is now known; `place` is what describe_spare() returns.
    void note_place(int seat, std::string place);
    /// Notes that it can be taken in at once.
    void note_wait(int seat);
    /// Notes that it has ended, or is lost, before it became a rank. `then`: what happens to its place.
    void note_end(int seat, std::string const& what, std::string const& then);
    /// Notes that the generation begins with these seats, in order of rank. Returns `why`, and which of them were spares.
    std::string note_generation(generation const& now, std::vector<int> const& seats, std::string const& why);

  private:
    spare_record& record_of(int seat) { return run_.outcome.spares[records_.at(seat)]; }

    run_context const& run_;
    evidence& known_;
    group_events& events_;
    std::map<int, std::size_t> records_;  ///< by seat
};

}  // namespace muster
