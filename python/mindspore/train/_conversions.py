"""Checkpoints in the other format, and one that is loaded beside other work."""

import os
import re

from mindspore.train import serialization


def ckpt_to_safetensors(file_path, save_path=None, name_map=None, file_name_regex=None, processes_num=1):
    """Writes .ckpt files as .safetensors, one process after the other.

    Args:
        file_path: A file, or a folder with the files of folders that begin with 'rank'.
        save_path: The folder of the new files; by default they lie beside the old ones.
        name_map: A dict of new names by old ones; the others stay.
        file_name_regex: Of a folder, the files in whose names this is found.

    Raises:
        ValueError: There is no such file or folder, or the file has another extension.
    """
    _convert("ckpt_to_safetensors", ("ckpt", "safetensors"), file_path, save_path, name_map, file_name_regex)


def safetensors_to_ckpt(file_path, save_path=None, name_map=None, file_name_regex=None, processes_num=1):
    """Writes .safetensors files as .ckpt; the arguments are those of ckpt_to_safetensors."""
    _convert("safetensors_to_ckpt", ("safetensors", "ckpt"), file_path, save_path, name_map, file_name_regex)


def _convert(call, formats, file_path, save_path, name_map, regex) -> None:
    if name_map is not None and not isinstance(name_map, dict):
        raise ValueError(f"{call}: name_map is a dict, not {type(name_map).__name__}")
    if save_path and os.path.splitext(save_path)[1]:
        raise ValueError(f"{call}: save_path is a folder, not '{save_path}'")
    of, to = formats
    for name, folder in _sources(call, of, file_path, save_path, regex):
        values = serialization.load_checkpoint(name, format=of)
        names = {key: (name_map or {}).get(key, key) for key in values}
        if len(set(names.values())) < len(names):
            raise ValueError(f"{call}: name_map gives two entries of '{name}' one name")
        os.makedirs(folder, exist_ok=True)
        stem = os.path.basename(name)[: -len(of)]
        renamed = {names[key]: value for key, value in values.items()}
        serialization.save_checkpoint(renamed, os.path.join(folder, stem + to), format=to)


def _sources(call, of, file_path, save_path, regex):
    """(file, folder of the new one), ..."""
    if os.path.isfile(file_path):
        if not file_path.endswith(f".{of}"):
            raise ValueError(f"{call}: a file whose name ends with .{of} is converted, not '{file_path}'")
        if regex is not None and not re.findall(regex, file_path):
            raise ValueError(f"{call}: '{file_path}' does not match file_name_regex {regex!r}")
        return [(file_path, save_path or os.path.dirname(file_path) or ".")]
    if not os.path.isdir(file_path):
        raise ValueError(f"{call}: there is no file or folder '{file_path}'")
    ranks = sorted(
        each.name for each in os.scandir(file_path) if each.is_dir() and each.name.startswith("rank")
    )
    if not ranks:
        raise ValueError(f"{call}: '{file_path}' has no folder that begins with 'rank': name a file of it")
    return [
        (os.path.join(file_path, rank, name), os.path.join(save_path or file_path, rank))
        for rank in ranks
        for name in sorted(os.listdir(os.path.join(file_path, rank)))
        if name.endswith(f".{of}") and (regex is None or re.findall(regex, name))
    ]


class ParamDictFuture:
    """What load_checkpoint_async() gives; result() is the dict of parameters."""

    def __init__(self, values):
        self._values = values

    def result(self):
        """The parameters by name."""
        return self._values


def load_checkpoint_async(ckpt_file_name, *args, **kwargs):
    """load_checkpoint, which has ended when this returns; the answer's result() is the dict."""
    return ParamDictFuture(serialization.load_checkpoint(ckpt_file_name, *args, **kwargs))


__all__ = ["ParamDictFuture", "ckpt_to_safetensors", "load_checkpoint_async", "safetensors_to_ckpt"]
