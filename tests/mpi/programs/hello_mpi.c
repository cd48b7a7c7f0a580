/* One small program for every MPI: says who it is after an allreduce and a barrier. "hello_mpi abort CODE": rank 0 aborts.
   "hello_mpi sum": only rank 0 speaks. "hello_mpi --version" and "--wait" (0.6 s more) end without MPI. With HELLO_MPI_STAYS=FILE
   it stays, once it has spoken, until there is that file. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
    int rank = 0, size = 0, sum = 0;
    if (argc > 1 && strncmp(argv[1], "--", 2) == 0) {
        puts("hello_mpi");
        fflush(stdout);
        if (strcmp(argv[1], "--wait") == 0) usleep(600000);
        return 0;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int const mine = rank + 1;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    if (argc > 2 && strcmp(argv[1], "abort") == 0) {
        if (rank == 0) MPI_Abort(MPI_COMM_WORLD, atoi(argv[2]));
        MPI_Barrier(MPI_COMM_WORLD); /* waits until it is killed */
    }
    printf("rank %d of %d sum %d\n", rank, size, sum);
    fflush(stdout);
    char const* const until = getenv("HELLO_MPI_STAYS");
    while (until && access(until, F_OK) != 0) usleep(10000);
    MPI_Finalize();
    return sum == size * (size + 1) / 2 ? 0 : 1;
}
