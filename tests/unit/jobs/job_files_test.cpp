// Tests of whose a run folder or an output file is. Slurm's answers are those of a scontrol that prints files.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/process/files.hpp"
#include "base/text.hpp"
#include "launch/jobs/job_output.hpp"
#include "launch/jobs/queue/ask_scheduler.hpp"

namespace muster {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// The folder that the test is in.
class job_files_test : public testing::Test {
  protected:
    job_files_test() {
        fs::remove_all(here_), fs::create_directories(here_);
        here_ = fs::canonical(here_);
        fs::current_path(here_);
    }
    ~job_files_test() override { fs::current_path(before_), fs::remove_all(here_); }

    void write(std::string const& name, std::string const& text) const {
        fs::create_directories((here_ / name).parent_path());
        std::ofstream(here_ / name) << text;
    }
    void write_run(std::string const& folder, std::string const& job, std::string const& started_at,
                   std::string const& cluster = "") const {
        write(folder + "/run.json", fmt::format(R"({{"started_at": "{}", "allocation": {{"job_id": "{}", "cluster": "{}"}}}})",
                                                started_at, job, cluster));
    }
    /// On a cluster of this name. Answers are kept by the variables, so each has a PATH of its own.
    environment slurm(std::string const& cluster) {
        static int number = 0;
        bin_ = fmt::format("bin{}", ++number);
        write(bin_ + "/config", fmt::format("ClusterName = {}\n", cluster));
        write(bin_ + "/scontrol",
              fmt::format("#!/bin/sh\ncd '{}' && echo \"$*\" >>asked\ncase \"$*\" in\n'show config') exec /bin/cat "
                          "config ;;\n-o*) exec /bin/cat records ;;\n*) exec /bin/cat job ;;\nesac\n",
                          path(bin_)));
        fs::permissions(path(bin_ + "/scontrol"), fs::perms::owner_all);
        return {{"PATH", path(bin_)}};
    }
    std::string path(std::string const& name) const { return (here_ / name).string(); }

    std::string bin_;  ///< of the cluster

