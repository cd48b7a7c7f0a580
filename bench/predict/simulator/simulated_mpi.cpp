#include <mpi.h>
#include <sched.h>
#include <time.h>

#include <cstring>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <memory>
#include <simgrid/s4u.hpp>
#include <span>
#include <vector>

#include "bench/predict/simulator/ring_allreduce.hpp"
#include "bench/predict/simulator/simulator.hpp"
#include "comm/tensor/reduction_kernels.hpp"

// MPI's profiling interface: muster's calls of MPI pass here on their way to SMPI. A rank polls MPI_Test and MPI_Testall until its messages
// are through; simulated time does not pass in polls, so this remembers what was polled for in vain, and sched_yield() and nanosleep(),
// by which a waiting rank of muster gives its processor away, wait for that.

namespace muster {

namespace {

/// What one simulated rank waits for.
struct rank_state {
    std::map<MPI_Request*, int> polled;  // arrays of requests that were not through, and their lengths
    bool moved = false;                  // something was started or ended since: poll again
    std::map<MPI_Request, std::unique_ptr<ring_allreduce>> schedules;
    unsigned next_schedule = 0;
    std::map<std::pair<int, int>, int> meetings;  // allgathers so far, by rank 0 and size of their communicator
};

double memory_gbs = 0;

rank_state& own() {
    static std::deque<rank_state> states;
    auto const place = static_cast<std::size_t>(simgrid::s4u::this_actor::get_pid());
    while (states.size() <= place) states.emplace_back();
    return states[place];
}

bool in_a_rank() {
    return simgrid::s4u::Actor::self() != nullptr && !simgrid::s4u::this_actor::is_maestro();
}

/// One array of requests of SMPI's own, to be waited for.
struct waited {
    MPI_Request* first;
    int count;
};

std::vector<waited> waited_by(rank_state& me) {
    std::vector<waited> all;
    for (auto const& [requests, count] : me.polled) all.push_back({requests, count});
    for (auto& [name, schedule] : me.schedules) all.push_back({schedule->requests().data(), 2});
    return all;
}

/// When the first of its schedules goes on that waits for latencies alone; 0: none does.
double next_moment(rank_state const& me) {
    double first = 0;
    for (auto const& [name, schedule] : me.schedules)
        if (double const at = schedule->goes_on_at(); at > 0 && (first == 0 || at < first)) first = at;
    return first;
}

/// Looks again and again whether one of them is through, until that moment.
bool came_before(double moment, std::vector<MPI_Request>& requests, int& which) {
    constexpr double look_each_s = 2e-6;
    for (;;) {
        int came = 0;
        PMPI_Testany(static_cast<int>(requests.size()), requests.data(), &which, &came, MPI_STATUS_IGNORE);
        if (came != 0) return true;
        double const now = simgrid::s4u::Engine::get_clock();
        if (now >= moment) return false;
        simgrid::s4u::this_actor::sleep_until(std::min(moment, now + look_each_s));
    }
}

/// The ranks are contexts of one process: what each gives lies where all can read it. Takes two barriers of simulated time.
struct meeting {
    std::vector<std::byte> all;
    int left = 0;
};

/// Rank 0 of a communicator by its number in the world, the communicator's size, how many the caller had of these.
using meeting_name = std::array<int, 3>;

std::map<meeting_name, meeting> meetings;

void gather_here(void const* in, std::size_t bytes, void* out, MPI_Comm comm) {
    int size = 0, rank = 0, root = 0, first = 0;
    PMPI_Comm_size(comm, &size);
    PMPI_Comm_rank(comm, &rank);
    MPI_Group here, world;
    PMPI_Comm_group(comm, &here);
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Group_translate_ranks(here, 1, &root, world, &first);
    PMPI_Group_free(&here);
    PMPI_Group_free(&world);
    meeting_name const name{first, size, own().meetings[{first, size}]++};
    auto& at = meetings[name];
    at.all.resize(bytes * static_cast<std::size_t>(size));
    auto* const place = at.all.data() + bytes * static_cast<std::size_t>(rank);
    std::memcpy(place, in == MPI_IN_PLACE ? static_cast<std::byte*>(out) + bytes * static_cast<std::size_t>(rank) : in, bytes);
    PMPI_Barrier(comm);
    std::memcpy(out, meetings[name].all.data(), meetings[name].all.size());
    PMPI_Barrier(comm);
    if (++meetings[name].left == size) meetings.erase(name);
}

/// SMPI hands over its communication by the base class.
void copy_payload(smx_activity_t activity, void* buffer, std::size_t bytes) {
    if (bytes > payload_limit) return;
    smpi_comm_copy_buffer_callback(reinterpret_cast<simgrid::kernel::activity::CommImpl*>(activity), buffer, bytes);
}

}  // namespace

void set_memory_rate(double gbs) noexcept {
    memory_gbs = gbs;
}

void pass_memory_time(std::size_t bytes) {
    if (memory_gbs > 0 && bytes > 0) simgrid::s4u::this_actor::sleep_for(static_cast<double>(bytes) / (memory_gbs * 1e9));
}

void let_payloads_go() {
    smpi_comm_set_copy_data_callback(copy_payload);
}

void wait_for_messages() {
    auto& me = own();
    if (std::exchange(me.moved, false)) return;
    auto const arrays = waited_by(me);
    double const goes_on_at = next_moment(me);
    for (;;) {
        std::vector<MPI_Request> requests;
        std::vector<std::pair<std::size_t, int>> places;
        for (std::size_t a = 0; a < arrays.size(); ++a)
            for (int i = 0; i < arrays[a].count; ++i) {
                MPI_Request const each = arrays[a].first[i];
                if (each == MPI_REQUEST_NULL || me.schedules.contains(each)) continue;
                requests.push_back(each);
                places.emplace_back(a, i);
            }
        if (requests.empty() && goes_on_at > 0) return simgrid::s4u::this_actor::sleep_until(goes_on_at);
        if (requests.empty()) return simgrid::s4u::this_actor::yield();
        int which = MPI_UNDEFINED;
        if (goes_on_at == 0)
            PMPI_Waitany(static_cast<int>(requests.size()), requests.data(), &which, MPI_STATUS_IGNORE);
        else if (!came_before(goes_on_at, requests, which))
            return;
        if (which == MPI_UNDEFINED) return;
        auto const [a, i] = places[static_cast<std::size_t>(which)];
        arrays[a].first[i] = MPI_REQUEST_NULL;
        // A poll asks for all of an array at once: until then it would find nothing new.
        auto const through = [](MPI_Request each) { return each == MPI_REQUEST_NULL; };
        if (std::all_of(arrays[a].first, arrays[a].first + arrays[a].count, through)) return;
    }
}

/// Stands in for muster::combine in the direct allreduce (the build renames it there): large parts take the time of the platform's
/// memory and are not computed.
void combine_on_platform(dtype type, reduction how, std::span<void const* const> sources, void* out, std::size_t count,
                         scaling const& scale) noexcept {
    std::size_t const bytes = count * size_of(type);
    if (bytes <= payload_limit) combine(type, how, sources, out, count, scale);
    pass_memory_time(bytes * (sources.size() + 1));
}

}  // namespace muster

