// The memory in which ranks keep their state, without its bytes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "comm/membership/kept_slots.hpp"
#include "launch/keep/machines/copy_shelf.hpp"

namespace muster::simulation {

/// What outlives a keeper as long as a process has it open.
struct memory_file {
    struct slot {
        copy_shelf::copy what = {};
        bool whole = false;
    };
    struct part {
        int number = 0;
        std::array<slot, kept::slots> slots = {};
        std::uint64_t wanted = 0;
        int owner = -1;  ///< a rank that lives
    };
    std::uint64_t id = 0;
    std::vector<part> parts = {};
    part& at(int number);
    part const* find(int number) const;
};

/// A keeper's view of it.
class simulated_memory final : public copy_shelf {
  public:
    explicit simulated_memory(std::shared_ptr<memory_file> file) : file_(std::move(file)) {}
    std::shared_ptr<memory_file> const& file() const noexcept { return file_; }
    void adopt(std::shared_ptr<memory_file> other) { file_ = std::move(other); }

    std::vector<int> parts() const override;
    bool has_owner(int part) const override;
    std::vector<copy> copies(int part) override;
    std::vector<copy> sound_copies() override;
    void want(int part, std::uint64_t step) override;
    void hold(copy const& one) override;
    void release(copy const& one) override;
    void drop(copy const& one) override;
    void drop_part(int part) override;

    /// A copy that comes, as kept_store has it. Nothing: each slot is held.
    std::optional<copy> begin(copy const& like);
    void finish(copy const& one);

  private:
    memory_file::slot& slot_of(copy const& one) { return file_->at(one.part).slots.at(one.slot); }

    std::shared_ptr<memory_file> file_;
};

/// A rank that begins has it from now on.
kept_commits open_part(memory_file& file, int part, int rank);
/// What a rank does at a commit, as kept_state has it: takes a slot, and makes it whole later.
std::size_t begin_commit(memory_file& file, kept_commits& its, int part, std::uint64_t step);
/// `content` takes the place of a checksum.
void end_commit(memory_file& file, kept_commits& its, int part, std::size_t slot, std::uint64_t step, kept::origin const& by,
                std::uint64_t content);
/// The whole copies that a rank finds.
std::vector<copy_shelf::copy> copies_of(memory_file const& file, int part);

}  // namespace muster::simulation
