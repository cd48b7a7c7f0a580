#include "io/copy/copy_tree.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>

#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "io/copy/chunk_io.hpp"
#include "io/copy/pack_exchange.hpp"
#include "io/dataset/file_ranks.hpp"
#include "io/tree/aligned_bytes.hpp"
#include "io/tree/workers.hpp"

namespace muster {

namespace {

/// Small enough that what was read is still in the processor's cache when it is written.
constexpr std::size_t block_bytes = std::size_t{256} << 10;

void unite(communicator& nodes, std::vector<std::uint8_t>& needed) {
    constexpr std::size_t most = std::size_t{256} << 20;
    for (std::size_t at = 0; at < needed.size(); at += most)
        nodes
            .allreduce("needed chunks", view_of(std::span(needed).subspan(at, std::min(most, needed.size() - at))),
                       reduction::max)
            .wait();
}

/// Counts the processors that this thread may run on.
int processors() {
    cpu_set_t mine;
    CPU_ZERO(&mine);
    return ::sched_getaffinity(0, sizeof mine, &mine) == 0 ? CPU_COUNT(&mine) : 1;
}

class tree_copy {
  public:
    tree_copy(copy_request const& request, communicator& nodes)
        : request_(request),
          nodes_(nodes),
          threads_(request.threads > 0 ? request.threads : copy_threads()),
          together_(nodes.size() > 1 && !request.sharded && !request.own_sources),
          what_("copy to " + request.target) {}

    copy_report run() {
        make_list();
        on_all_nodes([&] { look(); });
        refuse_shared_target();
        if (request_.dry_run) return report_;
        std::vector<std::uint8_t> needed = have_.needed;
        std::uint8_t missing = have_.everything() ? 0 : 1;
        if (together_) {
            unite(nodes_, needed);
            nodes_.allreduce("anything missing", view_of(std::span(&missing, 1)), reduction::max).wait();
        }
        if (missing == 0) {
            target_->tidy();
            return report_;
        }
        auto const packs = make_packs(list_, plan_, needed);
        on_all_nodes([&] { target_->begin(list_, plan_, have_); });
        if (together_) {
            exchange_packs(nodes_, {list_, plan_, packs, *target_, have_, threads_, written_, read_, [&] { tell(); }});
        } else {
            on_all_nodes([&] { copy_alone(packs); });
        }
        tell();
        on_all_nodes([&] { target_->finish(list_, plan_, have_, request_.sync); });
        report_.bytes_written = written_;
        report_.bytes_read = read_;
        for (std::size_t i = 0; i < list_.files.size(); ++i)
            if (have_.left_out[i] != 0) report_.left_out.push_back(source_path(list_, list_.files[i]));
        return report_;
    }

  private:
    /// Runs `step` on every node; where it fails on one, all throw.
    template <typename Step>
    void on_all_nodes(Step&& step) {
        run_step(nodes_, what_, step, member_is::node);
    }

    /// On rank 0 for all, so that the others need not ask the file system for it; the target is this node's.
    void make_list() {
        bool const mine = nodes_.rank() == 0 || request_.own_sources;
        auto const list = [&] {
            if (!mine) return;
            refuse_target_in_sources(request_.sources, request_.target);
            list_ = list_files(request_.sources, std::max(threads_, 8));
        };
        run_step(nodes_, "list the sources", list, member_is::node);
        if (nodes_.size() > 1 && !request_.own_sources) {
            std::string bytes = mine ? bytes_of_list(list_) : std::string();
            broadcast_bytes(nodes_, "the list", bytes);
            if (!mine) list_ = list_of_bytes(bytes);
        }
        if (request_.sharded) {
            on_all_nodes([&] { refuse_too_few_files(); });
            list_ = part_of_list(list_, nodes_.rank(), nodes_.size());
        }
        plan_ = chunk_plan(list_, request_.chunk_bytes > 0 ? request_.chunk_bytes : default_chunk_bytes);
    }

    /// A file stays whole, since a program opens it so: where there are fewer than nodes some would get nothing.
    void refuse_too_few_files() const {
        auto const files = std::ranges::count_if(list_.files, [](listed_file const& file) { return file.is_file(); });
        if (files < nodes_.size())
            throw_error(errc::usage,
                        "{} cannot be divided among {} nodes, since a file stays whole; leave out --shard, so that each node "
                        "gets everything, or make more files of {}",
                        counted(files, "file"), nodes_.size(), files == 1 ? "it" : "them");
    }

