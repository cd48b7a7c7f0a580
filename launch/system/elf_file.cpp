#include "launch/system/elf_file.hpp"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/text.hpp"
#include "base/unique_fd.hpp"

namespace muster {

namespace {

constexpr std::size_t most_segments = 1024;
constexpr std::size_t most_dynamic_bytes = std::size_t{64} << 10U;
constexpr std::size_t most_names = 1024;
constexpr std::size_t most_symbols = 65536;
constexpr std::size_t longest_name = 4096;
constexpr std::size_t most_name_bytes = std::size_t{512} << 10U;  // for all names together: they may all be one long string

template <typename T>
std::optional<T> read_one(byte_reader const& read, std::uint64_t offset) {
    T value;
    if (!read(offset, std::as_writable_bytes(std::span(&value, 1)))) return std::nullopt;
    return value;
}

template <typename T>
std::optional<std::vector<T>> read_many(byte_reader const& read, std::uint64_t offset, std::size_t count) {
    std::vector<T> values(count);
    if (!read(offset, std::as_writable_bytes(std::span(values)))) return std::nullopt;
    return values;
}

bool is_supported(Elf64_Ehdr const& header) {
    return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
           header.e_ident[EI_DATA] == ELFDATA2LSB && header.e_phentsize == sizeof(Elf64_Phdr) && header.e_phnum <= most_segments;
}

/// Returns the offset in the file of an address of the loaded program.
std::optional<std::uint64_t> file_offset(std::vector<Elf64_Phdr> const& segments, std::uint64_t address) {
    for (auto const& segment : segments)
        if (segment.p_type == PT_LOAD && address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz)
            return segment.p_offset + (address - segment.p_vaddr);  // may wrap around: the reader then finds nothing there
    return std::nullopt;
}

std::optional<std::string> read_string(byte_reader const& read, std::uint64_t offset, std::size_t& budget) {
    std::string text;
    if (offset > INT64_MAX) return std::nullopt;  // no file is that long, and sums must not wrap around
    while (text.size() < longest_name && budget > 0) {
        auto const next = read_one<char>(read, offset + text.size());
        if (!next) return std::nullopt;
        if (*next == '\0') return text;
        text += *next;
        --budget;
    }
    return std::nullopt;
}

struct dynamic_entries {
    std::vector<std::uint64_t> needed;
    std::optional<std::uint64_t> runpath, rpath, strings;
};

dynamic_entries sort_entries(std::vector<Elf64_Dyn> const& entries) {
    dynamic_entries found;
    for (auto const& entry : entries) {
        if (entry.d_tag == DT_NULL) break;
        if (entry.d_tag == DT_NEEDED && found.needed.size() < most_names) found.needed.push_back(entry.d_un.d_val);
        if (entry.d_tag == DT_RUNPATH) found.runpath = entry.d_un.d_val;
        if (entry.d_tag == DT_RPATH) found.rpath = entry.d_un.d_val;
        if (entry.d_tag == DT_STRTAB) found.strings = entry.d_un.d_ptr;
    }
    return found;
}

}  // namespace

std::optional<elf_dynamic> read_elf_dynamic(byte_reader const& read) {
    auto const header = read_one<Elf64_Ehdr>(read, 0);
    if (!header || !is_supported(*header)) return std::nullopt;
    auto const segments = read_many<Elf64_Phdr>(read, header->e_phoff, header->e_phnum);
    if (!segments) return std::nullopt;
    auto const dynamic = std::find_if(segments->begin(), segments->end(), [](auto const& s) { return s.p_type == PT_DYNAMIC; });
    if (dynamic == segments->end()) return std::nullopt;
    auto const bytes = std::min<std::uint64_t>(dynamic->p_filesz, most_dynamic_bytes);
    auto const entries = read_many<Elf64_Dyn>(read, dynamic->p_offset, bytes / sizeof(Elf64_Dyn));
    if (!entries) return std::nullopt;
    auto const found = sort_entries(*entries);
    if (!found.strings) return std::nullopt;
    auto const strings = file_offset(*segments, *found.strings);
    if (!strings) return std::nullopt;

    elf_dynamic result;
    std::size_t budget = most_name_bytes;
    for (auto const at : found.needed) {
        auto name = read_string(read, at > INT64_MAX ? at : *strings + at, budget);
        if (!name) return std::nullopt;
        result.needed.push_back(std::move(*name));
    }
    if (auto const path = found.runpath ? found.runpath : found.rpath) {
        auto const text = read_string(read, *path > INT64_MAX ? *path : *strings + *path, budget);
        if (!text) return std::nullopt;
        for (auto const piece : split(*text, ':'))
            if (!piece.empty()) result.search_path.emplace_back(piece);
    }
    return result;
}

std::optional<std::uint64_t> find_elf_object(byte_reader const& read, std::string_view name) {
    auto const header = read_one<Elf64_Ehdr>(read, 0);
    if (!header || !is_supported(*header) || header->e_shentsize != sizeof(Elf64_Shdr)) return std::nullopt;
    auto const segments = read_many<Elf64_Phdr>(read, header->e_phoff, header->e_phnum);
    auto const sections = read_many<Elf64_Shdr>(read, header->e_shoff, std::min<std::size_t>(header->e_shnum, most_segments));
    if (!segments || !sections) return std::nullopt;
    auto const first = std::find_if(segments->begin(), segments->end(), [](auto const& s) { return s.p_type == PT_LOAD; });
    auto const table = std::find_if(sections->begin(), sections->end(), [](auto const& s) { return s.sh_type == SHT_DYNSYM; });
    if (first == segments->end() || table == sections->end() || table->sh_link >= sections->size()) return std::nullopt;
    auto const count = std::min<std::uint64_t>(table->sh_size / sizeof(Elf64_Sym), most_symbols);
    auto const symbols = read_many<Elf64_Sym>(read, table->sh_offset, count);
    if (!symbols) return std::nullopt;
    auto const strings = (*sections)[table->sh_link].sh_offset;
    std::string const wanted = std::string(name) + '\0';
    for (auto const& symbol : *symbols) {
        if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_shndx == SHN_UNDEF) continue;
        auto const there = read_many<char>(read, strings + symbol.st_name, wanted.size());
        if (there && std::equal(wanted.begin(), wanted.end(), there->begin())) return symbol.st_value - first->p_vaddr;
    }
    return std::nullopt;
}

