// The private folder of one run: sockets, and the ranks' shared memory.
#pragma once

#include <ctime>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "base/unique_fd.hpp"

namespace muster {

/// Where it may lie, the best place first: /dev/shm, /tmp and TMPDIR, unless that is too long a path, or none from the root. Pure.
std::vector<std::string> session_places(environment const& variables);

/// Makes muster-UID-PID-XXXXXX (mode 0700) in the first of `places` that can be written, usually /dev/shm. Short on purpose: unix
/// sockets below it have at most 108 bytes. Memory-backed, since ranks map shared memory there. `lock` then holds a lock on it,
/// which ends with the last process that has it open. Throws errc::system.
std::string make_session_dir(unique_fd& lock, std::vector<std::string> const& places = {"/dev/shm", "/tmp"});

/// Removes this user's session folders in `folders` that no process holds any more, in whatever space of process numbers: of runs of which both guardian
/// and launcher were killed. Only what make_session_dir made and locked, with its very mode and marker, `youngest_s` seconds ago or more.
void sweep_session_dirs(std::vector<std::string> const& folders = {"/dev/shm", "/tmp"}, std::time_t youngest_s = 60) noexcept;

/// Removes it and all below; a folder that is gone already is no error.
void remove_session_dir(std::string const& path) noexcept;

/// Removes the files in /dev/shm that killed ranks' libraries left: files of this user, made since `since`, named as MPICH, Open
/// MPI, NCCL, UCX, PSM, PyTorch and Python's multiprocessing name them, and mapped or opened by no living process. To be called
/// after a run that ended badly, when all its processes are dead. Never touches other files: users stage data in /dev/shm.
/// Does nothing in a container with its own process numbers, where the users of a file cannot be seen. Returns how many.
int sweep_shared_memory(std::time_t since) noexcept;

}  // namespace muster
