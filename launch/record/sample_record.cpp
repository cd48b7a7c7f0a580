#include "launch/record/sample_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/error.hpp"
#include "base/process/files.hpp"
#include "base/process/start_thread.hpp"
#include "base/text.hpp"
#include "base/trust/open_output_file.hpp"
#include "launch/hardware/topology.hpp"
#include "launch/samples/session_samples.hpp"

namespace muster {

namespace {

constexpr duration others_come{0.5};  ///< after the first node's look
constexpr std::chrono::milliseconds patience_at_end{500};
constexpr std::size_t longest_command = 200;

double seconds_of_wall_clock() {
    return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string shown_command(std::vector<std::string> const& words) {
    auto text = shell_join(words);
    if (text.size() <= longest_command) return text;
    text.resize(longest_command);
    return text + "...";
}

}  // namespace

duration pause_of_samples(run_context const& run) {
    constexpr double looks_per_s = 1000;
    auto const wanted = run.options.sample;
    return wanted > duration(0) ? std::max(wanted, duration(run.map.world_size() / looks_per_s)) : wanted;
}

struct sample_record::state {
    std::string folder;
    std::string session_dir;  ///< to be told of the folder; empty: it has been, or is the folder
    std::mutex mutex;
    std::condition_variable changed;
    bool writing = false;
    std::string fault;

    /// Writes another file first and renames it: a reader must not find half of it.
    void replace_file(run_samples const& all) {
        try {
            if (!session_dir.empty()) note_sample_folder(session_dir, folder);
            session_dir.clear();
            output_folder const place(folder);
            auto const name = fmt::format("{}.new", samples_file);
            write_all(place.open_file(name, {}, 0600).get(), samples_json(all), name, "free space");
            place.rename_file(name, samples_file);
        } catch (std::exception const& e) {
            std::scoped_lock const lock(mutex);
            fault = e.what();
        }
    }
    void note_written() {
        std::scoped_lock const lock(mutex);
        writing = false;
        changed.notify_all();
    }
};

sample_record::sample_record(event_loop& loop, run_context const& run, std::string job, present ranks,
                             std::function<void(std::string const&)> say)
    : loop_(loop), run_(run), ranks_(std::move(ranks)), say_(std::move(say)), state_(std::make_shared<state>()) {
    auto const& folder = run.life.output_dir;
    state_->folder = folder.empty() ? run.session_dir : absolute_path(folder);
    if (!folder.empty()) state_->session_dir = run.session_dir;
    head_.job = std::move(job);
    head_.command = shown_command(run.options.command);
    head_.started_s = seconds_of_wall_clock();
    head_.every_s = pause_of_samples(run).count();
}

void sample_record::note(std::string const& host, node_sample const& look) {
    if (look.gpus.size() > static_cast<std::size_t>(most_gpus_of_node)) return;
    sums_.note(host, look, seconds_of_wall_clock());
    if (due_ == 0) due_ = loop_.after(others_come, [this] { write(); });
}

run_samples sample_record::samples(bool ended_too) const {
    auto all = head_;
    auto const ranks = ranks_(ended_too);
    all.generation = std::max(run_.generation(), 0);
    all.world_size = run_.options.is_elastic() && !run_.present().members.empty()
                         ? static_cast<int>(run_.present().members.size())
                         : run_.map.world_size();
    all.nodes = sums_.nodes(ranks);
    return all;
}

void sample_record::write() {
    due_ = 0;
    std::string fault;
    {
        std::scoped_lock const lock(state_->mutex);
        fault = std::exchange(state_->fault, {});
        if (std::exchange(state_->writing, true)) return;  // the next look follows soon
    }
    if (!fault.empty() && !std::exchange(fault_told_, true))
        say_(fmt::format("note: the samples of the run are not written: {}", fault));
    begin_write(samples(false));
}

void sample_record::begin_write(run_samples all) {
    try {
        start_thread("for the samples of the run", [shared = state_, all = std::move(all)] {
            shared->replace_file(all);
            shared->note_written();
        }).detach();
    } catch (error const&) {
        state_->note_written();
    }
}

sample_record::~sample_record() {
    if (due_ != 0) loop_.cancel(due_);
    bool const outlives_run = state_->folder != run_.session_dir;
    std::unique_lock lock(state_->mutex);
    auto const is_idle = [this] { return !state_->writing; };
    if (!state_->changed.wait_for(lock, patience_at_end, is_idle) || sums_.empty() || !outlives_run) return;
    state_->writing = true;
    lock.unlock();
    begin_write(samples(true));
    lock.lock();
    state_->changed.wait_for(lock, patience_at_end, is_idle);
}

}  // namespace muster
