#include "comm/backend_table.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "base/log.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "comm/backend/speaker.hpp"
#include "comm/hierarchical/hierarchical_backend.hpp"
#include "comm/mpi/mpi_backend.hpp"
#include "comm/nccl/nccl_backend.hpp"
#include "comm/shm/shm_backend.hpp"
#include "comm/tcp/tcp_backend.hpp"
#include "comm/tensor/reduction_kernels.hpp"

namespace muster {

std::unique_ptr<collective_backend> make_self_backend(identity const& who, comm_options const& options);

namespace {

class self_backend final : public collective_backend {
  public:
    explicit self_backend(std::string host) : hosts_{std::move(host)} {}

    std::vector<std::string> const& hosts() const noexcept override { return hosts_; }

    bool crowded() const noexcept override { return false; }

    /// Copies the input, scaled: with one rank that is the result of every collective.
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

/// `mpi_world_size`: of the MPI that the program itself runs, or 0. Pure.
std::optional<std::string> self_unavailable(identity const& who, comm_options const& options, int mpi_world_size) {
    if (who.world_size != 1) return fmt::format("it serves one rank and the world has {}", who.world_size);
    // The program's own MPI may know more than the variables do; never train apart from it unless the user asks for that.
    if (options.backend.empty() && options.members.empty() && mpi_world_size > 1)
        return fmt::format("MPI is initialised and its world has {} ranks", mpi_world_size);
    return std::nullopt;
}

std::unique_ptr<collective_backend> make_self_backend(identity const& who, comm_options const&) {
    return std::make_unique<self_backend>(who.host);
}

namespace {

// The program's own MPI may know more of the world than the variables do, so these rows get its size.

std::optional<std::string> self_refusal(identity const& who, comm_options const& options) {
    return self_unavailable(who, options, running_mpi_world_size());
}

std::optional<std::string> shm_refusal(identity const& who, comm_options const& options) {
    return shm_unavailable(who, options, running_mpi_world_size());
}

std::unique_ptr<collective_backend> make_shm(identity const& who, comm_options const& options) {
    return make_shm_backend(who, options, running_mpi_world_size());
}

/// If addresses are given, the launcher or a store joins the nodes by them, and no MPI knows these ranks.
std::optional<std::string> mpi_refusal(identity const& who, comm_options const& options) {
    if (options.backend.empty() && !options.addresses.empty()) return "the ranks' addresses are given, by which tcp joins them";
    return mpi_unavailable(who, options);
}

std::optional<std::string> tcp_refusal(identity const& who, comm_options const& options) {
    if (options.backend.empty() && who.world_size == 1) return "one rank needs no other";
    return tcp_unavailable(who, options);
}

constexpr std::array table{
    backend_row{"self", self_refusal, make_self_backend},
    backend_row{"nccl", nccl_unavailable, make_nccl_backend, memory_kind::device, true, "", make_nccl_backend_over},
    backend_row{"hierarchical", hierarchical_unavailable, make_hierarchical_backend, memory_kind::host, false,
                "nccl goes in steps by itself, within the nodes and across them"},
    backend_row{"shm", shm_refusal, make_shm},
    backend_row{"mpi", mpi_refusal, make_mpi_backend},
    backend_row{"tcp", tcp_refusal, make_tcp_backend},
};

[[noreturn]] void throw_unknown(std::span<backend_row const> rows, std::string const& name) {
    std::vector<std::string> names;
    for (auto const& row : rows) names.emplace_back(row.name);
    auto const near = nearest(name, names);
    throw_error(errc::usage, "there is no backend \"{}\"; there are: {}{}", name, join(names, ", "),
                near ? fmt::format("; did you mean \"{}\"?", *near) : "");
}

/// Returns "backend shm, the first in the table that can serve them; refused before: self: the world has 2 ranks".
std::string explain_choice(backend_row const& taken, std::vector<std::string> const& refusals, comm_options const& options) {
    return fmt::format("backend {}, {}{}{}", taken.name,
                       options.backend.empty() ? "the first in the table that can serve them" : "asked for by name",
                       refusals.empty() ? "" : "; refused before: ", join(refusals, "; "));
}

}  // namespace

std::span<backend_row const> backend_table() noexcept {
    return table;
}

backend_row const& device_row(std::string_view name) {
    backend_row const* first = nullptr;
    bool known = name.empty();
    for (auto const& row : table) {
        known = known || row.name == name;
        if (row.memory != memory_kind::device) continue;
        if (row.name == name) return row;
        if (first == nullptr) first = &row;
    }
    if (!known) throw_unknown(table, std::string(name));
    return *first;
}

void tell_refusal(identity const& who, comm_options const& options) {
    for (auto const& row : backend_table()) {
        bool const asked = options.backend.empty() || row.name == options.backend;
        if (row.tells_refusal && asked && row.memory == options.memory && who.world_size > 1) row.create(who, options);
    }
}

backend_choice choose_backend(std::span<backend_row const> rows, identity const& who, comm_options const& options) {
    std::vector<std::string> refusals;
    bool known = options.backend.empty();
    for (auto const& row : rows) {
        if (!options.backend.empty() && row.name != options.backend) continue;
        known = true;
        auto const refusal =
            row.memory != options.memory
                ? fmt::format("it works on {} memory, the tensors lie in {} memory (comm_options::memory){}{}",
                              to_string(row.memory), to_string(options.memory), row.instead.empty() ? "" : "; ", row.instead)
                : row.unavailable(who, options);
        if (!refusal) {
            backend_choice const choice{&row, explain_choice(row, refusals, options)};
            spdlog::debug("communicator: {} rank(s): {}", who.world_size, choice.why);
            return choice;
        }
        refusals.push_back(fmt::format("{}: {}", row.name, *refusal));
    }
    if (!known) throw_unknown(rows, options.backend);
    std::string const message = fmt::format("{}: no backend can serve this world ({}){}", speaker(who), join(refusals, "; "),
                                            options.backend.empty() ? "" : "; leave the backend open to have one chosen");
    spdlog::debug("communicator: {}", message);
    throw error(errc::unavailable, message);
}

}  // namespace muster
