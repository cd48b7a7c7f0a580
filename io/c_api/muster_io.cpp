#include "io/c_api/muster_io.h"

#include <fmt/format.h>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "base/error.hpp"
#include "comm/communicator.hpp"
#include "io/dataset/dataset.hpp"
#include "io/loader/loader.hpp"
#include "io/loader/sampler.hpp"
#include "pmix/identity.hpp"

namespace muster::io_api {

namespace {

thread_local std::string kept;

int io_code(errc code) {
    switch (code) {
        case errc::usage:
        case errc::config:
        case errc::parse: return MUSTER_IO_E_USAGE;
        case errc::unavailable: return MUSTER_IO_E_UNAVAILABLE;
        case errc::not_found: return MUSTER_IO_E_NOT_FOUND;
        case errc::invalid_data: return MUSTER_IO_E_DATA;
        case errc::system:
        case errc::io: return MUSTER_IO_E_SYSTEM;
        case errc::library: return MUSTER_IO_E_LIBRARY;
        default: return MUSTER_IO_E_INTERNAL;
    }
}

int keep(int code, char const* message) noexcept {
    try {
        kept = message;
    } catch (...) {
        kept.clear();  // no memory for the message
    }
    return code;
}

}  // namespace

/// The message of this thread's last call that failed.
char const* last_message() noexcept {
    return kept.c_str();
}

/// The code of the exception that is being handled, its message remembered.
int code_of_current() noexcept {
    try {
        throw;
    } catch (error const& problem) {
        return keep(io_code(problem.code()), problem.what());
    } catch (std::bad_alloc const&) {
        return keep(MUSTER_IO_E_SYSTEM, "out of memory");
    } catch (std::exception const& problem) {
        return keep(MUSTER_IO_E_INTERNAL, problem.what());
    } catch (...) {
        return keep(MUSTER_IO_E_INTERNAL, "an unknown exception");
    }
}

/// No exception leaves this. `body` returns nothing, or a code.
template <typename Body>
int guarded(Body&& body) noexcept {
    try {
        if constexpr (std::is_void_v<decltype(body())>) {
            body();
            return MUSTER_IO_OK;
        } else {
            return body();
        }
    } catch (...) {
        return code_of_current();
    }
}

template <typename T>
T& need(T* given, char const* what) {
    if (given == nullptr) throw error(errc::usage, fmt::format("{} is null; give one", what));
    return *given;
}

/// The options given; null is all zero.
template <typename T>
T or_zero(T const* given) {
    return given == nullptr ? T{} : *given;
}

}  // namespace muster::io_api

using namespace muster;
using namespace muster::io_api;

struct muster_dataset {
    dataset data;
};
struct muster_sampler {
    sampler order;
};
struct muster_loader {
    loader feed;
    std::optional<loader::epoch_range> epoch{};
    std::optional<loader::iterator> at{};
};

namespace {

static_assert(static_cast<int>(element_type::u8) == MUSTER_IO_U8 && static_cast<int>(element_type::f64) == MUSTER_IO_F64);

template <typename Enum>
Enum one_of(int given, Enum last, char const* what) {
    if (given < 0 || given > static_cast<int>(last))
        throw error(errc::usage, fmt::format("{} is {}; give 0 to {}", what, given, static_cast<int>(last)));
    return static_cast<Enum>(given);
}

/// A count that 0 leaves at `otherwise`.
template <typename Number>
Number or_else(Number given, Number otherwise) {
    return given == 0 ? otherwise : given;
}

std::size_t threads_of(int given, int otherwise, char const* what) {
    if (given < 0) throw error(errc::usage, fmt::format("{} is {}; give 0 or more", what, given));
    return static_cast<std::size_t>(or_else(given, otherwise));
}

sampler make_sampler(std::uint64_t samples, muster_sampler_options const& given) {
    sampler_options how;
    how.seed = given.seed;
    how.shuffle = given.sequential == 0;
    how.tail = one_of(given.tail, tail_rule::drop, "tail");
    how.spread = one_of(given.spread, spread_rule::by_node, "spread");
    how.window = {given.window_chunk_samples, given.window_chunks};
    if (given.weights == nullptr) return sampler(samples, how);
    return sampler(std::vector<double>(given.weights, given.weights + samples),
                   {.draws = given.draws, .replacement = given.once == 0}, how);
}

epoch_part part_of(muster_epoch_part const* given) {
    muster_epoch_part const part = need(given, "the part");
    return {part.epoch, part.rank, part.world, part.start, {part.node_first, part.node_ranks}};
}

transform_options transform_of(muster_transform const& given) {
    transform_options how;
    if (given.mean != nullptr) how.mean.assign(given.mean, given.mean + given.channels);
    if (given.deviation != nullptr) how.deviation.assign(given.deviation, given.deviation + given.channels);
    how.crop_height = given.crop_height;
    how.crop_width = given.crop_width;
    how.pad = given.pad;
    how.random = given.random != 0;
    how.flip = given.flip != 0;
    return how;
}

loader_options options_of(muster_loader_options const& given) {
    loader_options how;
    how.batch = or_else<std::uint64_t>(given.batch, 64);
    how.rank = given.rank;
    how.world = or_else(given.world, 1);
    how.local_rank = given.local_rank;
    how.local_size = or_else(given.local_size, 1);
    how.memory = one_of(given.memory, memory_mode::windowed, "memory");
    if (given.prefetch < -1) throw error(errc::usage, fmt::format("prefetch is {}; give -1 or more", given.prefetch));
    if (given.prefetch != 0) how.prefetch = static_cast<std::size_t>(std::max(0, given.prefetch));
    how.workers = threads_of(given.workers, 1, "workers");
    how.readers = threads_of(given.readers, 4, "readers");
    how.large_pages = given.large_pages != 0;
    if (given.pinned != 0) how.pinned = given.pinned > 0;
    if (given.transform != nullptr) how.transform = transform_of(*given.transform);
    return how;
}

}  // namespace

