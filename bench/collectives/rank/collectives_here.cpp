#include "bench/tools/commands.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/trust/open_output_file.hpp"
#include "base/units.hpp"
#include "base/version.hpp"
#include "bench/collectives/collectives_values.hpp"
#include "bench/collectives/rank/here_results.hpp"
#include "bench/collectives/rank/measured_rank.hpp"
#include "bench/tools/crowd.hpp"
#include "bench/tools/options.hpp"
#include "bench/tools/statistics.hpp"
#include "comm/communicator.hpp"

namespace muster {

/// osu_latency, osu_bw and osu_bibw over communicator::sendrecv(). Both ranks of the pair make one and call the same functions in the
/// same order; the others do nothing. One that is not of the pair holds no memory.
class pair_traffic {
  public:
    pair_traffic(communicator& all, int first, int second);

    bool mine() const noexcept { return peer_ >= 0; }

    /// Microseconds of one message of so many bytes from one rank to the other: half of there and back, over `rounds`.
    double latency_us(std::size_t bytes, int rounds);

    /// Microseconds of a message where `window` of them are on their way at a time, over `rounds` windows; each ends with a short
    /// answer. `both`: each rank sends as many as it receives, and this is the time of two messages.
    double window_us(std::size_t bytes, int window, int rounds, bool both);

    /// Bytes that arrived wrong in all that was called since this was last asked.
    std::size_t take_wrong() noexcept;

  private:
    void make(std::size_t bytes, int slots);
    tensor_view sent(std::size_t bytes);
    tensor_view received(std::size_t bytes, int slot);
    void check(std::size_t bytes, int slots);
    void meet();

    communicator& all_;
    int peer_ = -1;
    bool first_ = false;
    aligned_vector<std::byte> out_, in_;
    std::size_t slot_bytes_ = 0;
    std::size_t wrong_ = 0;
    unsigned seed_ = 0;
    std::vector<operation> under_way_;
};

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

namespace {

constexpr double sample_us = 20e3;
constexpr std::size_t most_sample_bytes = std::size_t{32} << 20;
constexpr std::size_t window_bytes = std::size_t{64} << 20;
constexpr int osu_window = 64;

struct here_plan {
    std::vector<collective_case> cases;
    std::vector<std::size_t> sizes;
    std::pair<int, int> pair{-1, -1};
    bool pair_given = false;
    int repeats = 7;
    duration time{};
    bool allocated = false;
    std::string csv, json;
};

std::pair<int, int> read_pair(given_options const& given, int ranks) {
    auto const text = given.text("pair");
    if (text == "none" || (text.empty() && ranks < 2)) return {-1, -1};
    if (text.empty()) return {0, ranks - 1};
    if (ranks < 2)
        throw error(errc::usage, fmt::format("--pair {}: one rank runs, which has no other; start it with muster run -n", text));
    auto const two = parse_list(text, "--pair", 0, ranks - 1);
    if (two.size() != 2 || two[0] == two[1])
        throw error(errc::usage, fmt::format("--pair {}: not two ranks; give two different ones, such as 0,{}", text, ranks - 1));
    return {two[0], two[1]};
}

here_plan read_here_plan(given_options const& given, int ranks) {
    here_plan p;
    for (auto const* name : {"ranks", "peers", "gradients", "pretend-nodes", "python", "muster"})
        if (given.has(name))
            throw error(errc::usage,
                        fmt::format("--{} is for the command that starts the ranks itself; leave it out under muster "
                                    "run, or leave out muster run",
                                    name));
    auto const root = static_cast<int>(given.integer("root", 0, ranks - 1));
    if (given.text("op") != "none")
        p.cases = cases_of(parse_kinds(given.text("op")), parse_types(given.text("type")),
                           parse_reductions(given.text("reduction")), root);
    p.pair = read_pair(given, ranks);
    p.pair_given = given.has("pair");
    if (p.cases.empty() && p.pair.first < 0)
        throw error(errc::usage, "nothing to measure: give a collective with --op, or two ranks with --pair");
    auto const least = parse_bytes(given.text("min"), "--min"), most = parse_bytes(given.text("max"), "--max");
    if (least < 1 || most < least) throw error(errc::usage, "--min is below 1 byte, or --max below --min; give 1 <= min <= max");
    auto const factor = static_cast<unsigned>(count_of(given, "factor", 2));
    for (auto bytes = least; bytes < most; bytes *= factor) p.sizes.push_back(bytes);
    p.sizes.push_back(most);
    p.repeats = count_of(given, "repeats");
    p.time = parse_duration(given.has("time") ? given.text("time") : "30s", "--time");
    auto const memory = given.has("memory") ? given.text("memory") : "plain";
    if (memory != "plain" && memory != "allocated")
        throw error(errc::usage, fmt::format("--memory {}: no such choice of a rank; give plain or allocated", memory));
    p.allocated = memory == "allocated";
    p.csv = given.text("csv");
    p.json = given.text("json");
    return p;
}

/// The measurement on one rank. All ranks call the same functions with the same arguments.
class measurement {
  public:
    measurement(communicator& all, here_plan const& plan) : all_(all), plan_(plan), by_(way_over(all)), rank_(by_) {
        if (plan.allocated) by_.allocate = [&all](std::size_t bytes) { return all.allocate(bytes); };
    }

