// NCCL's half of the fake: see fake_gpu.hpp. Ranks of a communicator are threads of this process.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <optional>
#include <set>
#include <thread>

#include "comm/bfloat16.hpp"
#include "comm/half.hpp"
#include "comm/nccl/nccl_library.hpp"
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

struct group;

struct fake_comm {
    std::shared_ptr<group> of;
    int rank = 0;
    bool aborted = false;
    bool gone = false;  ///< aborted or destroyed: no call may name it again
    bool finalized = false;
    int under_way = 0;       ///< tasks on streams
    int polls_left = 0;      ///< so often it is still in progress
    std::uint64_t next = 0;  ///< number of its next collective
    std::map<int, std::uint64_t> next_send, next_receive;
    std::vector<std::pair<double, type>> made_ops;
    // A split under way: it ends when all ranks are in it.
    std::optional<std::pair<int, int>> split;  ///< color and key
    void** split_into = nullptr;
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
    int root = 0;
    bool done = false;
};

struct group {
    int size = 1;
    std::vector<fake_comm*> members;
    std::map<std::uint64_t, std::map<int, std::shared_ptr<part>>> collectives;
    std::map<std::pair<int, int>, std::map<std::uint64_t, std::map<char, std::shared_ptr<part>>>> messages;
};

std::map<std::uint64_t, std::shared_ptr<group>>& groups() {
    static auto& all = *new std::map<std::uint64_t, std::shared_ptr<group>>;
    return all;
}
std::set<fake_comm*>& graveyard() {
    static auto& all = *new std::set<fake_comm*>;
    return all;
}

std::size_t size_of(type element) {
    switch (element) {
        case type::f64:
        case type::i64: return 8;
        case type::f32:
        case type::i32: return 4;
        case type::f16:
        case type::bf16: return 2;
        default: return 1;
    }
}

template <typename T>
T raw(void const* from, std::size_t i) {
    T value;
    std::memcpy(&value, static_cast<std::byte const*>(from) + i * sizeof(T), sizeof(T));
    return value;
}

double get(void const* from, type element, std::size_t i) {
    switch (element) {
        case type::f64: return raw<double>(from, i);
        case type::f32: return static_cast<double>(raw<float>(from, i));
        case type::f16: return static_cast<double>(static_cast<float>(raw<muster::half>(from, i)));
        case type::bf16: return static_cast<double>(static_cast<float>(raw<muster::bfloat16>(from, i)));
        case type::i64: return static_cast<double>(raw<std::int64_t>(from, i));
        case type::i32: return static_cast<double>(raw<std::int32_t>(from, i));
        case type::i8: return static_cast<double>(raw<std::int8_t>(from, i));
        case type::u8: break;
    }
    return static_cast<double>(raw<std::uint8_t>(from, i));
}

template <typename T>
void put_raw(void* to, std::size_t i, T value) {
    std::memcpy(static_cast<std::byte*>(to) + i * sizeof(T), &value, sizeof(T));
}

void put(void* to, type element, std::size_t i, double value) {
    switch (element) {
        case type::f64: return put_raw(to, i, value);
        case type::f32: return put_raw(to, i, static_cast<float>(value));
        case type::f16: return put_raw(to, i, muster::half(static_cast<float>(value)));
        case type::bf16: return put_raw(to, i, muster::bfloat16(static_cast<float>(value)));
        case type::i64: return put_raw(to, i, static_cast<std::int64_t>(value));
        case type::i32: return put_raw(to, i, static_cast<std::int32_t>(value));
        case type::i8: return put_raw(to, i, static_cast<std::int8_t>(value));
        case type::u8: return put_raw(to, i, static_cast<std::uint8_t>(value));
    }
}

/// The element of all ranks' inputs, reduced.
double reduce(std::map<int, std::shared_ptr<part>> const& of, std::size_t i) {
    part const& first = *of.begin()->second;
    std::optional<double> result;
    for (auto const& [rank, each] : of) {
        double const value = get(each->in, each->element, i) * each->factor;
        if (!result)
            result = value;
        else if (first.how == op::product)
            *result *= value;
        else if (first.how == op::min)
            result = std::min(*result, value);
        else if (first.how == op::max)
            result = std::max(*result, value);
        else
            *result += value;
    }
    return first.how == op::average ? *result / static_cast<double>(of.size()) : *result;
}

