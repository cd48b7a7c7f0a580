// Files for the tests of io: a folder that is removed, IDX files good and bad.
#pragma once

#include <unistd.h>
#include <zlib.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace muster::test {

using bytes = std::vector<std::uint8_t>;

class scratch {
  public:
    scratch() {
        std::string pattern = (std::filesystem::temp_directory_path() / "muster-io.XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp " + pattern);
        folder_ = pattern;
    }
    scratch(scratch const&) = delete;
    scratch& operator=(scratch const&) = delete;
    ~scratch() {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }

    std::string path(std::string const& name) const { return (folder_ / name).string(); }
    std::string write(std::string const& name, bytes const& contents) const {
        std::ofstream(path(name), std::ios::binary)
            .write(reinterpret_cast<char const*>(contents.data()), static_cast<std::streamsize>(contents.size()));
        return path(name);
    }
    bytes read(std::string const& name) const {
        std::ifstream file(path(name), std::ios::binary | std::ios::ate);
        if (!file) return {};
        bytes all(static_cast<std::size_t>(file.tellg()));
        file.seekg(0);
        file.read(reinterpret_cast<char*>(all.data()), static_cast<std::streamsize>(all.size()));
        return all;
    }
    std::size_t entries() const {
        return static_cast<std::size_t>(
            std::distance(std::filesystem::directory_iterator(folder_), std::filesystem::directory_iterator()));
    }

  private:
    std::filesystem::path folder_;
};

/// An IDX header: the type and the dimensions as told, whatever follows.
inline bytes idx_header(std::uint8_t type, std::vector<std::uint32_t> const& dimensions) {
    bytes out{0, 0, type, static_cast<std::uint8_t>(dimensions.size())};
    for (std::uint32_t const dimension : dimensions)
        for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<std::uint8_t>(dimension >> shift));
    return out;
}

/// Byte `i` of the made-up images: no two neighbouring images or rows are equal.
inline std::uint8_t pixel(std::size_t i) {
    return static_cast<std::uint8_t>((i * 2654435761u) >> 13);
}
inline std::uint8_t label(std::size_t i, std::size_t classes = 10) {
    return static_cast<std::uint8_t>((i * 7 + 3) % classes);
}

inline bytes idx_images(std::uint32_t count, std::uint32_t height, std::uint32_t width) {
    bytes out = idx_header(8, {count, height, width});
    for (std::size_t i = 0; i < std::size_t{count} * height * width; ++i) out.push_back(pixel(i));
    return out;
}

inline bytes idx_labels(std::uint32_t count, std::size_t classes = 10) {
    bytes out = idx_header(8, {count});
    for (std::size_t i = 0; i < count; ++i) out.push_back(label(i, classes));
    return out;
}

inline bytes gzip(bytes const& plain) {
    z_stream stream{};
    if (deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) throw std::runtime_error("deflateInit2");
    bytes out(deflateBound(&stream, plain.size()) + 64);
    stream.next_in = const_cast<std::uint8_t*>(plain.data());
    stream.avail_in = static_cast<uInt>(plain.size());
    stream.next_out = out.data();
    stream.avail_out = static_cast<uInt>(out.size());
    int const code = deflate(&stream, Z_FINISH);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    if (code != Z_STREAM_END) throw std::runtime_error("deflate");
    return out;
}

inline bytes first(bytes const& of, std::size_t count) {
    return {of.begin(), of.begin() + static_cast<std::ptrdiff_t>(count)};
}
inline bytes joined(bytes a, bytes const& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

}  // namespace muster::test
