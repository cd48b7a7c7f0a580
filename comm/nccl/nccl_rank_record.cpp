#include "comm/nccl/nccl_rank_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "base/text.hpp"
#include "comm/backend/comm_error.hpp"

namespace muster::nccl {

static_assert(std::is_trivially_copyable_v<rank_record>);

rank_record describe_rank(identity const& who, comm_options const& options, int nccl_version, std::string_view gpu) noexcept {
    rank_record record;
    record.place = describe_world(who, options);
    record.process = this_process();
    record.nccl_version = nccl_version;
    std::memcpy(record.gpu, gpu.data(), std::min(gpu.size(), sizeof record.gpu - 1));
    return record;
}

void set_fault(rank_record& record, errc code, std::string_view why) noexcept {
    record.fault_code = static_cast<int>(code);
    std::memset(record.fault, 0, sizeof record.fault);
    std::memcpy(record.fault, why.data(), std::min(why.size(), sizeof record.fault - 1));
}

rank_record read_record(std::span<std::byte const> bytes, int rank, identity const& who) {
    if (bytes.size() != sizeof(rank_record))
        throw comm_error(
            errc::peer_failed,
            fmt::format("rank {} of {} on {}: rank {} sent {} bytes about itself instead of {}; start all ranks with "
                        "the same build of muster",
                        who.rank, who.world_size, who.host, rank, bytes.size(), sizeof(rank_record)),
            {rank});
    rank_record record;
    std::memcpy(&record, bytes.data(), sizeof record);
    record.place.host[sizeof record.place.host - 1] = '\0';
    record.gpu[sizeof record.gpu - 1] = '\0';
    record.fault[sizeof record.fault - 1] = '\0';
    return record;
}

namespace {

void check_faults(std::span<rank_record const> records, identity const& who) {
    std::vector<std::string> whys, faults;
    std::vector<std::vector<std::string>> whose;  // of each reason
    std::vector<int> culprits;
    auto code = errc::peer_failed;
    for (auto const& record : records) {
        if (record.fault[0] == '\0') continue;
        if (whys.empty()) code = static_cast<errc>(record.fault_code);
        auto const known = static_cast<std::size_t>(std::find(whys.begin(), whys.end(), record.fault) - whys.begin());
        if (known == whys.size()) {
            whys.emplace_back(record.fault);
            whose.emplace_back();
        }
        whose[known].push_back(fmt::format("rank {} on {}", record.place.rank, record.place.host));
        culprits.push_back(record.place.rank);
    }
    if (whys.empty()) return;
    for (std::size_t i = 0; i < whys.size(); ++i) faults.push_back(fmt::format("{}: {}", join(whose[i], ", "), whys[i]));
    throw comm_error(code,
                     fmt::format("rank {} of {} on {}: a communicator on NCCL cannot be made: {}", who.rank, who.world_size,
                                 who.host, join(faults, "; ")),
                     culprits);
}

}  // namespace

void check_records(std::span<rank_record const> records, identity const& who) {
    std::vector<world_record> places;
    for (auto const& record : records) places.push_back(record.place);
    check_world(places, who);
    check_faults(records, who);
    for (auto const& record : records)
        if (record.nccl_version != records.front().nccl_version)
            throw comm_error(
                errc::peer_failed,
                fmt::format("rank {} of {} on {}: rank {} on {} has NCCL {}, rank {} on {} has {}; give all ranks the "
                            "same libnccl.so.2 (LD_LIBRARY_PATH)",
                            who.rank, who.world_size, who.host, record.place.rank, record.place.host,
                            version_text(record.nccl_version), records.front().place.rank, records.front().place.host,
                            version_text(records.front().nccl_version)));
}

std::string shared_gpus(std::span<rank_record const> records) {
    for (std::size_t i = 0; i < records.size(); ++i)
        for (std::size_t k = i + 1; k < records.size(); ++k)
            if (std::strcmp(records[i].gpu, records[k].gpu) == 0 &&
                std::strcmp(records[i].place.host, records[k].place.host) == 0)
                return fmt::format(
                    "ranks {} and {} on {} share {}, which NCCL refuses: start one rank per GPU. For tests only, it takes them "
                    "for "
                    "ranks of different hosts if each has another NCCL_HOSTID (with NCCL_NET=Socket), and from NCCL 2.30 on "
                    "there is "
                    "NCCL_MULTI_RANK_GPU_ENABLE=1",
                    records[i].place.rank, records[k].place.rank, records[i].place.host, records[i].gpu);
    return {};
}

}  // namespace muster::nccl
