#include "io/arrays/npz.hpp"

#include <fmt/format.h>
#include <minizip/unzip.h>

#include <array>
#include <memory>
#include <string_view>

#include "base/error.hpp"
#include "base/text.hpp"

namespace muster {

namespace {

constexpr std::size_t most_entries = 65536;

struct zip_closer {
    void operator()(void* zip) const noexcept { unzClose(zip); }
};

[[noreturn]] void damaged(std::string const& path, std::string_view what) {
    throw error(errc::invalid_data, fmt::format("{}: {}; copy or save it again with numpy.savez", path, what));
}

file_region region_of(void* zip, std::string const& path) {
    std::array<char, 4096> name{};
    unz_file_info64 info{};
    if (unzGetCurrentFileInfo64(zip, &info, name.data(), name.size() - 1, nullptr, 0, nullptr, 0) != UNZ_OK)
        damaged(path, "the zip archive's directory is damaged");
    file_region region{path,
                       without_controls(name.data()),
                       0,
                       info.compressed_size,
                       info.uncompressed_size,
                       static_cast<std::uint32_t>(info.crc),
                       info.compression_method == Z_DEFLATED};
    if ((info.flag & 1) != 0) damaged(path, fmt::format("its entry {} is encrypted", region.name));
    if (info.compression_method != 0 && info.compression_method != Z_DEFLATED)
        damaged(path, fmt::format("its entry {} is compressed by method {}, and only deflate is read", region.name,
                                  info.compression_method));
    if (!region.deflated && region.stored_bytes != region.bytes)
        damaged(path, fmt::format("its entry {} is said to have {} bytes and to take {}", region.name, region.bytes,
                                  region.stored_bytes));
    int method = 0;
    int level = 0;
    if (unzOpenCurrentFile2(zip, &method, &level, 1) != UNZ_OK)
        damaged(path, fmt::format("its entry {} is not where the directory says", region.name));
    region.offset = unzGetCurrentFileZStreamPos64(zip);
    unzCloseCurrentFile(zip);
    if (region.offset == 0) damaged(path, fmt::format("its entry {} is not where the directory says", region.name));
    if (region.name.ends_with(".npy")) region.name.resize(region.name.size() - 4);
    return region;
}

}  // namespace

std::vector<file_region> npz_entries(std::string const& path) {
    byte_source const probe(path);  // tells a missing file, a folder or a pipe in words
    std::unique_ptr<void, zip_closer> const zip(unzOpen64(path.c_str()));
    if (!zip) damaged(path, "is no zip archive, or a damaged one");
    std::vector<file_region> entries;
    for (int code = unzGoToFirstFile(zip.get()); code != UNZ_END_OF_LIST_OF_FILE; code = unzGoToNextFile(zip.get())) {
        if (code != UNZ_OK) damaged(path, "the zip archive's directory is damaged");
        if (entries.size() == most_entries) damaged(path, fmt::format("has more than {} entries", most_entries));
        entries.push_back(region_of(zip.get(), path));
    }
    return entries;
}

}  // namespace muster
