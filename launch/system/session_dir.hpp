// The private folder of one run: sockets, and the ranks' shared memory.
#pragma once

#include <ctime>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "base/unique_fd.hpp"

namespace muster {

/// Returns its possible places, the best first: /dev/shm, /tmp and TMPDIR, unless its path is too long or not absolute. Pure.
std::vector<std::string> session_places(environment const& variables);

/// Makes muster-UID-PID-XXXXXX (mode 0700) in the first writable one of `places`, usually /dev/shm. The name is short because the
/// paths of unix sockets below it have at most 108 bytes. The folder is in memory, since ranks map shared memory there. `lock`
/// then holds a lock on it, which ends with the last process that has it open. Throws errc::system.
std::string make_session_dir(unique_fd& lock, std::vector<std::string> const& places = {"/dev/shm", "/tmp"});

/// Returns this user's session folders in `places`, in no order: only those that nobody else may enter.
std::vector<std::string> session_dirs(std::vector<std::string> const& places = {"/dev/shm", "/tmp"});

/// Removes this user's session folders in `folders` that no process holds any more, in whatever PID namespace: those of runs
/// whose guardian and launcher were both killed. Removes only what make_session_dir made and locked, with exactly its mode and
/// marker, `youngest_s` seconds ago or more.
void sweep_session_dirs(std::vector<std::string> const& folders = {"/dev/shm", "/tmp"}, std::time_t youngest_s = 60) noexcept;

/// Removes it and all below; a missing folder is no error.
void remove_session_dir(std::string const& path) noexcept;

/// Removes the files in /dev/shm that killed ranks' libraries left: files of this user, made since `since`, with names in the
/// style of MPICH, Open MPI, NCCL, UCX, PSM, PyTorch and Python's multiprocessing, and mapped or opened by no living process.
/// Call it after a run that ended badly, when all its processes are dead. Never touches other files: users stage data in
/// /dev/shm. Does nothing in a container with its own PID namespace, where the users of a file are not visible. Returns the
/// number of removed files.
int sweep_shared_memory(std::time_t since) noexcept;

}  // namespace muster
