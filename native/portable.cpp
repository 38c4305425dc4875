// Every kernel on fixed problems, and a hash of the bits of its answers; without Python.
//
// `make portable` compiles this for other processors, and compares what it prints: each instruction set,
// compiler and machine has to give the same bits. Numbers come from Knuth's generator x' = a x + c mod 2^64.
// Regions are bounded, flat and empty ones, so that blocks, Newton and the active-set method all have
// work; the counts of each status say so.

#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <vector>

#include "instructions.hpp"
#include "prepare.hpp"

namespace voicecf {
namespace {

using Line = std::vector<double>;
using Wholes = std::vector<std::int64_t>;

struct Numbers {
    std::uint64_t state = 1;

    std::uint64_t next() { return state = state * 6364136223846793005u + 1442695040888963407u; }
    std::int64_t below(int n) { return std::int64_t((next() >> 33) % std::uint64_t(n)); }
    double between(double low, double high) { return low + (high - low) * (double(next() >> 11) * 0x1p-53); }
    Line line(std::size_t n, double low, double high) {
        Line out(n);
        for (double& v : out) v = between(low, high);
        return out;
    }
    Wholes indices(std::size_t n, int size) {
        Wholes out(n);
        for (std::int64_t& v : out) v = below(size);
        return out;
    }
};

// Fowler, Noll and Vo's hash of the bytes of arrays.
template <class... Arrays>
std::uint64_t hash_of(const Arrays&... arrays) {
    std::uint64_t hash = 14695981039346656037u;
    const auto add = [&](const auto& values) {
        const auto* bytes = reinterpret_cast<const unsigned char*>(values.data());
        for (std::size_t i = 0; i < values.size() * sizeof(values[0]); ++i)
            hash = (hash ^ bytes[i]) * 1099511628211u;
    };
    (add(arrays), ...);
    return hash;
}

// A line of the output; with the status of answers, how many there are of each.
void print(const char* name, int a, int b, std::uint64_t hash, const std::vector<std::int8_t>& status = {}) {
    int counts[6] = {};
    for (std::int8_t s : status) ++counts[s];
    std::printf("%-10s %4d %3d  %016" PRIx64, name, a, b, hash);
    for (int q = 0; q < (status.empty() ? 0 : 6); ++q) std::printf(" %4d", counts[q]);
    std::printf("\n");
}

// Arrays for n answers.
struct Answers {
    Line points, multipliers, gap, reach, cost, copies;
    Wholes source;
    std::vector<std::int8_t> status;
    std::vector<std::uint8_t> close;
    Results view;

