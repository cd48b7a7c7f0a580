#include "io/convert/convert.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <set>

#include "base/log.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "io/arrays/byte_source.hpp"
#include "io/convert/source_files.hpp"
#include "io/dataset/file_ranks.hpp"
#include "io/dataset/format.hpp"

namespace muster {

namespace {

constexpr std::size_t piece_bytes = std::size_t{8} << 20;
constexpr std::size_t most_classes = std::size_t{1} << 31;

/// A split to convert.
struct opened_split {
    std::string name;
    std::unique_ptr<sample_source> source;
    std::vector<std::uint32_t> renumbered;  ///< the source's label to the dataset's; empty: they are the same
    source_facts const& facts() const { return source->facts(); }
};

void check(convert_request const& request) {
    expect(!request.splits.empty(), "a split to convert");
    if (!request.class_names.empty() && request.class_names.size() != request.classes)
        throw error(errc::usage,
                    fmt::format("{} class names for {} classes; give one a class", request.class_names.size(), request.classes));
}

std::vector<opened_split> open_all(convert_request const& request) {
    std::vector<opened_split> opened;
    for (split_source const& asked : request.splits)
        for (named_source& found : open_sources(asked, request.reading)) {
            for (opened_split const& other : opened)
                if (other.name == found.split)
                    throw error(errc::usage, fmt::format("{} and {} are both to be the split {}; name them, as train=… test=…",
                                                         other.facts().images, found.source->facts().images, found.split));
            opened.push_back({std::move(found.split), std::move(found.source), {}});
        }
    source_facts const& first = opened.front().facts();
    for (opened_split const& split : opened) {
        source_facts const& facts = split.facts();
        if (facts.shape != first.shape || facts.type != first.type)
            throw error(errc::usage,
                        fmt::format("{}: its images are {} of {}, those of {} are {} of {}; give splits of one dataset",
                                    facts.images, to_string(facts.shape), to_string(facts.type), first.images,
                                    to_string(first.shape), to_string(first.type)));
        if (facts.labelled != first.labelled)
            throw error(errc::usage,
                        fmt::format("{} has labels, and {} has none; give splits of one dataset",
                                    facts.labelled ? facts.images : first.images, facts.labelled ? first.images : facts.images));
    }
    return opened;
}

/// The contents decide; a name that contradicts them is warned about.
void warn_of_names(std::vector<std::string> const& files) {
    constexpr std::size_t looked_at = 64;
    for (std::size_t i = 0; i < std::min(files.size(), looked_at); ++i)
        if (bool const packed = byte_source(files[i]).compressed(); packed != files[i].ends_with(".gz"))
            spdlog::warn("{}: the contents are {}, against its name", files[i], packed ? "gzip data" : "no gzip data");
}

/// Every rank must have opened the same file: a stale copy on one node would make them write to different places.
void require_equal(communicator& ranks, opened_split const& split) {
    source_facts const& facts = split.facts();
    std::size_t const mine[] = {facts.samples,     facts.shape.channels, facts.shape.height,
                                facts.shape.width, bytes_of(facts.type), facts.classes};
    static constexpr char const* fields[] = {"samples", "channels", "rows", "columns", "bytes an element", "classes"};
    constexpr std::size_t count = std::size(fields);
    std::int64_t bounds[2 * count];
    for (std::size_t i = 0; i < count; ++i) {
        bounds[i] = static_cast<std::int64_t>(mine[i]);
        bounds[i + count] = -bounds[i];  // its maximum gives the minimum
    }
    ranks.allreduce("shapes", view_of(std::span(bounds)), reduction::max).wait();
    for (std::size_t i = 0; i < count; ++i)
        if (std::int64_t const least = -bounds[i + count]; bounds[i] != least)
            throw error(errc::invalid_data,
                        fmt::format("{}: the ranks see different files: {} {} and {} {}; give a path that is the "
                                    "same file on every node",
                                    facts.images, least, fields[i], bounds[i], fields[i]));
}

/// Splits whose sources name their classes: the same name is the same class in all of them.
void unite_class_names(convert_request& request, std::vector<opened_split>& splits) {
    std::vector<std::string> const& first = splits.front().facts().class_names;
    bool const all_named =
        std::all_of(splits.begin(), splits.end(), [](auto const& split) { return !split.facts().class_names.empty(); });
    if (!all_named || request.classes != 0) return;
    request.class_names = first;
    if (std::any_of(splits.begin(), splits.end(), [&](auto const& split) { return split.facts().class_names != first; })) {
        std::set<std::string> names;
        for (opened_split const& split : splits) names.insert(split.facts().class_names.begin(), split.facts().class_names.end());
        request.class_names.assign(names.begin(), names.end());
        for (opened_split& split : splits)
            for (std::string const& name : split.facts().class_names)
                split.renumbered.push_back(static_cast<std::uint32_t>(std::distance(names.begin(), names.find(name))));
    }
    request.classes = request.class_names.size();
}

/// The number of classes is an attribute of every split, and known before the first byte is written.
void settle_classes(convert_request& request, std::vector<opened_split>& splits, communicator& ranks) {
    if (!splits.front().facts().labelled) {
        if (request.classes != 0)
            throw error(errc::usage,
                        fmt::format("{} has no labels; leave out --classes and --class-names", splits.front().facts().images));
        return;
    }
    unite_class_names(request, splits);
    if (request.classes != 0) return;
    run_step(ranks, "reading labels", [&] {
        for (opened_split& split : splits)
            request.classes =
                std::max(request.classes,
                         split.facts().classes != 0 ? split.facts().classes : std::size_t{split.source->largest_label()} + 1);
        if (request.classes > most_classes)
            throw error(errc::invalid_data, fmt::format("{}: a label of {}: these are no classes; give the array of labels",
                                                        splits.front().facts().labels, request.classes - 1));
    });
}

std::vector<split_plan> plans_of(convert_request const& request, std::vector<opened_split> const& splits) {
    std::vector<split_plan> plans;
    for (opened_split const& split : splits) {
        source_facts const& facts = split.facts();
        split_plan& plan = plans.emplace_back();
        plan.split = split.name;
        plan.samples = facts.samples;
        plan.shape = facts.shape;
        plan.type = facts.type;
        plan.chunk_samples = request.chunk_samples;
        plan.gzip_level = request.gzip_level;
        plan.classes = facts.labelled ? request.classes : 0;
        plan.class_names = request.class_names;
        plan.source_images = facts.images;
        plan.source_labels = facts.labels;
    }
    return plans;
}

std::string identity_of(convert_request const& request, source_files const& files) {
    source_options const& how = request.reading;
    std::string text =
        fmt::format("{} {:016x} {} {} {} {} {} {} {} {}", version(), files.fingerprint(), to_string(how.format), how.images,
                    how.labels, static_cast<int>(how.order), how.coarse, how.channels, how.label_column,
                    how.resize ? fmt::format("{}x{}", how.resize->first, how.resize->second) : "");
    for (split_source const& split : request.splits) text += fmt::format("|{} {} {}", split.split, split.images, split.labels);
    for (std::string const& name : request.class_names) text += "|" + name;
    return text;
}

class converter {
  public:
    converter(std::vector<opened_split>& splits, dataset_writer& writer, communicator& ranks, convert_progress const& progress)
        : splits_(splits), writer_(writer), ranks_(ranks), progress_(progress) {
        for (std::size_t i = 0; i < splits_.size(); ++i)
            for (hyperslab const& run : writer_.share(i)) total_ += run.count * sample_bytes(i);
    }

