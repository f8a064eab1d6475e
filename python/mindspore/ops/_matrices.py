"""mindspore.ops: products of matrices, einsum, and diagonals."""

import math
import string

import muster
from mindspore.ops import _numbers
from muster import ops

# ---- Products ----------------------------------------------------------------------------------------------


def _combined(input, product, beta, alpha):
    return ops.add(ops.mul(input, beta), ops.mul(product, alpha))


def addmm(input, mat1, mat2, *, beta=1, alpha=1):
    """beta input + alpha mat1 mat2."""
    return _combined(input, ops.matmul(mat1, mat2), beta, alpha)


def addmv(input, mat, vec, *, beta=1, alpha=1):
    """beta input + alpha mat vec."""
    return _combined(input, mv(mat, vec), beta, alpha)


def addr(x, vec1, vec2, *, beta=1, alpha=1):
    """beta x + alpha times the outer product of two vectors."""
    return _combined(x, outer(vec1, vec2), beta, alpha)


def addbmm(input, batch1, batch2, *, beta=1, alpha=1):
    """beta input + alpha times the sum of the products of a batch of matrices."""
    return _combined(input, ops.reduce_sum(ops.batch_matmul(batch1, batch2), 0), beta, alpha)


def baddbmm(input, batch1, batch2, beta=1, alpha=1):
    """beta input + alpha times the products of a batch of matrices."""
    return _combined(input, ops.batch_matmul(batch1, batch2), beta, alpha)


def mv(mat, vec):
    """The product of a matrix and a vector."""
    return ops.reshape(ops.matmul(mat, ops.reshape(vec, (-1, 1))), (-1,))


def outer(input, vec2):
    """Each element of a vector times each of another: (n, m)."""
    return ops.mul(ops.reshape(input, (-1, 1)), ops.reshape(vec2, (1, -1)))


ger = outer


def inner(input, other):
    """The sums of products along the last axes."""
    if input.ndim == 0 or other.ndim == 0:
        return ops.mul(input, other)
    return tensor_dot(input, other, ([input.ndim - 1], [other.ndim - 1]))


def vecdot(x, y, *, axis=-1):
    """The sum of products along `axis`, shapes broadcast."""
    return ops.reduce_sum(ops.mul(x, y), axis)


def dot(input, other):
    """The sums of products along the last axis of input and the second last of other."""
    if other.ndim == 1:
        return tensor_dot(input, other, ([input.ndim - 1], [0]))
    return tensor_dot(input, other, ([input.ndim - 1], [other.ndim - 2]))


def tensor_dot(x1, x2, axes):
    """The sums of products over some axes of both: a number of axes, or those of each."""
    if isinstance(axes, int):
        axes = (list(range(x1.ndim - axes, x1.ndim)), list(range(axes)))
    first, second = ([part] if isinstance(part, int) else list(part) for part in axes)
    first, second = [at % x1.ndim for at in first], [at % x2.ndim for at in second]
    rest1 = [at for at in range(x1.ndim) if at not in first]
    rest2 = [at for at in range(x2.ndim) if at not in second]
    count = math.prod(x1.shape[at] for at in first)
    a = ops.reshape(ops.transpose(x1, (*rest1, *first)), (-1, count))
    b = ops.reshape(ops.transpose(x2, (*second, *rest2)), (count, -1))
    sizes = [x1.shape[at] for at in rest1] + [x2.shape[at] for at in rest2]
    return ops.reshape(ops.matmul(a, b), sizes)


def batch_dot(x1, x2, axes=None):
    """tensor_dot of each sample; the axes of one of x1 and one of x2."""
    if axes is None:
        axes = (x1.ndim - 1, x2.ndim - 1 if x2.ndim == 2 else x2.ndim - 2)
    first, second = (axes, axes) if isinstance(axes, int) else axes
    first, second = first % x1.ndim, second % x2.ndim
    rest1 = [at for at in range(1, x1.ndim) if at != first]
    rest2 = [at for at in range(1, x2.ndim) if at != second]
    a = ops.reshape(ops.transpose(x1, (0, *rest1, first)), (x1.shape[0], -1, x1.shape[first]))
    b = ops.reshape(ops.transpose(x2, (0, second, *rest2)), (x2.shape[0], x2.shape[second], -1))
    made = ops.batch_matmul(a, b)
    sizes = [x1.shape[0], *(x1.shape[at] for at in rest1), *(x2.shape[at] for at in rest2)]
    return ops.reshape(made, sizes if len(sizes) > 1 else (x1.shape[0], 1))


