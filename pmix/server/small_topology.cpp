#include "pmix/server/small_topology.hpp"

#include <cstdlib>
#include <optional>
#include <string>

#include "base/error.hpp"

namespace muster::pmix {
namespace {

/// Sets a variable of this process while it lives: hwloc takes this choice from nowhere else.
class scoped_variable {
  public:
    scoped_variable(char const* name, char const* value) : name_(name) {
        if (char const* old = std::getenv(name)) old_ = old;
        setenv(name, value, 1);
    }
    scoped_variable(scoped_variable const&) = delete;
    scoped_variable& operator=(scoped_variable const&) = delete;
    ~scoped_variable() {
        if (old_)
            setenv(name_, old_->c_str(), 1);
        else
            unsetenv(name_);
    }

  private:
    char const* name_;
    std::optional<std::string> old_;
};

unique_topology make_topology() {
    scoped_variable const no_plugins("HWLOC_PLUGINS_PATH", "/nonexistent");
    hwloc_topology_t raw = nullptr;
    if (hwloc_topology_init(&raw) != 0) throw library_error("hwloc", "hwloc_topology_init", -1, "failed");
    return unique_topology(raw);
}

}  // namespace

unique_topology load_small_topology() {
    auto topology = make_topology();
    hwloc_topology_set_io_types_filter(topology.get(), HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc_topology_set_type_filter(topology.get(), HWLOC_OBJ_MISC, HWLOC_TYPE_FILTER_KEEP_NONE);
    if (hwloc_topology_load(topology.get()) != 0) throw library_error("hwloc", "hwloc_topology_load", -1, "failed");
    return topology;
}

unique_topology make_dummy_topology() {
    auto topology = make_topology();
    if (hwloc_topology_set_synthetic(topology.get(), "pu:1") != 0 || hwloc_topology_load(topology.get()) != 0)
        throw library_error("hwloc", "hwloc_topology_set_synthetic", -1, "failed");
    return topology;
}

}  // namespace muster::pmix
