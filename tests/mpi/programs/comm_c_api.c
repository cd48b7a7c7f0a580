/* Every call of the C interface, from C11: right results, and codes with words for what is wrong. The first word is the backend that is expected of
 * several ranks: shm is chosen for ranks of one node, others are asked for. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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

static void count_call(void* state) {
    __atomic_fetch_add((int*)state, 1, __ATOMIC_RELEASE);
}

/* Several requests in one call, and calls when they have ended. */
static void many(muster_comm* comm) {
    enum { count = 20 };
    float values[count];
    int32_t late = rank;
    const int64_t one[1] = {1};
    const muster_handle* waited[count];
    muster_handle* handles[count];
    muster_handle* last = NULL;
    char name[16];
    int i, calls = 0;
    size_t which = 99;
    for (i = 0; i < count; ++i) {
        values[i] = (float)i;
        snprintf(name, sizeof name, "many.%d", i);
        muster_tensor tensor = tensor_of(name, &values[i], &values[i], one, 1, MUSTER_F32);
        CHECK(muster_allreduce_async(comm, &tensor, MUSTER_SUM, NULL, &handles[i]) == MUSTER_OK);
        CHECK(muster_handle_then(handles[i], count_call, &calls) == MUSTER_OK);
        waited[i] = handles[i];
    }
    CHECK(muster_wait_many(waited, count, 20.0) == MUSTER_OK);
    for (i = 0; i < count; ++i) CHECK(values[i] == (float)(size * i));
    CHECK(muster_barrier(comm, NULL) == MUSTER_OK); /* the thread calls before it does anything else */
    CHECK(__atomic_load_n(&calls, __ATOMIC_ACQUIRE) == count);
    CHECK(muster_handle_then(handles[0], count_call, &calls) == MUSTER_OK && __atomic_load_n(&calls, __ATOMIC_ACQUIRE) == count + 1);
    CHECK(muster_wait_any(waited, count, 0, &which) == MUSTER_OK && which == 0);
    for (i = 0; i < count; ++i) muster_handle_free(handles[i]);
    CHECK(muster_wait_many(NULL, 0, 0) == MUSTER_OK);
    CHECK(muster_wait_any(NULL, 0, 0, &which) == MUSTER_E_USAGE);
    waited[0] = NULL;
    CHECK(muster_wait_many(waited, 1, 0) == MUSTER_E_USAGE && strstr(muster_last_error(), "handle 0 of 1") != NULL);
    CHECK(muster_handle_then(NULL, count_call, &calls) == MUSTER_E_USAGE);
    if (size == 1) return;
    /* one that others have not submitted yet does not end; another one does */
    muster_tensor tensor = tensor_of("late", &late, &late, one, 1, MUSTER_I32);
    if (rank == 0) {
        CHECK(muster_allreduce_async(comm, &tensor, MUSTER_SUM, NULL, &last) == MUSTER_OK);
        CHECK(muster_handle_then(last, NULL, NULL) == MUSTER_E_USAGE);
        waited[0] = last;
        CHECK(muster_wait_any(waited, 1, 0.01, &which) == MUSTER_PENDING);
        CHECK(muster_barrier_async(comm, NULL, &handles[1]) == MUSTER_OK);
        waited[1] = handles[1];
        CHECK(muster_wait_any(waited, 2, 20.0, &which) == MUSTER_OK && which == 1);
        muster_handle_free(handles[1]);
    } else {
        CHECK(muster_barrier(comm, NULL) == MUSTER_OK);
    }
    /* the first failure of those that are waited for together: all of them have ended */
    values[0] = values[1] = 1;
    muster_tensor wrong_one = tensor_of("differs", &values[0], &values[0], one, 1, rank == 1 ? MUSTER_I32 : MUSTER_F32);
    muster_tensor right_one = tensor_of("agrees", &values[1], &values[1], one, 1, MUSTER_F32);
    CHECK(muster_barrier(comm, NULL) == MUSTER_OK);
    if (rank != 0) CHECK(muster_allreduce_async(comm, &tensor, MUSTER_SUM, NULL, &last) == MUSTER_OK);
    CHECK(muster_allreduce_async(comm, &wrong_one, MUSTER_SUM, NULL, &handles[1]) == MUSTER_OK);
    CHECK(muster_allreduce_async(comm, &right_one, MUSTER_SUM, NULL, &handles[2]) == MUSTER_OK);
    waited[0] = last;
    waited[1] = handles[1];
    waited[2] = handles[2];
    calls = 0;
    CHECK(muster_handle_then(handles[1], count_call, &calls) == MUSTER_OK); /* failed requests have ended too */
    CHECK(muster_wait_many(waited, 3, 20.0) == MUSTER_E_PEER && strstr(muster_last_error(), "\"differs\"") != NULL);
    CHECK(values[1] == (float)size && late == size * (size - 1) / 2);
    CHECK(muster_barrier(comm, NULL) == MUSTER_OK && __atomic_load_n(&calls, __ATOMIC_ACQUIRE) == 1);
    for (i = 1; i < 3; ++i) muster_handle_free(handles[i]);
    muster_handle_free(last);
}

