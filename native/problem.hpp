// What the solver reads and writes: rows, points and their boxes, working memory, results.
//
// Everything is in steps: for a point a, a region {G (z - o) <= h, lo <= z <= hi} and a metric q, the
// step y = sqrt(q) (z - a) solves
//
//     min 1/2 |y|^2   with   U y <= b,   low <= y <= high,
//
// where U has unit rows, so that a slack is a distance in the metric, and b is the slack of a. In
// steps every number is relative to the move that is asked for, so an answer close to its row is as
// exact as one far away.
//
// Rows come in two kinds. *Listed* rows are the unit rows of one region. *Pairs* are the rows of
// the cells of k clusters: row j of the cell of t is e_j - e_t, a difference of vectors that each
// cluster has once, and it is made from the centroids when it is needed.
//
// These are plain records of pointers. Arrays over coordinates are padded to `wide` (see numbers.hpp),
// arrays over rows to `long_`.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numbers.hpp"

namespace voicecf {

using Whole = std::int64_t;

// Slack that a row needs so that a model's own arithmetic agrees with an answer: `behind` is how far
// the true boundary lies behind the row, `share` the most slack that it can give, as a share of |z - o|; the rest
// are shares of 1, |z|, |z - o|^2 and |z - a|. Rows are moved inwards once, before a point is solved, by what its
// answer is expected to need; an answer that turns out to have less is marked as close.
struct Guard {
    double behind, share, constant, of_size, of_square, of_step;
};

// Unit rows of all targets, one after the other, and their products, where there is room for them.
struct StoredRows {
    int m, targets;
    const double *u, *grams, *offsets, *norms, *aways;
    const Guard* guards;
};

template <class Real>
struct Rows {
    int count;   // rows, or clusters
    int d, wide; // coordinates, and padded
    int long_;   // rows, padded
    bool pairs;
    const double *scale, *inverse; // sqrt of the metric, and one over it
    const double* origin;          // where rows are measured from, or the middle
    // What pricing reads: in units in which vectors have length 1 at most.
    const Real* vectors;  // (d, long_), transposed
    const Real* levels;   // (targets or 1, long_): right-hand sides
    const Real* table;    // (count, long_): products of vectors, or null
    const Real* halves;   // (long_): half the squared length of each centroid
    double unit, level_size;
    Guard largest;  // listed: the most that any row needs
    StoredRows stored;  // u is null where there are none
    // Listed rows.
    const double *u, *offsets;
    const Guard* guards;
    // Pairs.
    const double *centers, *weights, *pull, *alphas, *lengths;
    double longest, middle, growth, eps;  // lengths of the longest centroid and of the middle
    bool expanded;
};

// Points, which of them, and their boxes: one for all, or one each. With ranks and counts, coordinates
// whose rank is not below the count of a problem keep their values.
struct Batch {
    const double* points;
    const std::int64_t *rows, *targets;  // null: in order; listed rows have no target
    const double *lo, *hi;
    bool own_lo, own_hi;
    const std::int64_t *ranks, *counts;  // null: all may move
    double factor = 1.0;                 // of the slack that rows keep; below 1 all answers are close
    const double *up = nullptr, *down = nullptr;  // prices of coordinates, where the least price is asked for

    bool one_box() const { return !own_lo && !own_hi && !ranks; }
};

// Where answers are written. What is null is not asked for.
struct Results {
    double *points, *multipliers, *gap, *reach;
    std::int8_t* status;
    bool* close;         // whether the model's rounding may see an answer elsewhere
    std::int64_t width;  // multipliers of an answer
    std::int64_t* source;
    double *cost, *copies;
};

// The rows that matter to a point, some of all, in double precision.
struct Choice {
    int count, known, limit, rank;
    int factored;  // how many of the active rows are factored in h
    int stuck;     // place among the active rows of one that depends on those before it, or -1
    int *ids, *act;
    const double** rows;
    double* made;  // room for rows that are made from pairs
    double *b, *base, *mu, *residual, *inverse;
    Guard* guards;
    double *gram, *h, *rhs;
};

// One point and its problem, in steps.
struct Point {
    const double *at, *lo, *hi;
    int target;
    double size, far;                     // |scale a| and |x|^2
    const std::int64_t* ranks = nullptr;  // null: all coordinates may move
    std::int64_t count = 0;               // coordinates of this rank and above keep their values
};

// A point and its step, coordinate by coordinate, padded: the point as it is (a), from the rows'
// origin and scaled (x), scaled only (placed); its box, as it is and as bounds of the step; the step,
// the answer, and room for a row.
struct Steps {
    int d, wide;
    double *a, *x, *placed, *lo, *hi, *low, *high, *y, *z, *free;
};

// How large an answer and its step are, and its squared distance from the rows' origin.
struct Sizes {
    double size, step, square;
};

// Working memory of the active-set method: all rows of one region.
struct ActiveSet {
    int m, d, wide, rank;
    const double *u, *offsets;
    const Guard* guards;
    double *made, *made_offsets, *made_inverse;
    Guard* made_guards;
    double *b, *base, *mu, *r, *tol;
    double *frame, *tri;
    int* work;
    std::int8_t* state;
};

// Working memory of a block of eight points. `at` holds the points one after the other, padded; `x`, and
// what there is of each row, have the eight points side by side. `free` has the rows of a cell on the coordinates
// that may move, and `products` theirs with each other, where not all may. `low` and `high` bound the steps y along
// one row each, `row`; `lows` and `highs` are the same bounds, one point after the other, as are the boxes `lo` and
// `hi` of points that have their own.
struct Block {
    double far[8], lack[8], pick[8], next[8], along[8], lead[8], own[8], off[8], gap[8], reach[8];
    double size[8], step[8], square[8];
    double *at, *x, *base, *b, *inner, *rise, *mu, *free, *products;
    double *lo, *hi, *low, *high, *y, *row, *lows, *highs;
    bool some[8];     // whether the box of a point is not empty
    bool several[8];  // whether more than the most violated row may have a multiplier
    int *order, *starts;
};

constexpr int BLOCK = 8;  // points whose scores are computed together

// The largest of the entries that have the same place in their packs, and the first position of the packs among which
// it is.
template <class Real>
struct Peaks {
    Real tops[64 / sizeof(Real)], starts[64 / sizeof(Real)];
};

template <class Real>
struct Workspace {
    Steps s;
    Real *block, *scores, *r, *t, *shares;
    Peaks<Real> peaks;
    double spans[BLOCK];
    int *found, *among;
    Real* begin;  // r of the point at hand before its step; its scores, until it is solved
    double slop, error;
    double factor;  // that of the batch
    Sizes seen;     // of an answer that had too little slack; 0 where there was none
    bool boxed, moved, close;
    bool some, bounded;       // whether the box is not empty, and whether it has a side at all
    Block lanes;
    Choice choice;
    ActiveSet hard;
    int made_for;  // whose rows `hard` holds
};

}  // namespace voicecf
