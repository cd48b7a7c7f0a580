#include "comm/backend/self_backend.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "comm/tensor/reduction_kernels.hpp"

namespace muster {

namespace {

class self_backend final : public collective_backend {
  public:
    explicit self_backend(std::string host) : hosts_{std::move(host)} {}

    std::vector<std::string> const& hosts() const noexcept override { return hosts_; }

    bool crowded() const noexcept override { return false; }

    /// Every reduction over one rank is its own input, scaled, and so is what is gathered or exchanged.
    ticket start(collective const& what) override {
        if (what.out.count == 0) return 0;
        if (!what.scale.is_one()) {
            std::array<void const*, 1> const source{what.in.data};
            combine(what.out.type, what.how, source, what.out.data, what.out.count, what.scale);
        } else if (what.in.data != what.out.data)
            std::memcpy(what.out.data, what.in.data, what.out.bytes());
        return 0;
    }
    bool done(ticket) override { return true; }
    void progress() override {}
    void abandon(ticket) noexcept override {}
    std::vector<late_rank> late_ranks(ticket) noexcept override { return {}; }
    std::unique_ptr<collective_backend> subset(std::span<int const>) override {
        return std::make_unique<self_backend>(hosts_.front());
    }
    void const* native() const noexcept override { return nullptr; }

  private:
    std::vector<std::string> hosts_;
};

}  // namespace

std::optional<std::string> self_unavailable(identity const& who, comm_options const& options, int mpi_world_size) {
    if (who.world_size != 1) return fmt::format("it serves one rank and the world has {}", who.world_size);
    // The program's own MPI may know more than the variables do; unless told so, never train apart from it.
    if (options.backend.empty() && options.members.empty() && mpi_world_size > 1)
        return fmt::format("MPI is initialised and its world has {} ranks", mpi_world_size);
    return std::nullopt;
}

std::unique_ptr<collective_backend> make_self_backend(identity const& who, comm_options const&) {
    return std::make_unique<self_backend>(who.host);
}

}  // namespace muster
