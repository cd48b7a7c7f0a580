// The fuzz target of the exchange's messages begins with these requests: tests/fuzz/corpus/exchange_messages holds them as
// encode() makes them today. MUSTER_UPDATE_FIXTURES=1 writes the files anew.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "comm/exchange/request/request_codec.hpp"

namespace muster {
namespace {

namespace fs = std::filesystem;
using extents = std::vector<std::int64_t>;

tensor_spec spec(std::string name, dtype type, extents const& shape, memory_kind where = memory_kind::host) {
    return {std::move(name), type, where, make_shape(shape)};
}

exchange_request named(std::string name, exchange_kind kind, std::vector<tensor_spec> tensors = {},
                       std::vector<std::int64_t> numbers = {}) {
    exchange_request made;
    made.name = std::move(name);
    made.kind = kind;
    made.tensors = std::move(tensors);
    made.numbers = std::move(numbers);
    return made;
}

/// Every kind of request, and every field with a value of its own somewhere.
std::map<std::string, std::vector<exchange_request>> seeds() {
    auto weight = named("conv1.weight", exchange_kind::allreduce, {spec("conv1.weight", dtype::f32, {64, 3, 7, 7})});
    weight.how = reduction::average;
    weight.wire = compression::bf16;
    weight.error_feedback = true;
    weight.places = {0x7f0012345640};
    auto root = named("b", exchange_kind::broadcast, {spec("b", dtype::i64, {9})});
    root.root = 1;
    auto scattered = named("rs", exchange_kind::reducescatter, {spec("rs", dtype::f64, {6, 2}, memory_kind::device)});
    scattered.how = reduction::max;
    auto group = named("group", exchange_kind::allreduce, {spec("a", dtype::f16, {}), spec("b", dtype::bf16, {16, 32})});
    group.how = reduction::adasum;
    group.scale = {0.5, 2};
    group.places = {4096, 8192};
    auto again = group;
    again.name = "prepared";
    again.kind = exchange_kind::prepare;
    auto removed = named(
        "\x01"
        "3",
        exchange_kind::remove_set, {}, {0, 1});
    removed.root = 3;
    return {{"tensors",
             {weight, named("rows", exchange_kind::allgather, {spec("rows", dtype::i32, {5, 2})}),
              named("a2a", exchange_kind::alltoall, {spec("a2a", dtype::u8, {3})}, {1, 2, 0}), root, scattered}},
            {"groups", {group, again}},
            {"control",
             {named(std::string(join_name), exchange_kind::join), named("set", exchange_kind::include, {}, {0, 2}),
              named("barrier", exchange_kind::barrier),
              named("\x01give up", exchange_kind::give_up, {spec("deadline passed", dtype::i8, {})}),
              named(std::string(open_device_name), exchange_kind::open_device),
              named(std::string(leave_name), exchange_kind::leave)}},
            {"of_some",
             {named("\x01\"pair\" whose first rank is 2", exchange_kind::make_set, {}, {2, 3}), removed,
              named("\x01"
                    "from rank 0 to rank 1 with tag 7 (number 0)",
                    exchange_kind::message, {spec("", dtype::u16, {4})}, {0, 1}),
              named("flags", exchange_kind::allgather, {spec("a", dtype::boolean, {2}), spec("b", dtype::i16, {3, 1})})}}};
}

TEST(exchange_seeds, are_what_is_sent_today) {
    fs::path const folder = fs::path(MUSTER_SOURCE_DIR) / "tests/fuzz/corpus/exchange_messages";
    for (auto const& [name, requests] : seeds()) {
        auto const bytes = encode(requests);
        if (std::getenv("MUSTER_UPDATE_FIXTURES") != nullptr)
            std::ofstream(folder / name, std::ios::binary)
                .write(reinterpret_cast<char const*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        std::ifstream file(folder / name, std::ios::binary);
        std::string const found{std::istreambuf_iterator<char>(file), {}};
        EXPECT_TRUE(found == std::string(reinterpret_cast<char const*>(bytes.data()), bytes.size()))
            << folder / name << ": the encoding has changed; MUSTER_UPDATE_FIXTURES=1 writes the seeds anew";
    }
}

}  // namespace
}  // namespace muster
