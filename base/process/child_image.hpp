// The image of a child that is being started: holds what it needs until it runs its program.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/process/process.hpp"

namespace muster {

/// The step that failed in the child; none if it runs its program, or has not come so far.
struct child_failure {
    int error = 0;
    char const* step = nullptr;
};

/// The arguments, variables and settings of one child, and its way from clone to its program. Made before the child, which shares our
/// memory and must not allocate, and stays where it is until the child has left that. `request.arguments` must live as long.
class child_image {
  public:
    explicit child_image(process_request request);
    child_image(child_image const&) = delete;
    child_image& operator=(child_image const&) = delete;

    /// Makes the child, which shares our memory, but not our descriptors, until it runs its program: a copy of the memory, as fork makes
    /// it, lengthens a launch of 8 ranks by about a fifth and one of 32 by nearly half (quotients of medians of 40 turns).
    /// `flags`: CLONE_VFORK to wait until it runs its program; CLONE_CHILD_CLEARTID to have `left` set to 0 then. -1 and failure() where
    /// the kernel makes none.
    pid_t clone(std::span<std::byte> stack, int flags, std::atomic<pid_t>* left = nullptr);

    child_failure const& failure() const noexcept { return failure_; }
    /// Throws what start_process throws for failure().
    [[noreturn]] void throw_failure() const;

  private:
    static int run(void* image) noexcept;
    char const* prepare() const noexcept;
    char const* take_descriptors() const noexcept;
    void set_limits() const noexcept;

    process_request request_;
    std::vector<std::string> lines_;
    std::vector<char*> argv_, envp_;
    std::vector<cpu_set_t> mask_;
    pid_t parent_;
    child_failure failure_;
};

}  // namespace muster
