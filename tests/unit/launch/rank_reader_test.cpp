#include "launch/samples/rank_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "launch/samples/metric_line.hpp"
#include "launch/samples/node_reader.hpp"
#include "launch/samples/node_sampler.hpp"
#include "launch/samples/session_samples.hpp"
#include "launch/system/process_stat.hpp"
#include "launch/system/session_dir.hpp"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(process_stat, is_read_from_its_text) {
    auto const found = parse_process_stat(
        "29773 (a ) b) S 29771 29771 9834 0 -1 4194304 104 9 7 5 300 200 30 20 20 0 65 0 128364 3133440 411 18446744073709551615 "
        "94160293539840 "
        "94160293559721 140725603353072 0 0 256 0 0 0 0 0 0 17 0 0 0 0 0 0 94160293575728 94160293577344 94160454950912 "
        "140725603355051 140725603355099 "
        "140725603355099 140725603356651 0\n");
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->state, 'S');
    EXPECT_EQ(found->parent, 29771);
    EXPECT_EQ(found->user_ticks, 330u);
    EXPECT_EQ(found->system_ticks, 220u);
    EXPECT_EQ(found->major_faults, 12u);
    EXPECT_EQ(found->threads, 65u);
    EXPECT_EQ(found->start_ticks, 128364u);
    EXPECT_EQ(found->resident_pages, 411u);
    for (auto const* text : {"", "29773 (cat) R 1 2", "29773 cat R"}) EXPECT_FALSE(parse_process_stat(text).has_value()) << text;
}

TEST(core_waits, are_read_from_their_text) {
    EXPECT_EQ(parse_core_wait("81234567 2500000000 17\n"), 2.5);
    for (auto const* const other : {"", "1 2", "1 x 3", "1 -2 3"}) EXPECT_EQ(parse_core_wait(other), std::nullopt) << other;
}

using files = std::map<std::string, std::string>;
auto reader_of(files const& all) {
    return [&all](std::string const& path) {
        auto const found = all.find(path);
        return found == all.end() ? std::string() : found->second;
    };
}

TEST(cgroups, of_version_2_tell_of_the_one_that_limits) {
    constexpr auto* mounts = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
    files all{{"/sys/fs/cgroup/job/cpu.max", "200000 100000\n"},
              {"/sys/fs/cgroup/job/cpu.stat", "usage_usec 99\nnr_periods 100\nnr_throttled 25\nthrottled_usec 1500000\n"},
              {"/sys/fs/cgroup/job/step/cpu.max", "max 100000\n"},
              {"/sys/fs/cgroup/job/step/cpu.stat", "usage_usec 99\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n"},
              {"/sys/fs/cgroup/job/step/memory.current", "4096\n"},
              {"/sys/fs/cgroup/job/step/memory.max", "max\n"},
              {"/sys/fs/cgroup/job/memory.current", "8192\n"},
              {"/sys/fs/cgroup/job/memory.max", "1073741824\n"},
              {"/sys/fs/cgroup/job/memory.stat", "anon 100\ninactive_file 192\nactive_file 7\n"},
              {"/sys/fs/cgroup/job/step/cpu.pressure",
               "some avg10=12.50 avg60=9.00 avg300=1.00 total=7\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"},
              {"/sys/fs/cgroup/job/step/io.pressure", "some avg10=nonsense\n"}};
    auto const found = read_cgroup("0::/job/step\n", mounts, reader_of(all));
    cgroup_sample wanted;
    wanted.throttled_s = 1.5;
    wanted.memory_bytes = 8000;
    wanted.memory_limit_bytes = 1u << 30;
    wanted.cpu_pressure = 0.125;
    EXPECT_EQ(found.sample, wanted);
    EXPECT_EQ(found.periods, 100u);
    EXPECT_EQ(found.throttled_periods, 25u);

    all.erase("/sys/fs/cgroup/job/cpu.max");
    all.erase("/sys/fs/cgroup/job/memory.max");
    auto const free = read_cgroup("0::/job/step\n", mounts, reader_of(all));
    EXPECT_FALSE(free.sample.throttled_s || free.periods || free.sample.memory_limit_bytes);
    EXPECT_EQ(free.sample.memory_bytes, 4096u);
    files const machine{{"/proc/pressure/memory", "some avg10=3.00 avg60=0.00 avg300=0.00 total=7\n"}};
    EXPECT_EQ(read_cgroup("0::/\n", mounts, reader_of(machine)).sample.memory_pressure, 0.03);
    EXPECT_EQ(read_cgroup("", "", reader_of(machine)), cgroup_counts());
}

