#include "io/convert/divide_source.hpp"

#include <fmt/format.h>

#include <set>

#include "test_sources.hpp"

using namespace muster;
using namespace muster::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

std::string refusal(std::string const& text) {
    try {
        parse_split_parts(text);
    } catch (error const& e) {
        EXPECT_EQ(e.code(), errc::usage);
        return e.what();
    }
    return "no error";
}

std::vector<std::size_t> rows_in(row_selection const& rows) {
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < rows.count(); ++i) all.push_back(rows.row(i));
    return all;
}

}  // namespace

TEST(divide_source, fractions_make_one) {
    EXPECT_THAT(parse_split_parts("train=0.8, val=0.2"), ElementsAre(split_part{"train", 0.8}, split_part{"val", 0.2}));
    EXPECT_EQ(parse_split_parts("a=0.333333,b=0.333333,c=0.333334").size(), 3U);
    EXPECT_THAT(refusal("train=0.8,val=0.1"), HasSubstr("the fractions make 0.9"));
    EXPECT_THAT(refusal("train=0.8,val=0.8"), HasSubstr("the fractions make 1.6"));
    EXPECT_THAT(refusal("train=80,val=20"), HasSubstr("a fraction lies between 0 and 1"));
    EXPECT_THAT(refusal("train=nan,val=0.2"), HasSubstr("a fraction lies between 0 and 1"));
    EXPECT_THAT(refusal("train=0.5,train=0.5"), HasSubstr("train is there twice"));
    EXPECT_THAT(refusal("0.8,0.2"), HasSubstr("no split and its fraction"));
    EXPECT_THAT(refusal("a/b=0.8,c=0.2"), HasSubstr("no split and its fraction"));
    EXPECT_THAT(refusal(""), HasSubstr("no split and its fraction"));
    EXPECT_THAT(refusal("train=1"), HasSubstr("a fraction lies between 0 and 1"));
}

TEST(divide_source, every_sample_has_a_place) {
    EXPECT_THAT(counts_of_parts(parse_split_parts("a=0.8,b=0.2"), 10), ElementsAre(8U, 2U));
    EXPECT_THAT(counts_of_parts(parse_split_parts("a=0.3,b=0.3,c=0.4"), 5), ElementsAre(2U, 1U, 2U));
    EXPECT_THROW(counts_of_parts(parse_split_parts("a=0.99,b=0.01"), 10), error);
    EXPECT_THROW(counts_of_parts(parse_split_parts("a=0.5,b=0.5"), 1), error);
}

TEST(divide_source, the_seed_deals_each_row_to_one_part) {
    for (std::size_t const samples : {2U, 63U, 64U, 65U, 5000U}) {
        auto const counts = counts_of_parts(parse_split_parts("a=0.5,b=0.5"), samples);
        auto const rows = choose_rows(counts, 7);
        std::set<std::size_t> all;
        for (std::size_t part = 0; part < 2; ++part) {
            auto const mine = rows_in(rows[part]);
            EXPECT_EQ(mine.size(), counts[part]);
            EXPECT_TRUE(std::ranges::is_sorted(mine));
            all.insert(mine.begin(), mine.end());
        }
        EXPECT_EQ(all.size(), samples);
        EXPECT_EQ(rows_in(choose_rows(counts, 7)[0]), rows_in(rows[0]));
        if (samples > 60) {
            EXPECT_NE(rows_in(choose_rows(counts, 8)[0]), rows_in(rows[0]));
        }
    }
    EXPECT_THAT(rows_in(choose_rows({3, 5}, 0)[0]), ElementsAre(2U, 4U, 5U)) << "files of today are divided so in all versions";
}

TEST_F(sources, a_part_has_the_rows_of_the_whole) {
    std::string lines = "x,y,label\n";
    for (int i = 0; i < 1000; ++i) lines += fmt::format("{},{},{}\n", i, -i, i % 3);
    auto const path = text("table.csv", lines);
    auto const all = read_all(*open(path));
    auto const counts = counts_of_parts(parse_split_parts("train=0.9,val=0.1"), 1000);
    auto rows = choose_rows(counts, 3);
    for (std::size_t part = 0; part < 2; ++part) {
        auto const mine = rows_in(rows[part]);
        auto const from = selected_rows(open(path), std::move(rows[part]), part == 0);
        EXPECT_EQ(from->facts().samples, counts[part]);
        EXPECT_EQ(from->scan_labels().largest, 2U);
        auto const read = read_all(*from);
        auto const size = from->facts().shape.elements() * bytes_of(from->facts().type);
        for (std::size_t i = 0; i < mine.size(); ++i) {
            EXPECT_EQ(read.labels[i], all.labels[mine[i]]);
            EXPECT_TRUE(std::equal(read.images.begin() + static_cast<std::ptrdiff_t>(i * size),
                                   read.images.begin() + static_cast<std::ptrdiff_t>((i + 1) * size),
                                   all.images.begin() + static_cast<std::ptrdiff_t>(mine[i] * size)))
                << part << " " << i;
        }
        try {
            from->fail_label(1, 7, 3);
        } catch (error const& e) {
            EXPECT_THAT(e.what(), HasSubstr(fmt::format("for item {},", mine[1]))) << "the place in the whole table";
        }
    }
}
