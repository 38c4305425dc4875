// Loops over answers: the size of a change, ranked prefixes.
//
// Prefixes: with only the first r columns of an order free to move, a single row can hold only if its
// least value over the box does; the least r for which all rows could, one by one, is a lower bound.
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
                   std::int64_t stop, double* x) {
    double* excess = x + rows.wide;
    for (std::int64_t p = start; p < stop && !interrupted(); ++p) {
        const std::int64_t at = (batch.rows ? batch.rows[p] : p);
        const double *a = batch.points + at * f.d, *lo = batch.lo + (batch.own_lo ? at * f.d : 0),
                     *hi = batch.hi + (batch.own_hi ? at * f.d : 0);
        for (int i = 0; i < f.d; ++i) x[i] = rows.scale[i] * (a[i] - rows.origin[i]);
        for (int j = 0; j < rows.count; ++j) {
            const double* u = rows.u + std::size_t(j) * rows.wide;
            const double h = rows.offsets[j];
            excess[j] = dot(u, x, rows.wide) - h - LOOSE * (std::fabs(h) + dot_of_sizes(u, x, rows.wide));
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

}  // namespace VOICECF_SET
}  // namespace voicecf
