// Packs: 8 doubles or 16 floats that are added, multiplied and compared together.
//
// A pack has the same size on every machine, and is made of as many registers as the instruction
// set needs: one for AVX-512, two for AVX2, four for the baseline. A sum over a long array is kept
// as one sum for each place in the pack, and these are added up in one fixed order. So every
// instruction set gives the same bits. Compilers without vector types get plain arrays.
#pragma once

#include <cstdint>
#include <utility>

// The one macro of the core: the namespace of the instruction set that is compiled for.
#ifndef VOICECF_SET
#define VOICECF_SET baseline
#endif

namespace voicecf {
namespace VOICECF_SET {

#if defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12)
#if defined(__AVX512F__)
constexpr int REGISTER = 64;
#elif defined(__AVX__)
constexpr int REGISTER = 32;
#else
constexpr int REGISTER = 16;
#endif

template <class Real>
struct Native;
template <>
struct Native<double> {
    typedef double type __attribute__((vector_size(REGISTER)));
    typedef double loose __attribute__((vector_size(REGISTER), aligned(8)));
};
template <>
struct Native<float> {
    typedef float type __attribute__((vector_size(REGISTER)));
    typedef float loose __attribute__((vector_size(REGISTER), aligned(4)));
};

// One register.
template <class Real>
struct One {
    using V = typename Native<Real>::type;
    using L = typename Native<Real>::loose;
    static constexpr int size = REGISTER / int(sizeof(Real));
    V v;

    static One load(const Real* p) { return {V(*reinterpret_cast<const L*>(p))}; }
    static One all(Real s) { return {s - V{}}; }
    void store(Real* p) const { *reinterpret_cast<L*>(p) = L(v); }
    friend One operator+(One a, One b) { return {a.v + b.v}; }
    friend One operator-(One a, One b) { return {a.v - b.v}; }
    friend One operator*(One a, One b) { return {a.v * b.v}; }
    friend One operator/(One a, One b) { return {a.v / b.v}; }
    friend One larger(One a, One b) { return {a.v > b.v ? a.v : b.v}; }
    friend One smaller(One a, One b) { return {a.v < b.v ? a.v : b.v}; }
    // yes where a < b, else no.
    friend One if_less(One a, One b, One yes, One no) { return {a.v < b.v ? yes.v : no.v}; }
};

// Two halves.
template <class Half, class Real>
struct Two {
    static constexpr int size = 2 * Half::size;
    Half lo, hi;