static void gathered_groups(muster_comm* comm) {
    int32_t a[4];
    double b[8], share[8];
    const int64_t rows[1] = {rank + 1};
    const int64_t pairs[2] = {2, 2};
    const int64_t each[1] = {size};
    const void* data;
    const int64_t* counts;
    size_t bytes;
    int i, number;
    muster_handle* handle = NULL;
    for (i = 0; i < 4; ++i) a[i] = rank;
    for (i = 0; i < 8; ++i) b[i] = 10 * rank + i;
    muster_tensor both[2];
    both[0] = tensor_of("a", a, NULL, rows, 1, MUSTER_I32);
    both[1] = tensor_of("b", b, NULL, pairs, 2, MUSTER_F64);
    CHECK(muster_allgather_group_async(comm, "gathers", both, 2, NULL, &handle) == MUSTER_OK);
    CHECK(muster_wait(handle, 20.0) == MUSTER_OK);
    CHECK(muster_handle_result_of(handle, 0, &data, &bytes) == MUSTER_OK && bytes == sizeof(int32_t) * (size_t)(size * (size + 1) / 2));
    CHECK(((const int32_t*)data)[bytes / sizeof(int32_t) - 1] == size - 1);
    CHECK(muster_handle_rows_of(handle, 0, &counts, &number) == MUSTER_OK && number == size && counts[size - 1] == size);
    CHECK(muster_handle_result_of(handle, 1, &data, &bytes) == MUSTER_OK && bytes == sizeof(double) * 4 * (size_t)size);
    for (i = 0; i < 4 * size; ++i) CHECK(((const double*)data)[i] == 10 * (i / 4) + i % 4);
    CHECK(muster_handle_rows_of(handle, 1, &counts, &number) == MUSTER_OK && number == size && counts[0] == 2);
    CHECK(muster_handle_result_of(handle, 2, &data, &bytes) == MUSTER_OK && data == NULL && bytes == 0);
    muster_handle_free(handle);
    both[0] = tensor_of("a", b, share, each, 1, MUSTER_F64);
    both[0].out_elements = 1;
    both[1] = tensor_of("b", b, NULL, each, 1, MUSTER_F64);
    CHECK(muster_reducescatter_group_async(comm, "scatters", both, 2, MUSTER_SUM, NULL, &handle) == MUSTER_OK);
    CHECK(muster_wait(handle, 20.0) == MUSTER_OK);
    CHECK(share[0] == 10 * size * (size - 1) / 2 + size * rank);
    CHECK(muster_handle_result_of(handle, 1, &data, &bytes) == MUSTER_OK && bytes == sizeof(double) && *(const double*)data == share[0]);
    CHECK(muster_handle_rows_of(handle, 1, &counts, &number) == MUSTER_OK && number == 1 && counts[0] == 1);
    muster_handle_free(handle);
    both[0].out_elements = 3; /* wrong here: refused at once, and told which */
    CHECK(muster_reducescatter_group_async(comm, "scatters", both, 2, MUSTER_SUM, NULL, &handle) == MUSTER_E_USAGE);
    CHECK(strstr(muster_last_error(), "tensor \"a\"") != NULL);
    CHECK(muster_allgather_group_async(comm, "gathers", both, 0, NULL, &handle) == MUSTER_E_USAGE);
    if (size == 1) return;
    both[0] = tensor_of("a", a, NULL, each, 1, MUSTER_I32);
    both[1] = tensor_of("b", b, NULL, pairs, rank == 1 ? 1 : 2, MUSTER_F64); /* one differs: neither is done */
    CHECK(muster_allgather_group_async(comm, "gathers", both, 2, NULL, &handle) == MUSTER_OK);
    CHECK(muster_wait(handle, 20.0) == MUSTER_E_PEER && strstr(muster_last_error(), "of \"b\"") != NULL);
    CHECK(muster_handle_result_of(handle, 0, &data, &bytes) == MUSTER_OK && bytes == 0);
    muster_handle_free(handle);
}

