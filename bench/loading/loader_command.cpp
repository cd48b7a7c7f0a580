#include "bench/loading/loader_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "bench/tools/machine.hpp"
#include "bench/tools/statistics.hpp"
#include "io/convert/convert.hpp"
#include "io/dataset/checksum.hpp"
#include "io/loader/loader.hpp"
#include "io/loader/mapped_memory.hpp"
#include "io/loader/permutation.hpp"

namespace muster {

namespace {

namespace po = boost::program_options;
namespace fs = std::filesystem;
using clock = std::chrono::steady_clock;

constexpr std::string_view help_text = R"(muster-bench loader [options]

Measures how fast the loader delivers shuffled samples, beside memcpy of the same bytes, on Fashion-MNIST and on a made-up set larger than the caches.

  --batch N          samples a batch; default 64
  --repetitions N    default 9
  --size BYTES       of the made-up set, in records of 3136 bytes; default 512MiB, 0 for none
  --images FILE      IDX files of the real set; default those of the package dataset-fashion-mnist, left out if they are not there
  --labels FILE
  --json             the results as JSON
  -h, --help         this text

One repetition runs every row once, in turns. GB/s is 1e9 image bytes delivered a second, each counted once. Rows of the loader are whole shuffled epochs; memcpy in
batches copies the same bytes in their order into one buffer of a batch, as the loader without thread does; memcpy at once copies them into an array as large as the set. The last two
columns are a row's median as a part of these two's.
All bytes are checked by XXH3: where there is no thread, batch by batch with the clock stopped; with a thread, in a second delivery of the same epoch.
)";

struct request {
    std::size_t batch = 64;
    int repetitions = 9;
    std::uint64_t synthetic_bytes = std::uint64_t{512} << 20;
    std::string images = "/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz";
    std::string labels = "/usr/share/datasets/fashion-mnist/train-labels-idx1-ubyte.gz";
    bool named = false;  ///< the files were asked for, so they must be there
    bool json = false;
};

/// A row of the table.
struct measured {
    std::string name;
    std::function<double(std::uint64_t epoch)> run;  ///< seconds of one delivery of the whole set
    std::vector<double> gbps;
};

/// A folder of our own that vanishes.
class scratch_folder {
  public:
    explicit scratch_folder(environment const& variables) {
        std::string pattern = variables.get_or("TMPDIR", "/tmp") + "/muster-loader.XXXXXX";
        if (::mkdtemp(pattern.data()) == nullptr) throw_system("mkdtemp", pattern, 0, "set TMPDIR to a folder with room");
        path_ = pattern;
    }
    scratch_folder(scratch_folder const&) = delete;
    scratch_folder& operator=(scratch_folder const&) = delete;
    ~scratch_folder() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    std::string file(std::string const& name) const { return (path_ / name).string(); }

  private:
    fs::path path_;
};

/// Adds seconds while it runs.
class stopwatch {
  public:
    void start() { began_ = clock::now(); }
    void stop() { seconds_ += std::chrono::duration<double>(clock::now() - began_).count(); }
    double seconds() const { return seconds_; }

  private:
    clock::time_point began_;
    double seconds_ = 0;
};

class bench_set {
  public:
    bench_set(std::string const& path, request const& asked)
        : data_(dataset::open(path)),
          order_(data_.size(), {}),
          batch_(asked.batch),
          bytes_(data_.size() * data_.image_bytes()),
          source_(mapped_memory::allocate(bytes_)),
          target_(mapped_memory::allocate(bytes_)) {
        data_.read(0, data_.size(), source_.bytes(), {});
        for (std::size_t i = 0; i < data_.size(); ++i)
            checksums_.push_back(xxh3_64(source_.bytes().subspan(i * data_.image_bytes(), data_.image_bytes())));
        rows_.push_back({"memcpy in batches", [this](std::uint64_t) { return copy_in_batches(); }, {}});
        rows_.push_back({"memcpy at once", [this](std::uint64_t) { return copy_at_once(); }, {}});
        for (memory_mode const memory : {memory_mode::whole, memory_mode::mapped})
            for (std::size_t const prefetch : {std::size_t{0}, std::size_t{3}}) add_loader(memory, prefetch);
    }

    std::uint64_t bytes() const { return bytes_; }
    dataset_info const& info() const { return data_.info(); }
    std::vector<measured>& rows() { return rows_; }
    std::size_t batch_size() const { return batch_; }
    double rate_of(std::size_t row) const { return median(rows_.at(row).gbps); }

  private:
    void add_loader(memory_mode memory, std::size_t prefetch) {
        if (memory == memory_mode::mapped && !data_.info().image_offset) return;
        auto const from =
            std::make_shared<loader>(data_, order_, loader_options{.batch = batch_, .memory = memory, .prefetch = prefetch});
        std::string const name =
            fmt::format("loader {}, {}", to_string(memory), prefetch == 0 ? "no thread" : fmt::format("{} ahead", prefetch));
        rows_.push_back({name,
                         [this, from, prefetch](std::uint64_t epoch) {
                             return prefetch == 0 ? deliver(*from, epoch) : deliver_ahead(*from, epoch);
                         },
                         {}});
    }

