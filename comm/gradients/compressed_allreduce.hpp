// Half the bytes on the wire: allreduces of f32 tensors as f16 or bf16.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/tensor/compression_kind.hpp"
#include "comm/tensor/simd.hpp"

namespace muster {

/// Rounds `values` (plus `residual`, where there is one) to the wire's type, into `wire`; with a residual this becomes what
/// rounding lost: p = values * factor + residual; wire = round(p); residual = p - wire, or 0 where the wire is not finite.
/// `wire` holds values.size() two-byte elements. Pure but for its outputs; does not allocate.
void compress(compression how, std::span<float const> values, float factor, std::span<float> residual, void* wire,
              simd level) noexcept;

/// The reverse: values = wire * factor. Exact but for that product.
void decompress(compression how, void const* wire, std::span<float> values, float factor, simd level) noexcept;

/// Allreduces whose elements travel in half the bytes. Every rank rounds what it sends (1), each reduces its share of all ranks'
/// elements in f32 in the order of the ranks, rounds the result (2) and sends it to all. So there are two roundings whatever the
/// number of ranks, each to half a unit in the last place, and all ranks get the same bits. On one rank nothing travels and
/// nothing is rounded.
///
/// With error feedback (Seide et al., Interspeech 2014; Karimireddy et al., arXiv 1901.09847; on both sides as in Tang et al.,
/// arXiv 1905.05957) what a rounding loses is added to the next tensor of the same name, before it is rounded:
///     p[t] = g[t] + e[t],  w[t] = round(p[t]),  e[t+1] = p[t] - w[t]
/// at the sender with g the tensor (times scale.before), and at each share's owner with g the reduced and scaled share. The sum
/// of all w then differs from that of all g by one rounding, however many steps there were, while without it the errors may add
/// up. It costs 4 (1 + 1/ranks) bytes an element and holds for sums and averages.
///
/// Memory: three segments of 4 MiB, three times. Not thread safe, and not at once with another call on its communicator.
class compressed_allreduce {
  public:
    /// `ranks` must outlive it. Not collective.
    compressed_allreduce(communicator& ranks, compression wire, bool error_feedback = false);
    ~compressed_allreduce();
    compressed_allreduce(compressed_allreduce const&) = delete;
    compressed_allreduce& operator=(compressed_allreduce const&) = delete;

    /// As communicator::allreduce, but blocking: for at most the communicator's deadline at each step. Collective. f32 only, in
    /// host memory; throws comm_error (errc::usage) for anything else, for a reduction other than sum and average with error
    /// feedback, and for a name whose tensor had another size before (see forget()). With compression::none nothing differs from
    /// communicator::allreduce.
    void run(std::string_view name, tensor_view in, tensor_view out, reduction how, scaling const& scale = {});

    /// Drops the residual of a tensor, as where training starts anew. Not collective, but all ranks should.
    void forget(std::string_view name);

  private:
    struct residuals {
        std::vector<float> sent, reduced;
    };
    struct segment;
    using segments = std::array<segment, 3>;  ///< a step apart from each other

    void check(std::string_view name, tensor_view const& in, tensor_view const& out, reduction how, scaling const& scale) const;
    residuals* residuals_of(std::string_view name, std::size_t count);
    void run_segments(std::string_view name, tensor_view in, tensor_view out, reduction how, scaling const& scale);
    void send(segment& next);
    void reduce(segment& of);
    void reduce_stretch(segment const& of, std::size_t own, element_range const& part, void* result) const;
    void receive(segment& of);

    communicator* ranks_;
    compression wire_;
    bool error_feedback_;
    simd level_ = best_simd();
    std::map<std::string, residuals, std::less<>> residuals_;
    std::unique_ptr<segments> window_;  ///< null until the first run
};

}  // namespace muster