static void sets_of_members(muster_comm* comm) {
    int mine[2], set = -1, added = -1, number = -1;
    const int count = rank - rank % 2 + 1 < size ? 2 : 1;
    float value = 1;
    const int64_t one[1] = {1};
    muster_handle* handle = NULL;
    muster_tensor tensor = tensor_of("in set", &value, &value, one, 1, MUSTER_F32);
    muster_call call = a_call();
    mine[0] = rank - rank % 2;
    mine[1] = mine[0] + 1;
    CHECK(muster_process_set_make(comm, mine, count, NULL, &set) == MUSTER_E_USAGE);
    CHECK(muster_process_set_make(comm, NULL, 2, "pair", &set) == MUSTER_E_USAGE);
    CHECK(muster_process_set_make(comm, mine, count, "pair", &set) == MUSTER_OK && set > 0);
    CHECK(muster_process_set_size(comm, set, &number) == MUSTER_OK && number == count);
    call.set = set;
    CHECK(muster_allreduce(comm, &tensor, MUSTER_SUM, &call) == MUSTER_OK && value == (float)count);
    CHECK(muster_process_set_remove(comm, set) == MUSTER_OK);
    CHECK(muster_allreduce_async(comm, &tensor, MUSTER_SUM, &call, &handle) == MUSTER_E_USAGE && strstr(muster_last_error(), "has been removed") != NULL);
    CHECK(muster_process_set_add(comm, mine + (rank - mine[0]), 0, &added) == MUSTER_E_USAGE);
    mine[0] = 0;
    CHECK(muster_process_set_add(comm, mine, 1, &added) == MUSTER_OK && added > set);
    CHECK(muster_process_set_remove(comm, added) == MUSTER_OK);
    CHECK(muster_process_set_remove(comm, added) == MUSTER_E_USAGE && muster_process_set_remove(comm, 0) == MUSTER_E_USAGE);
    CHECK(muster_process_set_rank(comm, added, &number) == MUSTER_E_USAGE);
}

static void messages(muster_comm* comm) {
    int16_t sent[3], received[3] = {0, 0, 0};
    const int64_t three[1] = {3};
    muster_handle* handles[2] = {NULL, NULL};
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    int i;
    for (i = 0; i < 3; ++i) sent[i] = (int16_t)(10 * rank + i - 5);
    muster_tensor out = tensor_of(NULL, sent, NULL, three, 1, MUSTER_I16);
    muster_tensor in = tensor_of(NULL, NULL, received, three, 1, MUSTER_I16);
    CHECK(muster_send_async(comm, &out, rank, 4, NULL, &handles[0]) == MUSTER_E_USAGE && strstr(muster_last_error(), "for itself") != NULL);
    CHECK(muster_send_async(comm, &out, size, 4, NULL, &handles[0]) == MUSTER_E_USAGE && handles[0] == NULL);
    CHECK(muster_receive_async(comm, NULL, 0, 4, NULL, &handles[0]) == MUSTER_E_USAGE);
    if (size == 1) return;
    CHECK(muster_receive_async(comm, &in, before, 4, NULL, &handles[0]) == MUSTER_OK);
    CHECK(muster_send_async(comm, &out, next, 4, NULL, &handles[1]) == MUSTER_OK);
    for (i = 0; i < 2; ++i) CHECK(muster_wait(handles[i], 20.0) == MUSTER_OK);
    for (i = 0; i < 2; ++i) muster_handle_free(handles[i]);
    for (i = 0; i < 3; ++i) CHECK(received[i] == (int16_t)(10 * before + i - 5));
}

