#include "bench/tools/commands.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>
#include <sstream>

#include "base/error.hpp"
#include "base/process/files.hpp"
#include "base/unique_fd.hpp"
#include "base/version.hpp"
#include "bench/collectives/rank/measured_rank.hpp"
#include "bench/collectives/raw_nccl.hpp"
#include "bench/tools/statistics.hpp"
#include "comm/communicator.hpp"

namespace muster {

namespace {

using clock = std::chrono::steady_clock;

class ordered_rank {
  public:
    ordered_rank(way_to_ranks const& by, int answers) : by_(by), answers_(answers), measured_(by) {}

    void choose(std::istringstream& words) {
        std::string what, type, how;
        int product = 0;
        collective_case of;
        value_rule rule;
        words >> what >> type >> how >> of.root >> rule.mask >> rule.scale >> rule.active >> product;
        rule.product = product != 0;
        of.what = parse_kinds(what).front();
        of.type = parse_types(type).front();
        of.how = how == "none" ? reduction::sum : parse_reductions(how).front();
        measured_.choose(of, rule);
        answer(0, 0);
    }

    void make(std::istringstream& words) {
        std::size_t sets = 0, count = 0;
        words >> sets >> count;
        std::vector<std::size_t> bytes(count);
        for (auto& each : bytes) words >> each;
        measured_.make(sets, bytes);
        answer(0, 0);
    }

    void run(unsigned seed, bool in_place) {
        auto const found = measured_.run(seed, in_place);
        answer(found.us, static_cast<double>(found.wrong));
    }

    /// Times copies in host memory on all ranks at once, and answers the best of a few.
    void bound(std::size_t bytes) {
        std::size_t const count = bytes / sizeof(double);
        aligned_vector<double> a(count, 1.0), b(count, 2.0), c(count, 3.0);
        double copied = std::numeric_limits<double>::max(), triad = copied;
        for (int i = 0; i < 5; ++i) {
            by_.barrier();
            auto begin = clock::now();
            std::memcpy(a.data(), b.data(), count * sizeof(double));
            copied = std::min(copied, micros_since(begin));
            by_.barrier();
            begin = clock::now();
            for (std::size_t k = 0; k < count; ++k) a[k] = b[k] + 3.0 * c[k];
            triad = std::min(triad, micros_since(begin));
        }
        by_.barrier();
        answer(copied, triad);
    }

    void answer(double first, double second) { say(fmt::format("{} {:.4f} {:.4f}\n", by_.rank, first, second)); }

    void say(std::string_view line) { write_all(answers_, line, "the pipe of answers", "start it again"); }

  private:
    way_to_ranks const& by_;
    int answers_;
    measured_rank measured_;
};

/// Changes an identity on one node to one on several nodes with equal numbers of ranks.
void pretend(identity& who, int nodes) {
    int const each = (who.world_size + nodes - 1) / nodes;
    who.node_count = (who.world_size + each - 1) / each;
    who.node_rank = who.rank / each;
    who.local_rank = who.rank % each;
    who.local_size = each;
}

/// Lines of a pipe as they come. A stream of libc++ would wait until they fill its buffer.
class pipe_lines {
  public:
    explicit pipe_lines(std::string const& path) : pipe_(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC)) {
        if (!pipe_) throw_system("open", path);
    }

    bool next(std::string& line) {
        std::size_t end = 0;
        while ((end = unread_.find('\n')) == std::string::npos) {
            std::array<char, 4096> bytes;
            ssize_t const got = ::read(pipe_.get(), bytes.data(), bytes.size());
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0) return false;
            unread_.append(bytes.data(), static_cast<std::size_t>(got));
        }
        line = unread_.substr(0, end);
        unread_.erase(0, end + 1);
        return true;
    }

  private:
    unique_fd pipe_;
    std::string unread_;
};

void follow_orders(std::string const& folder, std::string const& name, way_to_ranks const& by) {
    pipe_lines orders(fmt::format("{}/{}.{}", folder, name, by.rank));
    std::string const answers = fmt::format("{}/{}.out", folder, name);
    unique_fd const pipe(::open(answers.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
    if (!pipe) throw_system("open", answers);
    ordered_rank measured(by, pipe.get());
    for (std::string line; orders.next(line);) {
        std::istringstream words(line);
        std::string order;
        words >> order;
        if (order == "end") break;
        if (order == "version" && by.rank == 0) measured.say(fmt::format("0 {}\n", by.version));
        if (order == "kind") measured.choose(words);
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
}

}  // namespace

constexpr command_row collectives_rank_row{.name = "collectives-rank", .hidden = true};

int collectives_rank(std::vector<std::string> const& args, environment const& variables) {
    if (args.size() != 5) throw error(errc::usage, "collectives-rank: not to be started by hand; give muster-bench collectives");
    identity who = identify(variables);
    std::string const& backend = args[2];
    way_to_ranks by{who.rank, who.world_size, "", {}, {}, nullptr, {}};
    std::shared_ptr<cuda::device const> gpu;
    constexpr duration deadline{120};
    if (backend == "nccl" || backend == "raw-nccl") gpu = gpu_of(who);
    by.gpu = gpu.get();
    if (backend == "raw-nccl") {
        raw_nccl all(who, gpu, deadline);
        by.version = all.version();
        by.run = [&](auto const& of, auto in, auto out) { all.run(of, in, out); };
        by.barrier = [&] { all.barrier(); };
        follow_orders(args[0], args[1], by);
        return 0;
    }
    int const nodes = std::stoi(args[3]);
    if (nodes > 1) pretend(who, nodes);
    comm_options options;
    options.backend = backend;
    options.deadline = deadline;
    options.memory = gpu ? memory_kind::device : memory_kind::host;
    if (gpu) options.device = gpu->ordinal();
    communicator all = communicator::create(who, options);
    by = way_over(all);
    by.gpu = gpu.get();
    by.version = fmt::format("muster {}, {}", version(), all.backend());
    if (gpu) by.version += fmt::format(" on {}", gpu->name());
    if (nodes > 1) by.version += fmt::format(", one node pretending to be {}", who.node_count);
    if (auto const found = all.about(); !found.empty()) by.version += "; " + found;
    if (args[4] == to_string(memory_of_tensors::allocated)) by.allocate = [&](std::size_t bytes) { return all.allocate(bytes); };
    follow_orders(args[0], args[1], by);
    return 0;
}

}  // namespace muster
