// links: muster::io
// iterations: 20000
// Any bytes as a manifest and as a list of files: refused with an error, or the same when written and read again; no path leads out.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "io/tree/file_list.hpp"
#include "io/tree/manifest.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const bytes(reinterpret_cast<char const*>(data), size);
    try {
        auto const read = muster::parse_manifest(bytes, "manifest");
        if (muster::parse_manifest(muster::text_of_manifest(read), "again") != read) __builtin_trap();
        for (auto const& entry : read.entries)
            if (entry.file.path.starts_with('/') || entry.file.path.starts_with("../")) __builtin_trap();
    } catch (muster::error const& e) {
        if (e.code() != muster::errc::invalid_data) __builtin_trap();
    }
    try {
        auto const list = muster::list_of_bytes(bytes);
        if (muster::list_of_bytes(muster::bytes_of_list(list)) != list) __builtin_trap();
    } catch (muster::error const& e) {
        if (e.code() != muster::errc::invalid_data) __builtin_trap();
    }
    return 0;
}
