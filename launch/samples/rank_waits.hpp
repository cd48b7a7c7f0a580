// The page in which a rank counts its waits (pmix/wait_page.hpp), as the process that starts the rank holds it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/unique_fd.hpp"
#include "launch/samples/run_samples.hpp"
#include "pmix/wait_page.hpp"

namespace muster {

/// Returns what the page says, without what needs another look; nothing if the rank does not use muster's collectives. The rank may write anything there.
std::optional<wait_sample> read_waits(wait_page const& page);

/// Move-only owner of a page.
class rank_waits {
  public:
    /// Makes an empty one: path() is "".
    rank_waits() = default;
    /// Makes a page; an empty one where the kernel gives no memory.
    static rank_waits make() noexcept;

    /// Returns the file for wait_page_variable: other processes of this user open it while this process lives.
    std::string path() const;
    std::optional<wait_sample> read() const { return page_ ? read_waits(*page_) : std::nullopt; }

  private:
    struct unmap {
        void operator()(wait_page* page) const noexcept;
    };
    unique_fd file_;
    std::unique_ptr<wait_page, unmap> page_;
};

}  // namespace muster