/// All ranks are here: does it. Results come into memory of their own first, since outputs may be inputs.
void perform(std::map<int, std::shared_ptr<part>>& of) {
    part const first = *of.begin()->second;
    std::size_t const bytes = size_of(first.element);
    auto const ranks = of.size();
    std::vector<std::byte> result;
    if (first.what == 'b') {
        auto const& root = *of.at(first.root);
        result.assign(static_cast<std::byte const*>(root.in), static_cast<std::byte const*>(root.in) + root.count * bytes);
    } else if (first.what == 'g') {
        for (auto const& [rank, each] : of)
            result.insert(result.end(), static_cast<std::byte const*>(each->in),
                          static_cast<std::byte const*>(each->in) + each->count * bytes);
    } else {
        std::size_t const count = first.what == 's' ? first.count * ranks : first.count;
        result.resize(count * bytes);
        for (std::size_t i = 0; i < count; ++i) put(result.data(), first.element, i, reduce(of, i));
    }
    for (auto const& [rank, each] : of) {
        std::size_t const begin = first.what == 's' ? static_cast<std::size_t>(rank) * first.count * bytes : 0;
        std::size_t const length = first.what == 's' ? first.count * bytes : result.size();
        if (first.what != 'r' || rank == first.root) std::memcpy(each->out, result.data() + begin, length);
        each->done = true;
    }
}

/// What calls put between ncclGroupStart and ncclGroupEnd, of this thread.
struct open_group {
    int depth = 0;
    fake_comm* comm = nullptr;
    void* on = nullptr;
    std::vector<std::pair<std::function<void()>, std::shared_ptr<part>>> parts;
};
thread_local open_group current;

/// Puts what the group holds on its stream, as one task: every part arrives when the stream comes to it.
int close_group() {
    auto const taken = std::move(current);
    current = {};
    if (taken.parts.empty()) return ok;
    guard const held(the_machine().lock);
    fake_comm* const comm = taken.comm;
    auto const arrived = std::make_shared<bool>(false);
    auto& on = taken.on == nullptr ? the_machine().default_stream : *static_cast<stream*>(taken.on);
    on.tasks.push_back([=] {
        if (comm->aborted) return true;
        if (!*arrived)
            for (auto const& [arrive, unused] : taken.parts) arrive();
        *arrived = true;
        bool const done = std::all_of(taken.parts.begin(), taken.parts.end(), [](auto const& each) { return each.second->done; });
        if (done) --comm->under_way;
        return done;
    });
    ++comm->under_way;
    comm->polls_left = the_machine().knob("start_polls");
    the_machine().pump();
    return comm->polls_left > 0 ? busy : ok;
}

template <typename Arrive>
int add(fake_comm* comm, void* on, std::shared_ptr<part> what, Arrive&& arrive) {
    {
        guard const held(the_machine().lock);
        if (comm == nullptr || comm->gone) {
            the_machine().note("a call with a communicator that is gone");
            return bad_argument;
        }
        if (int const code = the_machine().knob("call_fails"); code != 0) return code;
        if (comm->polls_left > 0) the_machine().note("a call while the communicator was in progress");
    }
    current.comm = comm;
    current.on = on;
    current.parts.emplace_back(std::forward<Arrive>(arrive), std::move(what));
    return current.depth > 0 ? ok : close_group();
}

int collective(fake_comm* comm, void* on, part const& description) {
    auto const mine = std::make_shared<part>(description);
    if (comm != nullptr && static_cast<int>(mine->how) >= 5) {
        auto const& made = comm->made_ops.at(static_cast<std::size_t>(mine->how) - 5);
        mine->factor = made.first;
        mine->how = op::sum;
    }
    return add(comm, on, mine, [comm, mine] {
        auto& meeting = comm->of->collectives[comm->next++];
        meeting[comm->rank] = mine;
        if (static_cast<int>(meeting.size()) == comm->of->size) perform(meeting);
    });
}

int message(fake_comm* comm, void* on, int peer, part const& description) {
    auto const mine = std::make_shared<part>(description);
    return add(comm, on, mine, [comm, mine, peer] {
        bool const sends = mine->what == '>';
        auto const way = sends ? std::pair(comm->rank, peer) : std::pair(peer, comm->rank);
        auto const number = sends ? comm->next_send[peer]++ : comm->next_receive[peer]++;
        auto& meeting = comm->of->messages[way][number];
        meeting[mine->what] = mine;
        if (meeting.size() < 2) return;
        auto const &from = meeting['>'], &to = meeting['<'];
        if (from->count != to->count) the_machine().note("a message of another length than is received");
        std::memmove(to->out, from->in, std::min(from->count, to->count) * size_of(from->element));
        from->done = to->done = true;
    });
}

