// Ranks of which one keeps the others waiting before each collective.
//   straggler comm|exchange RANK MILLISECONDS FILE [compute|PATH]
// They go on until FILE is there. RANK takes so long; -1: none does. With `compute` every rank uses so much processor time, with PATH every rank reads so many
// KiB of that file from its disk: what holds one of them up is outside of the program.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "base/unique_fd.hpp"
#include "comm/communicator.hpp"
#include "comm/exchange/exchange.hpp"
#include "comm/exchange/request/exchange_options.hpp"
#include "pmix/identity.hpp"

namespace {

using namespace muster;

/// Runs `reduce`, which replaces the values by their maxima over all ranks, until a rank has seen the file.
template <typename Reduce>
void step_until(std::string const& file, std::function<void()> const& work, Reduce const& reduce) {
    std::vector<float> values(20'000);
    do {
        std::ranges::fill(values, ::access(file.c_str(), F_OK) == 0 ? 1.0f : 0.0f);
        work();
        reduce(view_of(std::span(values)));
    } while (values.front() == 0);
}

double processor_s() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void compute(double seconds) {
    for (auto const end = processor_s() + seconds; processor_s() < end;)
        for (int i = 0; i < 10'000; ++i) asm volatile("");
}

/// Reads the next bytes of a file, from its beginning behind its end. Ends the program with 77 where a file cannot be read past the kernel's memory.
class disk_reader {
  public:
    disk_reader(char const* path, std::size_t bytes)
        : file_(::open(path, O_RDONLY | O_DIRECT | O_CLOEXEC)),
          bytes_(bytes),
          memory_(std::aligned_alloc(4096, bytes), std::free) {
        if (!file_) std::exit(77);
    }
    void read_next() {
        auto const got = ::pread(file_.get(), memory_.get(), bytes_, at_);
        if (got < 0) std::exit(77);
        at_ = static_cast<std::size_t>(got) == bytes_ ? at_ + got : 0;
    }

  private:
    unique_fd file_;
    std::size_t bytes_;
    std::unique_ptr<void, void (*)(void*)> memory_;
    off_t at_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc < 5 || argc > 6) return 2;
    auto const variables = environment::capture();
    identity const who = identify(variables);
    auto const options = read_exchange_options(variables);
    auto const amount = std::atoi(argv[3]);
    std::string const how = argc == 6 ? argv[5] : "";
    std::function<void()> work = [late_us = who.rank == std::atoi(argv[2]) ? amount * 1000 : 500] {
        ::usleep(static_cast<useconds_t>(late_us));
    };
    if (how == "compute") work = [amount] { compute(amount * 1e-3); };
    if (how.starts_with('/'))
        work = [reader = std::make_shared<disk_reader>(argv[5], static_cast<std::size_t>(amount) << 10)] { reader->read_next(); };
    if (std::string(argv[1]) == "comm") {
        auto all = communicator::create(who, options.comm);
        step_until(argv[4], work, [&](tensor_view values) { all.allreduce("values", values, reduction::max).wait(); });
        all.close();
    } else {
        exchange by(who, options);
        step_until(argv[4], work, [&](tensor_view values) { by.allreduce("values", values, values, reduction::max).wait(); });
    }
}
