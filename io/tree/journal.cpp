#include "io/tree/journal.hpp"

#include <fcntl.h>

#include <cstring>

#include "base/error.hpp"
#include "base/process/files.hpp"
#include "io/dataset/checksum.hpp"
#include "io/tree/small_files.hpp"

namespace muster {

namespace {

constexpr char journal_name[] = "journal";

struct journal_header {
    char magic[8] = {'m', 's', 't', 'g', 'j', 'n', 'l', '1'};
    std::uint64_t chunk_bytes = 0;
    std::uint64_t list_bytes = 0;
    std::uint64_t list_checksum = 0;
};

std::uint64_t list_checksum(std::string_view text) {
    return xxh3_64({reinterpret_cast<std::uint8_t const*>(text.data()), text.size()});
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
        head.chunk_bytes == 0 || list_checksum(rest.substr(0, head.list_bytes)) != head.list_checksum)
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
    head.list_checksum = list_checksum(list);
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

}  // namespace muster
