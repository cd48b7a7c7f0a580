// The page of muster top: at all widths, odd rows first, by host, of hostile samples; and the keys that its screen takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "base/text.hpp"
#include "launch/jobs/top/cells.hpp"
#include "launch/jobs/top/top_page.hpp"
#include "launch/jobs/top/top_screen.hpp"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr double now = 1'800'000'000;
constexpr std::uint64_t gib = 1ull << 30;

run_samples make_run(int hosts = 2, int ranks_each = 4) {
    run_samples run;
    run.job = "4242";
    run.command = "python3 train.py --lr 0.1";
    run.generation = 1;
    run.world_size = hosts * ranks_each;
    run.started_s = now - 3600;
    for (int n = 0; n < hosts; ++n) {
        node_sample node;
        node.host = "gpu" + std::to_string(10 + n);
        node.at_s = now - 1;
        node.load = 12.5;
        node.cpus = 96;
        node.steal = 0;
        node.received_bytes_per_s = 2e9;
        node.sent_bytes_per_s = 1e9;
        for (int l = 0; l < ranks_each; ++l) {
            gpu_sample gpu;
            gpu.number = std::to_string(l);
            gpu.busy_percent = 90 + l;
            gpu.memory_bytes = 80 * gib;
            gpu.used_bytes = 61 * gib;
            gpu.clock_mhz = 1900;
            gpu.most_clock_mhz = 1980;
            node.gpus.push_back(gpu);
            rank_sample rank;
            rank.rank = n * ranks_each + l;
            rank.state = l % 2 == 0 ? 'S' : 'R';
            rank.where = l % 2 == 0 ? "futex_wait_queue" : "";
            rank.cores = 1.25;
            rank.allowed_cores = 12;
            rank.memory_bytes = (10u + static_cast<unsigned>(rank.rank)) * gib;
            rank.silent_s = 3;
            rank.metric = l == 0 ? "loss 0.2500" : "";
            rank.gpu = gpu.number;
            rank.waits = wait_sample{75, 30, 0.30 + l / 100.0, 10, 25, {}};
            node.ranks.push_back(rank);
        }
        run.nodes.push_back(std::move(node));
    }
    return run;
}

top_view at_width(std::size_t width) {
    top_view view;
    view.width = width;
    view.now = now;
    return view;
}

std::vector<std::string> lines_of(top_page const& page) {
    std::vector<std::string> lines;
    std::istringstream text(text_of(page));
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
}

TEST(top, page_shows_each_rank_and_what_is_odd) {
    auto run = make_run();
    run.nodes[1].gpus[1].clock_mhz = 1005;
    run.nodes[1].gpus[1].slowed = "heat (hardware)";
    run.nodes[1].ranks[1].waits->waiting = 0.02;
    EXPECT_EQ(text_of(make_top_page(run, at_width(160))),
              R"(job 4242: python3 train.py --lr 0.1
8 ranks on 2 nodes, generation 1, started 01:00:00 ago

   rank  host        GPU  util    GPU mem        MHz    cores  memory  waits  last  silent  state                         metric
!     5  gpu11         1   91%    61G/80G  1005/1980   1.2/12     15G     2%   25%      3s  running
      0  gpu10         0   90%    61G/80G  1900/1980   1.2/12     10G    30%   25%      3s  asleep in futex_wait_queue    loss 0.2500
      1  gpu10         1   91%    61G/80G  1900/1980   1.2/12     11G    31%   25%      3s  running
      2  gpu10         2   92%    61G/80G  1900/1980   1.2/12     12G    32%   25%      3s  asleep in futex_wait_queue
      3  gpu10         3   93%    61G/80G  1900/1980   1.2/12     13G    33%   25%      3s  running
      4  gpu11         0   90%    61G/80G  1900/1980   1.2/12     14G    30%   25%      3s  asleep in futex_wait_queue    loss 0.2500
      6  gpu11         2   92%    61G/80G  1900/1980   1.2/12     16G    32%   25%      3s  asleep in futex_wait_queue
      7  gpu11         3   93%    61G/80G  1900/1980   1.2/12     17G    33%   25%      3s  running

rank 5 on gpu11: keeps the others waiting 30 % of the time: its GPU runs at 1005 of 1980 MHz: heat (hardware)
)");
}

