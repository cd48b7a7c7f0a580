#include "bench/dev/staging_set.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "base/process/process.hpp"
#include "base/process/run_captured.hpp"
#include "base/process/this_process.hpp"
#include "base/trust/open_output_file.hpp"
#include "base/unique_fd.hpp"
#include "bench/dev/dev_commands.hpp"
#include "bench/tools/checked_json.hpp"
#include "io/arrays/item_array.hpp"
#include "io/loader/windowed_order.hpp"
#include "io/sources/image_file.hpp"

namespace muster {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t small_bytes = 4096, small_in_a_folder = 200, side = 64, channels = 3, classes = 10, record_side = 28;
constexpr std::size_t write_bytes = std::size_t{4} << 20;
constexpr char const* one_bound = "write of the file from memory";
constexpr char const* small_bound = "write of the small files from memory";

void fill(std::span<std::uint8_t> bytes, std::uint64_t seed) {
    for (std::size_t i = 0; i + 8 <= bytes.size(); i += 8) {
        std::uint64_t const word = permutation::mix(seed + i);
        std::memcpy(bytes.data() + i, &word, sizeof word);
    }
}

void write_file(std::string const& path, std::span<std::uint8_t const> bytes) {
    auto const file = open_output_file(path, {}, if_there::emptied, 0600);
    while (!bytes.empty()) {
        ssize_t const n = ::write(file.get(), bytes.data(), std::min(write_bytes, bytes.size()));
        if (n <= 0) throw_system("write", path, 0, "set TMPDIR to a folder with room, or give a smaller --size");
        bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
}

[[noreturn]] void damaged(std::string const& path) {
    throw error(errc::invalid_data, fmt::format("{} does not hold what was to be brought there; its row means nothing", path));
}

void require_file(std::string const& path, std::span<std::uint8_t const> wanted) {
    unique_fd const file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) throw_system("open", path);
    std::vector<std::uint8_t> piece(std::min(wanted.size() + 1, write_bytes));
    for (;;) {
        ssize_t const n = ::read(file.get(), piece.data(), piece.size());
        if (n < 0) throw_system("read", path);
        auto const got = static_cast<std::size_t>(n);
        if (got > wanted.size() || std::memcmp(piece.data(), wanted.data(), got) != 0) damaged(path);
        wanted = wanted.subspan(got);
        if (got == 0) break;
    }
    if (!wanted.empty()) damaged(path);
}

double seconds_of(std::function<void()> const& work) {
    auto const began = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

double rate(std::uint64_t bytes, double seconds) {
    return static_cast<double>(bytes) / 1e6 / seconds;
}

command_output run_to_end(std::vector<std::string> const& command, environment const& variables) {
    auto result = run_program(command, variables, foreground());
    if (result.exit_status != 0)
        throw error(errc::unavailable,
                    fmt::format("{} ended with exit code {}; its messages are above", command[0], result.exit_status));
    return result;
}

std::vector<std::uint8_t> idx(std::initializer_list<std::uint32_t> extent, std::span<std::uint8_t const> data) {
    std::vector<std::uint8_t> bytes{0, 0, 8, static_cast<std::uint8_t>(extent.size())};
    for (std::uint32_t const size : extent)
        for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::uint8_t>(size >> shift));
    bytes.insert(bytes.end(), data.begin(), data.end());
    return bytes;
}

}  // namespace

staging_set::staging_set(std::string folder, staging_sizes const& sizes, std::string const& python, environment const& variables)
    : folder_(std::move(folder)), sizes_(sizes), variables_(variables) {
    fs::create_directories(folder_ + "/source/many");
    make_files();
    make_pictures();
    make_records();
    add_one_file();
    add_small_files();
    add_conversions(python);
}

std::string staging_set::stage_program() const {
    return (self_program().parent_path() / "muster-stage").string();
}

std::string staging_set::small_name(std::size_t i) const {
    return fmt::format("{:03}/{:06}", i / small_in_a_folder, i);
}

