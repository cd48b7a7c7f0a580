// One job of a comparison of collectives: starts ranks, gives them orders and reads their answers.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/environment.hpp"
#include "base/unique_fd.hpp"
#include "base/units.hpp"

namespace muster {

/// Started processes, whose ranks read orders from FOLDER/NAME.R and answer in FOLDER/NAME.out; both are pipes with names, which
/// this makes. What they print goes to FOLDER/NAME.log. While they have no order they sleep. They end with
/// this process, however it ends.
class collectives_job {
  public:
    /// One answer of each rank: the numbers behind its own.
    struct answer {
        double first = 0;            ///< the greatest of all ranks
        double second = 0;           ///< the sum over all ranks
        double least = 0, mean = 0;  ///< of the first numbers
    };

    /// Starts every command of `commands` (argv[0] is a path). Throws errc::system.
    collectives_job(std::string folder, std::string name, int ranks, std::vector<std::vector<std::string>> const& commands,
                    environment const& variables);
    collectives_job(collectives_job const&) = delete;
    collectives_job& operator=(collectives_job const&) = delete;
    ~collectives_job();  ///< tells the ranks to end; kills what is left after 5 s

    /// Gives all ranks an order and waits for all to answer. Throws errc::timeout or errc::peer_failed with the end of the log
    /// if a process ended or the deadline passed.
    answer ask(std::string const& order, duration deadline);

    /// What rank 0 says that it is.
    std::string version(duration deadline);

    std::string const& name() const noexcept { return name_; }

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
