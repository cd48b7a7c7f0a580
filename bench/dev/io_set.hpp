// Ways of reading one dataset file, cold and warm, which `muster-bench-dev io` times.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "io/dataset/dataset.hpp"
#include "io/loader/loader.hpp"
#include "io/loader/mapped_memory.hpp"

namespace muster {

/// A row of the tables of `muster-bench-dev io`: one way of reading, converting or copying, with what it was timed at.
struct reading_row {
    std::string name;
    std::string bound;            ///< the row that it is compared with; "" for a bound
    std::function<double()> run;  ///< MB/s of one time
    std::function<void()>
        check;  ///< compares what the run has made, or makes it once more and compares; throws where it is wrong
    std::vector<double> mb_per_s{};
};

/// Runs every row so often, the rows taking turns, and checks it each time.
inline void measure_rows(std::vector<reading_row>& rows, int repetitions) {
    for (int repetition = 0; repetition < repetitions; ++repetition)
        for (std::size_t i = 0; i < rows.size(); ++i) {
            reading_row& row = rows[(i + static_cast<std::size_t>(repetition)) % rows.size()];
            row.mb_per_s.push_back(row.run());
            if (row.check) row.check();
        }
}

/// DLIO's summary of a training whose steps take a given time.
struct training_summary {
    std::string memory;
    double train_au_percentage = 0;
    double train_throughput_samples_per_second = 0;
    double train_io_mean_MB_per_second = 0;
};

class io_set {
  public:
    /// `path` has a split "train". `scratch` is a folder for what cp writes.
    io_set(std::string path, std::string scratch, std::size_t batch, std::size_t workers);
    io_set(io_set const&) = delete;
    io_set& operator=(io_set const&) = delete;

    /// Times every row so often, the rows taking turns, and compares what each delivers with the file's bytes: the same once more with
    /// the clock stopped. Throws errc::invalid_data where a byte differs.
    void measure(int repetitions) { measure_rows(rows_, repetitions); }

    /// Trains for an epoch by sleeping so long a batch, from memory and from windows with a cold cache.
    std::vector<training_summary> train(double compute_s);

    dataset const& data() const noexcept { return data_; }
    std::vector<reading_row>& rows() noexcept { return rows_; }
    std::uint64_t bytes() const noexcept { return bytes_; }

    /// Programs that are not there, a sentence each.
    std::vector<std::string> const& missing() const noexcept { return missing_; }

    /// The largest part of the file that was still in the page cache when a cold row began.
    double warm_part() const noexcept { return warm_; }

  private:
    void drop();
    double timed(std::function<void()> const& work) const;
    double pread_all(bool checked = false);
    double pread_shuffled(bool checked = false);
    double deliver(loader& from);
    void check_deliveries(loader& from);
    void check_file(std::string const& path) const;
    void require_same(std::uint64_t offset, std::span<std::uint8_t const> bytes, char const* of) const;
    void add_program(std::string const& name, std::string const& script, std::string const& checked_script);
    loader make_loader(memory_mode memory);

    std::string path_;
    std::string scratch_;
    std::size_t batch_;
    std::size_t workers_;
    dataset data_;
    std::uint64_t bytes_;
    double warm_ = 0;
    std::uint64_t epoch_ = 0;
    mapped_memory buffer_;
    mapped_memory source_;  ///< the images
    std::vector<std::uint64_t> order_;
    std::vector<reading_row> rows_;
    std::vector<std::string> missing_;
};

/// Makes a dataset file of about `bytes` in FOLDER and returns its path.
std::string make_synthetic(std::string const& folder, std::uint64_t bytes);

}  // namespace muster
