// Keys, flags and names of PMIx as its own macros take them.
#include "pmix/library/info_list.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace muster::pmix {
namespace {

pmix_info_t entry_of(std::string const& key, pmix_data_type_t type = PMIX_UNDEF) {
    pmix_info_t entry;
    std::memset(&entry, 1, sizeof entry);
    set_key(entry.key, key);
    entry.value.type = type;
    return entry;
}

TEST(info_list, a_key_is_compared_whole) {
    EXPECT_TRUE(has_key(entry_of("pmix.range"), "pmix.range"));
    EXPECT_FALSE(has_key(entry_of("pmix.range"), "pmix.rang"));
    EXPECT_FALSE(has_key(entry_of("pmix.rang"), "pmix.range"));
    EXPECT_FALSE(has_key(entry_of(""), "pmix.range"));
}

TEST(info_list, a_key_that_is_too_long_is_cut_and_ended) {
    auto const entry = entry_of(std::string(2 * PMIX_MAX_KEYLEN, 'k'));
    EXPECT_EQ(std::strlen(entry.key), static_cast<std::size_t>(PMIX_MAX_KEYLEN));
    EXPECT_TRUE(has_key(entry, std::string(PMIX_MAX_KEYLEN, 'k').c_str()));
}

TEST(info_list, a_flag_is_true_where_it_says_so_or_has_no_value) {
    EXPECT_TRUE(is_true(entry_of("k")));
    auto flag = entry_of("k", PMIX_BOOL);
    flag.value.data.flag = false;
    EXPECT_FALSE(is_true(flag));
    flag.value.data.flag = true;
    EXPECT_TRUE(is_true(flag));
    EXPECT_FALSE(is_true(entry_of("k", PMIX_INT)));
}

TEST(info_list, processes_are_the_same_by_job_and_rank) {
    EXPECT_TRUE(is_same(make_proc("job", 3), make_proc("job", 3)));
    EXPECT_FALSE(is_same(make_proc("job", 3), make_proc("job", 2)));
    EXPECT_FALSE(is_same(make_proc("job", 3), make_proc("job2", 3)));
}

}  // namespace
}  // namespace muster::pmix