    void split(std::size_t index) {
        std::vector<hyperslab> const pieces = pieces_of(index);
        auto rounds = static_cast<std::int64_t>(pieces.size());
        ranks_.allreduce("rounds of converting", view_of(std::span(&rounds, 1)), reduction::max).wait();
        for (std::size_t round = 0; round < static_cast<std::size_t>(rounds); ++round) {
            run_step(ranks_, "converting samples", [&] {
                if (round < pieces.size()) piece(index, pieces[round]);
            });
            if (progress_) progress_(bytes_, total_);
        }
        run_step(ranks_, "reading the end of the files to convert", [&] {
            if (!pieces.empty() && pieces.back().end() == splits_[index].facts().samples) splits_[index].source->finish();
        });
    }

  private:
    std::size_t sample_bytes(std::size_t index) const {
        split_plan const& plan = writer_.plans()[index];
        return plan.image_bytes() + plan.label_bytes();
    }

    /// This rank's part, in whole blocks of about 8 MiB.
    std::vector<hyperslab> pieces_of(std::size_t index) const {
        std::size_t const block = writer_.block_samples(index);
        std::size_t const step = block * std::max<std::size_t>(1, piece_bytes / (block * writer_.plans()[index].image_bytes()));
        std::vector<hyperslab> pieces;
        for (hyperslab const& run : writer_.share(index))
            for (std::size_t done = 0; done < run.count; done += step) pieces.push_back(intersect(run, {run.first + done, step}));
        return pieces;
    }

