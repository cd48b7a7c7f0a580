// The copies of ranks' states in one file of memory, as a keeper sees them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.hpp"
#include "launch/keep/machines/copy_shelf.hpp"
#include "pmix/kept_layout.hpp"

namespace muster {

/// Processes of other users cannot open its file, /proc/PID/fd/N. Use it from one thread; `read` may be called from any.
class kept_store final : public copy_shelf {
  public:
    kept_store() : kept_store(kept::make_memory()) {}
    explicit kept_store(unique_fd file) : file_(std::move(file)) {}
    ~kept_store() override;

    int fd() const noexcept { return file_.get(); }
    std::string path() const;  ///< processes of this node open it by this path
    std::uint64_t id() const;  ///< processes distinguish it from others by this
    /// Takes over the file with that id, which another process of this user on this node still has open. Returns false, and
    /// changes nothing, if no process has.
    bool adopt(std::uint64_t id);
    /// Called again and again during long reads.
    std::function<void()> on_progress = [] {};

    std::vector<int> parts() const override;
    bool has_owner(int part) const override;
    std::vector<copy> copies(int part) override;
    std::vector<copy> sound_copies() override;
    bool is_sound(copy const& one) const;  ///< reads all of it

    void want(int part, std::uint64_t step) override;
    void hold(copy const& one) override;
    void release(copy const& one) override;
    void drop(copy const& one) override;
    void drop_part(int part) override;

    /// Reads from a copy that is held or whose owner is gone. Throws errc::system.
    void read(copy const& one, std::uint64_t at, std::span<std::byte> to) const;

    /// Makes room for a copy in a part without a living owner: the oldest slot that is not held. Throws errc::system if memory is
    /// short, errc::invalid_data.
    copy begin(copy const& like);
    void write(copy const& one, std::uint64_t at, std::span<std::byte const> bytes);
    /// Returns whether it is whole; if not, it does not count as a copy.
    bool finish(copy const& one);

  private:
    std::uint64_t size() const;
    void* page(std::uint64_t place);
    kept::head* head_of(int part, std::size_t slot);

    unique_fd file_;
    std::map<std::uint64_t, void*> pages_;
};

}  // namespace muster
