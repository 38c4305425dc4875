// Tolerances, status codes, and sums over padded coordinates.
//
// Coordinates stand in arrays of a multiple of 8 numbers, the last ones zero, so that a loop over
// packs has no rest. All tolerances are relative.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "simd.hpp"

namespace voicecf {

enum Status : std::int8_t { OPTIMAL = 0, INFEASIBLE = 1, UNRESOLVED = 2, ALREADY = 3, STOPPED = 5 };

constexpr double INF = std::numeric_limits<double>::infinity();
constexpr double EPS = std::numeric_limits<double>::epsilon();

// The solver's tolerances, all of them relative; those of the Python side are in geometry/tolerance.py.
// A row is tight if it is this close to its right-hand side, as a share of its terms in the step.
constexpr double TIGHT = 4e-15;
// A violation up to this share of a row's terms may be rounding of the input: flat regions are not empty.
constexpr double LOOSE = 1e-12;
// A row depends on others if its part outside of their span is smaller than this.
constexpr double DEPENDENT = 1e-14;
// A pivot below this share of its diagonal sends a point to the active-set method.
constexpr double SINGULAR = 1e-4;
// Newton accepts an answer whose duality gap is at most this share of its cost.
constexpr double CLOSED = 1e-10;
// What is promised of every answer's duality gap.
constexpr double PROMISED = 1e-9;
// A step so many times as long as its answer's distance from the origin is off by rounding that matters.
constexpr double LONG = 1e4;
// Beyond this the squares of an answer overflow.
constexpr double HUGE_SIZE = 1e150;
// A row that rises by less than this share of the step is parallel to it.
constexpr double FLAT = 1e-14;
// Steps below 16 eps of a coordinate's terms are rounding noise: reset to 0.
constexpr double DUST = 16 * EPS;
// Where rounding needs more slack than this share of an answer's distance from the centroid, in the model's own
// metric, the answer is not the nearest point of its cell any more (as in geometry/tolerance.py).
constexpr double COARSE = 0.01;
constexpr int NEWTON_STEPS = 24;

namespace VOICECF_SET {

inline double least(double a, double b) { return a < b ? a : b; }
inline double most(double a, double b) { return a > b ? a : b; }
inline int smaller_of(int a, int b) { return a < b ? a : b; }
inline double clip(double v, double low, double high) { return least(most(v, low), high); }

// Product of two padded arrays.
inline double dot(const double* a, const double* b, int padded) {
    Doubles s = Doubles::all(0.0);
    for (int i = 0; i < padded; i += 8) s = s + Doubles::load(a + i) * Doubles::load(b + i);
    return total(s);
}

// Sum of the absolute products of two padded arrays.
inline double dot_of_sizes(const double* a, const double* b, int padded) {
    Doubles s = Doubles::all(0.0);
    for (int i = 0; i < padded; i += 8) {
        const Doubles t = Doubles::load(a + i) * Doubles::load(b + i);
        s = s + larger(t, Doubles::all(0.0) - t);
    }
    return total(s);
}

// y += factor * a
inline void add_to(double* y, double factor, const double* a, int padded) {
    const Doubles f = Doubles::all(factor);
    for (int i = 0; i < padded; i += 8)
        (Doubles::load(y + i) + f * Doubles::load(a + i)).store(y + i);
}

inline Doubles size_of(Doubles v) { return larger(v, Doubles::all(0.0) - v); }

inline Doubles root_of(Doubles v) {
    double held[8];
    v.store(held);
    for (double& h : held) h = std::sqrt(h);
    return Doubles::load(held);
}

// Store a pack in either precision.
inline void store_as(Doubles v, double* to) { v.store(to); }
inline void store_as(Doubles v, float* to) {
    double held[8];
    v.store(held);
    for (int i = 0; i < 8; ++i) to[i] = float(held[i]);
}

// Copy d numbers to or from a padded array.
inline void copy_line(const double* from, double* to, int d) {
    int i = 0;
    for (; i + 8 <= d; i += 8) Doubles::load(from + i).store(to + i);
    for (; i < d; ++i) to[i] = from[i];
}

inline void fill(double* y, double value, int n) {
    for (int i = 0; i < n; ++i) y[i] = value;
}

}  // namespace VOICECF_SET
}  // namespace voicecf
