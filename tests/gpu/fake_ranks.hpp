// Ranks as threads of this process, on the fake CUDA driver and the fake NCCL (tests/gpu/fake).
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "comm/backend/collective_backend.hpp"
#include "comm/nccl/nccl_backend.hpp"

namespace muster::test {

/// The fake's libraries; the same for all tests.
nccl::found_library const& fake_nccl();
cuda::found_driver const& fake_driver();

/// Tells the fake what to do (fake_gpu.hpp), and what it noted.
void fake_set(char const* knob, int value);
void fake_reset();
std::string fake_log();

/// What gather_by_pmix is for processes.
class rendezvous {
  public:
    explicit rendezvous(int size) : blobs_(static_cast<std::size_t>(size)) {}
    std::vector<std::vector<std::byte>> gather(int rank, std::span<std::byte const> mine);

  private:
    std::mutex lock_;
    std::condition_variable all_;
    std::vector<std::vector<std::byte>> blobs_;
    std::size_t come_ = 0;
};

identity fake_rank(int rank, int size);

/// Options of a backend for device memory, with a deadline in seconds. GPU = rank.
comm_options fake_options(int rank, double deadline = 60);

std::unique_ptr<collective_backend> make_rank(int rank, int size, rendezvous& at, comm_options const& options);

/// Runs `body(backend, rank)` on `size` threads, each with its backend, and throws the first exception of any of them.
void on_ranks(int size, std::function<void(collective_backend&, int rank)> const& body);

/// Starts it and waits for it; throws what it throws, and std::runtime_error after a minute.
void run(collective_backend& on, collective const& what);
void wait(collective_backend& on, ticket which);

/// Elements in the fake's device memory, which is host memory.
template <typename T>
tensor_view on_device(std::vector<T>& elements) {
    return {elements.data(), elements.size(), dtype_of<T>(), memory_kind::device};
}

}  // namespace muster::test
