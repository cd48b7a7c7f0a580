#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>

#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "io/arrays/item_array.hpp"
#include "io/sources/csv_source.hpp"
#include "io/sources/file_sources.hpp"

namespace muster {

namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 9> format_names{"auto", "idx",    "cifar10", "cifar100", "npy",
                                                       "npz",  "images", "csv",     "hdf5"};
constexpr std::array<std::string_view, 5> split_names{"train", "test", "val", "valid", "validation"};

bool is_split_name(std::string_view name) {
    return std::find(split_names.begin(), split_names.end(), name) != split_names.end();
}

bool exists(std::string const& path) {
    std::error_code ignored;
    return fs::exists(path, ignored);
}

/// The file of this name, or compressed.
std::string find_file(std::string const& folder, std::string_view name) {
    for (std::string const& path : {fmt::format("{}/{}", folder, name), fmt::format("{}/{}.gz", folder, name)})
        if (exists(path)) return path;
    return "";
}

/// "train" of "data/train.csv"; else what is the default.
std::string split_of(split_source const& asked) {
    if (!asked.split.empty()) return asked.split;
    std::string stem = fs::path(asked.images).stem().string();
    if (asked.images.ends_with(".gz")) stem = fs::path(stem).stem().string();
    return is_split_name(stem) ? stem : "train";
}

std::string head_of(std::string const& path) {
    byte_source source(path);
    std::string head(512, '\0');
    head.resize(source.read({reinterpret_cast<std::uint8_t*>(head.data()), head.size()}));
    return head;
}

source_format format_of_folder(std::string const& folder) {
    if (!find_file(folder, "train-images-idx3-ubyte").empty() || !find_file(folder, "t10k-images-idx3-ubyte").empty())
        return source_format::idx;
    if (exists(folder + "/data_batch_1.bin") || exists(folder + "/test_batch.bin")) return source_format::cifar10;
    if (exists(folder + "/train.bin") && exists(folder + "/fine_label_names.txt")) return source_format::cifar100;
    for (char const* const batch : {"/data_batch_1", "/test_batch", "/meta"})
        if (fs::is_regular_file(folder + batch) && head_of(folder + batch).starts_with('\x80'))
            throw_error(errc::usage, "{}: CIFAR's Python version, which is not read; take its binary version", folder);
    return source_format::images;
}

bool is_array(file_region const& entry) {
    std::array<std::uint8_t, 6> magic{};
    return byte_source(entry).read(magic) == magic.size() && magic[0] == 0x93 && magic[1] == 'N';
}

/// Returns whether it is a file of other files than arrays: those are to be unpacked, and then converted.
bool is_archive(std::string const& path, std::string_view head) {
    fs::path const name(path);
    if (name.extension() == ".tar" || name.stem().extension() == ".tar" || (head.size() > 262 && head.substr(257, 5) == "ustar"))
        return true;
    if (!head.starts_with("PK\x03\x04") || name.extension() == ".npz") return false;
    try {
        return std::ranges::none_of(npz_entries(path), is_array);
    } catch (error const&) {  // more entries than arrays come in, or damaged, which who unpacks it tells
        return true;
    }
}

source_format format_of_file(std::string const& path) {
    std::string const head = head_of(path);
    if (is_archive(path, head))
        throw_error(errc::usage,
                    "{}: is an archive; unpack it first, with `{} {}` or on every node with `muster stage copy --unpack`, and "
                    "give the folder or the files that were in it",
                    path, head.starts_with("PK") ? "unzip" : "tar -xf", shell_quote(path));
    std::string ending = fs::path(path).extension().string();
    bool const packed = ending == ".gz";
    if (packed) ending = fs::path(path).stem().extension().string();
    if (head.starts_with("\x93NUMPY")) return source_format::npy;
    if (head.starts_with("\x89HDF")) return source_format::hdf5;
    if (head.starts_with("PK\x03\x04") || head.starts_with("PK\x05\x06")) return source_format::npz;
    std::string_view const known = known_format(head);
    if (known.empty() && (ending == ".csv" || ending == ".tsv" || ending == ".txt")) return source_format::csv;
    if (ending == ".bin") {
        std::uint64_t const bytes = byte_source(path).file_bytes();
        if (bytes % 3073 == 0) return source_format::cifar10;
        if (bytes % 3074 == 0) return source_format::cifar100;
    }
    if (head.starts_with(std::string_view("\0\0", 2)) || packed) return source_format::idx;
    if (known.find(": ") != known.npos) throw_error(errc::usage, "{}: is {}", path, known);  // with its own advice
    throw_error(errc::usage, "{}: its format cannot be told from its contents{}{}; give --from with one of {}", path,
                known.empty() ? "" : ", which look like ", known, fmt::join(format_names.begin() + 1, format_names.end(), ", "));
}

std::unique_ptr<item_array> open_array(std::string const& path, idx_kind kind) {
    if (head_of(path).starts_with("\x93NUMPY")) return open_npy(byte_source(path));
    return std::make_unique<idx_reader>(path, kind);
}

std::unique_ptr<sample_source> open_array_files(std::string const& images, std::string const& labels, dimension_order order) {
    bool const is_idx = !head_of(images).starts_with("\x93NUMPY");
    array_opener open_labels;
    if (!labels.empty()) open_labels = [labels] { return open_array(labels, idx_kind::labels); };
    return std::make_unique<array_source>([&] { return open_array(images, idx_kind::images); }, open_labels,
                                          is_idx && order == dimension_order::automatic ? dimension_order::chw : order);
}

std::vector<named_source> open_idx_folder(split_source const& asked, source_options const& options) {
    std::vector<named_source> found;
    for (auto const& [split, prefix] : {std::pair("train", "train"), std::pair("test", "t10k")}) {
        if (!asked.split.empty() && asked.split != split) continue;
        std::string const images = find_file(asked.images, fmt::format("{}-images-idx3-ubyte", prefix));
        if (images.empty()) continue;
        found.push_back({split, open_array_files(images, find_file(asked.images, fmt::format("{}-labels-idx1-ubyte", prefix)),
                                                 options.order)});
    }
    return found;
}

std::vector<named_source> open_cifar(split_source const& asked, source_options const& options, bool ten) {
    cifar_labels const labels = ten ? cifar_labels::ten : options.coarse ? cifar_labels::coarse : cifar_labels::fine;
    if (!fs::is_directory(asked.images)) {
        std::vector<named_source> one;
        one.push_back({split_of(asked), std::make_unique<cifar_source>(std::vector<std::string>{asked.images}, labels, "")});
        return one;
    }
    std::string const names = asked.images + (ten              ? "/batches.meta.txt"
                                              : options.coarse ? "/coarse_label_names.txt"
                                                               : "/fine_label_names.txt");
    std::vector<named_source> found;
    for (std::string_view const split : {"train", "test"}) {
        if (!asked.split.empty() && asked.split != split) continue;
        std::vector<std::string> files;
        if (!ten) files.push_back(fmt::format("{}/{}.bin", asked.images, split));
        if (ten && split == "test") files.push_back(asked.images + "/test_batch.bin");
        for (int i = 1; ten && split == "train" && i <= 99; ++i)
            files.push_back(fmt::format("{}/data_batch_{}.bin", asked.images, i));
        std::erase_if(files, [](std::string const& file) { return !exists(file); });
        if (!files.empty())
            found.push_back({std::string(split), std::make_unique<cifar_source>(files, labels, exists(names) ? names : "")});
    }
    return found;
}

/// Arrays in one file: which are there, and how one is opened.
struct array_file {
    std::string path;
    std::function<bool(std::string const&)> has;
    std::function<std::unique_ptr<item_array>(std::string const&)> open;
    std::function<std::string()> contents;  ///< for messages: ": it has a, b"
};

std::string first_there(array_file const& file, std::vector<std::string> const& names) {
    for (std::string const& name : names)
        if (file.has(name)) return name;
    return "";
}

/// The usual names of the samples and of the labels of a split; of the only split where `s` is empty.
std::pair<std::vector<std::string>, std::vector<std::string>> usual_names(std::string const& s) {
    if (s.empty())
        return {{"images", "x", "X", "data", "image", "arr_0"}, {"labels", "y", "Y", "label", "target", "targets", "arr_1"}};
    return {
        {"x_" + s, "X_" + s, s + "_x", s + "_X", s + "_images", "images_" + s, s + "_data", s + "/images", s + "/x", s + "/data"},
        {"y_" + s, "Y_" + s, s + "_y", s + "_Y", s + "_labels", "labels_" + s, s + "_label", s + "/labels", s + "/y",
         s + "/label"}};
}

named_source open_pair(array_file const& file, std::string split, std::string const& images, std::string const& labels,
                       dimension_order order) {
    array_opener open_labels;
    if (!labels.empty()) open_labels = [file, labels] { return file.open(labels); };
    return {std::move(split), std::make_unique<array_source>([&] { return file.open(images); }, open_labels, order)};
}

/// The same by names that were not given, which it says.
named_source open_guessed(array_file const& file, std::string split, std::string const& images, std::string const& labels,
                          source_options const& options) {
    auto out = open_pair(file, std::move(split), images, labels, options.order);
    auto const by_name = fs::path(file.path).filename().string();
    if (!options.labels.empty())
        out.source->add_note(fmt::format("samples: array '{}' of {}, by its name; --images takes another", images, by_name));
    else if (labels.empty())
        out.source->add_note(fmt::format(
            "samples: array '{}' of {}, by its name, without labels, as no array has a usual name of labels (y, labels, …); "
            "--images and --labels take others",
            images, by_name));
    else
        out.source->add_note(fmt::format(
            "samples: array '{}' of {}, labels: '{}', by their names; --images and --labels take others, --labels none "
            "none",
            images, by_name, labels));
    return out;
}

std::vector<named_source> open_by_names(array_file const& file, split_source const& asked, source_options const& options) {
    std::vector<named_source> found;
    if (!options.images.empty()) {
        std::string labels = options.labels == "none" ? "" : options.labels;
        found.push_back(open_pair(file, split_of(asked), options.images, labels, options.order));
        return found;
    }
    for (std::string_view const split : split_names) {
        if (!asked.split.empty() && asked.split != split) continue;
        auto const [images, labels] = usual_names(std::string(split));
        std::string const name = first_there(file, images);
        if (name.empty()) continue;
        if (!options.labels.empty() && options.labels != "none")
            throw_error(errc::usage, "{}: --labels {}: it has the array {} of the split {}; give --images with that name too",
                        file.path, options.labels, name, split);
        found.push_back(
            open_guessed(file, std::string(split), name, options.labels == "none" ? "" : first_there(file, labels), options));
    }
    if (!found.empty()) return found;
    auto const [images, labels] = usual_names("");
    if (std::string const name = first_there(file, images); !name.empty()) {
        std::string const with = !options.labels.empty() ? options.labels : first_there(file, labels);
        found.push_back(open_guessed(file, split_of(asked), name, with == "none" ? "" : with, options));
        return found;
    }
    throw_error(errc::usage,
                "{}: none of its arrays has a usual name (x_train, images, …){}; give --images and --labels with the names of "
                "arrays inside it",
                file.path, file.contents());
}

std::vector<named_source> open_npz(split_source const& asked, source_options const& options) {
    auto const entries = std::make_shared<std::vector<file_region>>(npz_entries(asked.images));
    auto const find = [entries](std::string const& name) {
        return std::find_if(entries->begin(), entries->end(), [&](file_region const& each) { return each.name == name; });
    };
    std::string contents;
    for (std::size_t i = 0; i < std::min<std::size_t>(entries->size(), 12); ++i)
        contents += (i == 0 ? ": it has " : ", ") + (*entries)[i].name;
    return open_by_names({asked.images, [=](std::string const& name) { return find(name) != entries->end(); },
                          [=](std::string const& name) {
                              auto const at = find(name);
                              if (at == entries->end())
                                  throw_error(errc::not_found, "{}: has no array '{}'{}; give one of these", asked.images, name,
                                              contents);
                              return open_npy(byte_source(*at));
                          },
                          [contents] { return contents; }},
                         asked, options);
}

std::vector<named_source> open_hdf5(split_source const& asked, source_options const& options) {
    auto const rooted = [](std::string const& name) { return name.starts_with('/') ? name : "/" + name; };
    return open_by_names({asked.images, [=](std::string const& name) { return has_hdf5_array(asked.images, rooted(name)); },
                          [=](std::string const& name) -> std::unique_ptr<item_array> {
                              return std::make_unique<hdf5_array>(asked.images, rooted(name));
                          },
                          [=] { return ": it has " + hdf5_arrays(asked.images); }},
                         asked, options);
}

std::vector<named_source> open_images(split_source const& asked, source_options const& options) {
    std::vector<named_source> found;
    if (!fs::is_directory(asked.images))
        throw_error(errc::usage, "{}: is no folder; give the folder that has one folder of pictures a class", asked.images);
    if (asked.split.empty())
        for (auto const& [split, folder] : split_folders(asked.images))
            found.push_back({split, std::make_unique<folder_source>(folder, options)});
    if (found.empty()) found.push_back({split_of(asked), std::make_unique<folder_source>(asked.images, options)});
    return found;
}

/// An option that the format has no use for is refused: it would be passed over silently.
void require_fitting(split_source const& asked, source_options const& options, source_format format) {
    using enum source_format;
    bool const named_arrays = format == npz || format == hdf5;
    bool const arrays = named_arrays || format == npy || format == idx || format == automatic;
    auto const refuse = [&](bool given, bool fits, std::string_view option, std::string_view of) {
        if (given && !fits)
            throw_error(errc::usage, "{}: --{} is for {}, and this is {}; leave it out", asked.images, option, of,
                        format == automatic ? "an array" : to_string(format));
    };
    refuse(!options.images.empty(), named_arrays, "images", "arrays in npz and hdf5 files");
    refuse(!options.labels.empty(), named_arrays, "labels", "arrays in npz and hdf5 files");
    refuse(options.order != dimension_order::automatic, arrays, "order", "arrays");
    refuse(options.coarse, format == cifar100, "coarse", "cifar100");
    refuse(options.resize.has_value(), format == source_format::images, "resize", "images");
    refuse(options.channels != 0, format == source_format::images, "channels", "images");
    refuse(options.skip_damaged, format == source_format::images, "skip-damaged", "images");
    refuse(!options.label_column.empty(), format == csv, "label-column", "csv");
    refuse(options.header.has_value(), format == csv, "header", "csv");
    refuse(!options.columns.empty(), format == csv, "columns", "csv");
    refuse(!options.drop.empty(), format == csv, "drop", "csv");
    refuse(options.labels_are == label_kind::name, format == csv, "label-type name", "csv");
    refuse(options.labels_are.has_value(), arrays || format == csv, "label-type", "csv and arrays");
}

}  // namespace

