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

std::string shortened(std::vector<std::string> const& names) {
    constexpr std::size_t most = 5;
    return without_controls(join(std::span(names).first(std::min(names.size(), most)), ", ")) +
           (names.size() > most ? ", …" : "");
}

void check(convert_request const& request) {
    expect(!request.splits.empty(), "a split to convert");
    if (!request.class_names.empty() && request.class_names.size() != request.classes)
        throw error(errc::usage,
                    fmt::format("{} class names for {} classes; give one a class", request.class_names.size(), request.classes));
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
        throw error(
            errc::usage,
            fmt::format("{} names its columns ({}), and {} has no header; give splits of one form, or --header",
                        mine.empty() ? first.images : split.facts().images, shortened(mine.empty() ? first.columns : mine),
                        mine.empty() ? split.facts().images : first.images));
    if (!missing.empty() || !more.empty())
        throw error(
            errc::usage,
            fmt::format(
                "{} and {} have other columns:{}{}; leave them out with --drop, or give --columns", first.images,
                split.facts().images, missing.empty() ? "" : " only the first has " + shortened(missing),
                more.empty() ? "" : fmt::format("{} only the second has {}", missing.empty() ? "" : ",", shortened(more))));
    std::set<std::string> const different(mine.begin(), mine.end());
    if (different.size() != mine.size() || mine.size() != first.columns.size())
        throw error(errc::usage, fmt::format("{} and {} have columns of the same name in another order; give each its own name",
                                             first.images, split.facts().images));
    split.source->order_columns(first.columns);
}