    static Two load(const Real* p) { return {Half::load(p), Half::load(p + Half::size)}; }
    static Two all(Real s) { return {Half::all(s), Half::all(s)}; }
    void store(Real* p) const {
        lo.store(p);
        hi.store(p + Half::size);
    }
    friend Two operator+(Two a, Two b) { return {a.lo + b.lo, a.hi + b.hi}; }
    friend Two operator-(Two a, Two b) { return {a.lo - b.lo, a.hi - b.hi}; }
    friend Two operator*(Two a, Two b) { return {a.lo * b.lo, a.hi * b.hi}; }
    friend Two operator/(Two a, Two b) { return {a.lo / b.lo, a.hi / b.hi}; }
    friend Two larger(Two a, Two b) { return {larger(a.lo, b.lo), larger(a.hi, b.hi)}; }
    friend Two smaller(Two a, Two b) { return {smaller(a.lo, b.lo), smaller(a.hi, b.hi)}; }
    friend Two if_less(Two a, Two b, Two yes, Two no) {
        return {if_less(a.lo, b.lo, yes.lo, no.lo), if_less(a.hi, b.hi, yes.hi, no.hi)};
    }
};

template <class Real, int registers>
struct Packed {
    using type = Two<typename Packed<Real, registers / 2>::type, Real>;
};
template <class Real>
struct Packed<Real, 1> {
    using type = One<Real>;
};
template <class Real>
using Pack = typename Packed<Real, 64 / REGISTER>::type;

// The halves of a register.
template <class V>
inline auto lower(V v) {
    if constexpr (sizeof(V) / sizeof(v[0]) == 16)
        return __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7);
    else if constexpr (sizeof(V) / sizeof(v[0]) == 8)
        return __builtin_shufflevector(v, v, 0, 1, 2, 3);
    else
        return __builtin_shufflevector(v, v, 0, 1);
}
template <class V>
inline auto upper(V v) {
    if constexpr (sizeof(V) / sizeof(v[0]) == 16)
        return __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
    else if constexpr (sizeof(V) / sizeof(v[0]) == 8)
        return __builtin_shufflevector(v, v, 4, 5, 6, 7);
    else
        return __builtin_shufflevector(v, v, 2, 3);
}

template <class V>
inline auto sum_of(V v) {
    if constexpr (sizeof(V) == 16)
        return v[0] + v[1];
    else
        return sum_of(lower(v) + upper(v));
}
template <class V>
inline auto largest_of(V v) {
    if constexpr (sizeof(V) > 16) {
        const auto a = lower(v), b = upper(v);
        return largest_of(a > b ? a : b);
    } else {
        auto top = v[0];
        for (int i = 1; i < int(sizeof(V) / sizeof(v[0])); ++i) top = v[i] > top ? v[i] : top;
        return top;
    }
}

// Sum of the places of a pack, the upper half added to the lower, and so on.
inline double total(const One<double>& pack) { return sum_of(pack.v); }
template <class Half>
inline double total(const Two<Half, double>& pack) {
    return total(pack.lo + pack.hi);
}

// Largest place of a pack.
template <class Real>
inline Real highest(const One<Real>& pack) {
    return largest_of(pack.v);
}
template <class Half, class Real>
inline Real highest(const Two<Half, Real>& pack) {
    return highest(larger(pack.lo, pack.hi));
}

// Swap blocks of h places: the upper ones of each pair in a with the lower ones in b.
template <int h, class V, int... place>
inline void swap_blocks(V& a, V& b, std::integer_sequence<int, place...>) {
    constexpr int n = sizeof...(place);
    const V upper = __builtin_shufflevector(a, b, (place & h ? n + place : place + h)...);
    a = __builtin_shufflevector(a, b, (place & h ? n + place - h : place)...);
    b = upper;
}

// Transpose n registers of n places.
template <int h, class V, int n>
inline void transpose(V (&r)[n]) {
    for (int i = 0; i < n; ++i)
        if (!(i & h)) swap_blocks<h>(r[i], r[i | h], std::make_integer_sequence<int, n>());
    if constexpr (h > 1) transpose<h / 2>(r);
}

// Turn eight lines of d numbers into columns, which are `stride` apart.
inline void turn_lines(const double* const* lines, int d, double* to, int stride) {
    constexpr int n = One<double>::size;
    int i = 0;
    for (; i + n <= d; i += n)
        for (int q = 0; q < 8; q += n) {
            One<double>::V r[n];
            for (int c = 0; c < n; ++c) r[c] = One<double>::load(lines[q + c] + i).v;
            transpose<n / 2>(r);
            for (int c = 0; c < n; ++c) One<double>{r[c]}.store(to + (i + c) * stride + q);
        }
    for (; i < d; ++i)
        for (int q = 0; q < 8; ++q) to[i * stride + q] = lines[q][i];
}

#else

template <class Real>
struct Plain {
    static constexpr int size = 64 / int(sizeof(Real));
    Real v[size];

    template <class F>
    static Plain each(F f) {
        Plain out;
        for (int i = 0; i < size; ++i) out.v[i] = f(i);
        return out;
    }
    static Plain load(const Real* p) { return each([&](int i) { return p[i]; }); }
    static Plain all(Real s) { return each([&](int) { return s; }); }
    void store(Real* p) const {
        for (int i = 0; i < size; ++i) p[i] = v[i];
    }
    friend Plain operator+(Plain a, Plain b) { return each([&](int i) { return a.v[i] + b.v[i]; }); }
    friend Plain operator-(Plain a, Plain b) { return each([&](int i) { return a.v[i] - b.v[i]; }); }
    friend Plain operator*(Plain a, Plain b) { return each([&](int i) { return a.v[i] * b.v[i]; }); }
    friend Plain operator/(Plain a, Plain b) { return each([&](int i) { return a.v[i] / b.v[i]; }); }
    friend Plain larger(Plain a, Plain b) { return if_less(b, a, a, b); }
    friend Plain smaller(Plain a, Plain b) { return if_less(a, b, a, b); }
    friend Plain if_less(Plain a, Plain b, Plain yes, Plain no) {
        return each([&](int i) { return a.v[i] < b.v[i] ? yes.v[i] : no.v[i]; });
    }
};
template <class Real>
using Pack = Plain<Real>;

inline double total(Plain<double> pack) {
    for (int half = 4; half > 0; half /= 2)
        for (int i = 0; i < half; ++i) pack.v[i] += pack.v[i + half];
    return pack.v[0];
}
template <class Real>
inline Real highest(const Plain<Real>& pack) {
    Real top = pack.v[0];
    for (Real v : pack.v) top = v > top ? v : top;
    return top;
}

inline void turn_lines(const double* const* lines, int d, double* to, int stride) {
    for (int i = 0; i < d; ++i)
        for (int q = 0; q < 8; ++q) to[i * stride + q] = lines[q][i];
}

#endif

using Doubles = Pack<double>;
static_assert(Doubles::size == 8, "a pack holds 64 bytes");

}  // namespace VOICECF_SET
}  // namespace voicecf
