/* An MPI program that fails on purpose: mpi_fault MODE RANK. All ranks meet in a barrier first; then RANK does what MODE says
   while the others wait in a second barrier. Modes: none, kill (SIGKILL), exit3, exit0 (no MPI_Finalize), abort42, stop
   (SIGSTOP). */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
    int rank = -1, size = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d of %d\n", rank, size);
    fflush(stdout);
    char const* const mode = argc > 1 ? argv[1] : "none";
    int const culprit = argc > 2 ? atoi(argv[2]) : 1;
    if (rank == culprit && strcmp(mode, "none") != 0) {
        fprintf(stderr, "about to do %s\n", mode);
        if (strcmp(mode, "kill") == 0) kill(getpid(), SIGKILL);
        if (strcmp(mode, "stop") == 0) kill(getpid(), SIGSTOP);
        if (strcmp(mode, "exit3") == 0) _exit(3);
        if (strcmp(mode, "exit0") == 0) _exit(0);
        if (strcmp(mode, "abort42") == 0) MPI_Abort(MPI_COMM_WORLD, 42);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    int sum = 0;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (sum != size * (size - 1) / 2) return 9;
    MPI_Finalize();
    return 0;
}
