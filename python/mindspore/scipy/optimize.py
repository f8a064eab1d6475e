"""mindspore.scipy.optimize: the least of a function, and the best assignment; outside of graphs."""

from typing import NamedTuple

import muster
from mindspore import _names
from mindspore.ops import _places

# ---- Line search -------------------------------------------------------------------------------------------


class LineSearchResults(NamedTuple):
    """What line_search found."""

    failed: bool
    nit: int
    nfev: int
    ngev: int
    k: int
    a_k: float
    f_k: float
    g_k: muster.Tensor
    status: int


class _Function:
    """A function of tensors, and its gradient, as those of arrays of float64; counts its calls."""

    def __init__(self, function, jac, like):
        self._dtype = like.dtype
        self._function = function
        self._both = muster.value_and_grad(function, 0) if jac is None else None
        self._jac = jac
        self.calls = 0

    def __call__(self, x):
        """(value, gradient)."""
        import numpy

        self.calls += 1
        tensor = self.tensor(x)
        value, slope = self._both(tensor) if self._both else (self._function(tensor), self._jac(tensor))
        return float(value), slope.asnumpy().astype(numpy.float64)

    def tensor(self, x):
        """In the dtype of the first point."""
        return muster.Tensor(x).astype(self._dtype)


def _between(low, high):
    """The least of the cubic through two ends with their slopes, or the middle where it lies near an end."""
    import numpy

    (a, fa, da, _), (b, fb, db, _) = low, high
    middle = (a + b) / 2
    with numpy.errstate(all="ignore"):
        first = da + db - 3 * (fa - fb) / (a - b)
        root = numpy.sqrt(first**2 - da * db) * numpy.sign(b - a)
        found = b - (b - a) * (db + root - first) / (db - da + 2 * root)
    edge = 0.1 * abs(b - a)
    inside = min(a, b) + edge <= found <= max(a, b) - edge
    return found if inside else middle


def _wolfe(function, x, direction, start, c1, c2, iterations):
    """((step, value, slope, gradient), whether it meets Wolfe's strong conditions, iterations).

    Nocedal and Wright, Numerical Optimization, algorithms 3.5 and 3.6.
    """
    value0, slope0 = start[1], start[2]

    def at(step):
        value, gradient = function(x + step * direction)
        return step, value, float(gradient @ direction), gradient

    def is_short(point):
        return point[1] <= value0 + c1 * point[0] * slope0

    def is_flat(point):
        return abs(point[2]) <= -c2 * slope0

    before, step, done = start, 1.0, 0
    low = high = None
    while done < iterations:
        done += 1
        point = at(step)
        if not is_short(point) or (point[1] >= before[1] and done > 1):
            low, high = before, point
            break
        if is_flat(point):
            return point, True, done
        if point[2] >= 0:
            low, high = point, before
            break
        before, step = point, 2 * step
    while low is not None and done < iterations:
        done += 1
        point = at(_between(low, high))
        if not is_short(point) or point[1] >= low[1]:
            high = point
            continue
        if is_flat(point):
            return point, True, done
        if point[2] * (high[0] - low[0]) >= 0:
            high = low
        low = point
    return (before if low is None else low), False, done


def line_search(f, xk, pk, jac=None, gfk=None, old_fval=None, old_old_fval=None, c1=1e-4, c2=0.9, maxiter=20):
    """The step along pk from xk that meets Wolfe's strong conditions.

    Args:
        f: A function of a tensor (n,), that gives a scalar.
        xk: The point, (n,).
        pk: The direction, (n,).
        jac: The gradient of f; None: it is derived.
        gfk: The gradient at xk, where it is known.
        old_fval: The value at xk, where it is known.
        old_old_fval: Changes nothing.
        c1: How much of the slope the value has to fall.
        c2: How much of the slope may be left.
        maxiter: The most points that are tried.
    """
    import numpy

    function = _Function(f, jac, xk)
    x, direction = (_places.eager("line_search", each).astype(numpy.float64) for each in (xk, pk))
    value, gradient = function(x)
    start = (0.0, value, float(gradient @ direction), gradient)
    (step, value, _, gradient), found, tried = _wolfe(function, x, direction, start, c1, c2, maxiter)
    return LineSearchResults(
        not found,
        tried,
        function.calls,
        function.calls,
        tried,
        step,
        value,
        function.tensor(gradient),
        int(not found),
    )


