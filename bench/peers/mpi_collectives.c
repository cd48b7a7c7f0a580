/* A peer of `muster-bench collectives`: an MPI library's collectives, measured in samples that the benchmark asks for.
 *
 * mpi_collectives FOLDER NAME: rank R reads lines from FOLDER/NAME.R and answers each by a line "R NUMBER NUMBER" in
 * FOLDER/NAME.out. Between samples it sleeps in read(), so that peers that take turns leave the processors to each other.
 *   version            the library's version, as "R TEXT", from rank 0 alone
 *   kind OP TYPE REDOP ROOT MASK SCALE ACTIVE PRODUCT     what is measured, and the rule that makes values (bench/collectives/collectives_values.hpp)
 *   tensors C N B...   makes C sets of N tensors of B... bytes (the larger of a rank's input and output)
 *   run SEED INPLACE   fills all inputs anew, calls once for each tensor, checks; answers microseconds for each set, and wrong elements
 *   end
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;
static size_t sets, tensors, *bytes;
static char **in, **out;

static enum { ALLREDUCE, ALLGATHER, BROADCAST, REDUCESCATTER, ALLTOALL } kind;
static enum { SUM, PROD, MIN, MAX } how;
static char type[8];
static int root;
static unsigned mask = 63, scale = 1, active = 1, product;
static MPI_Datatype mpi_type;
static MPI_Op op;
static size_t width;

static unsigned value(size_t i, unsigned which, unsigned seed, unsigned r) {
    unsigned const h = (((unsigned)i + 2654435u * which + 40503u * seed + 1000003u * r) * 2654435761u) >> 26;
    if (r >= active) return product ? 1u : 0u;
    return product ? 1u + (h >> 5) : scale * (h & mask);
}

/* from < 0: all ranks' elements, reduced. */
static unsigned expected(size_t i, unsigned which, unsigned seed, int from) {
    if (from >= 0) return value(i, which, seed, (unsigned)from);
    unsigned all = value(i, which, seed, 0);
    for (int r = 1; r < size; ++r) {
        unsigned const next = value(i, which, seed, (unsigned)r);
        if (how == SUM) all += next;
        if (how == PROD) all *= next;
        if (how == MIN && next < all) all = next;
        if (how == MAX && next > all) all = next;
    }
    return all;
}

#define OF_TYPE(T)                                                                                                     \
    static void fill_##T(char* to, size_t count, unsigned which, unsigned seed) {                                      \
        T* const elements = (T*)to;                                                                                    \
        for (size_t i = 0; i < count; ++i) elements[i] = (T)value(i, which, seed, (unsigned)rank);                     \
    }                                                                                                                  \
    static size_t wrong_##T(char const* got, size_t count, size_t first, unsigned which, unsigned seed, int from) {    \
        T const* const elements = (T const*)got;                                                                       \
        size_t wrong = 0;                                                                                              \
        for (size_t i = 0; i < count; ++i) wrong += elements[i] != (T)expected(first + i, which, seed, from);          \
        return wrong;                                                                                                  \
    }
OF_TYPE(float)
OF_TYPE(double)
OF_TYPE(int32_t)
OF_TYPE(int64_t)
OF_TYPE(uint16_t)
OF_TYPE(uint8_t)
OF_TYPE(int8_t)

static void (*fill)(char*, size_t, unsigned, unsigned);
static size_t (*wrong_in)(char const*, size_t, size_t, unsigned, unsigned, int);

#define USE(T, MPI)              \
    do {                         \
        fill = fill_##T;         \
        wrong_in = wrong_##T;    \
        mpi_type = MPI;          \
        width = sizeof(T);       \
    } while (0)

static void choose(char const* text) {
    char what[32], redop[32];
    if (sscanf(text, "%31s %7s %31s %d %u %u %u %u", what, type, redop, &root, &mask, &scale, &active, &product) != 8) MPI_Abort(MPI_COMM_WORLD, 4);
    kind = !strcmp(what, "allreduce") ? ALLREDUCE : !strcmp(what, "allgather") ? ALLGATHER : !strcmp(what, "broadcast") ? BROADCAST
         : !strcmp(what, "reducescatter") ? REDUCESCATTER : ALLTOALL;
    how = !strcmp(redop, "prod") ? PROD : !strcmp(redop, "min") ? MIN : !strcmp(redop, "max") ? MAX : SUM;
    op = how == PROD ? MPI_PROD : how == MIN ? MPI_MIN : how == MAX ? MPI_MAX : MPI_SUM;
    if (!strcmp(type, "f64")) USE(double, MPI_DOUBLE);
    else if (!strcmp(type, "i32")) USE(int32_t, MPI_INT32_T);
    else if (!strcmp(type, "i64")) USE(int64_t, MPI_INT64_T);
    else if (!strcmp(type, "u8")) USE(uint8_t, MPI_UINT8_T);
    else if (!strcmp(type, "i8")) USE(int8_t, MPI_INT8_T);
    else if (!strcmp(type, "f16") || !strcmp(type, "bf16")) USE(uint16_t, MPI_UINT16_T); /* moved, never reduced */
    else USE(float, MPI_FLOAT);
}

static void let_go(void) {
    for (size_t i = 0; i < sets * tensors; ++i) {
        free(in[i]);
        free(out[i]);
    }
    free(in);
    free(out);
    free(bytes);
    sets = tensors = 0;
    in = out = NULL;
    bytes = NULL;
}

