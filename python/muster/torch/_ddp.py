"""DistributedDataParallel over a group that is made anew."""

import functools
import weakref

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

_works: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # by the reducer that waits for it
_KEEPING_HOOK_STATES = ("PowerSGDState", "PostLocalSGDState")  # of each rank: errors it has made, its steps


def keep_works_of_reducers() -> None:
    """A Work of Python that a reducer is given (`join(divide_by_initial_world_size=False)`) lives until the
    next: to C++ one whose Python part is gone is never done, and a backward pass would wait for ever."""
    give = dist.Reducer._set_forward_pass_work_handle
    if hasattr(give, "__wrapped__"):
        return

    @functools.wraps(give)
    def give_and_keep(reducer, work, *arguments):
        _works[reducer] = work
        return give(reducer, work, *arguments)

    dist.Reducer._set_forward_pass_work_handle = give_and_keep


def ddp_modules(model: torch.nn.Module) -> list[DistributedDataParallel]:
    return [module for module in model.modules() if isinstance(module, DistributedDataParallel)]


def check_renewable(module: DistributedDataParallel) -> None:
    """Raises ValueError where its group is another than the default one, which alone is made anew."""
    if module.process_group is not dist.distributed_c10d._get_default_group():
        raise ValueError(
            "muster: DistributedDataParallel in recoverable() has to be made over the default group: leave "
            "out process_group="
        )
    for _, state in getattr(module, "_comm_hooks", []):
        if type(state).__name__ in _KEEPING_HOOK_STATES:
            raise ValueError(
                f"muster: a communication hook of DistributedDataParallel in recoverable() keeps a "
                f"{type(state).__name__} from step to step, and a rank that comes back has none: take a hook "
                "without one, as bf16_compress_hook"
            )


def renew(module: DistributedDataParallel) -> None:
    """A reducer like that of a new process: of a step that was cut it waits for gradients for ever, and its
    buckets have been ordered by steps that a new process has not seen. What pickling does, in place."""
    hooks = list(getattr(module, "_comm_hooks", []))
    state = module.__getstate__()
    module.reducer = module.logger = None  # their hooks on parameters go first
    module.__setstate__(state)
    # Pickling keeps what the last forward pass said to the next, and a new process has heard none.
    module.require_forward_param_sync = True
    module._static_graph_delay_allreduce_enqueued = False
    module._comm_hooks = []
    for hook, hook_state in hooks:
        module.register_comm_hook(hook_state, hook)


class ForwardPasses:
    """Of a module: sees whether the last one has had no backward pass.

    Its reducer waits for that on, and reduces the next gradients of any, also under no_sync(). The module
    keeps this by its hook, so this does not keep the module.
    """

    def __init__(self, module: DistributedDataParallel) -> None:
        self._stamps: list[int] | None = None  # when gradients had come, as of the last forward pass
        module.register_forward_hook(self._note)

    @torch.compiler.disable
    def _note(self, module: DistributedDataParallel, *_) -> None:
        if torch.is_grad_enabled() and module.require_backward_grad_sync:
            self._stamps = module.reducer.get_backward_stats()

    def is_last_open(self, module: DistributedDataParallel) -> bool:
        return self._stamps is not None and module.reducer.get_backward_stats() == self._stamps

    def forget(self) -> None:
        self._stamps = None


def _shares(module: DistributedDataParallel) -> bool:
    return bool(module.broadcast_buffers)


def share_buffers(modules: list[DistributedDataParallel], native) -> None:
    """Gives all ranks rank 0's buffers at the end of a step, as DistributedDataParallel would at the
    beginning of the next: so any rank can give them to one that comes back, also where that is rank 0."""
    for module in modules:
        if not _shares(module):
            continue
        for buffer in module.module.buffers():
            data = buffer.detach()
            flat = data if data.is_contiguous() else data.contiguous()
            native.broadcast(flat.data_ptr(), flat.nbytes, 0)
            if flat is not data:
                with torch.no_grad():
                    data.copy_(flat)