    [[noreturn]] void damaged(std::string_view what) const {
        throw error(errc::invalid_data,
                    fmt::format("{}: {} delivered other bytes than the dataset has; this is a fault in muster, please report it",
                                data_.info().path, what));
    }

    std::size_t check(batch const& given) const {
        std::size_t const size = data_.image_bytes();
        for (std::size_t i = 0; i < given.count; ++i)
            if (xxh3_64(given.images.subspan(i * size, size)) != checksums_[given.samples[i]]) damaged("the loader");
        return given.count;
    }

    double deliver(loader& from, std::uint64_t epoch) {
        stopwatch watch;
        std::size_t delivered = 0;
        watch.start();
        auto range = from.epoch(epoch);
        auto next = range.begin();
        while (next != range.end()) {
            watch.stop();
            delivered += check(*next);
            watch.start();
            ++next;
        }
        watch.stop();
        if (delivered != data_.size()) damaged("the loader");
        return watch.seconds();
    }

    double deliver_ahead(loader& from, std::uint64_t epoch) {
        stopwatch watch;
        std::size_t timed = 0;
        watch.start();
        for (batch const& given : from.epoch(epoch)) timed += given.count;
        watch.stop();
        std::size_t checked = 0;
        for (batch const& given : from.epoch(epoch)) checked += check(given);
        if (timed != data_.size() || checked != data_.size()) damaged("the loader");
        return watch.seconds();
    }

    double copy_in_batches() {
        stopwatch watch;
        std::size_t const size = data_.image_bytes();
        for (std::size_t first = 0; first < data_.size(); first += batch_) {
            std::size_t const count = std::min(batch_, data_.size() - first);
            watch.start();
            std::memcpy(target_.bytes().data(), source_.bytes().data() + first * size, count * size);
            watch.stop();
            for (std::size_t i = 0; i < count; ++i)
                if (xxh3_64(target_.bytes().subspan(i * size, size)) != checksums_[first + i]) damaged("memcpy");
        }
        return watch.seconds();
    }

    double copy_at_once() {
        stopwatch watch;
        watch.start();
        std::memcpy(target_.bytes().data(), source_.bytes().data(), bytes_);
        watch.stop();
        std::size_t const size = data_.image_bytes();
        for (std::size_t i = 0; i < data_.size(); ++i)
            if (xxh3_64(target_.bytes().subspan(i * size, size)) != checksums_[i]) damaged("memcpy");
        return watch.seconds();
    }

