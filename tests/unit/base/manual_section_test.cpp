#include "base/manual/manual_section.hpp"

#include <gmock/gmock.h>

namespace muster {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view document = R"(# Title

## Signals

For all.

### Runs
<!-- page: muster run -->

a run

#### Deeper

deep

### Everywhere

everywhere

### Both
<!-- page: muster *, muster-bench -->

both

## Exit status

### muster run
<!-- page: muster run -->

codes of a run

### muster-bench
<!-- page: muster-bench -->

codes of a bench
)";

TEST(manual_section, holds_what_is_for_the_page) {
    auto const of_run = manual_section(document, "Signals", "muster run");
    EXPECT_THAT(of_run,
                HasSubstr("For all.\n\n### Runs\n<!-- page: muster run -->\n\na run\n\n#### Deeper\n\ndeep\n\n### Everywhere"));
    EXPECT_THAT(of_run, HasSubstr("### Both"));
    EXPECT_THAT(of_run, Not(HasSubstr("codes")));
    EXPECT_THAT(manual_section(document, "Signals", "muster-stage"), Not(HasSubstr("### Both")));
    EXPECT_EQ(manual_section(document, "Nothing", "muster run"), "");
}

TEST(manual_section, leaves_out_the_heading_of_a_single_subsection) {
    EXPECT_EQ(manual_section(document, "Exit status", "muster-bench"), "<!-- page: muster-bench -->\n\ncodes of a bench\n");
}

TEST(manual_sections, are_there_for_every_page) {
    auto const of_run = manual_sections("muster run");
    for (auto const* text : {".SH \"ENVIRONMENT\"", ".SH \"STANDARD INPUT AND OUTPUT\"", ".SH \"SIGNALS\"", ".SH \"FILES\"",
                             ".SH \"EXIT STATUS\"", "\\fBMASTER_PORT\\fR", "\\fBMUSTER_COMM_BACKEND\\fR", "SIGTSTP"})
        EXPECT_THAT(of_run, HasSubstr(text));
    EXPECT_THAT(manual_sections("muster doctor"), HasSubstr("something that muster needs is missing"));
    EXPECT_THAT(manual_sections("muster plan"), Not(HasSubstr("MASTER_PORT")));
}

}  // namespace
}  // namespace muster
