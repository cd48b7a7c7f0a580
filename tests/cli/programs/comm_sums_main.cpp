// Ranks that reduce tensors in memory of every kind and look at each element of each result.
//   comm_sums [BACKEND]
// A line of each on standard output: "rank 0: 90 results are right", or the first wrong one, with exit code 9. The communicator's
// messages, also those for debugging, go to standard error.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "base/log.hpp"
#include "comm/communicator.hpp"
#include "comm/exchange/exchange.hpp"
#include "pmix/identity.hpp"

namespace {

using namespace muster;

/// Of its own, shared with other ranks, or by the rank one or the other.
enum class memory { own, shared, mixed };

struct tensor {
    tensor(communicator& all, std::size_t count, memory kind) {
        bool const shares = kind == memory::shared || (kind == memory::mixed && all.rank() % 2 == 0);
        if (shares)
            shared = all.allocate(count * sizeof(float));
        else
            own.resize(count);
        values = shares ? shared.as<float>().first(count) : std::span(own);
    }
    tensor_view view() const { return view_of(values); }
    comm_buffer shared;
    std::vector<float> own;
    std::span<float> values;
};

class checker {
  public:
    explicit checker(communicator& all) : all_(all) {}

    void check(std::span<float const> values, float wanted, std::string const& what) {
        for (std::size_t i = 0; i < values.size(); ++i)
            if (values[i] != wanted)
                throw std::runtime_error(
                    fmt::format("{} of {}: element {} is {} and not {}", what, values.size(), i, values[i], wanted));
        ++results_;
    }

    void blocking_and_async(std::size_t count, memory kind) {
        tensor const in(all_, count, kind), out(all_, count, kind), second(all_, count, kind);
        for (int turn = 0; turn < 3; ++turn) {
            fill(in, turn);
            fill(second, turn + 10);
            auto first_sum = all_.allreduce("first", in.view(), out.view(), reduction::sum);
            auto second_sum = all_.allreduce("second", second.view(), reduction::sum);
            first_sum.wait();
            second_sum.wait();
            check(out.values, sum(turn), "allreduce");
            check(second.values, sum(turn + 10), "allreduce in place");
            fill(in, turn);
            int const root = turn % all_.size();
            all_.broadcast("from", in.view(), root).wait();
            check(in.values, value(root, turn), "broadcast");
        }
    }

    void exchanged(exchange& by, std::size_t count, memory kind) {
        tensor const in(all_, count, kind), out(all_, count, kind);
        for (int turn = 0; turn < 3; ++turn) {
            fill(in, turn);
            by.allreduce("gradient", in.view(), out.view(), reduction::sum).wait();
            check(out.values, sum(turn), "exchange's allreduce");
        }
    }

    int results() const noexcept { return results_; }

  private:
    static float value(int rank, int turn) { return static_cast<float>(rank + 1 + 100 * turn); }
    float sum(int turn) const {
        float total = 0;
        for (int rank = 0; rank < all_.size(); ++rank) total += value(rank, turn);
        return total;
    }
    void fill(tensor const& which, int turn) const { std::ranges::fill(which.values, value(all_.rank(), turn)); }

    communicator& all_;
    int results_ = 0;
};

int run(identity const& who, std::string const& backend) {
    comm_options options;
    options.backend = backend;
    options.deadline = duration{30};
    options.network_interface = environment::capture().get_or("GLOO_SOCKET_IFNAME", "");
    auto all = communicator::create(who, options);
    checker test(all);
    exchange_options exchanged;
    exchanged.comm = options;
    exchange by(who, exchanged);
    for (std::size_t const count : std::array<std::size_t, 4>{2, 20'000, 300'000, 2'500'000})
        for (memory const kind : {memory::own, memory::shared, memory::mixed}) {
            test.blocking_and_async(count, kind);
            test.exchanged(by, count, kind);
        }
    return test.results();
}

}  // namespace

int main(int argc, char** argv) {
    identity const who = identify(environment::capture());
    init_log("debug", who.host, who.rank);
    int code = 0;
    try {
        int const results = run(who, argc > 1 ? argv[1] : "shm");
        fmt::print("rank {}: {} results are right\n", who.rank, results);
    } catch (std::exception const& problem) {
        fmt::print("rank {}: WRONG: {}\n", who.rank, problem.what());
        code = 9;
    }
    std::fflush(stdout);
    std::_Exit(code);
}