    dataset data_;
    sampler order_;
    std::size_t batch_;
    std::uint64_t bytes_;
    mapped_memory source_;
    mapped_memory target_;
    std::vector<std::uint64_t> checksums_;  ///< one a sample
    std::vector<measured> rows_;
};

void measure(bench_set& set, int repetitions) {
    auto& rows = set.rows();
    for (measured& row : rows) row.run(0);  // touches every page
    for (int repetition = 0; repetition < repetitions; ++repetition)
        for (std::size_t i = 0; i < rows.size(); ++i) {
            measured& row = rows[(i + static_cast<std::size_t>(repetition)) % rows.size()];
            row.gbps.push_back(static_cast<double>(set.bytes()) / 1e9 / row.run(static_cast<std::uint64_t>(repetition) + 1));
        }
}

std::string make_synthetic(scratch_folder const& folder, std::uint64_t bytes) {
    image_shape const shape{1, 56, 56};
    std::size_t const samples = std::max<std::size_t>(1, static_cast<std::size_t>(bytes / shape.bytes()));
    std::string const path = folder.file("synthetic.h5");
    dataset_writer writer(path, {.name = "synthetic"});
    writer.begin({.split = "train", .samples = samples, .shape = shape});
    std::vector<std::uint8_t> images;
    std::vector<std::uint8_t> labels;
    for (std::size_t first = 0; first < samples; first += writer.block_samples()) {
        hyperslab const rows{first, std::min(writer.block_samples(), samples - first)};
        images.resize(rows.count * shape.bytes());
        labels.assign(rows.count, 0);
        for (std::size_t i = 0; i + 8 <= images.size(); i += 8) {
            std::uint64_t const word = permutation::mix(first * shape.bytes() + i);
            std::memcpy(images.data() + i, &word, sizeof word);
        }
        writer.write(rows, images, labels);
    }
    writer.end({.classes = 1, .class_names = {}, .source_images = "", .source_labels = ""});
    writer.close();
    return path;
}

std::string make_real(scratch_folder const& folder, request const& asked) {
    convert_request conversion;
    conversion.splits = {{"train", asked.images, asked.labels}};
    conversion.output = folder.file("real.h5");
    convert(conversion);
    return conversion.output;
}

std::uint64_t number(po::variables_map const& given, char const* name, std::uint64_t least, std::uint64_t otherwise) {
    if (given.count(name) == 0) return otherwise;
    std::string const text = given[name].as<std::string>();
    auto const value = parse_integer(text);
    if (!value || *value < static_cast<std::int64_t>(least) || *value > 1'000'000)
        throw parse_error(fmt::format("--{}", name), text, 0, fmt::format("expected a whole number from {} to 1000000", least),
                          errc::usage);
    return static_cast<std::uint64_t>(*value);
}

std::optional<request> read_request(std::vector<std::string> const& args) {
    po::options_description known;
    for (char const* name : {"batch", "repetitions", "size", "images", "labels"})
        known.add_options()(name, po::value<std::string>(), "");
    known.add_options()("json", "")("help,h", "");
    po::variables_map given;
    try {
        auto const style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
        po::store(po::command_line_parser(args).options(known).positional({}).style(style).run(), given);
    } catch (po::unknown_option const& e) {
        std::vector<std::string> names;
        for (auto const& option : known.options()) names.push_back("--" + option->long_name());
        auto const near = nearest(e.get_option_name(), names);
        throw error(errc::usage, fmt::format("muster-bench loader: no option '{}'{}; --help lists them", e.get_option_name(),
                                             near ? fmt::format(", did you mean '{}'?", *near) : ""));
    } catch (po::error const& e) {
        throw error(errc::usage, fmt::format("muster-bench loader: {}; --help lists the options", e.what()));
    }
    if (given.count("help") != 0) return std::nullopt;
    request asked;
    asked.batch = number(given, "batch", 1, asked.batch);
    asked.repetitions = static_cast<int>(number(given, "repetitions", 1, 9));
    if (given.count("size") != 0) asked.synthetic_bytes = parse_bytes(given["size"].as<std::string>(), "--size");
    if (given.count("images") != given.count("labels"))
        throw error(errc::usage, "muster-bench loader: give --images and --labels together");
    if (given.count("images") != 0) {
        asked.images = given["images"].as<std::string>();
        asked.labels = given["labels"].as<std::string>();
        asked.named = true;
    }
    asked.json = given.count("json") != 0;
    return asked;
}

nlohmann::ordered_json to_json(bench_set& set, std::string const& name) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (measured const& row : set.rows()) {
        summary const all = summarise(row.gbps);
        rows.push_back({{"name", row.name},
                        {"median_gbps", all.median},
                        {"low_gbps", all.spread.low},
                        {"high_gbps", all.spread.high},
                        {"confidence", all.spread.confidence},
                        {"of_memcpy_at_once", all.median / set.rate_of(1)},
                        {"of_memcpy_in_batches", all.median / set.rate_of(0)},
                        {"gbps", row.gbps}});
    }
    return {{"set", name},          {"samples", set.info().samples}, {"record_bytes", set.info().shape.bytes()},
            {"bytes", set.bytes()}, {"batch", set.batch_size()},     {"rows", rows}};
}

void print_table(bench_set& set, std::string const& name) {
    fmt::print("{}: {} records of {} bytes ({}), batches of {}\n", name, set.info().samples, set.info().shape.bytes(),
               format_bytes(set.bytes()), set.batch_size());
    fmt::print("  {:<24}{:>8}{:>18}{:>14}{:>14}\n", "", "GB/s", "interval", "of at once", "of batches");
    for (measured const& row : set.rows()) {
        summary const all = summarise(row.gbps);
        fmt::print("  {:<24}{:>8.2f}{:>18}{:>14.2f}{:>14.2f}\n", row.name, all.median,
                   fmt::format("{:.2f} - {:.2f}", all.spread.low, all.spread.high), all.median / set.rate_of(1),
                   all.median / set.rate_of(0));
    }
}

}  // namespace

int loader_bench(std::vector<std::string> const& args, environment const& variables) {
    auto const asked = read_request(args);
    if (!asked) {
        fmt::print("{}", help_text);
        return 0;
    }
    scratch_folder const folder(variables);
    nlohmann::ordered_json sets = nlohmann::ordered_json::array();
    double const load = load_average();
    auto const run = [&](std::string const& path, std::string const& name) {
        bench_set set(path, *asked);
        measure(set, asked->repetitions);
        if (asked->json)
            sets.push_back(to_json(set, name));
        else
            print_table(set, name);
    };
    if (asked->named || fs::exists(asked->images))
        run(make_real(folder, *asked), asked->named ? fs::path(asked->images).filename().string() : "fashion-mnist");
    if (asked->synthetic_bytes != 0) run(make_synthetic(folder, asked->synthetic_bytes), "synthetic");
    if (asked->json) {
        machine_facts const machine = describe_machine();
        nlohmann::ordered_json const all{{"created", utc_now()}, {"processor", machine.processor},    {"cores", machine.cores},
                                         {"load_before", load},  {"repetitions", asked->repetitions}, {"sets", sets}};
        fmt::print("{}\n", all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    } else {
        fmt::print(
            "medians of {} interleaved repetitions, load average {:.2f} before; every byte checked; --help defines the numbers\n",
            asked->repetitions, load);
    }
    return 0;
}

}  // namespace muster
