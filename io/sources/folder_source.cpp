#include "io/sources/folder_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <tuple>

#include "base/error.hpp"
#include "io/arrays/byte_source.hpp"
#include "io/dataset/file_bytes.hpp"
#include "io/sources/image_file.hpp"

namespace muster {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t largest_file = std::uint64_t{1} << 30;

bool is_picture_name(fs::path const& path) {
    std::string ending = path.extension().string();
    for (char& c : ending)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return ending == ".png" || ending == ".jpg" || ending == ".jpeg";
}

bool is_hidden(fs::path const& path) {
    return path.filename().string().starts_with('.');
}

std::vector<fs::directory_entry> entries_of(std::string const& folder) {
    std::error_code code;
    std::vector<fs::directory_entry> all;
    for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code))
        if (!is_hidden(at->path())) all.push_back(*at);
    if (code) throw_system("open folder", folder, code.value(), "check the path and its permissions");
    std::sort(all.begin(), all.end(), [](auto const& a, auto const& b) { return a.path().filename() < b.path().filename(); });
    return all;
}

}  // namespace

folder_source::folder_source(std::string folder, source_options const& options) : folder_(std::move(folder)) {
    while (folder_.size() > 1 && folder_.ends_with('/')) folder_.pop_back();
    find_pictures("", 0);
    facts_.labelled = pictures_.empty();
    if (pictures_.empty()) {
        passed_over_ = 0;
        for (fs::directory_entry const& inner : entries_of(folder_)) {
            if (!inner.is_directory()) {
                ++passed_over_;
                continue;
            }
            std::size_t const before = pictures_.size();
            find_pictures(inner.path().filename().string(), static_cast<std::uint32_t>(facts_.class_names.size()));
            if (pictures_.size() > before) facts_.class_names.push_back(inner.path().filename().string());
        }
    }
    if (pictures_.empty())
        throw error(errc::invalid_data,
                    fmt::format("{}: holds no picture (.png, .jpg, .jpeg), nor do its folders; give the folder that has one "
                                "folder a class",
                                folder_));
    facts_.classes = facts_.class_names.size();
    facts_.samples = pictures_.size();
    facts_.images = fs::path(folder_).filename().string();
    std::string const first = folder_ + "/" + pictures_.front().name;
    std::uint64_t bytes = 0;
    unique_fd const fd = open_regular(first, bytes);
    bytes_.resize(static_cast<std::size_t>(std::min(bytes, largest_file)));
    read_exactly(fd.get(), first, 0, bytes_);
    facts_.shape = probe_picture(bytes_, first);
    gray_by_first_ = options.channels == 0 && facts_.shape.channels == 1;
    if (options.channels != 0) facts_.shape.channels = options.channels;
    resize_ = options.resize.has_value();
    if (resize_) std::tie(facts_.shape.height, facts_.shape.width) = *options.resize;
}

void folder_source::find_pictures(std::string const& folder, std::uint32_t label) {
    std::string const below = folder.empty() ? "" : folder + "/";
    for (fs::directory_entry const& found : entries_of(folder_ + "/" + folder)) {
        if (found.is_directory()) continue;
        if (is_picture_name(found.path()))
            pictures_.push_back({below + found.path().filename().string(), label});
        else
            ++passed_over_;
    }
}

std::vector<std::string> folder_source::files() const {
    std::vector<std::string> all;
    all.reserve(pictures_.size());
    for (entry const& each : pictures_) all.push_back(folder_ + "/" + each.name);
    return all;
}

void folder_source::read_one(std::size_t sample, std::span<std::uint8_t> out) {
    std::string const path = folder_ + "/" + pictures_[sample].name;
    std::uint64_t bytes = 0;
    unique_fd const fd = open_regular(path, bytes);
    if (bytes > largest_file)
        throw error(errc::invalid_data,
                    fmt::format("{}: {} bytes, more than a picture has; take it out of the folder", path, bytes));
    bytes_.resize(static_cast<std::size_t>(bytes));
    read_exactly(fd.get(), path, 0, bytes_);
    image_shape const& wanted = facts_.shape;
    image_shape const found = probe_picture(bytes_, path);
    if (!resize_ && (found.height != wanted.height || found.width != wanted.width))
        throw error(
            errc::invalid_data,
            fmt::format("{}: is {} x {} pixels, and the first picture, {}, is {} x {}; give --resize {}x{}", path, found.height,
                        found.width, pictures_.front().name, wanted.height, wanted.width, wanted.height, wanted.width));
    if (found.channels > 1 && gray_by_first_)
        throw error(errc::invalid_data,
                    fmt::format("{}: is in colour, and the first picture, {}, is gray; give --channels 3 or --channels 1", path,
                                pictures_.front().name));
    picture made = decode_picture(bytes_, path, wanted.channels);
    if (made.height != wanted.height || made.width != wanted.width) made = resized(made, wanted.height, wanted.width);
    to_planes(made, out);
}

void folder_source::read(hyperslab rows, std::span<std::uint8_t> images, std::span<std::uint32_t> labels) {
    std::size_t const size = facts_.shape.elements();
    for (std::size_t i = 0; i < rows.count; ++i) {
        read_one(rows.first + i, images.subspan(i * size, size));
        if (facts_.labelled) labels[i] = pictures_[rows.first + i].label;
    }
}

bool has_pictures(std::string const& folder) {
    std::string inner;
    for (fs::directory_entry const& entry : entries_of(folder)) {
        if (!entry.is_directory() && is_picture_name(entry.path())) return true;
        if (entry.is_directory() && inner.empty()) inner = entry.path().string();
    }
    if (inner.empty()) return false;
    for (fs::directory_entry const& entry : entries_of(inner))
        if (!entry.is_directory() && is_picture_name(entry.path())) return true;
    return false;
}

}  // namespace muster
