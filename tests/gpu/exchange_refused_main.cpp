// Ranks of which some have no NCCL that is new enough (the FAKE one says so of itself): all are told of their tensors in device
// memory, and those in host memory go on.
//   gpu_exchange_refused RANK|all
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "base/log.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/exchange/exchange.hpp"
#include "pmix/identity.hpp"

using namespace muster;

namespace {

void require(bool holds, std::string const& what) {
    if (holds) return;
    std::fprintf(stderr, "not so: %s\n", what.c_str());
    std::_Exit(1);  // no destructor may wait for the other ranks now
}

void grow_old() {
    void* const fake = ::dlopen("libnccl.so.2", RTLD_NOW);
    auto* const set = fake != nullptr ? reinterpret_cast<void (*)(char const*, int)>(::dlsym(fake, "fake_set")) : nullptr;
    require(set != nullptr, "this runs over the fake NCCL");
    set("nccl_version", 21400);
}

}  // namespace

int main(int argc, char** argv) {
    std::string const lacking = argc > 1 ? argv[1] : "all";
    identity const who = identify(environment::capture());
    init_log("off");
    if (lacking == "all" || lacking == std::to_string(who.rank)) grow_old();
    exchange_options options;
    options.deadline = duration{30};
    exchange all(who, options);
    std::vector<float> values(5, 1.0f);  // the fake's device memory is host memory
    tensor_view const on_host = view_of(std::span(values));
    tensor_view on_device = on_host;
    on_device.where = memory_kind::device;
    for (int step = 0; step < 2; ++step) {
        try {
            all.allreduce("grad", on_device, on_device, reduction::sum).wait();
            require(false, "an allreduce without NCCL fails");
        } catch (comm_error const& problem) {
            std::string const text = problem.what();
            require(problem.code() == errc::unavailable, "its code tells that it cannot be had: " + text);
            require(text.find("allreduce of \"grad\"") != text.npos, "it is named: " + text);
            require(text.find("is NCCL 2.14.0, 2.18.0 or later is needed") != text.npos, "so is the reason: " + text);
            require(lacking == "all" || text.find("rank " + lacking + " on ") != text.npos, "and the rank: " + text);
        }
        all.allreduce("other", on_host, on_host, reduction::average).wait();
        require(values == std::vector<float>(5, 1.0f), "tensors in host memory go on");
    }
    return 0;
}