/* Types that are moved as they are. */
static void moved(muster_comm* comm) {
    uint8_t flag = rank == 0;
    uint16_t word = (uint16_t)(60000 + rank);
    const int64_t one[1] = {1};
    const void* data;
    size_t bytes;
    muster_handle* handle = NULL;
    muster_tensor tensor = tensor_of("flag", &flag, &flag, one, 1, MUSTER_BOOL);
    CHECK(muster_broadcast(comm, &tensor, NULL) == MUSTER_OK && flag == 1);
    CHECK(muster_allreduce(comm, &tensor, MUSTER_MAX, NULL) == MUSTER_E_USAGE && strstr(muster_last_error(), "not reduced") != NULL);
    tensor = tensor_of("word", &word, NULL, one, 1, MUSTER_U16);
    CHECK(muster_allgather(comm, &tensor, NULL, &handle) == MUSTER_OK);
    CHECK(muster_handle_result(handle, &data, &bytes) == MUSTER_OK && bytes == 2 * (size_t)size);
    CHECK(((const uint16_t*)data)[size - 1] == 60000 + size - 1);
    muster_handle_free(handle);
}

/* A communicator of some ranks, in an order of their own, beside that of all; the others do nothing. */
static void of_some(const char* const* variables) {
    int list[4], i;
    const int count = size > 1 ? size - 1 : 1;
    float value = (float)rank;
    const int64_t one[1] = {1};
    muster_comm* some = NULL;
    for (i = 0; i < count; ++i) list[i] = size - 1 - i; /* all but rank 0, from the last on */
    muster_tensor tensor = tensor_of("of some", &value, &value, one, 1, MUSTER_F32);
    CHECK(muster_comm_create_of(variables, list, 0, "some", &some) == MUSTER_E_USAGE);
    CHECK(muster_comm_create_of(variables, list, count, NULL, &some) == MUSTER_E_USAGE);
    if (size > 1 && rank == 0) {
        CHECK(muster_comm_create_of(variables, list, count, "some", &some) == MUSTER_E_USAGE && strstr(muster_last_error(), "not among its ranks") != NULL);
        return;
    }
    CHECK(muster_comm_create_of(variables, list, count, "some", &some) == MUSTER_OK);
    CHECK(muster_comm_size(some) == count && muster_comm_rank(some) == size - 1 - rank);
    CHECK(muster_comm_local_size(some) == count && muster_comm_local_rank(some) == muster_comm_rank(some) && muster_comm_cross_size(some) == 1);
    CHECK(muster_allreduce(some, &tensor, MUSTER_SUM, NULL) == MUSTER_OK && value == (float)(size * (size - 1) / 2));
    CHECK(muster_comm_destroy(some) == MUSTER_OK);
}

static void built(muster_comm* comm, const char* backend, int device) {
    CHECK(muster_built(NULL) == 0 && muster_built("a coffee machine") == 0);
    CHECK(muster_built("pmix") == 1);
    CHECK(strcmp(backend, "mpi") != 0 || muster_built("mpi") == 1);
    CHECK(!device || (muster_built("cuda") > 1000 && muster_built("nccl") >= 21800));
    CHECK(device ? strncmp(muster_comm_device_backend(comm), "nccl", 4) == 0 : strcmp(muster_comm_device_backend(comm), "") == 0);
    CHECK(strcmp(muster_comm_device_backend(NULL), "") == 0);
}