/// Two arrays of as many samples are more likely one split's samples and labels.
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
                    throw error(errc::usage,
                                fmt::format("{} and {} are both to be the split {}; name them, as train=… test=…{}",
                                            opened[i].facts().images, found.source->facts().images, found.split,
                                            pair_advice(*sources[i], opened[i].facts(), asked, found.source->facts())));
            opened.push_back({std::move(found.split), std::move(found.source), {}});
            sources.push_back(&asked);
        }
    source_facts const& first = opened.front().facts();
    for (opened_split const& split : opened) {
        source_facts const& facts = split.facts();
        agree_on_columns(first, split);
        if (facts.shape != first.shape || facts.type != first.type)
            throw error(errc::usage,
                        fmt::format("{}: its samples are {} of {}, those of {} are {} of {}; give splits of one dataset",
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

/// Classes that other splits have and this one has no sample of: a folder or a label that is written in another way, often.
void note_lacking(opened_split& split, std::vector<std::string> const& lacking, std::vector<std::string> const& own = {}) {
    constexpr std::size_t most_told = 8;
    if (lacking.empty()) return;
    auto const in_lower_case = [](std::string text) {
        for (char& c : text)
            if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
        return text;
    };
    std::string near;
    for (std::string const& name : lacking)
        for (std::string const& other : own)
            if (near.empty() && in_lower_case(name) == in_lower_case(other))
                near = fmt::format("; '{}' here is another class than '{}'", other, name);
    auto const told = std::span(lacking).first(std::min(lacking.size(), most_told));
    split.source->add_note(fmt::format("no sample of the class{} {}{}, which another split has{}",
                                       lacking.size() == 1 ? "" : "es", join(told, ", "), lacking.size() > most_told ? ", …" : "",
                                       near));
}

/// Splits whose sources name their classes: the same name is the same class in all of them. Other names that were asked for take the
/// place of these, or say their order.
void unite_class_names(convert_request& request, std::vector<opened_split>& splits) {
    std::set<std::string> all;
    for (opened_split const& split : splits) all.insert(split.facts().class_names.begin(), split.facts().class_names.end());
    std::vector<std::string> const& first = splits.front().facts().class_names;
    bool const alike =
        std::all_of(splits.begin(), splits.end(), [&](auto const& split) { return split.facts().class_names == first; });
    std::vector<std::string> names = alike ? first : std::vector<std::string>(all.begin(), all.end());
    for (opened_split const& split : splits) {
        auto const& mine = split.facts().class_names;
        if (std::none_of(mine.begin(), mine.end(),
                         [&](auto const& name) { return std::find(first.begin(), first.end(), name) != first.end(); }))
            throw error(errc::usage, fmt::format("{} has the classes {}, and none of them is in {}; give splits of one dataset",
                                                 split.facts().images, shortened(mine), splits.front().facts().images));
    }
    if (request.classes != 0 && request.classes != names.size())
        throw error(errc::usage, fmt::format("{} classes are asked for, and the sources name {}: {}; give as many",
                                             request.classes, names.size(), shortened(names)));
    std::vector<std::string> const& wanted = request.class_names;
    if (!wanted.empty() &&
        std::set<std::string>(wanted.begin(), wanted.end()) == std::set<std::string>(names.begin(), names.end()))
        names = wanted;
    for (opened_split& split : splits) {
        if (split.facts().class_names == names) continue;
        auto const& own = split.facts().class_names;
        std::vector<std::string> lacking;
        std::ranges::copy_if(names, std::back_inserter(lacking),
                             [&](auto const& name) { return std::ranges::find(own, name) == own.end(); });
        note_lacking(split, lacking, own);
        for (std::string const& name : split.facts().class_names)
            split.renumbered.push_back(static_cast<std::uint32_t>(std::find(names.begin(), names.end(), name) - names.begin()));
    }
    if (wanted.empty()) request.class_names = std::move(names);
    request.classes = request.class_names.size();
}

/// Numbers of classes that no split has: gaps, or labels that begin with 1.
void note_gaps(std::vector<opened_split>& splits, std::vector<bool> const& present, std::size_t classes) {
    constexpr std::size_t most_told = 8;
    std::vector<std::string> missing;
    for (std::size_t label = 0; label < classes && missing.size() <= most_told; ++label)
        if (label >= present.size() || !present[label]) missing.push_back(std::to_string(label));
    if (missing.empty()) return;
    auto const count = missing.size();
    missing.resize(std::min(count, most_told));
    splits.front().source->add_note(
        fmt::format("no sample has the label{} {}{}: each counts as a class, as classes are numbered from 0 to the "
                    "largest label, {}",
                    count == 1 ? "" : "s", join(missing, ", "), count > most_told ? ", …" : "", classes - 1));
}

/// The labels that `all` have and `own` have not.
std::vector<std::string> lacking_labels(std::vector<bool> const& own, std::vector<bool> const& all) {
    std::vector<std::string> out;
    for (std::size_t label = 0; label < all.size(); ++label)
        if (all[label] && (label >= own.size() || !own[label])) out.push_back(std::to_string(label));
    return out;
}

/// Labels that are numbers: one rule for all splits, by what all of them hold. Returns whether they are targets.
bool number_classes(convert_request& request, std::vector<opened_split>& splits) {
    bool targets = request.reading.labels_are == label_kind::target;
    std::string why;
    std::vector<bool> present;
    std::vector<label_scan> scans;
    for (opened_split& split : splits) {
        if (split.facts().classes != 0) {
            request.classes = std::max(request.classes, split.facts().classes);
            continue;
        }
        label_scan const& found = scans.emplace_back(split.source->scan_labels());
        if (!found.no_class.empty() && why.empty()) why = fmt::format("{} in {}", found.no_class, split.facts().labels);
        request.classes = std::max(request.classes, std::size_t{found.largest} + 1);
        present.resize(std::max(present.size(), found.present.size()));
        for (std::size_t label = 0; label < found.present.size(); ++label)
            present[label] = present[label] || found.present[label];
    }
    if (!why.empty() && request.reading.labels_are == label_kind::number)
        throw error(errc::invalid_data,
                    fmt::format("labels that are no classes ({}); give --label-type float for targets of a regression", why));
    targets = targets || !why.empty();
    if (targets)
        request.classes = 0;
    else if (request.classes > most_classes)
        throw error(errc::invalid_data,
                    fmt::format("{}: a label of {}: these are no classes; give the array of labels, or --label-type "
                                "float for targets of a regression",
                                splits.front().facts().labels, request.classes - 1));
    for (opened_split& split : splits)
        if (targets) split.source->take_targets();
    if (targets || scans.size() < splits.size()) return targets;
    note_gaps(splits, present, request.classes);
    for (std::size_t i = 0; i < splits.size(); ++i) note_lacking(splits[i], lacking_labels(scans[i].present, present));
    return targets;
}

/// The number of classes is an attribute of every split, and known before the first byte is written. Returns whether the labels are targets.
bool settle_labels(convert_request& request, std::vector<opened_split>& splits, communicator& ranks) {
    if (!splits.front().facts().labelled) {
        if (request.classes != 0)
            throw error(errc::usage,
                        fmt::format("{} has no labels; leave out --classes and --class-names", splits.front().facts().images));
        return false;
    }
    opened_split const *named = nullptr, *numbered = nullptr;
    for (opened_split const& split : splits) (split.facts().class_names.empty() ? numbered : named) = &split;
    if (named != nullptr && numbered != nullptr)
        throw error(errc::usage,
                    fmt::format("{} names its classes ({}), and {} numbers them; give splits whose labels are of one kind, or "
                                "--label-type name",
                                named->facts().images, shortened(named->facts().class_names), numbered->facts().images));
    if (named != nullptr) {
        unite_class_names(request, splits);
        return false;
    }
    bool targets = false;
    if (request.classes == 0)
        run_step(ranks, "reading labels", [&] { targets = number_classes(request, splits); });
    else if (request.reading.labels_are == label_kind::target)
        throw error(errc::usage, "--label-type float with --classes or --class-names: targets have none; leave these out");
    return targets;
}

void require_text(std::vector<std::string> const& names) {
    for (std::string const& name : names)
        if (auto const at = not_utf8_at(name))
            throw error(errc::invalid_data, fmt::format("the class name '{}' is no UTF-8 (byte {}); give --class-names",
                                                        without_controls(name), *at + 1));
}

/// Leaves out what is damaged, each rank having looked at its part.
void leave_out_damaged(std::vector<opened_split>& splits, communicator& ranks) {
    for (opened_split& split : splits) {
        std::vector<std::int32_t> damaged(split.facts().samples, 0);
        hyperslab const mine = shard_of(damaged.size(), ranks.rank(), ranks.size());
        run_step(ranks, "looking for damaged pictures", [&] {
            if (!mine.empty()) split.source->look_at(mine, std::span(damaged).subspan(mine.first, mine.count));
        });
        ranks.allreduce("damaged pictures", view_of(std::span(damaged)), reduction::max).wait();
        split.source->leave_out(damaged);
    }
}

/// Names that an attribute of HDF5 can hold, which has at most 64 KiB; else none.
std::vector<std::string> kept_columns(std::vector<std::string> const& names) {
    constexpr std::size_t most_bytes = 60'000;
    std::size_t longest = 1;
    for (std::string const& name : names) {
        if (not_utf8_at(name)) return {};
        longest = std::max(longest, name.size());
    }
    return names.size() * longest <= most_bytes ? names : std::vector<std::string>();
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
        plan.columns = kept_columns(facts.columns);
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

/// What is counted while samples are read is added up over the ranks.
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
        splits = open_all(request);
    });
    for (opened_split const& split : splits) require_equal(ranks, split);
    if (request.reading.skip_damaged) leave_out_damaged(splits, ranks);
    std::vector<std::string> all_files;
    for (opened_split const& split : splits)
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