# ---- The least of a function -------------------------------------------------------------------------------


class OptimizeResults(NamedTuple):
    """What minimize found: the point, its value, gradient and inverse Hessian, and how it went."""

    x: muster.Tensor
    success: bool
    status: int
    fun: float
    jac: muster.Tensor
    hess_inv: muster.Tensor | None
    nfev: int
    njev: int
    nit: int


class _Inverse:
    """The inverse Hessian by Broyden, Fletcher, Goldfarb and Shanno, as a matrix."""

    def __init__(self, size):
        import numpy

        self.matrix = numpy.eye(size)

    def times(self, gradient):
        return self.matrix @ gradient

    def learn(self, moved, turned):
        import numpy

        share = 1 / (moved @ turned)
        left = numpy.eye(len(moved)) - share * numpy.outer(moved, turned)
        self.matrix = left @ self.matrix @ left.T + share * numpy.outer(moved, moved)


class _LimitedInverse:
    """The same by the last `many` moves alone (Nocedal, 1980)."""

    matrix = None

    def __init__(self, many):
        self._many, self._moves = many, []

    def times(self, gradient):
        made, shares = gradient, []
        for moved, turned in reversed(self._moves):
            shares.append((moved @ made) / (moved @ turned))
            made = made - shares[-1] * turned
        if self._moves:
            moved, turned = self._moves[-1]
            made = made * (moved @ turned) / (turned @ turned)
        for moved, turned in self._moves:
            made = made + moved * (shares.pop() - (turned @ made) / (moved @ turned))
        return made

    def learn(self, moved, turned):
        self._moves = [*self._moves, (moved, turned)][-self._many :]


def _descended(function, x, inverse, maxiter, norm, gtol, line_search_maxiter):
    """(x, value, gradient, whether the gradient is small, status, iterations)."""
    import numpy

    value, gradient = function(x)
    for done in range(maxiter):
        if numpy.linalg.norm(gradient, norm) < gtol:
            return x, value, gradient, True, 0, done
        direction = -inverse.times(gradient)
        start = (0.0, value, float(gradient @ direction), gradient)
        point, *_ = _wolfe(function, x, direction, start, 1e-4, 0.9, line_search_maxiter)
        step, value, _, new = point
        if step == 0:  # float32 can tell no point further down
            return x, value, gradient, False, 5, done
        moved, turned = step * direction, new - gradient
        x, gradient = x + moved, new
        if moved @ turned > 0:
            inverse.learn(moved, turned)
    small = bool(numpy.linalg.norm(gradient, norm) < gtol)
    return x, value, gradient, small, int(not small), maxiter


def minimize(
    func,
    x0,
    args=(),
    method=None,
    jac=None,
    hess=None,
    hessp=None,
    bounds=None,
    constraints=(),
    tol=None,
    callback=None,
    options=None,
):
    """The point near x0 where func(x, *args) is least.

    Args:
        func: A function of a tensor (n,) that gives a scalar.
        x0: Where the search begins, (n,).
        args: What func is given behind x, a tuple.
        method: 'BFGS' or 'LBFGS'; 'LAGRANGE' is not provided.
        jac: The gradient of func(x); None: it is derived.
        hess: Not provided.
        hessp: Not provided.
        bounds: Not provided.
        constraints: Not provided.
        tol: Not provided.
        callback: Not provided.
        options: A dict of maxiter (200 for each number), norm (infinity), gtol (1e-5) and line_search_maxiter
            (10), for 'LBFGS' also of maxcor (10), the moves that are kept.
    """
    import numpy

    call = "mindspore.scipy.optimize.minimize"
    if method is None:
        raise ValueError("You must specify a solver.")
    if not isinstance(args, tuple):
        raise TypeError(f"{call}: args is a tuple, not {type(args).__name__}")
    name = method.lower()
    if name not in ("bfgs", "lbfgs", "lagrange"):
        raise ValueError(f"Method {method} not recognized")
    _names.refuse(
        call,
        method=(name, "bfgs", "lbfgs"),
        hess=(hess, None),
        hessp=(hessp, None),
        bounds=(bounds, None),
        constraints=(constraints, ()),
        tol=(tol, None),
        callback=(callback, None),
    )
    given = {"maxiter": None, "norm": numpy.inf, "gtol": 1e-5, "line_search_maxiter": 10}
    if name == "lbfgs":
        given |= {"maxcor": 10}
    for option in options or {}:
        if option not in given:
            raise TypeError(f"{call}: the options of {method} are {', '.join(given)}, not {option!r}")
    given |= options or {}
    function = _Function(lambda x: func(x, *args), jac, x0)
    x = _places.eager("minimize", x0).astype(numpy.float64)
    inverse = _Inverse(len(x)) if name == "bfgs" else _LimitedInverse(given["maxcor"])
    x, value, gradient, small, status, done = _descended(
        function,
        x,
        inverse,
        200 * len(x) if given["maxiter"] is None else given["maxiter"],
        given["norm"],
        given["gtol"],
        given["line_search_maxiter"],
    )
    matrix = None if inverse.matrix is None else function.tensor(inverse.matrix)
    found = function.tensor(x)
    return OptimizeResults(
        found, small, status, value, function.tensor(gradient), matrix, function.calls, function.calls, done
    )


