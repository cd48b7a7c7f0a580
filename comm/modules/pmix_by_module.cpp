// The PMIx client within libmuster_comm.so: what of pmix/client/client.hpp is used there, by libmuster_comm_pmix.so.
#include "base/error.hpp"
#include "comm/modules/module_entry.hpp"
#include "comm/modules/open_module.hpp"

namespace muster::pmix {

namespace {

modules::opened_module const& pmix_module() {
    static auto const found = modules::open_module("pmix", "", "install muster's libraries and PMIx (Debian: libpmix2)");
    return found;
}

modules::pmix_functions const& pmix() {
    auto const& found = pmix_module();
    if (found.functions == nullptr) throw error(errc::unavailable, found.why_not);
    return *static_cast<modules::pmix_functions const*>(found.functions);
}

}  // namespace

bool client_is_available() noexcept try { return pmix_module().functions != nullptr; } catch (...) {
    return false;
}

/// The client in the module. Named as in client.cpp, which is no part of libmuster_comm.so.
struct client::state {
    client* there;
    explicit state(client* made) : there(made) {}
    state(state const&) = delete;
    state& operator=(state const&) = delete;
    ~state() { pmix().leave(there); }
};

client::client(duration deadline) : state_(std::make_shared<state>(pmix().connect(deadline))) {}

client::~client() = default;

identity const& client::who() const noexcept {
    return pmix().who(*state_->there);
}

void client::put(std::string_view key, std::span<std::byte const> value) {
    pmix().put(*state_->there, key, value);
}

void client::commit(duration deadline) {
    pmix().commit(*state_->there, deadline);
}

void client::fence(duration deadline) {
    pmix().fence(*state_->there, deadline);
}

std::vector<std::byte> client::get_bytes(int rank, std::string_view key, duration deadline) {
    return pmix().get_bytes(*state_->there, rank, key, deadline);
}

}  // namespace muster::pmix
