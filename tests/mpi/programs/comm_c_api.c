/* Every call of the C interface, from C11: right results, and codes with words for what is wrong. The first word is the backend that is expected of
 * several ranks: shm is chosen for ranks of one node, others are asked for. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/c_api/muster_comm.h"

static int rank = -1, size = 0;

#define CHECK(condition)                                                                                           \
    do {                                                                                                           \
        if (!(condition)) {                                                                                        \
            fprintf(stderr, "rank %d: %s:%d: %s (%s)\n", rank, __FILE__, __LINE__, #condition, muster_last_error()); \
            exit(1);                                                                                               \
        }                                                                                                          \
    } while (0)

static muster_tensor tensor_of(const char* name, const void* in, void* out, const int64_t* shape, int dimensions, int type) {
    muster_tensor tensor;
    memset(&tensor, 0, sizeof tensor);
    tensor.struct_size = sizeof tensor;
    tensor.name = name;
    tensor.in = in;
    tensor.out = out;
    tensor.shape = shape;
    tensor.dimensions = dimensions;
    tensor.type = type;
    return tensor;
}

static muster_call a_call(void) {
    muster_call call;
    memset(&call, 0, sizeof call);
    call.struct_size = sizeof call;
    return call;
}

static void reduce(muster_comm* comm) {
    float values[6], result[6];
    const int64_t shape[2] = {2, 3};
    int i;
    for (i = 0; i < 6; ++i) values[i] = (float)(rank + i);
    muster_tensor tensor = tensor_of("w", values, result, shape, 2, MUSTER_F32);
    muster_call call = a_call();
    call.postscale = 2;
    CHECK(muster_allreduce(comm, &tensor, MUSTER_SUM, &call) == MUSTER_OK);
    for (i = 0; i < 6; ++i) CHECK(result[i] == (float)(size * (size - 1) + 2 * size * i));
    tensor.out = values; /* in place, asynchronously */
    muster_handle* handle = NULL;
    CHECK(muster_allreduce_async(comm, &tensor, MUSTER_MAX, NULL, &handle) == MUSTER_OK);
    CHECK(muster_wait(handle, 20.0) == MUSTER_OK);
    CHECK(muster_poll(handle) == MUSTER_OK);
    for (i = 0; i < 6; ++i) CHECK(values[i] == (float)(size - 1 + i));
    muster_handle_free(handle);

    double a = 1, b = 2;
    const int64_t one[1] = {1};
    muster_tensor group[2];
    group[0] = tensor_of("a", &a, &a, one, 1, MUSTER_F64);
    group[1] = tensor_of("b", &b, &b, one, 0, MUSTER_F64);
    CHECK(muster_allreduce_group(comm, "ab", group, 2, MUSTER_AVERAGE, NULL) == MUSTER_OK);
    CHECK(a == 1 && b == 2);
}

static void prepared(muster_comm* comm) {
    const int64_t four[1] = {4};
    void* memory = NULL;
    muster_group* group = NULL;
    muster_handle* handle = NULL;
    int i, step;
    CHECK(muster_alloc(comm, 8 * sizeof(float), &memory) == MUSTER_OK && memory != NULL);
    float* const values = memory;
    for (i = 0; i < 8; ++i) CHECK(values[i] == 0);
    muster_tensor both[2];
    both[0] = tensor_of("p", values, values, four, 1, MUSTER_F32);
    both[1] = tensor_of("q", values + 4, values + 4, four, 1, MUSTER_F32);
    CHECK(muster_allreduce_prepare(comm, "pq", both, 2, MUSTER_SUM, NULL, &group) == MUSTER_OK);
    for (step = 0; step < 3; ++step) {
        for (i = 0; i < 8; ++i) values[i] = (float)(rank + i + step);
        CHECK(muster_group_start(group, &handle) == MUSTER_OK);
        CHECK(muster_wait(handle, 20.0) == MUSTER_OK);
        muster_handle_free(handle);
        for (i = 0; i < 8; ++i) CHECK(values[i] == (float)(size * (size - 1) / 2 + size * (i + step)));
    }
    muster_group_free(group);
    muster_group_free(NULL);
    both[1].type = rank == 0 ? MUSTER_I32 : MUSTER_F32; /* they differ: told where they are prepared, on every rank */
    CHECK(muster_allreduce_prepare(comm, "other", both, 2, MUSTER_SUM, NULL, &group) == (size == 1 ? MUSTER_OK : MUSTER_E_PEER));
    if (size == 1) muster_group_free(group);
    CHECK(muster_allreduce_prepare(comm, "other", both, 2, 77, NULL, &group) == MUSTER_E_USAGE);
    CHECK(muster_group_start(NULL, &handle) == MUSTER_E_USAGE);
    CHECK(muster_free(memory) == MUSTER_OK && muster_free(NULL) == MUSTER_OK);
    CHECK(muster_free(memory) == MUSTER_E_USAGE && strstr(muster_last_error(), "muster_alloc") != NULL);
    CHECK(muster_alloc(comm, 0, &memory) == MUSTER_E_USAGE);
}