static void* lines_of(size_t length) {
    void* memory = NULL;
    if (posix_memalign(&memory, 64, length + 64) != 0) MPI_Abort(MPI_COMM_WORLD, 1);
    memset(memory, 1, length + 64);
    return memory;
}

static size_t in_bytes(size_t whole) { return kind == ALLGATHER ? whole / (size_t)size : whole; }

static void make(char const* text) {
    let_go();
    char* at = NULL;
    sets = strtoul(text, &at, 10);
    tensors = strtoul(at, &at, 10);
    bytes = calloc(tensors, sizeof *bytes);
    for (size_t t = 0; t < tensors; ++t) bytes[t] = strtoul(at, &at, 10);
    in = calloc(sets * tensors, sizeof *in);
    out = calloc(sets * tensors, sizeof *out);
    for (size_t i = 0; i < sets * tensors; ++i) {
        in[i] = lines_of(in_bytes(bytes[i % tensors]));
        out[i] = lines_of(bytes[i % tensors]); /* MPI's reducescatter in place wants the whole input there */
    }
}

static void call(char* source, char* result, size_t whole, int in_place) {
    int const count = (int)(whole / width), part = count / size;
    void* const from = in_place ? MPI_IN_PLACE : source;
    switch (kind) {
        case ALLREDUCE: MPI_Allreduce(from, result, count, mpi_type, op, MPI_COMM_WORLD); break;
        case ALLGATHER: MPI_Allgather(from, part, mpi_type, result, part, mpi_type, MPI_COMM_WORLD); break;
        case BROADCAST: MPI_Bcast(result, count, mpi_type, root, MPI_COMM_WORLD); break;
        case REDUCESCATTER: MPI_Reduce_scatter_block(from, result, part, mpi_type, op, MPI_COMM_WORLD); break;
        case ALLTOALL: MPI_Alltoall(from, part, mpi_type, result, part, mpi_type, MPI_COMM_WORLD); break;
    }
}

static void renew(size_t k, unsigned seed, int in_place) {
    size_t const whole = bytes[k % tensors], input = in_bytes(whole);
    memset(out[k], 0xa5, whole);
    char* const to = !in_place ? in[k] : kind == ALLGATHER ? out[k] + (size_t)rank * input : out[k];
    fill(to, input / width, (unsigned)k, seed);
}

static size_t check(size_t k, unsigned seed) {
    size_t const whole = bytes[k % tensors], count = whole / width, part = count / (size_t)size;
    unsigned const which = (unsigned)k;
    size_t const own = part * (size_t)rank;
    if (kind == ALLREDUCE) return wrong_in(out[k], count, 0, which, seed, -1);
    if (kind == REDUCESCATTER) return wrong_in(out[k], part, own, which, seed, -1);
    if (kind == BROADCAST) return wrong_in(out[k], count, 0, which, seed, root);
    size_t wrong = 0;
    for (int r = 0; r < size; ++r) wrong += wrong_in(out[k] + (size_t)r * part * width, part, kind == ALLTOALL ? own : 0, which, seed, r);
    return wrong;
}

static void run(unsigned seed, int in_place, FILE* answer) {
    for (size_t k = 0; k < sets * tensors; ++k) renew(k, seed, in_place);
    MPI_Barrier(MPI_COMM_WORLD);
    double const begin = MPI_Wtime();
    for (size_t k = 0; k < sets * tensors; ++k) call(in[k], out[k], bytes[k % tensors], in_place);
    double const end = MPI_Wtime();
    size_t wrong = 0;
    for (size_t k = 0; k < sets * tensors; ++k) wrong += check(k, seed);
    fprintf(answer, "%d %.4f %zu\n", rank, (end - begin) * 1e6 / (double)sets, wrong);
    fflush(answer);
}

static void tell_version(FILE* answer) {
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(text, &length);
    text[strcspn(text, ",\n")] = 0;
    for (char* c = text; *c != 0; ++c)
        if (*c == '\t') *c = ' ';
    if (rank == 0) fprintf(answer, "0 %s\n", text);
    fflush(answer);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 3) MPI_Abort(MPI_COMM_WORLD, 2);
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.%d", argv[1], argv[2], rank);
    FILE* orders = fopen(path, "r");
    snprintf(path, sizeof path, "%s/%s.out", argv[1], argv[2]);
    FILE* answer = fopen(path, "w");
    if (orders == NULL || answer == NULL) MPI_Abort(MPI_COMM_WORLD, 3);
    static char line[1 << 17];
    while (fgets(line, sizeof line, orders) != NULL) {
        if (strncmp(line, "end", 3) == 0) break;
        if (strncmp(line, "version", 7) == 0) {
            tell_version(answer);
        } else if (strncmp(line, "kind", 4) == 0 || strncmp(line, "tensors", 7) == 0) {
            if (line[0] == 'k') choose(line + 4);
            else make(line + 7);
            fprintf(answer, "%d 0 0\n", rank);
            fflush(answer);
        } else if (strncmp(line, "run", 3) == 0) {
            unsigned seed = 0;
            int in_place = 0;
            sscanf(line + 3, "%u %d", &seed, &in_place);
            run(seed, in_place, answer);
        }
    }
    let_go();
    MPI_Finalize();
    return 0;
}
