// Loops over answers and pairs: the size of a change, ranked prefixes, the pairwise point.
//
// Prefixes: with only the first r columns of an order free to move, a single row can hold only if its
// least value over the box does; the least r for which all rows could, one by one, is a lower bound.
//
// Pairwise: for a row a of cluster s and a target t, the point on the bisector of their centroids is
//
//     z = a + c (m_t - m_s),   c = ((|m_t|^2 - |m_s|^2) / 2 - a . (m_t - m_s)) / |m_t - m_s|^2,
//
// so that the dot products of a with the centroids say all about it; z itself is never written.
#pragma once

#include "interrupt.hpp"
#include "problem.hpp"

namespace voicecf {

struct Measure {
    const std::int64_t* rows;
    const double *points, *answers, *weights, *metric;
    double *cost, *energy;
    int d;
};

struct Prefixes {
    const std::int64_t* order;
    int length, d;
    std::int64_t* floor;
};

struct Pairwise {
    const double *X, *origin, *centers, *gram, *answers;
    const std::int64_t *labels, *rows;
    int d, k, target;
    double slack;
};

namespace VOICECF_SET {

// Cost in the weights and energy in the metric of answers.
inline void measure_chunk(const Measure& m, std::int64_t start, std::int64_t stop) {
    for (std::int64_t p = start; p < stop; ++p) {
        const double *a = m.points + m.rows[p] * m.d, *z = m.answers + p * m.d;
        double cost = 0.0, energy = 0.0;
        for (int i = 0; i < m.d; ++i) {
            const double t = z[i] - a[i];
            cost += m.weights[i] * t * t;
            energy += m.metric[i] * t * t;
        }
        m.cost[p] = cost;
        m.energy[p] = energy;
    }
}

// Least number of ranked coordinates without which some single row cannot hold; d + 1 if never. A
// coordinate outside of its own bounds has to be among them, for it cannot stay where it is.
template <class Real>
void prefix_floors(const Rows<Real>& rows, const Prefixes& f, const Batch& batch, std::int64_t start,
                   std::int64_t stop, double* excess) {
    for (std::int64_t p = start; p < stop && !interrupted(); ++p) {
        const std::int64_t at = (batch.rows ? batch.rows[p] : p);
        const double *a = batch.points + at * f.d, *lo = batch.lo + (batch.own_lo ? at * f.d : 0),
                     *hi = batch.hi + (batch.own_hi ? at * f.d : 0);
        for (int j = 0; j < rows.count; ++j) {
            const double* u = rows.u + std::size_t(j) * rows.wide;
            double s = 0.0, terms = std::fabs(rows.offsets[j]);
            for (int i = 0; i < f.d; ++i) {
                const double t = u[i] * rows.scale[i] * (a[i] - rows.origin[i]);
                s += t;
                terms += std::fabs(t);
            }
            excess[j] = s - rows.offsets[j] - LOOSE * terms;
        }
        int fewest = 1, r = 0;
        for (int q = 0; q < f.length; ++q) {
            const std::int64_t i = f.order[q];
            if (a[i] < lo[i] || a[i] > hi[i]) fewest = q + 1;
        }
        bool held = false;
        for (; r < f.length && !(held && r >= fewest); ++r) {
            const std::int64_t i = f.order[r];
            const double low = rows.scale[i] * (lo[i] - a[i]), high = rows.scale[i] * (hi[i] - a[i]);
            held = true;
            for (int j = 0; j < rows.count; ++j) {
                const double u = rows.u[std::size_t(j) * rows.wide + i];
                if (u != 0.0) excess[j] += u * (u > 0.0 ? low : high);
                held = held && excess[j] <= 0.0;
            }
        }
        f.floor[p] = held ? (r > fewest ? r : fewest) : f.d + 1;
    }
}

// Dot products of a row with every centroid.
inline void products_with(const Pairwise& w, const double* x, double* out) {
    for (int j = 0; j < w.k; ++j) {
        double s = 0.0;
        for (int i = 0; i < w.d; ++i) s += (x[i] - w.origin[i]) * w.centers[j * w.d + i];
        out[j] = s;
    }
}

// Multiple of m_t - m_s that takes a row to the bisector; 0 where the centroids coincide.
inline double bisector_step(const Pairwise& w, const double* dots, int s, int t) {
    const double tt = w.gram[t * w.k + t], ss = w.gram[s * w.k + s], st = w.gram[s * w.k + t];
    const double square = tt - 2.0 * st + ss;
    return square <= 0.0 ? 0.0 : (0.5 * (tt - ss) - dots[t] + dots[s]) / square;
}

// Whether a third centroid is closer to the pairwise point, by more than the slack.
inline bool misses(const Pairwise& w, const double* dots, int s, int t) {
    const double step = bisector_step(w, dots, s, t);
    const double *from = w.gram + s * w.k, *to = w.gram + t * w.k;
    const double own = to[t] - 2.0 * (dots[t] + step * (to[t] - from[t]));
    for (int j = 0; j < w.k; ++j) {
        if (j == s || j == t) continue;
        const double other = w.gram[j * w.k + j] - 2.0 * (dots[j] + step * (to[j] - from[j]));
        if (own > other + w.slack) return true;
    }
    return false;
}

// Mark in out[row - first, target] the pairs whose pairwise point misses the target's cell.
inline void misses_chunk(const Pairwise& w, std::int64_t first, std::int64_t start, std::int64_t stop,
                         bool* out, double* dots) {
    for (std::int64_t p = start; p < stop && !interrupted(); ++p) {
        const int s = int(w.labels[first + p]);
        products_with(w, w.X + (first + p) * w.d, dots);
        for (int t = 0; t < w.k; ++t) out[p * w.k + t] = t != s && misses(w, dots, s, t);
    }
}

// Write repair cost, relative underestimation and validity of the answers for a target.
inline void repair_chunk(const Pairwise& w, std::int64_t start, std::int64_t stop, double* out,
                         std::int64_t n, double* dots) {
    for (std::int64_t p = start; p < stop; ++p) {
        const std::int64_t row = w.rows[p];
        const int s = int(w.labels[row]), t = w.target;
        const double *x = w.X + row * w.d, *z = w.answers + p * w.d;
        products_with(w, x, dots);
        const double step = bisector_step(w, dots, s, t);
        double repair = 0.0, pairwise = 0.0, full = 0.0;
        for (int i = 0; i < w.d; ++i) {
            const double move = step * (w.centers[t * w.d + i] - w.centers[s * w.d + i]);
            const double whole = z[i] - x[i];
            repair += (whole - move) * (whole - move);
            pairwise += move * move;
            full += whole * whole;
        }
        products_with(w, z, dots);
        bool valid = true;
        for (int j = 0; j < w.k; ++j) {
            const double own = w.gram[t * w.k + t] - 2.0 * dots[t];
            valid = valid && !(own > w.gram[j * w.k + j] - 2.0 * dots[j] + w.slack);
        }
        out[p] = repair;
        out[n + p] = (full - pairwise) / full;
        out[2 * n + p] = valid ? 1.0 : 0.0;
    }
}

}  // namespace VOICECF_SET
}  // namespace voicecf
