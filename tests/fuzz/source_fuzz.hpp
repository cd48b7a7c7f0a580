// Bytes as a file to convert: opens them as a source and reads all samples, in two parts.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "io/sources/sample_source.hpp"

namespace muster::fuzz {

/// Aborts unless the bytes are read, or refused by an error that says something. A sample larger than 4 MiB is not read: that a
/// compressed stream could hold it shows only while it is read.
inline void read_source(std::span<std::uint8_t const> bytes, source_options const& how) {
    static unique_fd const file(::memfd_create("fuzz", MFD_CLOEXEC));
    if (::ftruncate(file.get(), 0) != 0 ||
        ::pwrite(file.get(), bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
        return;
    constexpr std::size_t most_bytes = std::size_t{1} << 22;
    try {
        for (named_source& each : open_sources({"", "/proc/self/fd/" + std::to_string(file.get()), ""}, how)) {
            sample_source& from = *each.source;
            source_facts const& facts = from.facts();
            std::size_t const size = facts.shape.elements() * bytes_of(facts.type);
            if (facts.labelled && facts.classes == 0) from.scan_labels();
            if (size > most_bytes) continue;
            std::size_t const step = std::max<std::size_t>(1, most_bytes / size);
            std::vector<std::uint8_t> images;
            std::vector<std::uint32_t> labels;
            for (std::size_t first = facts.samples / 3; first < facts.samples; first += step) {
                std::size_t const count = std::min(step, facts.samples - first);
                images.resize(count * size);
                labels.resize(count);
                from.read({first, count}, images, labels);
                for (std::uint32_t const label : labels)
                    if (facts.labelled && facts.classes != 0 && !facts.class_names.empty() && label >= 65536) std::abort();
            }
            from.finish();
        }
    } catch (error const& e) {
        bool const known =
            e.code() == errc::invalid_data || e.code() == errc::usage || e.code() == errc::not_found || e.code() == errc::library;
        if (!known || std::string(e.what()).size() < 20) std::abort();
    }
}

}  // namespace muster::fuzz
