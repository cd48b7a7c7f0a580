// Raises the limit of open files, and makes room for them.
#pragma once

#include <sys/resource.h>

#include <cstddef>

namespace muster {

/// Permanently raises this process' limit of open files as far as possible; returns the former limit, which ranks get back: two
/// pipes for each rank and the ranks' connections make some 700 descriptors for 128 ranks. Throws errc::system.
rlimit raise_open_files();

/// Makes room for `count` descriptors, or for as many as the hard limit allows, in the kernel's table of them. Call it while the
/// process has one thread: a table that grows under several threads (from 64 on by doubling) waits each time until no processor
/// reads the old one, 5 to 15 ms (synchronize_rcu in Linux' fs/file.c). Does nothing if it is not possible.
void make_room_for_open_files(std::size_t count) noexcept;

/// Raises this process' limit of open files as far as possible during its lifetime, for one connection to each shim.
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