static void compressed(muster_comm* comm) {
    /* 1 + 2^-12 is no bf16: each rank's is rounded to 1 on its way, unless there is one rank alone */
    float value = 1.0f + 1.0f / 4096, result = 0;
    const int64_t one[1] = {1};
    int32_t whole = 1;
    muster_tensor tensor = tensor_of("c", &value, &result, one, 1, MUSTER_F32);
    muster_call call = a_call();
    call.compression = MUSTER_WIRE_BF16;
    call.error_feedback = 1;
    CHECK(muster_allreduce(comm, &tensor, MUSTER_SUM, &call) == MUSTER_OK);
    CHECK(result == (size == 1 ? value : (float)size));
    call.compression = MUSTER_WIRE_NONE;
    CHECK(muster_allreduce(comm, &tensor, MUSTER_SUM, &call) == MUSTER_OK);
    CHECK(result == (float)size * value);
    call.compression = 9;
    CHECK(muster_allreduce(comm, &tensor, MUSTER_SUM, &call) == MUSTER_E_USAGE && strstr(muster_last_error(), "9 is no compression") != NULL);
    call.compression = MUSTER_WIRE_F16;
    tensor = tensor_of("ci", &whole, &whole, one, 1, MUSTER_I32);
    CHECK(muster_allreduce(comm, &tensor, MUSTER_SUM, &call) == MUSTER_E_USAGE);
}

/* Programs that were compiled for other versions of the interface. */
static void other_versions(muster_comm* comm) {
    float value = 1, result = 0;
    const int64_t one[1] = {1};
    muster_tensor tensor = tensor_of("v", &value, &result, one, 1, MUSTER_F32);
    struct {
        muster_call call;
        int64_t later;
    } newer;
    memset(&newer, 0, sizeof newer);
    newer.call.struct_size = sizeof newer;
    CHECK(muster_allreduce(comm, &tensor, MUSTER_SUM, &newer.call) == MUSTER_OK && result == (float)size);
    newer.later = 1;
    CHECK(muster_allreduce(comm, &tensor, MUSTER_SUM, &newer.call) == MUSTER_E_UNAVAILABLE && strstr(muster_last_error(), "newer") != NULL);
    newer.call.struct_size = offsetof(muster_call, compression); /* ABI 1: what lies behind is not read */
    newer.call.compression = 9;
    result = 0;
    CHECK(muster_allreduce(comm, &tensor, MUSTER_SUM, &newer.call) == MUSTER_OK && result == (float)size);
}

static void gather(muster_comm* comm) {
    int32_t rows[8];
    const int64_t shape[1] = {rank + 1};
    const void* data;
    const int64_t* counts;
    size_t bytes;
    int i, number, at = 0;
    for (i = 0; i <= rank; ++i) rows[i] = rank;
    muster_tensor tensor = tensor_of("rows", rows, NULL, shape, 1, MUSTER_I32);
    muster_handle* handle = NULL;
    CHECK(muster_allgather(comm, &tensor, NULL, &handle) == MUSTER_OK);
    CHECK(muster_handle_result(handle, &data, &bytes) == MUSTER_OK);
    CHECK(bytes == sizeof(int32_t) * (size_t)(size * (size + 1) / 2));
    CHECK(muster_handle_rows(handle, &counts, &number) == MUSTER_OK && number == size);
    for (number = 0; number < size; ++number) {
        CHECK(counts[number] == number + 1);
        for (i = 0; i <= number; ++i) CHECK(((const int32_t*)data)[at++] == number);
    }
    muster_handle_free(handle);
}

