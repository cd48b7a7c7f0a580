#include "fake_ranks.hpp"

#include <array>
#include <chrono>
#include <exception>
#include <stdexcept>
#include <thread>

#include "base/shared_library.hpp"

namespace muster::test {

namespace {

std::array<std::string, 1> const fake_file{MUSTER_FAKE_GPU};

shared_library const& controls() {
    static auto const& opened = *new shared_library(fake_file);
    if (!opened) throw std::runtime_error(opened.missing());
    return opened;
}

}  // namespace

nccl::found_library const& fake_nccl() {
    static auto const found = nccl::find_library(fake_file);
    return found;
}
cuda::found_driver const& fake_driver() {
    static auto const found = cuda::find_driver(fake_file);
    return found;
}

void fake_set(char const* knob, int value) {
    controls().symbol<void(char const*, int)>("fake_set")(knob, value);
}
void fake_reset() {
    controls().symbol<void()>("fake_reset")();
}
std::string fake_log() {
    std::vector<char> text(1 << 16);
    controls().symbol<void(char*, unsigned long)>("fake_log")(text.data(), text.size());
    return text.data();
}

std::vector<std::vector<std::byte>> rendezvous::gather(int rank, std::span<std::byte const> mine) {
    std::unique_lock guard(lock_);
    blobs_[static_cast<std::size_t>(rank)].assign(mine.begin(), mine.end());
    ++come_;
    all_.notify_all();
    all_.wait(guard, [&] { return come_ == blobs_.size(); });
    return blobs_;
}

identity fake_rank(int rank, int size) {
    identity who;
    who.nspace = "fake.0";
    who.rank = rank;
    who.world_size = size;
    who.local_rank = rank;
    who.local_size = size;
    who.host = "n1";
    return who;
}

comm_options fake_options(int rank, double deadline) {
    comm_options options;
    options.backend = "nccl";
    options.memory = memory_kind::device;
    options.device = rank;
    options.deadline = duration{deadline};
    return options;
}

std::unique_ptr<collective_backend> make_rank(int rank, int size, rendezvous& at, comm_options const& options) {
    nccl::parts const from{&fake_nccl(), &fake_driver(), [&](identity const& who, std::span<std::byte const> mine, duration) {
                               return at.gather(who.rank, mine);
                           }};
    return nccl::make_backend(fake_rank(rank, size), options, from);
}

void on_ranks(int size, std::function<void(collective_backend&, int rank)> const& body) {
    rendezvous at(size);
    std::mutex lock;
    std::exception_ptr first;
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank)
        threads.emplace_back([&, rank] {
            try {
                auto const backend = make_rank(rank, size, at, fake_options(rank));
                body(*backend, rank);
            } catch (...) {
                std::scoped_lock const guard(lock);
                if (!first) first = std::current_exception();
            }
        });
    for (auto& thread : threads) thread.join();
    if (first) std::rethrow_exception(first);
}

void wait(collective_backend& on, ticket which) {
    if (which == 0) return;
    auto const begin = std::chrono::steady_clock::now();
    while (!on.done(which)) {
        std::this_thread::yield();
        if (std::chrono::steady_clock::now() - begin > std::chrono::minutes(1))
            throw std::runtime_error("not done after a minute");
    }
}

void run(collective_backend& on, collective const& what) {
    wait(on, on.start(what));
}

}  // namespace muster::test
