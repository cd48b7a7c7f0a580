// The parts of toml++ that its shared library contains, linked into the program muster.
#define TOML_IMPLEMENTATION
#include <toml++/toml.h>
