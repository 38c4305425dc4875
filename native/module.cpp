// Bindings: they check shapes, release the GIL, and call the loops of this machine's instruction set.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>

#include <atomic>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <utility>

#include "instructions.hpp"
#include "interrupt.hpp"
#include "kernels.hpp"
#include "prepare.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace voicecf {
namespace {

template <class T, int dims>
using Array = nb::ndarray<T, nb::ndim<dims>, nb::c_contig, nb::device::cpu>;
using Matrix = Array<const double, 2>;
using Line = Array<const double, 1>;
using Index = Array<const std::int64_t, 1>;
using Free = nb::call_guard<nb::gil_scoped_release>;

const InstructionSet& here() {
    static const InstructionSet set = chosen_set();
    return set;
}
const Kernels& loops() { return *here().kernels; }

void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

// Whether a signal handler of Python has raised an exception; only the main thread runs handlers.
bool signalled() {
    const nb::gil_scoped_acquire held;
    return PyErr_CheckSignals() != 0;
}

// Raise the exception of the signal handler, or KeyboardInterrupt in a thread of a pool.
[[noreturn]] void raise_interrupt() {
    const nb::gil_scoped_acquire held;
    if (!PyErr_Occurred()) PyErr_SetNone(PyExc_KeyboardInterrupt);
    throw nb::python_error();
}

// Call a loop; raise if it had no memory, or if it was interrupted.
template <class... Parameters, class... Arguments>
void run(bool (*loop)(Parameters...), Arguments&&... arguments) {
    interrupt.begin(signalled);
    if (!loop(std::forward<Arguments>(arguments)...)) throw std::bad_alloc();
    if (interrupt.flag ? interrupt.asked() : interrupt.raised) raise_interrupt();
}

// Flag of a call that works in a pool. A thread that enters it ends its loops as soon as the flag is set.
struct Stop {
    std::atomic<bool> flag{false};

    void enter() const { interrupt.flag = &flag; }
    void leave(nb::args) const { interrupt.flag = nullptr; }
    void set() { flag.store(true, std::memory_order_relaxed); }
    bool is_set() const { return flag.load(std::memory_order_relaxed); }
};

// Arrays of a batch, and the view of them.
struct BatchArrays {
    Matrix points, lo, hi;
    std::optional<Index> rows, targets, ranks, counts;
    Batch view;

    BatchArrays(Matrix points_, Matrix lo_, Matrix hi_, std::optional<Index> rows_,
                std::optional<Index> targets_)
        : points(points_), lo(lo_), hi(hi_), rows(rows_), targets(targets_) {
        const std::size_t n = points.shape(0), d = points.shape(1);
        for (const Matrix* side : {&lo, &hi})
            require(side->shape(1) == d && (side->shape(0) == 1 || side->shape(0) == n),
                    "a batch needs one box, or one a point");
        view = {points.data(), rows ? rows->data() : nullptr, targets ? targets->data() : nullptr,
                lo.data(),     hi.data(),                     lo.shape(0) > 1,
                hi.shape(0) > 1, nullptr,                     nullptr};
    }

    // Let only the coordinates move whose rank is below the count of a problem.
    void limit(Index ranks_, Index counts_) {
        require(ranks_.shape(0) == points.shape(1), "a batch needs one rank a coordinate");
        ranks = ranks_;
        counts = counts_;
        view.ranks = ranks->data();
        view.counts = counts->data();
    }
};

// Arrays that answers are written to.
struct ResultArrays {
    Array<double, 2> points, multipliers;
    Array<double, 1> gap, reach;
    Array<std::int8_t, 1> status;
    std::optional<Array<std::int64_t, 1>> source, changed;
    std::optional<Array<double, 1>> cost;
    std::optional<Line> least;
    std::optional<Array<double, 2>> copies;
    Results view{};

    ResultArrays(Array<double, 2> points_, Array<double, 2> multipliers_, Array<double, 1> gap_,
                 Array<double, 1> reach_, Array<std::int8_t, 1> status_)
        : points(points_), multipliers(multipliers_), gap(gap_), reach(reach_), status(status_) {
        const std::size_t n = points.shape(0);
        require(gap.shape(0) == n && reach.shape(0) == n && status.shape(0) == n &&
                    multipliers.shape(0) == n,
                "results need one entry a point");
        view.points = points.data();
        view.multipliers = multipliers.data();
        view.width = std::int64_t(multipliers.shape(1));
        view.gap = gap.data();
        view.reach = reach.data();
        view.status = status.data();
    }