void staging_set::make_files() {
    one_.resize(static_cast<std::size_t>(sizes_.file_bytes));
    fill(one_, 1);
    write_file(folder_ + "/source/one", one_);
    small_.resize(sizes_.small_files * small_bytes);
    fill(small_, 2);
    for (std::size_t i = 0; i < sizes_.small_files; ++i) {
        if (i % small_in_a_folder == 0) fs::create_directory(folder_ + "/source/many/" + small_name(i).substr(0, 3));
        write_file(folder_ + "/source/many/" + small_name(i), std::span(small_).subspan(i * small_bytes, small_bytes));
    }
}

void staging_set::make_pictures() {
    std::size_t const planes = side * side * channels;
    picture_planes_.resize(sizes_.pictures * planes);
    for (std::size_t i = 0; i < sizes_.pictures; ++i) {
        picture image{side, side, channels, std::vector<std::uint8_t>(planes)};
        for (std::size_t at = 0; at < planes; ++at)  // a slope with some noise, as in a photograph
            image.pixels[at] = static_cast<std::uint8_t>(at / 96 + i + (permutation::mix(i * planes + at) & 7));
        to_planes(image, std::span(picture_planes_).subspan(i * planes, planes));
        std::size_t const of = i * classes / sizes_.pictures;
        picture_labels_.push_back(static_cast<std::uint8_t>(of));
        std::string const to = fmt::format("{}/source/pictures/{}", folder_, of);
        fs::create_directories(to);
        write_png(image, fmt::format("{}/{:06}.png", to, i));
    }
}

void staging_set::make_records() {
    record_images_.resize(sizes_.records * record_side * record_side);
    fill(record_images_, 3);
    for (std::size_t i = 0; i < sizes_.records; ++i) record_labels_.push_back(static_cast<std::uint8_t>(i % classes));
    auto const count = static_cast<std::uint32_t>(sizes_.records);
    write_file(folder_ + "/source/images", idx({count, record_side, record_side}, record_images_));
    write_file(folder_ + "/source/labels", idx({count}, record_labels_));
}

/// Waits until the kernel has written what earlier runs left to write, so that it does not do so during the next.
void staging_set::clear_target() const {
    fs::remove_all(target());
    unique_fd const folder(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder) ::syncfs(folder.get());
}

void staging_set::check_one_file(std::string const& path) const {
    require_file(path, one_);
}

void staging_set::check_small_files(std::string const& path) const {
    for (std::size_t i = 0; i < sizes_.small_files; ++i)
        require_file(path + "/" + small_name(i), std::span(small_).subspan(i * small_bytes, small_bytes));
}

void staging_set::check_converted(std::vector<std::uint8_t> const& images, std::vector<std::uint8_t> const& labels) const {
    for (auto const& [name, wanted] : {std::pair("/train/images", &images), std::pair("/train/labels", &labels)}) {
        hdf5_array made(target(), name);
        std::vector<std::uint8_t> found(made.items() * made.item_bytes());
        if (found.size() != wanted->size()) damaged(target() + ": " + name);
        made.read({0, made.items()}, found);
        if (found != *wanted) damaged(target() + ": " + name);
    }
}

void staging_set::add_program(std::string const& name, std::string const& bound, std::uint64_t bytes,
                              std::vector<std::string> command, std::function<void()> check) {
    if (find_program_or_nothing(command[0], variables_).empty()) {
        missing_.push_back(fmt::format("not measured: {}: {} is not there; install it", name, command[0]));
        return;
    }
    rows_.push_back({name, bound,
                     [this, bytes, command = std::move(command)] {
                         clear_target();
                         return rate(bytes, seconds_of([&] { run_to_end(command, variables_); }));
                     },
                     std::move(check)});
}

void staging_set::add_one_file() {
    std::string const from = folder_ + "/source/one";
    auto const at_target = [this] { check_one_file(target()); };
    rows_.push_back({one_bound, "",
                     [this] {
                         clear_target();
                         return rate(one_.size(), seconds_of([&] { write_file(target(), one_); }));
                     },
                     at_target});
    add_program("muster-stage copy, one file", one_bound, one_.size(),
                {stage_program(), "copy", "--progress", "none", from, target()}, [this] { check_one_file(target() + "/one"); });
    add_program("cp, one file", one_bound, one_.size(), {"cp", "--reflink=never", from, target()}, at_target);
    add_program("dd, one file", one_bound, one_.size(), {"dd", "if=" + from, "of=" + target(), "bs=4M", "status=none"},
                at_target);
}