TEST(cgroups, of_version_1_tell_the_same) {
    constexpr auto* mounts =
        "31 23 0:27 / /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n32 23 0:28 / /sys/fs/cgroup/memory rw - "
        "cgroup cgroup rw,memory\n";
    files const all{{"/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "150000\n"},
                    {"/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n"},
                    {"/sys/fs/cgroup/cpu/job/cpu.stat", "nr_periods 10\nnr_throttled 3\nthrottled_time 250000000\n"},
                    {"/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "4096\n"},
                    {"/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "8192\n"},
                    {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"}};
    auto const found = read_cgroup("5:memory:/job\n4:cpu,cpuacct:/job\n", mounts, reader_of(all));
    cgroup_sample wanted;
    wanted.throttled_s = 0.25;
    wanted.memory_bytes = 4096;
    wanted.memory_limit_bytes = 8192;
    EXPECT_EQ(found.sample, wanted);
    EXPECT_FALSE(read_cgroup("5:memory:/\n", mounts, reader_of(all)).sample.memory_limit_bytes) << "that number means none";
}

TEST(rates_of_ranks, are_told_since_the_look_before) {
    rank_sample before, now;
    before.age_s = 10, before.core_wait_s = 2, before.user_s = 8, before.system_s = 1, before.major_faults = 100,
    before.memory_bytes = before.most_memory_bytes = 900;
    now.age_s = 14, now.core_wait_s = 4, now.user_s = 13, now.system_s = 2, now.major_faults = 108, now.memory_bytes = 500;
    auto first = now;
    add_rates(now, &before);
    EXPECT_EQ(now.cores, 1.5);
    EXPECT_EQ(now.core_wait, 0.5);
    EXPECT_EQ(now.faults_per_s, 2);
    EXPECT_EQ(now.most_memory_bytes, 900u);
    add_rates(first, nullptr);
    EXPECT_DOUBLE_EQ(first.cores.value(), 15.0 / 14) << "since its start";
    EXPECT_EQ(first.most_memory_bytes, 500u);
    rank_sample less;
    less.age_s = 15, less.user_s = less.system_s = 0, less.major_faults = 0;
    add_rates(less, &now);
    EXPECT_EQ(less.cores, 0) << "children that nobody waited for take their time with them";
    EXPECT_EQ(less.faults_per_s, 0);
    EXPECT_EQ(less.user_s, 13);
    rank_sample unknown;
    unknown.age_s = 20;
    add_rates(unknown, &now);
    EXPECT_FALSE(unknown.cores || unknown.faults_per_s);
}

TEST(rank_reader, adds_up_the_time_in_which_every_look_found_a_rank_blocked) {
    std::optional<rank_sample> before;
    auto const look = [&](double age_s, char state) {
        rank_sample now;
        now.age_s = age_s, now.state = state;
        add_rates(now, before ? &*before : nullptr);
        before = now;
        return now.blocked_s;
    };
    EXPECT_EQ(look(2, 'D'), 0) << "one look says nothing";
    EXPECT_EQ(look(4, 'D'), 2);
    EXPECT_EQ(look(7, 'D'), 5);
    EXPECT_EQ(look(9, 'R'), std::nullopt);
    EXPECT_EQ(look(11, 'D'), 0);
}

TEST(processor_times, are_read_from_their_text) {
    auto const found = parse_processor_times(
        "cpu  1000 20 300 4000 50 6 7 80 90 10\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu1 1 2 3 4 5 6 7 8 9 10\nintr 5 0\nctxt 9\n");
    EXPECT_EQ(found, (processor_times{5463, 80, 2}));
    for (auto const* text : {"", "intr 5", "cpu  1 2 3\n", "cpu  0 0 0 0 0 0 0 0\n"})
        EXPECT_FALSE(parse_processor_times(text).has_value()) << text;
    EXPECT_EQ(parse_load("5.77 5.59 4.44 7/111 29773\n"), 5.77);
    for (auto const* text : {"", "x 1", "-1 0"}) EXPECT_FALSE(parse_load(text).has_value()) << text;
}

TEST(rates_of_nodes, are_told_since_the_look_before) {
    node_sample to;
    node_counts const first{processor_times{1000, 10, 2}, 0, 0}, before{processor_times{2000, 110, 2}, 1000, 500};
    add_rates(to, {processor_times{3000, 210, 2}, 5000, 400}, before, first, 2, 100);
    EXPECT_EQ(to.steal, 0.1);
    EXPECT_EQ(to.steal_s, 2);
    EXPECT_EQ(to.received_bytes_per_s, 2000);
    EXPECT_FALSE(to.sent_bytes_per_s) << "a counter that has begun anew";
    node_sample unknown;
    add_rates(unknown, {}, before, first, 2, 100);
    EXPECT_EQ(unknown, node_sample());
}

TEST(node_reader, tells_of_this_machine) {
    node_reader reader("no-such-interface", "");
    auto const now = reader.read();
    EXPECT_GE(now.cpus.value_or(0), 1);
    EXPECT_TRUE(now.load.has_value());
    EXPECT_FALSE(now.steal.has_value());
    EXPECT_EQ(now.interface, "");
    EXPECT_TRUE(reader.read().steal_s.has_value());
}

/// A child that sleeps, in which a thread and a child of its own live.
struct sleeper {
    sleeper() {
        int ends[2];
        if (::pipe(ends) != 0) return;
        pid = ::fork();
        if (pid == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            std::thread([] { ::pause(); }).detach();
            if (::fork() == 0)
                ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            else [[maybe_unused]]
                auto const n = ::write(ends[1], "x", 1);
            for (;;) ::pause();
        }
        char c = 0;
        [[maybe_unused]] auto const n = ::read(ends[0], &c, 1);
        ::close(ends[0]), ::close(ends[1]);
    }
    ~sleeper() {
        auto const all = living_children();
        if (auto const below = all.find(pid); below != all.end())
            for (auto const child : below->second) ::kill(child, SIGKILL);
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
    }
    pid_t pid = -1;
};

TEST(rank_reader, shows_waits_of_the_last_looks) {
    std::deque<wait_mark> marks;
    auto const look = [&](double age_s, double waited_s) {
        rank_sample now;
        now.age_s = age_s;
        now.waits.emplace().waited_s = waited_s;
        add_waiting(now, marks);
        return now.waits->waiting;
    };
    EXPECT_EQ(look(2, 1), std::nullopt);
    EXPECT_EQ(look(4, 2), 0.5);
    EXPECT_EQ(look(6, 2), 0.25);
    for (double age_s : {8.0, 10.0, 12.0}) look(age_s, 2);
    EXPECT_EQ(look(14, 2), 0.0) << "the first looks are forgotten";
    EXPECT_EQ(look(14, 2), 0.0);
    EXPECT_EQ(marks.size(), 5u);
    rank_sample none;
    add_waiting(none, marks);
    EXPECT_FALSE(none.waits);
}

TEST(rank_reader, tells_of_a_rank_with_all_below_it) {
    sleeper const child;
    rank_reader reader;
    auto const look = [&] {
        return reader.read({{.rank = 4, .pid = child.pid, .silent_s = 2.5, .metric = "loss 0.25", .gpu = "0/3"},
                            {.rank = 5, .pid = 0x7ffffff0}});
    };
    auto const first = look();
    ASSERT_EQ(first.size(), 1u) << "of a process that is not there nothing is told";
    auto const& now = first[0];
    EXPECT_EQ(now.rank, 4);
    EXPECT_EQ(now.pid, child.pid);
    EXPECT_EQ(now.threads, 3);
    EXPECT_GT(now.memory_bytes.value_or(0), 0u);
    EXPECT_GE(now.age_s, 0);
    EXPECT_GE(now.allowed_cores.value_or(0), 1);
    EXPECT_TRUE(now.user_s && now.system_s && now.major_faults);
    EXPECT_EQ(now.gpu, "0/3");
    EXPECT_EQ(now.silent_s, 2.5);
    EXPECT_EQ(now.metric, "loss 0.25");
    auto const second = look();
    EXPECT_GE(second.at(0).most_memory_bytes.value_or(0), second.at(0).memory_bytes.value_or(1));
    EXPECT_THAT(reader.read({}), IsEmpty());
}

TEST(node_sampler, looks_again_and_again_from_its_threads) {
    sleeper const child;
    event_loop loop;
    std::vector<node_sample> looks;
    node_sampler const sampler(
        loop, {.every = duration(0.02), .itself = true}, [&] { return std::vector{sampled_rank{.rank = 3, .pid = child.pid}}; },
        [&](node_sample const& look) {
            looks.push_back(look);
            if (looks.size() == 3) loop.stop();
        });
    loop.run();
    for (auto const& look : looks) {
        ASSERT_EQ(look.ranks.size(), 1u);
        EXPECT_EQ(look.ranks[0].rank, 3);
        EXPECT_TRUE(look.ranks[0].cores && look.cpus);
    }
    EXPECT_LT(looks[0].ranks[0].age_s, looks[2].ranks[0].age_s);
    EXPECT_TRUE(looks[2].steal_s.has_value());
}

TEST(metric_lines, are_found_however_they_are_cut) {
    std::string const text =
        "x muster-metric: loss 2\nmuster-metrix muster-metric: bad line with words\nmuster-metric: rate 1e3  "
        "images/s\r\nmuster-metric: lo";
    for (std::size_t size = 1; size <= text.size(); ++size) {
        last_metric last;
        for (std::size_t at = 0; at < text.size(); at += size) last.take(std::string_view(text).substr(at, size));
        EXPECT_EQ(last.text(), "rate 1e3 images/s") << "in pieces of " << size;
        last.take("ss 0.5\n");
        EXPECT_EQ(last.text(), "loss 0.5");
        last.take("muster-metric: a " + std::string(100'000, '1') + "\nmuster-metric: b nine\nnothing\n");
        EXPECT_EQ(last.text(), "loss 0.5");
    }
}

TEST(checkpoint_lines, have_a_step) {
    EXPECT_EQ(parse_checkpoint_step(" 12\r\nmore 13"), 12);
    for (auto const wrong : {"", " \n12", " -1\n", " 1 2\n", " x\n"})
        EXPECT_EQ(parse_checkpoint_step(wrong), std::nullopt) << wrong;
}

TEST(session_sample_folders, are_those_with_samples_or_a_note) {
    auto const place = "/tmp/muster-samples-" + std::to_string(::getpid());
    std::filesystem::create_directory(place);
    unique_fd locks[3];
    auto const with_note = make_session_dir(locks[0], {place}), with_file = make_session_dir(locks[1], {place}),
               with_none = make_session_dir(locks[2], {place});
    note_sample_folder(with_note, "/somewhere/run 1");
    std::ofstream(with_file + "/" + samples_file) << "{}";
    std::filesystem::create_directory(place + "/not-a-session");
    EXPECT_THAT(session_sample_folders({place}), testing::UnorderedElementsAre("/somewhere/run 1", with_file));
    std::filesystem::permissions(with_file, std::filesystem::perms(0755));
    EXPECT_THAT(session_sample_folders({place}), ElementsAre("/somewhere/run 1")) << "others may have written there";
    note_sample_folder("/proc/none", "/x");  // no error
    std::filesystem::remove_all(place);
    EXPECT_THAT(session_sample_folders({place}), IsEmpty());
}

}  // namespace
}  // namespace muster
