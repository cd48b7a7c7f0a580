// A starter of many processes: begins the next one while those before it are still on the way to their programs.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/process/process.hpp"

namespace muster {

// The image of a child that is being started: holds what it needs until it runs its program.

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

/// start_process() waits for each child to come to its program; where others have the processors, each of these waits is one for a turn.
/// Here a few are on the way at once. On two cores that shortens a launch by 3 to 4 % where they are free, and by a third for 8 ranks and
/// by half for 32 where others keep them busy (medians of 40 pairs at a load of 13). The first one is waited for, so
/// that what stands against all of them stands against it alone. From one thread, which must live as long as the children: they get their
/// `death_signal` with it.
class process_starter {
  public:
    /// `count` processes are to come.
    explicit process_starter(int count);
    ~process_starter();  ///< waits as finish() does, and throws nothing
    process_starter(process_starter const&) = delete;
    process_starter& operator=(process_starter const&) = delete;

    /// Begins the next one and returns its process id; the caller may close its own descriptors and destroy request.variables then, but
    /// request.arguments must outlive finish(). Throws as start_process does where it fails at once.
    pid_t begin(process_request const& request);

    /// Waits until all run their programs. Throws as start_process does for the first that did not: it has ended with code 127, and is
    /// to be waited for as any other.
    void finish();

  private:
    /// Room for one child on its way.
    struct place {
        alignas(64) std::array<std::byte, 32 << 10> stack;
        std::optional<child_image> child;
        std::atomic<pid_t> on_its_way{0};
    };
    void free_place(place& one) noexcept;

    std::vector<std::unique_ptr<place>> places_;
    std::size_t next_ = 0;
    bool any_ = false;
    std::exception_ptr failed_;  ///< of the first child that did not come to its program
};

}  // namespace muster
