/* Collectives on named tensors: an interface for C, and for every language that calls C.
 *
 * Every function returns MUSTER_OK or a code; muster_last_error() then describes the calling thread's last failed call. No C++ exception leaves a
 * function. Null for a necessary argument is MUSTER_E_USAGE. Any thread may call all functions except creation and destruction. Structs begin with their size
 * (set it to sizeof), so that later versions can add to them; other fields must be zero unless you set them. A program that was compiled for a later version
 * and sets what this one does not know gets MUSTER_E_UNAVAILABLE.
 */
#ifndef MUSTER_COMM_H
#define MUSTER_COMM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __GNUC__
#pragma GCC visibility push(default) /* whatever -fvisibility a build has */
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* Grows when something is added or removed after the first release; never otherwise. A program works with it if it was compiled for at most muster_comm_abi(). */
#define MUSTER_COMM_ABI 1
int muster_comm_abi(void);

typedef struct muster_comm muster_comm;     /* all ranks; belongs to whoever created it */
typedef struct muster_handle muster_handle; /* a request; belongs to whoever submitted it */
typedef struct muster_group muster_group;   /* tensors that are reduced again and again; belongs to whoever prepared it */

enum {
    MUSTER_OK = 0,
    MUSTER_PENDING = 1,       /* muster_poll: not ended yet; no error */
    MUSTER_E_USAGE = 2,       /* wrong arguments */
    MUSTER_E_TIMEOUT = 3,     /* a deadline has passed; the communicator has failed */
    MUSTER_E_PEER = 4,        /* ranks have died or disagree */
    MUSTER_E_UNAVAILABLE = 5, /* this machine or build cannot do it */
    MUSTER_E_SYSTEM = 6,      /* a system call has failed, no memory */
    MUSTER_E_LIBRARY = 7,     /* MPI, NCCL or another library has failed */
    MUSTER_E_INTERNAL = 8
};

/* The last three are gathered, broadcast, exchanged and sent, but not reduced. Any other type is moved as bytes: MUSTER_U8 with one extent more. */
enum { MUSTER_F32 = 0, MUSTER_F64, MUSTER_F16, MUSTER_BF16, MUSTER_I32, MUSTER_I64, MUSTER_U8, MUSTER_I8, MUSTER_BOOL, MUSTER_I16, MUSTER_U16 };
/* f16 and bf16 are combined in f32 and rounded once on one node over shm, and over tcp and mpi between up to 16 ranks. Between nodes whose ranks share memory the
 * result of each node is rounded too; beyond 16 ranks, or nodes, each step of tcp's and MPI's algorithms rounds. */
enum { MUSTER_SUM = 0, MUSTER_AVERAGE, MUSTER_MIN, MUSTER_MAX, MUSTER_PRODUCT, MUSTER_ADASUM };
enum { MUSTER_HOST = 0, MUSTER_DEVICE = 1 };

/* A tensor. It stays the caller's, and must be valid and untouched until its request has ended. */
typedef struct muster_tensor {
    size_t struct_size;
    const char* name;     /* the same on all ranks: tensors of one name are reduced together */
    const void* in;
    void* out;            /* the same as in: in place. Null for allgather, reducescatter, alltoall: the handle holds the result */
    size_t out_elements;  /* of those three, if out is given */
    const int64_t* shape; /* row-major; the first extent counts rows */
    int dimensions;       /* 0 … 8 */
    int type;             /* MUSTER_F32 … */
    int memory;           /* MUSTER_HOST or MUSTER_DEVICE */
} muster_tensor;

/* The type in which f32 tensors of sums and averages are sent. The default is that of MUSTER_COMPRESSION, or none. */
enum { MUSTER_WIRE_DEFAULT = 0, MUSTER_WIRE_NONE, MUSTER_WIRE_F16, MUSTER_WIRE_BF16 };

