// The module libmuster_comm_pmix.so: the PMIx client, linked to PMIx.
#include "comm/modules/module_entry.hpp"

namespace {

using muster::pmix::client;

constexpr muster::modules::pmix_functions functions{
    [](muster::duration deadline) { return new client(deadline); },
    [](client* of) noexcept { delete of; },
    [](client const& of) noexcept -> muster::identity const& { return of.who(); },
    [](client& of, std::string_view key, std::span<std::byte const> value) { of.put(key, value); },
    [](client& of, muster::duration deadline) { of.commit(deadline); },
    [](client& of, muster::duration deadline) { of.fence(deadline); },
    [](client& of, int rank, std::string_view key, muster::duration deadline) { return of.get_bytes(rank, key, deadline); },
};

}  // namespace

muster::modules::module_entry const muster_comm_module{muster::modules::this_build, &functions};
