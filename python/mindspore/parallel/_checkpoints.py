"""Checkpoints between layouts, by MindSpore's names, over what `muster checkpoint convert` does: those that
workers save hold whole parameters, and pieces are joined to such."""

import json
import os
import pathlib
import re

import muster
from mindspore import _names

_SUFFIXES = {"ckpt": ".ckpt", "safetensors": ".safetensors"}


def _suffix_of(call, output_format):
    if output_format not in _SUFFIXES:
        raise ValueError(f"{call}: the format is 'ckpt' or 'safetensors', not {output_format!r}")
    return _SUFFIXES[output_format]


def _folder(call, name, path):
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"{call}: {name} is a path, not {path!r}")
    folder = pathlib.Path(path)
    if not folder.is_dir():
        raise NotADirectoryError(f"{call}: {name} '{folder}' is no folder")
    return folder


def _files_in(folder):
    return [path for path in sorted(folder.iterdir()) if path.suffix in _SUFFIXES.values()]


def _epoch_and_step(path):
    """Of PREFIX-EPOCH_STEP.ckpt, as ModelCheckpoint names its files."""
    found = re.search(r"-(\d+)_(\d+)$", path.stem)
    return (path.stem[: found.start()], (int(found[1]), int(found[2]))) if found else (path.stem, (0, 0))


def _newest_in(folder, end=""):
    """The highest epoch and step of a training, whatever the times say: copies have others, and two short
    steps the same. Of several trainings that which was written last."""
    newest = {}
    for path in _files_in(folder):
        if path.name.endswith(end):
            training, step = _epoch_and_step(path)
            newest[training] = max(newest.get(training, ((0, 0), path)), (step, path))
    files = [path for _, path in newest.values()]
    return max(files, key=lambda path: (path.stat().st_mtime_ns, path.name)) if files else None


def _of_ranks(call, source, end=""):
    """The newest files in the folders rank_0, rank_1, ..."""
    folders = [path for path in source.iterdir() if re.fullmatch(r"rank_\d+", path.name) and path.is_dir()]
    folders.sort(key=lambda path: int(path.name.removeprefix("rank_")))
    files = [file for folder in folders if (file := _newest_in(folder, end)) is not None]
    if not files:
        raise ValueError(
            f"{call}: '{source}' has no folders rank_0, rank_1, ... with checkpoints in them"
            + (f" whose names end in '{end}'" if end else "")
        )
    return files


def _joined(call, files):
    """The values of several files by name: pieces that say their layout are joined, of wholes any counts."""
    try:
        return muster._core._load_joined([str(file) for file in files])
    except ValueError as error:
        raise ValueError(f"{call}: {error}") from None


def _write_joined(call, files, destinations) -> list[str]:
    """The same as files, with no more than a few of their megabytes in memory. Gives the names."""
    try:
        return muster._core._join_checkpoints(
            [str(file) for file in files], [str(file) for file in destinations]
        )
    except ValueError as error:
        raise ValueError(f"{call}: {error}") from None


def _workers_of(call, strategy_file):
    """How many workers a strategy file is for; None is one."""
    if strategy_file is None:
        return 1
    path = pathlib.Path(strategy_file)
    if not path.is_file():
        raise ValueError(f"{call}: there is no strategy file '{path}'")
    try:
        workers = json.loads(path.read_text())["workers"]
    except (ValueError, KeyError, TypeError):
        raise ValueError(
            f"{call}: '{path}' is no strategy file of Muster (AutoParallel.save_param_strategy_file): it "
            "does not say how many workers it is for"
        ) from None
    return int(workers)