static void move(muster_comm* comm) {
    int64_t value = rank, all[4] = {0, 0, 0, 0};
    const int64_t one[1] = {1};
    const int64_t each[1] = {size};
    const void* data;
    size_t bytes;
    int i;
    muster_tensor tensor = tensor_of("root", &value, &value, one, 1, MUSTER_I64);
    muster_call call = a_call();
    call.root = size - 1;
    CHECK(muster_broadcast(comm, &tensor, &call) == MUSTER_OK);
    CHECK(value == size - 1);
    for (i = 0; i < size; ++i) all[i] = 10 * rank + i;
    muster_handle* handle = NULL;
    tensor = tensor_of("a2a", all, NULL, each, 1, MUSTER_I64);
    CHECK(muster_alltoall(comm, &tensor, NULL, &handle) == MUSTER_OK);
    CHECK(muster_handle_result(handle, &data, &bytes) == MUSTER_OK && bytes == sizeof(int64_t) * (size_t)size);
    for (i = 0; i < size; ++i) CHECK(((const int64_t*)data)[i] == 10 * i + rank);
    muster_handle_free(handle);
    for (i = 0; i < size; ++i) all[i] = i + 1;
    value = 0;
    tensor = tensor_of("rs", all, &value, each, 1, MUSTER_I64);
    tensor.out_elements = 1;
    CHECK(muster_reducescatter(comm, &tensor, MUSTER_SUM, NULL, NULL) == MUSTER_OK);
    CHECK(value == (int64_t)size * (rank + 1));
}

static void wrong(muster_comm* comm) {
    float value = 1;
    const int64_t shape[1] = {1};
    const int* culprits;
    muster_handle* handle = NULL;
    muster_tensor tensor = tensor_of("x", &value, &value, shape, 1, 99);
    CHECK(muster_allreduce(comm, &tensor, MUSTER_SUM, NULL) == MUSTER_E_USAGE);
    CHECK(strstr(muster_last_error(), "99 is no type") != NULL);
    CHECK(muster_allreduce_async(NULL, &tensor, MUSTER_SUM, NULL, &handle) == MUSTER_E_USAGE && handle == NULL);
    CHECK(muster_wait(NULL, 0) == MUSTER_E_USAGE);
    tensor.type = MUSTER_F32;
    tensor.struct_size = 0;
    CHECK(muster_allreduce(comm, &tensor, MUSTER_SUM, NULL) == MUSTER_E_USAGE);
    tensor.struct_size = sizeof tensor;
    if (size == 1) return;
    CHECK(muster_allreduce(comm, &tensor, rank == 1 ? MUSTER_MAX : MUSTER_SUM, NULL) == MUSTER_E_PEER);
    CHECK(strstr(muster_last_error(), "reduction max on rank 1") != NULL);
    CHECK(muster_last_error_ranks(&culprits) == 1 && culprits[0] == 1);
}

/* Over the FAKE GPU, whose memory is that of the host; a null stream is its default stream. */
static void on_device(muster_comm* comm) {
    float values[3] = {1, 2, 3}, more[2] = {4, 5}, mine = (float)rank;
    const int64_t three[1] = {3}, two[1] = {2}, one[1] = {1};
    const void* data;
    size_t bytes;
    int i;
    muster_handle* handle = NULL;
    muster_group* group = NULL;
    muster_tensor both[2] = {tensor_of("d0", values, values, three, 1, MUSTER_F32), tensor_of("d1", more, more, two, 1, MUSTER_F32)};
    muster_tensor gathered = tensor_of("dg", &mine, NULL, one, 1, MUSTER_F32);
    muster_call call = a_call();
    both[0].memory = both[1].memory = gathered.memory = MUSTER_DEVICE;
    call.stream = NULL;
    CHECK(muster_allreduce_async(comm, &both[0], MUSTER_SUM, &call, &handle) == MUSTER_OK);
    CHECK(muster_handle_order(handle, NULL) == MUSTER_OK);
    CHECK(muster_wait(handle, 0) == MUSTER_OK);
    muster_handle_free(handle);
    for (i = 0; i < 3; ++i) CHECK(values[i] == (float)(size * (i + 1)));
    CHECK(muster_allreduce_prepare(comm, "dgroup", both, 2, MUSTER_AVERAGE, NULL, &group) == MUSTER_OK);
    CHECK(muster_group_start_on(group, NULL, &handle) == MUSTER_OK);
    CHECK(muster_handle_order(handle, NULL) == MUSTER_OK && muster_wait(handle, 0) == MUSTER_OK);
    muster_handle_free(handle);
    muster_group_free(group);
    CHECK(values[2] == (float)(3 * size) && more[0] == 4 && more[1] == 5);
    CHECK(muster_allgather(comm, &gathered, NULL, &handle) == MUSTER_OK);
    CHECK(muster_handle_result(handle, &data, &bytes) == MUSTER_OK && bytes == sizeof(float) * (size_t)size);
    for (i = 0; i < size; ++i) CHECK(((const float*)data)[i] == (float)i);
    muster_handle_free(handle);
    CHECK(muster_barrier_async(comm, NULL, &handle) == MUSTER_OK);
    CHECK(muster_handle_order(handle, NULL) == MUSTER_E_USAGE && strstr(muster_last_error(), "use wait()") != NULL);
    CHECK(muster_wait(handle, 0) == MUSTER_OK);
    muster_handle_free(handle);
}