    Answers(int n, int d, int width, bool tells)
        : points(n * d), multipliers(std::size_t(n) * width), gap(n), reach(n), cost(n),
          copies(n * d), source(n), status(n), close(n), view{} {
        view.points = points.data();
        view.multipliers = multipliers.data();
        view.gap = gap.data();
        view.reach = reach.data();
        view.status = status.data();
        view.close = reinterpret_cast<bool*>(close.data());
        view.width = width;
        if (!tells) return;
        view.source = source.data();
        view.cost = cost.data();
        view.copies = copies.data();
    }
    void show(const char* name, int a, int b) const {
        const std::uint64_t hash = hash_of(points, multipliers, gap, reach, cost, copies, source);
        print(name, a, b, hash, status);
    }
};

void project(const Kernels& k, const Prepared& rows, const Batch& batch, const Results& out, int n) {
    if (rows.single)
        k.project_many(rows.many, batch, out, {0, n});
    else
        k.project(rows.few, batch, out, {0, n});
}

// Points of k clusters onto their cells, and their nearest centroids.
void cells(const Kernels& kernels, int k, int d, double side) {
    Numbers numbers;
    const int n = 400;
    const Line centers = numbers.line(std::size_t(k) * d, -1.0, 1.0), alphas(k, 0.9);
    const Line points = numbers.line(n * d, -1.5, 1.5), lo(d, -side), hi(d, side);
    const Wholes targets = numbers.indices(n, k), ranks = numbers.indices(d, d),
                 counts = numbers.indices(n, d + 1);
    Prepared rows;
    rows.weights = numbers.line(d, 0.1, 1.0);
    rows.delta = 1e-3;
    rows.growth = 64 * EPS;
    rows.eps = EPS;
    rows.expanded = k % 2;
    rows.pair(k, d, centers.data(), alphas.data());
    Batch batch{points.data(), nullptr, targets.data(), lo.data(), hi.data(), false, false, nullptr, nullptr};
    Answers told(n, d, 0, true), ranked(n, d, k, false);
    project(kernels, rows, batch, told.view, n);
    told.show("cells", k, d);
    batch.ranks = ranks.data();
    batch.counts = counts.data();
    project(kernels, rows, batch, ranked.view, n);
    ranked.show("ranked", k, d);
    Wholes labels(n);
    std::vector<std::uint8_t> doubtful(n);
    bool* doubts = reinterpret_cast<bool*>(doubtful.data());
    if (rows.single)
        kernels.nearest_many(rows.many, points.data(), labels.data(), doubts, {0, n});
    else
        kernels.nearest(rows.few, points.data(), labels.data(), doubts, {0, n});
    print("nearest", k, d, hash_of(labels, doubtful));
}

// Unit rows, `low` or more away from the origin. A flat region lies between two opposite rows.
void list(Numbers& numbers, int m, int d, double low, bool flat, Prepared& rows) {
    Line u = numbers.line(std::size_t(m) * d, -1.0, 1.0), offsets = numbers.line(m, low, 1.0), guard(6 * m);
    for (int j = 0; j < m; ++j) {
        double square = 0.0;
        for (int i = 0; i < d; ++i) {
            if (flat && j == 1) u[d + i] = -u[i];
            square += u[j * d + i] * u[j * d + i];
        }
        if (flat && j == 1) offsets[1] = -offsets[0];
        for (int i = 0; i < d; ++i) u[j * d + i] /= std::sqrt(square);
        guard[m + j] = INF;
        guard[5 * m + j] = flat ? 0.0 : 1e-15;  // a flat region has no room for rounding
    }
    const int wide = padded(d, 8);
    rows.scale.assign(wide, 1.0);
    rows.origin.assign(wide, 0.0);
    for (int i = 0; i < d; ++i) rows.scale[i] = numbers.between(0.5, 2.0);
    rows.list(m, d, u.data(), offsets.data(), guard.data());
}

// Points onto the region of listed rows, each with a box of its own; and the ranked coordinates they need.
void regions(const Kernels& kernels, int m, int d, double low, bool flat) {
    Numbers numbers;
    const int n = 300;
    Prepared rows;
    list(numbers, m, d, low, flat, rows);
    const Line points = numbers.line(n * d, -3.0, 3.0), lo = numbers.line(n * d, -2.0, -0.5),
               hi = numbers.line(n * d, 0.5, 2.0);
    const Batch batch = {points.data(), nullptr, nullptr, lo.data(), hi.data(), true, true, nullptr, nullptr};
    Answers out(n, d, m, false);
    project(kernels, rows, batch, out.view, n);
    out.show("regions", m, d);
    Wholes order(d), floor(n);
    for (int i = 0; i < d; ++i) order[i] = d - 1 - i;
    kernels.prefix_floors(rows.few, {order.data(), d, d, floor.data()}, batch, {0, n});
    print("floors", m, d, hash_of(floor));
}

// The best choices of a number, a listed grid, a long grid and a category of three levels, of which the first and
// the last belong together.
void searches(const Kernels& kernels, int m, bool fewest, bool priced) {
    Numbers numbers;
    const int n = 60, d = 6;
    const Column columns[] = {
        {0, 1, ANY, 0, 0, 0}, {1, 1, GRID, 0, 4, 0}, {2, 1, GRID, 4, 0, 0}, {3, 3, LEVELS, 4, 3, 0}};
    const Line listed = {-1.0, -0.25, 0.5, 2.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0};
    const Line pitches = {0.0, 0.0, 0.0, 0.0, -1.0, 0.125, 0.0, 0.0}, lo(d, -1.5), hi(d, 1.5);
    const std::vector<std::uint8_t> stay(4, 1), allowed(3, 1), locked(4, 0);
    const Wholes least = {0, 0, 0, 0}, most = {0, 3, 16, 0};
    Prepared rows;
    list(numbers, m, d, 0.0, false, rows);
    const Line points = numbers.line(n * d, -1.0, 1.0);
    Wholes order(n);
    for (int q = 0; q < n; ++q) order[q] = q;
    const Batch batch{points.data(), order.data(), nullptr, lo.data(), hi.data(),
                      false,         false,        nullptr, nullptr};
    Rules rules{};
    rules.columns = columns;
    rules.many = 4;
    rules.levels = 3;
    rules.listed_size = int(listed.size());
    rules.listed = listed.data();
    rules.pitches = pitches.data();
    rules.stay = stay.data();
    rules.allowed = allowed.data();
    rules.locked = locked.data();
    rules.least = least.data();
    rules.most = most.data();
    rules.lo = lo.data();
    rules.hi = hi.data();
    rules.changes = 4;
    rules.fewest = fewest;
    rules.limit = 500;
    const Line up(d, 1.0), down(d, 0.5), fees = {0.5, 2.0, 1.0};
    if (priced) {
        rules.up = up.data();
        rules.down = down.data();
        rules.fees = fees.data();
    }
    const Union unions[] = {{0, 2, 3}};
    const Place places[] = {{0, 0, false}, {3, 3, true}};
    const Side sides[] = {{-2.0, -0.5, -2.0, -0.5, 0, -1, 0, 0}, {-0.5, 0.25, -0.5, 0.25, 0, -1, 0, 0},
                          {0.25, 2.0, 0.25, 2.0, 0, -1, 0, 0},   {-INF, INF, INF, -INF, 0, -1, 0, 1},
                          {-INF, INF, INF, -INF, 0, -1, 1, 3},   {-INF, INF, INF, -INF, 0, -1, 3, 5}};
    const Wholes levels = {0, 0, 1, 1, 2};
    const Line own(2, -1.0);
    rules.unions = {1, 2, 6, unions, places, sides, levels.data(), own.data(), false};
    Line found(n * d), gap(n), reach(n);
    Wholes changes(n), nodes(n);
    std::vector<std::int8_t> status(n);
    std::vector<std::uint8_t> close(n);
    bool* closes = reinterpret_cast<bool*>(close.data());
    const Found out = {found.data(), gap.data(),     reach.data(), status.data(),
                       closes,       changes.data(), nodes.data(), nullptr};
    kernels.branch(rows.few, batch, rules, out, {0, n});
    print(priced ? "priced" : "searches", m, fewest, hash_of(found, gap, reach, changes, nodes), status);
}

// Passes of k-means over a table, and the size of changes.
void passes(const Kernels& kernels, int k, int d) {
    Numbers numbers;
    const int n = 1500;
    const Line X = numbers.line(n * d, -1.0, 1.0), mass = numbers.line(n, 0.5, 2.0),
               centers = numbers.line(k * d, -1.0, 1.0), weights = numbers.line(d, 0.0, 1.0),
               answers = numbers.line(n * d, -1.0, 1.0);
    const Table table = {X.data(), mass.data(), centers.data(), weights.data(), d, k};
    std::vector<std::int32_t> labels(n);
    Line closest(n), sums(k * d), totals(k), around(k * d), all(std::size_t(n) * k);
    kernels.lloyd_nearest(table, labels.data(), closest.data(), {0, n});
    kernels.lloyd_sweep(table, n, {centers.data(), sums.data(), totals.data(), around.data()});
    kernels.lloyd_distances(table, all.data(), {0, n});
    print("lloyd", k, d, hash_of(labels, closest, sums, totals, around, all));
    const Wholes rows = numbers.indices(n, n);
    Line cost(n), energy(n);
    kernels.measure({rows.data(), X.data(), answers.data(), weights.data(), weights.data(), cost.data(),
                     energy.data(), d},
                    {0, n});
    print("measure", k, d, hash_of(cost, energy));
}

void run(const Kernels& kernels) {
    for (const double side : {0.7, INF})
        for (const auto& [k, d] : {std::pair{3, 13}, {10, 20}, {40, 6}, {90, 7}, {300, 3}})
            cells(kernels, k, d, side);
    for (const double low : {0.01, -0.01, -0.2})
        for (const bool flat : {false, true})
            for (const auto& [m, d] : {std::pair{5, 4}, {30, 6}, {60, 11}, {90, 9}})
                regions(kernels, m, d, low, flat);
    for (const bool fewest : {false, true})
        for (const int m : {2, 4, 9}) searches(kernels, m, fewest, false);
    for (const int m : {2, 4, 9}) searches(kernels, m, false, true);
    for (const auto& [k, d] : {std::pair{2, 1}, {8, 3}, {70, 17}}) passes(kernels, k, d);
}

}  // namespace
}  // namespace voicecf

int main() {
    const voicecf::InstructionSet set = voicecf::chosen_set();
    const std::atomic<bool> never{false};
    voicecf::interrupt.flag = &never;
    std::fprintf(stderr, "%s\n", set.name);
    voicecf::run(*set.kernels);
    return 0;
}