static void timeline_file(muster_comm* comm) {
    char path[64];
    char line[64];
    CHECK(muster_timeline_start_file(comm, "/nowhere at all/x.json", 0) == MUSTER_E_UNAVAILABLE && strstr(muster_last_error(), "/nowhere at all/x.json") != NULL);
    CHECK(muster_timeline_start_file(comm, NULL, 0) == MUSTER_E_USAGE);
    snprintf(path, sizeof path, "comm_c_api.%d-of-%d.timeline", rank, size);
    CHECK(muster_timeline_start_file(comm, path, 1) == MUSTER_OK);
    CHECK(muster_barrier(comm, NULL) == MUSTER_OK);
    CHECK(muster_timeline_stop(comm) == MUSTER_OK);
    FILE* file = fopen(path, "r");
    CHECK(file != NULL && fgets(line, sizeof line, file) != NULL && strcmp(line, "[\n") == 0);
    fclose(file);
    CHECK(remove(path) == 0);
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
    newer.call.struct_size = offsetof(muster_call, compression); /* of an earlier version: what lies behind is not read */
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
    /* a group of gathers, each with memory of its own there; twice in sets that their members make and remove */
    both[0].out = both[1].out = NULL;
    for (i = 0; i < 3; ++i) {
        int all[4], k;
        for (k = 0; k < size; ++k) all[k] = k;
        call.set = 0;
        if (i > 0) CHECK(muster_process_set_make(comm, all, size, "device", &call.set) == MUSTER_OK);
        CHECK(muster_allgather_group_async(comm, "dgathers", both, 2, &call, &handle) == MUSTER_OK);
        CHECK(muster_wait(handle, 20.0) == MUSTER_OK);
        CHECK(muster_handle_result_of(handle, 0, &data, &bytes) == MUSTER_OK && bytes == sizeof(float) * 3 * (size_t)size);
        CHECK(muster_handle_result_of(handle, 1, &data, &bytes) == MUSTER_OK && bytes == sizeof(float) * 2 * (size_t)size);
        for (k = 0; k < 2 * size; ++k) CHECK(((const float*)data)[k] == (float)(4 + k % 2));
        muster_handle_free(handle);
        if (i > 0) CHECK(muster_process_set_remove(comm, call.set) == MUSTER_OK);
    }
    CHECK(muster_barrier_async(comm, NULL, &handle) == MUSTER_OK);
    CHECK(muster_handle_order(handle, NULL) == MUSTER_E_USAGE && strstr(muster_last_error(), "use wait()") != NULL);
    CHECK(muster_wait(handle, 0) == MUSTER_OK);
    muster_handle_free(handle);
}

