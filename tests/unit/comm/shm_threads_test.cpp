// Collectives over one segment by threads of this process, which ThreadSanitizer watches: the ordering of all that goes through
// the segment. Windows of a few elements make many rounds of small tensors, and chunks of larger ones.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>
#include <vector>

#include "base/error.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/backend/memory/process_token.hpp"
#include "comm/shm/memory/shared_buffers.hpp"
#include "comm/shm/shm_operation.hpp"
#include "comm/shm/shm_world.hpp"

namespace muster::shm {
namespace {

/// Where tensors lie, and how they are reached. ThreadSanitizer sees neither what the kernel copies nor that two addresses are
/// the same memory.
enum class reach { segment, kernel, shared, mixed };  // mixed: shared by the odd ranks

/// Memory of vectors: shared buffers for as long as this thread says so.
thread_local bool share_memory = false;
template <typename T>
struct tensor_memory {
    using value_type = T;
    static std::map<void*, comm_buffer>& buffers() {
        static std::map<void*, comm_buffer> all;
        return all;
    }
    static std::mutex& guard() {
        static std::mutex one;
        return one;
    }
    T* allocate(std::size_t count) {
        auto made = share_memory ? allocate_shared(count * sizeof(T)) : plain_buffer(count * sizeof(T));
        void* const data = made.data();
        std::scoped_lock const lock(guard());
        buffers().emplace(data, std::move(made));
        return static_cast<T*>(data);
    }
    void deallocate(T* data, std::size_t) {
        std::scoped_lock const lock(guard());
        buffers().erase(data);
    }
    bool operator==(tensor_memory const&) const = default;
};

struct threads_world {
    threads_world(int ranks, reach how, bool crowded) : how_(how) {
        sizes.ranks = static_cast<std::size_t>(ranks);
        sizes.payload_bytes = 512;
        sizes.crowd_most = 1024;
        sizes.window_bytes = 1024;
        sizes.gathered_bytes = 4096;
        sizes.pair_bytes = 256;
        auto const file = make_memory_file(sizes.total_bytes());
        auto const memory = std::make_shared<shared_memory>(file.get(), sizes.total_bytes());
        for (int rank = 0; rank < ranks; ++rank) {
            worlds.push_back(make_world(memory, sizes, rank));
            worlds.back().direct = how == reach::kernel || how == reach::mixed;
            worlds.back().mappable = how == reach::shared || how == reach::mixed;
            worlds.back().crowded = crowded;
            divide(worlds.back());
            worlds.back().own().construct();
        }
        struct stat about {};
        if (::fstat(file.get(), &about) != 0) throw_system("fstat", "of the memory file of the ranks");
        for (auto& each : worlds)
            for (std::size_t rank = 0; rank < sizes.ranks; ++rank) {
                each.processes[rank] = this_process();
                each.owners[rank] = {::getpid(), own_token(), about.st_dev};
            }
    }
    template <typename Body>
    void run(Body&& body) {
        std::vector<std::thread> threads;
        for (auto& each : worlds)
            threads.emplace_back([&] {
                share_memory = how_ == reach::shared || (how_ == reach::mixed && each.rank % 2 == 1);
                body(each);
            });
        for (auto& each : threads) each.join();
    }
    geometry sizes;
    std::vector<world> worlds;