def save_strategy(path) -> None:
    """Writes how the workers of this job share parameters: their number, and the mesh if there is one. Each
    worker writes, the same as the others: who reads the file next need not wait for another one.

    Raises:
        TypeError: `path` is no path.
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"save_param_strategy_file: file_path is a str, not {path!r}")
    workers = muster._core._context()["world_size"]
    text = json.dumps({"workers": workers, "mesh": dict(muster.parallel._mesh)})
    target = pathlib.Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    part.write_text(text + "\n")
    part.replace(target)


def rank_list_for_transform(rank_id, src_strategy_file=None, dst_strategy_file=None):
    """The workers whose checkpoints make up that of worker `rank_id` under another layout: all those of
    `src_strategy_file`, whose files may have pieces, or the parameters of one stage; without one worker 0.

    Raises:
        TypeError: `rank_id` is no whole number.
        ValueError: It is below 0, or no worker of what `dst_strategy_file` is for; a strategy file cannot be
            read.
    """
    if isinstance(rank_id, bool) or not isinstance(rank_id, int):
        raise TypeError(f"rank_list_for_transform: rank_id is a whole number, not {rank_id!r}")
    workers = _workers_of("rank_list_for_transform", dst_strategy_file)
    sources = _workers_of("rank_list_for_transform", src_strategy_file)
    if rank_id < 0 or (dst_strategy_file is not None and rank_id >= workers):
        raise ValueError(f"rank_list_for_transform: rank_id is {rank_id}, and there are {workers} workers")
    return list(range(sources))


def transform_checkpoint_by_rank(
    rank_id,
    checkpoint_files_map,
    save_checkpoint_file_name,
    src_strategy_file=None,
    dst_strategy_file=None,
    format="ckpt",
    **settings,
) -> None:
    """Writes the checkpoint of worker `rank_id` from those of the workers that rank_list_for_transform names.

    Raises:
        TypeError: `checkpoint_files_map` is no dict of ranks and files.
        ValueError: A file is missing, or has pieces of parameters.
    """
    call = "transform_checkpoint_by_rank"
    _names.refuse(f"mindspore.{call}", **{name: (value, None, False) for name, value in settings.items()})
    if not isinstance(checkpoint_files_map, dict):
        raise TypeError(f"{call}: checkpoint_files_map is a dict of ranks and files")
    for rank in rank_list_for_transform(rank_id, src_strategy_file, dst_strategy_file):
        if rank not in checkpoint_files_map:
            raise ValueError(f"{call}: checkpoint_files_map lacks the file of worker {rank}")
    suffix = _suffix_of(call, format)
    name = str(save_checkpoint_file_name)
    name = name if name.endswith(suffix) else name + suffix
    files = [checkpoint_files_map[rank] for rank in sorted(checkpoint_files_map)]
    _write_joined(call, files, [name])


def transform_checkpoints(
    src_checkpoints_dir,
    dst_checkpoints_dir,
    ckpt_prefix,
    src_strategy_file=None,
    dst_strategy_file=None,
    process_num=1,
    output_format="ckpt",
) -> None:
    """Writes checkpoints for the workers of another layout: `dst_checkpoints_dir`/rank_N/`ckpt_prefix`N.ckpt.

    Args:
        src_checkpoints_dir: Has folders rank_N with checkpoints, of which the newest counts.
        dst_checkpoints_dir: Is made.
        ckpt_prefix: How the names of the files begin.
        src_strategy_file, dst_strategy_file: Strategy files of Muster; None: one worker, as for an inference.
        process_num: Not used.
        output_format: 'ckpt' or 'safetensors'.

    Raises:
        NotADirectoryError: `src_checkpoints_dir` is no folder.
        ValueError: It has no such folders or no checkpoints; a strategy file cannot be read.
    """
    call = "transform_checkpoints"
    source = _folder(call, "src_checkpoints_dir", src_checkpoints_dir)
    suffix = _suffix_of(call, output_format)
    _workers_of(call, src_strategy_file)
    files = _of_ranks(call, source)
    target = pathlib.Path(dst_checkpoints_dir)
    ranks = range(_workers_of(call, dst_strategy_file))
    _write_joined(call, files, [target / f"rank_{rank}" / f"{ckpt_prefix}{rank}{suffix}" for rank in ranks])


def unified_safetensors(
    src_dir,
    src_strategy_file,
    dst_dir,
    merge_with_redundancy=True,
    file_suffix=None,
    max_process_num=64,
    choice_func=None,
    split_dst_file=(),
) -> None:
    """Joins the .safetensors files of the workers of a job to one that holds whole parameters:
    `dst_dir`/part0.safetensors, and param_name_map.json with the file of each parameter.

    Args:
        src_dir: Has folders rank_N with .safetensors files, of which the newest counts.
        src_strategy_file: A strategy file of Muster, or None.
        dst_dir: Is made.
        merge_with_redundancy, max_process_num: Not used: each parameter is taken once, by one process.
        file_suffix: How the names of the files end, before .safetensors; None: in any way.
        choice_func, split_dst_file: Refused.

    Raises:
        NotADirectoryError: `src_dir` is no folder.
        ValueError: It has no such files, or they are no .safetensors; a strategy file cannot be read.
    """
    call = "unified_safetensors"
    _names.refuse(f"mindspore.{call}", choice_func=(choice_func, None), split_dst_file=(split_dst_file, ()))
    source = _folder(call, "src_dir", src_dir)
    _workers_of(call, src_strategy_file)
    files = _of_ranks(call, source, f"{file_suffix or ''}.safetensors")
    target = pathlib.Path(dst_dir)
    names = _write_joined(call, files, [target / "part0.safetensors"])
    file_of = dict.fromkeys(names, "part0.safetensors")
    (target / "param_name_map.json").write_text(json.dumps(file_of, indent=4) + "\n")


def load_distributed_checkpoint(
    network,
    checkpoint_filenames=None,
    predict_strategy=None,
    train_strategy_filename=None,
    strict_load=False,
    dec_key=None,
    dec_mode="AES-GCM",
    format="ckpt",
    unified_safetensors_dir=None,
    return_param_dict=False,
    **settings,
):
    """Sets the parameters of a network from the checkpoints of the workers of a job; where it is divided
    otherwise, each worker keeps its pieces.

    Args:
        network: The cell.
        checkpoint_filenames: The files, of which one is enough.
        predict_strategy, train_strategy_filename: Not used: checkpoints fit every layout.
        strict_load: As for load_param_into_net.
        unified_safetensors_dir: Instead of files, a folder of them.
        return_param_dict: Whether the values are given back.

    Returns:
        The values by name, or None.

    Raises:
        TypeError: `network` is no cell.
        ValueError: There is no file, or one has pieces of parameters.
    """
    from mindspore import train

    call = "load_distributed_checkpoint"
    _names.refuse(
        f"mindspore.{call}",
        **{name: (value, None, False) for name, value in {"dec_key": dec_key, **settings}.items()},
    )
    if not isinstance(network, muster.Cell):
        raise TypeError(f"{call}: network is a cell, not {type(network).__name__}")
    files = list(checkpoint_filenames or ())
    if unified_safetensors_dir is not None:
        files = _files_in(_folder(call, "unified_safetensors_dir", unified_safetensors_dir))
    if not files:
        raise ValueError(f"{call}: no file is given: name checkpoint_filenames")
    values = _joined(call, files)
    train.load_param_into_net(network, values, strict_load)
    return values if return_param_dict else None


def load_segmented_checkpoints(ckpt_file_dir, net=None, strict_load=False, filter_prefix=None, **settings):
    """The values of all checkpoints in a folder by name; with `net` they are set there.

    Raises:
        NotADirectoryError: `ckpt_file_dir` is no folder.
        ValueError: There are no checkpoints in it.
    """
    from mindspore import train

    call = "load_segmented_checkpoints"
    _names.refuse(f"mindspore.{call}", **{name: (value, None, False) for name, value in settings.items()})
    files = _files_in(_folder(call, "ckpt_file_dir", ckpt_file_dir))
    if not files:
        raise ValueError(f"{call}: '{ckpt_file_dir}' has no .ckpt or .safetensors files")
    values = _joined(call, files)
    prefixes = (filter_prefix,) if isinstance(filter_prefix, str) else tuple(filter_prefix or ())
    values = {name: value for name, value in values.items() if not name.startswith(prefixes or ("\0",))}
    if net is not None:
        train.load_param_into_net(net, values, strict_load)
    return values


def merge_pipeline_strategys(src_strategy_dirs, dst_strategy_file) -> None:
    """Writes one strategy file for those of the stages in a folder, which say the same.

    Raises:
        NotADirectoryError: `src_strategy_dirs` is no folder.
        ValueError: There is no strategy file in it, or one cannot be read.
    """
    call = "merge_pipeline_strategys"
    files = [path for path in sorted(_folder(call, "src_strategy_dirs", src_strategy_dirs).iterdir())]
    if not files:
        raise ValueError(f"{call}: '{src_strategy_dirs}' has no strategy files")
    workers = max(_workers_of(call, path) for path in files)
    pathlib.Path(dst_strategy_file).write_text(json.dumps({"workers": workers, "mesh": {}}) + "\n")


def convert_checkpoints(
    src_checkpoints_dir,
    dst_checkpoints_dir,
    ckpt_prefix,
    src_strategy_file=None,
    dst_strategy_file=None,
    process_num=1,
    output_format="ckpt",
) -> None:
    """transform_checkpoints by the name that it has beside AutoParallel."""
    transform_checkpoints(
        src_checkpoints_dir,
        dst_checkpoints_dir,
        ckpt_prefix,
        src_strategy_file,
        dst_strategy_file,
        process_num,
        output_format,
    )


def convert_checkpoint_by_rank(
    rank_id, checkpoint_files_map, save_checkpoint_file_name, src_strategy_file=None, dst_strategy_file=None
) -> None:
    """transform_checkpoint_by_rank by the name that it has beside AutoParallel."""
    transform_checkpoint_by_rank(
        rank_id, checkpoint_files_map, save_checkpoint_file_name, src_strategy_file, dst_strategy_file
    )


def rank_list_for_convert(rank_id, src_strategy_file=None, dst_strategy_file=None):
    """rank_list_for_transform by the name that it has beside AutoParallel."""
    return rank_list_for_transform(rank_id, src_strategy_file, dst_strategy_file)


def merge_sliced_parameter(sliced_parameters, strategy=None) -> muster.Parameter:
    """One parameter of pieces that lie along the first axis, in the order of the ranks.

    Args:
        sliced_parameters: Parameters of one name, dtype and shape.
        strategy: None. Those of MindSpore come from its strategy files, which Muster does not read.

    Returns:
        A new parameter with the first one's name, and whether it is trained.

    Raises:
        TypeError: `sliced_parameters` is no list of parameters, or `strategy` no dict.
        KeyError: `strategy` lacks the name of the parameter.
        ValueError: There is none, or they are not alike.
        NotImplementedError: `strategy` has the name.
    """
    call = "merge_sliced_parameter"
    if not isinstance(sliced_parameters, list) or not all(
        isinstance(each, muster.Parameter) for each in sliced_parameters
    ):
        raise TypeError(f"{call}: sliced_parameters is a list of Parameters")
    if not sliced_parameters:
        raise ValueError(f"{call}: there is no piece: give one Parameter of each rank")
    first = sliced_parameters[0]
    if strategy is not None and not isinstance(strategy, dict):
        raise TypeError(f"{call}: strategy is a dict or None, not {type(strategy).__name__}")
    if strategy is not None and first.name not in strategy:
        raise KeyError(f"{call}: strategy lacks '{first.name}'")
    _names.refuse(f"mindspore.{call}", strategy=(strategy, None))
    for rank, each in enumerate(sliced_parameters):
        if (each.name, each.dtype, each.shape) != (first.name, first.dtype, first.shape):
            raise ValueError(
                f"{call}: piece {rank} is '{each.name}' {each.dtype} {each.shape}, and piece 0 "
                f"'{first.name}' {first.dtype} {first.shape}: pieces of one parameter are alike"
            )
    import numpy

    whole = numpy.concatenate([each.asnumpy() for each in sliced_parameters])
    return muster.Parameter(muster.Tensor(whole), name=first.name, requires_grad=first.requires_grad)


def sync_pipeline_shared_parameters(net) -> None:
    """Nothing is to be done: a parameter that several stages use is one.

    Raises:
        TypeError: `net` is no cell.
    """
    if not isinstance(net, muster.Cell):
        raise TypeError(f"sync_pipeline_shared_parameters: net is a cell, not {type(net).__name__}")


__all__ = [
    "convert_checkpoint_by_rank",
    "convert_checkpoints",
    "load_distributed_checkpoint",
    "load_segmented_checkpoints",
    "merge_pipeline_strategys",
    "merge_sliced_parameter",
    "rank_list_for_convert",
    "rank_list_for_transform",
    "sync_pipeline_shared_parameters",
    "transform_checkpoint_by_rank",
    "transform_checkpoints",
    "unified_safetensors",
]
