#include "launch/jobs/logs/log_tail.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <regex.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/process/files.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "base/trust/foreign_json.hpp"

namespace muster {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t longest_line_bytes = std::size_t{1} << 20;

/// Slurm's daemons begin a line with the time, always since 25.05 and before if the site says so (LogTimeFormat):
/// "[2026-11-25T03:30:15.478] error: *** JOB 50 ON node1 CANCELLED AT ... ***". Other forms of the time are
/// "2026-11-25T03:30:15+00:00", "Nov 25 03:30:15", "Wed, 25 Nov 2026 03:30:15 +0000" and a number; only the stars tell a line
/// after a number from a rank's.
bool is_dated_slurm_line(std::string_view line) {
    auto const end = line.find("] ");
    if (!line.starts_with('[') || end == std::string_view::npos) return false;
    auto const time = line.substr(1, end - 1), said = line.substr(end + 2);
    bool const has_clock = time.find_first_not_of("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz:.,+- ") ==
                               std::string_view::npos &&
                           std::ranges::count(time, ':') >= 2;
    bool const is_number = !time.empty() && std::ranges::all_of(time, is_digit);
    if (is_number) return said.starts_with("error: *** ");
    return has_clock && (said.starts_with("error: ") || said.starts_with("fatal: "));
}

/// Returns whether muster or the scheduler wrote this line of the job's output.
bool is_own_line(std::string_view line) {
    return line.starts_with("muster: ") || line.starts_with("slurmstepd: ") || line.starts_with("srun: ") ||
           line.starts_with("=>> PBS: ") || is_dated_slurm_line(line);
}

/// Returns whether `recorded`, a run's output, is the job's file `path`. The folder may have another path on another machine; PBS
/// writes ID.OU and ID.ER to its spool and, at the end, moves them to their places as NAME.o12 and NAME.e12.
bool is_output(fs::path const& recorded, fs::path const& path) {
    auto const from = recorded.extension().string(), to = path.extension().string();
    return recorded.filename() == path.filename() || (from == ".OU" && to.starts_with(".o")) ||
           (from == ".ER" && to.starts_with(".e"));
}

/// Returns whether the file lies in PBS' spool, from which it is moved to whatever name the job gave it.
bool is_spooled(fs::path const& recorded) {
    return recorded.extension() == ".OU" || recorded.extension() == ".ER";
}

std::map<int, int> spare_ranks_in(nlohmann::json const& run) {
    std::map<int, int> ranks;
    if (!run.is_object() || !run.contains("spares")) return ranks;
    for (auto const& row : run["spares"])
        if (row.is_object() && row.contains("spare") && row.contains("rank") && row["spare"].is_number_integer() &&
            row["rank"].is_number_integer())
            ranks[row["spare"].get<int>()] = row["rank"].get<int>();
    return ranks;
}

}  // namespace

log_tail::log_tail(tail_choice choice, sink take)
    : choice_(std::move(choice)), take_(std::move(take)), events_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    if (!events_) throw_system("inotify_init1", "for the logs", 0, "raise fs.inotify.max_user_instances");
}

