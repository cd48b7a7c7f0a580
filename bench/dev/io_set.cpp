#include "bench/dev/io_set.hpp"

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
#include "base/process/process.hpp"
#include "base/process/run_captured.hpp"
#include "base/unique_fd.hpp"
#include "io/dataset/dataset_writer.hpp"
#include "io/loader/windowed_order.hpp"

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

/// `script` of sh, with its arguments in $0, $1 …
void run_script(std::string const& script, std::vector<std::string> const& arguments) {
    std::vector<std::string> command{"sh", "-c", script};
    command.insert(command.end(), arguments.begin(), arguments.end());
    auto const result = run_program(command, environment::capture(), foreground());
    if (result.exit_status != 0)
        throw error(errc::unavailable,
                    fmt::format("'{}' ended with exit code {}; its messages are above", script, result.exit_status));
}

constexpr char const* disk = "pread, sequential, cold";
constexpr char const* memory = "memcpy";

}  // namespace

io_set::io_set(std::string path, std::string scratch, std::size_t batch, std::size_t workers)
    : path_(std::move(path)),
      scratch_(std::move(scratch)),
      batch_(batch),
      workers_(workers),
      data_(dataset::open(path_)),
      bytes_(data_.size() * data_.image_bytes()),
      buffer_(mapped_memory::allocate(piece)),
      source_(mapped_memory::allocate(bytes_)),
      order_(data_.size()) {
    data_.read(0, data_.size(), source_.bytes(), {});
    sampler(data_.size(), {}).fill({}, 0, order_);
    auto const target = std::make_shared<mapped_memory>(mapped_memory::allocate(bytes_));
    std::memset(target->bytes().data(), 1, bytes_);  // its pages are there when it is timed
    auto const whole = std::make_shared<loader>(make_loader(memory_mode::whole));
    auto const windowed = std::make_shared<loader>(make_loader(memory_mode::windowed));
    auto const check_pread = [this] { pread_all(true); };
    rows_.push_back({disk, "", [this] { return drop(), pread_all(); }, check_pread});
    add_program("dd, sequential, cold", "dd if=\"$0\" of=/dev/null bs=4M status=none",
                "dd if=\"$0\" of=\"$1\" bs=4M status=none");
    add_program("tar, sequential, cold", "tar -C \"${0%/*}\" -cf - \"${0##*/}\" | cat >/dev/null",
                "tar -C \"${0%/*}\" -cf - \"${0##*/}\" | tar -xOf - >\"$1\"");
    add_program("cp to the same disk, cold", "cp --reflink=never \"$0\" \"$1\"", "true");
    rows_.push_back({"loader windowed, shuffled, cold", disk, [this, windowed] { return drop(), deliver(*windowed); },
                     [this, windowed] { check_deliveries(*windowed); }});
    rows_.push_back(
        {memory, "",
         [this, target] { return timed([&] { std::memcpy(target->bytes().data(), source_.bytes().data(), bytes_); }); },
         [this, target] { require_same(0, target->bytes(), memory); }});
    rows_.push_back({"pread, sequential, warm", memory, [this] { return pread_all(), pread_all(); }, check_pread});
    rows_.push_back({"pread a sample, shuffled, warm", memory, [this] { return pread_all(), pread_shuffled(); },
                     [this] { pread_shuffled(true); }});
    rows_.push_back({"loader whole, shuffled", memory, [this, whole] { return deliver(*whole); },
                     [this, whole] { check_deliveries(*whole); }});
    // Made anew: pages that are mapped are not dropped where others want them cold.
    rows_.push_back({"loader mapped, shuffled, warm", memory,
                     [this] {
                         loader mapped = make_loader(memory_mode::mapped);
                         pread_all();
                         return deliver(mapped);
                     },
                     [this] {
                         loader mapped = make_loader(memory_mode::mapped);
                         check_deliveries(mapped);
                     }});
    rows_.push_back({"loader windowed, shuffled, warm", memory, [this, windowed] { return pread_all(), deliver(*windowed); },
                     [this, windowed] { check_deliveries(*windowed); }});
}

/// `script` reads the file $0; `checked_script` does the same once more into the file $1.
void io_set::add_program(std::string const& name, std::string const& script, std::string const& checked_script) {
    std::string const program = script.substr(0, script.find(' '));
    if (find_program_or_nothing(program, environment::capture()).empty()) {
        missing_.push_back(fmt::format("not measured: {}: {} is not there; install it", name, program));
        return;
    }
    std::string const copy = scratch_ + "/copy";
    rows_.push_back({name, disk,
                     [this, script, copy] {
                         drop();
                         return timed([&] { run_script(script, {path_, copy}); });
                     },
                     [this, checked_script, copy] {
                         run_script(checked_script, {path_, copy});
                         check_file(copy);
                         ::unlink(copy.c_str());
                     }});
}

