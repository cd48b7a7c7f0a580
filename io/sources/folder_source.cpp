#include "io/sources/file_sources.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <tuple>

#include "base/letters.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "io/arrays/byte_source.hpp"
#include "io/dataset/file_bytes.hpp"

namespace muster {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t largest_file = std::uint64_t{1} << 30;

bool is_hidden(fs::path const& path) {
    return path.filename().string().starts_with('.');
}

/// "train" of "Training"; empty if the name is none of a split.
std::string split_by_name(std::string const& folder) {
    std::string const name = lower_case(folder);
    if (name == "training") return "train";
    if (name == "testing") return "test";
    for (char const* const split : {"train", "test", "val", "valid", "validation"})
        if (name == split) return name;
    return "";
}

std::vector<fs::directory_entry> entries_of(std::string const& folder) {
    std::error_code code;
    std::vector<fs::directory_entry> all;
    for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code)) all.push_back(*at);
    if (code) throw_system("open folder", folder, code.value(), "check the path and its permissions");
    std::sort(all.begin(), all.end(), [](auto const& a, auto const& b) { return a.path().filename() < b.path().filename(); });
    return all;
}

/// The pictures in a folder and below it, by path and name, as torchvision's ImageFolder finds them: it goes by sorted(os.walk()).
class picture_walk {
  public:
    picture_walk(std::string const& root, source_notes::some* left_out) : root_(root), left_out_(left_out) {}

    /// Paths below `root`, of what lies in root/`folder`; only the first few where `most` is given.
    std::vector<std::string> below(std::string const& folder, std::size_t most = SIZE_MAX) { return walk(folder, true, most); }
    /// Lists those in `root` itself.
    std::vector<std::string> here() { return walk("", false, SIZE_MAX); }

  private:
    std::vector<std::string> walk(std::string const& folder, bool deeper, std::size_t most) {
        found_.clear();
        most_ = most;
        enter(folder, deeper);
        std::sort(found_.begin(), found_.end());
        std::vector<std::string> names;
        for (auto const& [in, file] : found_) names.push_back(in.empty() ? file : in + "/" + file);
        return names;
    }
    void enter(std::string const& folder, bool deeper) {
        std::string const path = folder.empty() ? root_ : root_ + "/" + folder;
        struct stat status {};
        if (::stat(path.c_str(), &status) != 0) throw_system("stat", path, 0, "check the path");
        std::pair const here(status.st_dev, status.st_ino);
        if (std::find(above_.begin(), above_.end(), here) != above_.end())
            throw_error(errc::invalid_data, "{}: a link leads back into a folder above it; give a folder without", path);
        above_.push_back(here);
        for (fs::directory_entry const& each : entries_of(path)) {
            std::string const name = each.path().filename().string();
            std::string const inside = folder.empty() ? name : folder + "/" + name;
            if (each.is_directory()) {
                if (is_hidden(name))
                    pass_over(inside + "/");
                else if (deeper && found_.size() < most_)
                    enter(inside, true);
            } else if (is_picture_name(name) && !is_hidden(name)) {
                if (found_.size() < most_) found_.emplace_back(folder, name);
            } else if (is_picture_name(name) || !is_hidden(name)) {
                pass_over(inside);
            }
        }
        above_.pop_back();
    }
    void pass_over(std::string const& name) {
        if (left_out_ != nullptr) left_out_->add(root_ + "/" + name);
    }

    std::string const& root_;
    source_notes::some* left_out_;
    std::vector<std::pair<std::string, std::string>> found_;
    std::vector<std::pair<dev_t, ino_t>> above_;
    std::size_t most_ = SIZE_MAX;
};

std::vector<std::string> folders_in(std::string const& folder) {
    std::vector<std::string> names;
    for (fs::directory_entry const& each : entries_of(folder))
        if (each.is_directory() && !is_hidden(each.path())) names.push_back(each.path().filename().string());
    return names;
}

bool has_pictures(std::string const& folder) {
    return !picture_walk(folder, nullptr).below("", 1).empty();
}

/// A dead link, and a file that may not be read, are of this picture alone, as damage is: the others can be converted.
unique_fd open_picture(std::string const& path, std::uint64_t& bytes) {
    try {
        return open_regular(path, bytes);
    } catch (error const& e) {
        bool const own = ::access(path.c_str(), R_OK) != 0 && (errno == ENOENT || errno == ELOOP || errno == EACCES);
        if (!own) throw;
        throw_error(errc::invalid_data, "{}, or give --skip-damaged", e.what());
    }
}

}  // namespace

