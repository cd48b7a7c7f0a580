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
#include "launch/keep/copy_shelf.hpp"
#include "pmix/kept_layout.hpp"

namespace muster {

/// Only this user's processes can open its file, /proc/PID/fd/N. Use it from one thread; `read` may be called from any.
class kept_store final : public copy_shelf {
  public:
    kept_store() : kept_store(kept::make_memory()) {}
    explicit kept_store(unique_fd file) : file_(std::move(file)) {}
    ~kept_store() override;

    int fd() const noexcept { return file_.get(); }
    std::string path() const;  ///< by which processes of this node open it
    std::uint64_t id() const;  ///< by which they tell it from others
    /// Takes over the file of that id, which another process of this user on this node still has open. False, and nothing changes, where none has.
    bool adopt(std::uint64_t id);
    /// Called again and again while much is read.
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

    /// A place for a copy, where no owner lives: the oldest that is not held. Throws errc::system where memory is short, errc::invalid_data.
    copy begin(copy const& like);
    void write(copy const& one, std::uint64_t at, std::span<std::byte const> bytes);
    /// Whether it is whole; it is none of the copies before.
    bool finish(copy const& one);

  private:
    std::uint64_t size() const;
    void* page(std::uint64_t place);
    kept::head* head_of(int part, std::size_t slot);

    unique_fd file_;
    std::map<std::uint64_t, void*> pages_;
};

}  // namespace muster
