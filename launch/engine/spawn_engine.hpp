// Starts an engine's command, whose shims will call.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstddef>

#include "launch/engine/engine_table.hpp"

namespace muster {

/// As many open files as this process may have, for as long as it lives: a connection a shim.
class more_open_files {
  public:
    /// Throws errc::system if the limit does not allow `connections`.
    explicit more_open_files(std::size_t connections);
    ~more_open_files();
    more_open_files(more_open_files const&) = delete;
    more_open_files& operator=(more_open_files const&) = delete;

    rlimit const& inherited() const noexcept { return inherited_; }

  private:
    rlimit inherited_{};
};

struct standard_fds {
    int in = -1;  ///< -1: /dev/null
    int out = -1;
    int err = -1;
};

/// Starts it in a process group of its own, with the limit of open files that this process inherited. Throws errc::system,
/// program_error if there is no such program.
pid_t spawn_engine(engine_command const& command, more_open_files const& files, standard_fds const& fds);

}  // namespace muster
