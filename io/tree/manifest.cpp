#include "io/tree/manifest.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>

#include "base/error.hpp"
#include "base/process/files.hpp"
#include "base/text.hpp"
#include "io/dataset/checksum.hpp"
#include "io/tree/chunk_plan.hpp"
#include "io/tree/folder_files.hpp"

namespace muster {

namespace {

constexpr char journal_name[] = "journal";

struct journal_header {
    char magic[8] = {'m', 's', 't', 'g', 'j', 'n', 'l', '2'};
    std::uint64_t chunk_bytes = 0;
    std::uint64_t list_bytes = 0;
    std::uint64_t list_checksum = 0;
};

std::uint64_t checksum_of(std::string_view text) {
    return xxh3_64(std::as_bytes(std::span(text)));
}

template <typename T>
std::string_view bytes_of(std::span<T const> values) {
    return {reinterpret_cast<char const*>(values.data()), values.size_bytes()};
}

}  // namespace

std::optional<journal_contents> read_journal(int state) {
    auto const bytes = read_whole_file(state, journal_name);
    journal_header head;
    if (!bytes || bytes->size() < sizeof head) return std::nullopt;
    std::memcpy(&head, bytes->data(), sizeof head);
    std::string_view rest = std::string_view(*bytes).substr(sizeof head);
    if (std::memcmp(head.magic, journal_header().magic, sizeof head.magic) != 0 || rest.size() < head.list_bytes ||
        head.chunk_bytes == 0 || checksum_of(rest.substr(0, head.list_bytes)) != head.list_checksum)
        return std::nullopt;
    journal_contents out{head.chunk_bytes, list_of_bytes(rest.substr(0, head.list_bytes)), {}};
    rest.remove_prefix(head.list_bytes);
    out.records.resize(rest.size() / sizeof(journal_record));
    std::memcpy(out.records.data(), rest.data(), out.records.size() * sizeof(journal_record));
    std::erase_if(out.records, [&](journal_record const& r) { return r.file >= out.list.files.size(); });
    return out;
}

journal::journal(int state, journal_contents const& start) {
    std::string const list = bytes_of_list(start.list);
    journal_header head;
    head.chunk_bytes = start.chunk_bytes;
    head.list_bytes = list.size();
    head.list_checksum = checksum_of(list);
    std::string bytes(bytes_of(std::span<journal_header const>(&head, 1)));
    bytes += list;
    bytes += bytes_of(std::span(start.records));
    write_whole_file(state, journal_name, bytes);
    file_.reset(::openat(state, journal_name, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC));
    if (!file_) throw_system("open", journal_name);
}

void journal::append(std::span<journal_record const> records) const {
    write_all(file_.get(), bytes_of(records), journal_name);
}

namespace {

constexpr std::string_view first_line = "muster-stage manifest 1\n";

std::string escaped(std::string_view path) {
    std::string out;
    for (char const c : path) {
        if (c == '\\')
            out += "\\\\";
        else if (c == '\t')
            out += "\\t";
        else if (c == '\n')
            out += "\\n";
        else
            out += c;
    }
    return out;
}

std::string unescaped(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '\\' || i + 1 == text.size()) {
            out += text[i];
            continue;
        }
        char const c = text[++i];
        out += c == 't' ? '\t' : c == 'n' ? '\n' : c;
    }
    return out;
}

/// A path may not lead out of the folder that it is relative to.
bool stays_inside(std::string_view path) {
    for (std::string_view const part : split(path, '/'))
        if (part.empty() || part == "." || part == "..") return false;
    return true;
}

template <typename T>
bool read_number(std::string_view text, T& value, int base = 10) {
    auto const [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    return fault == std::errc() && end == text.data() + text.size();
}

bool read_checksums(std::string_view text, std::vector<std::uint64_t>& out) {
    for (std::string_view const one : split(text, ','))
        if (one.size() != 16 || !read_number(one, out.emplace_back(), 16)) return false;
    return true;
}

/// Reads the fields of one line; false if they are not what its kind has.
bool read_entry(std::vector<std::string_view> const& fields, manifest_entry& entry) {
    listed_file& file = entry.file;
    bool read = false;
    if (fields[0] == "folder" && fields.size() == 5) {
        file.what = listed_file::kind::folder;
        read =
            read_number(fields[1], file.mode, 8) && read_number(fields[2], file.mtime_ns) && read_number(fields[3], file.source);
    } else if (fields[0] == "link" && fields.size() == 4) {
        file.what = listed_file::kind::link;
        read = read_number(fields[1], file.source);
        file.target = unescaped(fields[2]);
    } else if (fields[0] == "file" && fields.size() == 8) {
        read = read_number(fields[1], file.mode, 8) && read_number(fields[2], file.size) &&
               read_number(fields[3], file.mtime_ns) && read_number(fields[4], file.source) &&
               read_number(fields[5], entry.chunk_bytes) && entry.chunk_bytes > 0 && read_checksums(fields[6], entry.checksums) &&
               entry.checksums.size() == chunks_of_size(file.size, entry.chunk_bytes);
    }
    file.path = unescaped(fields.back());
    return read && file.mode <= 0777 && stays_inside(file.path);
}

}  // namespace