    // Assign points to their clusters, and measure answers, too.
    void tell(Array<std::int64_t, 1> source_, Array<double, 1> cost_, Array<std::int64_t, 1> changed_,
              Line least_, std::optional<Array<double, 2>> copies_) {
        source = source_;
        cost = cost_;
        changed = changed_;
        least = least_;
        copies = copies_;
        view.source = source->data();
        view.cost = cost->data();
        view.changed = changed->data();
        view.least = least->data();
        view.copies = copies ? copies->data() : nullptr;
    }
};

std::vector<double> wide_line(const Line& values, double filling) {
    std::vector<double> out(values.data(), values.data() + values.shape(0));
    out.resize(padded(int(out.size()), 8), filling);
    return out;
}

std::unique_ptr<Prepared> listed(Matrix u, Line offsets, Line origin, Line scale, Matrix guard) {
    const int m = int(u.shape(0)), d = int(u.shape(1));
    require(int(offsets.shape(0)) == m && int(origin.shape(0)) == d && int(scale.shape(0)) == d &&
                guard.shape(0) == 6 && int(guard.shape(1)) == m,
            "rows, offsets, origin, scale and guard do not fit together");
    auto rows = std::make_unique<Prepared>();
    rows->scale = wide_line(scale, 1.0);
    rows->origin = wide_line(origin, 0.0);
    rows->list(m, d, u.data(), offsets.data(), guard.data());
    return rows;
}

// Shares of a model's rounding: growth of a sum, unit of rounding, and whether squares are expanded.
std::unique_ptr<Prepared> clusters(Matrix centers, Line weights, std::optional<Line> alphas, double delta,
                                   double growth, double eps, bool expanded) {
    const int k = int(centers.shape(0)), d = int(centers.shape(1));
    require(int(weights.shape(0)) == d && (!alphas || int(alphas->shape(0)) == k),
            "centers, weights and alphas do not fit together");
    auto rows = std::make_unique<Prepared>();
    rows->weights.assign(weights.data(), weights.data() + d);
    rows->delta = delta;
    rows->growth = growth;
    rows->eps = eps;
    rows->expanded = expanded;
    rows->pair(k, d, centers.data(), alphas ? alphas->data() : nullptr);
    return rows;
}

void project(const Prepared& rows, const BatchArrays& batch, const ResultArrays& out, std::int64_t start,
             std::int64_t stop) {
    const Span span = {start, stop};
    if (rows.single)
        run(loops().project_many, rows.many, batch.view, out.view, span);
    else
        run(loops().project, rows.few, batch.view, out.view, span);
}

void nearest(const Prepared& rows, const Matrix& points, const Array<std::int64_t, 1>& labels,
             const Array<bool, 1>& doubtful, std::int64_t start, std::int64_t stop) {
    const Span span = {start, stop};
    if (rows.single)
        run(loops().nearest_many, rows.many, points.data(), labels.data(), doubtful.data(), span);
    else
        run(loops().nearest, rows.few, points.data(), labels.data(), doubtful.data(), span);
}

void prefix_floors(const Prepared& rows, const BatchArrays& batch, const Index& order,
                   const Array<std::int64_t, 1>& floor, std::int64_t start, std::int64_t stop) {
    const Prefixes f = {order.data(), int(order.shape(0)), rows.few.d, floor.data()};
    run(loops().prefix_floors, rows.few, f, batch.view, Span{start, stop});
}

// Arrays of answers to measure, and what they are measured by.
struct MeasureArrays {
    Index rows;
    Matrix points, answers;
    Line weights, metric, least;

    void run(const Array<double, 1>& cost, const Array<double, 1>& energy,
             const Array<std::int64_t, 1>& changed, std::int64_t start, std::int64_t stop) const {
        const Measure m = {rows.data(),    points.data(), answers.data(), weights.data(), metric.data(),
                           least.data(),   cost.data(),   energy.data(),  changed.data(),
                           int(points.shape(1))};
        loops().measure(m, {start, stop});
    }
};

// Arrays of the rules of a search.
struct RuleArrays {
    Array<const std::int64_t, 2> columns;
    Line listed;
    Matrix pitches;
    std::optional<Array<const std::uint8_t, 2>> stay, allowed, locked;
    std::optional<Array<const std::int64_t, 2>> least, most;
    std::optional<Matrix> lo, hi;
    std::optional<Array<const double, 3>> rows;
    Rules view{};

    RuleArrays(Array<const std::int64_t, 2> columns_, Line listed_, Matrix pitches_)
        : columns(columns_), listed(listed_), pitches(pitches_) {
        require(columns.shape(1) == 6 && pitches.shape(0) == columns.shape(0) && pitches.shape(1) == 2,
                "columns and pitches do not fit together");
        view.columns = reinterpret_cast<const Column*>(columns.data());
        view.many = int(columns.shape(0));
        view.listed = listed.data();
        view.listed_size = int(listed.shape(0));
        view.pitches = pitches.data();
    }