TEST(top, lines_fit_every_width_and_drop_what_matters_least) {
    auto run = make_run();
    run.nodes[1].ranks[1].state = 'T';
    std::map<std::string, std::size_t> shown;
    for (std::size_t width = 40; width <= 250; ++width)
        for (bool const by_host : {false, true}) {
            auto view = at_width(width);
            view.by_host = by_host;
            auto const page = make_top_page(run, view);
            for (auto const& line : lines_of(page)) EXPECT_LE(display_width(line), width) << line;
            EXPECT_EQ(page.rows.size(), by_host ? 2u : 8u);
            for (auto const* const title : {"host", "waits", "state"}) EXPECT_THAT(page.titles, HasSubstr(title));
            if (!by_host)
                for (auto const* const title : {"rank", "util", "MHz", "metric"})
                    if (page.titles.find(title) != std::string::npos) ++shown[title];
        }
    EXPECT_EQ(shown["rank"], 211u) << "at each width";
    EXPECT_GT(shown["util"], shown["MHz"]);
    EXPECT_GT(shown["MHz"], shown["metric"]);
    EXPECT_GT(shown["metric"], 100u);
    for (std::size_t width = 0; width < 40; ++width) make_top_page(run, at_width(width));
}

TEST(top, states_are_whole_or_one_word) {
    EXPECT_THAT(text_of(make_top_page(make_run(), at_width(140))), HasSubstr("asleep in futex_wait_queue"));
    auto const narrow = text_of(make_top_page(make_run(), at_width(80)));
    EXPECT_THAT(narrow, HasSubstr("asleep\n"));
    EXPECT_THAT(narrow, testing::Not(HasSubstr("…")));
}

TEST(top, columns_stay_where_they_are_when_values_change) {
    auto run = make_run();
    auto const before = make_top_page(run, at_width(120)).titles;
    for (auto& node : run.nodes) {
        for (auto& gpu : node.gpus) gpu.busy_percent = 7, gpu.used_bytes = 1000, gpu.clock_mhz = 210;
        for (auto& rank : node.ranks)
            rank.cores = 110, rank.memory_bytes = 1, rank.silent_s = 1e6, rank.where = std::string(300, 'x'),
            rank.metric += " and more of it";
    }
    EXPECT_EQ(make_top_page(run, at_width(120)).titles, before);
}

TEST(top, columns_without_a_value_are_left_out) {
    run_samples run;
    run.world_size = 2;
    run.nodes.resize(1);
    run.nodes[0].host = "a";
    run.nodes[0].ranks.resize(2);
    EXPECT_EQ(make_top_page(run, at_width(200)).titles, "   rank  host");
    EXPECT_EQ(make_top_page(run, at_width(200)).header[1], "2 ranks on 1 node");
    EXPECT_THAT(make_top_page({}, at_width(80)).rows, IsEmpty());
    EXPECT_EQ(make_top_page({}, at_width(80)).header[1], "0 ranks on 0 nodes");
}

std::string marked_ranks(top_page const& page) {
    std::string ranks;
    for (auto const& row : page.rows) ranks += row.text.substr(0, 1) + trim(row.text.substr(1, 6)) + (row.is_odd ? "! " : " ");
    return ranks;
}

TEST(top, odd_rows_come_first_and_others_by_rank) {
    auto run = make_run(3, 2);
    int const by_turns[3][2] = {{0, 3}, {1, 4}, {2, 5}};
    for (std::size_t n = 0; n < 3; ++n)
        for (std::size_t l = 0; l < 2; ++l) run.nodes[n].ranks[l].rank = by_turns[n][l];
    auto view = at_width(160);
    EXPECT_EQ(marked_ranks(make_top_page(run, view)), " 0  1  2  3  4  5 ");
    run.nodes[0].ranks[1].state = 'T';
    EXPECT_EQ(marked_ranks(make_top_page(run, view)), "!3!  0  1  2  4  5 ");
    run.nodes[1].steal = 0.3;
    EXPECT_EQ(marked_ranks(make_top_page(run, view)), "!1! !3! !4!  0  2  5 ") << "the ranks of an odd node too";
    view.by_host = true;
    EXPECT_THAT(make_top_page(run, view).rows[2].text, HasSubstr("gpu12"));
    run.nodes[0].ranks[1].state = 'S';
    EXPECT_THAT(make_top_page(run, view).rows[0].text, HasSubstr("gpu11"));
}

TEST(top, hosts_sum_up_their_ranks) {
    auto run = make_run();
    run.nodes[1].ranks[3].state = 'T';
    auto view = at_width(160);
    view.by_host = true;
    auto const page = make_top_page(run, view);
    ASSERT_EQ(page.rows.size(), 2u);
    EXPECT_EQ(page.titles, "   host      ranks  util    GPU mem    cores  memory  waits  load  state");
    EXPECT_EQ(page.rows[0].text, "!  gpu11         4   92%  244G/320G   5.0/96     62G    31%    12  1 stopped");
    EXPECT_EQ(page.rows[1].text, "   gpu10         4   92%  244G/320G   5.0/96     46G    31%    12  running");
    view.host = "gpu11";
    EXPECT_EQ(make_top_page(run, view).rows.size(), 4u) << "the ranks of one host";
    EXPECT_FALSE(has_many_ranks(run));
    EXPECT_TRUE(has_many_ranks(make_run(100, 4)));
}

