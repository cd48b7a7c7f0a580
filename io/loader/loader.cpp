#include "io/loader/loader.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/units.hpp"
#include "io/loader/mapped_memory.hpp"
#include "io/loader/prefetcher.hpp"

namespace muster {

namespace {

// How far gathering asks for memory ahead of copying it: the beginnings of the records that the next 4 KiB of copying will reach,
// 2 to 8 of them. Measured best of 1 to 8 records and 512 bytes to all of a record, for records of 784 and 3136 bytes; asking for
// all of a long record is slower than leaving its rest to the processor.
constexpr std::size_t copied_ahead_bytes = 4096;
constexpr std::size_t beginning_bytes = 512;
constexpr std::size_t worth_a_thread_bytes = std::size_t{1} << 20;

bool several_cores() {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    // More cores than a cpu_set_t has bits: then there are several.
    return ::sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) > 1;
}

std::uint64_t physical_bytes() {
    return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

memory_mode choose(dataset const& from, sampler const& order, loader_options const& options) {
    if (order.options().spread == spread_rule::sharded) return memory_mode::shard;
    std::uint64_t const bytes = static_cast<std::uint64_t>(from.size()) * (from.image_bytes() + from.label_bytes());
    if (bytes <= physical_bytes() / 2 / static_cast<std::uint64_t>(options.local_size)) return memory_mode::whole;
    if (from.info().image_offset) return memory_mode::mapped;
    throw error(
        errc::unavailable,
        fmt::format("{}: {} of samples do not fit {} ranks of this node, and the file is chunked, so it cannot be mapped; use a "
                    "sampler with spread_rule::sharded, or convert without --chunk",
                    from.info().path, format_bytes(bytes), options.local_size));
}

void check(dataset const& from, sampler const& order, loader_options const& options) {
    if (options.batch == 0) throw error(errc::usage, "loader: batches of 0 samples; give at least 1");
    if (options.world < 1 || options.rank < 0 || options.rank >= options.world || options.local_size < 1)
        throw error(errc::usage, fmt::format("loader: rank {} of {}, {} on this node: no such rank; give 0 <= rank < world",
                                             options.rank, options.world, options.local_size));
    if (order.size() != from.size())
        throw error(errc::usage,
                    fmt::format("loader: the sampler is for {} samples, {} has {}; make the sampler of the dataset's size",
                                order.size(), from.info().path, from.size()));
    if (options.memory == memory_mode::shard && order.options().spread != spread_rule::sharded)
        throw error(
            errc::usage,
            "loader: memory mode shard with a sampler that draws from all samples; give the sampler spread_rule::sharded");
    if (options.memory == memory_mode::mapped && !from.info().image_offset)
        throw error(
            errc::unavailable,
            fmt::format("{}: /{}/images is chunked or encoded and cannot be mapped; use memory mode whole, or convert without "
                        "--chunk",
                        from.info().path, from.info().split));
}

}  // namespace

std::string_view to_string(memory_mode mode) noexcept {
    switch (mode) {
        case memory_mode::automatic: return "automatic";
        case memory_mode::whole: return "whole";
        case memory_mode::mapped: return "mapped";
        case memory_mode::shard: return "shard";
    }
    return "unknown";
}

struct loader::state {
    /// A batch's buffers.
    struct slot {
        mapped_memory images;
        std::vector<std::uint8_t> labels;
        std::vector<std::uint64_t> samples;
        std::size_t count = 0;
    };

    state(dataset const& from, sampler const& sampled, loader_options const& chosen)
        : order(sampled), options(chosen), image_bytes(from.image_bytes()), label_bytes(from.label_bytes()) {
        if (options.memory == memory_mode::automatic) options.memory = choose(from, order, options);
        if (!options.prefetch) options.prefetch = options.batch * image_bytes >= worth_a_thread_bytes && several_cores() ? 3 : 0;
        hold(from);
        slots.resize(*options.prefetch == 0 ? 1 : *options.prefetch + 1);
        for (slot& each : slots) {
            each.images = mapped_memory::allocate(options.batch * image_bytes);
            each.labels.resize(options.batch * label_bytes);
            each.samples.resize(options.batch);
        }
        if (*options.prefetch > 0)
            ahead = std::make_unique<prefetcher>(slots.size(),
                                                 [this](std::size_t item, std::size_t into) { gather(item, slots[into]); });
    }

    void hold(dataset const& from) {
        held = {0, from.size()};
        if (options.memory == memory_mode::shard) {
            held = shard_of(from.size(), options.rank, options.world);
            if (held.empty() && order.options().tail == tail_rule::pad) held = {0, from.size()};  // pads from anywhere
        }
        labels = mapped_memory::allocate(std::max<std::size_t>(1, held.count * label_bytes));
        std::span<std::uint8_t> const label_part = labels.bytes().first(held.count * label_bytes);
        if (options.memory == memory_mode::mapped) {
            images = mapped_memory::map_file(from.info().path, *from.info().image_offset, held.count * image_bytes);
            from.read(held, {}, label_part);
        } else {
            images = mapped_memory::allocate(held.count * image_bytes);
            from.read(held, images.bytes(), label_part);
        }
    }