    void piece(std::size_t index, hyperslab rows) {
        opened_split& from = splits_[index];
        split_plan const& plan = writer_.plans()[index];
        images_.resize(rows.count * plan.image_bytes());
        numbers_.resize(rows.count);
        labels_.resize(rows.count * plan.label_bytes());
        from.source->read(rows, images_, numbers_);
        if (!labels_.empty()) store_labels(from, plan, rows.first);
        writer_.write(index, rows, images_, labels_);
        bytes_ += images_.size() + labels_.size();
    }

    void store_labels(opened_split const& from, split_plan const& plan, std::size_t first) {
        std::size_t const size = plan.label_bytes();
        for (std::size_t i = 0; i < numbers_.size(); ++i) {
            std::uint32_t label = numbers_[i];
            if (!from.renumbered.empty() && label < from.renumbered.size()) label = from.renumbered[label];
            if (label >= plan.classes) from.source->fail_label(first + i, label, plan.classes);
            std::memcpy(labels_.data() + i * size, &label, size);  // the least significant bytes
        }
    }

    std::vector<opened_split>& splits_;
    dataset_writer& writer_;
    communicator& ranks_;
    convert_progress const& progress_;
    std::vector<std::uint8_t> images_;
    std::vector<std::uint32_t> numbers_;
    std::vector<std::uint8_t> labels_;
    std::uint64_t bytes_ = 0;
    std::uint64_t total_ = 0;
};

}  // namespace

convert_report convert(convert_request const& request, convert_progress const& progress) {
    return convert(request, *alone(), progress);
}

convert_report convert(convert_request const& asked, communicator& ranks, convert_progress const& progress) {
    convert_request request = asked;
    if (request.classes == 0) request.classes = request.class_names.size();

    // All headers, and the number of classes, are known before the first byte is written.
    std::vector<opened_split> splits;
    run_step(ranks, "opening files to convert", [&] {
        check(request);
        splits = open_all(request);
    });
    for (opened_split const& split : splits) require_equal(ranks, split);
    std::vector<std::string> all_files;
    for (opened_split const& split : splits)
        for (std::string& file : split.source->files()) all_files.push_back(std::move(file));
    if (ranks.rank() == 0) warn_of_names(all_files);
    source_files files(std::move(all_files), ranks);
    settle_classes(request, splits, ranks);

    convert_report report;
    report.classes = request.classes;
    report.class_names = request.class_names;
    std::vector<split_plan> plans = plans_of(request, splits);
    for (split_plan const& plan : plans) {
        report.splits.push_back({plan.split, plan.samples, plan.shape, plan.type});
        report.bytes += static_cast<std::uint64_t>(plan.samples) * (plan.image_bytes() + plan.label_bytes());
    }
    if (request.dry_run) return report;
    if (request.digests) {
        files.compute_digests();
        for (std::size_t i = 0; i < splits.size(); ++i)
            plans[i].sources = files.lines(splits[i].source->files(), splits[i].facts().images);
    }
    if (request.resume) request.writer.identity = identity_of(request, files);
    dataset_writer writer(request.output, std::move(plans), request.writer, ranks);
    report.found_bytes = writer.found_bytes();
    converter work(splits, writer, ranks, progress);
    for (std::size_t i = 0; i < splits.size(); ++i) work.split(i);
    files.require_unchanged();
    writer.close();
    return report;
}

}  // namespace muster
