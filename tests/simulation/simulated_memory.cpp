#include "simulated_memory.hpp"

#include <algorithm>

namespace muster::simulation {

memory_file::part& memory_file::at(int number) {
    for (auto& one : parts)
        if (one.number == number) return one;
    return parts.emplace_back(part{.number = number});
}

memory_file::part const* memory_file::find(int number) const {
    for (auto const& one : parts)
        if (one.number == number) return &one;
    return nullptr;
}

std::vector<int> simulated_memory::parts() const {
    std::vector<int> all;
    for (auto const& one : file_->parts) all.push_back(one.number);
    std::sort(all.begin(), all.end());
    return all;
}

bool simulated_memory::has_owner(int part) const {
    auto const* const one = file_->find(part);
    return one != nullptr && one->owner >= 0;
}

std::vector<copy_shelf::copy> copies_of(memory_file const& file, int part) {
    std::vector<copy_shelf::copy> all;
    auto const* const one = file.find(part);
    if (one == nullptr) return all;
    for (auto const& slot : one->slots)
        if (slot.whole) all.push_back(slot.what);
    return all;
}

std::vector<copy_shelf::copy> simulated_memory::copies(int part) {
    return copies_of(*file_, part);
}

std::vector<copy_shelf::copy> simulated_memory::sound_copies() {
    std::vector<copy> all;
    for (int const part : parts())
        for (auto const& one : copies(part)) all.push_back(one);
    return all;
}

void simulated_memory::want(int part, std::uint64_t step) {
    auto& its = file_->at(part);
    its.wanted = step;
    if (step == 0) return;
    std::optional<copy> first;
    for (auto const& one : copies(part))
        if (one.step >= step && (!first || one.step < first->step || (one.step == first->step && one.number > first->number)))
            first = one;
    if (!first) return;
    its.wanted = 0;
    hold(*first);
}

void simulated_memory::hold(copy const& one) {
    if (auto& slot = slot_of(one); slot.whole) slot.what.held = true;
}

void simulated_memory::release(copy const& one) {
    slot_of(one).what.held = false;
}

void simulated_memory::drop(copy const& one) {
    slot_of(one) = {};
}

void simulated_memory::drop_part(int part) {
    std::erase_if(file_->parts, [part](auto const& one) { return one.number == part; });
}

std::optional<copy_shelf::copy> simulated_memory::begin(copy const& like) {
    auto& its = file_->at(like.part);
    std::array<slot_use, kept::slots> uses;
    for (std::size_t i = 0; i < kept::slots; ++i) {
        auto const& slot = its.slots[i];
        if (slot.what.number != 0) uses[i] = {slot.whole && slot.what.held, slot.whole ? 1 + slot.what.number : 1};
    }
    auto const chosen = choose_slot(uses);
    if (!chosen) return std::nullopt;
    auto made = like;
    made.slot = *chosen;
    made.held = false;
    its.slots[*chosen] = {made, false};
    return made;
}

void simulated_memory::finish(copy const& one) {
    slot_of(one).whole = true;
}

namespace {

kept_slots look_at(memory_file::part const& its) {
    kept_slots all;
    for (std::size_t i = 0; i < kept::slots; ++i) all[i] = {its.slots[i].what.number, its.slots[i].what.step, its.slots[i].whole};
    return all;
}

}  // namespace

kept_commits open_part(memory_file& file, int part, int rank) {
    auto& its = file.at(part);
    its.owner = rank;
    return continue_from(look_at(its));
}

std::size_t begin_commit(memory_file& file, kept_commits& its, int part, std::uint64_t step) {
    auto& slots = file.at(part).slots;
    auto const is_held = [&](std::size_t which) { return slots[which].whole && slots[which].what.held; };
    for (auto const which : muster::begin_commit(its, look_at(file.at(part)), step))
        if (!is_held(which)) slots[which].whole = false;
    for (auto const which : slots_for_commit(look_at(file.at(part)), its.newest))
        if (!is_held(which)) {
            slots[which].whole = false;
            return which;
        }
    return kept::slots;
}

void end_commit(memory_file& file, kept_commits& its, int part, std::size_t slot, std::uint64_t step, kept::origin const& by,
                std::uint64_t content) {
    auto& where = file.at(part);
    bool const wanted = where.wanted != 0 && step >= where.wanted;
    if (wanted) where.wanted = 0;
    where.slots[slot] = {{part, slot, muster::end_commit(its, slot), step, 64, content, wanted, by}, true};
}

}  // namespace muster::simulation