  private:
    fs::path here_ = fs::temp_directory_path() / ("muster-job-files-" + std::to_string(::getpid()));
    fs::path before_ = fs::current_path();
};

TEST_F(job_files_test, a_later_run_is_found_at_once_behind_the_first) {
    for (int i = 0; i < 500; ++i) write(fmt::format("data/{}/x", i), "");  // a search takes a while, and is not made at each call
    write_run("logs/train", "31", "2026-11-26T20:00:10");
    environment const none;
    job_file_finder finder(std::nullopt, none);
    EXPECT_THAT(finder.find({"31", "31"}, std::nullopt).run_folders, ElementsAre(path("logs/train")));
    write_run("logs/train.2", "31", "2026-11-26T20:00:20");
    write_run("logs/train.3", "32", "2026-11-26T20:00:30");
    EXPECT_THAT(finder.find({"31", "31"}, std::nullopt).run_folders, ElementsAre(path("logs/train"), path("logs/train.2")));
}

TEST_F(job_files_test, a_folder_of_another_task_is_not_that_of_one_asked_for_by_its_index) {
    write_run("results", "15", "2026-11-26T20:00:10");
    write("results/environment", "SLURM_ARRAY_JOB_ID=12\nSLURM_ARRAY_TASK_ID=3\n");
    job_record named;
    named.run_folder = path("results");
    EXPECT_THAT(find_job_files("12_3", named).run_folders, ElementsAre(path("results")));
    auto const other = find_job_files("12_4", named);
    EXPECT_THAT(other.run_folders, IsEmpty());
    ASSERT_EQ(other.shared.size(), 1);
    EXPECT_THAT(other.shared[0].why, HasSubstr("results holds a run of job 15, not of job 12_4"));
}

TEST_F(job_files_test, a_task_that_the_scheduler_has_forgotten_is_found_by_its_index) {
    for (auto const& [folder, index] : {std::pair("31", "1"), std::pair("32", "4"), std::pair("28", "9")}) {
        write_run(fmt::format("muster-runs/{}", folder), folder, "2026-11-26T20:00:10");
        write(fmt::format("muster-runs/{}/environment", folder),
              fmt::format("SLURM_ARRAY_JOB_ID=28\nSLURM_ARRAY_TASK_ID={}\n", index));
    }
    auto const raw_of = [](std::string const& asked) {
        std::vector<std::string> raw;
        for (auto const& part : list_parts({}, asked, std::nullopt)) raw.push_back(part.shown + "=" + part.raw);
        return raw;
    };
    EXPECT_THAT(raw_of("28"), ElementsAre("28_1=31", "28_4=32", "28_9=28"));
    EXPECT_THAT(raw_of("28_4"), ElementsAre("28_4=32"));
    EXPECT_THAT(raw_of("28_9"), ElementsAre("28_9=28"));
    EXPECT_THAT(raw_of("28_5"), IsEmpty());
    EXPECT_THAT(raw_of("32"), IsEmpty()) << "its folder has this very number";
}

TEST_F(job_files_test, a_run_of_before_the_job_was_submitted_is_that_of_a_former_one_of_its_number) {
    write_run("muster-runs/15", "15", "2026-11-26T10:00:00+0100");
    write_run("muster-runs/15.2", "15", "2026-11-26T20:00:05+0100");
    job_record record{.id = "15", .scheduler = "slurm", .submitted_at = "2026-11-26T19:00:10+0000"};
    record.run_folder = path("muster-runs/%j");
    environment const none;
    auto found = job_file_finder(std::nullopt, none).find({"15", "15"}, record);
    EXPECT_THAT(found.run_folders, ElementsAre(path("muster-runs/15.2")))
        << "a clock that is a little behind is none that begins anew";
    ASSERT_EQ(found.shared.size(), 1);
    EXPECT_THAT(found.shared[0].why, HasSubstr("15 holds a run of an earlier job 15"));
    fs::remove_all(path("muster-runs/15.2"));
    EXPECT_THAT(job_file_finder(std::nullopt, none).find({"15", "15"}, record).run_folders, IsEmpty()) << "as it begins";
    record.submitted_at.clear();
    EXPECT_EQ(job_file_finder(std::nullopt, none).find({"15", "15"}, record).run_folders.size(), 1);
}

TEST_F(job_files_test, a_run_on_another_cluster_is_its_jobs_own_where_that_has_it_or_all_clusters_do) {
    auto const variables = slurm("alpha");
    auto const runs_of = [&](std::string const& id, std::optional<job_record> const& record) {
        job_file_finder finder(queue_kind::slurm, variables);
        return finder.find({id, id}, record).run_folders.size();
    };
    write_run("muster-runs/12", "12", "2026-11-26T20:00:10", "beta");
    job_record record{.id = "12", .scheduler = "slurm", .cluster = "alpha"};
    record.run_folder = path("muster-runs/%j");
    EXPECT_EQ(runs_of("12", std::nullopt), 0);
    EXPECT_EQ(runs_of("12", record), 0);
    record.cluster = "beta";  // by sbatch -M beta
    EXPECT_EQ(runs_of("12", record), 1);
    record.cluster.clear();
    EXPECT_EQ(runs_of("12", record), 1);
    write_run("muster-runs/67108876", "67108876", "2026-11-26T20:00:10", "beta");
    EXPECT_EQ(runs_of("67108876", std::nullopt), 1);
}

TEST_F(job_files_test, who_writes_to_a_file_is_asked_again_at_the_end) {
    auto const record = [&](int id, char const* state, char const* start) {
        return fmt::format("JobId={} JobName=x JobState={} StartTime={} EndTime=Unknown StdErr={} StdOut={}\n", id, state, start,
                           path("train.out"), path("train.out"));
    };
    auto const variables = slurm("alpha");
    write(bin_ + "/records", record(1, "RUNNING", "2026-01-26T20:00:10"));
    write(bin_ + "/job", fmt::format("   StdErr={0}\n   StdOut={0}\n", path("train.out")));
    write("train.out", "a line\n");
    job_file_finder finder(queue_kind::slurm, variables);
    EXPECT_EQ(finder.find({"1", "1"}, std::nullopt).output, path("train.out"));
    write(bin_ + "/records", record(1, "COMPLETED", "2026-01-26T20:00:10") + record(2, "RUNNING", "2026-01-26T20:00:20"));
    finder.note_end("1");
    auto const files = finder.find({"1", "1"}, std::nullopt);
    EXPECT_EQ(files.output, "");
    ASSERT_EQ(files.shared.size(), 1);
    EXPECT_THAT(files.shared[0].why, HasSubstr("is also the output of job 2"));
}

TEST_F(job_files_test, the_cluster_is_asked_for_once_and_has_a_name_for_a_path) {
    auto const variables = slurm("gamma");
    EXPECT_EQ(find_cluster(variables), "gamma");
    EXPECT_EQ(find_cluster(variables), "gamma");
    EXPECT_EQ(read_text_file(path(bin_ + "/asked")), "show config\n");
    EXPECT_EQ(find_cluster(slurm("../beta")), "");
}

}  // namespace
}  // namespace muster