std::string some_of(std::span<std::string const> names, std::size_t most) {
    return join(names.first(std::min(names.size(), most)), ", ") + (names.size() > most ? ", …" : "");
}

std::string_view to_string(source_format format) noexcept {
    return format_names[static_cast<std::size_t>(format)];
}

std::optional<source_format> parse_source_format(std::string_view name) noexcept {
    for (std::size_t i = 0; i < format_names.size(); ++i)
        if (format_names[i] == name) return static_cast<source_format>(i);
    return std::nullopt;
}

void sample_source::fail_label(std::size_t sample, std::uint32_t label, std::size_t classes) const {
    throw_error(errc::invalid_data,
                "{}: label {} of sample {}, expected below {}, the number of classes; give the right --classes", facts_.images,
                label, sample, classes);
}

std::vector<named_source> open_sources(split_source const& asked, source_options const& options) {
    if (!exists(asked.images)) {
        std::uint64_t bytes = 0;
        open_regular(asked.images, bytes);  // throws in words
    }
    bool const is_folder = fs::is_directory(asked.images);
    if (is_folder && !asked.labels.empty())
        throw_error(errc::usage,
                    "{}: is a folder, and IMAGES,LABELS are two files of arrays (npy, idx); of pictures give one folder alone "
                    "that has a folder of pictures for each class",
                    asked.images);
    source_format format = options.format;
    if (format == source_format::automatic && !asked.labels.empty()) format = source_format::npy;  // or IDX: two files of arrays
    if (format == source_format::automatic) format = is_folder ? format_of_folder(asked.images) : format_of_file(asked.images);
    require_fitting(asked, options, format);
    std::vector<named_source> found;
    switch (format) {
        case source_format::automatic:
        case source_format::idx:
        case source_format::npy:
            if (is_folder)
                found = open_idx_folder(asked, options);
            else
                found.push_back({split_of(asked), open_array_files(asked.images, asked.labels, options.order)});
            break;
        case source_format::cifar10:
        case source_format::cifar100: found = open_cifar(asked, options, format == source_format::cifar10); break;
        case source_format::npz: found = open_npz(asked, options); break;
        case source_format::hdf5: found = open_hdf5(asked, options); break;
        case source_format::images: found = open_images(asked, options); break;
        case source_format::csv: found.push_back({split_of(asked), std::make_unique<csv_source>(asked.images, options)}); break;
    }
    if (found.empty())
        throw_error(errc::not_found, "{}: has no files of {}{}; check the folder, or give --from", asked.images,
                    to_string(format), asked.split.empty() ? "" : " for the split " + asked.split);
    return found;
}

}  // namespace muster
