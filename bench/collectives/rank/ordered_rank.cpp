#include "bench/collectives/rank/ordered_rank.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>

#include "base/error.hpp"
#include "base/process/files.hpp"
#include "base/unique_fd.hpp"
#include "base/version.hpp"
#include "bench/tools/commands.hpp"
#include "bench/tools/statistics.hpp"

namespace muster {

namespace {

using clock = std::chrono::steady_clock;

/// Changes an identity on one node to one on several nodes with equal numbers of ranks.
void pretend(identity& who, int nodes) {
    int const each = (who.world_size + nodes - 1) / nodes;
    who.node_count = (who.world_size + each - 1) / each;
    who.node_rank = who.rank / each;
    who.local_rank = who.rank % each;
    who.local_size = each;
}

}  // namespace

ordered_rank::ordered_rank(identity who, comm_options options, int nodes, memory_of_tensors memory) : measured_(by_) {
    bool const alone = options.backend == "raw-nccl";
    if (alone || options.backend == "nccl") gpu_ = gpu_of(who);
    if (alone) {
        nccl_ = std::make_unique<raw_nccl>(who, gpu_, options.deadline);
        by_ = {who.rank, who.world_size, nccl_->version(), {}, {}, gpu_.get(), {}};
        by_.run = [this](auto const& of, auto in, auto out) { nccl_->run(of, in, out); };
        by_.barrier = [this] { nccl_->barrier(); };
        return;
    }
    if (nodes > 1) pretend(who, nodes);
    options.memory = gpu_ ? memory_kind::device : memory_kind::host;
    if (gpu_) options.device = gpu_->ordinal();
    over_ = communicator::create(who, options);
    by_ = way_over(*over_);
    by_.gpu = gpu_.get();
    by_.version = fmt::format("muster {}, {}", muster::version(), over_->backend());
    if (gpu_) by_.version += fmt::format(" on {}", gpu_->name());
    if (nodes > 1) by_.version += fmt::format(", one node pretending to be {}", who.node_count);
    if (auto const found = over_->about(); !found.empty()) by_.version += "; " + found;
    if (memory == memory_of_tensors::allocated) by_.allocate = [this](std::size_t bytes) { return over_->allocate(bytes); };
}

rank_answer ordered_rank::follow(std::string const& order) {
    std::istringstream words(order);
    std::string what;
    words >> what;
    if (what == "kind") choose(words);
    if (what == "tensors") make(words);
    if (what == "run") {
        unsigned seed = 0;
        int in_place = 0;
        words >> seed >> in_place;
        auto const found = measured_.run(seed, in_place != 0);
        return {found.us, static_cast<double>(found.wrong)};
    }
    if (what == "bound") {
        std::size_t bytes = 0;
        words >> bytes;
        return bound(bytes);
    }
    if (what == "pair") {
        int first = 0, second = 0;
        words >> first >> second;
        pair_.reset();
        if (first >= 0) pair_ = std::make_unique<pair_traffic>(over(), first, second);
    }
    if (what == "messages") return messages(words);
    return {};
}

void ordered_rank::choose(std::istringstream& words) {
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
}

void ordered_rank::make(std::istringstream& words) {
    std::size_t sets = 0, count = 0;
    words >> sets >> count;
    std::vector<std::size_t> bytes(count);
    for (auto& each : bytes) words >> each;
    measured_.make(sets, bytes);
}

/// Times copies in host memory on all ranks at once: the best of a few.
rank_answer ordered_rank::bound(std::size_t bytes) {
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
    return {copied, triad};
}

rank_answer ordered_rank::messages(std::istringstream& words) {
    std::size_t bytes = 0;
    int window = 0, rounds = 0, both = 0;
    words >> bytes >> window >> rounds >> both;
    if (!pair_ || !pair_->mine()) return {};
    double const us = window == 0 ? pair_->latency_us(bytes, rounds) : pair_->window_us(bytes, window, rounds, both != 0);
    return {us, static_cast<double>(pair_->take_wrong())};
}

namespace {

/// Returns rank 0's order on all ranks of the job. Collective.
std::string order_of_rank_0(communicator& over, std::string order) {
    std::int64_t size = static_cast<std::int64_t>(order.size());
    over.broadcast("size of the order", view_of(std::span(&size, 1)), 0).wait();
    order.resize(static_cast<std::size_t>(size));
    over.broadcast("order", {order.data(), order.size(), dtype::u8, memory_kind::host}, 0).wait();
    return order;
}

std::vector<rank_answer> answers_to(std::string const& order, ordered_rank& mine) {
    auto const answer = mine.follow(order);
    double own[]{answer.first, answer.second};
    std::vector<double> all(2 * static_cast<std::size_t>(mine.size()));
    mine.over().allgather("answers", view_of(std::span(own)), view_of(std::span(all))).wait();
    std::vector<rank_answer> out;
    for (std::size_t i = 0; i < all.size(); i += 2) out.push_back({all[i], all[i + 1]});
    return out;
}

}  // namespace

rank_answers ranks_of_job::ask(std::string const& order, duration) {
    return answers_of(answers_to(order_of_rank_0(mine_.over(), order), mine_));
}

void ranks_of_job::end() {
    order_of_rank_0(mine_.over(), "end");
}

void follow_rank_0(ordered_rank& mine) {
    for (std::string order; (order = order_of_rank_0(mine.over(), "")) != "end";) answers_to(order, mine);
}

namespace {

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

/// Reads orders from the pipe FOLDER/NAME.R and answers in FOLDER/NAME.out.
void follow_pipe(std::string const& folder, std::string const& name, ordered_rank& mine) {
    pipe_lines orders(fmt::format("{}/{}.{}", folder, name, mine.rank()));
    std::string const answers = fmt::format("{}/{}.out", folder, name);
    unique_fd const pipe(::open(answers.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
    if (!pipe) throw_system("open", answers);
    auto const say = [&](std::string_view line) { write_all(pipe.get(), line, "the pipe of answers", "start it again"); };
    for (std::string order; orders.next(order) && order != "end";) {
        if (order == "version") {
            if (mine.rank() == 0) say(fmt::format("0 {}\n", mine.version()));
            continue;
        }
        auto const answer = mine.follow(order);
        say(fmt::format("{} {:.4f} {:.4f}\n", mine.rank(), answer.first, answer.second));
    }
}

}  // namespace

constexpr command_row collectives_rank_row{.name = "collectives-rank", .hidden = true};

int collectives_rank(std::vector<std::string> const& args, environment const& variables) {
    if (args.size() != 5) throw error(errc::usage, "collectives-rank: not to be started by hand; give muster-bench collectives");
    comm_options options;
    options.backend = args[2];
    options.deadline = duration{120};
    ordered_rank mine(
        identify(variables), options, std::stoi(args[3]),
        args[4] == to_string(memory_of_tensors::allocated) ? memory_of_tensors::allocated : memory_of_tensors::plain);
    follow_pipe(args[0], args[1], mine);
    return 0;
}

}  // namespace muster
