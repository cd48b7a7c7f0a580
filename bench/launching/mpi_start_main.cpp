// The program `muster-bench-mpi`: what `muster-bench launch` starts to time how MPI comes up.
#include <mpi.h>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Finalize();
}
