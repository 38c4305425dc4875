// SHARK's passes: nearest centre, and what is added up for each cluster.
//
// Distances are sum_v w_v (x_v - m_v)^2, summed in feature order; a tie goes to the lowest index. Rows
// are added up one by one in their order. SHARK's restarts can end so close to one another that the
// last bits of these sums decide which one wins, so their order is part of the result.
#pragma once

#include "interrupt.hpp"
#include "numbers.hpp"

namespace voicecf {

// Rows to cluster, each with its mass, and the metric and centres of a pass.
struct Table {
    const double *X, *mass, *centers, *weights;
    int d, k;
};

// What a pass adds up for each cluster: its rows times their mass, its mass, and the squared
// deviations of its rows from its origin, times their mass.
struct Sums {
    const double* origins;
    double *sums, *totals, *around;
};

namespace VOICECF_SET {

// Rows in flight: their features are turned, so that loops run over rows.
constexpr int LLOYD_ROWS = 64;
// Rows that are assigned before they are added up, few enough to stay in a cache.
constexpr int STRIP = 1024;

// Copy rows start to stop into columns; columns beyond repeat the last row.
inline void turn(const Table& t, std::int64_t start, std::int64_t stop, double* block) {
    for (int first = 0; first < LLOYD_ROWS; first += 8) {
        const double* lines[8];
        for (int q = 0; q < 8; ++q) {
            const std::int64_t at = start + first + q;
            lines[q] = t.X + (at < stop ? at : stop - 1) * t.d;
        }
        turn_lines(lines, t.d, block + first, LLOYD_ROWS);
    }
}

// Distances of 16 rows of the block to `many` centres.
template <int many>
inline void distances_to(const Table& t, const double* block, int j, Doubles (&s)[many][2]) {
    for (int c = 0; c < many; ++c) s[c][0] = s[c][1] = Doubles::all(0.0);
    for (int v = 0; v < t.d; ++v) {
        const Doubles x0 = Doubles::load(block + v * LLOYD_ROWS),
                      x1 = Doubles::load(block + v * LLOYD_ROWS + 8);
        const Doubles w = Doubles::all(t.weights[v]);
#pragma GCC unroll 4
        for (int c = 0; c < many; ++c) {
            const Doubles m = Doubles::all(t.centers[std::size_t(j + c) * t.d + v]);
            const Doubles t0 = x0 - m, t1 = x1 - m;
            s[c][0] = s[c][0] + w * (t0 * t0);
            s[c][1] = s[c][1] + w * (t1 * t1);
        }
    }
}

// The nearest centre of 16 rows so far.
struct Closest {
    Doubles distance[2], label[2];
};

template <int many>
inline void keep_nearer(const Table& t, const double* block, int j, Closest& best) {
    Doubles s[many][2];
    distances_to<many>(t, block, j, s);
#pragma GCC unroll 4
    for (int c = 0; c < many; ++c) {
        const Doubles name = Doubles::all(double(j + c));
        for (int half = 0; half < 2; ++half) {
            const Doubles least_yet = best.distance[half];
            best.label[half] = if_less(s[c][half], least_yet, name, best.label[half]);
            best.distance[half] = if_less(s[c][half], least_yet, s[c][half], least_yet);
        }
    }
}

// Write label and distance of rows start to stop; `block` holds d columns of 64 rows.
inline void nearest_rows(const Table& t, std::int64_t start, std::int64_t stop, std::int32_t* labels,
                         double* closest, double* block) {
    for (std::int64_t first = start; first < stop && !interrupted(); first += LLOYD_ROWS) {
        turn(t, first, stop, block);
        for (int q = 0; q < LLOYD_ROWS && first + q < stop; q += 16) {
            Closest best;
            for (int half = 0; half < 2; ++half) {
                best.distance[half] = Doubles::all(INF);
                best.label[half] = Doubles::all(0.0);
            }
            int j = 0;
            for (; j + 3 <= t.k; j += 3) keep_nearer<3>(t, block + q, j, best);
            for (; j < t.k; ++j) keep_nearer<1>(t, block + q, j, best);
            double label[16], distance[16];
            for (int half = 0; half < 2; ++half) {
                best.label[half].store(label + 8 * half);
                best.distance[half].store(distance + 8 * half);
            }
            for (int i = 0; i < 16 && first + q + i < stop; ++i) {
                labels[first + q + i] = std::int32_t(label[i]);
                closest[first + q + i] = distance[i];
            }
        }
    }
}

// Write the weighted distance of rows start to stop to every centre.
inline void distances(const Table& t, std::int64_t start, std::int64_t stop, double* out,
                      double* block) {
    for (std::int64_t first = start; first < stop && !interrupted(); first += LLOYD_ROWS) {
        turn(t, first, stop, block);
        for (int q = 0; q < LLOYD_ROWS && first + q < stop; q += 16)
            for (int j = 0; j < t.k; ++j) {
                Doubles s[1][2];
                double distance[16];
                distances_to<1>(t, block + q, j, s);
                s[0][0].store(distance);
                s[0][1].store(distance + 8);
                for (int i = 0; i < 16 && first + q + i < stop; ++i)
                    out[(first + q + i) * t.k + j] = std::sqrt(distance[i]);
            }
    }
}

inline void add_row(const Table& t, std::int64_t row, std::int32_t label, const Sums& out) {
    const std::size_t at = std::size_t(label) * t.d;
    const double m = t.mass[row], *x = t.X + row * t.d, *origin = out.origins + at;
    double *sum = out.sums + at, *around = out.around + at;
    out.totals[label] += m;
    for (int v = 0; v < t.d; ++v) {
        const double s = x[v] - origin[v];
        sum[v] += m * x[v];
        around[v] += m * (s * s);
    }
}

// Assign n rows, and add them up one by one while they are still in a cache.
inline void sweep_rows(const Table& t, std::int64_t n, const Sums& out, double* block) {
    std::int32_t labels[STRIP];
    double closest[STRIP];
    Table strip = t;
    for (std::int64_t first = 0; first < n; first += STRIP) {
        const std::int64_t length = first + STRIP < n ? STRIP : n - first;
        strip.X = t.X + first * t.d;
        strip.mass = t.mass + first;
        nearest_rows(strip, 0, length, labels, closest, block);
        if (interrupted()) return;  // some rows have no label
        for (std::int64_t i = 0; i < length; ++i) add_row(strip, i, labels[i], out);
    }
}

}  // namespace VOICECF_SET
}  // namespace voicecf
