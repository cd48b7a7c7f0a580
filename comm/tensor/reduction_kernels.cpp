#include "comm/tensor/reduction_kernels.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#define MUSTER_AVX2 [[gnu::target("avx2,f16c")]]
#define MUSTER_AVX512 [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,f16c")]]
#endif

namespace muster {

namespace {

/// Elements reduced at once: the accumulators of one block stay in the first-level cache.
constexpr std::size_t block = 1024;

// The bodies below are inlined into one function for each level, whose target attribute decides how they are vectorised.

struct add {
    template <typename T>
    [[gnu::always_inline]] static T apply(T a, T b) noexcept {
        if constexpr (std::is_integral_v<T>) {
            using wrapping = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
            return static_cast<T>(static_cast<wrapping>(a) + static_cast<wrapping>(b));
        } else
            return a + b;
    }
};
struct multiply_op {
    template <typename T>
    [[gnu::always_inline]] static T apply(T a, T b) noexcept {
        if constexpr (std::is_integral_v<T>) {
            using wrapping = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
            return static_cast<T>(static_cast<wrapping>(a) * static_cast<wrapping>(b));
        } else
            return a * b;
    }
};
// A NaN on either side wins: all comparisons with it are false, so b's passes through the second arm.
struct least {
    template <typename T>
    [[gnu::always_inline]] static T apply(T a, T b) noexcept {
        if constexpr (std::is_integral_v<T>)
            return b < a ? b : a;
        else
            return ((a < b) | (a != a)) ? a : b;
    }
};
struct greatest {
    template <typename T>
    [[gnu::always_inline]] static T apply(T a, T b) noexcept {
        if constexpr (std::is_integral_v<T>)
            return a < b ? b : a;
        else
            return ((a > b) | (a != a)) ? a : b;
    }
};

template <typename T>
struct accumulator {
    using type = T;
};
template <>
struct accumulator<half> {
    using type = float;
};
template <>
struct accumulator<bfloat16> {
    using type = float;
};

template <typename T, typename Op>
[[gnu::always_inline]] inline void fold(T* into, T const* other, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) into[i] = Op::template apply<T>(into[i], other[i]);
}

/// into = a op b; either may be `into` itself, which is safe in a vector loop over equal indices.
template <typename T, typename Op>
[[gnu::always_inline]] inline void fold_pair(T* into, T const* a, T const* b, std::size_t count) noexcept {
#ifdef __clang__
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
    for (std::size_t i = 0; i < count; ++i) into[i] = Op::template apply<T>(a[i], b[i]);
}

template <typename T>
[[gnu::always_inline]] inline void divide_all(T* data, std::size_t count, T divisor) noexcept {
    for (std::size_t i = 0; i < count; ++i) data[i] /= divisor;
}

template <typename T>
[[gnu::always_inline]] inline void multiply_all(T* data, std::size_t count, double factor) noexcept {
    if constexpr (std::is_floating_point_v<T>) {
        T const by = static_cast<T>(factor);
        for (std::size_t i = 0; i < count; ++i) data[i] *= by;
    }
}

/// Does the division and scaling after the reduction of a block.
template <typename A>
[[gnu::always_inline]] inline void finish_block(A* sum, std::size_t count, std::size_t sources, bool average,
                                                double after) noexcept {
    if constexpr (std::is_floating_point_v<A>) {
        if (average) divide_all<A>(sum, count, static_cast<A>(sources));
        if (after != 1) multiply_all<A>(sum, count, after);
    }
}

/// The arguments of every combination other than its memory.
struct task {
    std::size_t sources = 0;
    bool average = false;
    scaling scale;
    std::span<void* const> copies{};  ///< the result also goes here
};

/// Does one operation on one type, with the conversions of `Level`.
template <typename T, typename Op, typename Level>
[[gnu::always_inline]] inline void combine_body(void const* const* sources, void* out, std::size_t count,
                                                task const& how) noexcept {
    using A = typename accumulator<T>::type;
    bool const scaled = how.scale.before != 1;
    auto const source = [&](std::size_t s, std::size_t first) { return static_cast<T const*>(sources[s]) + first; };
    // It copies a block at a time, which is still in the first-level cache.
    auto const copy = [&](std::size_t first, std::size_t n) {
        for (void* const to : how.copies)
            std::memcpy(static_cast<T*>(to) + first, static_cast<T const*>(out) + first, n * sizeof(T));
    };
    for (std::size_t first = 0; first < count; first += block) {
        std::size_t const n = std::min(block, count - first);
        T* const target = static_cast<T*>(out) + first;
        if constexpr (std::is_same_v<A, T>) {
            if (how.sources == 2 && !scaled) {
                fold_pair<T, Op>(target, source(0, first), source(1, first), n);
                finish_block<T>(target, n, 2, how.average, how.scale.after);
                copy(first, n);
                continue;
            }
        }
        // It does not sum into `out`, which may be a source that has not been read yet.
        alignas(64) A sum[block];
        alignas(64) A next[block];
        auto const load = [&](std::size_t s, A* to) {
            if constexpr (std::is_same_v<A, T>)
                std::memcpy(to, source(s, first), n * sizeof(T));
            else
                Level::load(source(s, first), to, n);
            if (scaled) multiply_all<A>(to, n, how.scale.before);
        };
        load(0, sum);
        for (std::size_t s = 1; s < how.sources; ++s) {
            if constexpr (std::is_same_v<A, T>) {
                if (!scaled) {
                    fold<T, Op>(sum, source(s, first), n);
                    continue;
                }
            }
            load(s, next);
            fold<A, Op>(sum, next, n);
        }
        finish_block<A>(sum, n, how.sources, how.average, how.scale.after);
        if constexpr (std::is_same_v<A, T>)
            std::memcpy(target, sum, n * sizeof(T));
        else
            Level::store(sum, target, n);
        copy(first, n);
    }
}

[[gnu::always_inline]] inline void load_body(bfloat16 const* from, float* to, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) to[i] = detail::float_from_bfloat16_bits(from[i].bits());
}
[[gnu::always_inline]] inline void store_body(float const* from, bfloat16* to, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) to[i] = bfloat16::from_bits(detail::bfloat16_bits_from_float(from[i]));
}