    // What each row may do, one row for all or one each.
    void allow(Array<const std::uint8_t, 2> stay_, Array<const std::uint8_t, 2> allowed_,
               Array<const std::int64_t, 2> least_, Array<const std::int64_t, 2> most_, Matrix lo_,
               Matrix hi_, Array<const std::uint8_t, 2> locked_) {
        stay = stay_;
        allowed = allowed_;
        least = least_;
        most = most_;
        lo = lo_;
        hi = hi_;
        locked = locked_;
        view.stay = stay->data();
        view.own_stay = stay->shape(0) > 1;
        view.allowed = allowed->data();
        view.own_allowed = allowed->shape(0) > 1;
        view.levels = int(allowed->shape(1));
        view.least = least->data();
        view.own_least = least->shape(0) > 1;
        view.most = most->data();
        view.own_most = most->shape(0) > 1;
        view.lo = lo->data();
        view.own_lo = lo->shape(0) > 1;
        view.hi = hi->data();
        view.own_hi = hi->shape(0) > 1;
        view.locked = locked->data();
        view.own_locked = locked->shape(0) > 1;
    }

    // Rows of every problem of its own, in place of the last ones of all: (problems, rows, d + 1).
    void own_rows(Array<const double, 3> rows_) {
        rows = rows_;
        view.own_rows = rows->data();
        view.own_count = int(rows->shape(1));
    }

    void limit(int changes, bool fewest, std::int64_t nodes) {
        view.changes = changes;
        view.fewest = fewest;
        view.limit = nodes;
    }
};

// Arrays that the search writes to.
struct FoundArrays {
    Array<double, 2> points;
    Array<double, 1> energy, bound, reach;
    Array<std::int8_t, 1> status;
    Array<std::int64_t, 1> changes, nodes;
};

void branch(const Prepared& rows, const BatchArrays& batch, const RuleArrays& rules,
            const FoundArrays& f, std::int64_t start, std::int64_t stop) {
    const Found out = {f.points.data(), f.energy.data(),  f.bound.data(), f.reach.data(),
                       f.status.data(), f.changes.data(), f.nodes.data()};
    run(loops().branch, rows.few, batch.view, rules.view, out, Span{start, stop});
}

// Rows to cluster, and the metric and centres of a pass over them.
struct TableArrays {
    Matrix X;
    Line mass;
    Matrix centers;
    Line weights;
    Table view;

    TableArrays(Matrix X_, Line mass_, Matrix centers_, Line weights_)
        : X(X_), mass(mass_), centers(centers_), weights(weights_) {
        require(centers.shape(1) == X.shape(1) && weights.shape(0) == X.shape(1),
                "rows, centers and weights do not fit together");
        view = {X.data(), mass.data(), centers.data(), weights.data(), int(X.shape(1)),
                int(centers.shape(0))};
    }

    using Labels = Array<std::int32_t, 1>;
    using PerCluster = Array<double, 2>;

    void nearest(const Labels& labels, const Array<double, 1>& closest, std::int64_t start,
                 std::int64_t stop) const {
        run(loops().lloyd_nearest, view, labels.data(), closest.data(), Span{start, stop});
    }
    void sweep(const Matrix& origins, const PerCluster& sums, const Array<double, 1>& totals,
               const PerCluster& around) const {
        require(origins.shape(0) == centers.shape(0) && origins.shape(1) == centers.shape(1) &&
                    mass.shape(0) == X.shape(0),
                "origins and centers, or rows and mass, do not fit together");
        run(loops().lloyd_sweep, view, std::int64_t(X.shape(0)),
            Sums{origins.data(), sums.data(), totals.data(), around.data()});
    }
    void distances(const PerCluster& out, std::int64_t start, std::int64_t stop) const {
        run(loops().lloyd_distances, view, out.data(), Span{start, stop});
    }
};

// Rows of a clustering, for what pairs of centroids say alone.
struct PairwiseArrays {
    Matrix X;
    Index labels;
    Line origin;
    Matrix centers, gram;
    double slack;