std::vector<std::pair<std::string, std::string>> split_folders(std::string const& folder) {
    std::vector<std::pair<std::string, std::string>> found;
    std::vector<std::string> empty, others;
    for (std::string const& name : folders_in(folder)) {
        std::string const path = folder + "/" + name;
        bool const holds = has_pictures(path);
        if (std::string const split = split_by_name(name); split.empty()) {
            if (holds) others.push_back(name + "/");
        } else if (holds) {
            found.emplace_back(split, path);
        } else {
            empty.push_back(path);
        }
    }
    if (found.empty() && empty.empty()) return {};
    for (std::string const& picture : picture_walk(folder, nullptr).here()) others.push_back(picture);
    if (!others.empty())
        throw_error(errc::usage,
                    "{}: has folders of splits ({}) and, next to them, {}; give each split by its name, as train=FOLDER "
                    "test=FOLDER, or train={} if all of these are classes",
                    folder, found.empty() ? empty.front() : found.front().second, some_of(others), folder);
    if (!empty.empty())
        throw_error(errc::usage,
                    "{}: a split's folder, and holds no picture ({}); give the other splits by name, as train={}/train",
                    some_of(empty), picture_endings, folder);
    return found;
}

folder_source::folder_source(std::string folder, source_options const& options) : folder_(std::move(folder)) {
    while (folder_.size() > 1 && folder_.ends_with('/')) folder_.pop_back();
    find_classes();
    if (pictures_.empty())
        throw_error(errc::invalid_data,
                    "{}: holds no picture ({}), nor do its folders; give the folder that has one folder a class", folder_,
                    picture_endings);
    facts_.classes = facts_.class_names.size();
    facts_.samples = pictures_.size();
    facts_.images = fs::path(folder_).filename().string();
    take_form_of_first(options);
}

void folder_source::find_classes() {
    picture_walk walk(folder_, &notes_.left_out);
    std::vector<std::string> const here = walk.here();
    std::vector<std::string> names = folders_in(folder_);
    std::vector<std::string> empty, filled;
    for (std::string const& name : names) {
        std::vector<std::string> const found = walk.below(name);
        for (std::string const& picture : found) pictures_.push_back({picture, static_cast<std::uint32_t>(&name - names.data())});
        (found.empty() ? empty : filled).push_back(name);
    }
    facts_.labelled = !pictures_.empty();
    if (!facts_.labelled) {
        for (std::string const& picture : here) pictures_.push_back({picture, 0});
        return;
    }
    if (!here.empty())
        throw_error(errc::invalid_data,
                    "{}: holds pictures ({}) and folders of pictures ({}); take the ones out, or give one of the folders",
                    folder_, some_of(here), some_of(filled));
    if (filled.size() > 1 &&
        std::none_of(filled.begin(), filled.end(), [](auto const& name) { return split_by_name(name).empty(); }))
        throw_error(errc::usage, "{}: its folders are splits ({}), no classes; give each, as train={}/{}", folder_,
                    some_of(filled), folder_, filled.front());
    for (std::string const& name : names)
        if (auto const at = not_utf8_at(name))
            throw_error(errc::invalid_data,
                        "{}/{}: the name of this class is no UTF-8 (byte {}); rename the folder, as `convmv -f latin1 -t utf8 "
                        "--notest` does",
                        folder_, without_controls(name), *at + 1);
    if (!empty.empty())
        notes_.words.push_back(fmt::format("no picture in {}, which {} as {} all the same", some_of(empty),
                                           empty.size() == 1 ? "counts" : "count", empty.size() == 1 ? "a class" : "classes"));
    facts_.class_names = std::move(names);
    note_depth();
}

/// Pictures that lie deeper than in the class's folder are of the class; where that is likely not what was meant, it is refused.
void folder_source::note_depth() {
    std::vector<std::string> deeper;
    std::size_t count = 0, classes = 0;
    std::uint32_t last = UINT32_MAX;
    for (entry const& each : pictures_) {
        if (each.label != last) ++classes;
        last = each.label;
        std::string const in = each.name.substr(0, each.name.rfind('/'));
        if (in.find('/') == std::string::npos) continue;
        ++count;
        if (deeper.empty() || deeper.back() != in) deeper.push_back(in);
        std::size_t const begin = in.find('/') + 1;
        if (!split_by_name(in.substr(begin, in.find('/', begin) - begin)).empty())
            throw_error(errc::usage,
                        "{}/{}: a split inside a class; make folders SPLIT/CLASS of it, and give the folder above them", folder_,
                        in);
    }
    if (count == 0) return;
    if (classes == 1 && deeper.size() > 1 && count == pictures_.size())
        throw_error(errc::usage, "{}: all its pictures lie in folders of one folder ({}); give {}/{} if these are the classes",
                    folder_, some_of(deeper), folder_, deeper.front().substr(0, deeper.front().find('/')));
    notes_.words.push_back(
        fmt::format("{} picture{} in folders inside the classes' ({})", count, count == 1 ? " lies" : "s lie", some_of(deeper)));
}

