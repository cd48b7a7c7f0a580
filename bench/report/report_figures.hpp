// The figures of a report: has plots.py draw them from the report's JSON, by a Python that has Matplotlib.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/environment.hpp"

namespace muster {

struct report_figure {
    std::string file;     ///< its name in the folder: "speed-up.svg"; .pdf and .png lie beside it
    std::string caption;  ///< plain text
    std::string svg;
};

struct report_figures {
    std::vector<report_figure> drawn = {};
    std::string why_none = {};  ///< one line; empty if plots.py ended well, or was not asked
};

/// plots.py as this version has it.
std::string own_plots_script();

/// Returns the script of a report's folder: FOLDER/plots.py, which it writes if the file is missing and keeps if its user has edited it; this version's
/// if another user can have written the file. Says on standard error what it has found. Throws errc::io.
std::string plots_script_of(std::filesystem::path const& folder);

/// Runs the script, with the first Python that has Matplotlib: the system's, then the one along PATH. It reads `summary` and draws into `folder`.
/// Throws errc::io if what it has drawn cannot be read.
report_figures draw_figures(std::string const& script, std::filesystem::path const& summary, std::filesystem::path const& folder,
                            environment const& variables);

/// "data:image/svg+xml;base64,…", which an <img> shows without another file. Pure.
std::string data_url(std::string_view svg);

}  // namespace muster
