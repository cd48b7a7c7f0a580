#include "comm/shm/memory/remote_memory.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace muster::shm {

namespace {

/// The kernel moves at most 2^31 - 4096 bytes at once.
constexpr std::size_t most_at_once = std::size_t{1} << 30;

/// Returns "" if there is no such module.
std::string yama_scope() {
    std::ifstream file("/proc/sys/kernel/yama/ptrace_scope");
    std::string scope;
    std::getline(file, scope);
    return scope;
}

template <typename Call>
int copy(Call call, pid_t whom, void* here, std::uint64_t there, std::size_t bytes) noexcept {
    auto* local_data = static_cast<std::byte*>(here);
    while (bytes != 0) {
        iovec const local{local_data, std::min(bytes, most_at_once)};
        // This is an address in the other process, never followed here.
        iovec const remote{reinterpret_cast<void*>(static_cast<std::uintptr_t>(there)), local.iov_len};
        ssize_t const copied = call(whom, &local, 1, &remote, 1, 0);
        if (copied < 0) return errno;
        if (copied == 0) return EFAULT;
        auto const done = static_cast<std::size_t>(copied);
        local_data += done;
        there += done;
        bytes -= done;
    }
    return 0;
}

}  // namespace

int read_memory(pid_t whom, void* into, std::uint64_t from, std::size_t bytes) noexcept {
    return copy(::process_vm_readv, whom, into, from, bytes);
}

int write_memory(pid_t whom, void const* from, std::uint64_t to, std::size_t bytes) noexcept {
    return copy(::process_vm_writev, whom, const_cast<void*>(from), to, bytes);
}

void permit_memory_access() noexcept try {
    if (yama_scope() == "1") ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
} catch (...) {
    // the probe finds out that it is not permitted
}

std::string why_no_memory_access(int code) {
    std::string const scope = yama_scope();
    std::string text = fmt::format("process_vm_readv: {}", std::strerror(code));
    if (code == EPERM && !scope.empty() && scope != "0" && scope != "1")
        text += fmt::format(" (kernel.yama.ptrace_scope is {}; 0 or 1 allows it)", scope);
    else if (code == EPERM)
        text += " (a container without the right to it: give --cap-add=SYS_PTRACE, or a seccomp profile that allows it)";
    else if (code == ENOSYS)
        text += " (this kernel has none)";
    return text;
}

}  // namespace muster::shm
