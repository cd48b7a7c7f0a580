#include "launch/record/sample_record.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <utility>

#include "base/error.hpp"
#include "base/process/files.hpp"
#include "base/process/start_thread.hpp"
#include "base/text.hpp"
#include "base/trust/open_output_file.hpp"
#include "launch/hardware/topology.hpp"
#include "launch/samples/metrics_text.hpp"
#include "launch/samples/session_samples.hpp"
#include "launch/system/network.hpp"

namespace muster {

namespace {

constexpr duration others_come{0.5};    ///< after the first node's look
constexpr duration answer_patience{5};  ///< for a file system
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

/// A look comes from another node, and parts of it from the rank's program.
node_sample bounded(node_sample look) {
    constexpr std::size_t longest_text = 120, most_named = 4;
    auto const clean = [](std::string& text) {
        if (text.size() > longest_text) text.resize(longest_text);
        text = without_controls(text);
    };
    clean(look.interface);
    if (look.gpus.size() > static_cast<std::size_t>(most_gpus_of_node)) look.gpus.clear();
    for (auto& gpu : look.gpus)
        for (auto* const text : {&gpu.number, &gpu.name, &gpu.slowed, &gpu.was_slowed}) clean(*text);
    for (auto& rank : look.ranks) {
        for (auto* const text : {&rank.where, &rank.metric, &rank.gpu}) clean(*text);
        if (rank.waits && rank.waits->longest.size() > most_named) rank.waits->longest.resize(most_named);
    }
    return look;
}

}  // namespace

duration pause_of_samples(run_context const& run) {
    constexpr double looks_per_s = 1000;
    auto const wanted = run.options.sample;
    return wanted > duration(0) ? std::max(wanted, duration(run.map.world_size() / looks_per_s)) : wanted;
}

/// Owner of a run's file of metrics in a folder that all users' runs write to.
class metrics_file {
  public:
    metrics_file() = default;
    metrics_file(std::string const& folder, std::string const& job)
        : path_(folder.empty() ? folder
                               : fmt::format("{}/muster-{}-{}.prom", absolute_path(folder), job.empty() ? short_host_name() : job,
                                             ::getpid())) {}

    /// Everybody may read the file, as node_exporter must. It reads none that is not complete: another one gets its name.
    void write(run_samples const& all) {
        if (path_.empty()) return;
        if (user_.empty()) user_ = name_of_this_user();  // here, since a name service may block for long
        auto const fresh = path_ + ".new";
        auto const file = open_output_file(fresh, "check --metrics-dir", if_there::emptied, 0644);
        ::fchmod(file.get(), 0644);
        write_all(file.get(), metrics_text(all, user_, std::to_string(::getpid())), fresh, "free space");
        if (::rename(fresh.c_str(), path_.c_str()) != 0) throw_system("rename", path_);
    }
    /// A run that has ended must not look as if it went on.
    void remove() const noexcept {
        if (!path_.empty()) ::unlink(path_.c_str());
    }

  private:
    static std::string name_of_this_user() {
        auto const* const entry = ::getpwuid(::geteuid());
        return entry != nullptr ? entry->pw_name : std::to_string(::geteuid());
    }
    std::string path_, user_;
};

struct sample_record::state {
    std::string folder;
    metrics_file metrics;
    std::string session_dir;  ///< gets a note of the folder; empty: it has one, or is the folder
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
            note_fault(fmt::format("the samples of the run are not written: {}", e.what()));
        }
        try {
            metrics.write(all);
        } catch (std::exception const& e) {
            note_fault(fmt::format("the figures in --metrics-dir are not written: {}", e.what()));
        }
    }
    void note_fault(std::string what) {
        std::scoped_lock const lock(mutex);
        fault = std::move(what);
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
    state_->metrics = metrics_file(run.options.metrics_dir, job);
    state_->folder = folder.empty() ? run.session_dir : absolute_path(folder);
    if (!folder.empty()) state_->session_dir = run.session_dir;
    head_.job = std::move(job);
    head_.command = shown_command(run.options.command);
    head_.started_s = seconds_of_wall_clock();
    head_.every_s = pause_of_samples(run).count();
}

void sample_record::note(std::string const& host, node_sample const& look) {
    sums_.note(host, bounded(look), seconds_of_wall_clock());
    if (due_ != 0) return;
    auto const pause = duration(head_.every_s) - duration(event_loop::clock::now() - written_);
    due_ = loop_.after(std::max(others_come, pause), [this] { write(); });
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
    written_ = event_loop::clock::now();
    std::string fault;
    bool busy = false;
    {
        std::scoped_lock const lock(state_->mutex);
        fault = std::exchange(state_->fault, {});
        busy = std::exchange(state_->writing, true);
    }
    if (busy && fault.empty() && written_ - writing_since_ > answer_patience)
        fault = fmt::format("the samples of the run are not written: {} has not answered for {}", state_->folder,
                            format_duration(answer_patience));
    if (!fault.empty() && !std::exchange(fault_told_, true) && !run_.options.quiet) say_(fmt::format("note: {}", fault));
    if (busy) return;  // the next look follows soon
    writing_since_ = written_;
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
    run_.outcome.samples = samples(true);
    std::unique_lock lock(state_->mutex);
    auto const is_idle = [this] { return !state_->writing; };
    bool const idle = state_->changed.wait_for(lock, patience_at_end, is_idle);
    state_->metrics.remove();
    if (!idle || sums_.empty() || !outlives_run) return;
    state_->metrics = {};
    state_->writing = true;
    lock.unlock();
    begin_write(run_.outcome.samples);
    lock.lock();
    state_->changed.wait_for(lock, patience_at_end, is_idle);
    if (!state_->fault.empty() && !fault_told_ && !run_.options.quiet) say_(fmt::format("note: {}", state_->fault));
}

}  // namespace muster
