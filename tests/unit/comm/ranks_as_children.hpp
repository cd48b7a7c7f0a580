// Ranks of one node as children of a test, without MPI and without a launcher.
#pragma once

#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/communicator.hpp"
#include "comm/tcp/tcp_backend.hpp"

namespace muster {

inline identity rank_of(int rank, int size) {
    static int worlds = 0;
    if (rank == -1) ++worlds;
    identity who;
    who.nspace = fmt::format("faults-{}-{}", ::getpid(), worlds);
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

/// Where children tell each other their addresses, in place of a launcher.
class address_board {
  public:
    address_board() {
        void* const memory = ::mmap(nullptr, sizeof(notes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) throw std::bad_alloc();
        notes_ = new (memory) notes;
    }
    address_board(address_board const&) = delete;
    address_board& operator=(address_board const&) = delete;
    ~address_board() { ::munmap(notes_, sizeof(notes)); }

    /// In a child: puts up its own, and waits for those of all ranks.
    std::vector<std::string> exchange(identity const& who) const {
        auto const text = tcp_address(who.host, "lo");
        auto& own = notes_->text[static_cast<std::size_t>(who.rank)];
        text.copy(own.data(), own.size() - 1);
        notes_->there.fetch_add(1);
        await(who.world_size);
        std::vector<std::string> all;
        for (int rank = 0; rank < who.world_size; ++rank) all.emplace_back(notes_->text[static_cast<std::size_t>(rank)].data());
        return all;
    }

    /// Until so many have put up their addresses.
    void await(int ranks) const {
        while (notes_->there.load() < ranks) ::sched_yield();
    }

  private:
    struct notes {
        std::atomic<int> there{0};
        std::array<std::array<char, 256>, 8> text{};
    };
    notes* notes_;
};

/// The same for that backend, in a child.
inline comm_options options_of(std::string const& backend, identity const& who, address_board const& board, double deadline_s) {
    comm_options options = options_with(deadline_s);
    options.backend = backend;
    if (backend == "tcp") {
        options.addresses = board.exchange(who);
        options.network_interface = "lo";
    }
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
