// Prints "rank R of N on HOST" once every rank has met every other; with an argument also how many ranks MPI finds on the node.
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
    MPI_Comm node = MPI_COMM_NULL;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    int on_node = 0;
    MPI_Comm_size(node, &on_node);
    char const* const end = argc > 1 ? " with" : "\n";
    if (ranks_met == size) std::printf("rank %d of %d on %s%s", rank, size, host, end);
    if (ranks_met == size && argc > 1) std::printf(" %d\n", on_node);
    std::fflush(stdout);
    MPI_Finalize();
    return ranks_met == size ? 0 : 1;
}