    /// On the prefetching thread, if there is one: reads what epoch() set before the run began.
    void gather(std::size_t item, slot& into) const {
        std::size_t const first = item * options.batch;
        into.count = std::min(options.batch, mine - std::min(mine, first));
        std::span<std::uint64_t> const samples(into.samples.data(), into.count);
        std::uint8_t const* const source = images.bytes().data();
        std::uint8_t const* const label_source = labels.bytes().data();
        std::uint8_t* target = into.images.bytes().data();
        std::size_t const beginning = std::min(image_bytes, beginning_bytes);
        // The processor's own prefetcher follows within a record but cannot know where the next ones lie.
        auto const ask_for = [&](std::uint64_t sample) {
            std::uint8_t const* const record = source + (sample - held.first) * image_bytes;
            for (std::size_t line = 0; line < beginning; line += 64) __builtin_prefetch(record + line);
        };
        // The first records are on their way while the places of the others are worked out.
        std::size_t const ahead_records =
            std::min(samples.size(), std::clamp<std::size_t>(copied_ahead_bytes / image_bytes, 2, 8));
        order.fill(part, std::min(first, mine), samples.first(ahead_records));
        for (std::uint64_t const sample : samples.first(ahead_records)) ask_for(sample);
        order.fill(part, std::min(first + ahead_records, mine), samples.subspan(ahead_records));
        for (std::size_t i = 0; i < samples.size(); ++i) {
            if (i + ahead_records < samples.size()) ask_for(samples[i + ahead_records]);
            std::memcpy(target, source + (samples[i] - held.first) * image_bytes, image_bytes);
            if (label_bytes == 1)
                into.labels[i] = label_source[samples[i] - held.first];
            else if (label_bytes > 1)
                std::memcpy(&into.labels[i * label_bytes], label_source + (samples[i] - held.first) * label_bytes, label_bytes);
            target += image_bytes;
        }
    }

    /// The batch after the current one; false at the end.
    bool advance() {
        std::size_t place = 0;
        if (ahead) {
            auto const next = ahead->next();
            if (!next) return false;
            place = *next;
        } else {
            if (delivered == batches) return false;
            gather(delivered, slots[0]);
        }
        slot const& from = slots[place];
        std::size_t const before = delivered * options.batch;
        std::size_t const ranks = static_cast<std::size_t>(options.world);
        std::size_t const in_longest = std::min(options.batch, longest - before);
        // Ranks with one fewer miss a sample exactly in the step where the longest end.
        std::size_t const missing = longest - before <= options.batch ? shorter : 0;
        current.images = {from.images.bytes().data(), from.count * image_bytes};
        current.labels = {from.labels.data(), from.count * label_bytes};
        current.samples = {from.samples.data(), from.count};
        current.count = from.count;
        current.first_sample = std::min(before, mine);
        current.global_count = in_longest * ranks - missing;
        current.resume_at =
            std::min<std::uint64_t>(order.size(), part.start + static_cast<std::uint64_t>(before + in_longest) * ranks);
        ++delivered;
        return true;
    }

    sampler order;
    loader_options options;
    std::size_t image_bytes;
    std::size_t label_bytes;
    hyperslab held;
    mapped_memory images;
    mapped_memory labels;
    std::vector<slot> slots;

    // The epoch.
    epoch_part part;
    std::size_t mine = 0;     ///< samples of this rank
    std::size_t longest = 0;  ///< samples of rank 0, which has the most
    std::size_t shorter = 0;  ///< ranks with one fewer
    std::size_t batches = 0;
    std::size_t delivered = 0;
    bool at_end = true;
    batch current;

    std::unique_ptr<prefetcher> ahead;  // last: its thread uses all the others
};

loader::loader(dataset const& from, sampler const& order, loader_options options) {
    check(from, order, options);
    state_ = std::make_unique<state>(from, order, options);
}
loader::loader(loader&&) noexcept = default;
loader& loader::operator=(loader&&) noexcept = default;
loader::~loader() = default;

loader::epoch_range loader::epoch(std::uint64_t number, std::uint64_t start) {
    state& s = *state_;
    if (s.ahead) s.ahead->abandon();
    s.part = {number, s.options.rank, s.options.world, start};
    s.mine = s.order.count(s.part);
    s.longest = s.order.count({number, 0, s.options.world, start});
    s.shorter = static_cast<std::size_t>(s.order.shorter_ranks(s.options.world, start).count);
    s.batches = s.longest / s.options.batch + (s.longest % s.options.batch != 0 ? 1 : 0);
    s.delivered = 0;
    s.at_end = false;
    if (s.ahead) s.ahead->start(s.batches);
    return {this, s.batches};
}

loader_options const& loader::options() const noexcept {
    return state_->options;
}
std::size_t loader::held_bytes() const noexcept {
    return state_->labels.bytes().size() + (state_->options.memory == memory_mode::mapped ? 0 : state_->images.bytes().size());
}

loader::iterator loader::epoch_range::begin() {
    iterator first(owner_);
    return ++first;
}

batch const& loader::iterator::operator*() const noexcept {
    return owner_->state_->current;
}
loader::iterator& loader::iterator::operator++() {
    owner_->state_->at_end = !owner_->state_->advance();
    return *this;
}
bool loader::iterator::operator==(std::default_sentinel_t) const noexcept {
    return owner_->state_->at_end;
}

}  // namespace muster
