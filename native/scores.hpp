// Scores: which cluster a point is in, which rows a step violates, how far a step can go on (rho).
//
// Row j of the cell of cluster t says s_j(z) <= s_t(z). So the products of a point with all k
// vectors e_j give its slack to every rival of any target, and its nearest centroid. While the box
// does not bind, a step is a sum of rows, y = -sum_p mu_p u_p, and what it does to all slacks is a
// sum of few rows of the table e e'. Scores are rounded, in single precision where there are many
// rows; each value has an error bound, and whatever is closer than that is judged as a difference
// in double precision.
#pragma once

#include "blocks.hpp"

namespace voicecf {
namespace VOICECF_SET {

template <class Real>
constexpr double ROUNDING = std::numeric_limits<Real>::epsilon();
// Rows in the choice are marked with this value, so that no scan picks them.
constexpr double CHOSEN = -1e38;
// Points further away than this, in units of the longest vector, overflow, or hide all rows
// behind their error.
template <class Real>
constexpr double FURTHEST = sizeof(Real) == 4 ? 1e15 : 1e30;
// Turns in which the row that ends a step is looked for.
constexpr int TURNS = 8;

// Scale the points of a block, around the rows' origin, and find their lengths.
template <class Real>
void enter_block(const Rows<Real>& rows, const double* const* at, int count, Workspace<Real>& w) {
    const Doubles unit = Doubles::all(rows.unit);
    for (int q = 0; q < count; ++q) {
        Real* out = w.block + q * rows.wide;
        copy_line(at[q], w.s.z, rows.d);
        Doubles s = Doubles::all(0.0);
        for (int i = 0; i < rows.wide; i += 8) {
            const Doubles from = Doubles::load(w.s.z + i) - Doubles::load(rows.origin + i);
            const Doubles t = unit * Doubles::load(rows.scale + i) * from;
            s = s + t * t;
            store_as(t, out + i);
        }
        w.spans[q] = std::sqrt(total(s));
    }
}

// Products of `points` scaled points with all vectors.
template <class Real, int points>
void multiply(const Rows<Real>& rows, const Real* block, Real* out) {
    using P = Pack<Real>;
    for (int j = 0; j < rows.long_; j += P::size) {
        P s[points];
        for (int q = 0; q < points; ++q) s[q] = P::all(0);
        const Real* e = rows.vectors + j;
        for (int i = 0; i < rows.d; ++i, e += rows.long_) {
            const P v = P::load(e);
#pragma GCC unroll 8
            for (int q = 0; q < points; ++q) s[q] = s[q] + v * P::all(block[q * rows.wide + i]);
        }
        for (int q = 0; q < points; ++q) s[q].store(out + q * rows.long_ + j);
    }
}

// Set n entries, four packs at a time, and find their peaks. `fill` is given the first position and sets the packs.
template <class Real, class Fill>
void fill_rows(int n, Real* out, Peaks<Real>& peaks, const Fill& fill) {
    using P = Pack<Real>;
    P tops = P::all(-std::numeric_limits<Real>::infinity()), starts = P::all(0);
    const auto fill_some = [&](int start, auto& r) {
        fill(start, r);
        P top = r[0];
        int at = start;
        for (const P& one : r) {
            one.store(out + at);
            top = larger(top, one);
            at += P::size;
        }
        starts = if_less(tops, top, P::all(Real(start)), starts);
        tops = larger(tops, top);
    };
    int start = 0;
    P four[4], one[1];
    for (; start + 4 * P::size <= n; start += 4 * P::size) fill_some(start, four);
    for (; start < n; start += P::size) fill_some(start, one);
    tops.store(peaks.tops);
    starts.store(peaks.starts);
}

template <class Real>
Real highest_peak(const Peaks<Real>& peaks) {
    return highest(Pack<Real>::load(peaks.tops));
}

// Position of the peak of one place in the packs.
template <class Real>
int position(const Real* r, const Peaks<Real>& peaks, int place) {
    int j = int(peaks.starts[place]) + place;
    while (r[j] < peaks.tops[place]) j += Pack<Real>::size;
    return j;
}

// Positions of the peaks above a bar, at most so many; their number.
template <class Real>
int peaks_above(const Real* r, const Peaks<Real>& peaks, Real bar, int limit, int* found) {
    int count = 0;
    for (int place = 0; place < Pack<Real>::size; ++place) {
        found[count] = place;
        count += peaks.tops[place] > bar;
    }
    count = smaller_of(count, limit);
    for (int q = 0; q < count; ++q) found[q] = position(r, peaks, found[q]);
    return count;
}

// Position of the highest peak.
template <class Real>
int highest_position(const Real* r, const Peaks<Real>& peaks) {
    const Real top = highest_peak(peaks);
    int place = 0;
    while (peaks.tops[place] < top) ++place;
    return position(r, peaks, place);
}

// Positions of entries above a bar, among the n rows that there are: padding may be above it where scores are
// huge. Their number.
template <class Real>
int above(const Real* r, const Peaks<Real>& peaks, int n, Real bar, int* found) {
    int count = 0;
    for (int j = 0; j < (highest_peak(peaks) > bar ? n : 0); ++j) {
        found[count] = j;
        count += r[j] > bar;
    }
    return count;
}

inline double squared_distance(const double* a, const double* center, const double* weights,
                               int wide) {
    Doubles s = Doubles::all(0.0);
    for (int i = 0; i < wide; i += 8) {
        const Doubles t = Doubles::load(a + i) - Doubles::load(center + i);
        s = s + Doubles::load(weights + i) * t * t;
    }
    return total(s);
}

inline double weighted_square(const double* a, const double* weights, int wide) {
    Doubles s = Doubles::all(0.0);
    for (int i = 0; i < wide; i += 8) {
        const Doubles t = Doubles::load(a + i);
        s = s + Doubles::load(weights + i) * t * t;
    }
    return total(s);
}

// The nearest centroid, and whether the model's own rounding could see another one.
struct Nearest {
    int label;
    bool doubtful;
};

// The nearest centroid of the point in w.s.a by the direct formula, where scores say nothing.
template <class Real>
Nearest nearest_of_all(const Rows<Real>& rows, const Workspace<Real>& w) {
    int label = 0;
    double best = INF;
    for (int j = 0; j < rows.count; ++j) {
        const double s = squared_distance(w.s.a, rows.centers + j * rows.wide, rows.weights, rows.wide);
        if (s < best) {
            best = s;
            label = j;
        }
    }
    return {label, true};
}

// The two highest scores in each place of a pack so far, and whose the highest is.
template <class Real>
struct Highest {
    using P = Pack<Real>;
    P top = P::all(-std::numeric_limits<Real>::infinity()), second = top, label = P::all(0);

