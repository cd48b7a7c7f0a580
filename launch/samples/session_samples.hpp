// Finds the samples of the runs that this user has started from this node.
#pragma once

#include <string>
#include <vector>

namespace muster {

/// Returns the folders that hold, or will hold, the samples of runs of this user whose launchers are on this node, the latest run first: a run's own folder
/// (--output-dir), or the session folder of its launcher. Pass session_places() to find also those below TMPDIR. Reads no file in the folder of a run, which
/// may lie on a file system that does not answer.
std::vector<std::string> session_sample_folders(std::vector<std::string> const& places = {"/dev/shm", "/tmp"});

/// Notes in a session folder that the run's samples are in `run_folder`, an absolute path. Does nothing if it cannot.
void note_sample_folder(std::string const& session_dir, std::string const& run_folder) noexcept;

}  // namespace muster
