// A starter of many processes: begins the next one while those before it are still on the way to their programs.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "base/process/child_image.hpp"
#include "base/process/process.hpp"

namespace muster {

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