extern "C" {

int MPI_Isend(void const* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
    muster::own().moved = true;
    return PMPI_Isend(data, count, type, to, tag, comm, request);
}

int MPI_Irecv(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request* request) {
    muster::own().moved = true;
    return PMPI_Irecv(data, count, type, from, tag, comm, request);
}

int MPI_Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
    auto& me = muster::own();
    bool ends = true;
    std::vector<MPI_Request> plain;
    for (int i = 0; i < count; ++i) {
        auto const schedule = me.schedules.find(requests[i]);
        if (schedule == me.schedules.end()) continue;
        if (schedule->second->advance()) {
            me.schedules.erase(schedule);
            requests[i] = MPI_REQUEST_NULL;
            me.moved = true;
        } else
            ends = false;
    }
    *flag = 0;
    if (!ends) return MPI_SUCCESS;
    int const code = PMPI_Testall(count, requests, flag, statuses);
    if (*flag != 0) {
        me.moved = me.moved || count != 0;
        me.polled.erase(requests);
    } else
        me.polled[requests] = count;
    return code;
}

int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
    return MPI_Testall(1, request, flag, status);
}

/// SMPI's own sends every tensor from each rank to each: no MPI library does that.
int MPI_Iallreduce(void const* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Request* request) {
    auto& me = muster::own();
    int bytes = 0;
    PMPI_Type_size(type, &bytes);
    auto const all = static_cast<std::size_t>(bytes) * static_cast<std::size_t>(count);
    if (in != MPI_IN_PLACE && all <= muster::payload_limit) memcpy(out, in, all);
    // Of the last kind of traffic (comm/mpi/mpi_tags.hpp), which muster does not look for among collectives.
    unsigned const number = me.next_schedule++;
    auto schedule = std::make_unique<muster::ring_allreduce>(out, static_cast<std::size_t>(count), type, op, comm,
                                                             static_cast<int>(number % 4096 * 4 + 3));
    *request = reinterpret_cast<MPI_Request>(schedule.get());
    me.moved = true;
    me.schedules.emplace(*request, std::move(schedule));
    return MPI_SUCCESS;
}

/// SMPI says MPI_THREAD_SINGLE. Ranks run one at a time, each in its own context: serialised.
int MPI_Query_thread(int* provided) {
    *provided = MPI_THREAD_SERIALIZED;
    return MPI_SUCCESS;
}

// What muster only uses while it sets up, or between measurements, may block.

int MPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
    *request = MPI_REQUEST_NULL;
    return PMPI_Barrier(comm);
}

int MPI_Ibcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request) {
    *request = MPI_REQUEST_NULL;
    return PMPI_Bcast(data, count, type, root, comm);
}

/// SMPI's own takes minutes for 128 ranks, since each waits for all others in a list. Only even, gap-free ones come here.
int MPI_Allgather(void const* in, int, MPI_Datatype, void* out, int count, MPI_Datatype type, MPI_Comm comm) {
    int bytes = 0;
    PMPI_Type_size(type, &bytes);
    muster::gather_here(in, static_cast<std::size_t>(bytes) * static_cast<std::size_t>(count), out, comm);
    return MPI_SUCCESS;
}

int MPI_Iallgather(void const* in, int in_count, MPI_Datatype in_type, void* out, int count, MPI_Datatype type, MPI_Comm comm,
                   MPI_Request* request) {
    *request = MPI_REQUEST_NULL;
    return MPI_Allgather(in, in_count, in_type, out, count, type, comm);
}

int sched_yield() noexcept {
    if (muster::in_a_rank()) muster::wait_for_messages();
    return 0;
}

int nanosleep(timespec const*, timespec*) {
    return sched_yield();
}
}