    Pairwise view() const {
        return {X.data(),      origin.data(), centers.data(),      gram.data(),
                nullptr,       labels.data(), nullptr,             int(X.shape(1)),
                int(centers.shape(0)), 0,     slack};
    }
    void misses(std::int64_t first, const Array<bool, 2>& out, std::int64_t start,
                std::int64_t stop) const {
        run(loops().misses, view(), first, out.data(), Span{start, stop});
    }
    void repair(const Index& rows, int target, const Matrix& answers, const Array<double, 2>& out,
                std::int64_t start, std::int64_t stop) const {
        Pairwise w = view();
        w.rows = rows.data();
        w.target = target;
        w.answers = answers.data();
        run(loops().repair, w, out.data(), std::int64_t(out.shape(1)), Span{start, stop});
    }
};

void bind_rows(nb::module_& m) {
    nb::class_<BatchArrays>(m, "Batch")
        .def(nb::init<Matrix, Matrix, Matrix, std::optional<Index>, std::optional<Index>>(), "points"_a,
             "lo"_a, "hi"_a, "rows"_a = nb::none(), "targets"_a = nb::none())
        .def("limit", &BatchArrays::limit, "ranks"_a, "counts"_a);
    nb::class_<ResultArrays>(m, "Results")
        .def(nb::init<Array<double, 2>, Array<double, 2>, Array<double, 1>, Array<double, 1>,
                      Array<std::int8_t, 1>>(),
             "points"_a.noconvert(), "multipliers"_a.noconvert(), "gap"_a.noconvert(),
             "reach"_a.noconvert(), "status"_a.noconvert())
        .def("tell", &ResultArrays::tell, "source"_a.noconvert(), "cost"_a.noconvert(),
             "changed"_a.noconvert(), "least"_a, "copies"_a.noconvert() = nb::none());
    nb::class_<Prepared>(m, "Rows")
        .def_static("listed", &listed, "u"_a, "offsets"_a, "origin"_a, "scale"_a, "guard"_a)
        .def_static("clusters", &clusters, "centers"_a, "weights"_a, "alphas"_a.none(), "delta"_a,
                    "growth"_a, "eps"_a, "expanded"_a)
        .def("project", &project, Free())
        .def("nearest", &nearest, nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg(),
             nb::arg(), Free())
        .def("prefix_floors", &prefix_floors, nb::arg(), nb::arg(), nb::arg().noconvert(), nb::arg(),
             nb::arg(), Free())
        .def("branch", &branch, Free());
}

void bind_search(nb::module_& m) {
    nb::class_<RuleArrays>(m, "Rules")
        .def(nb::init<Array<const std::int64_t, 2>, Line, Matrix>())
        .def("allow", &RuleArrays::allow)
        .def("own_rows", &RuleArrays::own_rows)
        .def("limit", &RuleArrays::limit);
    nb::class_<FoundArrays>(m, "Found")
        .def("__init__",
             [](FoundArrays* f, Array<double, 2> points, Array<double, 1> energy, Array<double, 1> bound,
                Array<double, 1> reach, Array<std::int8_t, 1> status, Array<std::int64_t, 1> changes,
                Array<std::int64_t, 1> nodes) {
                 new (f) FoundArrays{points, energy, bound, reach, status, changes, nodes};
             },
             nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(),
             nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(),
             nb::arg().noconvert());
    nb::class_<MeasureArrays>(m, "Measure")
        .def("__init__",
             [](MeasureArrays* f, Index rows, Matrix points, Matrix answers, Line weights, Line metric,
                Line least) { new (f) MeasureArrays{rows, points, answers, weights, metric, least}; })
        .def("run", &MeasureArrays::run, nb::arg().noconvert(), nb::arg().noconvert(),
             nb::arg().noconvert(), nb::arg(), nb::arg(), Free());
}

void bind_stop(nb::module_& m) {
    nb::class_<Stop>(m, "Stop")
        .def(nb::init<>())
        .def("__enter__", &Stop::enter)
        .def("__exit__", &Stop::leave)
        .def("set", &Stop::set)
        .def("is_set", &Stop::is_set);
}

void bind_tables(nb::module_& m) {
    nb::class_<TableArrays>(m, "Table")
        .def(nb::init<Matrix, Line, Matrix, Line>())
        .def("nearest", &TableArrays::nearest, nb::arg().noconvert(), nb::arg().noconvert(), nb::arg(),
             nb::arg(), Free())
        .def("sweep", &TableArrays::sweep, nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(),
             nb::arg().noconvert(), Free())
        .def("distances", &TableArrays::distances, nb::arg().noconvert(), nb::arg(), nb::arg(), Free());
    nb::class_<PairwiseArrays>(m, "Pairwise")
        .def("__init__",
             [](PairwiseArrays* f, Matrix X, Index labels, Line origin, Matrix centers, Matrix gram,
                double slack) { new (f) PairwiseArrays{X, labels, origin, centers, gram, slack}; })
        .def("misses", &PairwiseArrays::misses, nb::arg(), nb::arg().noconvert(), nb::arg(), nb::arg(),
             Free())
        .def("repair", &PairwiseArrays::repair, nb::arg(), nb::arg(), nb::arg(),
             nb::arg().noconvert(), nb::arg(), nb::arg(), Free());
}

}  // namespace
}  // namespace voicecf

NB_MODULE(_core, m) {
    m.doc() = "The compiled core: projections, searches over choices, k-means passes.";
    m.attr("FEW_ROWS") = voicecf::FEW;
    m.def("instruction_set", [] { return voicecf::here().name; });
    voicecf::bind_rows(m);
    voicecf::bind_search(m);
    voicecf::bind_stop(m);
    voicecf::bind_tables(m);
}
