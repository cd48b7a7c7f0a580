#include "bench/collectives/rank/pair_traffic.hpp"

#include <chrono>
#include <cstring>
#include <utility>

#include "bench/tools/statistics.hpp"

namespace muster {

namespace {

using clock = std::chrono::steady_clock;

constexpr value_rule any_byte{255, 1, 1U << 30, false};
constexpr tensor_view nothing{nullptr, 0, dtype::u8, memory_kind::host};

}  // namespace

pair_traffic::pair_traffic(communicator& all, int first, int second) : all_(all), first_(all.rank() == first) {
    if (all.rank() == first) peer_ = second;
    if (all.rank() == second) peer_ = first;
}

void pair_traffic::make(std::size_t bytes, int slots) {
    slot_bytes_ = (bytes + 63) / 64 * 64;
    std::size_t const needed = slot_bytes_ * static_cast<std::size_t>(slots);
    if (in_.size() < needed) in_ = aligned_vector<std::byte>(needed);
    if (out_.size() < bytes) out_ = aligned_vector<std::byte>(bytes);
    std::memset(in_.data(), 0xa5, needed);
    fill_values(any_byte, dtype::u8, out_.data(), bytes, 0, {0, ++seed_}, all_.rank());
}

tensor_view pair_traffic::sent(std::size_t bytes) {
    return {out_.data(), bytes, dtype::u8, memory_kind::host};
}

tensor_view pair_traffic::received(std::size_t bytes, int slot) {
    return {in_.data() + slot_bytes_ * static_cast<std::size_t>(slot), bytes, dtype::u8, memory_kind::host};
}

void pair_traffic::check(std::size_t bytes, int slots) {
    for (int slot = 0; slot < slots; ++slot)
        wrong_ += count_wrong(any_byte, dtype::u8, received(bytes, slot).data, bytes, 0, {0, seed_}, peer_);
}

std::size_t pair_traffic::take_wrong() noexcept {
    return std::exchange(wrong_, 0);
}

void pair_traffic::meet() {
    std::byte mine{1}, theirs{};
    all_.sendrecv("both are ready", peer_, {&mine, 1, dtype::u8, memory_kind::host}, {&theirs, 1, dtype::u8, memory_kind::host})
        .wait();
}

double pair_traffic::latency_us(std::size_t bytes, int rounds) {
    make(bytes, 1);
    tensor_view const out = sent(bytes), in = received(bytes, 0);
    auto const send = [&] { all_.sendrecv("message", peer_, out, nothing).wait(); };
    auto const receive = [&] { all_.sendrecv("message", peer_, nothing, in).wait(); };
    meet();
    auto const begin = clock::now();
    for (int i = 0; i < rounds; ++i) {
        if (first_) {
            send();
            receive();
        } else {
            receive();
            send();
        }
    }
    double const took = micros_since(begin);
    check(bytes, 1);
    return took / (2.0 * rounds);
}

double pair_traffic::window_us(std::size_t bytes, int window, int rounds, bool both) {
    make(bytes, window);
    tensor_view const out = sent(bytes);
    std::byte answer{1}, answered{};
    tensor_view const short_out{&answer, 1, dtype::u8, memory_kind::host}, short_in{&answered, 1, dtype::u8, memory_kind::host};
    meet();
    auto const begin = clock::now();
    for (int i = 0; i < rounds; ++i) {
        for (int slot = 0; slot < window; ++slot)
            under_way_.push_back(all_.sendrecv("message", peer_, both || first_ ? out : nothing,
                                               both || !first_ ? received(bytes, slot) : nothing));
        for (auto& each : under_way_) each.wait();
        under_way_.clear();
        all_.sendrecv("answer", peer_, first_ ? nothing : short_out, first_ ? short_in : nothing).wait();
    }
    double const took = micros_since(begin);
    if (both || !first_) check(bytes, window);
    return took / (static_cast<double>(rounds) * window);
}

}  // namespace muster
