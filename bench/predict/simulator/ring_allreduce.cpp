#include "bench/predict/simulator/ring_allreduce.hpp"

#include <algorithm>
#include <simgrid/s4u.hpp>

#include "bench/predict/simulator/simulator.hpp"

namespace muster {

namespace {

/// Open MPI's libnbc takes the ring from here on.
constexpr std::size_t ring_bytes = 65536;

int most_rounds = 1 << 16;
double latency_s = 0;

}  // namespace

void set_ring_model(int rounds, double latency) noexcept {
    most_rounds = rounds;
    latency_s = latency;
}

ring_allreduce::ring_allreduce(void* data, std::size_t count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, int tag)
    : data_(static_cast<std::byte*>(data)), count_(count), type_(type), op_(op), comm_(comm), tag_(tag) {
    int bytes = 0;
    PMPI_Type_size(type, &bytes);
    element_bytes_ = static_cast<std::size_t>(bytes);
    PMPI_Comm_rank(comm, &rank_);
    PMPI_Comm_size(comm, &size_);
    if (count_ * element_bytes_ >= ring_bytes && count_ >= static_cast<std::size_t>(size_))
        plan_ring();
    else
        plan_doubling();
}

ring_allreduce::part ring_allreduce::chunk(int index) const noexcept {
    auto const ranks = static_cast<std::size_t>(size_);
    auto const place = static_cast<std::size_t>((index % size_ + size_) % size_);
    std::size_t const first = count_ * place / ranks;
    return {first, count_ * (place + 1) / ranks - first};
}

void ring_allreduce::plan_ring() {
    int const next = (rank_ + 1) % size_, before = (rank_ + size_ - 1) % size_;
    int const together = (size_ - 2 + most_rounds) / most_rounds;
    if (together > 1) {
        for (bool const reduces : {true, false})
            for (int left = size_ - 1; left > 0; left -= together) {
                int const these = std::min(together, left);
                part const chunks{0, count_ * static_cast<std::size_t>(these) / static_cast<std::size_t>(size_)};
                rounds_.push_back({next, before, chunks, chunks, reduces, these});
            }
        return;
    }
    for (int step = 0; step < size_ - 1; ++step)
        rounds_.push_back({next, before, chunk(rank_ - step), chunk(rank_ - step - 1), true});
    for (int step = 0; step < size_ - 1; ++step)
        rounds_.push_back({next, before, chunk(rank_ + 1 - step), chunk(rank_ - step), false});
}

/// Of n ranks, n no power of two, those from p on are first folded into rank - p, and get the result at the end.
void ring_allreduce::plan_doubling() {
    part const whole{0, count_};
    int power = 1;
    while (power * 2 <= size_) power *= 2;
    int const rest = size_ - power;
    if (rank_ >= power) {
        rounds_ = {{rank_ - power, -1, whole, {}, false}, {-1, rank_ - power, {}, whole, false}};
        return;
    }
    if (rank_ < rest) rounds_.push_back({-1, rank_ + power, {}, whole, true});
    for (int distance = 1; distance < power; distance *= 2)
        rounds_.push_back({rank_ ^ distance, rank_ ^ distance, whole, whole, true});
    if (rank_ < rest) rounds_.push_back({rank_ + power, -1, whole, {}, false});
}

void ring_allreduce::begin() {
    round const& now = rounds_[at_];
    std::byte* into = data_ + now.received.first * element_bytes_;
    if (now.reduces) {
        // What carries nothing is not written: all ranks have one piece of memory for it.
        static std::vector<std::byte> nowhere;
        std::size_t const bytes = now.received.count * element_bytes_;
        auto& scratch = bytes <= payload_limit ? scratch_ : nowhere;
        if (scratch.size() < bytes) scratch.resize(bytes);
        into = scratch.data();
    }
    if (now.from >= 0) PMPI_Irecv(into, static_cast<int>(now.received.count), type_, now.from, tag_, comm_, &requests_[0]);
    if (now.to >= 0)
        PMPI_Isend(data_ + now.sent.first * element_bytes_, static_cast<int>(now.sent.count), type_, now.to, tag_, comm_,
                   &requests_[1]);
    under_way_ = true;
}

void ring_allreduce::end() {
    round const& now = rounds_[at_];
    if (!now.reduces) return;
    std::size_t const bytes = now.received.count * element_bytes_;
    if (bytes <= payload_limit && now.stands_for == 1)
        PMPI_Reduce_local(scratch_.data(), data_ + now.received.first * element_bytes_, static_cast<int>(now.received.count),
                          type_, op_);
    pass_memory_time(3 * bytes);
}

bool ring_allreduce::arrived() {
    namespace s4u = simgrid::s4u;
    if (!arrived_) {
        int done = 0;
        PMPI_Testall(2, requests_.data(), &done, MPI_STATUSES_IGNORE);
        if (done == 0) return false;
        arrived_ = true;
        goes_on_at_ = s4u::Engine::get_clock() + latency_s * (rounds_[at_].stands_for - 1);
    }
    return s4u::Engine::get_clock() >= goes_on_at_;
}

bool ring_allreduce::advance() {
    while (at_ < rounds_.size()) {
        if (!under_way_) begin();
        if (!arrived()) return false;
        end();
        under_way_ = arrived_ = false;
        ++at_;
    }
    return true;
}

}  // namespace muster