    here_table collectives(collective_case const& of, std::vector<std::string>& notes) {
        here_table table{of, {}};
        rank_.choose(of, rule_for(of, all_.size()));
        begin();
        for (auto const wanted : plan_.sizes) {
            auto const bytes = fitting_bytes(of, wanted, all_.size());
            if (!table.sizes.empty() && table.sizes.back().bytes == bytes) continue;
            if (over(to_string(of.what), bytes, notes)) break;
            table.sizes.push_back(collective_of(of, bytes));
        }
        rank_.make(1, std::vector<std::size_t>{fitting_bytes(of, 64, all_.size())});  // frees the memory
        return table;
    }

    pair_table pair(int first, int second, std::vector<std::string>& notes) {
        pair_table table{first, second, {}};
        pair_traffic traffic(all_, first, second);
        begin();
        for (auto const bytes : plan_.sizes) {
            if (over("messages", bytes, notes)) break;
            table.sizes.push_back(messages_of(traffic, bytes));
        }
        return table;
    }

  private:
    void begin() { until_ = std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(plan_.time); }

    /// Rank 0 decides for all.
    bool over(std::string_view what, std::size_t bytes, std::vector<std::string>& notes) {
        bool const ends = most_of(all_.rank() == 0 && std::chrono::steady_clock::now() > until_ ? 1 : 0) > 0;
        if (ends)
            notes.push_back(fmt::format("{}: {} and larger were left out, since --time {} was over", what, format_bytes(bytes),
                                        format_duration(plan_.time)));
        return ends;
    }

    double most_of(double value) {
        all_.allreduce("most", view_of(std::span(&value, 1)), reduction::max).wait();
        return value;
    }
    double sum_of(double value) {
        all_.allreduce("sum", view_of(std::span(&value, 1)), reduction::sum).wait();
        return value;
    }

    rank_times sample(unsigned seed, bool in_place, double& wrong) {
        auto const found = rank_.run(seed, in_place);
        double mine = found.us;
        std::vector<double> us(static_cast<std::size_t>(all_.size()));
        all_.allgather("times", view_of(std::span(&mine, 1)), view_of(std::span(us))).wait();
        wrong += sum_of(static_cast<double>(found.wrong));
        return over_ranks(us);
    }

    here_size collective_of(collective_case const& of, std::size_t bytes) {
        here_size size;
        size.bytes = bytes;
        std::vector<std::size_t> const tensors{bytes};
        std::vector<bool> places;
        for (bool const in_place : {false, true})
            if (of.has_place(in_place)) places.push_back(in_place);
        double ignored = 0;
        rank_.make(1, tensors);
        sample(1, places.front(), ignored);
        double const us = std::max(sample(2, places.front(), ignored).most, 0.2);
        double const room = static_cast<double>(most_sample_bytes) / static_cast<double>(std::max(bytes, std::size_t{4096}));
        size.calls = static_cast<int>(std::clamp(std::min(sample_us / us, room), 1.0, 4000.0));
        rank_.make(static_cast<std::size_t>(size.calls), tensors);
        sample(3, places.front(), ignored);
        unsigned seed = 4;
        for (int repeat = 0; repeat < plan_.repeats; ++repeat)
            for (bool const in_place : places)
                (in_place ? size.in_place : size.out_of_place)
                    .push_back(sample(seed++, in_place, in_place ? size.wrong_in : size.wrong_out));
        return size;
    }

