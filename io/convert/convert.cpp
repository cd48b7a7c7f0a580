#include "io/convert/convert.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/log.hpp"
#include "io/convert/idx.hpp"
#include "io/dataset/file_ranks.hpp"
#include "io/dataset/format.hpp"

namespace muster {

namespace {

constexpr std::size_t piece_bytes = std::size_t{8} << 20;

/// Both files of a split, open and checked.
struct source {
    explicit source(idx_pair const& pair) : images(pair.images, idx_kind::images), labels(pair.labels, idx_kind::labels) {
        require_pair(images, labels);
    }
    idx_reader images;
    idx_reader labels;
};

/// The contents decide; a name that contradicts them is warned about.
void warn_of_name(idx_reader const& file) {
    if (file.path().ends_with(".gz") != file.compressed())
        spdlog::warn("{}: the contents are {}, against its name", file.path(), file.compressed() ? "gzip data" : "no gzip data");
}

void check_labels(idx_reader const& file, std::size_t first, std::span<std::uint8_t const> labels, std::size_t classes) {
    for (std::size_t i = 0; i < labels.size(); ++i)
        if (labels[i] >= classes)
            file.fail({file.offset_of(first + i), "label", fmt::format("{} for item {}", labels[i], first + i),
                       fmt::format("below {}, the number of classes", classes),
                       "give the right --classes, or another file of labels"});
}

/// Every rank must have opened the same file: a stale copy on one node would make them create different arrays.
void require_equal(communicator& ranks, idx_pair const& pair, source const& opened) {
    image_shape const shape = opened.images.shape();
    std::size_t const mine[4] = {opened.images.items(), shape.channels, shape.height, shape.width};
    std::int64_t bounds[8];
    for (std::size_t i = 0; i < 4; ++i) {
        bounds[i] = static_cast<std::int64_t>(mine[i]);
        bounds[i + 4] = -bounds[i];  // its maximum gives the minimum
    }
    ranks.allreduce("shapes", view_of(std::span(bounds)), reduction::max).wait();
    static constexpr char const* fields[] = {"samples", "channels", "rows", "columns"};
    for (std::size_t i = 0; i < 4; ++i)
        if (std::int64_t const least = -bounds[i + 4]; bounds[i] != least)
            throw error(errc::invalid_data,
                        fmt::format("{}: the ranks see different files: {} {} and {} {}; give a path that is the "
                                    "same file on every node",
                                    pair.images, least, fields[i], bounds[i], fields[i]));
}

class converter {
  public:
    converter(convert_request const& request, communicator& ranks, convert_progress const& progress, std::uint64_t total)
        : request_(request), ranks_(ranks), progress_(progress), total_(total), writer_(request.output, request.writer, ranks) {}

    void split(idx_pair const& pair, source& opened) {
        writer_.begin({pair.split, opened.images.items(), opened.images.shape(), request_.chunk_samples});
        hyperslab const mine = writer_.share();
        hyperslab const longest = shard_of_blocks(opened.images.items(), writer_.block_samples(), 0, ranks_.size());
        std::size_t const block_bytes = writer_.block_samples() * opened.images.item_bytes();
        std::size_t const step = writer_.block_samples() * std::max<std::size_t>(1, piece_bytes / block_bytes);
        for (std::size_t done = 0; done < longest.count; done += step) {
            hyperslab const rows = intersect(mine, {mine.first + done, step});
            run_step(ranks_, "reading samples to convert", [&] { read(opened, rows); });
            writer_.write(rows, images_, labels_);
            bytes_ += images_.size() + labels_.size();
            if (progress_) progress_(bytes_, total_);
        }
        run_step(ranks_, "reading the end of the files to convert", [&] {
            if (mine.empty() || mine.end() != opened.images.items()) return;
            opened.images.finish();
            opened.labels.finish();
        });
    }

    void end(split_facts const& facts) { writer_.end(facts); }
    void close() { writer_.close(); }

  private:
    void read(source& opened, hyperslab rows) {
        images_.resize(rows.count * opened.images.item_bytes());
        labels_.resize(rows.count);
        if (rows.empty()) return;
        opened.images.skip_to(rows.first);
        opened.labels.skip_to(rows.first);
        opened.images.read(images_);
        opened.labels.read(labels_);
        if (request_.classes != 0) check_labels(opened.labels, rows.first, labels_, request_.classes);
    }

