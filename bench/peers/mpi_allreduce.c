/* A peer of `muster-bench collectives`: MPI_Allreduce of f32 sums, measured in samples that the benchmark asks for.
 *
 * mpi_allreduce FOLDER NAME: rank R reads lines from FOLDER/NAME.R and answers each by a line "R NUMBER NUMBER" in
 * FOLDER/NAME.out. Between samples it sleeps in read(), so that peers that take turns leave the processors to each other.
 *   version            the library's version, as "R TEXT", from rank 0 alone
 *   tensors C N B...   makes C sets of N tensors of B... bytes (input and output)
 *   run SEED INPLACE   fills all inputs anew, reduces each tensor once, checks; answers microseconds for each set, and wrong elements
 *   end
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;
static size_t sets, tensors, *counts;
static float **in, **out;

static void let_go(void) {
    for (size_t i = 0; i < sets * tensors; ++i) {
        free(in[i]);
        free(out[i]);
    }
    free(in);
    free(out);
    free(counts);
    sets = tensors = 0;
    in = out = NULL;
    counts = NULL;
}

static void* lines_of(size_t bytes) {
    void* memory = NULL;
    if (posix_memalign(&memory, 64, bytes + 64) != 0) MPI_Abort(MPI_COMM_WORLD, 1);
    memset(memory, 1, bytes + 64);
    return memory;
}

static void make(char const* text) {
    let_go();
    char* at = NULL;
    sets = strtoul(text, &at, 10);
    tensors = strtoul(at, &at, 10);
    counts = calloc(tensors, sizeof *counts);
    for (size_t t = 0; t < tensors; ++t) counts[t] = strtoul(at, &at, 10) / sizeof(float);
    in = calloc(sets * tensors, sizeof *in);
    out = calloc(sets * tensors, sizeof *out);
    for (size_t i = 0; i < sets * tensors; ++i) {
        in[i] = lines_of(counts[i % tensors] * sizeof(float));
        out[i] = lines_of(counts[i % tensors] * sizeof(float));
    }
}

/* Whole numbers, so that every sum is exact. */
static float value(unsigned i, unsigned which, unsigned seed, unsigned r) { return (float)((i * 7u + which * 3u + seed * 5u + r * 11u) & 63u); }

static void run(unsigned seed, int in_place, FILE* answer) {
    for (size_t k = 0; k < sets * tensors; ++k)
        for (size_t i = 0; i < counts[k % tensors]; ++i) {
            float const v = value((unsigned)i, (unsigned)k, seed, (unsigned)rank);
            in[k][i] = v;
            out[k][i] = in_place ? v : -1.0f;
        }
    MPI_Barrier(MPI_COMM_WORLD);
    double const begin = MPI_Wtime();
    for (size_t k = 0; k < sets * tensors; ++k)
        MPI_Allreduce(in_place ? MPI_IN_PLACE : in[k], out[k], (int)counts[k % tensors], MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    double const end = MPI_Wtime();
    unsigned long wrong = 0;
    for (size_t k = 0; k < sets * tensors; ++k)
        for (size_t i = 0; i < counts[k % tensors]; ++i) {
            float expected = 0;
            for (int r = 0; r < size; ++r) expected += value((unsigned)i, (unsigned)k, seed, (unsigned)r);
            wrong += out[k][i] != expected;
        }
    fprintf(answer, "%d %.4f %lu\n", rank, (end - begin) * 1e6 / (double)sets, wrong);
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
            char text[MPI_MAX_LIBRARY_VERSION_STRING];
            int length = 0;
            MPI_Get_library_version(text, &length);
            text[strcspn(text, ",\n")] = 0;
            for (char* c = text; *c != 0; ++c)
                if (*c == '\t') *c = ' ';
            if (rank == 0) fprintf(answer, "0 %s\n", text);
            fflush(answer);
        } else if (strncmp(line, "tensors", 7) == 0) {
            make(line + 7);
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
