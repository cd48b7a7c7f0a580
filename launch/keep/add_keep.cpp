#include "launch/keep/add_keep.hpp"

#include "launch/keep/keeper.hpp"
#include "launch/keep/state_holder.hpp"

namespace muster {

void add_keep(part_functions& to) {
    to.commands.push_back({"keeper", keeper_command});
    to.keep_states = [] { return std::unique_ptr<state_keeping>(std::make_unique<state_holder>()); };
}

}  // namespace muster
