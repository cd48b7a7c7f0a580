// Eight threads of each rank submit tensors of random sizes, types and reductions in orders of their own; every result is
// checked. MUSTER_STRESS_TENSORS sets how many tensors a rank submits (default 4,096).

// ranks: 4
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include "comm/exchange/exchange.hpp"
#include "mpi_test.hpp"

namespace muster::test {

namespace {

constexpr int threads = 8;
constexpr int chunk = 64;  // of a thread: all of it is submitted before it waits, since the order differs between ranks

int tensors_of_a_rank() {
    char const* const asked = std::getenv("MUSTER_STRESS_TENSORS");
    return asked != nullptr ? std::atoi(asked) : 4096;
}

/// The same on all ranks.
std::uint32_t mix(int thread, int tensor) {
    auto x = static_cast<std::uint32_t>(thread) * 2654435761u ^ (static_cast<std::uint32_t>(tensor) * 2246822519u + 0x9e3779b9u);
    x ^= x >> 15;
    x *= 2246822519u;
    return x ^ (x >> 13);
}

template <typename T>
struct trial {
    std::vector<T> values;
    exchange_handle handle;
    reduction how = reduction::sum;

    void submit(exchange& all, int thread, int tensor) {
        auto const random = mix(thread, tensor);
        values.assign(random % 700 + 1, static_cast<T>(all.rank() + static_cast<int>(random % 5)));
        how = random % 3 == 0 ? reduction::max : reduction::sum;
        auto const view = view_of(std::span(values));
        // names come again, so that most are cached; every 16th is new
        std::string const name = std::to_string(thread) + "." + std::to_string(random % 16 == 0 ? tensor : tensor % (4 * chunk)) +
                                 "." + std::to_string(random % 700) + (random % 16 == 0 ? "once" : "");
        handle = all.allreduce(name, view, view, how);
    }
    bool check(int size, int thread, int tensor) const {
        int const base = static_cast<int>(mix(thread, tensor) % 5);
        int const expected = how == reduction::max ? size - 1 + base : size * (size - 1) / 2 + size * base;
        return std::all_of(values.begin(), values.end(), [&](T value) { return value == static_cast<T>(expected); });
    }
};

void submit_and_check(exchange& all, int thread, int tensors, int& wrong) {
    std::mt19937 order(static_cast<unsigned>(all.rank() * threads + thread));
    for (int first = 0; first < tensors; first += chunk) {
        std::vector<int> turn;
        for (int i = first; i < std::min(first + chunk, tensors); ++i) turn.push_back(i);
        std::shuffle(turn.begin(), turn.end(), order);
        std::vector<trial<float>> floats(turn.size());
        std::vector<trial<std::int32_t>> integers(turn.size());
        for (std::size_t i = 0; i < turn.size(); ++i) {
            if (mix(thread, turn[i]) % 4 == 1)
                integers[i].submit(all, thread, turn[i]);
            else
                floats[i].submit(all, thread, turn[i]);
        }
        std::shuffle(turn.begin(), turn.begin(), order);
        for (std::size_t i = 0; i < turn.size(); ++i) {
            bool const is_integer = mix(thread, turn[i]) % 4 == 1;
            (is_integer ? integers[i].handle : floats[i].handle).wait();
            bool const right =
                is_integer ? integers[i].check(all.size(), thread, turn[i]) : floats[i].check(all.size(), thread, turn[i]);
            if (!right) ++wrong;
        }
    }
}

TEST(exchange_stress, eight_threads_in_orders_of_their_own) {
    exchange_options options;
    options.comm = ranks().options();
    options.comm.backend = ranks().backend();
    options.deadline = duration{100.0};
    options.cache_capacity = 256;  // less than there are names
    exchange all(ranks().who(), options);
    std::vector<int> wrong(threads, 0);
    std::vector<std::thread> workers;
    int const each = tensors_of_a_rank() / threads;
    for (int thread = 0; thread < threads; ++thread)
        workers.emplace_back([&, thread] { submit_and_check(all, thread, each, wrong[static_cast<std::size_t>(thread)]); });
    for (auto& worker : workers) worker.join();
    for (int const count : wrong) EXPECT_EQ(count, 0);
    EXPECT_EQ(all.count().tensors, static_cast<std::uint64_t>(each * threads));
}

}  // namespace

}  // namespace muster::test
