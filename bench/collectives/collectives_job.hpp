// Ranks that are measured: a job that starts them, gives them orders and reads their answers.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "base/unique_fd.hpp"
#include "base/units.hpp"

namespace muster {

/// A rank's answer: two numbers whose meaning is the order's.
struct rank_answer {
    double first = 0, second = 0;
    bool operator==(rank_answer const&) const = default;
};

/// The answers of all ranks to one order.
struct rank_answers {
    double first = 0;            ///< the greatest of all ranks
    double second = 0;           ///< the sum over all ranks
    double least = 0, mean = 0;  ///< of the first numbers
    bool operator==(rank_answers const&) const = default;
};

/// Takes the answers of at least one rank. Pure.
rank_answers answers_of(std::span<rank_answer const> ranks);

/// Ranks that follow orders, wherever they run.
class ordered_ranks {
  public:
    virtual ~ordered_ranks() = default;

    /// Gives all ranks an order and waits for all to answer. Throws errc::timeout or errc::peer_failed.
    virtual rank_answers ask(std::string const& order, duration deadline) = 0;

    /// Returns the version that rank 0 reports.
    virtual std::string version(duration deadline) = 0;
};

/// Started processes, whose ranks read orders from FOLDER/NAME.R and answer in FOLDER/NAME.out; both are pipes with names, which
/// this makes. What they print goes to FOLDER/NAME.log. While they have no order they sleep. They end with
/// this process, however it ends.
class collectives_job : public ordered_ranks {
  public:
    /// Starts every command of `commands` (argv[0] is a path). Throws errc::system.
    collectives_job(std::string folder, std::string name, int ranks, std::vector<std::vector<std::string>> const& commands,
                    environment const& variables);
    collectives_job(collectives_job const&) = delete;
    collectives_job& operator=(collectives_job const&) = delete;
    ~collectives_job() override;  ///< tells the ranks to end; kills what is left after 5 s

    /// Throws errors that hold the end of the log.
    rank_answers ask(std::string const& order, duration deadline) override;
    std::string version(duration deadline) override;

  private:
    void give(std::string const& order);
    std::string line(duration deadline);
    std::string end_of_log() const;
    bool any_ended();

    std::string folder_, name_;
    int ranks_;
    std::vector<unique_fd> orders_;
    unique_fd answers_;
    std::string unread_;
    std::vector<pid_t> processes_;
};

}  // namespace muster
