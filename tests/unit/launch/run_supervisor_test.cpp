#include "launch/run/run_supervisor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/unique_fd.hpp"

namespace muster {
namespace {

using state = rank_evidence::state;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

/// A group of two ranks without processes: a fake that does what a test tells it, and notes what the supervisor asks of it.
struct scripted_group final : rank_group {
    scripted_group(run_context const& run, event_loop& runs, group_events& events) : rank_group(run, events), loop(runs) {
        known_.hosts = {"here"};
        for (int r = 0; r < 2; ++r) known_.ranks.push_back({.rank = r, .now = state::running});
        known_.started = true;
    }
    void start() override {
        for (auto const& step : script) loop.after(duration(0), step);
    }
    void go() override { asked.emplace_back("go"); }
    bool goes_on_without(verdict const&) override {
        if (when_lost) loop.after(duration(0), when_lost);
        return survives;
    }
    void signal(int number, bool notice) override {
        asked.push_back((notice ? "notice " : "signal ") + std::to_string(number));
        if (asked.size() == 2) end_ranks(0);
    }
    void end(int number) override {
        asked.push_back("end " + std::to_string(number));
        if (second_request != 0) ::kill(::getpid(), second_request);
        if (obedient) end_ranks(128 + number);
    }
    void kill() override {
        asked.emplace_back("kill");
        end_ranks(137);
    }
    void close(bool failed, int exit_code, int culprit) override {
        asked.push_back("close " + std::to_string(failed) + " " + std::to_string(exit_code) + " " + std::to_string(culprit));
        loop.after(duration(0), [this] { events_.on_closed(); });
    }
    verdict finish(bool) override { return late; }
    void on_child() override {}
    void resume_output() override {}
    void inspect(rows_taker then) override {
        then(known_.rows([this](int) { return &sight; }));
    }
    void ask_about(std::string const& command, std::vector<int> const& whom, rows_taker then) override {
        asked.push_back(command + " of " + std::to_string(whom.size()));
        then({});
    }

    void end_rank(int rank, int wait_status) {
        auto& one = known_[rank];
        if (one.wait_status) return;
        one.wait_status = wait_status;
        one.now = state::ended;
        events_.on_rank_end(rank, knows);
        one.now = state::gone;
        events_.on_rank_gone();
    }
    void end_ranks(int code) {
        loop.after(duration(0), [this, code] {
            for (int r = 0; r < 2; ++r) end_rank(r, code << 8);
        });
    }

    event_loop& loop;
    std::vector<std::function<void()>> script;
    std::vector<std::string> asked;
    bool obedient = true;
    bool survives = false;            ///< the others go on without a lost rank
    bool knows = false;               ///< … and it knows that as a rank ends
    std::function<void()> when_lost;  ///< comes after a lost rank
    int second_request = 0;           ///< comes while the first is answered
    verdict late;
    process_sight sight;
};

/// A run of them. Signals that the supervisor blocks are as before afterwards.
class run_supervisor_test : public testing::Test {
  protected:
    void SetUp() override {
        ::sigprocmask(SIG_SETMASK, nullptr, &mask_);
        ::signal(
            SIGINT,
            SIG_DFL);  // a shell without job control lets what it starts in the background ignore it, and so does muster then
        options.quiet = true;
        std::tie(guarded, guardian) = make_pipe();
        context.guardian_fd = guarded.get();
        watch.emplace(context);
        group.emplace(context, watch->loop(), watch->events());
    }
    void TearDown() override {
        ::sigprocmask(SIG_SETMASK, &mask_, nullptr);
        ::signal(SIGPIPE, SIG_DFL);
        ::prctl(PR_SET_CHILD_SUBREAPER, 0);
    }

    int run() {
        testing::internal::CaptureStderr();
        int const code = watch->run(*group);
        said = testing::internal::GetCapturedStderr();
        return code;
    }
    void first(std::function<void()> step) { group->script.push_back(std::move(step)); }
    group_events& events() { return watch->events(); }