void staging_set::add_small_files() {
    std::string const from = folder_ + "/source/many";
    auto const at_target = [this] { check_small_files(target() + "/many"); };
    rows_.push_back({small_bound, "",
                     [this] {
                         clear_target();
                         return rate(small_.size(), seconds_of([&] {
                                         for (std::size_t i = 0; i < sizes_.small_files; ++i) {
                                             if (i % small_in_a_folder == 0)
                                                 fs::create_directories(target() + "/many/" + small_name(i).substr(0, 3));
                                             write_file(target() + "/many/" + small_name(i),
                                                        std::span(small_).subspan(i * small_bytes, small_bytes));
                                         }
                                     }));
                     },
                     at_target});
    add_program("muster-stage copy, small files", small_bound, small_.size(),
                {stage_program(), "copy", "--progress", "none", from, target()}, at_target);
    add_program("cp -r, small files", small_bound, small_.size(),
                {"sh", "-c", R"(mkdir "$1" && cp -r "$0" "$1")", from, target()}, at_target);
    if (find_program_or_nothing("tar", variables_).empty())
        missing_.push_back("not measured: tar | tar: tar is not there; install it");
    else
        add_program("tar | tar, small files", small_bound, small_.size(),
                    {"sh", "-c", R"(mkdir "$1" && tar -C "${0%/*}" -cf - many | tar -C "$1" -xf -)", from, target()}, at_target);
}

void staging_set::add_conversions(std::string const& python) {
    struct conversion {
        char const* what;
        std::vector<std::string> sources;  ///< of muster-stage and of the peer
        std::vector<std::uint8_t> const& images;
        std::vector<std::uint8_t> const& labels;
    };
    std::string const from = folder_ + "/source/";
    conversion const all[]{{"pictures", {from + "pictures"}, picture_planes_, picture_labels_},
                           {"idx", {from + "images," + from + "labels"}, record_images_, record_labels_}};
    std::string absent;
    std::string const script = folder_ + "/io_convert_peer.py";
    if (!python.empty()) {
        write_output_file(script, find_text(dev_files(), "io_convert_peer.py"));
        auto const probe = run_captured({python, script}, variables_);
        absent = probe.exit_status == 127 ? python + " is not there; install it, or give --python" : probe.out;
        if (absent.empty() && probe.exit_status != 0)
            absent = fmt::format("{} ended with exit code {}", python, probe.exit_status);
        if (!absent.empty()) missing_.push_back("not measured: converting by h5py and Pillow: " + absent);
    }
    for (conversion const& each : all) {
        std::function<void()> const check = [this, &images = each.images, &labels = each.labels] {
            check_converted(images, labels);
        };
        std::string const what = std::string(each.what) == "idx" ? "IDX" : "PNG";
        std::vector<std::string> command{stage_program(), "convert", "--no-digests", "--progress", "none", "-o", target()};
        command.insert(command.end(), each.sources.begin(), each.sources.end());
        add_program(fmt::format("muster-stage convert, {}", what), one_bound, each.images.size(), command, check);
        if (python.empty() || !absent.empty()) continue;
        rows_.push_back({fmt::format("{}, {}", what == "IDX" ? "NumPy and h5py" : "Pillow and h5py", what), one_bound,
                         [this, python, script, kind = each.what, source = each.sources[0], bytes = each.images.size()] {
                             clear_target();
                             auto const told = run_to_end({python, script, kind, source, target()}, variables_).out;
                             auto const document = parse_json(told, "what the converting peer printed");
                             return rate(bytes,
                                         checked_json(document, "what the converting peer printed").at("seconds").number());
                         },
                         check});
    }
}

}  // namespace muster
