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

#include "base/error.hpp"
#include "base/process/files.hpp"
#include "base/text.hpp"
#include "base/trust/foreign_json.hpp"

namespace muster {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t longest_line_bytes = std::size_t{1} << 20;

/// Slurm's daemons begin a line with the time, from 25.05 on always, before that where the site says so (LogTimeFormat):
/// "[2026-11-25T03:30:15.478] error: *** JOB 50 ON node1 CANCELLED AT ... ***". Other forms of the time are "2026-11-25T03:30:15+00:00",
/// "Nov 25 03:30:15", "Wed, 25 Nov 2026 03:30:15 +0000" and a number, behind which only the stars tell it from a rank's line.
bool is_dated_slurm_line(std::string_view line) {
    auto const end = line.find("] ");
    if (!line.starts_with('[') || end == std::string_view::npos) return false;
    auto const time = line.substr(1, end - 1), said = line.substr(end + 2);
    bool const has_clock = time.find_first_not_of("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz:.,+- ") ==
                               std::string_view::npos &&
                           std::count(time.begin(), time.end(), ':') >= 2;
    bool const is_number = !time.empty() && std::all_of(time.begin(), time.end(), is_digit);
    if (is_number) return said.starts_with("error: *** ");
    return has_clock && (said.starts_with("error: ") || said.starts_with("fatal: "));
}

/// What of the job's output is not the ranks'.
bool is_own_line(std::string_view line) {
    return line.starts_with("muster: ") || line.starts_with("slurmstepd: ") || line.starts_with("srun: ") ||
           line.starts_with("=>> PBS: ") || is_dated_slurm_line(line);
}

/// Whether `recorded`, a run's output, is the job's file `path`. The folder may have another path on another machine; PBS writes ID.OU and ID.ER to a
/// spool of its own, and brings them to their places, as NAME.o12 and NAME.e12, at the end.
bool is_output(fs::path const& recorded, fs::path const& path) {
    auto const from = recorded.extension().string(), to = path.extension().string();
    return recorded.filename() == path.filename() || (from == ".OU" && to.starts_with(".o")) ||
           (from == ".ER" && to.starts_with(".e"));
}

}  // namespace

std::vector<std::pair<int, std::string>> list_rank_folders(std::string const& run_folder) {
    std::vector<std::pair<int, std::string>> folders;
    std::error_code fault;
    constexpr std::string_view prefix = "rank.";
    for (auto const& entry : fs::directory_iterator(run_folder, fault)) {
        auto const name = entry.path().filename().string();
        if (!name.starts_with(prefix)) continue;
        auto const rank = parse_integer(std::string_view(name).substr(prefix.size()));
        if (rank && *rank >= 0 && *rank < 10'000'000) folders.emplace_back(static_cast<int>(*rank), entry.path().string());
    }
    std::sort(folders.begin(), folders.end());
    return folders;
}

log_tail::log_tail(tail_choice choice, sink take)
    : choice_(std::move(choice)), take_(std::move(take)), events_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    if (!events_) throw_system("inotify_init1", "for the logs", 0, "raise fs.inotify.max_user_instances");
}

/// Without a watch (a limit is reached) the files are still looked at by their size.
void log_tail::watch(std::string const& path) {
    if (watched_.contains(path)) return;
    int const number = ::inotify_add_watch(events_.get(), path.c_str(), IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
    int const file = number >= 0 ? number : ::inotify_add_watch(events_.get(), path.c_str(), IN_MODIFY);
    if (file >= 0) watched_[path] = file;
}

void log_tail::add(source made) {
    if (known_.insert(made.path).second) (made.rank < 0 ? scripts_ : ranks_).push_back(std::move(made));
}

/// At its end a run adds where its output ends, before the script goes on. Opened rather than asked for its time alone: of NFS that may be an older one.
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
        if (!run.is_discarded()) record = {found.st_ino, output_spans_in(run)};  // else half of it is there
    }
}

void log_tail::follow(std::string const& job, job_files const& files) {
    run_folders_[job] = files.run_folders;
    looked_for_ = files.first_folder;
    for (auto const& folder : files.run_folders) {
        watch(folder);
        for (auto const& [rank, path] : list_rank_folders(folder)) {
            has_ranks_[job] = true;
            last_rank_ = std::max(last_rank_, rank);
            if (choice_.rank && *choice_.rank != rank) continue;
            found_rank_ = true;
            watch(path);
            for (auto const* name : {"stdout", "stderr"}) add({fmt::format("{}/{}", path, name), job, rank, folder, 0, {}});
        }
    }
    if (choice_.rank) return;
    for (auto const& path : {files.output, files.errors}) {
        if (path.empty()) continue;
        watch(path);
        add({path, job, -1, {}, 0, {}});
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

std::string log_tail::why_no_script() const {
    if (mixed_.empty()) return {};
    return fmt::format("what the job's script itself wrote stands in {}, among the lines of the ranks", mixed_);
}

void log_tail::clear() noexcept {
    alignas(inotify_event) std::array<char, 4096> events;
    while (::read(events_.get(), events.data(), events.size()) > 0) {
    }
}

/// Where the run's output begins in a file of the job; 0 if it is not there.
std::uint64_t log_tail::start_in(std::string const& path, std::string const& run_folder) const {
    auto const found = records_.find(run_folder);
    if (found == records_.end()) return 0;
    for (auto const& span : found->second.spans)
        if (is_output(span.file, path)) return span.from_byte;
    return 0;
}

/// Whether a line of the job's output, which begins at byte `at`, is not the ranks'.
bool log_tail::is_of_script(source const& from, std::uint64_t at, std::string_view line) {
    if (!has_ranks_[from.job] || is_own_line(line)) return true;
    bool is_known = false;
    for (auto const& folder : run_folders_[from.job])
        for (auto const& span : records_[folder].spans) {
            if (!is_output(span.file, from.path)) continue;
            is_known = true;
            if (at >= span.from_byte && at < span.to_byte.value_or(UINT64_MAX)) return false;
        }
    if (!is_known) mixed_ = from.path;
    return is_known;
}

void log_tail::take_lines(source& from, bool last) {
    auto const begin = from.read_bytes - from.part.size();
    std::size_t start = 0;
    auto const take = [&](std::string line) {
        if (from.rank < 0 && !is_of_script(from, begin + start, line)) return;
        if (!line.empty() && line.back() == '\r') line.pop_back();
        if (choice_.filter.takes(line)) take_(from.job, from.rank, line);
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
    // NFS may know an older size for a while; opening a file asks its server.
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
        if (from.rank < 0) read_spans(from.job);  // behind it: which of these lines are the ranks'
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

void log_tail::finish() {
    read_all(true);
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
        throw error(errc::usage, fmt::format("--grep: '{}' is no regular expression: {}; put \\ before what is meant as it is",
                                             expression, text.data()));
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