char const* muster_io_last_error(void) {
    return last_message();
}

int muster_dataset_open(char const* path, char const* split, muster_dataset** opened) {
    return guarded([&] {
        need(opened, "where the dataset goes") = nullptr;
        *opened = new muster_dataset{dataset::open(&need(path, "the path"), split == nullptr ? "train" : split)};
    });
}
int muster_dataset_close(muster_dataset* data) {
    return guarded([&] { delete data; });
}
int muster_dataset_describe(muster_dataset const* data, muster_dataset_facts* facts) {
    return guarded([&] {
        dataset const& of = need(data, "the dataset").data;
        image_shape const shape = of.shape();
        dataset_info const& info = of.info();
        need(facts, "the facts") = muster_dataset_facts{of.size(),
                                                        shape.channels,
                                                        shape.height,
                                                        shape.width,
                                                        of.image_bytes(),
                                                        of.label_bytes(),
                                                        of.classes(),
                                                        info.image_offset.value_or(0),
                                                        info.label_offset.value_or(0),
                                                        info.class_names.size(),
                                                        static_cast<int>(info.type),
                                                        static_cast<int>(info.label_type.value_or(element_type::u8)),
                                                        shape.is_row ? 1 : 0};
    });
}
int muster_dataset_class_name(muster_dataset const* data, uint64_t number, char const** name) {
    return guarded([&] {
        dataset const& of = need(data, "the dataset").data;
        need(name, "where the name goes") = nullptr;
        if (number >= of.classes()) throw error(errc::usage, fmt::format("class {} of {}; give less", number, of.classes()));
        if (!of.info().class_names.empty()) *name = of.info().class_names[number].c_str();
    });
}
int muster_dataset_column_name(muster_dataset const* data, uint64_t number, char const** name) {
    return guarded([&] {
        dataset const& of = need(data, "the dataset").data;
        need(name, "where the name goes") = nullptr;
        auto const elements = of.shape().elements();
        if (number >= elements) throw error(errc::usage, fmt::format("element {} of {}; give less", number, elements));
        if (!of.info().columns.empty()) *name = of.info().columns[number].c_str();
    });
}
int muster_dataset_read(muster_dataset const* data, uint64_t first, uint64_t count, void* samples, void* labels) {
    return guarded([&] {
        dataset const& of = need(data, "the dataset").data;
        if (count > of.size()) throw error(errc::usage, fmt::format("{} samples to read of {}; give fewer", count, of.size()));
        auto const bytes = [&](void* at, std::size_t each) {
            return at == nullptr ? std::span<std::uint8_t>() : std::span(static_cast<std::uint8_t*>(at), count * each);
        };
        of.read(first, count, bytes(samples, of.image_bytes()), bytes(labels, of.label_bytes()));
    });
}
int muster_dataset_verify(muster_dataset const* data) {
    return guarded([&] { need(data, "the dataset").data.verify(); });
}