    pair_size messages_of(pair_traffic& traffic, std::size_t bytes) {
        pair_size size;
        size.bytes = bytes;
        size.window = static_cast<int>(std::clamp<std::size_t>(window_bytes / bytes, 1, osu_window));
        // Those that wait do so in a collective, asleep; a sample's time is that of the slower of the two.
        auto const timed = [&](auto&& measure) { return most_of(traffic.mine() ? measure() : 0.0); };
        auto const rounds_of = [](double us) { return static_cast<int>(std::clamp(sample_us / std::max(us, 0.1), 1.0, 2000.0)); };
        auto const latency = [&](int rounds) { return timed([&] { return traffic.latency_us(bytes, rounds); }); };
        auto const window = [&](int rounds, bool both) {
            return timed([&] { return traffic.window_us(bytes, size.window, rounds, both); });
        };
        int const latency_rounds = rounds_of(2 * latency(2)), window_rounds = rounds_of(size.window * window(1, true));
        for (int repeat = 0; repeat < plan_.repeats; ++repeat) {
            size.latency_us.push_back(latency(latency_rounds));
            size.one_way_us.push_back(window(window_rounds, false));
            size.both_ways_us.push_back(window(window_rounds, true));
        }
        size.wrong = sum_of(static_cast<double>(traffic.take_wrong()));
        return size;
    }

    communicator& all_;
    here_plan const& plan_;
    way_to_ranks by_;
    measured_rank rank_;
    std::chrono::steady_clock::time_point until_;
};

/// A second pair, between two ranks of a node, where the first is between nodes: the two levels differ.
std::vector<std::pair<int, int>> pairs_of(here_plan const& plan, std::vector<std::string> const& hosts) {
    if (plan.pair.first < 0) return {};
    std::vector<std::pair<int, int>> out{plan.pair};
    if (!plan.pair_given && hosts.front() != hosts.back())
        for (std::size_t rank = 1; rank < hosts.size(); ++rank)
            if (hosts[rank] == hosts.front()) {
                out.emplace_back(0, static_cast<int>(rank));
                break;
            }
    return out;
}

void write_text(std::string const& path, std::string const& text, std::string_view option) {
    if (path.empty()) return;
    write_output_file(path, text, fmt::format("give another file with {}", option));
}

}  // namespace

int collectives_here(given_options const& given, identity const& who, std::string const& line) {
    here_plan const plan = read_here_plan(given, who.world_size);
    crowd_watch const crowd;
    if (who.local_rank == 0) refuse_crowd(given, crowd.load(false));
    comm_options options;
    if (given.has("backend")) options.backend = given.text("backend");
    communicator all = communicator::create(who, options);
    here_results results;
    results.created = utc_now();
    results.command = line;
    results.version = version();
    results.machine = describe_machine();
    results.load = load_average();
    results.backend = all.backend();
    results.why_backend = all.why_backend();
    for (int rank = 0; rank < all.size(); ++rank) results.hosts.push_back(all.host_of(rank));
    if (auto const found = all.about(); !found.empty()) results.notes.push_back("rank 0: " + found);
    if (all.size() == 1) results.notes.emplace_back("one rank alone: nothing is sent; start it with muster run");
    measurement here(all, plan);
    for (auto const& of : plan.cases) results.tables.push_back(here.collectives(of, results.notes));
    for (auto const& [first, second] : pairs_of(plan, results.hosts))
        results.pairs.push_back(here.pair(first, second, results.notes));
    results.crowd = crowd.load(false);
    if (all.rank() == 0) {
        fmt::print("{}", describe(results));
        if (!all_right(results)) fmt::print(stderr, "muster-bench: error: results are wrong: see the columns #wrong\n");
        std::fflush(stdout);
        write_text(plan.csv, to_csv(results), "--csv");
        write_text(plan.json, to_json(results).dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n", "--json");
    }
    return all_right(results) ? 0 : 1;
}

}  // namespace muster