static void sets_join_counters(muster_comm* comm, const char* gathers) {
    int members[1] = {0}, set = -1, number = -1, last = -1;
    char text[4096];
    size_t bytes = 0;
    CHECK(muster_process_set_add(comm, members, 1, &set) == MUSTER_OK && set == 1);
    CHECK(muster_process_set_rank(comm, set, &number) == MUSTER_OK && number == (rank == 0 ? 0 : -1));
    CHECK(muster_process_set_size(comm, set, &number) == MUSTER_OK && number == 1);
    CHECK(muster_barrier(comm, NULL) == MUSTER_OK);
    CHECK(muster_join(comm, NULL, &last) == MUSTER_OK && last >= 0 && last < size);
    CHECK(muster_counters(comm, MUSTER_JSON, NULL, &bytes) == MUSTER_OK && bytes > 100 && bytes < sizeof text);
    bytes = sizeof text;
    CHECK(muster_counters(comm, MUSTER_JSON, text, &bytes) == MUSTER_OK && strstr(text, gathers) != NULL);
    bytes = sizeof text;
    CHECK(muster_counters(comm, MUSTER_PROMETHEUS, NULL, &bytes) == MUSTER_OK);
}

int main(int argc, char** argv) {
    void* memory = NULL;
    const char* const backend = argc > 1 ? argv[1] : "self";
    const int device = argc > 2 && strcmp(argv[2], "fake-device") == 0;
    const char* const variables[] = {"MUSTER_CYCLE_TIME=200us", "MUSTER_COMM_DEADLINE=30s", strcmp(backend, "mpi") == 0 ? "MUSTER_COMM_BACKEND=mpi" : NULL, NULL};
    const char* const unreadable[] = {"MUSTER_CYCLE_TIME=soon", NULL};
    const char* const graph[] = {"MUSTER_STATIC_GRAPH=1", NULL};
    const char* const tuner[] = {"MUSTER_AUTOTUNE=1", NULL};
    muster_comm* comm = NULL;
    CHECK(muster_comm_abi() >= MUSTER_COMM_ABI);
    CHECK(muster_comm_create_with(unreadable, &comm) == MUSTER_E_USAGE && strstr(muster_last_error(), "MUSTER_CYCLE_TIME") != NULL);
    CHECK(MUSTER_COMM_ABI >= 4); /* from which on these two are refused */
    CHECK(muster_comm_create_with(graph, &comm) == MUSTER_E_UNAVAILABLE && strstr(muster_last_error(), "MUSTER_STATIC_GRAPH=1") != NULL);
    CHECK(strstr(muster_last_error(), "muster_allreduce_prepare") != NULL);
    CHECK(muster_comm_create_with(tuner, &comm) == MUSTER_E_UNAVAILABLE && strstr(muster_last_error(), "MUSTER_AUTOTUNE=1") != NULL);
    CHECK(muster_comm_create_with(variables, &comm) == MUSTER_OK);
    rank = muster_comm_rank(comm);
    size = muster_comm_size(comm);
    CHECK(rank >= 0 && rank < size && size <= 4);
    CHECK(strcmp(muster_comm_backend(comm), backend) == 0 && strstr(muster_comm_why_backend(comm), backend) != NULL);
    CHECK(muster_comm_local_size(comm) == size && muster_comm_cross_size(comm) == 1 && muster_comm_cross_rank(comm) == 0);
    reduce(comm);
    prepared(comm);
    compressed(comm);
    other_versions(comm);
    gather(comm);
    move(comm);
    wrong(comm);
    if (device) on_device(comm);
    sets_join_counters(comm, device ? "\"allgather\": 2" : "\"allgather\": 1");
    CHECK(muster_alloc(comm, SIZE_MAX, &memory) == MUSTER_E_SYSTEM && muster_alloc(comm, SIZE_MAX - 4095, &memory) == MUSTER_E_SYSTEM);
    CHECK(muster_comm_destroy(comm) == MUSTER_OK);
    CHECK(muster_comm_destroy(NULL) == MUSTER_OK);
#ifndef MUSTER_SANITIZED /* AddressSanitizer sees that such calls read freed memory */
    CHECK(muster_comm_destroy(comm) == MUSTER_E_USAGE && strstr(muster_last_error(), "the communicator has ended already") != NULL);
    CHECK(muster_comm_rank(comm) == -1 && muster_alloc(comm, 8, &memory) == MUSTER_E_USAGE);
#endif
    return 0;
}
