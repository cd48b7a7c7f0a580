#include "io/loader/loader.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "base/log.hpp"
#include "base/throw_error.hpp"
#include "base/units.hpp"
#include "comm/backend/wait_counts.hpp"
#include "comm/communicator.hpp"
#include "comm/cuda/handles.hpp"
#include "comm/fail_together.hpp"
#include "io/loader/mapped_memory.hpp"
#include "io/loader/memory_choice.hpp"
#include "io/loader/prefetcher.hpp"
#include "io/loader/window_reader.hpp"

namespace muster {

/// Says how many records are asked for ahead, and how much of each: its beginning, after which the processor's own prefetcher follows;
/// where the next record lies it cannot know. Measured on records of 784 and 3136 bytes, of 2 to 16 records and 256 bytes to all:
/// more than 512 bytes are no gain, and asking for the first records of the next batch already is worth a fifth.
inline constexpr std::size_t records_ahead = 16;
inline constexpr std::size_t beginning_bytes = 512;

/// Calls use(i, record(wanted[i])) for every sample of `wanted` in its order, with the records
/// of those up to records_ahead later, also in `next`, on their way to the cache.
template <typename Record, typename Use>
void gather_records(std::span<std::uint64_t const> wanted, std::span<std::uint64_t const> next, std::size_t bytes,
                    Record&& record, Use&& use) {
    std::size_t const beginning = std::min(bytes, beginning_bytes);
    auto const ask_for = [&](std::uint64_t sample) {
        std::uint8_t const* const at = record(sample);
        for (std::size_t line = 0; line < beginning; line += 64) __builtin_prefetch(at + line);
    };
    // The first ones were asked for with the batch before, or are now: it costs little to ask twice.
    for (std::uint64_t const sample : wanted.first(std::min(wanted.size(), records_ahead))) ask_for(sample);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        std::size_t const later = i + records_ahead;
        if (later < wanted.size())
            ask_for(wanted[later]);
        else if (later - wanted.size() < next.size())
            ask_for(next[later - wanted.size()]);
        use(i, record(wanted[i]));
    }
}

/// Records of these sizes are asked for line by line between the lines that are copied, this many bytes ahead: measured, a fifth
/// faster than the beginnings alone at 784 bytes, as fast at 3136. Smaller ones end too soon, larger ones memcpy copies faster.
inline constexpr std::size_t smallest_interleaved_bytes = 512, largest_interleaved_bytes = 4096, interleaved_ahead_bytes = 4704;

/// Copies `bytes` bytes and requests the same number at `next`.
inline void copy_and_ask_for(std::uint8_t* to, std::uint8_t const* from, std::uint8_t const* next, std::size_t bytes) {
    constexpr std::size_t line = 64;
    std::size_t at = 0;
    for (; at + line <= bytes; at += line) {
        __builtin_prefetch(next + at);
        std::memcpy(to + at, from + at, line);
    }
    __builtin_prefetch(next + at);
    std::memcpy(to + at, from + at, bytes - at);
}

/// Copies the records of `wanted` one behind the other to `to`; `next` are those that are wanted after them.
template <typename Record>
void copy_records(std::span<std::uint64_t const> wanted, std::span<std::uint64_t const> next, std::size_t bytes, Record&& record,
                  std::uint8_t* to) {
    if (bytes < smallest_interleaved_bytes || bytes > largest_interleaved_bytes) {
        gather_records(wanted, next, bytes, record,
                       [&](std::size_t i, std::uint8_t const* from) { std::memcpy(to + i * bytes, from, bytes); });
        return;
    }
    std::size_t const ahead = interleaved_ahead_bytes / bytes;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        std::uint8_t const* const from = record(wanted[i]);
        std::size_t const later = i + ahead;
        std::uint8_t const* const asked = later < wanted.size()                 ? record(wanted[later])
                                          : later - wanted.size() < next.size() ? record(next[later - wanted.size()])
                                                                                : from;
        copy_and_ask_for(to + i * bytes, from, asked, bytes);
    }
}

namespace {

constexpr std::size_t worth_a_thread_bytes = std::size_t{1} << 20;

bool several_cores() {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    // More cores than a cpu_set_t has bits: then there are several.
    return ::sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) > 1;
}

}  // namespace

struct loader::state {
    /// A batch's buffers.
    struct slot {
        mapped_memory own;
        cuda::pinned_buffer pinned;      ///< in its place
        std::span<std::uint8_t> images;  ///< one of these; with a transform, its values
        std::vector<std::uint8_t> labels;
        std::vector<std::uint64_t> samples;  ///< and some of the next batch's, which are asked for ahead
        std::size_t count = 0;
    };

