#include "comm/gradients/gradient_reducer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <functional>

#include "base/log.hpp"
#include "base/text.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/backend/keep_forever.hpp"
#include "comm/fail_together.hpp"

namespace muster {

namespace {

std::int64_t hash_of(std::string_view text) {
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (char const c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    return static_cast<std::int64_t>(hash);
}

std::string speaker(communicator const& ranks) {
    return fmt::format("gradient_reducer (rank {} of {} on {})", ranks.rank(), ranks.size(), ranks.who().host);
}

/// Rank 0's text, on every rank.
std::string text_of_rank_0(communicator& ranks, std::string const& own) {
    std::int64_t length = static_cast<std::int64_t>(own.size());
    ranks.broadcast("the length of rank 0's list of gradients", view_of(std::span(&length, 1)), 0).wait();
    std::string text = ranks.rank() == 0 ? own : std::string(static_cast<std::size_t>(length), '\0');
    ranks.broadcast("rank 0's list of gradients", {text.data(), text.size(), dtype::u8, memory_kind::host}, 0).wait();
    return text;
}

/// Throws on all ranks, or on none, if `text` is not the same on all.
void require_same(communicator& ranks, std::string const& text) {
    std::string const reference = text_of_rank_0(ranks, text);
    std::optional<own_failure> failure;
    if (auto const difference = first_difference(text, reference)) failure = {errc::peer_failed, *difference};
    throw_if_any_failed(ranks, "gradient_reducer: agreeing on the gradients", failure);
}

/// Whether `value` is the same on all ranks, known to all.
bool same_on_all(communicator& ranks, std::string_view name, std::int64_t value) {
    std::array<std::int64_t, 2> bounds{value, ~value};  // the complement turns a minimum into a maximum
    ranks.allreduce(name, view_of(std::span(bounds)), reduction::min).wait();
    return bounds[0] == ~bounds[1];
}

}  // namespace

gradient_reducer::gradient_reducer(communicator& ranks, std::vector<gradient_view> in_order_of_readiness,
                                   gradient_reducer_options const& options)
    : ranks_(&ranks), gradients_(std::move(in_order_of_readiness)) {
    // The options go first, as if they were gradients: a difference is told in the same words.
    std::string const text =
        fmt::format("{}\n(bucket_bytes)\n{}\n(first_bucket_bytes)\n", options.bucket_bytes, options.first_bucket_bytes);
    std::string const list = serialise(gradients_);
    if (!same_on_all(ranks, "the list of gradients", hash_of(list))) require_same(ranks, list);
    if (!same_on_all(ranks, "the options of the gradients", hash_of(text))) require_same(ranks, text);

    std::vector<std::size_t> elements;
    for (auto const& gradient : gradients_) elements.push_back(gradient.values.size());
    std::string layout;
    for (auto const& range : plan_buckets(elements, options.first_bucket_bytes, options.bucket_bytes)) {
        auto const members = std::span(gradients_).subspan(range.first, range.count);
        bucket& next = buckets_.emplace_back();
        next.range = range;
        next.pending = range.count;
        next.name = fmt::format("bucket {} (\"{}\" to \"{}\")", buckets_.size() - 1, members.front().name, members.back().name);
        for (auto const& member : members) next.count += member.values.size();
        bucket_of_.insert(bucket_of_.end(), range.count, buckets_.size() - 1);
        if (auto const order = memory_order(members)) {
            next.memory = members[order->front()].values.data();
            layout += fmt::format("{};", fmt::join(*order, ","));
        } else
            layout += "no;";
    }
    // Reduced where they lie, elements meet by their place in memory, so that must be the same place on all ranks.
    bool const same_layout = same_on_all(ranks, "the layout of the gradients", hash_of(layout));
    for (auto& each : buckets_) {
        if (!same_layout) each.memory = nullptr;
        if (each.memory == nullptr && each.count != 0) each.buffer = std::make_unique_for_overwrite<float[]>(each.count);
    }
    is_ready_.assign(gradients_.size(), false);
}

gradient_reducer::~gradient_reducer() {
    for (auto& each : buckets_) {
        try {
            each.reduction.wait(std::uncaught_exceptions() > 0 ? duration{2.0} : ranks_->options().deadline);
        } catch (...) {
            // A late rank may still cause writes to the buffer: it is given up together with the communicator.
            detail::keep_forever(std::move(each.buffer));
        }
    }
}

void gradient_reducer::ready(std::size_t index) {
    if (index >= gradients_.size())
        throw comm_error(errc::usage,
                         fmt::format("{}: there is no gradient {}, only {}", speaker(*ranks_), index, gradients_.size()));
    if (is_ready_[index])
        throw comm_error(errc::usage,
                         fmt::format("{}: gradient {} (\"{}\") was ready before in this step; call finish() between steps",
                                     speaker(*ranks_), index, gradients_[index].name));
    is_ready_[index] = true;
    if (--buckets_[bucket_of_[index]].pending == 0) start_full_buckets();
    ranks_->progress();
}

void gradient_reducer::start_full_buckets() {
    for (; started_ < buckets_.size() && buckets_[started_].pending == 0; ++started_) {
        bucket& next = buckets_[started_];
        if (next.memory == nullptr) gather(next);
        float* const data = next.memory != nullptr ? next.memory : next.buffer.get();
        next.reduction = ranks_->allreduce(next.name, {data, next.count, dtype::f32, memory_kind::host}, reduction::average);
    }
}

void gradient_reducer::gather(bucket& from) {
    float* to = from.buffer.get();
    for (std::size_t i = 0; i < from.range.count; ++i) {
        auto const& values = gradients_[from.range.first + i].values;
        to = std::copy(values.begin(), values.end(), to);
    }
}

void gradient_reducer::scatter(bucket& to) {
    float const* from = to.buffer.get();
    for (std::size_t i = 0; i < to.range.count; ++i) {
        auto const& values = gradients_[to.range.first + i].values;
        std::copy_n(from, values.size(), values.begin());
        from += values.size();
    }
}

std::size_t gradient_reducer::finished_buckets() {
    for (; finished_ < started_ && buckets_[finished_].reduction.done(); ++finished_)
        if (buckets_[finished_].memory == nullptr) scatter(buckets_[finished_]);
    return finished_;
}

void gradient_reducer::finish() {
    if (started_ != buckets_.size()) {
        std::vector<std::string> missing;
        for (std::size_t i = 0; i < gradients_.size() && missing.size() < 8; ++i)
            if (!is_ready_[i]) missing.push_back(fmt::format("{} (\"{}\")", i, gradients_[i].name));
        throw comm_error(errc::usage, fmt::format("{}: finish() before ready() of {} gradients, the first: {}", speaker(*ranks_),
                                                  std::count(is_ready_.begin(), is_ready_.end(), false), join(missing, ", ")));
    }
    for (; finished_ < buckets_.size(); ++finished_) {
        bucket& next = buckets_[finished_];
        next.reduction.wait();
        if (next.memory == nullptr) scatter(next);
    }
    for (auto& each : buckets_) each.pending = each.range.count;
    is_ready_.assign(gradients_.size(), false);
    started_ = 0;
    finished_ = 0;
}

}  // namespace muster
