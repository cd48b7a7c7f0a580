/* Datasets, samplers and loaders in C, for the Python module _muster_data.
 *
 * Every function returns MUSTER_IO_OK or a code; muster_io_last_error() then tells what went wrong, of the calling thread's last failed call. No C++ exception
 * leaves a function. Null where something is needed is MUSTER_IO_E_USAGE. What a function makes is owned by the caller, who frees it once. One thread at a time
 * uses a dataset (and no other dataset meanwhile: HDF5 has one lock) or a loader; a sampler may be used by any number of them. No function but
 * muster_loader_create_shared is collective: each rank is told who it is. What is not set in a struct must be zero. It is not installed: only the
 * module that comes with the library uses it, and both change together.
 */
#ifndef MUSTER_IO_H
#define MUSTER_IO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct muster_dataset muster_dataset; /* an open split of a file */
typedef struct muster_sampler muster_sampler; /* an order of samples */
typedef struct muster_loader muster_loader;   /* batches of them */

enum {
    MUSTER_IO_OK = 0,
    MUSTER_IO_END = 1,           /* muster_loader_next: the epoch is over; no error */
    MUSTER_IO_E_USAGE = 2,       /* wrong arguments */
    MUSTER_IO_E_UNAVAILABLE = 5, /* this machine, build or file cannot do it */
    MUSTER_IO_E_SYSTEM = 6,      /* a system call or a read has failed, no memory */
    MUSTER_IO_E_LIBRARY = 7,     /* HDF5 has failed */
    MUSTER_IO_E_INTERNAL = 8,
    MUSTER_IO_E_NOT_FOUND = 9, /* no such file or split */
    MUSTER_IO_E_DATA = 10      /* a file that is damaged, cut short or no dataset */
};

/* Types of a sample's elements. */
enum {
    MUSTER_IO_U8 = 0,
    MUSTER_IO_I8,
    MUSTER_IO_U16,
    MUSTER_IO_I16,
    MUSTER_IO_U32,
    MUSTER_IO_I32,
    MUSTER_IO_U64,
    MUSTER_IO_I64,
    MUSTER_IO_F32,
    MUSTER_IO_F64
};

typedef struct muster_dataset_facts {
    uint64_t samples;
    uint64_t channels, height, width; /* of one sample */
    uint64_t sample_bytes;            /* of one sample in the file's type */
    uint64_t label_bytes;             /* of one label; 0: there are none */
    uint64_t classes;
    /* Samples and labels that lie in the file one behind the other as they are read (no chunks, not encoded, the least significant byte first)
     * can be mapped from these bytes on; 0: they cannot. */
    uint64_t image_offset, label_offset;
    uint64_t class_names; /* 0, or one for each class */
    int type;             /* MUSTER_IO_U8 ... */
    int label_type;       /* MUSTER_IO_U8, U16 or U32; MUSTER_IO_F32: targets of a regression, and no classes */
    int is_row;           /* 1: a sample is a row of `width` elements, as of a table; channels and height are 1 */
} muster_dataset_facts;

/* For this process alone. A null split is "train". */
int muster_dataset_open(char const* path, char const* split, muster_dataset** opened);
/* Null is allowed. Loaders made from it go on. */
int muster_dataset_close(muster_dataset* data);
int muster_dataset_describe(muster_dataset const* data, muster_dataset_facts* facts);
/* The name of a class, UTF-8, valid as long as the dataset is open; null where the file has no names. */
int muster_dataset_class_name(muster_dataset const* data, uint64_t number, char const** name);
/* The name of an element of a row, UTF-8, valid as long as the dataset is open; null where the file has no names.
   MUSTER_IO_E_USAGE for a number beyond the row. */
int muster_dataset_column_name(muster_dataset const* data, uint64_t number, char const** name);
/* count * sample_bytes bytes and count * label_bytes; a null leaves that part out. */
int muster_dataset_read(muster_dataset const* data, uint64_t first, uint64_t count, void* samples, void* labels);
/* Compares everything with the checksums: MUSTER_IO_E_DATA names what differs. */
int muster_dataset_verify(muster_dataset const* data);

enum {
    MUSTER_TAIL_EXACT = 0,
    MUSTER_TAIL_PAD,
    MUSTER_TAIL_DROP
}; /* when samples do not divide among ranks: some have one fewer; repeat; leave out */
enum {
    MUSTER_SPREAD_GLOBAL = 0,
    MUSTER_SPREAD_SHARDED,
    MUSTER_SPREAD_BY_NODE
}; /* among which a rank draws: all; its shard; its node's shards */

/* A null pointer is the same as all zero. */
typedef struct muster_sampler_options {
    uint64_t seed;
    int sequential; /* 1: not shuffled */
    int tail;
    int spread;
    uint64_t window_chunk_samples; /* a shuffle within windows of so many chunks of so many samples; 0: of all samples */
    uint64_t window_chunks;
    double const* weights; /* one a sample: draws by weight; null: every sample once. Copied */
    uint64_t draws;        /* an epoch, over all ranks, with weights */
    int once;              /* with weights: no sample twice in an epoch */
} muster_sampler_options;