struct level_baseline {
    static void load(half const* from, float* to, std::size_t count) noexcept {
        for (std::size_t i = 0; i < count; ++i) to[i] = detail::float_from_half_bits(from[i].bits());
    }
    static void store(float const* from, half* to, std::size_t count) noexcept {
        for (std::size_t i = 0; i < count; ++i) to[i] = half::from_bits(detail::half_bits_from_float(from[i]));
    }
    static void load(bfloat16 const* from, float* to, std::size_t count) noexcept { load_body(from, to, count); }
    static void store(float const* from, bfloat16* to, std::size_t count) noexcept { store_body(from, to, count); }

    template <typename T, typename Op>
    static void run(void const* const* sources, void* out, std::size_t count, task const& how) noexcept {
        combine_body<T, Op, level_baseline>(sources, out, count, how);
    }
};

#if defined(__x86_64__)
struct level_avx2 {
    MUSTER_AVX2 static void load(half const* from, float* to, std::size_t count) noexcept {
        std::size_t i = 0;
        for (; i + 8 <= count; i += 8)
            _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<__m128i const*>(from + i))));
        for (; i < count; ++i) to[i] = _cvtsh_ss(from[i].bits());
    }
    MUSTER_AVX2 static void store(float const* from, half* to, std::size_t count) noexcept {
        std::size_t i = 0;
        for (; i + 8 <= count; i += 8)
            _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                             _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
        for (; i < count; ++i) to[i] = half::from_bits(_cvtss_sh(from[i], _MM_FROUND_TO_NEAREST_INT));
    }
    MUSTER_AVX2 static void load(bfloat16 const* from, float* to, std::size_t count) noexcept { load_body(from, to, count); }
    MUSTER_AVX2 static void store(float const* from, bfloat16* to, std::size_t count) noexcept { store_body(from, to, count); }

    template <typename T, typename Op>
    MUSTER_AVX2 static void run(void const* const* sources, void* out, std::size_t count, task const& how) noexcept {
        combine_body<T, Op, level_avx2>(sources, out, count, how);
    }
};

struct level_avx512 {
    // The forms without a mask start from an undefined register, and GCC 12 warns about that.
    static constexpr __mmask16 every = 0xffff;