/* Further arguments of a call. A null pointer is the same as all zero. */
typedef struct muster_call {
    size_t struct_size;
    double prescale;       /* 0 means 1 */
    double postscale;      /* 0 means 1 */
    int set;               /* a process set; 0 is all ranks */
    int root;              /* broadcast; counts within the set */
    const int64_t* splits; /* alltoall: rows for each rank of the set, or null for equal parts */
    int compression;       /* allreduce: MUSTER_WIRE_…; refused for tensors that cannot be compressed */
    int error_feedback;    /* keep what rounding loses for the next tensor of that name: 0 as MUSTER_ERROR_FEEDBACK says, 1 no, 2 yes */
    void* stream;          /* device memory: the CUstream or cudaStream_t on which the program works on the tensors; null is the default stream. The device
                              waits for what it holds when they are submitted */
} muster_call;

/* Collective. The identity of this rank and options (MUSTER_COMM_BACKEND, MUSTER_FUSION_BYTES, …) come from the environment. A result has 30 minutes unless
 * MUSTER_COMM_DEADLINE says otherwise ("90s"; 0: no limit); muster_wait can shorten the deadline of a request. */
int muster_comm_create(muster_comm** made);
/* The same with your own variables ("MUSTER_CYCLE_TIME=500us"), which precede those of the environment; ends with a null. MUSTER_STATIC_GRAPH=1 and
 * MUSTER_AUTOTUNE=1 are MUSTER_E_UNAVAILABLE, from the environment too: there is no static graph and no autotuner any more; use muster_allreduce_prepare. */
int muster_comm_create_with(const char* const* variables, muster_comm** made);
/* The same for some ranks of the job step only: collective over these (distinct, of the job step, the same list on all), which become ranks 0 … count-1 in this
 * order; the others neither call it nor take part. `name`, the same on all, distinguishes those made at the same time of the same ranks. Uses shared memory if
 * the job step has one node; over several nodes, or if MUSTER_COMM_BACKEND is mpi, it uses MPI, in which every rank of the job step must then come up, at any
 * time: by a communicator, or by MPI_Init. MUSTER_TIMELINE and MUSTER_FLIGHT_RECORDER are for the communicator of all ranks. */
int muster_comm_create_of(const char* const* variables, const int* ranks, int count, const char* name, muster_comm** made);
/* Gives the address at which this process listens for the other ranks of a communicator over the backend tcp, as text with a terminating zero: opens the socket
 * at the first call. The texts of all ranks, in their order, separated by semicolons, in MUSTER_ADDRESSES (muster_comm_create_with) join ranks whose launcher
 * has no PMIx; whoever can change them on their way can join in place of another rank. *size is the room of `buffer`, and then the size of the text; nothing is
 * copied if that is larger, or the buffer is null. GLOO_SOCKET_IFNAME names the network interface. Not collective. */
int muster_comm_address(char* buffer, size_t* size);
/* Collective, but does not hang when ranks have failed. Null is allowed. Handles may outlive it. */
int muster_comm_destroy(muster_comm* comm);
/* Not collective: ends it without waiting for the other ranks, whose requests then fail and name this rank. For a program that ends because of an error. Null
 * is allowed. */
int muster_comm_abandon(muster_comm* comm);

/* Elastic runs (`muster run --min-np N`), whose ranks may go on without the lost ones. */

typedef struct muster_generation {
    size_t struct_size;
    int number;      /* grows */
    int rank;        /* of this process; -1: it has no part in it, and should end */
    int size;        /* its ranks */
    int sync;        /* rank 0 must give its state to all; the launcher decides this, the same for all ranks */
    int master_port; /* MASTER_PORT, or 0: as before */
} muster_generation;

enum {
    MUSTER_HAS_STATE = 1, /* this rank can give the others the state that a newcomer lacks; the first such rank becomes rank 0 */
    MUSTER_AT_COMMIT = 2  /* no collective has failed here: all ranks have the same state */
};

/* Tells the launcher that this program calls muster_comm_reform when a collective fails. Without it a lost rank ends the others, or all start again.
 * MUSTER_E_UNAVAILABLE outside of an elastic run. Not collective. */
