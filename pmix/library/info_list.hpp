// PMIx key/value arrays as owned values. Internal: names PMIx types.
#pragma once

#include <pmix.h>
#include <pmix_server.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::pmix {

/// A growing array of pmix_info_t that owns what its values point to. Move-only; not thread safe.
class info_list {
  public:
    info_list() = default;
    info_list(info_list&& other) noexcept : entries_(std::move(other.entries_)) { other.entries_.clear(); }
    info_list& operator=(info_list&& other) noexcept {
        if (this != &other) {
            clear();
            entries_.swap(other.entries_);
        }
        return *this;
    }
    info_list(info_list const&) = delete;
    info_list& operator=(info_list const&) = delete;
    ~info_list() { clear(); }

    void add(char const* key, std::string const& value) { load(key, value.c_str(), PMIX_STRING); }
    void add(char const* key, char const* value) { load(key, value, PMIX_STRING); }
    void add(char const* key, bool value) { load(key, &value, PMIX_BOOL); }
    void add_u16(char const* key, std::uint16_t value) { load(key, &value, PMIX_UINT16); }
    void add_u32(char const* key, std::uint32_t value) { load(key, &value, PMIX_UINT32); }
    void add_int(char const* key, int value) { load(key, &value, PMIX_INT); }
    void add_size(char const* key, std::size_t value) { load(key, &value, PMIX_SIZE); }
    void add_rank(char const* key, pmix_rank_t value) { load(key, &value, PMIX_PROC_RANK); }
    void add_proc(char const* key, pmix_proc_t const& value) { load(key, &value, PMIX_PROC); }
    /// A copy of so many processes.
    void add_procs(char const* key, std::span<pmix_proc_t const> value);
    /// A node or process map as PMIx_generate_regex made it.
    void add_regex(char const* key, char const* value) { load(key, value, PMIX_REGEX); }
    /// Takes `value`'s bytes as they are: for types that are passed by pointer and stay the caller's.
    void add_borrowed(char const* key, pmix_value_t const& value);
    /// A nested array; `nested` is emptied into this list.
    void add_array(char const* key, info_list&& nested);
    /// A copy of somebody else's entry.
    void copy(pmix_info_t const& entry);

    pmix_info_t* data() noexcept { return entries_.empty() ? nullptr : entries_.data(); }
    std::size_t size() const noexcept { return entries_.size(); }
    std::span<pmix_info_t const> entries() const noexcept { return entries_; }
    void reserve(std::size_t count) { entries_.reserve(count); }
    void clear() noexcept;

  private:
    void load(char const* key, void const* value, pmix_data_type_t type);
    std::vector<pmix_info_t> entries_;
};

/// An info_list with copies of a callback's arguments, which do not outlive the callback.
info_list copy_of(pmix_info_t const* entries, std::size_t count);

// These stand in place of macros of pmix.h: those of version 5 call functions that the library of version 4.2 may lack, and which library a program gets is decided where it runs.
bool has_key(pmix_info_t const& entry, char const* key);
void set_key(pmix_key_t& to, std::string_view key);
/// A flag is true where it says so, or is there without a value.
bool is_true(pmix_info_t const& entry);
bool is_same(pmix_proc_t const& a, pmix_proc_t const& b);

/// {nspace, rank}; longer names are cut as PMIx does.
pmix_proc_t make_proc(std::string_view nspace, pmix_rank_t rank);

/// Throws library_error naming `call` unless `status` is success.
void check(pmix_status_t status, std::string_view call);

}  // namespace muster::pmix
