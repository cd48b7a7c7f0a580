#include "bench/collectives_rank.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>

#include "base/error.hpp"
#include "base/version.hpp"
#include "bench/aligned.hpp"
#include "comm/communicator.hpp"

namespace muster {

namespace {

using clock = std::chrono::steady_clock;

double micros_since(clock::time_point begin) {
    return std::chrono::duration<double, std::micro>(clock::now() - begin).count();
}

/// Whole numbers, so that every sum is exact; as the peers have them.
float value(unsigned i, unsigned which, unsigned seed, unsigned rank) {
    return static_cast<float>((i * 7u + which * 3u + seed * 5u + rank * 11u) & 63u);
}

class measured_rank {
  public:
    measured_rank(communicator& all, std::ofstream& answer) : all_(all), answer_(answer) {}

    void make(std::istringstream& words) {
        in_.clear();
        out_.clear();
        std::size_t tensors = 0;
        words >> sets_ >> tensors;
        std::vector<std::size_t> bytes(tensors);
        for (auto& each : bytes) words >> each;
        for (std::size_t set = 0; set < sets_; ++set)
            for (auto const each : bytes) {
                in_.emplace_back(each / sizeof(float));
                out_.emplace_back(each / sizeof(float));
            }
        tell(0, 0);
    }

    void run(unsigned seed, bool in_place) {
        auto const rank = static_cast<unsigned>(all_.rank());
        for (std::size_t k = 0; k < in_.size(); ++k)
            for (std::size_t i = 0; i < in_[k].size(); ++i) {
                in_[k][i] = value(static_cast<unsigned>(i), static_cast<unsigned>(k), seed, rank);
                out_[k][i] = in_place ? in_[k][i] : -1.0f;
            }
        all_.barrier().wait();
        auto const begin = clock::now();
        for (std::size_t k = 0; k < in_.size(); ++k) {
            auto const out = view_of(std::span(out_[k]));
            all_.allreduce("x", in_place ? out : view_of(std::span(in_[k])), out, reduction::sum).wait();
        }
        double const micros = micros_since(begin) / static_cast<double>(sets_);
        tell(micros, static_cast<double>(wrong(seed)));
    }

    /// The best of a few, all ranks at once.
    void bound(std::size_t bytes) {
        std::size_t const count = bytes / sizeof(double);
        aligned_vector<double> a(count, 1.0), b(count, 2.0), c(count, 3.0);
        double copied = std::numeric_limits<double>::max(), triad = copied;
        for (int i = 0; i < 5; ++i) {
            all_.barrier().wait();
            auto begin = clock::now();
            std::memcpy(a.data(), b.data(), count * sizeof(double));
            copied = std::min(copied, micros_since(begin));
            all_.barrier().wait();
            begin = clock::now();
            for (std::size_t k = 0; k < count; ++k) a[k] = b[k] + 3.0 * c[k];
            triad = std::min(triad, micros_since(begin));
        }
        all_.barrier().wait();
        tell(copied, triad);
    }

    void tell(double first, double second) {
        answer_ << fmt::format("{} {:.4f} {:.4f}\n", all_.rank(), first, second) << std::flush;
    }

  private:
    std::size_t wrong(unsigned seed) const {
        std::size_t found = 0;
        for (std::size_t k = 0; k < out_.size(); ++k)
            for (std::size_t i = 0; i < out_[k].size(); ++i) {
                float expected = 0;
                for (int rank = 0; rank < all_.size(); ++rank)
                    expected += value(static_cast<unsigned>(i), static_cast<unsigned>(k), seed, static_cast<unsigned>(rank));
                if (out_[k][i] != expected) ++found;
            }
        return found;
    }

    communicator& all_;
    std::ofstream& answer_;
    std::size_t sets_ = 0;
    std::vector<aligned_vector<float>> in_, out_;
};

}  // namespace

int collectives_rank(std::vector<std::string> const& args, environment const& variables) {
    if (args.size() != 3) throw error(errc::usage, "collectives-rank is started by muster-bench collectives");
    identity const who = identify(variables);
    comm_options options;
    options.backend = args[2];
    options.deadline = duration{120};
    communicator all = communicator::create(who, options);
    std::ifstream orders(fmt::format("{}/{}.{}", args[0], args[1], who.rank));
    std::ofstream answer(fmt::format("{}/{}.out", args[0], args[1]));
    measured_rank measured(all, answer);
    for (std::string line; std::getline(orders, line);) {
        std::istringstream words(line);
        std::string order;
        words >> order;
        if (order == "end") break;
        if (order == "version" && who.rank == 0) answer << "0 muster " << version() << ", " << all.backend() << std::endl;
        if (order == "tensors") measured.make(words);
        if (order == "run") {
            unsigned seed = 0;
            int in_place = 0;
            words >> seed >> in_place;
            measured.run(seed, in_place != 0);
        }
        if (order == "bound") {
            std::size_t bytes = 0;
            words >> bytes;
            measured.bound(bytes);
        }
    }
    return 0;
}

}  // namespace muster
