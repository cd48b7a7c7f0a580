// Ranks of which one ends at a random moment; each prints in lines what it sees.
#pragma once

#include <string>

namespace muster::victims {

enum class moment { init, work, finalise };

/// What a rank is told. `after_us` counts from the beginning of the making of the exchange, from its first step, or from the
/// beginning of its end.
struct fate {
    int culprit = 0;
    moment when = moment::work;
    int signal = 0;  ///< SIGKILL or SIGSTOP; 0: nobody falls
    int after_us = 0;
    double deadline_s = 1.0;
    std::string backend = "shm";
    int ranks_per_node = 0;     ///< of made-up nodes; 0: as the launcher says
    bool on_device = false;     ///< every other tensor: for the FAKE GPU, whose memory is that of the host
    std::string flight_folder;  ///< where ranks leave their last operations
    std::string meeting_place;  ///< a folder where all ranks of a launcher's wait for each other before they begin; "": none
};

/// For a command line, and back. No blanks in it but in folders' names, which must have none.
std::string write_fate(fate const& what);
fate read_fate(std::string const& text);

/// Seconds of a clock that all processes of the machine share.
double now_s();

/// Makes an exchange, reduces until something happens, ends it, and waits for a signal. Lines into `to`, the times being now_s():
///   begin RANK PID TIME        before anything
///   met RANK TIME              the exchange is made
///   falls RANK TIME            the culprit's last
///   said RANK TIME ended | blames 1 2: MESSAGE | fault: MESSAGE
///   left RANK TIME             after `said`: the exchange is destroyed
[[noreturn]] void be_rank(int rank, int ranks, std::string const& job, fate const& what, int to);

/// The same for a rank that a launcher started, into standard output.
[[noreturn]] void be_launched_rank(fate const& what);

}  // namespace muster::victims
