#include "launch/record/sample_record.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

#include "base/process/files.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "base/trust/open_output_file.hpp"
#include "base/wall_clock.hpp"
#include "launch/hardware/topology.hpp"
#include "launch/samples/metrics_text.hpp"
#include "launch/samples/session_samples.hpp"
#include "launch/system/home_folder.hpp"
#include "launch/system/network.hpp"

namespace muster {

namespace {

constexpr duration others_come{0.5};    ///< after the first node's look
constexpr duration answer_patience{5};  ///< for a file system
constexpr std::chrono::milliseconds patience_at_end{500};

/// A text comes from another node, and may come from a rank's program.
void bound(std::string& text, std::size_t longest = 120) {
    if (text.size() > longest) text = text.substr(0, longest) + "...";
    text = without_controls(text);
}

node_sample bounded(node_sample look) {
    constexpr std::size_t most_named = 4;
    bound(look.interface);
    if (look.gpus.size() > static_cast<std::size_t>(most_gpus_of_node)) look.gpus.clear();
    for (auto& gpu : look.gpus)
        for (auto* const text : {&gpu.number, &gpu.name, &gpu.slowed, &gpu.was_slowed}) bound(*text);
    for (auto& rank : look.ranks) {
        for (auto* const text : {&rank.where, &rank.metric, &rank.gpu}) bound(*text);
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

/// The thread that writes has all but the path of the metrics for itself.
struct sample_record::files {
    std::string folder;
    std::string session_dir;  ///< gets a note of the folder; empty: it has one, or is the folder
    std::string metrics;      ///< the run's file in --metrics-dir; empty: none
    std::string user;
    std::string fault = {};

    void replace_samples(run_samples const& all) try {
        if (!session_dir.empty()) note_sample_folder(std::exchange(session_dir, {}), folder);
        output_folder(folder).replace_file(samples_file, samples_json(all), {}, 0600);
    } catch (std::exception const& e) {
        fault = fmt::format("the samples of the run are not written: {}", e.what());
    }

    /// All users' runs write to that folder. node_exporter must be able to read the file, and reads none that is not complete: another one gets its name.
    void replace_metrics(run_samples const& all) try {
        if (metrics.empty()) return;
        if (user.empty()) user = name_of_user(::geteuid());  // here, since a name service may block for long
        auto const fresh = metrics + ".new";
        auto const file = open_output_file(fresh, "check --metrics-dir", if_there::emptied, 0644);
        ::fchmod(file.get(), 0644);
        write_all(file.get(), metrics_text(all, user, std::to_string(::getpid())), fresh, "free space");
        if (::rename(fresh.c_str(), metrics.c_str()) != 0) throw_system("rename", metrics);
    } catch (std::exception const& e) {
        fault = fmt::format("the figures in --metrics-dir are not written: {}", e.what());
    }
};

sample_record::sample_record(event_loop& loop, run_context const& run, std::string job, present ranks,
                             std::function<void(std::string const&)> say)
    : loop_(loop),
      run_(run),
      ranks_(std::move(ranks)),
      say_(std::move(say)),
      files_(std::make_shared<files>()),
      writes_(loop, "for the samples of the run", 0, [this] { tell(files_->fault); }) {
    auto const& folder = run.life.output_dir;
    files_->folder = folder.empty() ? run.session_dir : absolute_path(folder);
    if (!folder.empty()) files_->session_dir = run.session_dir;
    if (auto const& shared = run.options.metrics_dir; !shared.empty())
        files_->metrics =
            fmt::format("{}/muster-{}-{}.prom", absolute_path(shared), job.empty() ? short_host_name() : job, ::getpid());
    head_.job = std::move(job);
    head_.command = shell_join(run.options.command);
    bound(head_.command, 200);
    head_.started_s = clock_now();
    head_.every_s = pause_of_samples(run).count();
}

void sample_record::note(std::string const& host, node_sample const& look) {
    sums_.note(host, bounded(look), clock_now());
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
    if (writes_.busy_for() > answer_patience)
        tell(fmt::format("the samples of the run are not written: {} has not answered for {}", files_->folder,
                         format_duration(answer_patience)));
    if (writes_.is_busy()) return;  // the next look follows soon
    writes_.begin([own = files_, all = samples(false)] {
        own->replace_samples(all);
        own->replace_metrics(all);
    });
}

void sample_record::tell(std::string const& fault) {
    if (fault.empty() || std::exchange(fault_told_, true) || run_.options.quiet) return;
    say_(fmt::format("note: {}", fault));
}

sample_record::~sample_record() {
    if (due_ != 0) loop_.cancel(due_);
    run_.outcome.samples = samples(true);
    auto const wait = [this] { return writes_.wait_until(event_loop::clock::now() + patience_at_end); };
    bool const is_idle = wait();
    if (!files_->metrics.empty()) ::unlink(files_->metrics.c_str());  // a run that has ended must not look as if it went on
    if (!is_idle || sums_.empty() || files_->folder == run_.session_dir) return;
    writes_.begin([own = files_, all = run_.outcome.samples] { own->replace_samples(all); });
    if (wait()) tell(files_->fault);
}

}  // namespace muster
