// A source of samples, whatever its format: says how many there are and of which form, and reads any of them into memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/dataset/image_shape.hpp"
#include "io/hdf5/element_type.hpp"
#include "io/hdf5/hyperslab.hpp"

namespace muster {

struct source_facts {
    std::size_t samples = 0;
    image_shape shape;
    element_type type = element_type::u8;
    bool labelled = true;
    std::size_t classes = 0;               ///< 0: the labels are to be counted
    std::vector<std::string> class_names;  ///< as the source tells them; may be empty
    std::vector<std::string> columns;      ///< of a table: what its samples' elements are called; may be empty
    std::string images;                    ///< names of files or folders, for people
    std::string labels;
    bool operator==(source_facts const&) const = default;
};

/// Holds what people must know of a source beyond its samples.
struct source_notes {
    /// Holds the number of files, and the first few of their names.
    struct some {
        std::size_t count = 0;
        std::vector<std::string> names;
        void add(std::string const& name) {
            constexpr std::size_t most = 5;
            if (count++ < most) names.push_back(name);
        }
        bool operator==(some const&) const = default;
    };
    some left_out;  ///< files that are no pictures by their names
    some damaged;   ///< pictures left out by leave_out()
    some turned;    ///< pictures read or looked at so far whose Exif orientation was not applied
    some rounded;   ///< cells read or looked at so far whose whole number the samples' type does not hold exactly
    std::vector<std::string> words;  ///< anything else, a line each
    bool operator==(source_notes const&) const = default;
};

/// Holds what unnamed labels are, as far as all of them tell.
struct label_scan {
    std::uint32_t largest = 0;
    static constexpr std::uint32_t most_present = 1U << 24;
    std::vector<bool> present;  ///< by label, of the first 16,777,216
    std::string
        no_class;  ///< the first that is a target of a regression and no class, as "3.5"; empty: all are whole numbers from 0
    bool operator==(label_scan const&) const = default;
    void add(std::uint32_t label) {
        largest = std::max(largest, label);
        if (label >= most_present) return;
        if (label >= present.size()) present.resize(label + 1);
        present[label] = true;
    }
};

/// One split. Not thread safe. Opening has checked headers against the lengths of the files; no memory is asked for by what a
/// header promises before. Errors are those of the format: errc::invalid_data naming file and place, errc::not_found, errc::io.
class sample_source {
  public:
    virtual ~sample_source() = default;
    source_facts const& facts() const noexcept { return facts_; }

    source_notes const& notes() const noexcept { return notes_; }
    void add_note(std::string words) { notes_.words.push_back(std::move(words)); }

    /// The files it reads, in an order that changes by leave_out() alone.
    virtual std::vector<std::string> files() const = 0;

    /// The elements of `rows` (planes, rows, columns), in memory's byte order, and their labels, where it has some. Rows must not
    /// lie before those read so far: a compressed stream goes forward only.
    virtual void read(hyperslab rows, std::span<std::uint8_t> images, std::span<std::uint32_t> labels) = 0;

    /// Checks what follows the last sample: throws if something is wrong with it.
    virtual void finish() {}

    /// Needs facts().classes to be 0, and labels.
    virtual label_scan scan_labels() { return {}; }

    /// Makes labels the targets of a regression: read() then gives the bits of their float32. Needs facts().classes to be 0.
    virtual void take_targets() {}

    /// Puts the columns of a table into the order of `names`, which are facts().columns in another order.
    virtual void order_columns(std::vector<std::string> const&) {}

    /// Looks at samples before they are read: where `damaged` is empty at their headers, with the errors of read(); else at all of
    /// them, and a damaged one sets its place there to 1.
    virtual void look_at(hyperslab, std::span<std::int32_t>) {}

    /// Leaves out the samples whose place is 1, before any is read; there is at least one other.
    virtual void leave_out(std::span<std::int32_t const>) {}

    /// An error that tells where the label of a sample stands.
    [[noreturn]] virtual void fail_label(std::size_t sample, std::uint32_t label, std::size_t classes) const;

  protected:
    source_facts facts_;
    source_notes notes_;
};

/// "a, b, c, d, e, …": the first names of many, for a message. Pure.
std::string some_of(std::span<std::string const> names, std::size_t most = 5);

enum class source_format { automatic, idx, cifar10, cifar100, npy, npz, images, csv, hdf5 };
std::string_view to_string(source_format format) noexcept;
std::optional<source_format> parse_source_format(std::string_view name) noexcept;

/// The order of the dimensions of samples that have three.
enum class dimension_order { automatic, chw, hwc };

/// Says what labels are: numbers of classes, names of classes, targets of a regression.
enum class label_kind { number, name, target };

/// Says how sources are read.
struct source_options {
    source_format format = source_format::automatic;
    std::string images;  ///< of npz and hdf5: the array inside; empty: by the usual names
    std::string labels;
    dimension_order order = dimension_order::automatic;
    std::optional<element_type> type;                           ///< of csv; float32 by default
    bool coarse = false;                                        ///< of cifar100: the 20 coarse labels
    std::optional<std::pair<std::size_t, std::size_t>> resize;  ///< of images: height and width
    std::size_t channels = 0;                                   ///< of images: 1 gray, 3 RGB; 0: as the first one has
    bool skip_damaged = false;                                  ///< of images: those that cannot be read or decoded are left out
    std::string label_column;                                   ///< of csv: its name, its number from 1, or "none"
    std::optional<label_kind> labels_are;                       ///< nothing: as they look
    std::vector<std::string> columns;  ///< of csv: names or numbers of those to take, in this order; empty: all
    std::vector<std::string> drop;     ///< of csv: those to leave out
    std::optional<bool> header;        ///< of csv: the first line names the columns
    bool operator==(source_options const&) const = default;
};

/// One split to open: a file or a folder, and the labels where another file has them.
struct split_source {
    std::string split;   ///< "train"; empty: as the source says, else "train"
    std::string images;  ///< path
    std::string labels;  ///< path; empty: in the same file or folder, or none
    bool operator==(split_source const&) const = default;
};

/// A source and the name of its split.
struct named_source {
    std::string split;
    std::unique_ptr<sample_source> source;
};

/// Opens what is asked for: a folder or an archive may hold several splits. Throws errc::usage where it cannot detect the format.
std::vector<named_source> open_sources(split_source const& asked, source_options const& options);

}  // namespace muster
