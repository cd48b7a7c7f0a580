// NCCL's half of the fake: see fake_gpu.hpp. Ranks of a communicator are threads of this process or processes of this machine:
// what they tell each other goes over the blackboard, and each computes its own results from what all have posted.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <type_traits>
#include <utility>

#include "blackboard.hpp"
#include "comm/nccl/library/nccl_library.hpp"
#include "fake_arithmetic.hpp"
#include "fake_gpu.hpp"

using namespace muster::fake;
using muster::nccl::config;
using muster::nccl::op;
using muster::nccl::type;
using muster::nccl::unique_id;
using guard = std::scoped_lock<std::mutex>;

namespace {

constexpr int ok = 0;
constexpr int bad_argument = 4;
constexpr int busy = 7;

using posts = std::vector<std::shared_ptr<bytes const>>;  ///< of all ranks; null: not seen yet

struct fake_comm {
    std::string name;  ///< begins the keys of all that its ranks post
    int rank = 0;
    int size = 1;
    bool complete = false;  ///< all ranks have come
    posts hellos{};
    bool aborted = false;
    bool gone = false;  ///< aborted or destroyed: no call may name it again
    bool finalized = false;
    int under_way = 0;       ///< tasks on streams
    int polls_left = 0;      ///< so often it is still in progress
    std::uint64_t next = 0;  ///< number of its next collective
    std::map<int, std::uint64_t> next_send{}, next_receive{};
    std::vector<std::string> read_by_all_soon{};  ///< own posts of the last task, for others that are not through with it
    std::vector<std::pair<double, type>> made_ops{};
    // A split under way: it ends when all ranks are in it.
    void** split_into = nullptr;
    posts splits{};
    int next_split = 0;
};

/// One rank's part in a collective or a message.
struct part {
    char what = ' ';  ///< a(llreduce) r(educe) b(roadcast) s(catter) g(ather) > <
    void const* in = nullptr;
    void* out = nullptr;
    std::size_t count = 0;
    type element = type::u8;
    double factor = 1;  ///< of a scaled sum
    op how = op::sum;
    int root = 0;  ///< of a message: the other rank
    std::uint64_t number = 0;
    posts seen{};
    bool done = false;
    bool differs = false;  ///< from what another rank posted: it never ends, as the real one may