int muster_sampler_create(uint64_t samples, muster_sampler_options const* options, muster_sampler** made) {
    return guarded([&] {
        need(made, "where the sampler goes") = nullptr;
        *made = new muster_sampler{make_sampler(samples, or_zero(options))};
    });
}
int muster_sampler_free(muster_sampler* sampler) {
    return guarded([&] { delete sampler; });
}
int muster_sampler_count(muster_sampler const* sampler, muster_epoch_part const* part, uint64_t* count) {
    return guarded([&] { need(count, "where the count goes") = need(sampler, "the sampler").order.count(part_of(part)); });
}
int muster_sampler_fill(muster_sampler const* sampler, muster_epoch_part const* part, uint64_t from, uint64_t count,
                        uint64_t* samples) {
    return guarded([&] {
        auto const& order = need(sampler, "the sampler").order;
        epoch_part const where = part_of(part);
        std::size_t const mine = order.count(where);
        if (from > mine || count > mine - from)
            throw error(errc::usage, fmt::format("samples {} to {} of a part of {}; give fewer", from, from + count, mine));
        if (count > 0) order.fill(where, from, std::span<std::uint64_t>(&need(samples, "where the samples go"), count));
    });
}
int muster_window_for(uint64_t samples, uint64_t sample_bytes, uint64_t* chunk_samples, uint64_t* chunks) {
    return guarded([&] {
        shuffle_window const window = window_for(samples, sample_bytes);
        need(chunk_samples, "where the chunk's samples go") = window.chunk_samples;
        need(chunks, "where the chunks go") = window.chunks;
    });
}

int muster_dataset_window(muster_dataset const* data, uint64_t* chunk_samples, uint64_t* chunks) {
    return guarded([&] {
        dataset const& from = need(data, "the dataset").data;
        shuffle_window const window = window_for(from.size(), from.image_bytes(), from.info().chunk_samples);
        need(chunk_samples, "where the chunk's samples go") = window.chunk_samples;
        need(chunks, "where the chunks go") = window.chunks;
    });
}

int muster_loader_create(muster_dataset const* data, muster_sampler const* sampler, muster_loader_options const* options,
                         muster_loader** made) {
    return guarded([&] {
        need(made, "where the loader goes") = nullptr;
        loader_options const how = options_of(or_zero(options));
        if (how.memory == memory_mode::shared)
            throw error(errc::usage, "memory is MUSTER_MEMORY_SHARED, which takes all ranks; call muster_loader_create_shared");
        *made = new muster_loader{loader(need(data, "the dataset").data, need(sampler, "the sampler").order, how)};
    });
}
int muster_loader_create_shared(muster_dataset const* data, muster_sampler const* sampler, muster_loader_options const* options,
                                muster_loader** made) {
    return guarded([&] {
        need(made, "where the loader goes") = nullptr;
        dataset const& of = need(data, "the dataset").data;
        muster::sampler const& order = need(sampler, "the sampler").order;
        muster_loader_options const given = or_zero(options);
        if (given.rank != 0 || given.world != 0 || given.local_rank != 0 || given.local_size != 0)
            throw error(errc::usage,
                        "rank, world, local_rank or local_size is given to muster_loader_create_shared, which finds them "
                        "itself; leave them 0");
        loader_options const how = options_of(given);
        communicator ranks = communicator::create(identify(environment::capture()));
        *made = new muster_loader{loader(of, order, ranks, how)};
    });
}
int muster_loader_free(muster_loader* loader) {
    return guarded([&] { delete loader; });
}
int muster_loader_epoch(muster_loader* loader, uint64_t epoch, uint64_t start, uint64_t* batches) {
    return guarded([&] {
        muster_loader& from = need(loader, "the loader");
        from.at.reset();
        from.epoch.reset();
        from.epoch = from.feed.epoch(epoch, start);
        if (batches != nullptr) *batches = from.epoch->size();
    });
}
int muster_loader_next(muster_loader* loader, muster_batch* batch) {
    return guarded([&]() -> int {
        muster_loader& from = need(loader, "the loader");
        if (!from.epoch) throw error(errc::usage, "no epoch has begun, or it has failed; call muster_loader_epoch");
        try {
            if (!from.at)
                from.at = from.epoch->begin();
            else if (*from.at != std::default_sentinel)
                ++*from.at;
        } catch (...) {
            from.at.reset();
            from.epoch.reset();
            throw;
        }
        if (*from.at == std::default_sentinel) return MUSTER_IO_END;
        muster::batch const& now = **from.at;
        need(batch, "the batch") = muster_batch{now.images.data(), now.values.data(), now.labels.data(), now.samples.data(),
                                                now.count,         now.global_count,  now.resume_at};
        return MUSTER_IO_OK;
    });
}
int muster_loader_report(muster_loader const* loader, muster_loader_times* times) {
    return guarded([&] {
        loader_report const spent = need(loader, "the loader").feed.report();
        need(times, "the times") =
            muster_loader_times{spent.steps, spent.samples, spent.bytes, spent.waited_s, spent.total_s, spent.utilisation()};
    });
}
char const* muster_loader_why(muster_loader const* loader) {
    return loader == nullptr ? nullptr : loader->feed.why().c_str();
}
