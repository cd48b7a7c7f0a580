#include "io/convert/convert.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <set>
#include <tuple>

#include "base/log.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "base/version.hpp"
#include "io/arrays/byte_source.hpp"
#include "io/convert/settle_labels.hpp"
#include "io/convert/source_files.hpp"
#include "io/dataset/file_ranks.hpp"
#include "io/dataset/format.hpp"

namespace muster {

namespace {

constexpr std::size_t piece_bytes = std::size_t{8} << 20;

void check(convert_request const& request) {
    expect(!request.splits.empty(), "a split to convert");
    if (!request.class_names.empty() && request.class_names.size() != request.classes)
        throw_error(errc::usage, "{} class names for {} classes; give one a class", request.class_names.size(), request.classes);
}

/// Columns are the same by their names, wherever they stand.
void agree_on_columns(source_facts const& first, opened_split const& split) {
    std::vector<std::string> const& mine = split.facts().columns;
    if (mine == first.columns) return;
    std::vector<std::string> missing, more;
    for (auto const& [from, in, to] : {std::tuple(&first.columns, &mine, &missing), std::tuple(&mine, &first.columns, &more)})
        for (std::string const& name : *from)
            if (std::find(in->begin(), in->end(), name) == in->end()) to->push_back(name);
    if (mine.empty() || first.columns.empty())
        throw_error(errc::usage, "{} names its columns ({}), and {} has no header; give splits of one form, or --header",
                    mine.empty() ? first.images : split.facts().images, shortened(mine.empty() ? first.columns : mine),
                    mine.empty() ? split.facts().images : first.images);
    if (!missing.empty() || !more.empty())
        throw_error(errc::usage, "{} and {} have other columns:{}{}; leave them out with --drop, or give --columns", first.images,
                    split.facts().images, missing.empty() ? "" : " only the first has " + shortened(missing),
                    more.empty() ? "" : fmt::format("{} only the second has {}", missing.empty() ? "" : ",", shortened(more)));
    std::set<std::string> const different(mine.begin(), mine.end());
    if (different.size() != mine.size() || mine.size() != first.columns.size())
        throw_error(errc::usage, "{} and {} have columns of the same name in another order; give each its own name", first.images,
                    split.facts().images);
    split.source->order_columns(first.columns);
}

/// Two arrays of the same number of samples are more likely one split's samples and labels.
std::string pair_advice(split_source const& first, source_facts const& facts, split_source const& second,
                        source_facts const& other) {
    auto const is_array = [](split_source const& one) { return one.labels.empty() && one.images.ends_with(".npy"); };
    if (!is_array(first) || !is_array(second) || facts.samples != other.samples) return {};
    return fmt::format("; or, where {} holds the labels, give {},{}", second.images, first.images, second.images);
}

std::vector<opened_split> open_all(convert_request const& request) {
    std::vector<opened_split> opened;
    std::vector<split_source const*> sources;  // of each that is opened
    for (split_source const& asked : request.splits)
        for (named_source& found : open_sources(asked, request.reading)) {
            for (std::size_t i = 0; i < opened.size(); ++i)
                if (opened[i].name == found.split)
                    throw_error(errc::usage, "{} and {} are both to be the split {}; name them, as train=… test=…{}",
                                opened[i].facts().images, found.source->facts().images, found.split,
                                pair_advice(*sources[i], opened[i].facts(), asked, found.source->facts()));
            opened.push_back({std::move(found.split), std::move(found.source), {}});
            sources.push_back(&asked);
        }
    source_facts const& first = opened.front().facts();
    for (opened_split const& split : opened) {
        source_facts const& facts = split.facts();
        agree_on_columns(first, split);
        if (facts.shape != first.shape || facts.type != first.type)
            throw_error(errc::usage, "{}: its samples are {} of {}, those of {} are {} of {}; give splits of one dataset",
                        facts.images, to_string(facts.shape), to_string(facts.type), first.images, to_string(first.shape),
                        to_string(first.type));
        if (facts.labelled != first.labelled)
            throw_error(errc::usage, "{} has labels, and {} has none; give splits of one dataset",
                        facts.labelled ? facts.images : first.images, facts.labelled ? first.images : facts.images);
    }
    return opened;
}

/// The one source, opened for each part of it: of a compressed one each reads its own way forward.
std::vector<opened_split> open_parts(convert_request const& request) {
    std::vector<opened_split> opened;
    for (split_part const& part : request.parts) {
        auto found = open_sources(request.splits.front(), request.reading);
        if (request.splits.size() != 1 || found.size() != 1)
            throw_error(errc::usage, "--split divides one source, and {}; give one of them, or leave out --split",
                        request.splits.size() != 1
                            ? fmt::format("{} are given", request.splits.size())
                            : fmt::format("{} has the splits {} and {} already", found.front().source->facts().images,
                                          found[0].split, found[1].split));
        opened.push_back({part.name, std::move(found.front().source), {}});
    }
    return opened;
}

/// Deals the samples out, those that are left.
void divide(convert_request const& request, std::vector<opened_split>& splits) {
    if (request.parts.empty()) return;
    auto rows = choose_rows(counts_of_parts(request.parts, splits.front().facts().samples), request.seed);
    for (std::size_t i = 0; i < splits.size(); ++i)
        splits[i].source = selected_rows(std::move(splits[i].source), std::move(rows[i]), i == 0);
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
            throw_error(errc::invalid_data,
                        "{}: the ranks see different files: {} {} and {} {}; give a path that is the same file on every node",
                        facts.images, least, fields[i], bounds[i], fields[i]);
}

void require_text(std::vector<std::string> const& names) {
    for (std::string const& name : names)
        if (auto const at = not_utf8_at(name))
            throw_error(errc::invalid_data, "the class name '{}' is no UTF-8 (byte {}); give --class-names",
                        without_controls(name), *at + 1);
}

/// Leaves out what is damaged, each rank having looked at its part. `is_one`: the splits are parts of one source, which is looked at once.
void leave_out_damaged(std::vector<opened_split>& splits, bool is_one, communicator& ranks) {
    std::vector<std::int32_t> damaged;
    for (opened_split& split : splits) {
        if (is_one && !damaged.empty()) {
            split.source->leave_out(damaged);
            continue;
        }
        damaged.assign(split.facts().samples, 0);
        hyperslab const mine = shard_of(damaged.size(), ranks.rank(), ranks.size());
        run_step(ranks, "looking for damaged pictures", [&] {
            if (!mine.empty()) split.source->look_at(mine, std::span(damaged).subspan(mine.first, mine.count));
        });
        ranks.allreduce("damaged pictures", view_of(std::span(damaged)), reduction::max).wait();
        split.source->leave_out(damaged);
    }
}

/// Names that an attribute of HDF5 can hold, which has at most 64 KiB; else none, and a note.
std::vector<std::string> kept_columns(sample_source& source) {
    constexpr std::size_t most_bytes = 60'000;
    std::vector<std::string> const& names = source.facts().columns;
    std::size_t longest = 1;
    bool is_text = true;
    for (std::string const& name : names) {
        is_text = is_text && !not_utf8_at(name);
        longest = std::max(longest, name.size());
    }
    if (is_text && names.size() * longest <= most_bytes) return names;
    source.add_note(is_text ? "the columns' names are too long to keep" : "the columns' names are no UTF-8, and not kept");
    return {};
}

std::vector<split_plan> plans_of(convert_request const& request, std::vector<opened_split> const& splits, bool targets) {
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
        plan.targets = targets;
        plan.class_names = request.class_names;
        plan.columns = kept_columns(*split.source);
        plan.source_images = facts.images;
        plan.source_labels = facts.labels;
    }
    return plans;
}

std::string identity_of(convert_request const& request, source_files const& files) {
    source_options const& how = request.reading;
    std::string text =
        fmt::format("{} {:016x} {} {} {} {} {} {} {} {} {} {} {} {}", version(), files.fingerprint(), to_string(how.format),
                    how.images, how.labels, static_cast<int>(how.order), how.coarse, how.channels, how.label_column,
                    how.resize ? fmt::format("{}x{}", how.resize->first, how.resize->second) : "", how.skip_damaged,
                    how.labels_are ? static_cast<int>(*how.labels_are) : -1, join(how.columns, ","), join(how.drop, ","));
    for (split_source const& split : request.splits) text += fmt::format("|{} {} {}", split.split, split.images, split.labels);
    for (split_part const& part : request.parts) text += fmt::format("|{}={} {}", part.name, part.fraction, request.seed);
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
            if (!plan.targets && label >= plan.classes) from.source->fail_label(first + i, label, plan.classes);
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

/// Adds up over the ranks what was counted while samples were read.
void take_notes(convert_report& report, std::vector<opened_split> const& splits, communicator& ranks) {
    std::vector<std::int64_t> counts;
    for (opened_split const& split : splits) {
        counts.push_back(static_cast<std::int64_t>(split.source->notes().turned.count));
        counts.push_back(static_cast<std::int64_t>(split.source->notes().rounded.count));
    }
    ranks.allreduce("turned pictures and rounded numbers", view_of(std::span(counts)), reduction::sum).wait();
    for (std::size_t i = 0; i < splits.size(); ++i) {
        report.splits[i].notes = splits[i].source->notes();
        report.splits[i].notes.turned.count = static_cast<std::size_t>(counts[2 * i]);
        report.splits[i].notes.rounded.count = static_cast<std::size_t>(counts[2 * i + 1]);
    }
}

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
        splits = request.parts.empty() ? open_all(request) : open_parts(request);
    });
    for (opened_split const& split : splits) require_equal(ranks, split);
    bool const divided = !request.parts.empty();
    if (request.reading.skip_damaged) leave_out_damaged(splits, divided, ranks);
    run_step(ranks, "dividing the samples", [&] { divide(request, splits); });
    std::vector<std::string> all_files;
    for (opened_split const& split : std::span(splits).first(divided ? 1 : splits.size()))
        for (std::string& file : split.source->files()) all_files.push_back(std::move(file));
    if (ranks.rank() == 0) warn_of_names(all_files);
    source_files files(std::move(all_files), ranks);
    bool const targets = settle_labels(request, splits, ranks);
    require_text(request.class_names);

    convert_report report;
    report.classes = request.classes;
    report.class_names = request.class_names;
    report.targets = targets;
    std::vector<split_plan> plans = plans_of(request, splits, targets);
    for (split_plan const& plan : plans) {
        report.splits.push_back({plan.split, plan.samples, plan.shape, plan.type, {}});
        report.bytes += static_cast<std::uint64_t>(plan.samples) * (plan.image_bytes() + plan.label_bytes());
    }
    if (request.dry_run) {
        run_step(ranks, "looking at the files to convert", [&] {
            for (opened_split const& split : splits)
                if (hyperslab const mine = shard_of(split.facts().samples, ranks.rank(), ranks.size()); !mine.empty())
                    split.source->look_at(mine, {});
        });
        take_notes(report, splits, ranks);
        return report;
    }
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
    take_notes(report, splits, ranks);
    return report;
}

}  // namespace muster
