"""Tensors as the addresses, sizes and names that Muster's calls take."""

import torch
from torch.distributed import ReduceOp

DTYPES = {
    torch.float32: "float32",
    torch.float64: "float64",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.int8: "int8",
    torch.uint8: "uint8",
    torch.int16: "int16",
    torch.int32: "int32",
    torch.int64: "int64",
    torch.bool: "bool",
}
_KINDS = ReduceOp.RedOpType
_REDUCTIONS = {
    _KINDS.SUM: "sum",
    _KINDS.AVG: "mean",
    _KINDS.PRODUCT: "product",
    _KINDS.MAX: "max",
    _KINDS.MIN: "min",
    _KINDS.BAND: "band",
    _KINDS.BOR: "bor",
    _KINDS.BXOR: "bxor",
}


def reduction(op) -> str:
    """Raises RuntimeError for operations that Muster lacks."""
    kind = getattr(op, "op", op)
    found = _REDUCTIONS.get(kind)
    if found is None:
        raise RuntimeError(
            f"muster: ReduceOp.{kind.name} is not there: scale the tensor first and sum it; "
            f"there are {', '.join(known.name for known in _REDUCTIONS)}"
        )
    return found


def in_reals(tensor: torch.Tensor, op) -> torch.Tensor:
    """A complex tensor as the real numbers that it has, where the reduction takes each by itself."""
    return torch.view_as_real(tensor) if tensor.is_complex() and reduction(op) in ("sum", "mean") else tensor


def dtype(tensor: torch.Tensor) -> str:
    """Raises RuntimeError for dtypes that Muster cannot reduce; it moves all of them."""
    try:
        return DTYPES[tensor.dtype]
    except KeyError:
        raise RuntimeError(
            f"muster: tensors of {tensor.dtype} cannot be reduced: convert to one of "
            f"{', '.join(DTYPES.values())}"
        ) from None


def check_dense(tensor: torch.Tensor) -> None:
    """Raises RuntimeError for tensors of other layouts and devices."""
    if tensor.layout is not torch.strided:
        raise RuntimeError(
            f"muster: a tensor of layout {tensor.layout} cannot be sent: make it dense with to_dense(); "
            "only all_reduce takes torch.sparse_coo"
        )
    if tensor.device.type != "cpu":
        raise RuntimeError(
            f"muster: a tensor on {tensor.device} cannot be sent, only those on the CPU: "
            f'init_process_group("cpu:muster,{tensor.device.type}:nccl") gives each device its backend'
        )


def size_bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def rows_of_ranks(tensor: torch.Tensor, splits, size: int, what: str) -> list[int]:
    """How many bytes of a tensor belong to each rank: by its rows, equal ones where nothing else is said."""
    if tensor.dim() == 0:
        raise RuntimeError(f"muster: {what} is a single number, which has no rows: give it as reshape(1)")
    rows = tensor.size(0)
    if not splits:
        if rows % size != 0:
            raise RuntimeError(
                f"muster: {what} has {rows} rows, which {size} ranks do not divide: give split sizes"
            )
        splits = [rows // size] * size
    if len(splits) != size or sum(splits) != rows:
        raise RuntimeError(
            f"muster: {what} has {rows} rows, and its split sizes {list(splits)} are not {size} with that sum"
        )
    row_bytes = size_bytes(tensor) // rows if rows else 0
    return [count * row_bytes for count in splits]


def starts_of(address: int, sizes: list[int]) -> list[int]:
    starts = []
    for size in sizes:
        starts.append(address)
        address += size
    return starts


def readable(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, or a copy of it whose elements lie in order."""
    check_dense(tensor)
    if tensor.is_complex():
        tensor = tensor.resolve_conj().resolve_neg()
    return tensor.contiguous()


def _write(tensor: torch.Tensor, values: torch.Tensor) -> None:
    """Also to a tensor of expand(), whose elements are one in memory."""
    for dim, stride in enumerate(tensor.stride()):
        if stride == 0 and tensor.size(dim) > 1:
            tensor, values = tensor.narrow(dim, 0, 1), values.narrow(dim, 0, 1)
    tensor.copy_(values)


class Outputs:
    """Tensors that are written: in place, or where one is not contiguous through a copy."""

    def __init__(self, tensors, filled: bool = False) -> None:
        """filled: the copies have the values of the tensors, for calls that read them, too."""
        for tensor in tensors:
            check_dense(tensor)
        self.tensors = list(tensors)
        self.written = [
            tensor
            if tensor.is_contiguous() and not tensor.is_conj()
            else (
                tensor.contiguous()
                if filled
                else torch.empty_like(tensor, memory_format=torch.contiguous_format)
            )
            for tensor in self.tensors
        ]

    def addresses(self) -> list[int]:
        return [tensor.data_ptr() for tensor in self.written]

    def finish(self):
        """What copies the tensors back, or None where nothing has to be copied."""
        copies = [
            (tensor, copy)
            for tensor, copy in zip(self.tensors, self.written, strict=True)
            if copy is not tensor
        ]
        if not copies:
            return None

        def copy_back() -> None:
            with torch.no_grad():
                for tensor, copy in copies:
                    _write(tensor, copy)

        return copy_back
