#include "io/convert/settle_labels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "base/letters.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "io/dataset/file_ranks.hpp"

namespace muster {

namespace {

constexpr std::size_t most_classes = std::size_t{1} << 31;
constexpr std::size_t most_told = 8;  // names in a note

/// Classes that other splits have and this one has no sample of: a folder or a label that is written in another way, often.
void note_lacking(opened_split& split, std::vector<std::string> const& lacking, std::vector<std::string> const& own = {}) {
    if (lacking.empty()) return;
    std::map<std::string, std::string> by_lower_case;
    for (std::string const& name : own) by_lower_case.emplace(lower_case(name), name);
    std::string near;
    for (std::string const& name : lacking)
        if (auto const other = by_lower_case.find(lower_case(name)); other != by_lower_case.end()) {
            near = fmt::format("; '{}' here is another class than '{}'", other->second, name);
            break;
        }
    split.source->add_note(fmt::format("no sample of the class{} {}, which another split has{}", lacking.size() == 1 ? "" : "es",
                                       some_of(lacking, most_told), near));
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
            throw_error(errc::usage, "{} has the classes {}, and none of them is in {}; give splits of one dataset",
                        split.facts().images, shortened(mine), splits.front().facts().images);
    }
    if (request.classes != 0 && request.classes != names.size())
        throw_error(errc::usage, "{} classes are asked for, and the sources name {}: {}; give as many", request.classes,
                    names.size(), shortened(names));
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
    std::vector<std::string> missing;
    auto const known = std::min(classes, std::size_t{label_scan::most_present});
    for (std::size_t label = 0; label < known && missing.size() <= most_told; ++label)
        if (label >= present.size() || !present[label]) missing.push_back(std::to_string(label));
    if (missing.empty()) return;
    splits.front().source->add_note(
        fmt::format("no sample has the label{} {}: each counts as a class, as classes are numbered from 0 to the "
                    "largest label, {}",
                    missing.size() == 1 ? "" : "s", some_of(missing, most_told), classes - 1));
}

/// The labels that `all` have and `own` have not: those that a message names, and one more.
std::vector<std::string> lacking_labels(std::vector<bool> const& own, std::vector<bool> const& all) {
    std::vector<std::string> out;
    for (std::size_t label = 0; label < all.size() && out.size() <= most_told; ++label)
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
        throw_error(errc::invalid_data, "labels that are no classes ({}); give --label-type float for targets of a regression",
                    why);
    targets = targets || !why.empty();
    if (targets)
        request.classes = 0;
    else if (request.classes > most_classes)
        throw_error(errc::invalid_data,
                    "{}: a label of {}: these are no classes; give the array of labels, or --label-type float for targets of a "
                    "regression",
                    splits.front().facts().labels, request.classes - 1);
    for (opened_split& split : splits)
        if (targets) split.source->take_targets();
    if (targets || scans.size() < splits.size()) return targets;
    note_gaps(splits, present, request.classes);
    for (std::size_t i = 0; i < splits.size(); ++i) note_lacking(splits[i], lacking_labels(scans[i].present, present));
    return targets;
}

}  // namespace

std::string shortened(std::vector<std::string> const& names) {
    return without_controls(some_of(names));
}

bool settle_labels(convert_request& request, std::vector<opened_split>& splits, communicator& ranks) {
    if (!splits.front().facts().labelled) {
        if (request.classes != 0)
            throw_error(errc::usage, "{} has no labels; leave out --classes and --class-names", splits.front().facts().images);
        return false;
    }
    opened_split const *named = nullptr, *numbered = nullptr;
    for (opened_split const& split : splits) (split.facts().class_names.empty() ? numbered : named) = &split;
    if (named != nullptr && numbered != nullptr)
        throw_error(
            errc::usage,
            "{} names its classes ({}), and {} numbers them; give splits whose labels are of one kind, or --label-type name",
            named->facts().images, shortened(named->facts().class_names), numbered->facts().images);
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

}  // namespace muster