manifest_entry const* manifest::find(std::string_view path) const noexcept {
    auto const at =
        std::ranges::lower_bound(entries, path, {}, [](manifest_entry const& e) { return std::string_view(e.file.path); });
    return at != entries.end() && at->file.path == path ? &*at : nullptr;
}

void manifest::merge(manifest newer) {
    std::vector<std::uint32_t> number;
    for (std::string const& source : sources) {
        auto const at = std::ranges::find(newer.sources, source);
        number.push_back(static_cast<std::uint32_t>(at - newer.sources.begin()));
        if (at == newer.sources.end()) newer.sources.push_back(source);
    }
    for (manifest_entry& entry : entries) entry.file.source = number.at(entry.file.source);
    auto const path = [](manifest_entry const& entry) -> std::string const& { return entry.file.path; };
    std::vector<manifest_entry> all;
    std::ranges::set_union(newer.entries, entries, std::back_inserter(all), {}, path, path);
    sources = std::move(newer.sources);
    entries = std::move(all);
}

std::string text_of_manifest(manifest const& what) {
    std::string out(first_line);
    auto const to = std::back_inserter(out);
    for (std::string const& source : what.sources) fmt::format_to(to, "source\t{}\n", escaped(source));
    for (manifest_entry const& entry : what.entries) {
        listed_file const& file = entry.file;
        if (file.is_folder()) {
            fmt::format_to(to, "folder\t{:o}\t{}\t{}\t{}\n", file.mode, file.mtime_ns, file.source, escaped(file.path));
        } else if (!file.is_file()) {
            fmt::format_to(to, "link\t{}\t{}\t{}\n", file.source, escaped(file.target), escaped(file.path));
        } else {
            fmt::format_to(to, "file\t{:o}\t{}\t{}\t{}\t{}\t", file.mode, file.size, file.mtime_ns, file.source,
                           entry.chunk_bytes);
            for (std::size_t i = 0; i < entry.checksums.size(); ++i)
                fmt::format_to(to, "{}{:016x}", i == 0 ? "" : ",", entry.checksums[i]);
            fmt::format_to(to, "\t{}\n", escaped(file.path));
        }
    }
    fmt::format_to(to, "end\t{}\t{:016x}\n", what.entries.size(), checksum_of(out));
    return out;
}

manifest parse_manifest(std::string_view text, std::string_view origin) {
    auto const refuse = [&](std::size_t line, std::string_view why) -> error {
        return error(errc::invalid_data, fmt::format("{}: line {}: {}; copy again", origin, line, why));
    };
    if (!text.starts_with(first_line)) {
        bool const newer = text.starts_with("muster-stage manifest ");
        throw refuse(1, newer ? "the manifest has another version than 1" : "this is no manifest of muster-stage");
    }
    auto const end = text.ends_with('\n') ? text.rfind('\n', text.size() - 2) : std::string_view::npos;
    manifest out;
    std::size_t number = 1;
    std::size_t begin = first_line.size();
    for (; end != std::string_view::npos && begin <= end; ++number) {
        auto const stop = text.find('\n', begin);
        auto const fields = split(text.substr(begin, stop - begin), '\t');
        begin = stop + 1;
        if (fields[0] == "source" && fields.size() == 2) {
            out.sources.push_back(unescaped(fields[1]));
            continue;
        }
        manifest_entry& entry = out.entries.emplace_back();
        if (!read_entry(fields, entry) || entry.file.source >= out.sources.size())
            throw refuse(number + 1, "the line is damaged");
        if (out.entries.size() > 1 && out.entries[out.entries.size() - 2].file.path >= entry.file.path)
            throw refuse(number + 1, "the paths are not in order");
    }
    std::string const last = fmt::format("end\t{}\t{:016x}\n", out.entries.size(), checksum_of(text.substr(0, begin)));
    if (text.substr(begin) != last) throw refuse(number + 1, "the manifest is cut off or was changed");
    return out;
}

}  // namespace muster