int muster_reform_announce(void);
/* Ends `comm` (may be null) as muster_comm_abandon does, waits until all remaining ranks have called this, and makes the communicator of the next generation in
 * *made; if ranks are lost meanwhile, that of the one after it. Collective over the remaining ranks. `variables` as in muster_comm_create_with, without those
 * of the rank's identity. `standing` adds up MUSTER_HAS_STATE and MUSTER_AT_COMMIT. Process sets, groups and other communicators of the former world are of no
 * use any more. `info` may be null. *made is null if this rank has no part in the generation. `seconds`: 0 is 10 minutes. MUSTER_E_UNAVAILABLE outside of an
 * elastic run, or if the launcher ends it. */
int muster_comm_reform(muster_comm* comm, const char* const* variables, int standing, double seconds, muster_generation* info,
                       muster_comm** made);
/* Gives the present generation. MUSTER_E_UNAVAILABLE outside of an elastic run, as for the next. Not collective. */
int muster_generation_now(muster_generation* info);
/* Gives the variables of this rank's identity in it, such as RANK, and MUSTER_MEMBERS: the numbers of its members, by rank, which never change. Lines
 * NAME=VALUE with a NUL at the end. *size as in muster_counters. */
int muster_generation_variables(char* buffer, size_t* size);
/* Says what has changed in the hosts or slots since the last call: 1 removed, 2 added, 3 both, 0 nothing. Always MUSTER_OK. */
int muster_hosts_changed(int* what);

/* The state that this process keeps in memory, in two copies of which one is always whole. With `muster run --keep-state node` the rank finds them after a
 * restart of the run; otherwise they end with the process. Not collective. Thread safe. */

typedef struct muster_piece {
    const void* data; /* host memory */
    size_t bytes;
} muster_piece;
typedef struct muster_kept {
    size_t struct_size;
    uint64_t step;
    const void* data; /* the pieces, each padded to a multiple of 64 bytes; valid until the next muster_state_keep */
    size_t bytes;
} muster_kept;

/* Copies the pieces over the older copy; the newer one stays whole meanwhile. `step` names the content for the caller. */
int muster_state_keep(uint64_t step, const muster_piece* pieces, size_t count);
/* Gives the newest whole copy (which: 0), the one before (1) and so on; there are at most four. Reads and checks all. MUSTER_E_UNAVAILABLE if there is none. */
int muster_state_kept(int which, muster_kept* copy);

/* -1 for null. */
int muster_comm_rank(const muster_comm* comm);
int muster_comm_size(const muster_comm* comm);
int muster_comm_local_rank(const muster_comm* comm); /* on this node */
int muster_comm_local_size(const muster_comm* comm);
int muster_comm_cross_rank(const muster_comm* comm); /* number of this node */
int muster_comm_cross_size(const muster_comm* comm); /* number of nodes */
const char* muster_comm_backend(const muster_comm* comm);     /* for host memory */
const char* muster_comm_why_backend(const muster_comm* comm); /* a sentence */
/* For device memory; "" before the first tensor there, and if there is no backend. */
const char* muster_comm_device_backend(const muster_comm* comm);

/* Returns what was built in and is found on this machine; 0 if it is not, or is not known. "mpi", "pmix", "cuda_kernels": 1. "nccl": its version as NCCL counts
 * (22809 is 2.28.9). "cuda": the driver's (12080 is CUDA 12.8) if there is a device too. Loads that library, and initialises the driver, but not MPI. Not
 * collective. */
int muster_built(const char* what);

/* Collective, blocking: distinct ranks, the same on all. */
int muster_process_set_add(muster_comm* comm, const int* ranks, int count, int* set);
/* Collective over these ranks only, blocking, with the same name: the others need not know of it. The number is the same on all ranks. Sets of one name whose
 * first ranks differ are distinct. */
int muster_process_set_make(muster_comm* comm, const int* ranks, int count, const char* name, int* set);
/* Ends a process set, whose number is not used again. Collective over all ranks, or over its members if they made it by muster_process_set_make; blocking. If
 * requests of it are in flight here, or if it is used later: MUSTER_E_USAGE. */
int muster_process_set_remove(muster_comm* comm, int set);
int muster_process_set_rank(const muster_comm* comm, int set, int* rank); /* -1: not a member */
int muster_process_set_size(const muster_comm* comm, int set, int* size);

/* These submit and return. Give *handle to muster_handle_free once. */
int muster_allreduce_async(muster_comm* comm, const muster_tensor* tensor, int reduction, const muster_call* call,
                           muster_handle** handle);