  private:
    reach how_;
};

void finish(world& all, collective const& what) {
    shm_operation work;
    work.begin(what);
    while (!work.advance(all)) std::this_thread::yield();
}

using ints = std::vector<std::int32_t, tensor_memory<std::int32_t>>;

ints values(std::size_t count, int rank, int turn) {
    ints made(count);
    for (std::size_t i = 0; i < count; ++i) made[i] = static_cast<std::int32_t>(i) * 3 + rank * 1000 + turn;
    return made;
}

std::vector<std::size_t> const counts{0, 1, 7, 130, 500, 1000, 30011};

class shm_threads : public testing::TestWithParam<std::tuple<int, reach, bool>> {};

TEST_P(shm_threads, every_collective_gives_what_it_should) {
    auto const [ranks, how, crowded] = GetParam();
    auto const n = static_cast<std::size_t>(ranks);
    threads_world together(ranks, how, crowded);
    together.run([ranks = ranks, how = how, &n](world& all) {
        int turn = 0;
        for (int again = 0; again < 2; ++again)
            for (std::size_t const count : counts) {
                ++turn;
                bool const large = count > 10000;  // chunks; hundreds of rounds would take their time
                if (large && how == reach::segment) continue;
                ints in = values(count, all.rank, turn), out(count, -1);
                finish(all, {collective::kind::allreduce, view_of(std::span(in)), view_of(std::span(out)), reduction::sum});
                for (std::size_t i = 0; i < count; ++i)
                    ASSERT_EQ(out[i], (static_cast<std::int32_t>(i) * 3 + turn) * ranks + 500 * ranks * (ranks - 1)) << i;
                ints twice = in;
                finish(all, {collective::kind::allreduce, view_of(std::span(twice)), view_of(std::span(twice)), reduction::sum});
                EXPECT_EQ(twice, out) << "in place";

                element_range const share = share_of(count, ranks, all.rank);
                ints part(share.count, -1);
                finish(all, {collective::kind::reducescatter, view_of(std::span(in)), view_of(std::span(part)), reduction::sum});
                for (std::size_t i = 0; i < share.count; ++i) ASSERT_EQ(part[i], out[share.first + i]);

                ints within = in;
                auto const place = part_of(view_of(std::span(within)), share);
                finish(all, {collective::kind::reducescatter, view_of(std::span(within)), place, reduction::sum});
                for (std::size_t i = 0; i < count; ++i) {
                    bool const mine = i >= share.first && i < share.first + share.count;
                    ASSERT_EQ(within[i], mine ? out[i] : in[i]) << "in place";
                }

                int const root = turn % ranks;
                ints same = in;
                finish(all,
                       {collective::kind::broadcast, view_of(std::span(same)), view_of(std::span(same)), reduction::sum, root});
                EXPECT_EQ(same, values(count, root, turn));

                if (large) continue;
                ints gathered(count * n, -1);
                finish(all, {collective::kind::allgather, view_of(std::span(in)), view_of(std::span(gathered))});
                for (std::size_t i = 0; i < gathered.size(); ++i)
                    ASSERT_EQ(gathered[i], values(count, static_cast<int>(i / count), turn)[i % count]);

                // Rank r gives count + 10 r elements.
                collective uneven{collective::kind::allgather};
                std::size_t sum = 0;
                for (std::size_t r = 0; r < n; ++r) {
                    uneven.receive_counts.push_back(r == 1 ? 0 : count + 10 * r);
                    sum += uneven.receive_counts.back();
                }
                ints mine = values(uneven.receive_counts[static_cast<std::size_t>(all.rank)], all.rank, turn), joined(sum, -1);
                uneven.in = view_of(std::span(mine));
                uneven.out = view_of(std::span(joined));
                finish(all, uneven);
                std::size_t at = 0;
                for (std::size_t r = 0; r < n; ++r)
                    for (auto const expected : values(uneven.receive_counts[r], static_cast<int>(r), turn))
                        ASSERT_EQ(joined[at++], expected);

                // Rank r sends count / n + r + 2 s elements to rank s.
                collective all_to_all{collective::kind::alltoall};
                std::size_t sent = 0, received = 0;
                for (std::size_t r = 0; r < n; ++r) {
                    all_to_all.send_counts.push_back(count / n + static_cast<std::size_t>(all.rank) + 2 * r);
                    all_to_all.receive_counts.push_back(count / n + r + 2 * static_cast<std::size_t>(all.rank));
                    sent += all_to_all.send_counts.back();
                    received += all_to_all.receive_counts.back();
                }
                ints to_all = values(sent, all.rank, turn), from_all(received, -1);
                all_to_all.in = view_of(std::span(to_all));
                all_to_all.out = view_of(std::span(from_all));
                finish(all, all_to_all);
                at = 0;
                for (std::size_t r = 0; r < n; ++r) {
                    std::size_t first = 0;  // of what r sent to this rank
                    for (std::size_t s = 0; s < static_cast<std::size_t>(all.rank); ++s) first += count / n + r + 2 * s;
                    for (std::size_t i = 0; i < all_to_all.receive_counts[r]; ++i)
                        ASSERT_EQ(from_all[at++], static_cast<std::int32_t>(first + i) * 3 + static_cast<int>(r) * 1000 + turn);
                }

                // With the rank that differs in the last bit; the odd one out with itself.
                int const peer = (all.rank ^ 1) < ranks ? all.rank ^ 1 : all.rank;
                ints give = values(count + static_cast<std::size_t>(all.rank), all.rank, turn);
                ints get(count + static_cast<std::size_t>(peer), -1);
                finish(all,
                       {collective::kind::sendrecv, view_of(std::span(give)), view_of(std::span(get)), reduction::sum, peer});
                EXPECT_EQ(get, values(get.size(), peer, turn));
                finish(all, {});
            }
    });
}

TEST_P(shm_threads, a_rank_that_differs_fails_on_all) {
    auto const [ranks, how, crowded] = GetParam();
    for (int what = 0; what < 5; ++what) {
        threads_world together(ranks, how, crowded);
        together.run([ranks = ranks, what](world& all) {
            bool const odd = all.rank == ranks - 1;
            ints in(300 + (odd && what == 0 ? 1u : 0u)), out(in.size());
            std::vector<float> floats(300);
            collective mine{collective::kind::allreduce, view_of(std::span(in)), view_of(std::span(out)), reduction::sum};
            if (odd && what == 1) mine.how = reduction::max;
            if (odd && what == 2) mine.in = mine.out = view_of(std::span(floats));
            if (odd && what == 3) mine = {};
            if (what == 4) {
                mine.what = collective::kind::alltoall;
                mine.send_counts.assign(static_cast<std::size_t>(ranks), 1);
                mine.receive_counts = mine.send_counts;
                if (odd) mine.send_counts[0] = 2;
            }
            EXPECT_THROW(finish(all, mine), comm_error) << what;
        });
    }
}

INSTANTIATE_TEST_SUITE_P(ranks, shm_threads,
                         testing::Combine(testing::Values(2, 3, 4),
                                          testing::Values(reach::segment, reach::kernel, reach::shared, reach::mixed),
                                          testing::Bool()));

}  // namespace
}  // namespace muster::shm
