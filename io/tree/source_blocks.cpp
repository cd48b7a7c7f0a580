#include "io/tree/source_blocks.hpp"

#include <sys/vfs.h>

#include "base/process/run_captured.hpp"
#include "base/text.hpp"
#include "io/tree/chunk_plan.hpp"

namespace muster {

namespace {

constexpr long lustre_magic = 0x0BD00BD0;  // linux/lustre/include/uapi/linux/lustre/lustre_user.h
constexpr long gpfs_magic = 0x47504653;    // "GPFS"

}  // namespace

std::uint64_t stripe_of_text(std::string_view text) noexcept {
    auto const value = parse_integer(trim(text.substr(0, text.find('\n'))));
    return value && *value > 0 ? static_cast<std::uint64_t>(*value) : 0;
}

std::uint64_t chunk_bytes_for(source_blocks const& blocks) noexcept {
    constexpr std::uint64_t most = std::uint64_t{64} << 20;
    if (blocks.bytes == 0 || blocks.bytes > most) return default_chunk_bytes;
    return (default_chunk_bytes + blocks.bytes - 1) / blocks.bytes * blocks.bytes;
}

source_blocks find_source_blocks(std::string const& path, environment const& variables) {
    struct statfs found {};
    if (::statfs(path.c_str(), &found) != 0) return {};
    if (found.f_type == gpfs_magic) return {static_cast<std::uint64_t>(found.f_bsize), "GPFS"};
    if (found.f_type != lustre_magic) return {};
    source_blocks lustre{0, "Lustre"};
    auto const said = run_captured({"lfs", "getstripe", "-S", "-d", path}, variables);
    if (said.exit_status == 0) lustre.bytes = stripe_of_text(said.out);
    return lustre;
}

}  // namespace muster
