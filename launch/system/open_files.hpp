// Raises the limit of open files.
#pragma once

#include <sys/resource.h>

#include <cstddef>

namespace muster {

/// Raises this process' limit of open files as far as it may, for good; returns the limit it had, which ranks get back: two pipes
/// a rank and the ranks' connections make some 700 descriptors for 128 ranks. Throws errc::system.
rlimit raise_open_files();

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

}  // namespace muster
