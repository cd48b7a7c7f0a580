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
    /// `descriptors` are three that become 0, 1 and 2; those from `first_unneeded` on are not the child's.
    child_image(process_request request, int const* descriptors, unsigned first_unneeded);
    child_image(child_image const&) = delete;
    child_image& operator=(child_image const&) = delete;

    /// Makes the child, which shares our memory and, where that can be, the table of descriptors until it has made its own. `flags`:
    /// CLONE_VFORK to wait until it runs its program; CLONE_CHILD_CLEARTID to have `left` set to 0 then. -1 and failure() where the
    /// kernel makes none.
    pid_t clone(std::span<std::byte> stack, int flags, std::atomic<pid_t>* left = nullptr);

    child_failure const& failure() const noexcept { return failure_; }
    /// The child failed since the kernel does not know close_range; failure() is forgotten, and later children do without.
    bool lacks_close_range() noexcept;
    /// False once a child of any image lacked it.
    static bool knows_close_range() noexcept;

    /// Throws what start_process throws for failure().
    [[noreturn]] void throw_failure() const;

  private:
    static int run(void* image) noexcept;
    char const* prepare() const noexcept;
    void set_limits() const noexcept;

    process_request request_;
    int const* descriptors_;
    unsigned first_unneeded_;
    bool shares_descriptors_ = false;
    std::vector<std::string> lines_;
    std::vector<char*> argv_, envp_;
    std::vector<cpu_set_t> mask_;
    pid_t parent_;
    child_failure failure_;
};

}  // namespace muster
