// The engine supervisor's third part: what is done about a failure, and what tells of it.
#include <signal.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "launch/run/engine_supervisor.hpp"

namespace muster {

evidence const& engine_supervisor::facts() {
    known_.lived = event_loop::clock::now() - start_;
    return known_;
}

void engine_supervisor::act_on(verdict const& judged) {
    if (failed_) return;
    if (judged.next == verdict::step::hold) {
        if (!judged.culprits.empty()) known_.suspect = judged.culprits.front().rank;
        return decide_cause_after(judged.patience);
    }
    if (!judged.ends()) return;
    failed_ = true;
    if (judged.of_rank) {
        culprit_ = judged.culprits.front().rank;
        if (outcome_ != nullptr) outcome_->rank = culprit_, outcome_->host = judged.culprits.front().host;
    }
    if (judged.gives_up) give_up(judged.culprits);
    if (!judged.text.empty()) say("error: " + judged.text);
    stop(judged.exit_code, SIGTERM);
}

void engine_supervisor::give_up(std::vector<culprit> const& lost) {
    for (auto const& one : lost)
        if (auto& rank = known_[one.rank]; !rank.over()) rank.now = rank_evidence::state::lost;
}

void engine_supervisor::decide_cause_after(duration patience) {
    if (failed_ || std::exchange(known_.deciding, true)) return;
    loop_.after(patience, [this] {
        if (known_.deciding) decide_cause();
    });
}

/// Something has ended ranks, or asked them to end.
void engine_supervisor::decide_cause() {
    known_.deciding = false;
    if (failed_ || phase_ == phase::closing || phase_ == phase::done) return close_if_over();
    known_.scheduler.reset();
    auto judged = judge_cause(facts());
    if (judged.next == verdict::step::ask_scheduler) {
        ask_scheduler(patient_question);
        judged = judge_cause(facts());
    }
    if (judged.next == verdict::step::go_on) {
        known_.asked = known_.engine_awaited = false;
        return close_if_over();
    }
    if (judged.next == verdict::step::hold) known_.engine_awaited = true;
    act_on(judged);
}

void engine_supervisor::ask_scheduler(std::chrono::milliseconds patience) {
    known_.scheduler = scheduler_word{ask_job_end(given_, inherited_, patience), {}};
    if (known_.scheduler->end != job_end::node_failed &&
        (known_.scheduler->end != job_end::going_on || patience != patient_question))
        return;
    auto const down = ask_down_nodes(given_, inherited_, patience);
    for (std::size_t n = 0; n < given_.nodes.size(); ++n)
        if (std::find(down.begin(), down.end(), given_.nodes[n].name) != down.end())
            known_.scheduler->down_nodes.push_back(static_cast<int>(n));
}

/// SIGTERM has come to this process: why, if the scheduler knows.
void engine_supervisor::explain_end() {
    ask_scheduler(brief_question);
    auto const why = explain_request_to_end(known_);
    if (!why.ends()) return;
    say("error: " + why.text);
    if (why.exit_code == 0) return;
    give_up(why.culprits);
    exit_code_ = why.exit_code;
    close_if_over();
}

void engine_supervisor::on_message(remote_rank& rank, wire::asked_to_end const& asked) {
    auto& known = known_[rank.job.who.rank];
    if (asked.number == SIGKILL && !known.asked) {
        known.watcher_killed = true;
        if (known_.first_killed < 0) known_.first_killed = known.rank;
    }
    known.asked = true;  // of a suspect, too, whose end the signal came after
    if (phase_ != phase::gathering && phase_ != phase::running) return;
    known_.asked = true;
    decide_cause_after(blame_patience);
}

void engine_supervisor::on_message(remote_rank&, wire::aborting const& aborting) {
    if (!known_.is_rank(aborting.rank)) return;
    if (!known_.abort) known_.abort = evidence::abort_word{.rank = aborting.rank, .code = aborting.code};
    decide_cause_after(duration(0.3));
}

}  // namespace muster
