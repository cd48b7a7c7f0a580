// The page in which a rank counts its waits (pmix/wait_page.hpp), as the process that starts the rank holds it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/unique_fd.hpp"
#include "launch/samples/run_samples.hpp"
#include "pmix/wait_page.hpp"

namespace muster {

/// Notes what the page says, without what needs another look, of a rank that uses muster's collectives or loaders. The rank may write anything there.
void read_waits(wait_page const& page, rank_sample& to);

/// Move-only owner of a page.
class rank_waits {
  public:
    /// Makes an empty one: path() is "".
    rank_waits() = default;
    /// Makes a page; an empty one where the kernel gives no memory.
    static rank_waits make() noexcept;

    /// Returns the file for wait_page_variable: other processes of this user open it while this process lives.
    std::string path() const;
    void read(rank_sample& to) const {
        if (page_) read_waits(*page_, to);
    }

  private:
    struct unmap {
        void operator()(wait_page* page) const noexcept;
    };
    unique_fd file_;
    std::unique_ptr<wait_page, unmap> page_;
};

}  // namespace muster