    void look() {
        target_.emplace(request_.target, request_.state_name, request_.dry_run);
        have_ = target_->find(list_, plan_, request_.check, threads_, request_.own_sources);  // results replace earlier ones
        target_->refuse_lack_of_space(list_, plan_, have_);
        for (std::size_t i = 0; i < list_.files.size(); ++i) {
            listed_file const& file = list_.files[i];
            report_.files += file.is_file() ? 1 : 0;
            report_.folders += file.is_folder() ? 1 : 0;
            report_.links += file.what == listed_file::kind::link ? 1 : 0;
            report_.bytes += file.size;
            if (!file.is_file()) continue;
            bool const there = have_.in_place[i] != copy_presence::place::missing;
            report_.files_there += there ? 1 : 0;
            if (there) report_.bytes_there += file.size;
            for (std::size_t k = 0; k < plan_.count_of(i) && !there; ++k)
                if (have_.needed[plan_.first_of(i) + k] == 0)
                    report_.bytes_resumed += std::min(plan_.chunk_bytes(), file.size - k * plan_.chunk_bytes());
        }
        total_ = report_.bytes - report_.bytes_there - report_.bytes_resumed;
    }

    /// Where nodes see one folder and its file system has no locks for all of them, they would write one file together.
    void refuse_shared_target() {
        if (nodes_.size() == 1 || request_.own_sources || request_.dry_run) return;
        std::string nonce = fmt::format("here.{}.{}", ::getpid(), std::chrono::steady_clock::now().time_since_epoch().count());
        broadcast_bytes(nodes_, "the name of the copy", nonce);
        std::string const mine = fmt::format("{}.{}", nonce, nodes_.rank());
        on_all_nodes([&] { target_->make_mark(mine); });
        on_all_nodes([&] {
            if (target_->count_marks(nonce) > 1)
                throw_error(errc::usage,
                            "{} is one folder that several nodes share; give a folder that each node has for itself, or copy "
                            "with one rank",
                            request_.target);
        });
        nodes_.barrier().wait();
        target_->drop_mark(mine);
    }

    void copy_alone(std::vector<pack> const& packs) {
        struct hand {
            chunk_reader source;
            chunk_writer target;
            aligned_bytes block{block_bytes};
        };
        thread_gate gate(processors(), threads_);
        std::vector<std::unique_ptr<hand>> hands(static_cast<std::size_t>(threads_));
        std::vector<std::atomic<std::uint8_t>> left_out(list_.files.size());
        in_parallel(
            packs.size(), threads_,
            [&](int thread, std::size_t number) {
                auto& mine = hands[static_cast<std::size_t>(thread)];
                if (!mine) mine.reset(new hand{chunk_reader(list_), chunk_writer(*target_, list_, plan_)});
                std::vector<journal_record> records;
                // Threads that make files wait for their folder's lock, so that more of them do more.
                std::optional<thread_gate::stay> inside;
                if (packs[number].pieces.size() == 1) inside.emplace(gate);
                for (piece const& one : packs[number].pieces) {
                    if (left_out[one.file] != 0) continue;
                    try {
                        copy_piece(one, mine->source, mine->target, mine->block, inside ? &inside->reading : nullptr);
                        records.push_back({one.file, one.chunk - plan_.first_of(one.file), have_.checksums[one.chunk]});
                    } catch (source_changed const&) {
                        if (!request_.leave_changing) throw;
                        left_out[one.file] = 1;
                    }
                }
                target_->record(records);
            },
            [&] { tell(); });
        for (std::size_t i = 0; i < left_out.size(); ++i) have_.left_out[i] = left_out[i];
    }

    void copy_piece(piece const& one, chunk_reader& source, chunk_writer& target, aligned_bytes const& block,
                    wait_share* reading) {
        {
            wait_share::watch const watch(reading);
            source.begin(one);
        }
        target.begin(one);
        for (std::uint64_t done = 0; done < one.length;) {
            std::size_t const got = [&] {
                wait_share::watch const watch(reading);
                return source.read(block.first(block_bytes));
            }();
            read_ += got;
            target.write(block.first(got));
            done += got;
        }
        source.end();
        have_.checksums[one.chunk] = target.end();
        written_ += one.length;
    }

    void tell() const {
        if (request_.progress) request_.progress(written_, total_);
    }

    copy_request const& request_;
    communicator& nodes_;
    int threads_;
    bool together_;  // the nodes send one another what they read
    std::string what_;
    file_list list_;
    chunk_plan plan_;
    std::optional<copy_target> target_;
    copy_presence have_;
    copy_report report_;
    std::uint64_t total_ = 0;
    std::atomic<std::uint64_t> written_{0}, read_{0};
};

}  // namespace

int copy_threads() {
    return std::clamp(2 * processors(), 8, 32);
}

copy_report copy_tree(copy_request const& request, communicator& nodes) {
    return tree_copy(request, nodes).run();
}

}  // namespace muster
