// The end of a job's log files: passes on each line that its ranks write, as it comes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.hpp"
#include "launch/jobs/job_output.hpp"
#include "launch/record/output_span.hpp"
#include "launch/settings/resolve_settings.hpp"

namespace muster {

// A filter of lines by a regular expression.

/// Lines in which a POSIX extended regular expression is found; the empty one takes all.
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
    std::optional<int> rank;  ///< of this one only
    line_filter filter;
};

/// Reads the files rank.NN/stdout and stderr of run folders, and those of spares; of the job's own output what did not come from ranks: before a run's
/// ranks what the script wrote before it, the rest behind them. Tells of new lines by inotify, which works for files on this machine; of a shared file
/// system `look` finds them by their size.
class log_tail {
  public:
    /// `take` gets each whole line, without its end; `who` is the rank, "spare 0" for one of which no record says (yet) that it became a rank, and empty
    /// for lines of the job's script, of muster and of the scheduler.
    using sink = std::function<void(std::string const& job, std::string const& who, std::string const& line)>;

    log_tail(tail_choice choice, sink take);

    /// The files of a job as they are now; called again, it adds what is new.
    void follow(std::string const& job, job_files const& files);
    /// Reads what is new in all files.
    void look();
    /// The same, and takes a last line that has no end. `ended`: the job, so that a run without an end in its record was killed.
    void finish(bool ended = true);

    /// Why --rank has found no file so far, as "no rank 7: the ranks are 0 to 3"; empty if it has, or was not given.
    std::string why_no_rank() const;

    /// Where what the script wrote may be left out, since a run has not recorded which part of the job's output is its ranks'; empty: nowhere.
    std::string why_no_script() const;

    /// What is not shown since other jobs write to the same files, or shown with what they wrote; a line each.
    std::vector<std::string> other_jobs() const;

    /// Readable when something has changed; `clear` makes it wait again.
    int event_fd() const noexcept { return events_.get(); }
    void clear() noexcept;

  private:
    struct source {
        std::string path, job;
        std::string who;         ///< as the sink gets it
        std::string run_folder;  ///< of a rank
        std::uint64_t read_bytes = 0;
        std::string part;  ///< of a line whose end has not come
    };
    /// The run.json of a run.
    struct read_record {
        std::uint64_t inode = 0;  ///< another when the run has ended
        std::vector<output_span> spans;
        std::string started_at, ended_at;  ///< empty: not known
        std::map<int, int> spare_ranks;    ///< which rank a spare became
    };
    /// What of a file of the job is its ranks'.
    struct rank_parts {
        std::vector<output_span> spans;  ///< in the order of the runs; one that is open ends where the next begins
        bool is_known = false;           ///< the rest is not
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
    std::vector<source> scripts_;                                  ///< what the scheduler writes
    std::set<std::string> known_;                                  ///< the paths of both
    std::map<std::string, std::vector<std::string>> run_folders_;  ///< by job
    std::map<std::string, read_record> records_;                   ///< by run folder
    std::map<std::string, bool> has_ranks_;                        ///< by job
    int last_rank_ = -1;                                           ///< of all jobs
    bool found_rank_ = false;                                      ///< the one of the choice
    std::string looked_for_;                                       ///< the folder of a first run
    std::map<std::string, std::vector<std::string>> other_jobs_;   ///< by job
    std::string mixed_;                   ///< a file of which lines were left out that may be the script's
    std::string killed_in_;               ///< the same, of a run that was killed
    std::map<std::string, int> watched_;  ///< by path
};

/// From --rank and --grep. Throws errc::usage.
tail_choice make_tail_choice(settings_result const& given);

}  // namespace muster