    MUSTER_AVX512 static void load(half const* from, float* to, std::size_t count) noexcept {
        std::size_t i = 0;
        for (; i + 16 <= count; i += 16)
            _mm512_storeu_ps(to + i,
                             _mm512_maskz_cvtph_ps(every, _mm256_loadu_si256(reinterpret_cast<__m256i const*>(from + i))));
        for (; i < count; ++i) to[i] = _cvtsh_ss(from[i].bits());
    }
    MUSTER_AVX512 static void store(float const* from, half* to, std::size_t count) noexcept {
        std::size_t i = 0;
        for (; i + 16 <= count; i += 16)
            _mm256_storeu_si256(
                reinterpret_cast<__m256i*>(to + i),
                _mm512_maskz_cvtps_ph(every, _mm512_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
        for (; i < count; ++i) to[i] = half::from_bits(_cvtss_sh(from[i], _MM_FROUND_TO_NEAREST_INT));
    }
    MUSTER_AVX512 static void load(bfloat16 const* from, float* to, std::size_t count) noexcept { load_body(from, to, count); }
    MUSTER_AVX512 static void store(float const* from, bfloat16* to, std::size_t count) noexcept { store_body(from, to, count); }

    template <typename T, typename Op>
    MUSTER_AVX512 static void run(void const* const* sources, void* out, std::size_t count, task const& how) noexcept {
        combine_body<T, Op, level_avx512>(sources, out, count, how);
    }
};
#endif

/// Calls `body` with the level's type.
template <typename Body>
void at_level([[maybe_unused]] simd level, Body&& body) noexcept {
#if defined(__x86_64__)
    if (level == simd::avx512) return body(level_avx512{});
    if (level == simd::avx2) return body(level_avx2{});
#endif
    body(level_baseline{});
}

void run(dtype type, void const* const* sources, reduction how, void* out, std::size_t count, simd level,
         task const& what) noexcept {
    if (count == 0) return;
    with_dtype(type, [&]<typename T>() {
        at_level(level, [&]<typename Level>(Level) {
            auto const with = [&]<typename Op>(Op) { Level::template run<T, Op>(sources, out, count, what); };
            switch (how) {
                case reduction::sum:
                case reduction::average: return with(add{});
                case reduction::min: return with(least{});
                case reduction::max: return with(greatest{});
                case reduction::product: return with(multiply_op{});
                case reduction::adasum: return;  // not a reduction of single elements: refused before
            }
        });
    });
}

simd usual_level() noexcept {
    static simd const level = best_simd();
    return level;
}

}  // namespace

void combine(dtype type, reduction how, std::span<void const* const> sources, void* out, std::size_t count, simd level,
             scaling const& scale) noexcept {
    run(type, sources.data(), how, out, count, level, {sources.size(), how == reduction::average, scale});
}

void combine(dtype type, reduction how, std::span<void const* const> sources, void* out, std::size_t count,
             scaling const& scale) noexcept {
    combine(type, how, sources, out, count, usual_level(), scale);
}

void combine(dtype type, reduction how, std::span<void const* const> sources, std::span<void* const> outs, std::size_t count,
             scaling const& scale) noexcept {
    run(type, sources.data(), how, outs.front(), count, usual_level(),
        {sources.size(), how == reduction::average, scale, outs.subspan(1)});
}

void multiply(dtype type, void const* in, void* out, std::size_t count, double factor) noexcept {
    if (count == 0) return;
    std::array<void const*, 1> const source{in};
    if (!is_floating(type) || factor == 1) {
        if (in != out) std::memcpy(out, in, count * size_of(type));
        return;
    }
    combine(type, reduction::sum, source, out, count, scaling{factor, 1});
}

void divide(dtype type, void* data, std::size_t count, int divisor) noexcept {
    with_dtype(type, [&]<typename T>() {
        T* const elements = static_cast<T*>(data);
        if constexpr (std::is_floating_point_v<T>) {
            divide_all<T>(elements, count, static_cast<T>(divisor));
        } else if constexpr (!std::is_integral_v<T>) {
            simd const level = best_simd();
            alignas(64) std::array<float, block> values;
            for (std::size_t first = 0; first < count; first += block) {
                std::size_t const n = std::min(block, count - first);
                to_float(elements + first, values.data(), n, level);
                divide_all<float>(values.data(), n, static_cast<float>(divisor));
                from_float(values.data(), elements + first, n, level);
            }
        }
    });
}

void to_float(half const* from, float* to, std::size_t count, simd level) noexcept {
    at_level(level, [&]<typename Level>(Level) { Level::load(from, to, count); });
}
void to_float(bfloat16 const* from, float* to, std::size_t count, simd level) noexcept {
    at_level(level, [&]<typename Level>(Level) { Level::load(from, to, count); });
}
void from_float(float const* from, half* to, std::size_t count, simd level) noexcept {
    at_level(level, [&]<typename Level>(Level) { Level::store(from, to, count); });
}
void from_float(float const* from, bfloat16* to, std::size_t count, simd level) noexcept {
    at_level(level, [&]<typename Level>(Level) { Level::store(from, to, count); });
}

}  // namespace muster
