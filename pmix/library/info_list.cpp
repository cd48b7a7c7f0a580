#include "pmix/library/info_list.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/error.hpp"

namespace muster::pmix {

void info_list::load(char const* key, void const* value, pmix_data_type_t type) {
    entries_.emplace_back();
    PMIX_INFO_LOAD(&entries_.back(), key, const_cast<void*>(value), type);
}

void info_list::add_borrowed(char const* key, pmix_value_t const& value) {
    entries_.emplace_back();
    auto& entry = entries_.back();
    std::memset(&entry, 0, sizeof entry);
    set_key(entry.key, key);
    entry.value = value;
}

void info_list::add_procs(char const* key, std::span<pmix_proc_t const> value) {
    pmix_data_array_t array{PMIX_PROC, value.size(), const_cast<pmix_proc_t*>(value.data())};
    load(key, &array, PMIX_DATA_ARRAY);  // which copies it
}

void info_list::add_array(char const* key, info_list&& nested) {
    // The library frees nested arrays with free(), so they must come from malloc.
    auto const bytes = nested.entries_.size() * sizeof(pmix_info_t);
    auto* array = static_cast<pmix_info_t*>(std::malloc(std::max<std::size_t>(bytes, 1)));
    auto* box = static_cast<pmix_data_array_t*>(std::calloc(1, sizeof(pmix_data_array_t)));
    if (array == nullptr || box == nullptr) throw std::bad_alloc();
    if (bytes != 0) std::memcpy(static_cast<void*>(array), nested.entries_.data(), bytes);
    *box = pmix_data_array_t{PMIX_INFO, nested.entries_.size(), array};
    nested.entries_.clear();  // its values belong to the array now
    pmix_value_t value{};
    value.type = PMIX_DATA_ARRAY;
    value.data.darray = box;
    add_borrowed(key, value);
}

void info_list::copy(pmix_info_t const& entry) {
    entries_.emplace_back();
    std::memset(&entries_.back(), 0, sizeof(pmix_info_t));
    PMIX_INFO_XFER(&entries_.back(), const_cast<pmix_info_t*>(&entry));
}

void info_list::clear() noexcept {
    for (auto& entry : entries_)
        if (entry.value.type != PMIX_TOPO) PMIX_VALUE_DESTRUCT(&entry.value);  // a topology is always borrowed
    entries_.clear();
}

info_list copy_of(pmix_info_t const* entries, std::size_t count) {
    info_list list;
    list.reserve(count);
    for (std::size_t i = 0; i < count; ++i) list.copy(entries[i]);
    return list;
}

bool has_key(pmix_info_t const& entry, char const* key) {
    return std::strncmp(entry.key, key, PMIX_MAX_KEYLEN) == 0;
}

void set_key(pmix_key_t& to, std::string_view key) {
    std::memset(to, 0, sizeof to);
    std::memcpy(to, key.data(), std::min<std::size_t>(key.size(), PMIX_MAX_KEYLEN));
}

bool is_true(pmix_info_t const& entry) {
    return entry.value.type == PMIX_UNDEF || (entry.value.type == PMIX_BOOL && entry.value.data.flag);
}

bool is_same(pmix_proc_t const& a, pmix_proc_t const& b) {
    return a.rank == b.rank && std::strncmp(a.nspace, b.nspace, PMIX_MAX_NSLEN) == 0;
}

pmix_proc_t make_proc(std::string_view nspace, pmix_rank_t rank) {
    pmix_proc_t proc;
    std::memset(&proc, 0, sizeof proc);
    std::memcpy(proc.nspace, nspace.data(), std::min<std::size_t>(nspace.size(), PMIX_MAX_NSLEN));
    proc.rank = rank;
    return proc;
}

void check(pmix_status_t status, std::string_view call) {
    if (status != PMIX_SUCCESS && status != PMIX_OPERATION_SUCCEEDED)
        throw library_error("PMIx", call, status, PMIx_Error_string(status));
}

}  // namespace muster::pmix
