// Ranks of one node as children of a test, without MPI and without a launcher.
#pragma once

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/communicator.hpp"

namespace muster {

inline identity rank_of(int rank, int size) {
    static int worlds = 0;
    if (rank == -1) ++worlds;
    identity who;
    who.nspace = fmt::format("shm-faults-{}-{}", ::getpid(), worlds);
    who.rank = who.local_rank = rank;
    who.world_size = who.local_size = size;
    who.host = "here";
    return who;
}

inline comm_options options_with(double deadline_s) {
    comm_options options;
    options.backend = "shm";
    options.deadline = duration{deadline_s};
    return options;
}

/// What a rank has to say at its end: the culprits it was told of and the message, or "fine".
inline std::string message_of_failure(std::function<void()> const& body) {
    try {
        body();
        return "fine";
    } catch (comm_error const& e) {
        std::string culprits;
        for (int const each : e.culprits()) culprits += fmt::format("{} ", each);
        return fmt::format("{}culprits: {}{}", e.code() == errc::timeout ? "timeout " : "", culprits, e.what());
    } catch (std::exception const& e) {
        return e.what();
    }
}

/// Ranks as processes; `body(identity)` runs in each. What each says; "" of one that ended without a word or is stopped.
class ranks_as_children {
  public:
    ranks_as_children(int size, std::function<void(identity const&)> const& body) {
        rank_of(-1, size);
        std::vector<identity> who;
        for (int rank = 0; rank < size; ++rank) who.push_back(rank_of(rank, size));
        for (int rank = 0; rank < size; ++rank) {
            auto [read, write] = make_pipe();
            pid_t const pid = ::fork();
            if (pid == 0) {
                std::string const said = message_of_failure([&] { body(who[static_cast<std::size_t>(rank)]); });
                [[maybe_unused]] auto const written = ::write(write.get(), said.data(), said.size());
                ::_exit(0);
            }
            pids_.push_back(pid);
            said_.push_back(std::move(read));
        }
    }
    ranks_as_children(ranks_as_children const&) = delete;
    ranks_as_children& operator=(ranks_as_children const&) = delete;
    ~ranks_as_children() {
        for (pid_t const pid : pids_) {
            ::kill(pid, SIGKILL);
            ::waitpid(pid, nullptr, 0);
        }
    }
    pid_t pid(int rank) const { return pids_[static_cast<std::size_t>(rank)]; }

    /// Waits for the rank's end; not to be called for a stopped one.
    std::string words_of(int rank) {
        std::string all;
        char bytes[4096];
        for (ssize_t got = 0; (got = ::read(said_[static_cast<std::size_t>(rank)].get(), bytes, sizeof bytes)) > 0;)
            all.append(bytes, static_cast<std::size_t>(got));
        return all;
    }

  private:
    std::vector<pid_t> pids_;
    std::vector<unique_fd> said_;
};

}  // namespace muster
