#include "bench/loading/io_set.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "base/process/run_captured.hpp"
#include "base/unique_fd.hpp"
#include "io/loader/mapped_memory.hpp"

namespace muster {

namespace {

constexpr std::size_t piece = std::size_t{4} << 20;

unique_fd open_file(std::string const& path) {
    unique_fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) throw_system("open", path);
    return file;
}

/// The part of a file that is in the page cache.
double cached_part(int file, std::size_t bytes) {
    void* const at = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) return 0;
    std::vector<unsigned char> pages((bytes + 4095) / 4096);
    std::size_t cached = 0;
    if (::mincore(at, bytes, pages.data()) == 0)
        cached = static_cast<std::size_t>(
            std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return (page & 1) != 0; }));
    ::munmap(at, bytes);
    return static_cast<double>(cached) / static_cast<double>(pages.size());
}

void run_quietly(std::vector<std::string> const& command) {
    auto const result = run_program(command, environment::capture(), foreground());
    if (result.exit_status != 0)
        throw error(errc::unavailable,
                    fmt::format("{} ended with exit code {}; its messages are above", command[0], result.exit_status));
}

}  // namespace

io_set::io_set(std::string path, std::string scratch, std::size_t batch, std::size_t workers)
    : path_(std::move(path)),
      scratch_(std::move(scratch)),
      batch_(batch),
      workers_(workers),
      data_(dataset::open(path_)),
      bytes_(data_.size() * data_.image_bytes()),
      buffer_(mapped_memory::allocate(piece)) {
    auto const source = std::make_shared<mapped_memory>(mapped_memory::allocate(bytes_));
    auto const target = std::make_shared<mapped_memory>(mapped_memory::allocate(bytes_));
    data_.read(0, data_.size(), source->bytes(), {});
    std::memset(target->bytes().data(), 1, bytes_);  // its pages are there when it is timed
    auto const whole = std::make_shared<loader>(make_loader(memory_mode::whole));
    auto const windowed = std::make_shared<loader>(make_loader(memory_mode::windowed));
    char const* const disk = "pread, sequential, cold";
    char const* const memory = "memcpy";
    rows_.push_back({disk, "", [this] { return drop(), pread_all(); }, {}});
    rows_.push_back({"dd, sequential, cold",
                     disk,
                     [this] {
                         drop();
                         return timed([&] { run_quietly({"dd", "if=" + path_, "of=/dev/null", "bs=4M", "status=none"}); });
                     },
                     {}});
    rows_.push_back({"cp to the same disk, cold",
                     disk,
                     [this] {
                         drop();
                         return timed([&] { run_quietly({"cp", "--reflink=never", path_, scratch_ + "/copy"}); });
                     },
                     {}});
    rows_.push_back({"loader windowed, shuffled, cold", disk, [this, windowed] { return drop(), deliver(*windowed); }, {}});
    rows_.push_back(
        {memory,
         "",
         [this, source, target] { return timed([&] { std::memcpy(target->bytes().data(), source->bytes().data(), bytes_); }); },
         {}});
    rows_.push_back({"pread, sequential, warm", memory, [this] { return pread_all(), pread_all(); }, {}});
    rows_.push_back({"loader whole, shuffled", memory, [this, whole] { return deliver(*whole); }, {}});
    rows_.push_back({"loader mapped, shuffled, warm",
                     memory,
                     [this] {
                         // Made anew: pages that are mapped are not dropped where others want them cold.
                         loader mapped = make_loader(memory_mode::mapped);
                         pread_all();
                         return deliver(mapped);
                     },
                     {}});
    rows_.push_back(
        {"loader windowed, shuffled, warm", memory, [this, windowed] { return pread_all(), deliver(*windowed); }, {}});
}

loader io_set::make_loader(memory_mode memory) {
    // An eighth of the set is mixed at a time, as where it is larger than memory.
    std::size_t const chunk = std::max<std::size_t>(1, piece / data_.image_bytes());
    std::size_t const chunks = std::max<std::size_t>(2, data_.size() / chunk / 8);
    sampler const order(data_.size(),
                        {.window = memory == memory_mode::windowed ? shuffle_window{chunk, chunks} : shuffle_window{}});
    return loader(data_, order, {.batch = batch_, .memory = memory, .workers = workers_});
}

void io_set::drop() {
    unique_fd const file = open_file(path_);
    struct stat status {};
    if (::fstat(file.get(), &status) != 0) throw_system("fstat", path_);
    ::fdatasync(file.get());  // only what is on disk can be dropped
    ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
    warm_ = std::max(warm_, cached_part(file.get(), static_cast<std::size_t>(status.st_size)));
}

double io_set::timed(std::function<void()> const& work) const {
    auto const began = std::chrono::steady_clock::now();
    work();
    return static_cast<double>(bytes_) / 1e6 / std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

double io_set::pread_all() {
    unique_fd const file = open_file(path_);
    return timed([&] {
        std::uint64_t at = *data_.info().image_offset;
        std::uint64_t const end = at + bytes_;
        while (at < end) {
            ssize_t const got =
                ::pread(file.get(), buffer_.bytes().data(), std::min<std::uint64_t>(piece, end - at), static_cast<off_t>(at));
            if (got <= 0) throw_system("pread", path_);
            at += static_cast<std::uint64_t>(got);
        }
    });
}

double io_set::deliver(loader& from) {
    std::size_t delivered = 0;
    double const rate = timed([&] {
        for (batch const& each : from.epoch(++epoch_)) delivered += each.count;
    });
    expect(delivered == data_.size(), "every sample of an epoch");
    return rate;
}

void io_set::measure(int repetitions) {
    for (int repetition = 0; repetition < repetitions; ++repetition)
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            reading_row& row = rows_[(i + static_cast<std::size_t>(repetition)) % rows_.size()];
            row.mb_per_s.push_back(row.run());
        }
}

std::vector<training_summary> io_set::train(double compute_s) {
    std::vector<training_summary> all;
    for (memory_mode const memory : {memory_mode::whole, memory_mode::windowed}) {
        loader from = make_loader(memory);
        if (memory == memory_mode::windowed) drop();
        auto const began = std::chrono::steady_clock::now();
        for (batch const& each : from.epoch(++epoch_))
            if (each.count > 0) std::this_thread::sleep_for(std::chrono::duration<double>(compute_s));
        double const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
        loader_report const spent = from.report();
        all.push_back({std::string(to_string(memory)), 100 * spent.utilisation(), static_cast<double>(spent.samples) / seconds,
                       static_cast<double>(spent.bytes) / 1e6 / seconds});
    }
    return all;
}

}  // namespace muster