/* Reduces all of them or none: ranks agree on them together under the group's name. Tensors that share memory to which one is written: MUSTER_E_USAGE. */
int muster_allreduce_group_async(muster_comm* comm, const char* name, const muster_tensor* tensors, size_t count, int reduction,
                                 const muster_call* call, muster_handle** handle);
int muster_allgather_async(muster_comm* comm, const muster_tensor* tensor, const muster_call* call, muster_handle** handle);
int muster_broadcast_async(muster_comm* comm, const muster_tensor* tensor, const muster_call* call, muster_handle** handle);
int muster_reducescatter_async(muster_comm* comm, const muster_tensor* tensor, int reduction, const muster_call* call,
                               muster_handle** handle);
int muster_alltoall_async(muster_comm* comm, const muster_tensor* tensor, const muster_call* call, muster_handle** handle);
int muster_barrier_async(muster_comm* comm, const muster_call* call, muster_handle** handle);
int muster_join_async(muster_comm* comm, const muster_call* call, muster_handle** handle);

/* Sends tensor->in to rank `peer` of the set, which receives it into tensor->out. Host memory. The two ranks, the tag and the order of calls match; types and
 * numbers of elements are the same on both, otherwise MUSTER_E_PEER on both. The tensor's name may be null. Other ranks do nothing, but if they are idle a
 * message takes up to 100 ms, since the threads of all ranks of the set agree on it: for many messages make a set of the two ranks. */
int muster_send_async(muster_comm* comm, const muster_tensor* tensor, int peer, int tag, const muster_call* call, muster_handle** handle);
int muster_receive_async(muster_comm* comm, const muster_tensor* tensor, int peer, int tag, const muster_call* call,
                         muster_handle** handle);

/* An allgather, or a reducescatter, of each tensor: all of them or none, since ranks agree on them together under the group's name. An `out` may be null.
 * muster_handle_result_of and muster_handle_rows_of give the results. */
int muster_allgather_group_async(muster_comm* comm, const char* name, const muster_tensor* tensors, size_t count,
                                 const muster_call* call, muster_handle** handle);
int muster_reducescatter_group_async(muster_comm* comm, const char* name, const muster_tensor* tensors, size_t count, int reduction,
                                     const muster_call* call, muster_handle** handle);

/* The same, and wait. A parameter `handle` holds the result; it may be null if an out was given. */
int muster_allreduce(muster_comm* comm, const muster_tensor* tensor, int reduction, const muster_call* call);
int muster_allreduce_group(muster_comm* comm, const char* name, const muster_tensor* tensors, size_t count, int reduction,
                           const muster_call* call);
int muster_allgather(muster_comm* comm, const muster_tensor* tensor, const muster_call* call, muster_handle** handle);
int muster_broadcast(muster_comm* comm, const muster_tensor* tensor, const muster_call* call);
int muster_reducescatter(muster_comm* comm, const muster_tensor* tensor, int reduction, const muster_call* call,
                         muster_handle** handle);
int muster_alltoall(muster_comm* comm, const muster_tensor* tensor, const muster_call* call, muster_handle** handle);
int muster_barrier(muster_comm* comm, const muster_call* call);
int muster_join(muster_comm* comm, const muster_call* call, int* last_rank); /* last_rank may be null */

/* Collective, blocking: checks a group once with the other ranks, so that starting it costs no more than one tensor. The tensors' memory must stay valid until
 * the last start has ended. */
int muster_allreduce_prepare(muster_comm* comm, const char* name, const muster_tensor* tensors, size_t count, int reduction,
                             const muster_call* call, muster_group** made);
/* Reduces all of them; one start of a group at a time. Any thread. Give *handle to muster_handle_free once. */
int muster_group_start(muster_group* group, muster_handle** handle);
/* The same for tensors in device memory, on which the program works on `stream`. */
int muster_group_start_on(muster_group* group, void* stream, muster_handle** handle);
/* Does not end what was started. Null is allowed. */
void muster_group_free(muster_group* group);