    bool is_message() const noexcept { return what == '>' || what == '<'; }
};

/// What is posted of a part, before its bytes.
struct header {
    char what = ' ';
    std::size_t count = 0;
    type element = type::u8;
    double factor = 1;
    op how = op::sum;
    int root = 0;
};

std::set<fake_comm*>& graveyard() {
    static auto& all = *new std::set<fake_comm*>;
    return all;
}

template <typename T>
T read_front(bytes const& from) {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    std::memcpy(&value, from.data(), sizeof value);
    return value;
}

template <typename T>
bytes as_bytes(T const& value) {
    auto const* const begin = reinterpret_cast<std::byte const*>(&value);
    return {begin, begin + sizeof value};
}

std::string key_of(fake_comm const& comm, char what, std::uint64_t number, int rank) {
    return comm.name + "." + what + std::to_string(number) + "." + std::to_string(rank);
}

/// Looks for what all ranks post under a key that differs by the rank. Whether all of it has been seen.
bool see_all(fake_comm const& comm, char what, std::uint64_t number, posts& seen) {
    seen.resize(static_cast<std::size_t>(comm.size));
    bool all = true;
    for (int rank = 0; rank < comm.size; ++rank) {
        auto& of = seen[static_cast<std::size_t>(rank)];
        if (!of) of = the_blackboard().look(key_of(comm, what, number, rank));
        all = all && of != nullptr;
    }
    return all;
}

std::string message_key(fake_comm const& comm, int from, int to, std::uint64_t number) {
    return key_of(comm, 'm', number, from) + "-" + std::to_string(to);
}

/// The stream has come to it: the others may know of it. Numbers are given now, since tasks come in the order of the stream.
void arrive(fake_comm& comm, part& mine) {
    if (mine.what == '<') {
        mine.number = comm.next_receive[mine.root]++;
        return;
    }
    mine.number = mine.what == '>' ? comm.next_send[mine.root]++ : comm.next++;
    bytes post = as_bytes(header{mine.what, mine.count, mine.element, mine.factor, mine.how, mine.root});
    bool const silent = mine.what == 'b' && mine.root != comm.rank;
    std::size_t const elements = mine.what == 's' ? mine.count * static_cast<std::size_t>(comm.size) : mine.count;
    auto const* const in = static_cast<std::byte const*>(mine.in);
    if (!silent) post.insert(post.end(), in, in + elements * size_of(mine.element));
    the_blackboard().post(
        mine.what == '>' ? message_key(comm, comm.rank, mine.root, mine.number) : key_of(comm, 'c', mine.number, comm.rank),
        std::move(post));
}

/// A message is taken away by its receiver, by which its sender knows that it has come.
bool advance_message(fake_comm& comm, part& mine) {
    bool const sends = mine.what == '>';
    auto const key =
        sends ? message_key(comm, comm.rank, mine.root, mine.number) : message_key(comm, mine.root, comm.rank, mine.number);
    auto const message = the_blackboard().look(key);
    if (sends) return message == nullptr;
    if (!message) return false;
    auto const from = read_front<header>(*message);
    if (from.count != mine.count) the_machine().note("a message of another length than is received");
    std::memcpy(mine.out, message->data() + sizeof from, std::min(from.count, mine.count) * size_of(mine.element));
    the_blackboard().remove(key);
    return true;
}

/// All ranks' posts are here: this rank's result.
void perform(fake_comm const& comm, part& mine) {
    auto const length = mine.count * size_of(mine.element);
    auto const data = [&](int rank) { return mine.seen[static_cast<std::size_t>(rank)]->data() + sizeof(header); };
    if (mine.what == 'b') {
        std::memcpy(mine.out, data(mine.root), length);
    } else if (mine.what == 'g') {
        for (int rank = 0; rank < comm.size; ++rank)
            std::memcpy(static_cast<std::byte*>(mine.out) + static_cast<std::size_t>(rank) * length, data(rank), length);
    } else if (mine.what != 'r' || mine.root == comm.rank) {
        std::vector<reduction_input> inputs;
        for (int rank = 0; rank < comm.size; ++rank)
            inputs.push_back({data(rank), read_front<header>(*mine.seen[static_cast<std::size_t>(rank)]).factor});
        std::size_t const first = mine.what == 's' ? static_cast<std::size_t>(comm.rank) * mine.count : 0;
        reduce(inputs, first, mine.count, mine.element, mine.how, mine.out);
    }
}

/// Whether it is through.
bool advance(fake_comm& comm, part& mine) {
    if (mine.done || mine.differs) return mine.done;
    if (mine.is_message()) return mine.done = advance_message(comm, mine);
    if (!see_all(comm, 'c', mine.number, mine.seen)) return false;
    for (auto const& each : mine.seen) {
        auto const other = read_front<header>(*each);
        if (other.what == mine.what && other.count == mine.count && other.element == mine.element && other.how == mine.how &&
            other.root == mine.root)
            continue;
        std::fprintf(stderr, "the fake NCCL: ranks differ about collective %llu of %s\n",
                     static_cast<unsigned long long>(mine.number), comm.name.c_str());
        mine.differs = true;
        return false;
    }
    perform(comm, mine);
    mine.seen.clear();
    return mine.done = true;
}

/// All parts of a task are through. Whoever posted to its collectives is through with all that came before: what this rank
/// posted before is read by nobody any more.
void tidy_up(fake_comm& comm, std::vector<std::shared_ptr<part>> const& through) {
    std::vector<std::string> own;
    for (auto const& each : through)
        if (!each->is_message()) own.push_back(key_of(comm, 'c', each->number, comm.rank));
    if (own.empty()) return;
    for (auto const& key : comm.read_by_all_soon) the_blackboard().remove(key);
    comm.read_by_all_soon = std::move(own);
}

/// What calls put between ncclGroupStart and ncclGroupEnd, of this thread.
struct open_group {
    int depth = 0;
    fake_comm* comm = nullptr;
    void* on = nullptr;
    std::vector<std::shared_ptr<part>> parts;
};
thread_local open_group current;

/// Puts what the group holds on its stream, as one task: every part arrives when the stream comes to it.
int close_group() {
    auto const taken = std::move(current);
    current = {};
    if (taken.parts.empty()) return ok;
    guard const held(the_machine().lock);
    fake_comm* const comm = taken.comm;
    auto& on = taken.on == nullptr ? the_machine().default_stream : *static_cast<stream*>(taken.on);
    ++comm->under_way;
    on.tasks.push_back([comm, own = taken.parts, arrived = std::make_shared<bool>(false)] {
        if (comm->aborted) return true;
        if (!*arrived)
            for (auto const& each : own) arrive(*comm, *each);
        *arrived = true;
        bool done = true;
        for (auto const& each : own) done = advance(*comm, *each) && done;
        if (!done) return false;
        tidy_up(*comm, own);
        --comm->under_way;
        return true;
    });
    comm->polls_left = the_machine().knob("start_polls");
    the_machine().pump();
    return comm->polls_left > 0 ? busy : ok;
}

int add(fake_comm* comm, void* on, part what) {
    {
        guard const held(the_machine().lock);
        if (comm == nullptr || comm->gone) {
            the_machine().note("a call with a communicator that is gone");
            return bad_argument;
        }
        if (int const code = the_machine().knob("call_fails"); code != 0) return code;
        if (comm->polls_left > 0) the_machine().note("a call while the communicator was in progress");
        if (static_cast<int>(what.how) >= 5) {
            what.factor = comm->made_ops.at(static_cast<std::size_t>(what.how) - 5).first;
            what.how = op::sum;
        }
    }
    current.comm = comm;
    current.on = on;
    current.parts.push_back(std::make_shared<part>(std::move(what)));
    return current.depth > 0 ? ok : close_group();
}

/// A rank's part in a split.
struct split_part {
    int color = 0;
    int key = 0;
};

/// All ranks of a communicator that is being split are in, as far as it is seen: makes this rank's part.
void finish_split(fake_comm& whole) {
    auto const number = static_cast<std::uint64_t>(whole.next_split);
    if (!see_all(whole, 's', number, whole.splits)) return;
    auto const part_of = [&](int rank) { return read_front<split_part>(*whole.splits[static_cast<std::size_t>(rank)]); };
    auto const own = part_of(whole.rank);
    if (own.color >= 0) {
        std::multimap<int, int> keyed;  // key -> rank in the whole
        for (int rank = 0; rank < whole.size; ++rank)
            if (part_of(rank).color == own.color) keyed.emplace(part_of(rank).key, rank);
        auto* const child = new fake_comm{whole.name + "_" + std::to_string(number) + "c" + std::to_string(own.color)};
        child->size = static_cast<int>(keyed.size());
        for (int place = 0; auto const& [key, rank] : keyed) {
            if (rank == whole.rank) child->rank = place;
            ++place;
        }
        child->complete = true;
        *whole.split_into = child;
    }
    whole.split_into = nullptr;
    whole.splits.clear();
    ++whole.next_split;
}

}  // namespace

