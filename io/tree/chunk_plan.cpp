#include "io/tree/chunk_plan.hpp"

#include <sys/vfs.h>

#include <algorithm>
#include <utility>

#include "base/process/run_captured.hpp"
#include "base/text.hpp"

namespace muster {

std::size_t chunks_of_size(std::uint64_t size, std::uint64_t chunk_bytes) noexcept {
    return size == 0 ? 1 : static_cast<std::size_t>((size + chunk_bytes - 1) / chunk_bytes);
}

chunk_plan::chunk_plan(file_list const& list, std::uint64_t chunk_bytes) : chunk_bytes_(chunk_bytes) {
    first_.reserve(list.files.size() + 1);
    for (listed_file const& file : list.files)
        first_.push_back(first_.back() + (file.is_file() ? chunks_of_size(file.size, chunk_bytes) : 0));
}

std::vector<pack> make_packs(file_list const& list, chunk_plan const& plan, std::span<std::uint8_t const> needed) {
    std::vector<pack> packs;
    pack small;
    auto const close = [&] {
        if (!small.pieces.empty()) packs.push_back(std::exchange(small, {}));
    };
    for (std::size_t i = 0; i < list.files.size(); ++i) {
        std::size_t const count = plan.count_of(i);
        for (std::size_t k = 0; k < count; ++k) {
            std::size_t const chunk = plan.first_of(i) + k;
            if (needed[chunk] == 0) continue;
            std::uint64_t const offset = k * plan.chunk_bytes();
            piece const next{static_cast<std::uint32_t>(i), chunk, offset,
                             std::min(plan.chunk_bytes(), list.files[i].size - offset)};
            if (count > 1) {
                packs.push_back({{next}, next.length});
                continue;
            }
            if (small.bytes + next.length > plan.chunk_bytes() || small.pieces.size() == most_files_in_a_pack) close();
            small.pieces.push_back(next);
            small.bytes += next.length;
        }
    }
    close();
    return packs;
}

file_list part_of_list(file_list const& list, int part, int parts) {
    // A file counts with some bytes more than it has, so that empty ones are divided too.
    constexpr std::uint64_t of_each = 4096;
    std::uint64_t total = 0;
    for (listed_file const& file : list.files)
        if (file.is_file()) total += file.size + of_each;
    file_list out;
    out.sources = list.sources;
    std::uint64_t before = 0;
    for (listed_file const& file : list.files) {
        if (file.is_file()) {
            auto const middle = before + (file.size + of_each) / 2;
            before += file.size + of_each;
            auto const owner = static_cast<int>(static_cast<double>(middle) / static_cast<double>(total) * parts);
            if (std::min(owner, parts - 1) != part) continue;
        }
        out.files.push_back(file);
    }
    return out;
}

namespace {

constexpr long lustre_magic = 0x0BD00BD0;  // linux/lustre/include/uapi/linux/lustre/lustre_user.h
constexpr long gpfs_magic = 0x47504653;    // "GPFS"

}  // namespace

std::uint64_t stripe_of_text(std::string_view text) noexcept {
    auto const value = parse_integer(trim(text.substr(0, text.find('\n'))));
    return value && *value > 0 ? static_cast<std::uint64_t>(*value) : 0;
}

std::uint64_t chunk_bytes_for(std::uint64_t block_bytes) noexcept {
    constexpr std::uint64_t most = std::uint64_t{64} << 20;
    if (block_bytes == 0 || block_bytes > most) return default_chunk_bytes;
    return (default_chunk_bytes + block_bytes - 1) / block_bytes * block_bytes;
}

std::uint64_t find_source_blocks(std::string const& path, environment const& variables) {
    struct statfs found {};
    if (::statfs(path.c_str(), &found) != 0) return 0;
    if (found.f_type == gpfs_magic) return static_cast<std::uint64_t>(found.f_bsize);
    if (found.f_type != lustre_magic) return 0;
    auto const said = run_captured({"lfs", "getstripe", "-S", "-d", path}, variables);
    return said.exit_status == 0 ? stripe_of_text(said.out) : 0;
}

}  // namespace muster
