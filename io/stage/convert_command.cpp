#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "base/units.hpp"
#include "comm/run_with_ranks.hpp"
#include "io/convert/convert.hpp"
#include "io/dataset/file_ranks.hpp"
#include "io/sources/csv_source.hpp"
#include "io/sources/image_file.hpp"
#include "io/stage/commands.hpp"
#include "io/stage/progress.hpp"

namespace muster::stage {

namespace {

std::string const label_column_help =
    fmt::format("of csv: the column by its name, else by its number from 1, or none; default: the first of {}",
                fmt::join(csv_label_names, ", "));

option_row const convert_options[]{
    {"output", 'o', "FILE", "the dataset file", ""},
    {"from", 0, "FORMAT", "auto, idx, cifar10, cifar100, npy, npz, images, csv or hdf5", "auto", false,
     "auto idx cifar10 cifar100 npy npz images csv hdf5"},
    {"images", 0, "NAME", "of npz and hdf5: the array inside; without a source: the file of the split train", ""},
    {"labels", 0, "NAME", "likewise; none: the samples have no labels", ""},
    {"split", 0, "NAME=F,…", "divide the one source at random into these splits, by fractions that make 1: train=0.8,val=0.2",
     ""},
    {"seed", 0, "N", "of --split: the same number divides the same way, on any number of ranks", "0"},
    {"name", 0, "NAME", "name of the dataset, for people", ""},
    {"classes", 0, "N", "labels are below N; default: the number of class names, else the largest label plus one", ""},
    {"class-names", 0, "A,B,…", "names of the classes; default: those of the source", ""},
    {"order", 0, "ORDER", "of samples of three dimensions: chw, hwc, or auto where one of them can be the channels", "auto",
     false, "auto chw hwc"},
    {"resize", 0, "HxW", "of images: make each of this size", ""},
    {"channels", 0, "N", "of images: 1 gray, 3 colour; default: as the first one", ""},
    {"skip-damaged", 0, "", "of images: leave out those that cannot be read or decoded, and say which; each is read twice", ""},
    {"type", 0, "TYPE", "of csv: uint8, int16, float32 …", "float32", false,
     "uint8 int8 uint16 int16 int32 int64 float32 float64"},
    {"label-column", 0, "NAME", label_column_help, ""},
    {"label-type", 0, "TYPE",
     "class (numbers from 0), name, or float (targets of a regression); default: as they look in all splits", "", false,
     "class name float"},
    {"columns", 0, "A,B,…", "of csv: the columns to take, by name, else by number from 1; default: all", ""},
    {"drop", 0, "A,B,…", "of csv: columns to leave out", ""},
    {"header", 0, "yes|no", "of csv: whether the first line names the columns; default: where it is no sample", "", false,
     "yes no"},
    {"coarse", 0, "", "of cifar100: the 20 coarse labels", ""},
    {"chunk", 0, "N", "store chunks of N samples; default: contiguous, which is fastest and can be mapped", ""},
    {"gzip", 0, "LEVEL", "compress the samples, 1 to 9; the file can then not be mapped", ""},
    {"align", 0, "BYTES", "arrays begin at a multiple, such as the stripe of the file system; default: 1MiB", ""},
    {"force", 0, "", "replace the dataset file if it exists", ""},
    {"restart", 0, "", "begin anew, whatever a conversion that was killed has left", ""},
    {"no-digests", 0, "", "leave out the digests of the sources, for which these are read once more", ""},
    {"dry-run", 'n', "", "open and check the sources, say what would be written, and write nothing", ""},
    {"progress", 0, "HOW", "none, bar, lines or json; default: bar on a terminal, else lines", "", false, "none bar lines json"},
    {"json", 0, "", "report as JSON", ""},
};

/// Returns the command as it was given, without the program's folder, so that the same command gives the same file from anywhere.
std::string command_line() {
    std::ifstream file("/proc/self/cmdline", std::ios::binary);
    std::vector<std::string> words;
    for (std::string word; std::getline(file, word, '\0');) words.push_back(std::move(word));
    if (words.empty()) return "";
    words.front() = "muster-stage";
    return shell_join(words);
}

/// "train=IMAGES,LABELS": each part but IMAGES may be missing.
split_source source_of(std::string const& word) {
    split_source source;
    std::string_view rest = word;
    if (std::size_t const equals = rest.find('=');
        equals != std::string_view::npos && rest.substr(0, equals).find('/') == std::string_view::npos) {
        source.split = rest.substr(0, equals);
        rest.remove_prefix(equals + 1);
    }
    std::size_t const comma = rest.find(',');
    source.images = rest.substr(0, comma);
    if (comma != std::string_view::npos) source.labels = rest.substr(comma + 1);
    if (source.images.empty())
        throw_error(errc::usage, "'{}' names no source; write FILE, FOLDER, SPLIT=FILE or SPLIT=IMAGES,LABELS", word);
    return source;
}

template <typename Value>
Value one_of(given_options const& given, std::string_view option,
             std::initializer_list<std::pair<std::string_view, Value>> known) {
    std::string const text = given.text(option);
    std::string names;
    for (auto const& [name, value] : known) {
        if (name == text) return value;
        names += (names.empty() ? "" : ", ") + std::string(name);
    }
    throw_error(errc::usage, "--{}: '{}' is none of {}; give one of these", option, text, names);
}

std::vector<std::string> names_in(std::string const& list) {
    std::vector<std::string> names;
    if (!list.empty())
        for (auto const& name : split(list, ',')) names.emplace_back(trim(name));
    return names;
}

void read_sources(given_options const& given, convert_request& request) {
    source_options& how = request.reading;
    auto const format = parse_source_format(given.text("from"));
    if (!format)
        throw_error(errc::usage, "--from: '{}' is no format; give auto, idx, cifar10, cifar100, npy, npz, images, csv or hdf5",
                    given.text("from"));
    how.format = *format;
    if (given.words().empty()) {
        bool const no_labels = given.text("labels") == "none";
        request.splits.push_back({"train", given.needed("images"), no_labels ? "" : given.needed("labels")});
    } else {
        for (std::string const& word : given.words()) request.splits.push_back(source_of(word));
        how.images = given.text("images");
        how.labels = given.text("labels");
    }
}

void read_form(given_options const& given, source_options& how) {
    how.order = one_of<dimension_order>(
        given, "order", {{"auto", dimension_order::automatic}, {"chw", dimension_order::chw}, {"hwc", dimension_order::hwc}});
    how.coarse = given.has("coarse");
    how.skip_damaged = given.has("skip-damaged");
    how.label_column = given.text("label-column");
    if (given.has("label-type"))
        how.labels_are = one_of<label_kind>(
            given, "label-type", {{"class", label_kind::number}, {"name", label_kind::name}, {"float", label_kind::target}});
    how.columns = names_in(given.text("columns"));
    how.drop = names_in(given.text("drop"));
    if (given.has("header")) how.header = one_of<bool>(given, "header", {{"yes", true}, {"no", false}});
    if (given.has("channels")) how.channels = one_of<std::size_t>(given, "channels", {{"1", 1}, {"3", 3}});
    how.type = parse_element_type(given.text("type"));
    if (!how.type)
        throw_error(errc::usage, "--type: '{}' is no type; give uint8, int8, uint16 … int64, float32 or float64",
                    given.text("type"));
    if (!given.has("resize")) return;
    std::string const text = given.text("resize");
    auto const parts = split(text, 'x');
    auto const height = parse_integer(parts.front());
    auto const width = parse_integer(parts.back());
    if (parts.size() != 2 || !height || !width || *height < 1 || *width < 1 || *height > 65536 || *width > 65536)
        throw_error(errc::usage, "--resize: '{}' is no size; give height x width, as 224x224", text);
    how.resize = {static_cast<std::size_t>(*height), static_cast<std::size_t>(*width)};
}

convert_request request_of(given_options const& given) {
    convert_request request;
    read_sources(given, request);
    read_form(given, request.reading);
    if (given.has("split")) request.parts = parse_split_parts(given.text("split"));
    if (given.has("seed") && request.parts.empty()) throw error(errc::usage, "--seed is of --split NAME=F,NAME=F; give that too");
    request.seed = static_cast<std::uint64_t>(given.integer("seed", 0, std::int64_t{1} << 62));
    request.dry_run = given.has("dry-run");
    request.output = request.dry_run ? given.text("output") : given.needed("output");
    if (given.has("classes")) request.classes = static_cast<std::size_t>(given.integer("classes", 1, std::int64_t{1} << 31));
    request.class_names = names_in(given.text("class-names"));
    if (given.has("chunk")) request.chunk_samples = static_cast<std::size_t>(given.integer("chunk", 1, 1'000'000'000));
    if (given.has("gzip")) request.gzip_level = static_cast<unsigned>(given.integer("gzip", 1, 9));
    request.digests = !given.has("no-digests");
    request.resume = true;
    request.writer.name = given.text("name");
    if (given.has("align"))
        request.writer.alignment_bytes = read_option([&] { return parse_bytes(given.text("align"), "--align"); });
    request.writer.replace = given.has("force");
    request.writer.restart = given.has("restart");
    return request;
}

/// "3 files were left out …: b/2.webp, …".
std::vector<std::string> lines_of(source_notes const& notes, element_type type) {
    std::vector<std::string> lines;
    auto const add = [&](source_notes::some const& of, std::string_view one, std::string_view several) {
        if (of.count == 0) return;
        std::string const names = of.names.empty() ? "" : ": " + join(of.names, ", ");
        lines.push_back(
            fmt::format("{} {}{}{}", of.count, of.count == 1 ? one : several, names, of.count > of.names.size() ? ", …" : ""));
    };
    add(notes.left_out, fmt::format("file was left out, being none of {}, or hidden", picture_endings),
        fmt::format("files were left out, being none of {}, or hidden", picture_endings));
    add(notes.damaged, "damaged picture was left out", "damaged pictures were left out");
    add(notes.turned, "picture has an EXIF orientation that was not applied",
        "pictures have an EXIF orientation that was not applied");
    std::string const kept = type == element_type::f64 ? "which --type int64 keeps (or leave its column out by --drop)"
                                                       : "which a larger --type, such as float64 or int64, keeps";
    add(notes.rounded, "whole number was rounded, " + kept, "whole numbers were rounded, " + kept);
    lines.insert(lines.end(), notes.words.begin(), notes.words.end());
    return lines;
}

nlohmann::ordered_json json_of(source_notes::some const& of) {
    return {{"count", of.count}, {"names", of.names}};
}

void print_text(convert_request const& request, convert_report const& report, int ranks, double seconds) {
    for (auto const& split : report.splits) {
        std::string const type = split.type == element_type::u8 ? "" : fmt::format(" of {}", to_string(split.type));
        std::string const labels = report.targets ? "float targets"
                                   : report.classes == 0
                                       ? "no labels"
                                       : fmt::format("{} class{}", report.classes, report.classes == 1 ? "" : "es");
        fmt::print("{}: /{}: {} of {}{}, {}\n", request.output, split.name,
                   counted(static_cast<std::int64_t>(split.samples), split.shape.is_row ? "row" : "image"),
                   to_string(split.shape), type, labels);
        for (std::string const& note : lines_of(split.notes, split.type)) fmt::print("  {}\n", without_controls(note));
    }
    if (request.dry_run) {
        fmt::print("{} would be written\n", format_bytes(report.bytes));
        return;
    }
    std::string const found =
        report.found_bytes == 0 ? "" : fmt::format(", {} of it by an earlier conversion", format_bytes(report.found_bytes));
    fmt::print("{} converted in {} by {} ({}){}\n", format_bytes(report.bytes), format_duration(duration{seconds}),
               counted(ranks, "rank"), format_rate(static_cast<double>(report.bytes - report.found_bytes) / seconds), found);
}

void print_json(convert_request const& request, convert_report const& report, int ranks, double seconds) {
    nlohmann::ordered_json splits = nlohmann::ordered_json::array();
    for (auto const& split : report.splits)
        splits.push_back({{"split", split.name},
                          {"samples", split.samples},
                          {"shape", split.shape.dimensions()},
                          {"type", to_string(split.type)},
                          {"left_out", json_of(split.notes.left_out)},
                          {"damaged", json_of(split.notes.damaged)},
                          {"orientation_not_applied", json_of(split.notes.turned)},
                          {"rounded", json_of(split.notes.rounded)},
                          {"notes", split.notes.words}});
    nlohmann::ordered_json const all{{"file", request.output},
                                     {"splits", splits},
                                     {"labels", report.targets        ? "float32"
                                                : report.classes != 0 ? "classes"
                                                                      : "none"},
                                     {"classes", report.classes},
                                     {"class_names", report.class_names},
                                     {"bytes", report.bytes},
                                     {"found_bytes", report.found_bytes},
                                     {"dry_run", request.dry_run},
                                     {"seconds", seconds},
                                     {"ranks", ranks}};
    fmt::print("{}\n", all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

constexpr command_row convert_row{
    .name = "convert",
    .summary = "images, arrays and tables to one HDF5 dataset file",
    .synopsis = "[SPLIT=]SOURCE... -o OUT.h5 [options]",
    .examples =
        "  muster-stage convert flowers -o flowers.h5                      a folder with one folder of pictures a class\n"
        "  muster-stage convert train=a.npy,b.npy test=c.npy,d.npy -o x.h5  samples and labels in two files\n"
        "  muster-stage convert --images train-images-idx3-ubyte.gz --labels train-labels-idx1-ubyte.gz -o mnist.h5\n"
        "  muster-stage convert table.csv --split train=0.8,val=0.2 -o t.h5  one table, divided at random\n"
        "  muster run -n 4 -- muster-stage convert …       the same on 4 ranks, each with its part\n",
    .options = convert_options,
    .description = "The format is seen from the contents. A conversion that was killed is taken up again by the same command.",
    .most_words = 64,
};

int convert_command(given_options const& given, identity const& who) {
    convert_request request = request_of(given);
    request.writer.command = command_line();
    progress_style const style = parse_progress(given.text("progress"));
    return run_with_ranks("muster-stage", who, options_for_files(who), [&](communicator& ranks) {
        auto const begin = std::chrono::steady_clock::now();
        bool const first = ranks.rank() == 0;
        convert_report const report = convert(request, ranks, progress("convert", first ? style : progress_style::none));
        double const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        if (!first) return 0;
        if (given.has("json"))
            print_json(request, report, ranks.size(), seconds);
        else
            print_text(request, report, ranks.size(), seconds);
        return 0;
    });
}

}  // namespace muster::stage
