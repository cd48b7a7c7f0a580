// The work of one thread of the fusion kernels. nvcc compiles the same function for the GPU as the host's compiler for the tests;
// hence it uses no CUDA type, C++17, and nothing from other headers here that nvcc does not accept.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define MUSTER_BOTH __host__ __device__ __forceinline__
#define MUSTER_UNROLL _Pragma("unroll")
#else
#include "comm/tensor/half.hpp"
#define MUSTER_BOTH inline
#define MUSTER_UNROLL
#endif

namespace muster::cuda {

/// A run of elements that go from one place to another. The work is cut into pieces that begin where the narrower of the two
/// types is aligned to 16 bytes: `first_piece` is the number of pieces of all segments before this one.
struct fusion_segment {
    std::uint64_t from;   ///< address, aligned for its type
    std::uint64_t to;     ///< address, aligned for its type
    std::uint64_t count;  ///< elements, not 0
    std::uint64_t first_piece;
};
static_assert(sizeof(fusion_segment) == 32, "the device reads what the host writes");

/// All arguments of a kernel, by value. Block b works on pieces [b * pieces_per_block, (b + 1) * pieces_per_block).
struct fusion_work {
    fusion_segment const* segments;  ///< in the memory of whoever runs the body
    std::uint32_t const* starts;     ///< starts[b]: the segment with block b's first piece; one more: the last segment
    std::uint64_t const* residuals;  ///< of each segment, if the way keeps what rounding loses: address, aligned for f32
    std::uint64_t pieces;            ///< of all segments
    std::uint32_t pieces_per_block;
    std::uint32_t padding;
};
static_assert(sizeof(fusion_work) == 40, "the device reads what the host writes");

/// Sixteen bytes, the widest access. On the GPU it bypasses the L1 cache, which does not help what is touched once.
struct alignas(16) chunk {
    std::uint32_t words[4];
};

MUSTER_BOTH chunk load_chunk(std::uint64_t address) {
    chunk result;
#if defined(__CUDA_ARCH__)
    uint4 const got = __ldcg(reinterpret_cast<uint4 const*>(address));
    result.words[0] = got.x;
    result.words[1] = got.y;
    result.words[2] = got.z;
    result.words[3] = got.w;
#else
    if (address % 16 != 0) __builtin_trap();  // a GPU does the same
    std::memcpy(&result, reinterpret_cast<void const*>(address), 16);
#endif
    return result;
}

MUSTER_BOTH void store_chunk(std::uint64_t address, chunk const& value) {
#if defined(__CUDA_ARCH__)
    __stcg(reinterpret_cast<uint4*>(address), make_uint4(value.words[0], value.words[1], value.words[2], value.words[3]));
#else
    if (address % 16 != 0) __builtin_trap();
    std::memcpy(reinterpret_cast<void*>(address), &value, 16);
#endif
}

// The types of elements: their representation in memory, and the type in which they are scaled.

struct f32_elements {
    using raw = float;
    using wide = float;
    static MUSTER_BOTH float widen(float value) { return value; }
    static MUSTER_BOTH float narrow(float value) { return value; }
};

struct f64_elements {
    using raw = double;
    using wide = double;
    static MUSTER_BOTH double widen(double value) { return value; }
    static MUSTER_BOTH double narrow(double value) { return value; }
};

/// The GPU uses its conversion instructions: they round as `half` rounds, but make any NaN the one canonical NaN.
struct f16_elements {
    using raw = std::uint16_t;
    using wide = float;
#if defined(__CUDACC__)
    static MUSTER_BOTH float widen(std::uint16_t bits) {
        __half_raw value;
        value.x = bits;
        return __half2float(__half(value));
    }
    static MUSTER_BOTH std::uint16_t narrow(float value) {
        return static_cast<__half_raw>(__float2half_rn(value)).x;
    }
#else
    static float widen(std::uint16_t bits) {
        return muster::detail::float_from_half_bits(bits);
    }
    static std::uint16_t narrow(float value) {
        return muster::detail::half_bits_from_float(value);
    }
#endif
};

struct bf16_elements {
    using raw = std::uint16_t;
    using wide = float;
#if defined(__CUDACC__)
    static MUSTER_BOTH float widen(std::uint16_t bits) {
        __nv_bfloat16_raw value;
        value.x = bits;
        return __bfloat162float(__nv_bfloat16(value));
    }
    static MUSTER_BOTH std::uint16_t narrow(float value) {
        return static_cast<__nv_bfloat16_raw>(__float2bfloat16_rn(value)).x;
    }
#else
    static float widen(std::uint16_t bits) {
        return muster::detail::float_from_bfloat16_bits(bits);
    }
    static std::uint16_t narrow(float value) {
        return muster::detail::bfloat16_bits_from_float(value);
    }
#endif
};

// The ways in which elements change when they move.

/// to = narrow(wide(from) * factor), rounded once more if the type is narrower than what it is scaled as.
template <typename From, typename To>
struct scaled {
    static constexpr bool keeps = false;
    using from = typename From::raw;
    using to = typename To::raw;
    using factor = typename From::wide;
    static MUSTER_BOTH to apply(from value, factor by) { return To::narrow(From::widen(value) * by); }
};

/// With error feedback, as compress() does it: v = from * factor + residual; to = narrow(v); residual = v - to, or 0 if `to` is
/// not finite. Product and sum are each rounded, also on the GPU, which would otherwise make one operation of them.
template <typename To>
struct fed_back {
    static constexpr bool keeps = true;
    using from = float;
    using to = typename To::raw;
    using factor = float;
    static MUSTER_BOTH to apply(float value, float by, float& residual) {
#if defined(__CUDA_ARCH__)
        float const exact = __fadd_rn(__fmul_rn(value, by), residual);
#else
        float const product = value * by;
        float const exact = product + residual;
#endif
        to const rounded = To::narrow(exact);
        float const back = To::widen(rounded);
        bool const finite = back - back == 0;
        residual = finite ? exact - back : 0.0f;
        return rounded;
    }
};

/// Copies the bits.
template <typename Raw>
struct copied {
    static constexpr bool keeps = false;
    using from = Raw;
    using to = Raw;
    using factor = float;  // unused
    static MUSTER_BOTH to apply(from value, factor) { return value; }
};

template <typename Way>
struct fusion_shape {
    static constexpr std::uint32_t from_bytes = sizeof(typename Way::from);
    static constexpr std::uint32_t to_bytes = sizeof(typename Way::to);
    static constexpr bool to_is_narrow = to_bytes <= from_bytes;
    static constexpr std::uint32_t elements = 16 / (to_is_narrow ? to_bytes : from_bytes);  ///< of a whole piece
    static constexpr std::uint32_t from_chunks = elements * from_bytes / 16;
    static constexpr std::uint32_t to_chunks = elements * to_bytes / 16;
    static constexpr std::uint32_t kept_chunks = Way::keeps ? elements * 4 / 16 : 0;
    /// A thread loads this many pieces before it stores the first, so that enough is on its way: 64 bytes of loads or stores.
    static constexpr std::uint32_t ahead = 4 / (from_chunks + kept_chunks > to_chunks ? from_chunks + kept_chunks : to_chunks);
};

/// The residuals of a whole piece, and their address; empty if the way keeps none.
template <typename Way, bool keeps = Way::keeps>
struct kept_packet {
    MUSTER_BOTH void load(std::uint64_t) {}
    MUSTER_BOTH void store() const {}
};
template <typename Way>
struct kept_packet<Way, true> {
    union {
        chunk kept_chunks[fusion_shape<Way>::kept_chunks];
        float kept[fusion_shape<Way>::elements];
    };
    std::uint64_t place;
    MUSTER_BOTH void load(std::uint64_t address) {
        place = address;
        MUSTER_UNROLL
        for (std::uint32_t i = 0; i < fusion_shape<Way>::kept_chunks; ++i) kept_chunks[i] = load_chunk(address + 16 * i);
    }
    MUSTER_BOTH void store() const {
        MUSTER_UNROLL
        for (std::uint32_t i = 0; i < fusion_shape<Way>::kept_chunks; ++i) store_chunk(place + 16 * i, kept_chunks[i]);
    }
};

/// A whole piece on its way through the registers; goes nowhere if `to` is 0.
template <typename Way>
struct fusion_packet : kept_packet<Way> {
    union {
        chunk chunks[fusion_shape<Way>::from_chunks];
        typename Way::from elements[fusion_shape<Way>::elements];
    };
    std::uint64_t to;
};

/// Returns the last of segments low … high that begins at `piece` or before.
MUSTER_BOTH std::uint32_t find_segment(fusion_segment const* segments, std::uint32_t low, std::uint32_t high,
                                       std::uint64_t piece) {
    while (low < high) {
        std::uint32_t const middle = low + (high - low + 1) / 2;
        if (segments[middle].first_piece <= piece)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/// A segment as its pieces count: element 0 of its first piece lies `skew` elements before the segment's first.
template <typename Way>
struct fusion_cursor {
    std::uint64_t from;
    std::uint64_t to;
    std::uint64_t skew;
    std::uint64_t past;  ///< skew + count
    std::uint64_t first_piece;
    std::uint64_t residual;  ///< address of the first residual; 0 if none is kept
    bool aligned;            ///< whole pieces begin at multiples of 16 everywhere
};

template <typename Way>
MUSTER_BOTH fusion_cursor<Way> cursor_of(fusion_work const& work, std::uint32_t which) {
    using shape = fusion_shape<Way>;
    fusion_segment const& segment = work.segments[which];
    std::uint64_t const skew = shape::to_is_narrow ? segment.to % 16 / shape::to_bytes : segment.from % 16 / shape::from_bytes;
    fusion_cursor<Way> cursor;
    cursor.from = segment.from - skew * shape::from_bytes;
    cursor.to = segment.to - skew * shape::to_bytes;
    cursor.skew = skew;
    cursor.past = skew + segment.count;
    cursor.first_piece = segment.first_piece;
    cursor.residual = 0;
    if constexpr (Way::keeps) cursor.residual = work.residuals[which] - skew * 4;
    cursor.aligned = (cursor.from | cursor.to | cursor.residual) % 16 == 0;
    return cursor;
}

/// Loads a piece that is whole and aligned on both sides; moves any other at once, element by element.
template <typename Way>
MUSTER_BOTH void load_piece(fusion_cursor<Way> const& cursor, std::uint64_t piece, typename Way::factor by,
                            fusion_packet<Way>& packet) {
    using shape = fusion_shape<Way>;
    using from = typename Way::from;
    using to = typename Way::to;
    std::uint64_t const begin = (piece - cursor.first_piece) * shape::elements;
    std::uint64_t const end = begin + shape::elements;
    if (cursor.aligned && begin >= cursor.skew && end <= cursor.past) {
        MUSTER_UNROLL
        for (std::uint32_t i = 0; i < shape::from_chunks; ++i)
            packet.chunks[i] = load_chunk(cursor.from + begin * shape::from_bytes + 16 * i);
        packet.load(cursor.residual + begin * 4);
        packet.to = cursor.to + begin * shape::to_bytes;
        return;
    }
    packet.to = 0;
    std::uint64_t const first = begin < cursor.skew ? cursor.skew : begin;
    std::uint64_t const past = end < cursor.past ? end : cursor.past;
    for (std::uint64_t i = first; i < past; ++i) {
        from const value = *reinterpret_cast<from const*>(cursor.from + i * shape::from_bytes);
        to& result = *reinterpret_cast<to*>(cursor.to + i * shape::to_bytes);
        if constexpr (Way::keeps)
            result = Way::apply(value, by, *reinterpret_cast<float*>(cursor.residual + i * 4));
        else
            result = Way::apply(value, by);
    }
}

template <typename Way>
MUSTER_BOTH void store_piece(fusion_packet<Way>& packet, typename Way::factor by) {
    using shape = fusion_shape<Way>;
    if (packet.to == 0) return;
    union {
        chunk chunks[shape::to_chunks];
        typename Way::to elements[shape::elements];
    } out;
    MUSTER_UNROLL
    for (std::uint32_t i = 0; i < shape::elements; ++i) {
        if constexpr (Way::keeps)
            out.elements[i] = Way::apply(packet.elements[i], by, packet.kept[i]);
        else
            out.elements[i] = Way::apply(packet.elements[i], by);
    }
    MUSTER_UNROLL
    for (std::uint32_t i = 0; i < shape::to_chunks; ++i) store_chunk(packet.to + 16 * i, out.chunks[i]);
    packet.store();
}

/// Does all the work of thread `thread` of the `threads` of block `block`. Neighbours in a block move neighbouring pieces.
/// Threads share nothing.
template <typename Way>
MUSTER_BOTH void run_thread(fusion_work const& work, typename Way::factor by, std::uint32_t block, std::uint32_t thread,
                            std::uint32_t threads) {
    constexpr std::uint32_t ahead = fusion_shape<Way>::ahead;
    std::uint64_t const begin = static_cast<std::uint64_t>(block) * work.pieces_per_block;
    std::uint64_t const after = begin + work.pieces_per_block;
    std::uint64_t const end = after < work.pieces ? after : work.pieces;
    std::uint32_t low = work.starts[block];
    std::uint32_t const high = work.starts[block + 1];
    fusion_cursor<Way> cursor = cursor_of<Way>(work, low);
    std::uint64_t past = low < high ? work.segments[low + 1].first_piece : end;
    for (std::uint64_t at = begin + thread; at < end; at += static_cast<std::uint64_t>(threads) * ahead) {
        fusion_packet<Way> packets[ahead];
        MUSTER_UNROLL
        for (std::uint32_t i = 0; i < ahead; ++i) {
            std::uint64_t const piece = at + static_cast<std::uint64_t>(i) * threads;
            packets[i].to = 0;
            if (piece >= end) continue;
            if (piece >= past) {
                low = find_segment(work.segments, low + 1, high, piece);
                cursor = cursor_of<Way>(work, low);
                past = low < high ? work.segments[low + 1].first_piece : end;
            }
            load_piece<Way>(cursor, piece, by, packets[i]);
        }
        MUSTER_UNROLL
        for (std::uint32_t i = 0; i < ahead; ++i) store_piece<Way>(packets[i], by);
    }
}

/// Each of these ways has a kernel: muster_X takes (fusion_work, ways::X::factor).
namespace ways {
using copy_8 = copied<std::uint64_t>;
using copy_4 = copied<std::uint32_t>;
using copy_2 = copied<std::uint16_t>;
using copy_1 = copied<std::uint8_t>;
using f32_f32 = scaled<f32_elements, f32_elements>;
using f32_f16 = scaled<f32_elements, f16_elements>;
using f32_bf16 = scaled<f32_elements, bf16_elements>;
using f16_f32 = scaled<f16_elements, f32_elements>;
using bf16_f32 = scaled<bf16_elements, f32_elements>;
using f16_f16 = scaled<f16_elements, f16_elements>;
using bf16_bf16 = scaled<bf16_elements, bf16_elements>;
using f64_f64 = scaled<f64_elements, f64_elements>;
using f32_f16_kept = fed_back<f16_elements>;
using f32_bf16_kept = fed_back<bf16_elements>;
}  // namespace ways

#define MUSTER_FUSION_WAYS(X) \
    X(copy_8)                 \
    X(copy_4)                 \
    X(copy_2)                 \
    X(copy_1)                 \
    X(f32_f32)                \
    X(f32_f16)                \
    X(f32_bf16)               \
    X(f16_f32)                \
    X(bf16_f32)               \
    X(f16_f16)                \
    X(bf16_bf16)              \
    X(f64_f64)                \
    X(f32_f16_kept)           \
    X(f32_bf16_kept)

#define MUSTER_ONE(way) +1
inline constexpr unsigned fusion_ways = 0 MUSTER_FUSION_WAYS(MUSTER_ONE);
#undef MUSTER_ONE

}  // namespace muster::cuda