void folder_source::take_form_of_first(source_options const& options) {
    resize_ = options.resize.has_value();
    for (std::size_t sample = 0;; ++sample) {
        try {
            facts_.shape = read_file(sample).shape;
            if (options.skip_damaged) decode_picture(bytes_, pictures_[sample].name, 1);
            break;
        } catch (error const& e) {
            if (!options.skip_damaged || e.code() != errc::invalid_data) throw;
            if (sample + 1 == pictures_.size())
                throw_error(errc::invalid_data, "{}: none of its {} pictures can be read; the last says: {}", folder_,
                            pictures_.size(), e.what());
        }
    }
    gray_by_first_ = options.channels == 0 && facts_.shape.channels == 1;
    if (options.channels != 0) facts_.shape.channels = options.channels;
    if (resize_) std::tie(facts_.shape.height, facts_.shape.width) = *options.resize;
}

std::vector<std::string> folder_source::files() const {
    std::vector<std::string> all;
    all.reserve(pictures_.size());
    for (entry const& each : pictures_) all.push_back(folder_ + "/" + each.name);
    return all;
}

/// Reads the file into bytes_, and returns what its header says.
picture_header folder_source::read_file(std::size_t sample) {
    std::string const path = folder_ + "/" + pictures_[sample].name;
    std::uint64_t bytes = 0;
    unique_fd const fd = open_picture(path, bytes);
    if (bytes > largest_file)
        throw_error(errc::invalid_data, "{}: {} bytes, more than a picture has; take it out of the folder", path, bytes);
    bytes_.resize(static_cast<std::size_t>(bytes));
    read_exactly(fd.get(), path, 0, bytes_);
    return probe_picture(bytes_, path);
}

void folder_source::require_form(std::size_t sample, picture_header const& found) {
    image_shape const& wanted = facts_.shape;
    std::string const path = folder_ + "/" + pictures_[sample].name;
    if (!resize_ && (found.shape.height != wanted.height || found.shape.width != wanted.width))
        throw_error(errc::invalid_data,
                    "{}: is {} x {} pixels (height x width), and the first picture, {}, is {} x {}; give --resize {}x{}", path,
                    found.shape.height, found.shape.width, pictures_.front().name, wanted.height, wanted.width, wanted.height,
                    wanted.width);
    if (found.shape.channels > 1 && gray_by_first_)
        throw_error(errc::invalid_data, "{}: is in colour, and the first picture, {}, is gray; give --channels 3 or --channels 1",
                    path, pictures_.front().name);
}

void folder_source::note_turned(std::size_t sample, picture_header const& found) {
    if (found.orientation != 1) notes_.turned.add(folder_ + "/" + pictures_[sample].name);
}

void folder_source::read_one(std::size_t sample, std::span<std::uint8_t> out) {
    picture_header const found = read_file(sample);
    require_form(sample, found);
    note_turned(sample, found);
    image_shape const& wanted = facts_.shape;
    picture made = decode_picture(bytes_, folder_ + "/" + pictures_[sample].name, wanted.channels);
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

void folder_source::look_at(hyperslab rows, std::span<std::int32_t> damaged) {
    for (std::size_t i = 0; i < rows.count; ++i) {
        std::size_t const sample = rows.first + i;
        if (damaged.empty()) {
            picture_header const found = read_file(sample);
            require_form(sample, found);
            note_turned(sample, found);
            continue;
        }
        try {
            read_file(sample);
            decode_picture(bytes_, pictures_[sample].name, facts_.shape.channels);
        } catch (error const& e) {
            if (e.code() != errc::invalid_data) throw;
            damaged[i] = 1;
        }
    }
}

void folder_source::leave_out(std::span<std::int32_t const> damaged) {
    std::vector<entry> good;
    for (std::size_t i = 0; i < pictures_.size(); ++i)
        if (damaged[i] == 0)
            good.push_back(std::move(pictures_[i]));
        else
            notes_.damaged.add(folder_ + "/" + pictures_[i].name);
    pictures_ = std::move(good);
    facts_.samples = pictures_.size();
}

}  // namespace muster