    state(dataset const& from, sampler const& sampled, loader_options const& chosen, communicator* ranks)
        : order(sampled), options(chosen), image_bytes(from.image_bytes()), label_bytes(from.label_bytes()), shape(from.shape()) {
        if (options.transform) {
            if (from.info().type != element_type::u8)
                throw_error(errc::usage, "{}: a transform works on bytes (u8), the samples are {}; leave the transform out",
                            from.info().path, to_string(from.info().type));
            transform.emplace(shape, *options.transform, order.options().seed);
            shape = transform->out();
        }
        held = drawn_from(from.size());
        decide(from, ranks);
        delivered_bytes = transform ? transform->values() * sizeof(float) : image_bytes;
        bool const heavy = transform || options.batch * image_bytes >= worth_a_thread_bytes;
        if (!options.prefetch) options.prefetch = heavy && several_cores() ? 3 : 0;
        if (options.memory == memory_mode::windowed) options.workers = 1;  // windows are gone through in their order
        if (!options.pinned) options.pinned = cuda::uses_gpu();
        hold(from, ranks);
        slots.resize(*options.prefetch == 0 ? 1 : *options.prefetch + 1);
        for (slot& each : slots) {
            allocate(each, options.batch * delivered_bytes);
            each.labels.resize(options.batch * label_bytes);
            each.samples.resize(options.batch + records_ahead);
        }
        if (*options.prefetch > 0)
            ahead = std::make_unique<prefetcher>(
                slots.size(), [this](std::size_t item, std::size_t into) { gather(item, slots[into]); }, options.workers);
    }

    void allocate(slot& into, std::size_t bytes) const {
        if (*options.pinned) {
            into.pinned = cuda::pinned_buffer::allocate(cuda::find_driver(), bytes, options.local_rank);
            into.images = into.pinned.bytes();
        } else {
            into.own = mapped_memory::allocate(bytes);
            into.images = into.own.bytes();
        }
    }

    rank_range node() const { return {options.rank - options.local_rank, options.local_size}; }

    /// The samples that this rank, or with `together` its node, draws from.
    hyperslab drawn_from(std::size_t samples) const {
        if (order.options().spread == spread_rule::global) return {0, samples};
        rank_range const sharing = order.options().spread == spread_rule::by_node ? node() : rank_range{options.rank, 1};
        hyperslab const found = shards_of(samples, sharing, options.world);
        // A rank without samples pads from anywhere.
        return found.empty() && order.options().tail == tail_rule::pad ? hyperslab{0, samples} : found;
    }

    void decide(dataset const& from, communicator* ranks) {
        memory_room const room = available_memory();
        std::uint64_t const bytes = std::uint64_t{held.count} * (image_bytes + label_bytes);
        // Ranks that share memory must all choose to.
        auto const on_all = [&](bool own) {
            std::int64_t answer = own ? 1 : 0;
            if (ranks != nullptr) ranks->allreduce("a loader's memory", view_of(std::span(&answer, 1)), reduction::min).wait();
            return answer != 0;
        };
        memory_circumstances now;
        now.mappable = from.info().image_offset.has_value();
        now.windowed = order.options().window && from.info().read_by_chunks;
        now.sharded = order.options().spread == spread_rule::sharded;
        now.together = on_all(ranks != nullptr && options.local_size > 1 && !now.sharded);
        now.fits = on_all(bytes <= room.bytes / 2 / (now.together ? 1 : static_cast<std::uint64_t>(options.local_size)));
        bool const asked = options.memory != memory_mode::automatic;
        if (!asked) options.memory = choose_memory(now);
        why = fmt::format("{}: {} by {} of this node's ranks, memory mode {} ({}; {} free by {})", from.info().path,
                          format_bytes(bytes), options.local_size, to_string(options.memory),
                          asked      ? "as asked for"
                          : now.fits ? "they fit half of the memory"
                                     : "they do not fit half of the memory",
                          format_bytes(room.bytes), room.by);
        if (!asked && options.memory == memory_mode::shard && !now.sharded)
            throw_error(errc::unavailable,
                        "{}: {} of samples do not fit {} ranks of this node ({} free by {}), and the file is chunked, so it "
                        "cannot be mapped; use a sampler with a window or with the spread \"sharded\"",
                        from.info().path, format_bytes(bytes), options.local_size, format_bytes(room.bytes), room.by);
        if (!asked && options.memory == memory_mode::mapped) why += "; a sampler with a window reads larger pieces";
        if (options.local_rank == 0) spdlog::debug("{}", why);
    }