def kron(input, other):
    """The Kronecker product: each element of input times other."""
    rank = max(input.ndim, other.ndim)
    a = (1,) * (rank - input.ndim) + tuple(input.shape)
    b = (1,) * (rank - other.ndim) + tuple(other.shape)
    first = ops.reshape(input, [size for each in a for size in (each, 1)])
    second = ops.reshape(other, [size for each in b for size in (1, each)])
    return ops.reshape(ops.mul(first, second), [m * n for m, n in zip(a, b, strict=True)])


def cross(input, other, dim=None):
    """The cross products of vectors of three elements along `dim` (the first axis of size 3)."""
    if dim is None:
        dim = next((at for at, size in enumerate(input.shape) if size == 3), None)
    if dim is None or input.shape[dim] != 3:
        raise ValueError(f"cross: an axis of 3 elements is needed in {input.shape}")

    def turned(x, by):
        return ops.gather(x, muster.Tensor([by % 3, (by + 1) % 3, (by + 2) % 3], muster.int32), dim)

    a, b = ops.add(input, ops.mul(other, 0)), ops.add(other, ops.mul(input, 0))
    return ops.sub(ops.mul(turned(a, 1), turned(b, 2)), ops.mul(turned(a, 2), turned(b, 1)))


def dense(input, weight, bias=None):
    """input weight^T + bias."""
    lead = input.shape[:-1]
    rows = ops.reshape(input, (-1, input.shape[-1])) if input.ndim != 2 else input
    columns = ops.reshape(weight, (1, -1)) if weight.ndim == 1 else weight
    made = ops.matmul(rows, ops.transpose(columns, (1, 0)))
    made = ops.reshape(made, lead if weight.ndim == 1 else (*lead, weight.shape[0]))
    return made if bias is None else ops.add(made, bias)


def bidense(input1, input2, weight, bias=None):
    """For each output k the sum of input1[i] weight[k, i, j] input2[j], plus bias."""
    made = einsum(
        "ni,kij,nj->nk",
        ops.reshape(input1, (-1, input1.shape[-1])),
        weight,
        ops.reshape(input2, (-1, input2.shape[-1])),
    )
    made = ops.reshape(made, (*input1.shape[:-1], weight.shape[0]))
    return made if bias is None else ops.add(made, bias)


def einsum(equation, *operands):
    """Sums of products by Einstein's notation: einsum("ij,jk->ik", a, b); `...` stands for further axes."""
    if len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        operands = tuple(operands[0])
    terms, result = _terms(equation, operands)
    made, labels = _diagonals(operands[0], terms[0])
    rest = list(zip(operands[1:], terms[1:], strict=True))
    while rest:
        other, other_labels = _diagonals(*rest.pop(0))
        needed = set(result).union(*(term for _, term in rest))
        made, labels = _joined(made, labels, other, other_labels, needed)
    gone = [at for at, label in enumerate(labels) if label not in result]
    made = ops.reduce_sum(made, tuple(gone)) if gone else made
    labels = [label for label in labels if label in result]
    if len(operands) == 1 and result:  # a tensor of its own, also where the axes stay
        return ops.transpose(made, tuple(labels.index(label) for label in result))
    return _transposed(made, labels, result)


