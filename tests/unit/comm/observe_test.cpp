// What is left behind for people to look at.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "base/trace/explain.hpp"
#include "base/trace/merge.hpp"
#include "base/trace/rank_file.hpp"
#include "comm/exchange/observe/counters.hpp"
#include "comm/exchange/observe/flight_recorder.hpp"
#include "comm/exchange/observe/timeline.hpp"

namespace muster {

namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

struct folder {
    std::string path = (fs::temp_directory_path() / ("muster-observe-" + std::to_string(::getpid()))).string();
    folder() { fs::create_directories(path); }
    ~folder() { fs::remove_all(path); }
};

flight_dump at(int rank, std::uint64_t sequence, bool finished, std::string name = "grad.7") {
    flight_dump dump;
    dump.rank = rank;
    dump.ranks = 4;
    dump.host = "node" + std::to_string(rank / 2);
    dump.records = {{sequence - 1, 0, "allreduce", 64, 1, 2, "before"},
                    {sequence, 0, "allreduce", 64, 3, finished ? 4 : 0, std::move(name)}};
    return dump;
}

TEST(explain, the_rank_that_is_elsewhere_is_named) {
    std::vector const dumps{at(0, 513, false, "grad.8"), at(1, 513, false, "grad.8"), at(2, 513, false, "grad.8"),
                            at(3, 512, false)};
    EXPECT_EQ(explain(dumps), "rank 3 (node1) is at allreduce #512 \"grad.7\", all others at allreduce #513 \"grad.8\"\n");
}

TEST(explain, a_rank_without_a_file_and_reasons_are_told) {
    std::vector dumps{at(0, 9, false), at(1, 9, false), at(3, 9, false)};
    dumps[0].reason = dumps[1].reason = "it waits for rank 2";
    dumps[0].culprits = dumps[1].culprits = {2};
    dumps[2].waiting = {"loss"};
    EXPECT_EQ(explain(dumps),
              "all 3 rank(s) that left a file are at allreduce #9 \"grad.7\"\n"
              "rank 2 left no file: killed, stopped, or not failed\n"
              "rank 3 (node1) waits for loss\n"
              "ranks 0 (node0), 1 (node0) blame rank 2: it waits for rank 2\n");
}

TEST(explain, each_generation_is_told_by_itself) {
    std::vector dumps{at(0, 9, false), at(1, 9, false)};
    for (auto& each : dumps) each.ranks = 2;
    dumps.push_back(dumps[0]);
    dumps[2].generation = 1;
    dumps[2].ranks = 1;
    EXPECT_EQ(explain(dumps),
              "generation 0:\nall 2 rank(s) that left a file are at allreduce #9 \"grad.7\"\n"
              "generation 1:\nall 1 rank(s) that left a file are at allreduce #9 \"grad.7\"\n");
}

TEST(flight_recorder, it_keeps_the_last_and_knows_what_has_not_finished) {
    flight_recorder recorder;
    std::uint64_t last = 0;
    for (std::uint64_t i = 0; i < 2000; ++i) {
        last = flight_recorder::session(recorder).begin(0, i, exchange_kind::allreduce, "t" + std::to_string(i), 8);
        if (i != 1999) flight_recorder::session(recorder).end(last);
    }
    auto const all = recorder.records();
    ASSERT_EQ(all.size(), flight_recorder::depth);
    EXPECT_EQ(all.front().sequence, 2000 - flight_recorder::depth);
    EXPECT_EQ(all.back().name, "t1999");
    EXPECT_EQ(all.back().finished_us, 0);
    EXPECT_NE(all[all.size() - 2].finished_us, 0);
    flight_recorder::session(recorder).begin(0, 2000, exchange_kind::barrier, std::string(500, 'n'), 0);
    EXPECT_EQ(recorder.records().back().name.size(), flight_recorder::longest_name);
}

TEST(flight_recorder, a_dump_is_read_as_it_was_written) {
    folder const in;
    auto dump = at(1, 7, true, "a \"quoted\" name\n");
    dump.reason = "why";
    dump.culprits = {3};
    dump.waiting = {"x", "y"};
    write_flight_dump(dump, in.path);
    EXPECT_EQ(read_flight_dumps(in.path), std::vector{dump});
    EXPECT_THROW(parse_flight_dump("{\"schema\": 1}", "x.json"), error);
    EXPECT_THROW(read_flight_dumps(in.path + "/nowhere"), error);
}

TEST(timeline, files_of_ranks_merge_into_json_on_one_clock) {
    folder const in;
    for (int rank = 0; rank < 2; ++rank) {
        timeline trace(rank, 2, "n\"" + std::to_string(rank));
        trace.start(in.path, {rank * 1000.0, 0.5}, true);
        auto const name = trace.intern("conv1.\"weight\"");
        EXPECT_EQ(trace.intern("conv1.\"weight\""), name);
        trace.add({trace_kind::negotiate, name, trace.intern("allreduce"), 1, 5000, 6000, 12});
        trace.add({trace_kind::collective, name, trace.intern("allreduce"), 0, 6000, 9000, 12});
        trace.add({trace_kind::cycle, 0, 0, 0, 5000, 6000, 0});
        trace.stop();
    }
    // one rank has died while it wrote
    std::ofstream(in.path + "/timeline-2.json")
        << "[\n{\"ph\":\"X\",\"name\":\"PACK\",\"pid\":2,\"tid\":1,\"ts\":1.0,\"dur\":2.0},\n{\"ph\":\"X\",\"na";
    std::string const out = in.path + "/all.json";
    auto const done = merge_timelines(find_timelines(in.path), out);
    EXPECT_EQ(done.files, 3);
    EXPECT_EQ(done.ended.size(), 1u);
    EXPECT_DOUBLE_EQ(done.worst_error_us, 0.5);
    std::ifstream file(out);
    auto const all = nlohmann::json::parse(file);
    double first[2]{};
    for (auto const& each : all)
        if (each.value("name", "") == "allreduce") first[each.at("pid").get<int>()] = each.at("ts").get<double>();
    EXPECT_DOUBLE_EQ(first[0], 6.0);
    EXPECT_DOUBLE_EQ(first[1], 1006.0);
    EXPECT_EQ(all.size(), done.events);
}

TEST(timeline, neither_it_nor_the_recorder_writes_through_a_link_or_waits_for_a_pipe) {
    folder const in;
    std::string const precious = in.path + "/precious";
    std::ofstream(precious) << "kept";
    fs::create_symlink(precious, in.path + "/timeline-0.json");
    fs::create_symlink(precious, in.path + "/flight-1.json");
    ASSERT_EQ(::mkfifo((in.path + "/timeline-2.json").c_str(), 0666), 0);
    EXPECT_THROW(timeline(0, 3, "n0").start(in.path, {}, false), error);
    EXPECT_THROW(timeline(2, 3, "n0").start(in.path, {}, false), error);
    EXPECT_THROW(write_flight_dump(at(1, 7, true), in.path), error);
    EXPECT_EQ(fs::file_size(precious), 4u);
}

TEST(timeline, more_than_there_is_room_for_is_counted) {
    timeline trace(0, 1, "n0");
    EXPECT_FALSE(trace.running());
    EXPECT_EQ(trace.dropped(), 0u);
}

TEST(rank_file, names_are_read_as_they_are_written) {
    for (rank_file const each : {rank_file{0, 0}, rank_file{0, 12}, rank_file{3, 7}})
        EXPECT_EQ(parse_rank_file("flight", name_of("flight", each)), each);
    EXPECT_EQ(name_of("timeline", {2, 5}), "timeline-g2-5.json");
    for (auto const* other : {"timeline-1.json", "flight-.json", "flight-g0-1.json", "flight-g1.json", "flight-g-1.json",
                              "flight--1.json", "flight-1.jsonl", "flight-99999999999.json"})
        EXPECT_EQ(parse_rank_file("flight", other), std::nullopt) << other;
}

/// Rank 1 of three is lost; rank 2 goes on as rank 1, and the third generation is of new processes. node0's clock is that of generation 0's rank 0, node1's
/// 100 us behind it, also where it is rank 0's.
TEST(merge, a_process_keeps_its_track_and_a_mark_says_who_was_lost) {
    std::vector<timeline_head> const heads{
        {{0, 0}, "node0", 10, 0, 1},   {{0, 1}, "node0", 11, 0, 1}, {{0, 2}, "node1", 12, 100, 1}, {{1, 0}, "node0", 10, 0, 1},
        {{1, 1}, "node1", 12, 100, 1}, {{2, 0}, "node1", 20, 0, 1}, {{2, 1}, "node0", 21, -100, 1}};
    auto const plan = plan_merge(heads);
    EXPECT_THAT(plan.shift_us, testing::ElementsAre(0, 0, 100, 0, 100, 100, 0));
    ASSERT_EQ(plan.marks.size(), 2u);
    EXPECT_EQ(plan.marks[0].text, "generation 1: 2 ranks; rank 1 (node0) is gone");
    EXPECT_EQ(plan.marks[1].text, "generation 2: 2 ranks; all were started again");
    EXPECT_EQ(plan.tracks[2].name, "rank 2 (node1), rank 1 in generation 1");
    EXPECT_EQ(plan.tracks[4].number, 2);
    EXPECT_EQ(plan.tracks[3].number, 0);
    EXPECT_EQ(plan.tracks[6].name, "rank 1 (node0) from generation 2");
}

TEST(rank_file, what_an_earlier_run_has_left_of_later_generations_goes) {
    folder const in;
    for (auto const* name : {"timeline-0.json", "timeline-g1-0.json", "timeline-g7-12.json", "flight-g1-0.json"})
        std::ofstream(in.path + "/" + name) << "[";
    remove_later_generations("timeline", in.path);
    remove_later_generations("timeline", in.path + "/nowhere");
    EXPECT_TRUE(fs::exists(in.path + "/timeline-0.json"));
    EXPECT_TRUE(fs::exists(in.path + "/flight-g1-0.json"));
    EXPECT_FALSE(fs::exists(in.path + "/timeline-g1-0.json"));
    EXPECT_FALSE(fs::exists(in.path + "/timeline-g7-12.json"));
}

TEST(merge, tracks_of_any_generation_are_their_own) {
    std::vector<timeline_head> const heads{{{0, 0}, "n", 1, 0, 0}, {{2148, 0}, "n", 2, 0, 0}, {{4295, 0}, "n", 3, 0, 0}};
    auto const plan = plan_merge(heads);
    EXPECT_EQ(plan.tracks[1].number, 2'148'000'000);
    EXPECT_EQ(plan.tracks[2].number, 4'295'000'000);
}

// Of another user's folder: deep values, and names that are no files.
TEST(merge, files_of_others_are_read_within_bounds) {
    folder const in;
    std::ofstream(in.path + "/timeline-0.json")
        << "[\n{\"ph\":\"M\",\"args\":" << std::string(300'000, '[') << std::string(300'000, ']') << "},\n]\n";
    EXPECT_THROW(merge_timelines(find_timelines(in.path), in.path + "/out.json"), error);
    ASSERT_EQ(::mkfifo((in.path + "/timeline-1.json").c_str(), 0600), 0);
    std::filesystem::create_symlink("/dev/zero", in.path + "/timeline-2.json");
    EXPECT_THAT(find_timelines(in.path),
                testing::ElementsAre(testing::Field(&found_rank_file::path, in.path + "/timeline-0.json")));
    ASSERT_EQ(::mkfifo((in.path + "/flight-0.json").c_str(), 0600), 0);
    EXPECT_THROW(read_flight_dumps(in.path), error);
}

TEST(merge, a_line_that_is_no_event_is_named) {
    folder const in;
    std::ofstream(in.path + "/timeline-0.json") << "[\nhello,\n]\n";
    try {
        merge_timelines(find_timelines(in.path), in.path + "/out.json");
        FAIL();
    } catch (error const& problem) {
        EXPECT_THAT(problem.what(), HasSubstr("timeline-0.json:2:"));
    }
}

TEST(clock, the_offset_lies_between_its_bounds) {
    // this rank's clock is 500 us behind rank 0's
    std::vector<clock_reading> const readings{{1'000'000, 1'020'000, 495'000, 522'000},
                                              {2'000'000, 2'010'000, 1'501'000, 1'511'000}};
    auto const offset = estimate_offset(readings);
    EXPECT_LE(std::abs(offset.offset_us - 500), offset.error_us);
    EXPECT_LE(offset.error_us, 12);
    EXPECT_EQ(estimate_offset({}), clock_offset{});
}

TEST(counters, json_and_prometheus) {
    counters count;
    counters::add(count.operations[0], 3);
    counters::add(count.tensors, 4);
    counters::add(count.fused_tensors, 3);
    auto const values = count.values();
    auto const parsed = nlohmann::json::parse(to_json(values, 7));
    EXPECT_EQ(parsed.at("rank"), 7);
    EXPECT_EQ(parsed.at("operations").at("allreduce"), 3);
    EXPECT_DOUBLE_EQ(parsed.at("fused_ratio").get<double>(), 0.75);
    auto const text = to_prometheus(values, 7);
    EXPECT_THAT(text, HasSubstr("# TYPE muster_comm_operations_total counter\n"));
    EXPECT_THAT(text, HasSubstr("muster_comm_operations_total{rank=\"7\",kind=\"allreduce\"} 3\n"));
    EXPECT_THAT(text, HasSubstr("muster_comm_tensors_total{rank=\"7\"} 4\n"));
}

}  // namespace

}  // namespace muster