    void hold(dataset const& from, communicator* ranks) {
        if (options.memory == memory_mode::whole || options.memory == memory_mode::mapped) held = {0, from.size()};
        labels = mapped_memory::allocate(std::max<std::size_t>(1, held.count * label_bytes));
        std::span<std::uint8_t> const label_part = labels.bytes().first(held.count * label_bytes);
        switch (options.memory) {
            case memory_mode::mapped:
                images = mapped_memory::map_file(from.info().path, *from.info().image_offset, held.count * image_bytes);
                from.read(held, {}, label_part);
                break;
            case memory_mode::windowed:
                windows =
                    std::make_unique<window_reader>(sample_file(from), order.options().window, from.size(), options.readers);
                from.read(held, {}, label_part);
                break;
            case memory_mode::shared:
                images = share_on_node(*ranks, held.count * image_bytes, options.large_pages, [&](std::span<std::uint8_t> into) {
                    from.read(into.empty() ? hyperslab{} : held, into, {});
                });
                from.read(held, {}, label_part);
                break;
            default: images = mapped_memory::allocate(held.count * image_bytes); from.read(held, images.bytes(), label_part);
        }
    }

    /// On the prefetching threads, if there are any: reads what epoch() set before the run began.
    void gather(std::size_t item, slot& into) {
        std::size_t const first = std::min(item * options.batch, mine);
        into.count = std::min(options.batch, mine - first);
        std::size_t const with_next = std::min(into.count + records_ahead, mine - first);
        std::span<std::uint64_t> const samples(into.samples.data(), with_next);
        order.fill(part, first, samples);
        gather_labels(samples.first(into.count), into);
        if (windows) {
            gather_windows(first, samples.first(into.count), into);
            return;
        }
        std::uint8_t const* const source = images.bytes().data();
        gather_pixels(samples.first(into.count), samples.subspan(into.count), into, 0,
                      [&](std::uint64_t sample) { return source + (sample - held.first) * image_bytes; });
    }

    /// Fills the batch from its place `at` on.
    template <typename Record>
    void gather_pixels(std::span<std::uint64_t const> samples, std::span<std::uint64_t const> next, slot& into, std::size_t at,
                       Record&& record) const {
        std::uint8_t* const to = into.images.data() + at * delivered_bytes;
        if (!transform) return copy_records(samples, next, image_bytes, record, to);
        gather_records(samples, next, image_bytes, record, [&](std::size_t i, std::uint8_t const* from) {
            transform->apply(part.epoch, samples[i], from, reinterpret_cast<float*>(to + i * delivered_bytes));
        });
    }

    void gather_labels(std::span<std::uint64_t const> samples, slot& into) const {
        std::uint8_t const* const source = labels.bytes().data();
        if (label_bytes == 1)
            for (std::size_t i = 0; i < samples.size(); ++i) into.labels[i] = source[samples[i] - held.first];
        else if (label_bytes > 1)
            for (std::size_t i = 0; i < samples.size(); ++i)
                std::memcpy(&into.labels[i * label_bytes], source + (samples[i] - held.first) * label_bytes, label_bytes);
    }

    /// The same from the windows that the batch's samples lie in: mostly one, at its end two.
    void gather_windows(std::size_t first, std::span<std::uint64_t const> samples, slot& into) {
        std::size_t done = 0;
        while (done < samples.size()) {
            std::uint64_t const position = (way.position + (first + done) * way.step) % way.samples.count;
            std::uint64_t const w = way_order->window_of(position);
            std::size_t run = 1;
            while (done + run < samples.size() &&
                   way_order->window_of((way.position + (first + done + run) * way.step) % way.samples.count) == w)
                ++run;
            if (position < last_position) windows->start(*way_order, way.samples.first, w);  // padding begins the order again
            last_position = position;
            windows->enter(w);
            std::span<std::uint64_t const> const here = samples.subspan(done, run);
            gather_pixels(here, {}, into, done,
                          [&](std::uint64_t sample) { return windows->record(sample - way.samples.first); });
            done += run;
        }
    }

    /// The batch after the current one; false at the end.
    bool advance() {
        auto const began = std::chrono::steady_clock::now();
        if (spent.steps == 1) first_step_ended = began;
        bool const there = next_batch();
        auto const now = std::chrono::steady_clock::now();
        if (spent.steps > 0) {
            spent.waited_s += duration(now - began).count();
            spent.total_s = std::chrono::duration<double>(now - first_step_ended).count();
        }
        if (!there) return false;
        if (waits) waits->add_batch(spent.steps > 0 ? now - began : duration());  // the first one is waited for by every program
        ++spent.steps;
        spent.samples += current.count;
        spent.bytes += current.count * image_bytes;
        return true;
    }

