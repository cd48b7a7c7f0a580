// Ways of bringing files to a folder and of converting samples, which `muster-bench-dev io` times.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "bench/dev/io_set.hpp"

namespace muster {

struct staging_sizes {
    std::uint64_t file_bytes = std::uint64_t{128} << 20;  ///< of the one file
    std::size_t small_files = 2000;                       ///< of 4 KiB each
    std::size_t pictures = 1000;                          ///< PNG, 64 x 64, RGB
    std::size_t records = 40'000;                         ///< IDX, 28 x 28
};

/// Sources are made in FOLDER and lie in the page cache; targets are in FOLDER too, are removed before each run and are not brought to
/// the disk (no fsync). What a run has made is compared with what was to come, byte by byte, with the clock stopped:
/// errc::invalid_data where it differs.
class staging_set {
  public:
    /// `python`: interpreter of the converting peers; "": without them. missing() lists programs and modules that are not installed.
    staging_set(std::string folder, staging_sizes const& sizes, std::string const& python, environment const& variables);
    staging_set(staging_set const&) = delete;
    staging_set& operator=(staging_set const&) = delete;

    std::vector<reading_row>& rows() noexcept { return rows_; }
    std::vector<std::string> const& missing() const noexcept { return missing_; }

  private:
    void make_files();
    void make_pictures();
    void make_records();
    void add_one_file();
    void add_small_files();
    void add_conversions(std::string const& python);
    /// A row of a program that makes TARGET; left out, and told, where the program is not there.
    void add_program(std::string const& name, std::string const& bound, std::uint64_t bytes, std::vector<std::string> command,
                     std::function<void()> check);
    std::string target() const { return folder_ + "/target"; }
    void clear_target() const;
    void check_one_file(std::string const& path) const;
    void check_small_files(std::string const& path) const;
    void check_converted(std::vector<std::uint8_t> const& images, std::vector<std::uint8_t> const& labels) const;
    std::string small_name(std::size_t i) const;
    std::string stage_program() const;

    std::string folder_;
    staging_sizes sizes_;
    environment const& variables_;
    std::vector<std::uint8_t> one_;                              ///< the one file
    std::vector<std::uint8_t> small_;                            ///< all small files, one after the other
    std::vector<std::uint8_t> picture_planes_, picture_labels_;  ///< as they are to lie in the dataset
    std::vector<std::uint8_t> record_images_, record_labels_;
    std::vector<reading_row> rows_;
    std::vector<std::string> missing_;
};

}  // namespace muster
