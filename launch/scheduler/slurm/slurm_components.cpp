#include "launch/scheduler/slurm/slurm_components.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace muster {

std::string slurm_component::name(std::string_view base) const {
    return fmt::format("{}{}", base, suffix);
}

std::optional<std::string> slurm_component::get(std::string_view base) const {
    return variables.get(name(base));
}

int count_slurm_components(environment const& variables) {
    int const size = variables.get_int("SLURM_HET_SIZE").value_or(1);
    auto const job = variables.get("SLURM_JOB_ID");
    bool others = false;
    for (int i = 0; i < size; ++i) {
        auto const id = variables.get(fmt::format("SLURM_JOB_ID_HET_GROUP_{}", i));
        if (id && id == job) return size;
        others = others || id.has_value();
    }
    return others ? 1 : std::max(size, 1);
}

std::vector<slurm_component> slurm_components(environment const& variables) {
    int const size = count_slurm_components(variables);
    std::vector<slurm_component> all;
    for (int i = 0; size > 1 && i < size && variables.has(fmt::format("SLURM_JOB_NODELIST_HET_GROUP_{}", i)); ++i)
        all.push_back({variables, fmt::format("_HET_GROUP_{}", i)});
    if (all.empty()) all.push_back({variables, ""});
    return all;
}

}  // namespace muster
