// Program that holds every library whole; that it links is the test.
#include "base/version.hpp"

int main() {
    return muster::version().empty() ? 1 : 0;
}
