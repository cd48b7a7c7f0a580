/* A program of the C interface for datasets: delivers two epochs of a file by every memory mode and adds up what came. `dataset FILE [shared]`. */
#include "io/c_api/muster_io.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char* what) {
    fprintf(stderr, "%s: %s\n", what, muster_io_last_error());
    exit(40);
}

/* One copy a node, of all ranks of the job: `dataset FILE shared`. */
static int share(const muster_dataset* data, const muster_sampler* sampler) {
    muster_loader_options how;
    memset(&how, 0, sizeof how);
    how.struct_size = sizeof how;
    how.batch = 7;
    how.memory = MUSTER_MEMORY_SHARED;
    muster_loader* loader = NULL;
    if (muster_loader_create(data, sampler, &how, &loader) != MUSTER_IO_E_USAGE || loader != NULL) return 44;
    printf("refused: %s\n", muster_io_last_error());
    how.world = 2;
    if (muster_loader_create_shared(data, sampler, &how, &loader) != MUSTER_IO_E_USAGE || loader != NULL) return 45;
    printf("refused: %s\n", muster_io_last_error());
    how.world = 0;
    if (muster_loader_create_shared(data, sampler, &how, &loader) != MUSTER_IO_OK) fail("shared loader");
    printf("why: %s\n", muster_loader_why(loader));
    if (muster_loader_epoch(loader, 0, 0, NULL) != MUSTER_IO_OK) fail("epoch");
    muster_batch batch;
    memset(&batch, 0, sizeof batch);
    batch.struct_size = sizeof batch;
    int code;
    while ((code = muster_loader_next(loader, &batch)) == MUSTER_IO_OK)
        for (uint64_t i = 0; i < batch.count; ++i) printf("sample %d is %.16s\n", (int)batch.samples[i], (const char*)batch.images + 16 * i);
    if (code != MUSTER_IO_END) fail("next");
    return muster_loader_free(loader) == MUSTER_IO_OK ? 0 : 46;
}

