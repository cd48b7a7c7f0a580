// The screen of `muster top`: draws the page of a run on a terminal, again and again, and obeys keys.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launch/jobs/top/sampled_run.hpp"

namespace muster {

enum class top_key { quit, hosts, next_host, help, up, down, page_up, page_down };

/// Takes whole keys from the front of what a terminal has sent, and leaves the start of an unfinished one. Drops what is no key. Pure.
std::vector<top_key> take_keys(std::string& typed);

/// Returns whether standard input and output are a terminal that can be drawn on.
bool can_draw_top(environment const& variables);

/// Shows the run, which has been looked at, until it ends or the user does. Returns the exit code: 0, or 128+n after signal n, by which the process ends at
/// once while a file system does not answer. Throws as sampled_run::look().
int draw_top(sampled_run run, environment const& variables);

}  // namespace muster
