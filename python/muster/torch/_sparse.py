"""Sums of sparse tensors: each rank gets the entries of all, and adds up those at equal places."""

import torch

from muster.torch._tensors import dtype, reduction, size_bytes

_AXES_MAX = 16
_CPU = torch.device("cpu")  # whatever torch.set_default_device() says
_ADDED_IN = {
    torch.float16: torch.float32,
    torch.bfloat16: torch.float32,
}  # and rounded once, as dense ones are


def add_sparse(calls, tensor: torch.Tensor, opts):
    """all_reduce of a sparse_coo tensor: waits until all ranks have said how many entries they have.

    calls: those of the group (`_backend.Calls`). Raises RuntimeError for reductions other than SUM and AVG,
    and where the ranks' tensors have different shapes.
    """
    how = reduction(opts.reduceOp)
    if how not in ("sum", "mean"):
        raise RuntimeError(
            f"muster: the {how} of sparse tensors is not there, SUM and AVG are: make it dense, to_dense()"
        )
    dtype(tensor)
    own = tensor.detach().coalesce()
    counts = _entries(calls, own, opts)
    indices, values = own.indices().contiguous(), own.values().contiguous()
    all_indices = [torch.zeros(own.sparse_dim(), count, dtype=torch.int64, device=_CPU) for count in counts]
    all_values = [values.new_zeros(count, *values.shape[1:]) for count in counts]

    def finish() -> None:
        added_in = _ADDED_IN.get(tensor.dtype, tensor.dtype)
        summands = torch.cat(all_values).to(added_in)
        total = torch.sparse_coo_tensor(torch.cat(all_indices, 1), summands, tensor.shape, device=_CPU)
        total = total.coalesce()
        if how == "mean":
            total = total / len(counts)
        with torch.no_grad():
            tensor.copy_(total.to(tensor.dtype))

    starts = [_gather(calls, indices, all_indices), _gather(calls, values, all_values)]
    return calls._run_all(starts, opts, [tensor], [indices, values], finish)


def _gather(calls, source: torch.Tensor, outputs: list[torch.Tensor]):
    addresses, sizes = [out.data_ptr() for out in outputs], [size_bytes(out) for out in outputs]

    def start(asynchronous, timeout):
        return calls.native.all_gather_sizes(source.data_ptr(), addresses, sizes, asynchronous, timeout)

    return start


def _entries(calls, own: torch.Tensor, opts) -> list[int]:
    """How many entries each rank has."""
    if own.dim() > _AXES_MAX:
        raise RuntimeError(f"muster: a sparse tensor of {own.dim()} axes, {_AXES_MAX} are allowed")
    head = torch.zeros(3 + _AXES_MAX, dtype=torch.int64, device=_CPU)
    head[: 3 + own.dim()] = torch.tensor([own._nnz(), own.dim(), own.sparse_dim(), *own.shape], device=_CPU)
    heads = head.repeat(calls.native.size, 1)

    def start(asynchronous, timeout):
        return calls.native.all_gather(
            head.data_ptr(), heads.data_ptr(), size_bytes(head), asynchronous, timeout
        )

    work = calls._run_all([start], opts)
    if work is not None:
        work.wait()
    for rank, other in enumerate(heads):
        if not torch.equal(other[1:], heads[0][1:]):
            raise RuntimeError(
                f"muster: all_reduce of sparse tensors of different shapes: {_shape(heads[0])} on rank 0, "
                f"{_shape(other)} on rank {rank}"
            )
    return heads[:, 0].tolist()


def _shape(head: torch.Tensor) -> str:
    axes, sparse_axes = int(head[1]), int(head[2])
    return f"{head[3 : 3 + axes].tolist()} (sparse in the first {sparse_axes})"