    void see(P score, P whose) {
        label = if_less(top, score, whose, label);
        second = larger(second, smaller(score, top));
        top = larger(top, score);
    }
};

// The nearest centroid of the point in w.s.a. |a - m_j|^2 falls by 2 where s_j - |m_j|^2 / 2 rises by 1;
// all that come within rounding of the highest are judged by the direct formula.
template <class Real>
Nearest nearest_of(const Rows<Real>& rows, double span, const Real* score, const Workspace<Real>& w) {
    using P = Pack<Real>;
    Highest<Real> found;
    for (int j = 0; j < rows.long_; j += P::size)
        found.see(P::load(score + j) - P::load(rows.halves + j), P::all(Real(j)));
    Real tops[P::size], seconds[P::size], starts[P::size];
    found.top.store(tops);
    found.second.store(seconds);
    found.label.store(starts);
    const Real top = highest(found.top);
    int place = 0;
    while (tops[place] < top) ++place;
    tops[place] = seconds[place];
    const Real next = highest(P::load(tops));
    const int first = int(starts[place]) + place;
    const double near = squared_distance(w.s.a, rows.centers + first * rows.wide, rows.weights, rows.wide);
    double size = 0.0;
    if (rows.expanded) size = std::sqrt(weighted_square(w.s.a, rows.weights, rows.wide)) + rows.longest;
    const double unit2 = rows.unit * rows.unit;
    const double slop = 2.0 * (rows.d + 8) * ROUNDING<Real> * (span + 1.0);
    const double window = 2.0 * slop + unit2 * rows.growth * (4.0 * near + size * size);
    double best = near, second = near + 2.0 * (window - slop) / unit2;
    int label = first;
    const Real bar = Real(top - window);
    for (int j = 0; j < (next > bar ? rows.count : 0); ++j) {
        if (j == first || !(score[j] - rows.halves[j] > bar)) continue;
        const double s = squared_distance(w.s.a, rows.centers + j * rows.wide, rows.weights, rows.wide);
        if (s < best || (s == best && j < label)) {
            second = best;
            best = s;
            label = j;
        } else if (s < second) {
            second = s;
        }
    }
    const bool sure = second - best > rows.growth * (best + second + size * size);
    return {label, !sure};
}

// Look at the scores of `some` centroids.
template <int some>
void keep_highest(const Rows<double>& rows, const Block& k, int j, Highest<double>& found) {
    Doubles s[some];
    multiply_lanes<some>(k.x, rows.d, rows.vectors + j, rows.long_, 1, s);
    for (int r = 0; r < some; ++r)
        found.see(Doubles::all(rows.unit) * s[r] - Doubles::all(rows.halves[j + r]), Doubles::all(double(j + r)));
}

// Set the nearest centroid of each point of a block; -1 where scores alone leave it in doubt.
inline void nearest_lanes(const Rows<double>& rows, const double* const* at, Block& k) {
    enter_lanes(rows, rows.origin, at, k);
    const Doubles zero = Doubles::all(0.0);
    Highest<double> found;
    int j = 0;
    for (; j + 4 <= rows.count; j += 4) keep_highest<4>(rows, k, j, found);
    for (; j + 2 <= rows.count; j += 2) keep_highest<2>(rows, k, j, found);
    for (; j < rows.count; ++j) keep_highest<1>(rows, k, j, found);
    const Doubles span = Doubles::all(rows.unit) * root_of(Doubles::load(k.far)), square = span * span,
                  two = Doubles::all(2.0);
    const Doubles slop = Doubles::all(2.0 * (rows.d + 8) * ROUNDING<double>) * (span + Doubles::all(1.0));
    Doubles size = larger(square - two * found.top, zero) + larger(square - two * found.second, zero) +
                   slop + slop;
    if (rows.expanded) {
        const Doubles far = span + Doubles::all(rows.unit * (rows.middle + rows.longest));
        size = size + far * far;
    }
    const Doubles ahead = two * (found.top - found.second - slop),
                  sure = ahead - Doubles::all(4.0 * rows.growth) * size;
    const Doubles label = if_less(zero, sure, found.label, Doubles::all(-1.0));
    if_less(span, Doubles::all(FURTHEST<double>), label, Doubles::all(-1.0)).store(k.own);
}

// Right-hand sides of the target of a point.
template <class Real>
const Real* levels_of(const Rows<Real>& rows, const Point& p) {
    return rows.levels + (rows.pairs ? std::size_t(p.target) * rows.long_ : 0);
}

// Set r of all rows from their scores at some place, and find the peaks.
template <class Real>
void price_scores(const Rows<Real>& rows, const Point& p, const Real* score, Real* out, Workspace<Real>& w) {
    using P = Pack<Real>;
    const Real* level = levels_of(rows, p);
    const P here = P::all(rows.pairs ? score[p.target] : Real(0));
    fill_rows(rows.long_, out, w.peaks, [&](int j, auto& r) {
        for (P& one : r) {
            one = P::load(score + j) - here - P::load(level + j);
            j += P::size;
        }
    });
}

// Collect the rows with a multiplier, and what the step takes of their vectors; how many.
template <class Real>
int shares_of(const Choice& c, Workspace<Real>& w, double& total_share) {
    int kept = 0;
    total_share = 0.0;
    for (int p = 0; p < c.count; ++p) {
        if (!(c.mu[p] > 0.0)) continue;
        const double share = c.mu[p] * c.inverse[p];
        w.among[kept] = c.ids[p];
        w.shares[kept++] = Real(share);
        total_share += share;
    }
    return kept;
}

// Set r of all rows at a step that is a sum of rows, from the table.
template <class Real>
void price_table(const Rows<Real>& rows, const Point& p, Workspace<Real>& w) {
    using P = Pack<Real>;
    double sum = 0.0;
    const int kept = shares_of(w.choice, w, sum);
    const std::size_t next = rows.long_;
    const Real* own = rows.pairs ? rows.table + p.target * next : w.begin;  // listed rows have no share of it
    const Real share_of_own = rows.pairs ? Real(sum) : Real(0);
    Real here = -share_of_own * (rows.pairs ? own[p.target] : Real(0));
    for (int q = 0; q < (rows.pairs ? kept : 0); ++q) here += w.shares[q] * own[w.among[q]];
    const P here_all = P::all(here), own_all = P::all(share_of_own);
    fill_rows(rows.long_, w.r, w.peaks, [&](int j, auto& r) {
        int at = j;
        for (P& one : r) {
            one = P::load(w.begin + at) + here_all + own_all * P::load(own + at);
            at += P::size;
        }
        for (int q = 0; q < kept; ++q) {
            const P share = P::all(w.shares[q]);
            const Real* e = rows.table + w.among[q] * next + j;
            for (P& one : r) {
                one = one - share * P::load(e);
                e += P::size;
            }
        }
    });
    w.error = w.slop + 4.0 * (kept + 8) * ROUNDING<Real> * sum;
}

// Set r of all rows at any step, by products.
template <class Real>
void price_products(const Rows<Real>& rows, const Point& p, Workspace<Real>& w) {
    Real* place = w.block + (BLOCK - 1) * rows.wide;  // scores of the block are taken already
    double s = 0.0;
    for (int i = 0; i < rows.d; ++i) {
        const double t = rows.unit * (rows.scale[i] * (w.s.a[i] - rows.origin[i]) + w.s.y[i]);
        s += t * t;
        place[i] = Real(t);
    }
    multiply<Real, 1>(rows, place, w.t);
    for (int q = 0; q < w.choice.count; ++q) w.t[w.choice.ids[q]] = Real(CHOSEN);
    price_scores(rows, p, w.t, w.r, w);
    const double slop = 2.0 * (rows.d + 8) * ROUNDING<Real> * (std::sqrt(s) + rows.level_size);
    w.error = most(w.slop, slop);
}

// Set r = U (x + y) - h of all rows that are not in the choice, and the error of r, and find the peaks.
template <class Real>
void price_all(const Rows<Real>& rows, const Point& p, Workspace<Real>& w) {
    if (w.moved && (w.boxed || !rows.table))
        price_products(rows, p, w);
    else
        price_table(rows, p, w);
}

// The most room that any row may need for the model's rounding, in the units of r.
template <class Real>
double room_of_all(const Rows<Real>& rows, const Sizes& z) {
    if (!rows.pairs) return room_for(rows.largest, z);
    const double grown = rows.expanded ? rows.growth * rows.longest : 0.0;
    const Guard any = {0.0, INF, grown * rows.longest, 4.0 * rows.eps / rows.unit + 2.0 * grown,
                       rows.growth, 64.0 * EPS / rows.unit};
    return rows.unit * rows.unit * room_for(any, z);
}

// Largest multiple of the step that keeps to row j.
template <class Real>
double reach_of_row(const Rows<Real>& rows, const Point& p, const Workspace<Real>& w, int j,
                    double step) {
    const double* u = nullptr;
    double offset, length = 1.0;
    if (rows.pairs) {
        double* made = w.choice.made + std::size_t(w.choice.count) * rows.wide;
        const Squares s = half_space(rows, p.target, j, made);
        u = made;
        offset = 0.5 * rows.alphas[p.target] * s.spread;
        length = std::sqrt(s.row);
    } else {
        u = rows.u + std::size_t(j) * rows.wide;
        offset = rows.offsets[j];
    }
    const double rise = dot(u, w.s.y, rows.wide);
    return rise > FLAT * step * length ? (offset - dot(u, w.s.x, rows.wide)) / rise : INF;
}

// Set by how much each row would be overshot so far along the step, at most.
template <class Real>
void overshoot(const Rows<Real>& rows, double reach, Workspace<Real>& w) {
    using P = Pack<Real>;
    const P err = P::all(Real(w.error)), slant = P::all(Real(least(reach, 1e6)));
    fill_rows(rows.long_, w.t, w.peaks, [&](int j, auto& r) {
        for (P& one : r) {
            const P start = P::load(w.begin + j), rise = P::load(w.r + j) - start + err + err;
            one = start + err + slant * rise;
            j += P::size;
        }
    });
}

// Largest multiple of the step that keeps to all rows, at most `reach` and at least 1. The row that is
// overshot most ends the step before: after a few turns hardly any row is overshot.
template <class Real>
double reach_of_all(const Rows<Real>& rows, const Point& p, double reach, double step,
                    Workspace<Real>& w) {
    if (!(step > 0.0)) return most(reach, 1.0);
    for (int turn = 0; turn < TURNS; ++turn) {
        overshoot(rows, reach, w);
        if (!(highest_peak(w.peaks) > Real(0))) return most(reach, 1.0);
        const int worst = highest_position(w.t, w.peaks);
        const double one = reach_of_row(rows, p, w, worst, step);
        if (!(one < reach)) break;
        reach = one;
    }
    const int count = above(w.t, w.peaks, rows.count, Real(0), w.found);
    for (int q = 0; q < count; ++q) reach = least(reach, reach_of_row(rows, p, w, w.found[q], step));
    return most(reach, 1.0);
}

}  // namespace VOICECF_SET
}  // namespace voicecf