    convert_request const& request_;
    communicator& ranks_;
    convert_progress const& progress_;
    std::uint64_t total_;
    dataset_writer writer_;
    std::vector<std::uint8_t> images_;
    std::vector<std::uint8_t> labels_;
    std::uint64_t bytes_ = 0;
};

void check(convert_request const& request) {
    expect(!request.splits.empty(), "a split to convert");
    if (request.classes > 256)
        throw error(errc::usage, fmt::format("{} classes: a label is one byte; give 1 to 256", request.classes));
    if (!request.class_names.empty() && request.class_names.size() != request.classes)
        throw error(errc::usage,
                    fmt::format("{} class names for {} classes; give one a class", request.class_names.size(), request.classes));
}

std::vector<std::unique_ptr<source>> open_all(convert_request const& request) {
    std::vector<std::unique_ptr<source>> sources;
    for (idx_pair const& pair : request.splits) sources.push_back(std::make_unique<source>(pair));
    idx_reader const& first = sources.front()->images;
    for (auto const& opened : sources)
        if (opened->images.shape() != first.shape())
            throw error(errc::usage, fmt::format("{}: its images are {}, those of {} are {}; give splits of one dataset",
                                                 opened->images.path(), to_string(opened->images.shape()), first.path(),
                                                 to_string(first.shape())));
    return sources;
}

/// The number of classes is an attribute of every split, so that the labels of all are read first; they are few bytes.
std::size_t count_classes(convert_request const& request) {
    std::uint8_t largest = 0;
    for (idx_pair const& pair : request.splits) {
        idx_reader labels(pair.labels, idx_kind::labels);
        std::vector<std::uint8_t> piece(std::min(labels.items(), piece_bytes));
        while (labels.position() < labels.items()) {
            std::span<std::uint8_t> const part(piece.data(), std::min(piece.size(), labels.items() - labels.position()));
            labels.read(part);
            largest = std::max(largest, *std::max_element(part.begin(), part.end()));
        }
    }
    return std::size_t{largest} + 1;
}

/// Bytes of images and labels that this rank will write.
std::uint64_t share_bytes(std::vector<std::unique_ptr<source>> const& sources, communicator& ranks) {
    std::uint64_t bytes = 0;
    for (auto const& opened : sources) {
        std::size_t const block = format::block_samples(opened->images.shape());
        hyperslab const mine = shard_of_blocks(opened->images.items(), block, ranks.rank(), ranks.size());
        bytes += mine.count * (opened->images.item_bytes() + 1);
    }
    return bytes;
}

}  // namespace

convert_report convert(convert_request const& request, convert_progress const& progress) {
    return convert(request, *alone(), progress);
}

convert_report convert(convert_request const& asked, communicator& ranks, convert_progress const& progress) {
    convert_request request = asked;
    if (request.classes == 0) request.classes = request.class_names.size();

    // All headers, and the number of classes, are known before the first byte is written.
    std::vector<std::unique_ptr<source>> sources;
    run_step(ranks, "opening files to convert", [&] {
        check(request);
        sources = open_all(request);
    });
    for (std::size_t i = 0; i < sources.size(); ++i) {
        require_equal(ranks, request.splits[i], *sources[i]);
        if (ranks.rank() != 0) continue;
        warn_of_name(sources[i]->images);
        warn_of_name(sources[i]->labels);
    }
    if (request.classes == 0) run_step(ranks, "reading labels", [&] { request.classes = count_classes(request); });

    convert_report report;
    report.classes = request.classes;
    converter work(request, ranks, progress, share_bytes(sources, ranks));
    for (std::size_t i = 0; i < sources.size(); ++i) {
        idx_pair const& pair = request.splits[i];
        idx_reader const& images = sources[i]->images;
        work.split(pair, *sources[i]);
        work.end({report.classes, request.class_names, std::filesystem::path(pair.images).filename().string(),
                  std::filesystem::path(pair.labels).filename().string()});
        report.splits.push_back({pair.split, images.items(), images.shape()});
        report.bytes += static_cast<std::uint64_t>(images.items()) * (images.item_bytes() + 1);
    }
    work.close();
    return report;
}

}  // namespace muster
