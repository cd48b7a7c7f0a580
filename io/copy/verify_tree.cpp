#include "io/copy/verify_tree.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <span>

#include "base/throw_error.hpp"
#include "io/copy/copy_target.hpp"
#include "io/dataset/checksum.hpp"
#include "io/dataset/file_bytes.hpp"
#include "io/tree/aligned_bytes.hpp"
#include "io/tree/folder_files.hpp"
#include "io/tree/workers.hpp"

namespace muster {

namespace {

struct listed_state {
    std::string name;
    manifest contents;
};

std::vector<listed_state> states_of(int root, std::string const& path) {
    std::vector<listed_state> states;
    for (std::string const& name : names_in_folder(root)) {
        if (!name.starts_with(state_folder_name)) continue;
        unique_fd const state = open_folder_inside(root, name);
        if (!state) throw_system("open", path + "/" + name);
        states.push_back({name, read_manifest(state.get(), path)});
    }
    std::ranges::sort(states, {}, &listed_state::name);
    return states;
}

unique_fd open_tree(std::string const& path) {
    unique_fd root(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!root) throw_system("open", path);
    return root;
}

struct checked_chunk {
    manifest const* in = nullptr;
    manifest_entry const* entry = nullptr;
    std::size_t chunk = 0;

    std::uint64_t offset() const noexcept { return chunk * entry->chunk_bytes; }
    std::uint64_t length() const noexcept { return std::min(entry->chunk_bytes, entry->file.size - offset()); }
};

/// "; the first byte that differs is at offset 5: 0x41, in the source 0x61", as far as the source still tells.
std::string first_difference(checked_chunk const& damaged, std::span<std::byte const> found) {
    listed_file const& file = damaged.entry->file;
    std::string const path = damaged.in->sources[file.source] + "/" + file.path;
    unique_fd const source(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    struct stat now {};
    if (!source || ::fstat(source.get(), &now) != 0 || !is_unchanged(file, now)) return {};
    std::vector<std::byte> right(found.size());
    if (read_at(source.get(), damaged.offset(), right).bytes != right.size()) return {};
    auto const [bad, good] = std::ranges::mismatch(found, right);
    if (good == right.end()) return {};
    return fmt::format("; the first byte that differs is at offset {}: {:#04x}, in the source {:#04x}",
                       damaged.offset() + static_cast<std::uint64_t>(good - right.begin()), static_cast<unsigned>(*bad),
                       static_cast<unsigned>(*good));
}

/// Returns what is wrong with a chunk; "" if nothing is.
std::string fault_of(checked_chunk const& one, folder_cache& folders, aligned_bytes& buffer) {
    listed_file const& file = one.entry->file;
    unique_fd const open = folders.open(file.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (!open && one.chunk > 0) return {};
    struct stat found {};
    if (!open || ::fstat(open.get(), &found) != 0)
        return errno == ENOENT ? "is missing" : fmt::format("cannot be opened: {}", std::strerror(errno));
    if (!S_ISREG(found.st_mode)) return one.chunk > 0 ? "" : "is no file any more";
    if (static_cast<std::uint64_t>(found.st_size) != file.size)
        return one.chunk > 0 ? "" : fmt::format("has {} bytes, was copied with {}", found.st_size, file.size);
    buffer.grow(one.length());
    std::span const part = buffer.first(one.length());
    std::size_t const got = read_at(open.get(), one.offset(), part).bytes;
    if (got != part.size()) return fmt::format("chunk {}: cannot be read from byte {} on", one.chunk, one.offset() + got);
    std::uint64_t const checksum = xxh3_64(part);
    if (checksum == one.entry->checksums[one.chunk]) return {};
    return fmt::format("chunk {} (bytes {} to {}): checksum {}, copied with {}{}", one.chunk, one.offset(),
                       one.offset() + one.length() - 1, format_checksum(checksum),
                       format_checksum(one.entry->checksums[one.chunk]), first_difference(one, part));
}

std::string link_fault(listed_file const& file, folder_cache& folders) {
    auto const target = folders.link_target(file.path, file.target.size() + 1);
    if (!target) return "is missing, or no link any more";
    return target == file.target ? "" : fmt::format("leads elsewhere than to {}", file.target);
}

}  // namespace

bool is_copied_tree(std::string const& path) {
    unique_fd const root(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return root &&
           std::ranges::any_of(names_in_folder(root.get()), [](auto const& name) { return name.starts_with(state_folder_name); });
}

tree_check verify_tree(std::string const& path, int threads, std::function<void(std::uint64_t, std::uint64_t)> const& progress) {
    unique_fd const root = open_tree(path);
    auto const states = states_of(root.get(), path);
    if (std::ranges::all_of(states, [](listed_state const& s) { return s.contents.entries.empty(); }))
        throw_error(errc::not_found, "{} has no manifest of a finished copy; run muster stage copy again", path);
    tree_check report;
    folder_cache folders(root.get(), folder_cache::links::refused);
    std::vector<checked_chunk> chunks;
    for (listed_state const& state : states)
        for (manifest_entry const& entry : state.contents.entries) {
            if (entry.file.what == listed_file::kind::link)
                if (auto const fault = link_fault(entry.file, folders); !fault.empty())
                    report.faults.push_back(fmt::format("{}/{}: {}", path, entry.file.path, fault));
            if (!entry.file.is_file()) continue;
            ++report.files;
            report.bytes += entry.file.size;
            for (std::size_t k = 0; k < entry.checksums.size(); ++k) chunks.push_back({&state.contents, &entry, k});
        }
    std::atomic<std::uint64_t> done{0};
    std::mutex mutex;
    std::vector<std::pair<std::size_t, std::string>> faults;
    constexpr std::size_t batch = 16;
    in_parallel((chunks.size() + batch - 1) / batch, threads,
                [&](int, std::size_t part) {
                    folder_cache mine(root.get(), folder_cache::links::refused);
                    aligned_bytes buffer;
                    for (std::size_t i = part * batch; i < std::min(chunks.size(), (part + 1) * batch); ++i) {
                        auto fault = fault_of(chunks[i], mine, buffer);
                        done += chunks[i].length();
                        if (fault.empty()) continue;
                        std::lock_guard const lock(mutex);
                        faults.emplace_back(i, fmt::format("{}/{}: {}", path, chunks[i].entry->file.path, fault));
                    }
                },
                [&] {
                    if (progress) progress(done, report.bytes);
                });
    std::ranges::sort(faults);
    for (auto& [number, fault] : faults) report.faults.push_back(std::move(fault));
    if (progress) progress(report.bytes, report.bytes);
    return report;
}

}  // namespace muster
