/* A program of the C interface: all ranks' numbers summed. `allreduce exit N` initialises nothing and ends with N. */
#include "comm/c_api/muster_comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
    if (argc > 2 && muster_comm_abi() > 0) return atoi(argv[2]);
    muster_comm* comm = NULL;
    if (muster_comm_create(&comm) != MUSTER_OK) {
        fprintf(stderr, "create: %s\n", muster_last_error());
        return 40;
    }
    float value = (float)(muster_comm_rank(comm) + 1);
    const int64_t shape = 1;
    muster_tensor tensor;
    memset(&tensor, 0, sizeof tensor);
    tensor.struct_size = sizeof tensor;
    tensor.name = "value";
    tensor.in = tensor.out = &value;
    tensor.shape = &shape;
    tensor.dimensions = 1;
    tensor.type = MUSTER_F32;
    if (muster_allreduce(comm, &tensor, MUSTER_SUM, NULL) != MUSTER_OK) {
        fprintf(stderr, "allreduce: %s\n", muster_last_error());
        return 41;
    }
    printf("%s: %g from %d ranks\n", muster_comm_backend(comm), (double)value, muster_comm_size(comm));
    return muster_comm_destroy(comm) == MUSTER_OK ? 0 : 42;
}
