// Packs: 8 doubles or 16 floats that are added, multiplied and compared together.
//
// A pack has the same size on every machine, and is made of as many registers as the instruction
// set needs: one for AVX-512, two for AVX2, four for the baseline. A sum over a long array is kept
// as one sum for each place in the pack, and these are added up in one fixed order. So every
// instruction set gives the same bits. Compilers without vector types get plain arrays.
#pragma once

#include <cstdint>

// The one macro of the core: the namespace of the instruction set that is compiled for.
#ifndef VOICECF_SET
#define VOICECF_SET baseline
#endif

namespace voicecf {
namespace VOICECF_SET {

#if defined(__GNUC__) || defined(__clang__)
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
    typedef double loose __attribute__((vector_size(REGISTER), aligned(8), may_alias));
};
template <>
struct Native<float> {
    typedef float type __attribute__((vector_size(REGISTER)));
    typedef float loose __attribute__((vector_size(REGISTER), aligned(4), may_alias));
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
    friend Plain larger(Plain a, Plain b) { return if_less(b, a, a, b); }
    friend Plain smaller(Plain a, Plain b) { return if_less(a, b, a, b); }
    friend Plain if_less(Plain a, Plain b, Plain yes, Plain no) {
        return each([&](int i) { return a.v[i] < b.v[i] ? yes.v[i] : no.v[i]; });
    }
};
template <class Real>
using Pack = Plain<Real>;

#endif

using Doubles = Pack<double>;
static_assert(Doubles::size == 8, "a pack holds 64 bytes");

// Sum of the places of a pack, in one order on every machine.
template <class Real>
inline Real total(const Pack<Real>& pack) {
    Real s[Pack<Real>::size];
    pack.store(s);
    for (int half = Pack<Real>::size / 2; half > 0; half /= 2)
        for (int i = 0; i < half; ++i) s[i] += s[i + half];
    return s[0];
}

// Largest place of a pack.
template <class Real>
inline Real highest(const Pack<Real>& pack) {
    Real s[Pack<Real>::size];
    pack.store(s);
    for (int half = Pack<Real>::size / 2; half > 0; half /= 2)
        for (int i = 0; i < half; ++i) s[i] = s[i] > s[i + half] ? s[i] : s[i + half];
    return s[0];
}

}  // namespace VOICECF_SET
}  // namespace voicecf
