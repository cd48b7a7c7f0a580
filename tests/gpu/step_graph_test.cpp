// A step as graphs: what is put once is done in each run, parts that cannot be captured come between, and streams that nothing
// orders are refused. Over the fake driver.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/error.hpp"
#include "bench/gpu/step/step_graph.hpp"

namespace muster::test {

namespace {

class step_graphs : public testing::Test {
  protected:
    std::shared_ptr<cuda::device const> on_ = cuda::device::open(cuda::find_driver(), 0);
    cuda::device::scope current_{*on_};
    cuda::unique_stream stream_ = cuda::make_stream(*on_), other_ = cuda::make_stream(*on_);
    cuda::unique_event fork_ = cuda::make_event(*on_), join_ = cuda::make_event(*on_);
    cuda::unique_memory memory_ = cuda::make_memory(*on_, 16);

    cuda::driver const& with() const { return on_->with(); }
    cuda::stream_handle stream() const { return stream_.get().handle; }
    cuda::device_address place(int byte) const { return memory_.get().handle + static_cast<unsigned>(byte); }
    void fill(int byte, int value) {
        cuda::check(with(), with().fill(place(byte), static_cast<unsigned char>(value), 1, stream()), "fill");
    }
    void copy(int to, int from, cuda::stream_handle by) {
        cuda::check(with(), with().copy_device_to_device(place(to), place(from), 1, by), "copy");
    }
    int value(int byte) {
        unsigned char out = 0;
        cuda::check(with(), with().copy_device_to_host(&out, place(byte), 1, stream()), "copy");
        cuda::check(with(), with().stream_synchronize(stream()), "synchronize");
        return out;
    }
};

TEST_F(step_graphs, do_in_each_run_what_was_put_once) {
    int puts = 0, between = 0;
    step_graph graph(
        *on_, stream(), true,
        {{[&] { ++puts, copy(1, 0, stream()); }}, {[&] { copy(2, 1, stream()); }}, {[&] { ++between; }, false}, {[&] {
             copy(3, 2, stream());
         }}});
    for (int run = 1; run <= 4; ++run) {
        fill(0, run);
        graph.run();
        EXPECT_EQ(value(3), run);
        EXPECT_EQ(between, run);
    }
    EXPECT_EQ(puts, 2);  // as it stands, and captured
    EXPECT_EQ(graph.graphs(), 2u);
}

TEST_F(step_graphs, are_not_made_where_they_are_not_wanted) {
    int puts = 0;
    step_graph graph(*on_, stream(), false, {{[&] { ++puts; }}});
    for (int run = 0; run < 3; ++run) graph.run();
    EXPECT_EQ(puts, 3);
    EXPECT_EQ(graph.graphs(), 0u);
}

/// Two streams that events order, as the gradients' reduction is beside the backward pass.
TEST_F(step_graphs, keep_the_order_of_events) {
    auto const side = other_.get().handle;
    step_graph graph(*on_, stream(), true, {{[&] {
        copy(1, 0, stream());
        cuda::check(with(), with().event_record(fork_.get().handle, stream()), "record");
        cuda::check(with(), with().stream_wait_event(side, fork_.get().handle, 0), "wait");
        copy(2, 1, side);
        cuda::check(with(), with().event_record(join_.get().handle, side), "record");
        cuda::check(with(), with().stream_wait_event(stream(), join_.get().handle, 0), "wait");
        copy(3, 2, stream());
    }}});
    for (int run = 1; run <= 3; ++run) {
        fill(0, run);
        graph.run();
        EXPECT_EQ(value(3), run);
    }
    step_graph loose(*on_, stream(), true, {{[&] {
        cuda::check(with(), with().event_record(fork_.get().handle, stream()), "record");
        cuda::check(with(), with().stream_wait_event(side, fork_.get().handle, 0), "wait");
        copy(2, 1, side);
    }}});
    loose.run();
    EXPECT_THROW(loose.run(), error);  // nothing waits for the other stream
    EXPECT_EQ(value(0), 3);            // and the stream is not left captured
}

}  // namespace

}  // namespace muster::test
