// Working memory of a chunk of points: one piece, divided before the first point.
#pragma once

#include <cstddef>
#include <cstdint>

#include "blocks.hpp"

namespace voicecf {
namespace VOICECF_SET {

// Hands out aligned parts of a piece of memory; without one, counts what is needed.
struct Arena {
    char* base = nullptr;
    std::size_t used = 0;

    template <class T>
    T* take(std::size_t n) {
        T* part = base ? reinterpret_cast<T*>(base + used) : nullptr;
        used += (n * sizeof(T) + 63) / 64 * 64;
        return part;
    }
};

inline void lay_out(Arena& arena, Steps& s, int d, int wide) {
    s.d = d;
    s.wide = wide;
    double** parts[] = {&s.a,   &s.x,    &s.placed, &s.lo, &s.hi,
                        &s.low, &s.high, &s.y,      &s.z,  &s.free};
    for (double** part : parts)
        *part = arena.take<double>(wide);
}

// Room for `limit` rows, and for their products if the box may not bind.
inline void lay_out(Arena& arena, Choice& c, int limit, int d, int wide, bool pairs, bool products) {
    c.limit = limit;
    c.rank = smaller_of(limit, d);
    const std::size_t few = limit, rank = c.rank;
    c.ids = arena.take<int>(few + 1);
    c.act = arena.take<int>(few + 1);
    c.rows = arena.take<const double*>(few + 1);
    c.made = pairs ? arena.take<double>((few + 1) * wide) : nullptr;
    double** parts[] = {&c.b, &c.base, &c.mu, &c.residual, &c.inverse};
    for (double** part : parts)
        *part = arena.take<double>(few + 1);
    c.guards = arena.take<Guard>(few + 1);
    c.gram = products ? arena.take<double>((few + 1) * (few + 1)) : nullptr;
    c.h = arena.take<double>(rank * rank);
    c.rhs = arena.take<double>(rank + 1);
}

inline void lay_out(Arena& arena, ActiveSet& s, int m, int d, int wide, bool pairs) {
    s.m = m;
    s.d = d;
    s.wide = wide;
    s.rank = smaller_of(m, d);
    const std::size_t rank = s.rank;
    s.made = pairs ? arena.take<double>(std::size_t(m) * wide) : nullptr;
    s.made_offsets = pairs ? arena.take<double>(m) : nullptr;
    s.made_inverse = pairs ? arena.take<double>(m) : nullptr;
    s.made_guards = pairs ? arena.take<Guard>(m) : nullptr;
    double** parts[] = {&s.b, &s.base, &s.mu, &s.r};
    for (double** part : parts) *part = arena.take<double>(m);
    s.tol = arena.take<double>(m + d);
    s.frame = arena.take<double>((rank + 3) * wide);
    s.tri = arena.take<double>((rank + 2) * rank);
    s.work = arena.take<int>(rank + 1);
    s.state = arena.take<std::int8_t>(d);
}

inline void lay_out(Arena& arena, Block& k, int m, int wide, int targets) {
    double** lines[] = {&k.at, &k.x,   &k.lo,  &k.hi,   &k.low,
                        &k.high, &k.y, &k.row, &k.lows, &k.highs};
    for (double** line : lines) *line = arena.take<double>(std::size_t(wide) * LANES);
    double** parts[] = {&k.base, &k.b, &k.inner, &k.rise, &k.mu};
    for (double** part : parts) *part = arena.take<double>(std::size_t(m) * LANES);
    const std::size_t few = m <= FEW_ROWS ? m : 0;
    k.free = arena.take<double>(few * wide);
    k.products = arena.take<double>(few * (few + 1));
    k.order = arena.take<int>(SORTED);
    k.starts = arena.take<int>(targets + 1);
}

template <class Real>
void lay_out(Arena& arena, const Rows<Real>& rows, Workspace<Real>& w) {
    const std::size_t wide = rows.wide, long_ = rows.long_;
    const int m = rows.pairs ? rows.count - 1 : rows.count;
    lay_out(arena, w.s, rows.d, rows.wide);
    w.block = arena.take<Real>(BLOCK * wide);
    w.scores = arena.take<Real>(BLOCK * long_);
    w.r = arena.take<Real>(long_);
    w.t = arena.take<Real>(long_);
    w.shares = arena.take<Real>(rows.d + 16);
    w.found = arena.take<int>(long_ + 1);
    w.among = arena.take<int>(rows.d + 16);
    const int limit = smaller_of(m, 3 * rows.d + 64);
    lay_out(arena, w.choice, limit, rows.d, rows.wide, rows.pairs, true);
    lay_out(arena, w.hard, m, rows.d, rows.wide, rows.pairs);
    lay_out(arena, w.lanes, rows.stored.u ? m : 0, rows.wide, rows.stored.targets);
    w.made_for = -1;
}

}  // namespace VOICECF_SET
}  // namespace voicecf