void io_set::require_same(std::uint64_t offset, std::span<std::uint8_t const> bytes, char const* of) const {
    if (offset + bytes.size() > bytes_ || std::memcmp(source_.bytes().data() + offset, bytes.data(), bytes.size()) != 0)
        throw error(errc::invalid_data,
                    fmt::format("{}: {} delivered other bytes than the dataset has; its row means nothing", path_, of));
}

void io_set::check_file(std::string const& path) const {
    unique_fd const file = open_file(path);
    std::vector<std::uint8_t> bytes(piece);
    for (std::uint64_t at = 0; at < bytes_;) {
        ssize_t const got = ::pread(file.get(), bytes.data(), std::min<std::uint64_t>(piece, bytes_ - at),
                                    static_cast<off_t>(*data_.info().image_offset + at));
        if (got <= 0) throw error(errc::invalid_data, fmt::format("{} is shorter than {}; its row means nothing", path, path_));
        require_same(at, std::span(bytes).first(static_cast<std::size_t>(got)), path.c_str());
        at += static_cast<std::uint64_t>(got);
    }
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

double io_set::pread_all(bool checked) {
    unique_fd const file = open_file(path_);
    std::uint64_t const first = *data_.info().image_offset;
    return timed([&] {
        for (std::uint64_t at = 0; at < bytes_;) {
            ssize_t const got = ::pread(file.get(), buffer_.bytes().data(), std::min<std::uint64_t>(piece, bytes_ - at),
                                        static_cast<off_t>(first + at));
            if (got <= 0) throw_system("pread", path_);
            if (checked) require_same(at, buffer_.bytes().first(static_cast<std::size_t>(got)), "pread");
            at += static_cast<std::uint64_t>(got);
        }
    });
}

double io_set::pread_shuffled(bool checked) {
    unique_fd const file = open_file(path_);
    std::size_t const size = data_.image_bytes(), in_a_batch = std::min(batch_, buffer_.bytes().size() / size);
    return timed([&] {
        for (std::size_t i = 0; i < order_.size(); ++i) {
            auto const into = buffer_.bytes().subspan(i % in_a_batch * size, size);
            std::uint64_t const at = order_[i] * size;
            if (::pread(file.get(), into.data(), size, static_cast<off_t>(*data_.info().image_offset + at)) !=
                static_cast<ssize_t>(size))
                throw_system("pread", path_);
            if (checked) require_same(at, into, "pread");
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

/// The epoch that was timed, once more.
void io_set::check_deliveries(loader& from) {
    std::vector<bool> seen(data_.size());
    std::size_t const size = data_.image_bytes();
    for (batch const& each : from.epoch(epoch_))
        for (std::size_t i = 0; i < each.count; ++i) {
            seen.at(each.samples[i]) = true;
            require_same(each.samples[i] * size, each.images.subspan(i * size, size), "the loader");
        }
    expect(std::find(seen.begin(), seen.end(), false) == seen.end(), "every sample of an epoch");
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

std::string make_synthetic(std::string const& folder, std::uint64_t bytes) {
    image_shape const shape{1, 56, 56};
    std::size_t const samples = std::max<std::size_t>(1, static_cast<std::size_t>(bytes / shape.elements()));
    std::string const path = folder + "/synthetic.h5";
    split_plan plan;
    plan.split = "train";
    plan.samples = samples;
    plan.shape = shape;
    plan.classes = 1;
    dataset_writer writer(path, {plan}, {.name = "synthetic"});
    std::vector<std::uint8_t> images;
    std::vector<std::uint8_t> labels;
    for (std::size_t first = 0; first < samples; first += writer.block_samples()) {
        hyperslab const rows{first, std::min(writer.block_samples(), samples - first)};
        images.resize(rows.count * shape.elements());
        labels.assign(rows.count, 0);
        for (std::size_t i = 0; i + 8 <= images.size(); i += 8) {
            std::uint64_t const word = permutation::mix(first * shape.elements() + i);
            std::memcpy(images.data() + i, &word, sizeof word);
        }
        writer.write(0, rows, images, labels);
    }
    writer.close();
    return path;
}

}  // namespace muster
