// Copies from and to the memory of another process of the same user, if the kernel allows it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace muster::shm {

/// Copies `bytes` from address `from` of process `whom`. Returns 0 or errno: EPERM if the kernel does not allow it, ESRCH if the
/// process is gone, EFAULT if the memory is not there (then part of it may have been copied).
int read_memory(pid_t whom, void* into, std::uint64_t from, std::size_t bytes) noexcept;

/// Copies to address `to` of process `whom`; otherwise the same.
int write_memory(pid_t whom, void const* from, std::uint64_t to, std::size_t bytes) noexcept;

/// Lets processes of this user read and write this process's memory if the Yama module demands a permission
/// (kernel.yama.ptrace_scope = 1). Has no effect elsewhere.
void permit_memory_access() noexcept;

/// Returns the reason for `code`, for messages, with the machine's setting that causes it.
std::string why_no_memory_access(int code);

}  // namespace muster::shm