# ---- Assignment --------------------------------------------------------------------------------------------


def _assigned(costs):
    """The column of each row with the least sum, of an array with no more rows than columns.

    By shortest augmenting paths: Crouse, IEEE Transactions on Aerospace and Electronic Systems 52, 2016.
    """
    import numpy

    rows, columns = costs.shape
    of_row, of_column = numpy.zeros(rows), numpy.zeros(columns)
    row_at, column_of = numpy.full(columns, -1), numpy.full(rows, -1)
    for first in range(rows):
        shortest, came_from = numpy.full(columns, numpy.inf), numpy.full(columns, -1)
        done_rows, done_columns = numpy.zeros(rows, bool), numpy.zeros(columns, bool)
        row, length, end = first, 0.0, -1
        while end < 0:
            done_rows[row] = True
            reach = length + costs[row] - of_row[row] - of_column
            nearer = ~done_columns & (reach < shortest)
            shortest[nearer], came_from[nearer] = reach[nearer], row
            open_lengths = numpy.where(done_columns, numpy.inf, shortest)
            best = int(open_lengths.argmin())
            length = open_lengths[best]
            if not numpy.isfinite(length):
                raise ValueError("linear_sum_assignment: the costs allow no assignment")
            done_columns[best] = True
            end, row = (best, row) if row_at[best] < 0 else (-1, int(row_at[best]))
        of_row[first] += length
        others = done_rows.copy()
        others[first] = False
        of_row[others] += length - shortest[column_of[others]]
        of_column[done_columns] -= length - shortest[done_columns]
        while True:
            row = came_from[end]
            row_at[end] = row
            column_of[row], end = end, column_of[row]
            if row == first:
                break
    return column_of


def linear_sum_assignment(cost_matrix, maximize, dimension_limit=None):
    """(rows, columns) that are paired so that the sum of their costs is least, int64.

    Args:
        cost_matrix: (rows, columns).
        maximize: A bool or a tensor of one: whether the sum shall be greatest.
        dimension_limit: A tensor of how many columns count; the pairs that this leaves out are -1.
    """
    import numpy

    costs = _places.eager("linear_sum_assignment", cost_matrix).astype(numpy.float64)
    if costs.ndim != 2:
        raise ValueError(f"linear_sum_assignment: a matrix is needed, not the shape {costs.shape}")
    if numpy.isnan(costs).any():
        raise ValueError("linear_sum_assignment: the costs contain NaN")
    count = min(costs.shape)
    limit = costs.shape[1] if dimension_limit is None else min(int(dimension_limit), costs.shape[1])
    costs = (-costs if bool(maximize) else costs)[:, :limit]
    if costs.shape[0] <= costs.shape[1]:
        columns = _assigned(costs)
        rows = numpy.arange(len(columns))
    else:
        found = _assigned(costs.T)
        rows = numpy.sort(found)
        columns = numpy.argsort(found)
    missing = numpy.full(count - len(rows), -1)
    return tuple(
        muster.Tensor(numpy.concatenate([each, missing]).astype(numpy.int64)) for each in (rows, columns)
    )


__all__ = ["line_search", "linear_sum_assignment", "minimize"]
__getattr__ = _names.missing(__name__)