    environment variables;
    scheduler_sources sources{variables, {}, {}, {}};
    run_outcome outcome;
    run_context context{{run_options{}, variables, sources, ""}, outcome};
    run_options& options = context.options;
    unique_fd guarded, guardian;
    std::optional<run_supervisor> watch;
    std::optional<scripted_group> group;
    std::string said;

  private:
    sigset_t mask_{};
};

TEST_F(run_supervisor_test, ranks_that_end_well_end_the_run_well) {
    first([this] { group->end_ranks(0); });
    EXPECT_EQ(run(), 0);
    EXPECT_THAT(group->asked, ElementsAre("close 0 0 -1"));
    EXPECT_THAT(said, IsEmpty());
}

TEST_F(run_supervisor_test, the_first_failure_is_told_and_ends_the_others) {
    first([this] { group->end_rank(1, 3 << 8); });
    EXPECT_EQ(run(), 3);
    EXPECT_THAT(group->asked, ElementsAre("end 15", "close 1 3 1"));
    EXPECT_THAT(said, HasSubstr("muster: error: rank 1 on here exited with code 3"));
    EXPECT_THAT(said, Not(HasSubstr("rank 0 on here"))) << "its end is a consequence";
    EXPECT_EQ(outcome.rank, 1);
    EXPECT_EQ(outcome.host, "here");
    EXPECT_THAT(outcome.cause, HasSubstr("exited with code 3"));
}

TEST_F(run_supervisor_test, the_others_go_on_in_place_without_a_rank_and_the_record_says_so) {
    options.least_ranks = 1;
    context.life.now = {0, {{0, {"here", 0}}, {1, {"here", 1}}}, 2};
    group->known().members = {0, 1};
    group->survives = true;
    first([this] { group->end_rank(1, SIGKILL); });
    first([this] { events().on_generation({1, {{0, {"here", 0}}}, 2}, "rank 1 on here is gone"); });
    first([this] { group->end_rank(0, 0); });
    EXPECT_EQ(run(), 0);
    EXPECT_THAT(group->asked, ElementsAre("close 0 0 -1")) << "nobody is ended";
    EXPECT_THAT(
        said,
        HasSubstr(
            "muster: note: generation 0: rank 1 on here (member 1) was killed by signal 9 (SIGKILL); 1 rank goes on in place"));
    EXPECT_EQ(context.generation(), 1);
    ASSERT_EQ(outcome.survived.size(), 1u);
    auto const& end = outcome.survived.front();
    EXPECT_TRUE(end.in_place);
    EXPECT_EQ(end.code, 137);
    EXPECT_EQ(end.member, 1);
    EXPECT_THAT(end.members, ElementsAre(0, 1));
    EXPECT_GE(end.waited_s, 0);
    EXPECT_THAT(outcome.cause, IsEmpty());
}

TEST_F(run_supervisor_test, a_rank_that_another_has_left_and_that_is_held_is_a_loss_if_the_others_can_go_on_by_then) {
    options.least_ranks = 1;
    context.life.now = {0, {{0, {"here", 0}}, {1, {"here", 1}}}, 2};
    group->known().members = {0, 1};
    group->known()[1].last_lines = "rank 0 (here) has ended the exchange and will not take part";
    group->survives = true;
    group->when_lost = [this] { group->end_rank(0, 0); };
    first([this] { group->end_rank(1, 1 << 8); });
    EXPECT_EQ(run(), 0);
    EXPECT_THAT(said, HasSubstr("rank 1 on here (member 1) exited with code 1; 1 rank goes on in place"));
}

TEST_F(run_supervisor_test, the_record_of_a_generation_that_ends_in_place_names_who_made_others_end) {
    options.least_ranks = 1;
    context.life.now = {0, {{0, {"here", 0}}, {1, {"here", 1}}, {2, {"here", 2}}}, 3};
    group->known().ranks.push_back({.rank = 2, .now = state::running});
    group->known().members = {0, 1, 2};
    group->known()[1].last_lines = "allreduce cannot finish: rank 2 on here (member 2) was killed by signal 9 (SIGKILL)";
    group->survives = group->knows = true;
    first([this] { group->end_rank(1, 1 << 8); });
    first([this] { group->end_rank(2, SIGKILL); });
    first([this] { events().on_generation({1, {{0, {"here", 0}}}, 3}, "ranks 1 and 2 on here are gone"); });
    first([this] { group->end_rank(0, 0); });
    EXPECT_EQ(run(), 0);
    ASSERT_EQ(outcome.survived.size(), 1u);
    auto const& end = outcome.survived.front();
    EXPECT_EQ(end.rank, 2);
    EXPECT_EQ(end.member, 2);
    EXPECT_EQ(end.code, 137);
    EXPECT_THAT(end.cause, HasSubstr("rank 2 on here (member 2) was killed by signal 9 (SIGKILL)"));
}

TEST_F(run_supervisor_test, the_record_names_a_loss_whose_cause_is_held_as_the_next_generation_begins) {
    options.least_ranks = 1;
    context.life.now = {0, {{0, {"here", 0}}, {1, {"here", 1}}}, 2};
    auto& known = group->known();
    known.members = {0, 1};
    known.in_job = true;  // whose end may be what kills ranks
    group->survives = true;
    first([this] { group->end_rank(1, SIGKILL); });
    first([this, &known] {
        events().on_generation_end();
        number_anew(known, {0}, {0});
        events().on_generation({1, {{0, {"here", 0}}}, 2}, "rank 1 on here is gone");
        known[0].left_early = true;
        group->end_rank(0, 0);
    });
    EXPECT_EQ(run(), 0) << said;
    EXPECT_THAT(
        said,
        HasSubstr(
            "muster: note: generation 0: rank 1 on here (member 1) was killed by signal 9 (SIGKILL); 1 rank goes on in place"));
    ASSERT_EQ(outcome.survived.size(), 1u);
    EXPECT_EQ(outcome.survived.front().code, 137);
    EXPECT_EQ(outcome.survived.front().member, 1);
}

TEST_F(run_supervisor_test, ranks_that_all_end_because_of_a_loss_are_not_to_blame) {
    options.least_ranks = 1;
    context.life.now = {0, {{0, {"here", 0}}, {1, {"here", 1}}}, 2};
    group->known().members = {0, 1};
    group->known()[0].last_lines = "allreduce cannot finish: rank 1 on here (member 1) was killed by signal 9 (SIGKILL)";
    group->survives = group->knows = true;
    first([this] { group->end_rank(1, SIGKILL); });
    first([this] {
        group->survives = group->knows = false;
        group->end_rank(0, 1 << 8);
    });
    EXPECT_EQ(run(), 137);
    EXPECT_THAT(said, HasSubstr("muster: error: generation 0: rank 1 on here (member 1) was killed by signal 9 (SIGKILL)"));
    EXPECT_EQ(outcome.rank, 1);
    EXPECT_TRUE(outcome.from_outside);
}

TEST_F(run_supervisor_test, an_end_that_may_come_of_another_is_held_before_the_run_closes) {
    group->known().in_job = true;
    first([this] { group->end_rank(0, SIGKILL), group->end_rank(1, SIGKILL); });
    EXPECT_EQ(run(), 137);
    EXPECT_THAT(group->asked, ElementsAre("end 15", "close 1 137 0"));
    EXPECT_THAT(said, HasSubstr("rank 0 on here was killed by signal 9"));
}

TEST_F(run_supervisor_test, a_second_request_to_end_is_not_patient) {
    group->obedient = false;
    group->second_request = SIGINT;
    first([] { ::kill(::getpid(), SIGTERM); });
    EXPECT_EQ(run(), 143);
    EXPECT_THAT(group->asked, ElementsAre("end 15", "kill", "close 1 143 -1"));
}

TEST_F(run_supervisor_test, other_signals_are_passed_on) {
    first([] { ::kill(::getpid(), SIGUSR1); });
    first([] { ::kill(::getpid(), SIGUSR2); });
    EXPECT_EQ(run(), 0);
    EXPECT_THAT(group->asked,
                UnorderedElementsAre("notice " + std::to_string(SIGUSR1), "notice " + std::to_string(SIGUSR2), "close 0 0 -1"));
    EXPECT_THAT(said, HasSubstr("rank 1 on here")) << "SIGUSR2 shows what ranks do";
}

TEST_F(run_supervisor_test, a_scheduler_that_ends_the_job_learns_what_the_ranks_did) {
    options.quiet = false;
    context.given.fixed = true;
    group->sight = {.pid = 7, .state = 'S', .where = "futex"};
    first([] { ::kill(::getpid(), SIGTERM); });
    EXPECT_EQ(run(), 143);
    EXPECT_THAT(said, HasSubstr("got SIGTERM: ending 2 ranks\nmuster: rank 0 on here, pid 7: asleep in futex"));
}

TEST_F(run_supervisor_test, a_request_of_the_user_shows_no_table) {
    options.quiet = false;
    group->sight = {.pid = 7, .state = 'S', .where = "futex"};
    first([] { ::kill(::getpid(), SIGTERM); });
    EXPECT_EQ(run(), 143);
    EXPECT_THAT(said, Not(HasSubstr("pid 7")));
}

TEST_F(run_supervisor_test, without_its_guardian_all_is_killed) {
    first([this] { guardian.reset(); });
    EXPECT_EQ(run(), 137);
    EXPECT_THAT(group->asked, ElementsAre("kill", "close 1 137 -1"));
}

TEST_F(run_supervisor_test, a_time_limit_shows_the_ranks_before_it_ends_them) {
    options.timeout = duration(0.02);
    options.on_hang = "look";
    EXPECT_EQ(run(), 124);
    EXPECT_THAT(group->asked, ElementsAre("look of 2", "end 15", "close 1 124 -1"));
    EXPECT_THAT(said, HasSubstr("still running after --timeout 20 ms"));
}

TEST_F(run_supervisor_test, ranks_that_are_gathered_start_together) {
    group->known().started = false;
    for (auto& rank : group->known().ranks) rank.now = state::ready;
    first([this] {
        EXPECT_EQ(events().now(), run_phase::starting);
        events().on_ready();
        EXPECT_EQ(events().now(), run_phase::running);
        group->end_ranks(0);
    });
    EXPECT_EQ(run(), 0);
    EXPECT_THAT(group->asked, ElementsAre("go", "close 0 0 -1"));
}

TEST_F(run_supervisor_test, what_is_wrong_only_at_the_end_is_told) {
    group->late = blame_run(failure_cause::engine, "the engine did not end well", 9);
    first([this] { group->end_ranks(0); });
    EXPECT_EQ(run(), 9);
    EXPECT_THAT(said, HasSubstr("error: the engine did not end well"));
}

TEST_F(run_supervisor_test, ranks_that_are_given_up_are_waited_for_no_more) {
    group->obedient = false;
    group->known().engine = "srun";
    group->known().hosts = {"here", "there"};
    group->known()[1].node = 1;
    first([this] {
        events().judge([](evidence const& known) { return judge_silence(known, {1}, duration(2)); });
        EXPECT_EQ(group->known()[1].now, state::lost);
        group->end_rank(0, 143 << 8);
    });
    EXPECT_EQ(run(), 125);
    EXPECT_THAT(said, HasSubstr("lost rank 1 on there"));
}

}  // namespace
}  // namespace muster
