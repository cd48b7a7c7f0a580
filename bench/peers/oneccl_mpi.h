/* The part of MPI that mpi_collectives.c uses, over oneCCL on the CPUs of one node, so that one program measures both peers.
 *
 * In C: declarations. Compiled as C++ with ONECCL_MPI_BODIES: the functions. RANK and RANKS are in the environment; the ranks meet by a file that rank 0
 * writes into the folder PEER_FOLDER. API: oneCCL 2021 and later, oneapi/ccl.hpp. */
#ifndef ONECCL_MPI_H
#define ONECCL_MPI_H
#ifdef __cplusplus
extern "C" {
#endif

typedef enum { MPI_FLOAT, MPI_DOUBLE, MPI_INT32_T, MPI_INT64_T, MPI_UINT8_T, MPI_INT8_T, MPI_UINT16_T } MPI_Datatype;
typedef enum { MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX } MPI_Op;
typedef int MPI_Comm;
#define MPI_COMM_WORLD 0
#define MPI_IN_PLACE ((void*)-1)
#define MPI_MAX_LIBRARY_VERSION_STRING 256
int MPI_Init(int*, char***);
int MPI_Finalize(void);
int MPI_Abort(MPI_Comm, int);
int MPI_Comm_rank(MPI_Comm, int*);
int MPI_Comm_size(MPI_Comm, int*);
int MPI_Get_library_version(char*, int*);
double MPI_Wtime(void);
int MPI_Barrier(MPI_Comm);
int MPI_Allreduce(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);
int MPI_Allgather(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm);
int MPI_Bcast(void*, int, MPI_Datatype, int, MPI_Comm);
int MPI_Reduce_scatter_block(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);
int MPI_Alltoall(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm);

#ifdef __cplusplus
}
#endif
#endif

#ifdef ONECCL_MPI_BODIES
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <oneapi/ccl.hpp>
#include <string>

static std::unique_ptr<ccl::communicator> ranks;

static int from_environment(char const* name) {
    return std::atoi(std::getenv(name));
}

static ccl::datatype type_of(MPI_Datatype type) {
    static ccl::datatype const types[] = {ccl::datatype::float32, ccl::datatype::float64, ccl::datatype::int32, ccl::datatype::int64,
                                          ccl::datatype::uint8,   ccl::datatype::int8,    ccl::datatype::uint16};
    return types[type];
}

static ccl::reduction reduction_of(MPI_Op op) {
    static ccl::reduction const reductions[] = {ccl::reduction::sum, ccl::reduction::prod, ccl::reduction::min, ccl::reduction::max};
    return reductions[op];
}

static std::size_t width_of(MPI_Datatype type) {
    static std::size_t const widths[] = {4, 8, 4, 8, 1, 1, 2};
    return widths[type];
}

static std::size_t own_part(int count, MPI_Datatype type) {
    return static_cast<std::size_t>(ranks->rank()) * static_cast<std::size_t>(count) * width_of(type);
}

/* After the rename the address is complete; before, it does not exist. */
static std::shared_ptr<ccl::kvs> meet(int rank) {
    std::string const path = std::string(std::getenv("PEER_FOLDER")) + "/oneccl.address";
    if (rank == 0) {
        auto made = ccl::create_main_kvs();
        auto const address = made->get_address();
        std::FILE* const file = std::fopen((path + ".part").c_str(), "w");
        std::fwrite(address.data(), 1, address.size(), file);
        std::fclose(file);
        std::rename((path + ".part").c_str(), path.c_str());
        return made;
    }
    std::FILE* file = nullptr;
    while ((file = std::fopen(path.c_str(), "r")) == nullptr) ::usleep(10000);
    ccl::kvs::address_type address;
    if (std::fread(address.data(), 1, address.size(), file) != address.size()) std::abort();
    std::fclose(file);
    return ccl::create_kvs(address);
}

int MPI_Init(int*, char***) {
    ccl::init();
    int const rank = from_environment("RANK");
    ranks = std::make_unique<ccl::communicator>(ccl::create_communicator(from_environment("RANKS"), rank, meet(rank)));
    return 0;
}
int MPI_Finalize(void) {
    ranks.reset();
    return 0;
}
int MPI_Abort(MPI_Comm, int code) {
    std::exit(code);
}
int MPI_Comm_rank(MPI_Comm, int* rank) {
    *rank = ranks->rank();
    return 0;
}
int MPI_Comm_size(MPI_Comm, int* size) {
    *size = ranks->size();
    return 0;
}
int MPI_Get_library_version(char* text, int* length) {
    auto const version = ccl::get_library_version();
    *length = std::snprintf(text, MPI_MAX_LIBRARY_VERSION_STRING, "oneCCL %u.%u.%u", version.major, version.minor, version.update);
    return 0;
}
double MPI_Wtime(void) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
int MPI_Barrier(MPI_Comm) {
    ccl::barrier(*ranks).wait();
    return 0;
}
int MPI_Allreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm) {
    ccl::allreduce(from == MPI_IN_PLACE ? to : from, to, count, type_of(type), reduction_of(op), *ranks).wait();
    return 0;
}
int MPI_Allgather(const void* from, int count, MPI_Datatype type, void* to, int, MPI_Datatype, MPI_Comm) {
    if (from == MPI_IN_PLACE) from = static_cast<char*>(to) + own_part(count, type);
    ccl::allgather(from, to, count, type_of(type), *ranks).wait();
    return 0;
}
int MPI_Bcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm) {
    ccl::broadcast(data, count, type_of(type), root, *ranks).wait();
    return 0;
}
int MPI_Reduce_scatter_block(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm) {
    if (from == MPI_IN_PLACE) { /* the result comes at the beginning of the input, as MPI's; oneCCL's at this rank's part */
        std::string const input(static_cast<char*>(to), static_cast<std::size_t>(count) * width_of(type) * static_cast<std::size_t>(ranks->size()));
        ccl::reduce_scatter(input.data(), to, count, type_of(type), reduction_of(op), *ranks).wait();
        return 0;
    }
    ccl::reduce_scatter(from, to, count, type_of(type), reduction_of(op), *ranks).wait();
    return 0;
}
int MPI_Alltoall(const void* from, int count, MPI_Datatype type, void* to, int, MPI_Datatype, MPI_Comm) {
    ccl::alltoall(from, to, count, type_of(type), *ranks).wait();
    return 0;
}
#endif