namespace {

byte_reader reader_of(std::span<std::byte const> bytes) {
    return [bytes](std::uint64_t offset, std::span<std::byte> into) {
        if (offset > bytes.size() || into.size() > bytes.size() - offset) return false;
        std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
        return true;
    };
}

/// Reads pages with names and tables one at a time, since names are read byte by byte.
class paged_file {
  public:
    // O_NONBLOCK and O_NOCTTY keep a pipe or a terminal from making the reader wait.
    explicit paged_file(std::string const& path) : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {}
    bool is_open() const noexcept { return static_cast<bool>(file_); }

    bool read(std::uint64_t offset, std::span<std::byte> into) {
        while (!into.empty()) {
            auto const at = offset - offset % page;
            if (cache_.empty() || cached_at_ != at) read_page(at);
            auto const within = static_cast<std::size_t>(offset - at);
            if (within >= cache_.size()) return false;
            auto const count = std::min(into.size(), cache_.size() - within);
            std::copy_n(cache_.begin() + static_cast<std::ptrdiff_t>(within), count, into.begin());
            into = into.subspan(count);
            offset += count;
        }
        return true;
    }

  private:
    static constexpr std::size_t page = 4096;

    void read_page(std::uint64_t at) {
        cache_.resize(page);
        auto const count = at > INT64_MAX ? -1 : pread(file_.get(), cache_.data(), page, static_cast<off_t>(at));
        cache_.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
        cached_at_ = at;
    }

    unique_fd file_;
    std::vector<std::byte> cache_;
    std::uint64_t cached_at_ = 0;
};

}  // namespace

std::optional<elf_dynamic> read_elf_dynamic(std::span<std::byte const> bytes) {
    return read_elf_dynamic(reader_of(bytes));
}

std::optional<elf_dynamic> read_elf_dynamic(std::string const& path) {
    paged_file file(path);
    if (!file.is_open()) return std::nullopt;
    return read_elf_dynamic([&](std::uint64_t offset, std::span<std::byte> into) { return file.read(offset, into); });
}

std::optional<std::uint64_t> find_elf_object(std::span<std::byte const> bytes, std::string_view name) {
    return find_elf_object(reader_of(bytes), name);
}

std::optional<std::uint64_t> find_elf_object(std::string const& path, std::string_view name) {
    paged_file file(path);
    if (!file.is_open()) return std::nullopt;
    return find_elf_object([&](std::uint64_t offset, std::span<std::byte> into) { return file.read(offset, into); }, name);
}

}  // namespace muster