extern "C" {

int ncclGetVersion(int* version) {
    guard const held(the_machine().lock);
    *version = the_machine().knob("nccl_version", 22809);
    return ok;
}
char const* ncclGetErrorString(int code) {
    switch (code) {
        case 2: return "unhandled system error";
        case 5: return "invalid usage";
        case 6: return "remote process exited or there was a network error";
        default: return "an error of the fake NCCL";
    }
}
char const* ncclGetLastError(fake_comm*) {
    return "told by the fake NCCL";
}
int ncclGetUniqueId(unique_id* id) {
    static unsigned last = 0;
    guard const held(the_machine().lock);
    std::memset(id->bytes, 0, sizeof id->bytes);
    std::snprintf(id->bytes, sizeof id->bytes, "n%d-%lld-%u", static_cast<int>(::getpid()),
                  static_cast<long long>(std::chrono::steady_clock::now().time_since_epoch().count()), ++last);
    return ok;
}
int ncclCommInitRankConfig(fake_comm** comm, int size, unique_id id, int rank, config* how) {
    guard const held(the_machine().lock);
    if (how == nullptr || how->magic != 0xcafebeef || how->blocking != 0) return bad_argument;
    auto* const made = new fake_comm{std::string(id.bytes), rank, size};
    the_blackboard().post(key_of(*made, 'h', 0, rank), {});
    *comm = made;
    the_machine().note("ncclCommInitRankConfig");
    return busy;
}
int ncclCommSplit(fake_comm* comm, int color, int key, void** made, config*) {
    guard const held(the_machine().lock);
    if (comm->under_way > 0) the_machine().note("ncclCommSplit while a collective was in progress");
    the_blackboard().post(key_of(*comm, 's', static_cast<std::uint64_t>(comm->next_split), comm->rank),
                          as_bytes(split_part{color, key}));
    comm->split_into = made;
    return busy;
}
int ncclCommGetAsyncError(fake_comm* comm, int* code) {
    guard const held(the_machine().lock);
    if (comm->gone) {
        the_machine().note("ncclCommGetAsyncError of a communicator that is gone");
        return bad_argument;
    }
    if (!comm->complete) comm->complete = see_all(*comm, 'h', 0, comm->hellos);
    if (comm->split_into != nullptr && the_machine().knob("split_hangs") == 0) finish_split(*comm);
    if (int const failure = the_machine().knob("async_error"); failure != 0)
        *code = failure;
    else if (int const init = the_machine().knob("init_fails"); init != 0 && comm->complete)
        *code = init;
    else if (!comm->complete || the_machine().knob("init_hangs") != 0 || comm->split_into != nullptr || comm->polls_left > 0 ||
             (comm->finalized && the_machine().knob("finalize_hangs") != 0))
        *code = busy;
    else
        *code = ok;
    if (comm->polls_left > 0) --comm->polls_left;
    return ok;
}
int ncclCommFinalize(fake_comm* comm) {
    guard const held(the_machine().lock);
    comm->finalized = true;
    return busy;
}
int ncclCommDestroy(fake_comm* comm) {
    guard const held(the_machine().lock);
    the_machine().note(comm->finalized ? "ncclCommDestroy" : "ncclCommDestroy of a communicator that was not finalised");
    comm->gone = true;
    graveyard().insert(comm);
    return ok;
}
int ncclCommAbort(fake_comm* comm) {
    while (true) {
        {
            guard const held(the_machine().lock);
            if (the_machine().knob("abort_hangs") == 0) {
                the_machine().note("ncclCommAbort");
                comm->aborted = true;  // its tasks end now, without an error and without a result
                comm->gone = true;
                graveyard().insert(comm);
                the_machine().pump();
                return ok;
            }
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}
int ncclRedOpCreatePreMulSum(op* made, void* scalar, type element, int, fake_comm* comm) {
    guard const held(the_machine().lock);
    comm->made_ops.emplace_back(read_element(scalar, element), element);
    *made = static_cast<op>(4 + comm->made_ops.size());
    return ok;
}
int ncclRedOpDestroy(op made, fake_comm* comm) {
    guard const held(the_machine().lock);
    comm->made_ops.at(static_cast<std::size_t>(made) - 5).first = -1e9;  // nobody may use it again
    return ok;
}
int ncclAllReduce(void const* in, void* out, std::size_t count, type element, op how, fake_comm* comm, void* on) {
    return add(comm, on, {'a', in, out, count, element, 1, how, 0});
}
int ncclReduce(void const* in, void* out, std::size_t count, type element, op how, int root, fake_comm* comm, void* on) {
    return add(comm, on, {'r', in, out, count, element, 1, how, root});
}
int ncclBroadcast(void const* in, void* out, std::size_t count, type element, int root, fake_comm* comm, void* on) {
    return add(comm, on, {'b', in, out, count, element, 1, op::sum, root});
}
int ncclReduceScatter(void const* in, void* out, std::size_t count, type element, op how, fake_comm* comm, void* on) {
    return add(comm, on, {'s', in, out, count, element, 1, how, 0});
}
int ncclAllGather(void const* in, void* out, std::size_t count, type element, fake_comm* comm, void* on) {
    return add(comm, on, {'g', in, out, count, element, 1, op::sum, 0});
}
int ncclSend(void const* in, std::size_t count, type element, int peer, fake_comm* comm, void* on) {
    return add(comm, on, {'>', in, nullptr, count, element, 1, op::sum, peer});
}
int ncclRecv(void* out, std::size_t count, type element, int peer, fake_comm* comm, void* on) {
    return add(comm, on, {'<', nullptr, out, count, element, 1, op::sum, peer});
}
int ncclGroupStart() {
    ++current.depth;
    return ok;
}
int ncclGroupEnd() {
    return --current.depth > 0 ? ok : close_group();
}
}