/* Gives memory on which collectives are fastest: zeroed, beginning on a page, used as any other. Not collective. It may outlive the communicator, but free it
 * only after every collective on it has ended. A child of fork() may share the parent's memory, and should leave it alone. */
int muster_alloc(muster_comm* comm, size_t bytes, void** made);
/* Null is allowed; memory that is not from muster_alloc is MUSTER_E_USAGE. */
int muster_free(void* memory);

/* Returns MUSTER_OK if it has ended, well or not; else MUSTER_PENDING. */
int muster_poll(const muster_handle* handle);
/* Blocks until it has ended; returns its outcome. `seconds` > 0 shortens its deadline: if it does not end in time, the communicator fails. */
int muster_wait(const muster_handle* handle, double seconds);
/* Blocks for at most `seconds`: MUSTER_OK if it has ended, well or not, else MUSTER_PENDING. Changes nothing: muster_wait gives the outcome. */
int muster_wait_for(const muster_handle* handle, double seconds);
/* The same as a part of a wait until the end, for a caller that is interrupted in between (by signals) and submits nothing: while all ranks wait so, or in
 * muster_wait, and none of their calls is on all of them, they can never end, and fail after a second. */
int muster_wait_in_turns(const muster_handle* handle, double seconds);
/* Waits for all of them, of one communicator or of several; `seconds` as in muster_wait, for all of them from now on. After all have ended, returns the outcome
 * of the first that failed, in their order. */
int muster_wait_many(const muster_handle* const* handles, size_t count, double seconds);
/* Blocks until one of them, all of one communicator, has ended, well or not, and gives the place of the first such; MUSTER_PENDING after `seconds` (0 is
 * without end), which fails nothing. */
int muster_wait_any(const muster_handle* const* handles, size_t count, double seconds, size_t* which);
/* Calls call(state) once, when the request has ended, well or not: on the communicator's thread, or before this returns if it has ended already. The call must
 * not block for long (no other request of this rank goes on meanwhile), must not throw, and must call nothing of muster except muster_poll. The handle may be
 * freed before. A request may have several calls. */
int muster_handle_then(const muster_handle* handle, void (*call)(void*), void* state);
/* For tensors in device memory: what is put on `stream` (a CUstream or cudaStream_t) from now on waits, on the device, for the results. Blocks only until the
 * device knows of all of it. Wait for the handle before you use the tensors or their name again, or trust the results. */
int muster_handle_order(const muster_handle* handle, void* stream);
/* Gives the result after a wait that returned MUSTER_OK. Valid until the handle is freed. In device memory if the tensor was. */
int muster_handle_result(const muster_handle* handle, const void** data, size_t* bytes);
int muster_handle_rows(const muster_handle* handle, const int64_t** rows, int* count);
/* The same two for one tensor of a group: `index` is its place in the call. */
int muster_handle_result_of(const muster_handle* handle, size_t index, const void** data, size_t* bytes);
int muster_handle_rows_of(const muster_handle* handle, size_t index, const int64_t** rows, int* count);
int muster_handle_number(const muster_handle* handle, int* number); /* of join: the rank that joined last */
/* The request goes on if it has not ended: its tensors must stay. Null is allowed. */
void muster_handle_free(muster_handle* handle);

int muster_timeline_start(muster_comm* comm, const char* folder, int mark_cycles);
/* Writes only this rank's, into a file of that name, in an existing folder. */
int muster_timeline_start_file(muster_comm* comm, const char* path, int mark_cycles);
int muster_timeline_stop(muster_comm* comm);

enum { MUSTER_JSON = 0, MUSTER_PROMETHEUS = 1 };
/* Gives the counters as text with a NUL. *size is the buffer's, and becomes the necessary size; a buffer too small (or null with 0) gets nothing, and that is
 * not an error. */
int muster_counters(const muster_comm* comm, int format, char* buffer, size_t* size);

/* Describes this thread's last failed call; "" if none has failed. Valid until its next failed call. */
const char* muster_last_error(void);
/* Returns the number of ranks known to be at fault, and in *ranks their numbers, which are valid as long; 0 and null if none is known. */
int muster_last_error_ranks(const int** ranks);

#ifdef __cplusplus
}
#endif
#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#endif