int main(int argc, char** argv) {
    if (argc < 2 || muster_io_abi() < MUSTER_IO_ABI) return 2;
    muster_dataset* data = NULL;
    if (muster_dataset_open(argv[1], NULL, &data) != MUSTER_IO_OK) fail("open");
    muster_dataset_facts facts;
    memset(&facts, 0, sizeof facts);
    facts.struct_size = sizeof facts;
    if (muster_dataset_describe(data, &facts) != MUSTER_IO_OK) fail("describe");
    printf("%d samples of %d bytes, %d classes\n", (int)facts.samples, (int)facts.sample_bytes, (int)facts.classes);
    /* Where the samples lie, so that they can be mapped. */
    FILE* plain = fopen(argv[1], "rb");
    unsigned char first_bytes[16], read_bytes[16];
    if (facts.type != MUSTER_IO_U8 || facts.image_offset == 0 || facts.label_offset == 0 || plain == NULL) return 50;
    if (fseek(plain, (long)facts.image_offset, SEEK_SET) != 0 || fread(first_bytes, 16, 1, plain) != 1 || fclose(plain) != 0) return 51;
    if (muster_dataset_read(data, 0, 1, read_bytes, NULL) != MUSTER_IO_OK || memcmp(first_bytes, read_bytes, 16) != 0) return 52;
    const char* name = "";
    if (facts.class_names != 0 || muster_dataset_class_name(data, 0, &name) != MUSTER_IO_OK || name != NULL) return 53;
    if (muster_dataset_class_name(data, facts.classes, &name) != MUSTER_IO_E_USAGE) return 54;
    if (muster_dataset_column_name(data, 0, &name) != MUSTER_IO_OK || name != NULL) return 55;
    const uint64_t elements = facts.sample_bytes; /* of unsigned bytes */
    if (muster_dataset_column_name(data, elements, &name) != MUSTER_IO_E_USAGE) return 56;
    if (muster_dataset_verify(data) != MUSTER_IO_OK) fail("verify");

    muster_sampler_options order;
    memset(&order, 0, sizeof order);
    order.struct_size = sizeof order;
    order.seed = 7;
    order.window_chunk_samples = 10;
    order.window_chunks = 3;
    muster_sampler* sampler = NULL;
    if (muster_sampler_create(facts.samples, &order, &sampler) != MUSTER_IO_OK) fail("sampler");

    if (argc > 2) return share(data, sampler);

    const int modes[] = {MUSTER_MEMORY_AUTOMATIC, MUSTER_MEMORY_WHOLE, MUSTER_MEMORY_MAPPED, MUSTER_MEMORY_WINDOWED};
    for (int mode = 0; mode < 4; ++mode) {
        muster_loader_options how;
        memset(&how, 0, sizeof how);
        how.struct_size = sizeof how;
        how.batch = 33;
        how.memory = modes[mode];
        how.prefetch = 2;
        muster_loader* loader = NULL;
        if (muster_loader_create(data, sampler, &how, &loader) != MUSTER_IO_OK) fail("loader");
        uint64_t batches = 0, sum = 0, seen = 0, order_hash = 0;
        for (uint64_t epoch = 0; epoch < 2; ++epoch) {
            if (muster_loader_epoch(loader, epoch, 0, &batches) != MUSTER_IO_OK) fail("epoch");
            muster_batch batch;
            memset(&batch, 0, sizeof batch);
            batch.struct_size = sizeof batch;
            int code;
            while ((code = muster_loader_next(loader, &batch)) == MUSTER_IO_OK)
                for (uint64_t i = 0; i < batch.count; ++i, ++seen) {
                    for (uint64_t k = 0; k < facts.sample_bytes; ++k) sum += batch.images[i * facts.sample_bytes + k];
                    order_hash = order_hash * 31 + batch.samples[i];
                }
            if (code != MUSTER_IO_END || muster_loader_next(loader, &batch) != MUSTER_IO_END) fail("next");
        }
        muster_loader_times times;
        memset(&times, 0, sizeof times);
        times.struct_size = sizeof times;
        if (muster_loader_report(loader, &times) != MUSTER_IO_OK || times.steps != batches) fail("report");
        if (batches != (facts.samples + how.batch - 1) / how.batch || times.samples != facts.samples) return 47;
        printf("%d samples, sum %llu, order %llu\n", (int)seen, (unsigned long long)sum, (unsigned long long)order_hash);
        if (muster_loader_free(loader) != MUSTER_IO_OK) fail("free");
    }
    /* What a sampler is told it does. */
    uint64_t all[2] = {0, 0}, first[2] = {0, 0};
    for (int i = 0; i < 2; ++i) {
        muster_epoch_part part;
        memset(&part, 0, sizeof part);
        part.struct_size = sizeof part;
        part.rank = 1;
        part.world = 2;
        order.seed = 7 + (uint64_t)i;
        order.window_chunk_samples = order.window_chunks = 0;
        order.tail = i == 0 ? MUSTER_TAIL_EXACT : MUSTER_TAIL_DROP;
        muster_sampler* other = NULL;
        if (muster_sampler_create(61, &order, &other) != MUSTER_IO_OK || muster_sampler_count(other, &part, &all[i]) != MUSTER_IO_OK) fail("count");
        uint64_t samples[30];
        if (muster_sampler_fill(other, &part, 0, 30, samples) != MUSTER_IO_OK) fail("fill");
        for (int k = 0; k < 30; ++k) first[i] = first[i] * 31 + samples[k];
        if (muster_sampler_fill(other, &part, 1, 30, samples) != MUSTER_IO_E_USAGE || muster_sampler_free(other) != MUSTER_IO_OK) return 48;
    }
    if (all[0] != 30 || all[1] != 30 || first[0] == first[1]) return 49;

    order.tail = 9;
    muster_sampler* refused = NULL;
    if (muster_sampler_create(1, &order, &refused) != MUSTER_IO_E_USAGE || refused != NULL) return 41;
    printf("refused: %s\n", muster_io_last_error());
    if (muster_dataset_close(data) != MUSTER_IO_OK || muster_dataset_open("/no/such/file.h5", NULL, &data) == MUSTER_IO_OK) return 42;
    printf("refused: %s\n", muster_io_last_error());
    return muster_sampler_free(sampler) == MUSTER_IO_OK && muster_loader_free(NULL) == MUSTER_IO_OK ? 0 : 43;
}
