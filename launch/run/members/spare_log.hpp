// A log of the spares of a run: notes on them for the user, and their lines in its record.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "launch/elastic/generation.hpp"
#include "launch/run/rank_group.hpp"
#include "launch/settings/run_context.hpp"

namespace muster {

/// Processes that wait for the places of lost ranks, from their start until they have one or end. Seats are numbers of ranks at the start. Used from the
/// loop's thread.
class spare_log {
  public:
    /// Of a place: nobody is to have it.
    static constexpr std::string_view not_needed = "it is not needed any more";

    /// All must outlive it.
    spare_log(run_context const& run, evidence& known, group_events& events) : run_(run), known_(known), events_(events) {}

    /// The spare of that seat is there, or is known to be elsewhere there; `place`: as describe_spare() says it.
    void note_place(int seat, std::string place);
    /// It can be taken in at once.
    void note_wait(int seat);
    /// It has ended, or is lost, before it became a rank. `then`: what becomes of its place.
    void note_end(int seat, std::string const& what, std::string const& then);
    /// The generation begins with these seats, by rank. `why`, and which of them were spares.
    std::string note_generation(generation const& now, std::vector<int> const& seats, std::string const& why);

  private:
    spare_record& record_of(int seat) { return run_.outcome.spares[records_.at(seat)]; }

    run_context const& run_;
    evidence& known_;
    group_events& events_;
    std::map<int, std::size_t> records_;  ///< by seat
};

}  // namespace muster
