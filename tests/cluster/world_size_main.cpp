// Prints "rank R of N on HOST" once every rank has met every other.
#include <mpi.h>
#include <unistd.h>

#include <cstdio>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0;
    int size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int ranks_met = 0;
    int const one = 1;
    MPI_Allreduce(&one, &ranks_met, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    char host[256] = "";
    ::gethostname(host, sizeof host - 1);
    if (ranks_met == size) std::printf("rank %d of %d on %s\n", rank, size, host);
    std::fflush(stdout);
    MPI_Finalize();
    return ranks_met == size ? 0 : 1;
}
