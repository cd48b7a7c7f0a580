// CSV and TSV files as sources: columns, labels of every kind, and faults with their place.
#include <bit>

#include "test_sources.hpp"

namespace muster {
namespace {

using namespace test;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class tables : public sources {
  protected:
    std::vector<std::uint32_t> labels_of(std::string const& lines, source_options const& how = {}) {
        return read_all(*open(text("l.csv", lines), how)).labels;
    }
    /// The elements of all rows, of float32.
    std::vector<float> values_of(sample_source& from) {
        bytes const raw = read_all(from).images;
        std::vector<float> all;
        for (std::size_t i = 0; i < raw.size() / 4; ++i) all.push_back(static_cast<float>(element_at(element_type::f32, raw, i)));
        return all;
    }
};

TEST_F(tables, csv_with_names_numbers_and_quotes) {
    auto const iris = open(text("iris.csv", "length,\"width\",species\n1.5,2,virginica\n\n-3,4e2,\"setosa\"\n"));
    EXPECT_EQ(iris->facts().class_names, (std::vector<std::string>{"setosa", "virginica"}));
    contents const flowers = read_all(*iris);
    EXPECT_EQ(flowers.labels, (std::vector<std::uint32_t>{1, 0}));
    EXPECT_EQ(element_at(element_type::f32, flowers.images, 3), 400.0);

    std::string lines;
    for (int i = 0; i < 3000; ++i) lines += std::to_string(i % 7) + ";" + std::to_string(i % 256) + ";0\r\n";
    auto const digits = open(text("d.csv", lines), {.type = element_type::u8, .label_column = "1"});
    EXPECT_EQ(digits->scan_labels().largest, 6u);
    contents const all = read_all(*digits);
    for (std::size_t i = 0; i < 3000; ++i) {
        ASSERT_EQ(all.labels[i], i % 7);
        ASSERT_EQ(all.images[i * 2], i % 256);
    }
    EXPECT_FALSE(open(text("n.csv", "1,2\n3,4\n"), {.label_column = "none"})->facts().labelled);
}

TEST_F(tables, csv_faults_show_the_place) {
    EXPECT_THAT(refused(text("bad.csv", "a,label\n1,0\nx7,1\n")),
                AllOf(HasSubstr("bad.csv:3:1: 'x7' is no float32"), HasSubstr("\n  x7,1\n  ^")));
    EXPECT_THAT(refused(text("few.csv", "a,b,label\n1,2,0\n1,2\n")), HasSubstr("few.csv:3:"));
    EXPECT_THAT(refused(text("more.csv", "a,label\n1,0,9\n")),
                HasSubstr("more.csv:2:5: more fields than the 2 of the first line"));
    EXPECT_THAT(refused(text("big.csv", "a,label\n300,0\n"), {.type = element_type::u8}),
                HasSubstr("big.csv:2:1: '300' is no uint8"));
    EXPECT_THAT(refused(text("which.csv", "a,b\n1,2\n")), HasSubstr("give --label-column"));
    EXPECT_THAT(refused(text("e.csv", "\n\n")), HasSubstr("holds no line"));
}

TEST_F(tables, a_row_has_one_dimension) {
    EXPECT_EQ(open(text("r.csv", "a,b,label\n1,2,0\n"))->facts().shape, (image_shape{1, 1, 2, true}));
    EXPECT_EQ(to_string(image_shape{1, 1, 2, true}), "2");
}

TEST_F(tables, whole_labels_may_have_a_point) {
    EXPECT_EQ(labels_of("a,label\n1,0.0\n1,10.0\n1,2\n1,1e1\n"), (std::vector<std::uint32_t>{0, 10, 2, 10}));
    EXPECT_EQ(labels_of("a,label\n1,\"3\"\n1,+4\n"), (std::vector<std::uint32_t>{3, 4}));
}

TEST_F(tables, numbers_that_are_no_classes_are_targets) {
    auto const from = open(text("t.csv", "x,price\n1,2.5\n2,-3\n3,10\n"), {.label_column = "price"});
    EXPECT_EQ(from->scan_labels().no_class, "2.5");
    EXPECT_TRUE(from->facts().class_names.empty());
    from->take_targets();
    std::vector<std::uint32_t> const bits = read_all(*from).labels;
    EXPECT_EQ(std::bit_cast<float>(bits[0]), 2.5f);
    EXPECT_EQ(std::bit_cast<float>(bits[1]), -3.0f);
    EXPECT_EQ(std::bit_cast<float>(bits[2]), 10.0f);
    EXPECT_EQ(open(text("w.csv", "x,y\n1,7\n"), {.labels_are = label_kind::target})->scan_labels().no_class, "7");
    EXPECT_THAT(refused(text("m.csv", "x,y\n1,1\n2,-1\n")),
                AllOf(HasSubstr("m.csv:3:3: the label -1 is no class"), HasSubstr("--label-type float")));
    EXPECT_THAT(refused(text("c.csv", "x,y\n1,1\n2,1.5\n"), {.labels_are = label_kind::number}),
                HasSubstr("c.csv:3:3: the label 1.5 is no class"));
    EXPECT_THAT(refused(text("n.csv", "x,y\n1,1\n2,nan\n")), HasSubstr("n.csv:3:3: 'nan' is no label"));
    EXPECT_THAT(
        refused(text("f.csv", "x,y\n1,1.5\n2,nan\n"), {.labels_are = label_kind::target}),
        AllOf(HasSubstr("f.csv:3:3: 'nan' is no target; correct it, or leave the line out"), Not(HasSubstr("--label-type"))));
}

TEST_F(tables, a_label_of_another_kind_is_shown) {
    EXPECT_THAT(
        refused(text("q.csv", "a,label\n1,0\n1,10\n1,?\n1,2\n")),
        AllOf(HasSubstr("q.csv:4:3: the label '?' is no number, 3 others of the file are numbers"), HasSubstr("\n  1,?\n    ^")));
    EXPECT_THAT(refused(text("p.csv", "a,label\n1,cat\n1,dog\n1,3\n")),
                HasSubstr("p.csv:4:3: the label '3' is a number, 2 others"));
    EXPECT_THAT(refused(text("two.csv", "a,label\n1,0\n1,cat\n")),
                HasSubstr("two.csv:3:3: the label 'cat' is no number, another of the file is one; correct the wrong one, or give "
                          "--label-type name if all are names"));
    EXPECT_EQ(open(text("e.csv", "a,label\n1,A\n1,3\n"), {.labels_are = label_kind::name})->facts().class_names,
              (std::vector<std::string>{"3", "A"}));
    EXPECT_THAT(refused(text("k.csv", "a;label\n1;1,5\n")), HasSubstr("k.csv:2:3: '1,5' has a decimal comma"));
    EXPECT_THAT(refused(text("empty.csv", "a,label\n1,\n")), HasSubstr("empty.csv:2:3: an empty label"));
}

TEST_F(tables, byte_order_mark_gzip_and_tabs) {
    std::string const lines = "\xef\xbb\xbflabel,a,b\r\n1,2,3\r\n0,4,5\r\n";
    for (std::string const& path : {text("bom.csv", lines), dir.write("bom.csv.gz", gzip(bytes(lines.begin(), lines.end())))}) {
        auto const from = open(path);
        EXPECT_EQ(from->facts().columns, (std::vector<std::string>{"a", "b"}));
        EXPECT_EQ(values_of(*from), (std::vector<float>{2, 3, 4, 5})) << path;
    }
    EXPECT_EQ(values_of(*open(text("t.tsv", "label\ta, or b\n1\t2\n"))), (std::vector<float>{2}));
    EXPECT_THAT(refused(text("u.csv", std::string("\xff\xfel\0a\0", 6))), HasSubstr("text of UTF-16"));
    std::string many = "a,label\n";
    for (int i = 0; i < 5000; ++i) many += std::to_string(i) + "," + std::to_string(i % 3) + "\n";
    contents const all = read_all(*open(dir.write("many.csv.gz", gzip(bytes(many.begin(), many.end())))));
    EXPECT_EQ(element_at(element_type::f32, all.images, 4999), 4999);
    EXPECT_EQ(all.labels[4999], 1u);
}

TEST_F(tables, a_header_is_told_from_a_sample) {
    EXPECT_EQ(open(text("h.csv", "label,0,1\n5,1.5,2.5\n"))->facts().samples, 1u);
    EXPECT_EQ(open(text("k.csv", "kind,0,1\na,1.5,2.5\n"), {.label_column = "kind"})->facts().class_names,
              (std::vector<std::string>{"a"}));
    EXPECT_EQ(open(text("d.csv", "1.5,2,setosa\n1.6,3,setosa\n"), {.label_column = "3"})->facts().samples, 2u);
    EXPECT_THAT(refused(text("c.csv", "0,1,2\n7,8,9\n"), {.label_column = "3"}),
                HasSubstr("it counts its columns; give --header yes"));
    EXPECT_EQ(open(text("s.csv", "1,2,3\n4,5,6\n"), {.label_column = "3"})->facts().samples, 2u);
    EXPECT_EQ(open(text("c.csv", "0,1,2\n7,8,9\n"), {.label_column = "3", .header = true})->facts().samples, 1u);
    EXPECT_THAT(refused(text("x.csv", "1.0,x2,0\n1.5,2,1\n"), {.label_column = "3"}),
                HasSubstr("'x2' where the next line has 2"));
    EXPECT_THAT(refused(text("y.csv", "5,7\n5,8\n")), HasSubstr("(the first line, 5,7, was taken for a sample; --header yes"));
}

TEST_F(tables, quotes_and_line_feeds_in_them) {
    EXPECT_EQ(open(text("q.csv", "a,label\n1,\"a \"\"q\"\"\"\n2,\"b\nc, d\"\n3,5\" pipe\n"))->facts().class_names,
              (std::vector<std::string>{"5\" pipe", "a \"q\"", "b\nc, d"}));
    EXPECT_THAT(refused(text("f.csv", "a,b,label\n1,\"x\ny\",0\n")), HasSubstr("f.csv:2:3: 'x?y' is no float32"));
    EXPECT_THAT(refused(text("r.csv", "t,label,a\n\"x\ny\",0,z\n"), {.drop = {"t"}}),
                AllOf(HasSubstr("r.csv:3:6: 'z' is no"), HasSubstr("\n  y\",0,z\n       ^")));
    EXPECT_THAT(refused(text("o.csv", "a,label\n1,\"open\n2,x\n")), HasSubstr("o.csv:2: a double quote that is not closed"));
}

TEST_F(tables, small_numbers_and_gaps) {
    EXPECT_EQ(values_of(*open(text("s.csv", "a,label\n1e-46,0\n-1e-400,0\n1e-40,0\n"))), (std::vector<float>{0, -0.0f, 1e-40f}));
    EXPECT_THAT(refused(text("l.csv", "a,label\n1e39,0\n")), HasSubstr("'1e39' is no float32"));
    EXPECT_THAT(refused(text("g.csv", "a,b,label\n1,,0\n")),
                AllOf(HasSubstr("g.csv:2:3: an empty cell of column b"), HasSubstr("--drop b")));
}

TEST_F(tables, a_guessed_column_of_labels_is_named) {
    std::string const path = text("g.csv", "a,Y,class\n1,0,2\n3,1,4\n");
    EXPECT_THAT(
        open(path)->notes().words,
        testing::ElementsAre(
            "labels: column 3 of g.csv, 'class', by its name ('Y' could be labels too); --label-column takes another, or none"));
    EXPECT_EQ(open(text("p.csv", "x,y,target\n1,0,2\n3,1,4\n"))->facts().columns, (std::vector<std::string>{"x", "y"}));
    EXPECT_EQ(open(text("f.csv", "variety,label,y\n1,0,2\n"))->facts().columns, (std::vector<std::string>{"variety", "y"}));
    EXPECT_THAT(refused(text("c.csv", "x,y\n1,0\n2,\n")),
                HasSubstr("c.csv:3:3: an empty label; give every sample one (the labels are column 2, 'y', guessed by its name; "
                          "--label-column takes another)"));
    EXPECT_THAT(refused(text("w.csv", "x,y\n1,0\n2,\n"), {.label_column = "y"}), HasSubstr("(the labels are column 2, 'y')"));
    EXPECT_THAT(refused(text("i.csv", "1,0\n2,?\n"), {.label_column = "2", .labels_are = label_kind::number}),
                HasSubstr("(the labels are column 2)"));
    EXPECT_THAT(open(path, {.label_column = "class"})->notes().words, testing::IsEmpty());
    EXPECT_THAT(open(path, {.label_column = "none"})->notes().words, testing::IsEmpty());
}

TEST_F(tables, without_a_usual_name_of_labels_the_columns_are_listed) {
    EXPECT_THAT(refused(text("n.csv", "x1,x2,price\n1,2,3\n")),
                HasSubstr("category, variety (it has x1, x2, price); give --label-column"));
}

TEST_F(tables, text_that_is_no_utf8) {
    EXPECT_THAT(refused(text("l1.csv", "a,label\n1,caf\xe9\n")),
                AllOf(HasSubstr("is no UTF-8 (byte 4)"), HasSubstr("iconv -f latin1")));
    EXPECT_THAT(refused(text("h1.csv", "caf\xe9,label\n1,0\n")), HasSubstr("column 1: 'caf"));
    EXPECT_EQ(open(text("u8.csv", "a,label\n1,caf\xc3\xa9\n"))->facts().class_names, (std::vector<std::string>{"caf\xc3\xa9"}));
}

TEST_F(tables, columns_are_chosen_and_ordered_by_name) {
    std::string const path = text("c.csv", ",a,b,note,label\n0,1,2,x,3\n1,4,5,y,0\n");
    EXPECT_THAT(refused(path), AllOf(HasSubstr("c.csv:2:7: 'x' is no float32"), HasSubstr("--drop note")));
    auto const from = open(path, {.drop = {"note"}});
    EXPECT_THAT(from->notes().words, testing::Contains(HasSubstr("the first column of c.csv has no name")));
    EXPECT_EQ(from->facts().columns, (std::vector<std::string>{"a", "b"}));
    from->order_columns({"b", "a"});
    EXPECT_EQ(values_of(*from), (std::vector<float>{2, 1, 5, 4}));
    EXPECT_EQ(values_of(*open(path, {.columns = {"b", "1"}})), (std::vector<float>{2, 0, 5, 1}));
    EXPECT_THAT(refused(path, {.drop = {"notes"}}), HasSubstr("--drop: has no column 'notes', but note"));
    EXPECT_THAT(refused(path, {.drop = {"label"}}), HasSubstr("is the column of labels"));
}

}  // namespace
}  // namespace muster
