// A row of the tables of `muster-bench io`: one way of reading, converting or copying, with what it was timed at.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace muster {

struct reading_row {
    std::string name;
    std::string bound;            ///< the row that it is compared with; "" for a bound
    std::function<double()> run;  ///< MB/s of one time
    std::function<void()>
        check;  ///< compares what the run has made, or makes it once more and compares; throws where it is wrong
    std::vector<double> mb_per_s{};
};

/// Runs every row so often, the rows taking turns, and checks it each time.
inline void measure_rows(std::vector<reading_row>& rows, int repetitions) {
    for (int repetition = 0; repetition < repetitions; ++repetition)
        for (std::size_t i = 0; i < rows.size(); ++i) {
            reading_row& row = rows[(i + static_cast<std::size_t>(repetition)) % rows.size()];
            row.mb_per_s.push_back(row.run());
            if (row.check) row.check();
        }
}

}  // namespace muster