TEST(top, old_samples_say_so) {
    auto run = make_run();
    run.nodes[1].at_s = now - 65;
    auto page = make_top_page(run, at_width(120));
    EXPECT_THAT(page.notes, ElementsAre("gpu11: no sample for 65 s"));
    run.nodes[0].at_s = now - 61;
    page = make_top_page(run, at_width(120));
    EXPECT_EQ(page.header[1], "the samples are 61 s old; 8 ranks on 2 nodes, generation 1, started 01:00:00 ago");
}

TEST(top, many_notes_are_cut) {
    auto run = make_run(100, 4);
    for (auto& node : run.nodes)
        for (auto& rank : node.ranks) rank.cgroup.throttled = 0.5;
    auto view = at_width(120);
    view.notes = 5;
    auto const notes = make_top_page(run, view).notes;
    ASSERT_EQ(notes.size(), 5u);
    EXPECT_EQ(notes[0], "rank 0 on gpu10: its cgroup's quota held it back 50 % of the time");
    EXPECT_EQ(notes[4], "and 396 more; --json lists all");
}

TEST(top, hostile_texts_stay_in_their_columns) {
    auto run = make_run();
    auto const hostile =
        std::string("\x1b[2J\x1b]0;x\x07\r\n\t\xff\xc3 \u202e \u200d \U0001F600 e\u0301 日本語") + std::string(1000, 'W');
    auto const clean_titles = make_top_page(run, at_width(160)).titles;
    run.nodes[0].ranks[0].metric = run.nodes[0].ranks[0].where = hostile;
    run.command = run.job = hostile;
    run.nodes[0].ranks[1].state = '\x1b';
    run.nodes[0].ranks[1].gpu = run.nodes[0].gpus[1].number = hostile;
    run.nodes[0].gpus[1].slowed = hostile;
    run.nodes[0].gpus[1].clock_mhz = 100;
    for (std::size_t width = 40; width <= 250; width += 7) {
        auto const page = make_top_page(run, at_width(width));
        for (auto const& line : lines_of(page)) {
            EXPECT_EQ(printable(line), line) << "nothing that a terminal obeys";
            EXPECT_LE(display_width(line), width) << line;
        }
    }
    run.nodes[0].host = hostile;
    for (bool const by_host : {false, true}) {
        auto view = at_width(200);
        view.by_host = by_host;
        auto const page = make_top_page(run, view);
        auto const at = page.titles.find("waits");
        for (auto const& row : page.rows) {  // the same number of columns before it
            std::size_t columns = 0, bytes = 0;
            while (columns < at && bytes < row.text.size()) {
                auto const size =
                    std::min<std::size_t>(row.text.size() - bytes, static_cast<unsigned char>(row.text[bytes]) < 0x80   ? 1
                                                                   : static_cast<unsigned char>(row.text[bytes]) < 0xe0 ? 2
                                                                                                                        : 3);
                columns += display_width(row.text.substr(bytes, size));
                bytes += size;
            }
            EXPECT_EQ(row.text.substr(bytes + 4, 1), "%") << row.text;
        }
    }
}

TEST(top, cells_have_a_known_width) {
    EXPECT_EQ(printable("a\tb\nc"), "a b c");
    EXPECT_EQ(printable("\x1b[31mred"), "\\x1b[31mred");
    EXPECT_EQ(printable("e\u0301 \U0001F600"), "e? ?");
    EXPECT_EQ(display_width("日本 é…"), 7u);
    EXPECT_EQ(fit("日本語", 6), "日本語");
    EXPECT_EQ(fit("日本語", 5), "日本…");
    EXPECT_EQ(fit("日本語", 4), "日… ");
    EXPECT_EQ(fit("日本語", 1), "…");
    EXPECT_EQ(fit("abc", 0), "");
    EXPECT_EQ(fit("7", 3, true), "  7");
    EXPECT_EQ(short_bytes(999), "999B");
    EXPECT_EQ(short_bytes(1023.9 * 1024), "1.0M");
    EXPECT_EQ(short_bytes(1.5 * gib), "1.5G");
    EXPECT_EQ(short_bytes(71.4 * gib), "71G");
    EXPECT_EQ(short_time(-1), "0s");
    EXPECT_EQ(short_time(99.4), "99s");
    EXPECT_EQ(short_time(99.6), "2m");
    EXPECT_EQ(short_time(40 * 3600), "40h");
    EXPECT_EQ(short_time(1e18), "9999d");
}

TEST(top, keys_are_read_whole) {
    std::string typed = "hn\x1b[A\x1b[5~\x1b[99~zq\x1b[";
    EXPECT_THAT(take_keys(typed), ElementsAre(top_key::hosts, top_key::next_host, top_key::up, top_key::page_up, top_key::quit));
    EXPECT_EQ(typed, "\x1b[");
    typed += "B";
    EXPECT_THAT(take_keys(typed), ElementsAre(top_key::down));
    EXPECT_THAT(typed, IsEmpty());
}

}  // namespace
}  // namespace muster
