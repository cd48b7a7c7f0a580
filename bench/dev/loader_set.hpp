// A dataset in memory and the ways of delivering it, which `muster-bench-dev loader` times.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/dataset/dataset.hpp"
#include "io/loader/loader.hpp"
#include "io/loader/mapped_memory.hpp"
#include "io/loader/sampler.hpp"

namespace muster {

/// One way of delivering the set: a row of the table.
struct delivery_row {
    std::string name;
    std::function<double(std::uint64_t epoch)> run;  ///< seconds of one delivery of the whole set
    std::vector<double> gbps;
};

/// Every byte delivered is checked against the checksums of its samples: errc::invalid_data where one differs.
class loader_set {
  public:
    /// Reads the split "train" of a dataset file. Throws what dataset::open throws.
    loader_set(std::string const& path, std::size_t per_batch);
    loader_set(loader_set const&) = delete;
    loader_set& operator=(loader_set const&) = delete;

    /// Times every row `repetitions` times, the rows taking turns.
    void measure(int repetitions);

    std::uint64_t bytes() const noexcept { return bytes_; }
    dataset_info const& info() const noexcept { return data_.info(); }
    std::size_t batch_size() const noexcept { return batch_; }
    std::vector<delivery_row> const& rows() const noexcept { return rows_; }
    double memcpy_in_batches() const;  ///< GB/s, median
    double memcpy_at_once() const;     ///< GB/s, median

  private:
    void add_loader(memory_mode memory, std::size_t prefetch);
    [[noreturn]] void damaged(std::string_view what) const;
    std::size_t check(batch const& given) const;
    double deliver(loader& from, std::uint64_t epoch);
    double deliver_ahead(loader& from, std::uint64_t epoch);
    double copy_in_batches();
    double copy_at_once();

    dataset data_;
    sampler order_;
    std::size_t batch_;
    std::uint64_t bytes_;
    mapped_memory source_;
    mapped_memory target_;
    std::vector<std::uint64_t> checksums_;  ///< one a sample
    std::vector<delivery_row> rows_;        ///< the first two are the copies
};

/// Makes a dataset file of about `bytes` in FOLDER and returns its path.
std::string make_synthetic(std::string const& folder, std::uint64_t bytes);

/// Converts a pair of IDX files to a dataset file in FOLDER and returns its path.
std::string make_real(std::string const& folder, std::string const& images, std::string const& labels);

}  // namespace muster