    bool next_batch() {
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
        std::uint8_t const* const bytes = from.images.data();
        current.images = transform ? std::span<std::uint8_t const>() : std::span(bytes, from.count * image_bytes);
        current.values = transform ? std::span(reinterpret_cast<float const*>(bytes), from.count * transform->values())
                                   : std::span<float const>();
        current.labels = {from.labels.data(), from.count * label_bytes};
        current.samples = {from.samples.data(), from.count};
        current.count = from.count;
        current.first_sample = std::min(before, mine);
        current.global_count = in_longest * ranks - missing;
        current.resume_at =
            std::min<std::uint64_t>(order.length(), part.start + static_cast<std::uint64_t>(before + in_longest) * ranks);
        ++delivered;
        return true;
    }

    sampler order;
    loader_options options;
    std::size_t image_bytes;  ///< in the dataset
    std::size_t label_bytes;
    std::size_t delivered_bytes;  ///< in a batch
    image_shape shape;            ///< in a batch
    std::optional<image_transform> transform;
    std::string why;
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
    loader_report spent;
    std::chrono::steady_clock::time_point first_step_ended;
    std::shared_ptr<wait_counts> const waits = wait_counts::open(options.wait_page, wait_counts::use::data);

    // Loaders with windows alone use these.
    std::unique_ptr<window_reader> windows;
    epoch_walk way;
    std::optional<windowed_order> way_order;
    std::uint64_t last_position = 0;  ///< of those gathered

    std::unique_ptr<prefetcher> ahead;  // last: its thread uses all the others
};

loader::loader(dataset const& from, sampler const& order, loader_options options) {
    check_options(from, order, options, false);
    state_ = std::make_unique<state>(from, order, options, nullptr);
}
loader::loader(dataset const& from, sampler const& order, communicator& ranks, loader_options options) {
    node_ranks const node = ranks_of_node(ranks);
    options.rank = ranks.rank();
    options.world = ranks.size();
    options.local_rank = node.place;
    options.local_size = node.count;
    run_on_all(ranks, "making a loader", [&] {
        check_options(from, order, options, true);
        if (order.options().spread == spread_rule::by_node && node.first != options.rank - node.place)
            throw_error(errc::usage,
                        "loader: the ranks of this node do not follow each other (rank {} is number {} from rank {} on), which "
                        "the spread \"by_node\" needs; place ranks by block, or use global",
                        options.rank, node.place, node.first);
    });
    state_ = std::make_unique<state>(from, order, options, &ranks);
}
loader::loader(loader&&) noexcept = default;
loader& loader::operator=(loader&&) noexcept = default;
loader::~loader() = default;

loader::epoch_range loader::epoch(std::uint64_t number, std::uint64_t start) {
    state& s = *state_;
    if (s.ahead) s.ahead->abandon();
    s.part = {number, s.options.rank, s.options.world, start, s.node()};
    s.mine = s.order.count(s.part);
    s.longest = s.order.count({number, 0, s.options.world, start, {0, s.options.local_size}});
    s.shorter = static_cast<std::size_t>(s.order.shorter_ranks(s.options.world, start).count);
    s.batches = s.longest / s.options.batch + (s.longest % s.options.batch != 0 ? 1 : 0);
    s.delivered = 0;
    s.at_end = false;
    s.spent = {};
    if (s.windows && s.mine > 0) {
        s.way = s.order.walk(s.part);
        s.way_order.emplace(s.way.samples.count, s.way.key, s.order.options().window, s.order.options().shuffle);
        s.last_position = s.way.position % s.way.samples.count;
        s.windows->start(*s.way_order, s.way.samples.first, s.way_order->window_of(s.last_position));
    }
    if (s.ahead) s.ahead->start(s.batches);
    return {this, s.batches};
}

loader_options const& loader::options() const noexcept {
    return state_->options;
}
std::size_t loader::held_bytes() const noexcept {
    std::size_t const pixels = state_->windows                                 ? state_->windows->held_bytes()
                               : state_->options.memory == memory_mode::mapped ? 0
                                                                               : state_->images.bytes().size();
    return state_->held.count * state_->label_bytes + pixels;
}
image_shape loader::shape() const noexcept {
    return state_->shape;
}
std::string const& loader::why() const noexcept {
    return state_->why;
}
loader_report loader::report() const noexcept {
    return state_->spent;
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