static void sets_join_counters(muster_comm* comm, const char* gathers) {
    int members[1] = {0}, set = -1, number = -1, last = -1;
    char text[4096];
    size_t bytes = 0;
    CHECK(muster_process_set_add(comm, members, 1, &set) == MUSTER_OK && set >= 1);
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

/* After the last communicator has ended another one can be made. */
static void again(const char* const* variables) {
    muster_comm* comm = NULL;
    int round;
    for (round = 0; round < 2; ++round) {
        CHECK(muster_comm_create_with(variables, &comm) == MUSTER_OK);
        CHECK(muster_comm_rank(comm) == rank && muster_comm_size(comm) == size);
        reduce(comm);
        CHECK(muster_comm_destroy(comm) == MUSTER_OK);
    }
}

static void refused_in_child(int code) {
    CHECK(code == MUSTER_E_USAGE && strstr(muster_last_error(), "forked") != NULL);
}

/* A child of fork() is no rank: its calls are refused, none of them waits for the thread that only its parent has, and it ends. */
static void forked(muster_comm* comm) {
    float values[4] = {1, 1, 1, 1};
    const int64_t shape[1] = {4};
    muster_tensor tensor = tensor_of("forked", values, values, shape, 1, MUSTER_F32);
    muster_group* group = NULL;
    muster_handle *under_way = NULL, *made = NULL;
    void* memory = NULL;
    int status = 0, which = 0, depth;
    size_t bytes = 0;
    CHECK(muster_allreduce_prepare(comm, "forked group", &tensor, 1, MUSTER_SUM, NULL, &group) == MUSTER_OK);
    const int waits = rank == 0 && size > 1; /* for others, which come to the barrier later */
    if (waits) CHECK(muster_barrier_async(comm, NULL, &under_way) == MUSTER_OK);
    const pid_t child = fork();
    if (child == 0) {
        alarm(20); /* should it hang */
        for (depth = 0; depth < 2; ++depth) { /* a child, and its own child */
            refused_in_child(muster_allreduce(comm, &tensor, MUSTER_SUM, NULL));
            refused_in_child(muster_broadcast(comm, &tensor, NULL));
            refused_in_child(muster_barrier(comm, NULL));
            refused_in_child(muster_join(comm, NULL, NULL));
            refused_in_child(muster_group_start(group, &made));
            refused_in_child(muster_process_set_add(comm, &rank, 1, &which));
            refused_in_child(muster_process_set_rank(comm, 0, &which));
            refused_in_child(muster_alloc(comm, 64, &memory));
            refused_in_child(muster_timeline_stop(comm));
            if (under_way != NULL) {
                CHECK(muster_poll(under_way) == MUSTER_OK);
                refused_in_child(muster_wait(under_way, 0));
                refused_in_child(muster_wait_for(under_way, 0.1));
            }
            CHECK(muster_counters(comm, MUSTER_JSON, NULL, &bytes) == MUSTER_OK && muster_comm_rank(comm) == rank);
            if (depth == 0 && fork() != 0) {
                wait(&status);
                exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
            }
        }
        muster_handle_free(under_way);
        muster_group_free(group);
        CHECK((rank == 0 ? muster_comm_abandon(comm) : muster_comm_destroy(comm)) == MUSTER_OK);
        exit(0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    if (rank != 0) CHECK(muster_barrier(comm, NULL) == MUSTER_OK);
    CHECK(muster_wait(under_way, 0) == (waits ? MUSTER_OK : MUSTER_E_USAGE));
    muster_handle_free(under_way);
    muster_group_free(group);
    CHECK(muster_allreduce(comm, &tensor, MUSTER_SUM, NULL) == MUSTER_OK && values[3] == (float)size);
}

int main(int argc, char** argv) {
    void* memory = NULL;
    const char* const backend = argc > 1 ? argv[1] : "self";
    const int device = argc > 2 && strcmp(argv[2], "fake-device") == 0;
    const char* const variables[] = {"MUSTER_KEEP_MPI=1", "MUSTER_CYCLE_TIME=200us", "MUSTER_COMM_DEADLINE=30s", strcmp(backend, "mpi") == 0 ? "MUSTER_COMM_BACKEND=mpi" : NULL, NULL};
    const char* const unreadable[] = {"MUSTER_CYCLE_TIME=soon", NULL};
    const char* const graph[] = {"MUSTER_STATIC_GRAPH=1", NULL};
    const char* const tuner[] = {"MUSTER_AUTOTUNE=1", NULL};
    muster_comm* comm = NULL;
    CHECK(muster_comm_abi() >= MUSTER_COMM_ABI);
    CHECK(muster_comm_create_with(unreadable, &comm) == MUSTER_E_USAGE && strstr(muster_last_error(), "MUSTER_CYCLE_TIME") != NULL);
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
    many(comm);
    gathered_groups(comm);
    messages(comm);
    forked(comm);
    moved(comm);
    of_some(variables);
    compressed(comm);
    other_versions(comm);
    gather(comm);
    move(comm);
    wrong(comm);
    if (device) on_device(comm);
    built(comm, backend, device);
    sets_join_counters(comm, device ? "\"allgather\": 7" : "\"allgather\": 3");
    sets_of_members(comm);
    timeline_file(comm); /* last: MUSTER_TIMELINE's ends with it */
    CHECK(muster_alloc(comm, SIZE_MAX, &memory) == MUSTER_E_SYSTEM && muster_alloc(comm, SIZE_MAX - 4095, &memory) == MUSTER_E_SYSTEM);
    CHECK(muster_comm_destroy(comm) == MUSTER_OK);
    CHECK(muster_comm_destroy(NULL) == MUSTER_OK);
    if (!device && getenv("MUSTER_TIMELINE") == NULL) again(variables); /* whose timelines would go into the same files */
#ifndef MUSTER_SANITIZED /* AddressSanitizer sees that such calls read freed memory */
    CHECK(muster_comm_destroy(comm) == MUSTER_E_USAGE && strstr(muster_last_error(), "the communicator has ended already") != NULL);
    CHECK(muster_comm_rank(comm) == -1 && muster_alloc(comm, 8, &memory) == MUSTER_E_USAGE);
#endif
    return 0;
}
