// The program `muster-bench-mpi`: initialises and finalises MPI, so that bench/dev/launch.py can time it.
#include <mpi.h>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Finalize();
}