/// Files without a watch (the limit is reached) are still checked by their size.
void log_tail::watch(std::string const& path) {
    if (watched_.contains(path)) return;
    int const number = ::inotify_add_watch(events_.get(), path.c_str(), IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
    int const file = number >= 0 ? number : ::inotify_add_watch(events_.get(), path.c_str(), IN_MODIFY);
    if (file >= 0) watched_[path] = file;
}

void log_tail::add(source made) {
    if (known_.insert(made.path).second) (made.who.empty() ? scripts_ : ranks_).push_back(std::move(made));
}

/// A run's record gets the end of its output before the script goes on. This opens the record, since NFS may show an older time
/// of a file that is not opened.
void log_tail::read_spans(std::string const& job) {
    for (auto const& folder : run_folders_[job]) {
        auto& record = records_[folder];
        bool const is_whole =
            !record.spans.empty() && std::ranges::all_of(record.spans, [](auto const& s) { return !!s.to_byte; });
        auto const path = folder + "/run.json";
        unique_fd const file(is_whole ? -1 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
        struct stat found {};
        if (!file || ::fstat(file.get(), &found) != 0 || found.st_ino == record.inode) continue;
        auto const run = parse_json_or_discard<nlohmann::json>(read_text_file(path));
        if (!run.is_discarded())  // otherwise half of it is written
            record = {found.st_ino, output_spans_in(run), text_at(run, "/started_at"), text_at(run, "/ended_at"),
                      spare_ranks_in(run)};
    }
}

void log_tail::add_rank(std::string const& job, std::string const& run_folder, std::string const& path, int rank,
                        std::string who) {
    if (choice_.rank && *choice_.rank != rank) return;
    found_rank_ = true;
    watch(path);
    for (auto const* name : {"stdout", "stderr"}) add({fmt::format("{}/{}", path, name), job, who, run_folder, 0, {}});
}

/// Drops files that another job has begun, or whose folder another run uses.
void log_tail::drop(std::string const& job, std::string const& path) {
    for (auto* sources : {&ranks_, &scripts_})
        std::erase_if(*sources, [&](source const& from) {
            bool const is_gone = from.job == job && (from.path == path || from.run_folder == path);
            if (is_gone) known_.erase(from.path);  // the other job may be followed, too
            return is_gone;
        });
}

void log_tail::follow(std::string const& job, job_files const& files) {
    auto& others = other_jobs_[job];
    others.clear();
    for (auto const& file : files.shared) {
        if (file.is_others) drop(job, file.path);
        if (!file.why.empty()) others.push_back(file.why);
    }
    run_folders_[job] = files.run_folders;
    looked_for_ = files.first_folder;
    for (auto const& folder : files.run_folders) {
        watch(folder);
        auto const name = files.run_names.find(folder);
        auto const prefix = name == files.run_names.end() ? std::string() : name->second + ":";
        for (auto const& [rank, path] : rank_folders(folder)) {
            has_ranks_[job] = true;
            last_rank_ = std::max(last_rank_, rank);
            add_rank(job, folder, path, rank, prefix + std::to_string(rank));
        }
        auto const spares = rank_folders(folder, "spare.");
        if (!spares.empty()) read_spans(job);
        for (auto const& [number, path] : spares) {
            auto const& ranks = records_[folder].spare_ranks;
            auto const found = ranks.find(number);
            bool const is_rank = found != ranks.end();
            add_rank(job, folder, path, is_rank ? found->second : -1,
                     prefix + (is_rank ? std::to_string(found->second) : fmt::format("spare {}", number)));
        }
    }
    if (choice_.rank) return;
    for (auto const& path : {files.output, files.errors}) {
        if (path.empty()) continue;
        watch(path);
        add({path, job, {}, {}, 0, {}});
    }
}

std::string log_tail::why_no_rank() const {
    if (!choice_.rank || found_rank_) return {};
    if (last_rank_ >= 0) return fmt::format("no rank {}: the ranks are 0 to {}", *choice_.rank, last_rank_);
    return fmt::format(
        "no files by rank, of which --rank {} could be one: there is no {}, and no run of the job in another folder here or one "
        "below; give the --output-dir of its muster run, or leave out --rank",
        *choice_.rank, looked_for_);
}

std::vector<std::string> log_tail::other_jobs() const {
    std::vector<std::string> lines;
    for (auto const& [job, of_job] : other_jobs_) lines.insert(lines.end(), of_job.begin(), of_job.end());
    return lines;
}

std::string log_tail::why_no_script() const {
    if (!mixed_.empty())
        return fmt::format("what the job's script itself wrote stands in {}, among the lines of the ranks", mixed_);
    if (killed_in_.empty()) return {};
    return fmt::format(
        "a run was killed; what the job's script wrote after it, if anything, stands in {}, among the lines of the ranks",
        killed_in_);
}

void log_tail::clear() noexcept {
    alignas(inotify_event) std::array<char, 4096> events;
    while (::read(events_.get(), events.data(), events.size()) > 0) {
    }
}

/// Returns where the run's output begins in a file of the job; 0 if the record does not say.
std::uint64_t log_tail::start_in(std::string const& path, std::string const& run_folder) const {
    auto const found = records_.find(run_folder);
    if (found == records_.end()) return 0;
    for (auto const& span : found->second.spans)
        if (is_output(span.file, path)) return span.from_byte;
    return 0;
}

/// If a run has recorded files, and this is not one of them, its ranks wrote nothing here.
log_tail::rank_parts log_tail::find_rank_parts(source const& from) {
    rank_parts ranks;
    bool is_found = false, all_elsewhere = true;
    std::vector<std::string> ends;  // of the runs
    std::error_code fault;
    auto const real = fs::canonical(from.path, fault);  // this is the path that the launcher recorded
    for (auto const& folder : run_folders_[from.job]) {
        auto const& record = records_[folder];
        all_elsewhere = all_elsewhere && !record.spans.empty();
        for (auto const& span : record.spans) {
            all_elsewhere = all_elsewhere && !is_spooled(span.file);
            if (!is_output(span.file, from.path) && !is_output(span.file, real)) continue;
            is_found = true;
            // A job that is queued again truncates its file, so what earlier runs recorded no longer holds.
            for (std::size_t i = ranks.spans.size(); i-- > 0;) {
                auto const& earlier = ranks.spans[i];
                bool const was_over = !ends[i].empty() && ends[i] <= record.started_at;
                if (span.from_byte > earlier.from_byte && !(was_over && earlier.to_byte > span.from_byte)) continue;
                ranks.spans.erase(ranks.spans.begin() + static_cast<std::ptrdiff_t>(i));
                ends.erase(ends.begin() + static_cast<std::ptrdiff_t>(i));
            }
            ranks.spans.push_back(span), ends.push_back(record.ended_at);
        }
    }
    ranks.is_known = is_found || all_elsewhere;
    return ranks;
}

/// Returns whether a line of the job's output, which begins at byte `at`, was not written by ranks.
bool log_tail::is_of_script(source const& from, rank_parts const& ranks, std::uint64_t at, std::string_view line) {
    if (!has_ranks_[from.job] || is_own_line(line)) return true;
    if (!ranks.is_known) mixed_ = from.path;
    auto const& spans = ranks.spans;
    for (std::size_t i = 0; i < spans.size(); ++i) {
        auto const next = i + 1 < spans.size() ? spans[i + 1].from_byte : UINT64_MAX;
        if (at >= spans[i].from_byte && at < spans[i].to_byte.value_or(next)) return false;
    }
    return ranks.is_known;
}

void log_tail::take_lines(source& from, bool last) {
    auto const ranks = from.who.empty() ? find_rank_parts(from) : rank_parts();
    auto const begin = from.read_bytes - from.part.size();
    std::size_t start = 0;
    auto const take = [&](std::string line) {
        if (from.who.empty() && !is_of_script(from, ranks, begin + start, line)) return;
        if (!line.empty() && line.back() == '\r') line.pop_back();
        if (choice_.filter.takes(line)) take_(from.job, from.who, line);
    };
    for (std::size_t end; (end = from.part.find('\n', start)) != std::string::npos; start = end + 1)
        take(from.part.substr(start, end - start));
    from.part.erase(0, start);
    if ((last && !from.part.empty()) || from.part.size() > longest_line_bytes) {
        take(from.part);
        from.part.clear();
    }
}

void log_tail::read_new(source& from, bool last, std::uint64_t end) {
    struct stat found {};
    if (::stat(from.path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return;
    auto const size = static_cast<std::uint64_t>(found.st_size);
    if (size < from.read_bytes) from.read_bytes = 0, from.part.clear();  // begun anew
    // NFS may report an older size for a while; opening a file asks its server.
    if (from.read_bytes >= end || (size == from.read_bytes && !last)) return;
    unique_fd const file(::open(from.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file) return;
    std::array<char, 65536> block;
    while (from.read_bytes < end) {
        auto const wanted = static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), end - from.read_bytes));
        auto const n = ::pread(file.get(), block.data(), wanted, static_cast<off_t>(from.read_bytes));
        if (n <= 0) return;
        from.read_bytes += static_cast<std::uint64_t>(n);
        from.part.append(block.data(), static_cast<std::size_t>(n));
        if (from.who.empty()) read_spans(from.job);  // after the size was read: tells which of these lines the ranks wrote
        take_lines(from, false);
    }
}

void log_tail::read_all(bool last) {
    auto const read = [&](source& from) {
        read_new(from, last);
        if (last) take_lines(from, true);
    };
    std::string run_folder;
    for (auto& from : ranks_) {
        if (from.run_folder != run_folder) {
            run_folder = from.run_folder;
            read_spans(from.job);
            for (auto& script : scripts_)
                if (script.job == from.job) read_new(script, last, start_in(script.path, run_folder));
        }
        read(from);
    }
    for (auto& from : scripts_) read(from);
}

void log_tail::look() {
    read_all(false);
}

void log_tail::finish(bool ended) {
    read_all(true);
    if (!ended) return;
    // The script may have gone on after a launcher was killed.
    for (auto const& from : scripts_)
        for (auto const& span : find_rank_parts(from).spans)
            if (has_ranks_[from.job] && !span.to_byte && from.read_bytes > span.from_byte) killed_in_ = from.path;
}

struct line_filter::compiled {
    regex_t expression{};
    bool made = false;
    compiled() = default;
    compiled(compiled const&) = delete;
    compiled& operator=(compiled const&) = delete;
    ~compiled() {
        if (made) ::regfree(&expression);
    }
};

line_filter::line_filter(std::string const& expression) {
    if (expression.empty()) return;
    compiled_ = std::make_unique<compiled>();
    int const fault = ::regcomp(&compiled_->expression, expression.c_str(), REG_EXTENDED | REG_NOSUB);
    if (fault != 0) {
        std::array<char, 256> text{};
        ::regerror(fault, &compiled_->expression, text.data(), text.size());
        throw_error(errc::usage, "--grep: '{}' is no regular expression: {}; put \\ before what is meant as it is", expression,
                    text.data());
    }
    compiled_->made = true;
}

line_filter::line_filter() = default;
line_filter::~line_filter() = default;
line_filter::line_filter(line_filter&&) noexcept = default;
line_filter& line_filter::operator=(line_filter&&) noexcept = default;

bool line_filter::takes(std::string const& line) const {
    return !compiled_ || ::regexec(&compiled_->expression, line.c_str(), 0, nullptr, 0) == 0;
}

}  // namespace muster