/* A rank's part of an epoch. */
typedef struct muster_epoch_part {
    uint64_t epoch;
    int rank, world;
    uint64_t start;             /* samples that all ranks have had of this epoch before */
    int node_first, node_ranks; /* for MUSTER_SPREAD_BY_NODE: the ranks of this rank's node */
} muster_epoch_part;

int muster_sampler_create(uint64_t samples, muster_sampler_options const* options, muster_sampler** made);
int muster_sampler_free(muster_sampler* sampler); /* null is allowed */
int muster_sampler_count(muster_sampler const* sampler, muster_epoch_part const* part, uint64_t* count);
/* Samples number from … from + count - 1 of the part. */
int muster_sampler_fill(muster_sampler const* sampler, muster_epoch_part const* part, uint64_t from, uint64_t count,
                        uint64_t* samples);
/* The window that suits a set of so many samples: 0 and 0 up to 4 GiB. */
int muster_window_for(uint64_t samples, uint64_t sample_bytes, uint64_t* chunk_samples, uint64_t* chunks);

/* The same for a dataset: where it is stored in chunks the window's are whole ones of them. */
int muster_dataset_window(muster_dataset const* data, uint64_t* chunk_samples, uint64_t* chunks);

/* value = (byte / 255 - mean) / deviation, of a crop; see io/loader/image_transform.hpp. */
typedef struct muster_transform {
    float const* mean;      /* one a channel, or null: 0 */
    float const* deviation; /* one a channel, or null: 1 */
    uint64_t channels;      /* of these */
    uint64_t crop_height, crop_width, pad;
    int random; /* 1: the crop lies anywhere, by chance */
    int flip;   /* 1: half of them mirrored, by chance */
} muster_transform;

enum {
    MUSTER_MEMORY_AUTOMATIC = 0,
    MUSTER_MEMORY_WHOLE,
    MUSTER_MEMORY_MAPPED,
    MUSTER_MEMORY_SHARD,
    MUSTER_MEMORY_SHARED,
    MUSTER_MEMORY_WINDOWED
};

typedef struct muster_loader_options {
    uint64_t batch;             /* samples; 0 is 64 */
    int rank, world;            /* a world of 0 is 1 */
    int local_rank, local_size; /* on this node; a size of 0 is 1 */
    int memory;
    int prefetch;                      /* batches gathered ahead by threads; 0: as the loader chooses, -1: none */
    int workers;                       /* threads that do; 0 is 1 */
    int readers;                       /* threads that read, with MUSTER_MEMORY_WINDOWED; 0 is 4 */
    muster_transform const* transform; /* or null: bytes as they are */
    int large_pages; /* 1, with MUSTER_MEMORY_SHARED: on pages of 2 MiB that the node has reserved (vm.nr_hugepages) */
    int pinned; /* batches in pinned memory, which a GPU copies from by itself: 1 yes, -1 no, 0 where the calling thread has a CUDA context */
} muster_loader_options;

/* Valid until the next call on the loader. */
typedef struct muster_batch {
    uint8_t const* images; /* null with a transform */
    float const* values;   /* null without */
    uint8_t const* labels;
    uint64_t const* samples; /* which they are */
    uint64_t count;          /* may be 0 at the end, where other ranks still have samples */
    uint64_t global_count;   /* in this step over all ranks */
    uint64_t resume_at;      /* the start with which the epoch goes on after this step */
} muster_batch;

/* How the time of an epoch was spent, without its first step: accelerator utilisation as MLPerf Storage defines it is (total_s - waited_s) / total_s. */
typedef struct muster_loader_times {
    uint64_t steps, samples, bytes;
    double waited_s, total_s, utilisation;
} muster_loader_times;

/* Reads its samples, but with MUSTER_MEMORY_WINDOWED. Dataset and sampler may be freed afterwards. */
int muster_loader_create(muster_dataset const* data, muster_sampler const* sampler, muster_loader_options const* options,
                         muster_loader** made);
/* The same with one copy of the samples a node, which its ranks share (MUSTER_MEMORY_SHARED, and what MUSTER_MEMORY_AUTOMATIC then chooses if it
 * fits): collective over all ranks of the job, with the same options. Who they are comes from the environment; rank, world, local_rank and local_size must be 0.
 * The ranks communicate during this call alone, on one node by shared memory, else by MPI, which the program may have initialised. The copy is gone with the last
 * loader that has it. */
int muster_loader_create_shared(muster_dataset const* data, muster_sampler const* sampler, muster_loader_options const* options,
                                muster_loader** made);
int muster_loader_free(muster_loader* loader); /* null is allowed */
/* Begins an epoch, and ends the one before. `batches` may be null. */
int muster_loader_epoch(muster_loader* loader, uint64_t epoch, uint64_t start, uint64_t* batches);
int muster_loader_next(muster_loader* loader, muster_batch* batch);
int muster_loader_report(muster_loader const* loader, muster_loader_times* times);
char const* muster_loader_why(
    muster_loader const* loader); /* the memory mode, in words; valid as long as the loader; null for a null */

/* Of this thread's last call that failed; "" if none has. Valid until its next call that fails. */
char const* muster_io_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
