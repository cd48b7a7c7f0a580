// Follows a job's log files, and passes on each line that its ranks write.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "launch/jobs/job_output.hpp"
#include "launch/record/output_span.hpp"
#include "launch/settings/resolve_settings.hpp"

namespace muster {

// Filters lines by a regular expression.

/// Accepts lines that match a POSIX extended regular expression; the empty one accepts all.
class line_filter {
  public:
    line_filter();
    /// Throws errc::usage for an invalid one.
    explicit line_filter(std::string const& expression);
    ~line_filter();
    line_filter(line_filter&&) noexcept;
    line_filter& operator=(line_filter&&) noexcept;

    bool takes(std::string const& line) const;

  private:
    struct compiled;
    std::unique_ptr<compiled> compiled_;
};

struct tail_choice {
    std::optional<int> rank;  ///< show only this rank
    line_filter filter;
};

/// Reads the files rank.NN/stdout and stderr of run folders, and those of spares. From the job's own output it takes what ranks
/// did not write: what the script wrote before a run comes before that run's ranks, the rest after them. inotify reports new
/// lines in files on this machine; `look` finds those on a shared file system by the files' sizes.
class log_tail {
  public:
    /// `take` gets each whole line, without its end. `who` is the rank, "spare 0" for a spare that no record (yet) says became a
    /// rank, and empty for lines of the job's script, of muster and of the scheduler.
    using sink = std::function<void(std::string const& job, std::string const& who, std::string const& line)>;

    log_tail(tail_choice choice, sink take);

    /// Follows the files of a job as they are now; a further call adds new ones.
    void follow(std::string const& job, job_files const& files);
    /// Reads new lines in all files.
    void look();
    /// Does the same, and takes a last line without an end. `ended`: the job has ended, so a run without an end in its record was
    /// killed.
    void finish(bool ended = true);

    /// Returns why --rank has found no file so far, as "no rank 7: the ranks are 0 to 3"; empty if it has, or was not given.
    std::string why_no_rank() const;

    /// Returns which file's lines of the script may be missing, because a run has not recorded which part of the job's output its
    /// ranks wrote; empty: no lines are.
    std::string why_no_script() const;

    /// Returns what is not shown because other jobs write to the same files, or is shown together with their output; a line each.
    std::vector<std::string> other_jobs() const;

    /// Returns a descriptor that is readable when something has changed, until `clear` is called.
    int event_fd() const noexcept { return events_.get(); }
    void clear() noexcept;

  private:
    struct source {
        std::string path, job;
        std::string who;         ///< the sink's argument
        std::string run_folder;  ///< for a rank's file
        std::uint64_t read_bytes = 0;
        std::string part;  ///< a line that has no end yet
    };
    /// Holds what was read of a run's run.json.
    struct read_record {
        std::uint64_t inode = 0;  ///< changes when the run has ended
        std::vector<output_span> spans;
        std::string started_at, ended_at;  ///< empty: not known
        std::map<int, int> spare_ranks;    ///< which rank a spare became
    };
    /// The parts of a job's file that its ranks wrote.
    struct rank_parts {
        std::vector<output_span> spans;  ///< in the order of the runs; an open one ends where the next begins
        bool is_known = false;           ///< everything else was written by others
    };
    void add(source made);
    void drop(std::string const& job, std::string const& path);
    void add_rank(std::string const& job, std::string const& run_folder, std::string const& path, int rank, std::string who);
    void watch(std::string const& path);
    void read_spans(std::string const& job);
    std::uint64_t start_in(std::string const& path, std::string const& run_folder) const;
    rank_parts find_rank_parts(source const& from);
    bool is_of_script(source const& from, rank_parts const& ranks, std::uint64_t at, std::string_view line);
    void read_all(bool last);
    void read_new(source& from, bool last, std::uint64_t end = UINT64_MAX);
    void take_lines(source& from, bool last);

    tail_choice choice_;
    sink take_;
    unique_fd events_;
    std::vector<source> ranks_;                                    ///< in the order of runs and ranks
    std::vector<source> scripts_;                                  ///< files that the scheduler writes
    std::set<std::string> known_;                                  ///< the paths of both
    std::map<std::string, std::vector<std::string>> run_folders_;  ///< by job
    std::map<std::string, read_record> records_;                   ///< by run folder
    std::map<std::string, bool> has_ranks_;                        ///< by job
    int last_rank_ = -1;                                           ///< the highest of all jobs
    bool found_rank_ = false;                                      ///< the chosen rank has a file
    std::string looked_for_;                                       ///< the folder of a first run
    std::map<std::string, std::vector<std::string>> other_jobs_;   ///< by job
    std::string mixed_;                   ///< a file of which lines that the script may have written were left out
    std::string killed_in_;               ///< a file in which a run that was killed wrote
    std::map<std::string, int> watched_;  ///< by path
};

/// Reads --rank and --grep. Throws errc::usage.
tail_choice make_tail_choice(settings_result const& given);

}  // namespace muster