def _terms(equation, operands):
    """The labels of each operand and of the result as lists; those of `...` are numbers from the end."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    texts = left.split(",")
    if len(texts) != len(operands):
        raise ValueError(f"einsum: {equation!r} is for {len(texts)} operands, not {len(operands)}")
    extra = max(
        (
            x.ndim - len(text.replace("...", ""))
            for text, x in zip(texts, operands, strict=True)
            if "..." in text
        ),
        default=0,
    )

    def labels(text, rank):
        before, dots, behind = text.partition("...")
        if any(each not in string.ascii_letters for each in before + behind):
            raise ValueError(f"einsum: a label of {equation!r} is no letter")
        count = rank - len(before) - len(behind) if dots else 0
        return [*before, *range(-count, 0), *behind]

    terms = [labels(text, x.ndim) for text, x in zip(texts, operands, strict=True)]
    for term, x in zip(terms, operands, strict=True):
        if len(term) != x.ndim:
            raise ValueError(f"einsum: {equation!r} does not fit to a tensor of shape {x.shape}")
    if arrow:
        return terms, labels(right, extra + len(right.replace("...", "")))
    count = {}
    for each in left.replace(",", "").replace(".", ""):
        count[each] = count.get(each, 0) + 1
    return terms, [*range(-extra, 0), *sorted(each for each in count if count[each] == 1)]


def _diagonals(x, labels):
    """Axes of one label as one axis."""
    labels = list(labels)
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            x = diagonal(x, 0, first, second)
            labels = [each for at, each in enumerate(labels) if at not in (first, second)] + [label]
    return x, labels


def _joined(a, a_labels, b, b_labels, needed):
    """The product of two operands, summed over the labels that are not needed any more."""
    sizes = {}
    for x, labels in ((a, a_labels), (b, b_labels)):
        for label, size in zip(labels, x.shape, strict=True):
            if sizes.get(label, 1) != 1 and size not in (1, sizes[label]):
                raise ValueError(f"einsum: axis {label!r} has {sizes[label]} and {size} elements")
            sizes[label] = max(sizes.get(label, 1), size) if size else 0
    both = [label for label in a_labels if label in b_labels]
    batch = [label for label in both if label in needed]
    summed = [label for label in both if label not in needed]
    rows = [label for label in a_labels if label not in both]
    columns = [label for label in b_labels if label not in both]

    is_matrices = len(rows) == len(summed) == len(columns) == 1

    def arranged(x, labels, order, groups):
        x = _transposed(x, labels, order)
        shared = [sizes[label] if label in both else size for label, size in zip(order, x.shape, strict=True)]
        x = ops.broadcast_to(x, shared) if list(x.shape) != shared else x
        shape = [math.prod(sizes[label] for label in group) for group in groups]
        return x if is_matrices else ops.reshape(x, shape)

    left = arranged(a, a_labels, batch + rows + summed, (batch, rows, summed))
    turns = b_labels == batch + columns + summed or (is_matrices and b_labels[-1] == summed[0])
    groups = (batch, columns, summed) if turns else (batch, summed, columns)
    right = arranged(b, b_labels, [label for group in groups for label in group], groups)
    made = ops.batch_matmul(left, right, transpose_b=turns)
    labels = batch + rows + columns
    return made if is_matrices else ops.reshape(made, [sizes[label] for label in labels]), labels


def _transposed(x, labels, order):
    """With its axes, of these labels, in this order."""
    return x if labels == order else ops.transpose(x, tuple(labels.index(label) for label in order))


# ---- Diagonals ---------------------------------------------------------------------------------------------


def diagonal(input, offset=0, dim1=0, dim2=1):
    """The diagonal of the plane of two axes, which becomes the last axis."""
    first, second = dim1 % input.ndim, dim2 % input.ndim
    rest = [at for at in range(input.ndim) if at not in (first, second)]
    x = ops.transpose(input, (*rest, first, second))
    rows, columns = x.shape[-2:]
    begin = max(-offset, 0)
    count = max(min(rows - begin, columns - max(offset, 0)), 0)
    places = [(begin + k) * columns + max(offset, 0) + k for k in range(count)]
    flat = ops.reshape(x, (*x.shape[:-2], rows * columns))
    if not count:
        return ops.slice(flat, [0] * flat.ndim, [*flat.shape[:-1], 0])
    return ops.gather(flat, muster.Tensor(places, muster.int32), flat.ndim - 1)


def diag_embed(input, offset=0, dim1=-2, dim2=-1):
    """The last axis on the diagonal of two new axes, 0 elsewhere."""
    size = input.shape[-1] + abs(offset)
    rank = input.ndim + 1
    row, column = max(-offset, 0), max(offset, 0)
    mask = ops.equal(
        ops.expand_dims(ops.sub(ops.arange(size), row), 1),
        ops.expand_dims(ops.sub(ops.arange(size), column), 0),
    )
    line = ops.pad(input, (column, size - column - input.shape[-1]))
    plane = ops.mul(ops.expand_dims(line, -2), ops.cast(mask, input.dtype))
    first, second = dim1 % rank, dim2 % rank
    others = iter(range(rank - 2))
    order = [rank - 2 if at == first else rank - 1 if at == second else next(others) for at in range(rank)]
    return ops.transpose(plane, tuple(order))


def diag(input):
    """A tensor of twice the axes with input on its diagonal."""
    flat = diag_embed(ops.reshape(input, (-1,)))
    return ops.reshape(flat, (*input.shape, *input.shape))


def diag_part(input_x):
    """The diagonal of a tensor whose axes are twice the same."""
    shape = input_x.shape[: input_x.ndim // 2]
    count = math.prod(shape)
    return ops.reshape(diagonal(ops.reshape(input_x, (count, count))), shape)


def diagflat(input, offset=0):
    """A matrix with the elements on a diagonal."""
    return diag_embed(ops.reshape(input, (-1,)), offset)


def trace(input):
    """The sum of the diagonal of a matrix."""
    total = ops.reduce_sum(diagonal(input))
    return total if input.dtype == muster.bool_ else ops.cast(total, input.dtype)


def matrix_band_part(x, lower, upper):
    """x, 0 farther than `lower` below the diagonal and `upper` above it; below 0 all stays."""
    rows, columns = x.shape[-2:]
    away = ops.sub(ops.expand_dims(ops.arange(columns), 0), ops.expand_dims(ops.arange(rows), 1))
    lower, upper = (_numbers.scalar_number(each) for each in (lower, upper))
    kept = ops.less_equal(away, columns if upper < 0 else upper)
    kept = ops.logical_and(kept, ops.greater_equal(away, -rows if lower < 0 else -lower))
    return ops.select(kept, x, ops.zeros_like(x))


def _diagonal_numbers(k):
    k = k.asnumpy().reshape(-1).tolist() if isinstance(k, muster.Tensor) else k
    low, high = (k, k) if isinstance(k, int) else (k[0], k[-1])
    return list(range(high, low - 1, -1))


def _span(number, rows, columns):
    return min(rows + min(number, 0), columns - max(number, 0))


def _starts(numbers, rows, columns, align):
    """Where each diagonal begins in a line of the longest one."""
    longest = max(_span(each, rows, columns) for each in numbers)
    above, below = align.split("_")
    return longest, [
        longest - _span(each, rows, columns) if (above if each >= 0 else below) == "RIGHT" else 0
        for each in numbers
    ]


def matrix_diag_part(x, k, padding_value, align="RIGHT_LEFT"):
    """The diagonals k (one, or from the lowest to the highest) of the last two axes, the highest first."""
    numbers = _diagonal_numbers(k)
    rows, columns = x.shape[-2:]
    longest, starts = _starts(numbers, rows, columns, align)
    value = _numbers.scalar_number(padding_value)
    lines = []
    for each, start in zip(numbers, starts, strict=True):
        line = diagonal(x, each, -2, -1)
        around = (start, longest - start - line.shape[-1])
        lines.append(ops.pad(line, around, "constant", value))
    return lines[0] if len(lines) == 1 else ops.stack(lines, -2)


def matrix_diag(x, k=0, num_rows=-1, num_cols=-1, padding_value=0, align="RIGHT_LEFT"):
    """Matrices with x on the diagonals k, padding_value elsewhere."""
    numbers = _diagonal_numbers(k)
    rows, columns, value = (_numbers.scalar_number(each) for each in (num_rows, num_cols, padding_value))
    longest = x.shape[-1]
    need_rows, need_columns = longest - min(numbers[0], 0), longest + max(numbers[-1], 0)
    if rows == -1 and columns == -1:
        rows = columns = max(need_rows, need_columns)
    elif rows == -1:
        rows = need_rows
    elif columns == -1:
        columns = need_columns
    lead = x.shape[:-1] if len(numbers) == 1 else x.shape[:-2]
    base = ops.full((*lead, rows, columns), value, dtype=x.dtype)
    return matrix_set_diag(base, x, k, align)


def matrix_set_diag(x, diagonal, k=0, align="RIGHT_LEFT"):
    """x with the diagonals k replaced."""
    numbers = _diagonal_numbers(k)
    rows, columns = x.shape[-2:]
    longest, starts = _starts(numbers, rows, columns, align)
    places, sources = [], []
    for line, (each, start) in enumerate(zip(numbers, starts, strict=True)):
        for at in range(_span(each, rows, columns)):
            places.append((at + max(-each, 0)) * columns + at + max(each, 0))
            sources.append(line * longest + start + at)
    lead = x.shape[:-2]
    flat = ops.reshape(x, (-1, rows * columns))
    values = ops.reshape(diagonal, (flat.shape[0], len(numbers) * longest))
    picked = ops.gather(values, muster.Tensor(sources, muster.int32), 1)
    index = ops.broadcast_to(ops.expand_dims(muster.Tensor(places, muster.int32), 0), picked.shape)
    made = ops.scatter_elements(flat, index, ops.cast(picked, x.dtype), 1, "update")
    return ops.reshape(made, (*lead, rows, columns))


__all__ = [name for name, value in list(globals().items()) if callable(value) and not name.startswith("_")]
