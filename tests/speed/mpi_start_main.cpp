// The program `mpi_start`: initialises and finalises MPI, so that tests/speed/launch.py can time it.
#include <mpi.h>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Finalize();
}