/// All ranks of a communicator that is being split are in: makes the parts.
void finish_split(group& whole) {
    std::map<int, std::multimap<int, fake_comm*>> by_color;  // color -> key -> member
    for (auto* const each : whole.members) {
        if (!each->split) return;
        by_color[each->split->first].emplace(each->split->second, each);
    }
    if (static_cast<int>(whole.members.size()) != whole.size) return;
    for (auto& [color, keyed] : by_color) {
        auto const made = color < 0 ? nullptr : std::make_shared<group>();
        int rank = 0;
        for (auto& [key, each] : keyed) {
            each->split.reset();
            if (!made) continue;
            made->size = static_cast<int>(keyed.size());
            auto* const child = new fake_comm{made, rank++};
            made->members.push_back(child);
            *each->split_into = child;
        }
    }
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
    static std::atomic<std::uint64_t> last{0};
    std::uint64_t const number = ++last;
    std::memset(id->bytes, 0, sizeof id->bytes);
    std::memcpy(id->bytes, &number, sizeof number);
    return ok;
}
int ncclCommInitRankConfig(fake_comm** comm, int size, unique_id id, int rank, config* how) {
    std::uint64_t number = 0;
    std::memcpy(&number, id.bytes, sizeof number);
    guard const held(the_machine().lock);
    if (how == nullptr || how->magic != 0xcafebeef || how->blocking != 0) return bad_argument;
    auto& of = groups()[number];
    if (!of) of = std::make_shared<group>();
    of->size = size;
    *comm = new fake_comm{of, rank};
    of->members.push_back(*comm);
    the_machine().note("ncclCommInitRankConfig");
    return busy;
}
int ncclCommSplit(fake_comm* comm, int color, int key, void** made, config*) {
    guard const held(the_machine().lock);
    if (comm->under_way > 0) the_machine().note("ncclCommSplit while a collective was in progress");
    comm->split = std::pair(color, key);
    comm->split_into = made;
    if (the_machine().knob("split_hangs") == 0) finish_split(*comm->of);
    return busy;
}
int ncclCommGetAsyncError(fake_comm* comm, int* code) {
    guard const held(the_machine().lock);
    if (comm->gone) {
        the_machine().note("ncclCommGetAsyncError of a communicator that is gone");
        return bad_argument;
    }
    bool const complete = static_cast<int>(comm->of->members.size()) == comm->of->size;
    if (int const failure = the_machine().knob("async_error"); failure != 0)
        *code = failure;
    else if (int const init = the_machine().knob("init_fails"); init != 0 && complete)
        *code = init;
    else if (!complete || the_machine().knob("init_hangs") != 0 || comm->split || comm->polls_left > 0 ||
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
    comm->made_ops.emplace_back(get(scalar, element, 0), element);
    *made = static_cast<op>(4 + comm->made_ops.size());
    return ok;
}
int ncclRedOpDestroy(op made, fake_comm* comm) {
    guard const held(the_machine().lock);
    comm->made_ops.at(static_cast<std::size_t>(made) - 5).first = -1e9;  // nobody may use it again
    return ok;
}
int ncclAllReduce(void const* in, void* out, std::size_t count, type element, op how, fake_comm* comm, void* on) {
    return collective(comm, on, {'a', in, out, count, element, 1, how, 0});
}
int ncclReduce(void const* in, void* out, std::size_t count, type element, op how, int root, fake_comm* comm, void* on) {
    return collective(comm, on, {'r', in, out, count, element, 1, how, root});
}
int ncclBroadcast(void const* in, void* out, std::size_t count, type element, int root, fake_comm* comm, void* on) {
    return collective(comm, on, {'b', in, out, count, element, 1, op::sum, root});
}
int ncclReduceScatter(void const* in, void* out, std::size_t count, type element, op how, fake_comm* comm, void* on) {
    return collective(comm, on, {'s', in, out, count, element, 1, how, 0});
}
int ncclAllGather(void const* in, void* out, std::size_t count, type element, fake_comm* comm, void* on) {
    return collective(comm, on, {'g', in, out, count, element, 1, op::sum, 0});
}
int ncclSend(void const* in, std::size_t count, type element, int peer, fake_comm* comm, void* on) {
    return message(comm, on, peer, {'>', in, nullptr, count, element});
}
int ncclRecv(void* out, std::size_t count, type element, int peer, fake_comm* comm, void* on) {
    return message(comm, on, peer, {'<', nullptr, out, count, element});
}
int ncclGroupStart() {
    ++current.depth;
    return ok;
}
int ncclGroupEnd() {
    return --current.depth > 0 ? ok : close_group();
}
}
