"""Pipelines as dicts and files of JSON, and made again of them: serialize, deserialize, show.

A step is written of its node (_rows.py), a source and an operation of what their constructors got.
"""

import glob
import json
import os

from mindspore import log
from mindspore.dataset import _calls, _dataset, _operations, _rows, _samplers, _sources, config
from mindspore.dataset import _written_operations as operations
from mindspore.dataset._written_operations import plain, refusal

_QUEUE = 16  # MindSpore's connector_queue_size, which nothing here has


def _not_written(what):
    return TypeError(
        f"serialize: {what} is not written to JSON; make the pipeline by a function, "
        "called where it is needed"
    )


# ---- Samplers ---------------------------------------------------------------------------------------------

# By class the parameters that are written; what else MindSpore writes stands in _ALSO.
_OF_SAMPLER = {
    "DistributedSampler": ("num_shards", "shard_id", "offset"),
    "PKSampler": ("num_val", "shuffle"),
    "RandomSampler": ("replacement",),
    "SequentialSampler": ("start_index",),
    "SubsetRandomSampler": ("indices",),
    "SubsetSampler": ("indices",),
    "WeightedRandomSampler": ("weights", "replacement"),
}
_NO_SHUFFLE, _GLOBAL = 0, 2  # as MindSpore's library numbers them
_SHUFFLES = (False, _dataset.Shuffle.FILES, _dataset.Shuffle.GLOBAL, _dataset.Shuffle.INFILE)


def _written_sampler(sampler):
    name = type(sampler).__name__
    if name not in _OF_SAMPLER or type(sampler).__module__ != _samplers.__name__:
        raise TypeError(
            f"serialize: {name} is a sampler of Python code, which is not written to JSON; give one of "
            f"{', '.join(_OF_SAMPLER)}"
        )
    entry = {"sampler_name": name, "num_samples": sampler.num_samples or 0}
    entry.update({each: plain(getattr(sampler, each)) for each in _OF_SAMPLER[name]})
    if name == "SequentialSampler":
        entry["start_index"] = sampler.start_index or 0
    elif name == "RandomSampler":
        entry |= {"reshuffle_each_epoch": sampler.reshuffle_each_epoch, "shuffle_mode": _GLOBAL}
    elif name == "DistributedSampler":
        entry |= {"shuffle_mode": _GLOBAL if sampler.shuffle else _NO_SHUFFLE, "even_dist": True}
        entry["seed"] = config.get_seed()
    elif name == "PKSampler" and sampler.class_column != "label":  # MindSpore loses it
        entry["class_column"] = sampler.class_column
    if sampler.child_sampler is not None:
        entry["child_sampler"] = [_written_sampler(sampler.child_sampler)]
    return entry


def _read_sampler(entry):
    name = entry["sampler_name"]
    if name not in _OF_SAMPLER:
        raise refusal(f"there is no sampler {name}")
    made = {each: entry[each] for each in (*_OF_SAMPLER[name], "class_column") if each in entry}
    if name == "DistributedSampler":
        made["shuffle"] = entry["shuffle_mode"] != _NO_SHUFFLE
    sampler = getattr(_samplers, name)(num_samples=entry["num_samples"] or None, **made)
    for child in entry.get("child_sampler", ()):
        sampler.add_child(_read_sampler(child))
    return sampler


# ---- Sources ----------------------------------------------------------------------------------------------

_ORDER = ("shuffle", "num_samples", "num_shards", "shard_id")  # what sources make a sampler of
_EMPTY = {"class_indexing": {}, "extensions": [], "usage": "all"}  # for None


def _python_source(name):
    return name in ("GeneratorDataset", "NumpySlicesDataset", "PaddedDataset", "RandomDataset")


def _written_source(dataset):
    name = type(dataset).__name__
    entry = {"children": [], "connector_queue_size": _QUEUE}
    if not _calls.is_ours(dataset) or _python_source(name):
        log.warning(
            f"serialize: {name} is Python: its rows are not in the file, which gives no dataset again"
        )
        return entry | {"op_type": "GeneratorDataset", "num_parallel_workers": 1}
    if type(dataset) is _sources.MappableDataset:
        raise _not_written("a part that split() made")
    given = _calls.arguments(dataset)
    order = {each: given.pop(each, None) for each in _ORDER}
    given.pop("cache", None)
    workers = given.pop("num_parallel_workers", None)
    entry |= {"op_type": name, "num_parallel_workers": workers or _workers()}
    if "sampler" in given:
        del given["sampler"]
        entry["sampler"] = _written_sampler(dataset._sampler)
    else:
        entry |= _written_order(order)
    if isinstance(files := given.get("dataset_files"), str | list):
        given["dataset_files"] = [path for each in operations._as_list(files) for path in _paths(each)]
    for each, value in given.items():
        if value is not None or _EMPTY.get(each) is not None:
            entry[each] = _EMPTY[each] if value is None else plain(value)
    if name == "ImageFolderDataset":
        entry["recursive"] = False
    return entry


def _paths(pattern):
    return sorted(glob.glob(pattern)) or [pattern]


def _workers():
    return config.get_num_parallel_workers()


def _written_order(order):
    shuffle = order["shuffle"]
    if shuffle is True or shuffle is None:
        shuffle = _dataset.Shuffle.GLOBAL
    return {
        "shuffle": _SHUFFLES.index(shuffle),
        "num_samples": order["num_samples"] or 0,
        "num_shards": order["num_shards"] or 1,
        "shard_id": order["shard_id"] or 0,
    }


def _read_source(entry):
    from mindspore import dataset

    name = entry["op_type"]
    if _python_source(name):
        raise refusal(f"{name} has rows of Python code, which no file holds")
    if not name.endswith("Dataset") or name not in dataset.__all__:
        raise refusal(f"there is no source or step {name!r}")
    made = getattr(dataset, name)
    wanted = _calls.parameters(made)
    given = {
        each: value
        for each, value in entry.items()
        if each in wanted and not (each in _EMPTY and value == _EMPTY[each])
    }
    given.pop("num_parallel_workers", None)  # another machine's; it changes no row
    if "sampler" in given:
        given["sampler"] = _read_sampler(given["sampler"])
    elif "shard_id" in given:
        given |= _read_order(entry)
    return made(**given)


def _read_order(entry):
    is_whole = entry["num_shards"] == 1
    return {
        "shuffle": _SHUFFLES[entry["shuffle"]],
        "num_samples": entry["num_samples"] or None,
        "num_shards": None if is_whole else entry["num_shards"],
        "shard_id": None if is_whole else entry["shard_id"],
    }


# ---- Steps ------------------------------------------------------------------------------------------------


def _names(node, places):
    return [node.children[0].columns[at] for at in places]


def _busy(entry):
    """What steps that have workers in MindSpore are written with."""
    return entry | {"connector_queue_size": _QUEUE, "num_parallel_workers": _workers()}


def _unwrapped(function):
    """The operation that a pass in Python calls; see _operations.in_rows."""
    if isinstance(function, _operations.Seeded):
        return function._operation
    return function.__wrapped__


def _map(node):
    inputs = _names(node, node._at)
    renamed = [node.columns[at] for at in node._at] if node._in_place else node.columns[: node._count]
    written = [operations.written(_unwrapped(each)) for each in node._functions]
    entry = {"op_type": "Map", "operations": written, "callback": []}
    return _busy(entry | {"input_columns": inputs, "output_columns": renamed})


def _batch(node):
    if callable(node.rows_of_batch) or node._change is not None:
        raise _not_written("a function of batch (batch_size, per_batch_map)")
    entry = {"op_type": "Batch", "batch_size": node.rows_of_batch, "drop_remainder": node._drop}
    if node._padding is not None:  # MindSpore loses it
        entry["pad_info"] = plain(node._padding)
    return _busy(entry | {"input_columns": [], "output_columns": []})


def _buckets(node):
    if node._settings["length"] is not None:
        raise _not_written("element_length_function of bucket_batch_by_length")
    entry = {"op_type": "BucketBatchByLength", "column_names": _names(node, node._at)}
    return _busy(entry | {"settings": plain(node._settings)})  # MindSpore loses them


def _columns(node):
    before = node.children[0].columns
    if list(node._at) != list(range(len(before))) or list(node.columns) == before:
        return {"op_type": "Project", "columns": list(node.columns)}
    changed = [(old, new) for old, new in zip(before, node.columns, strict=True) if old != new]
    inputs, outputs = zip(*changed, strict=True)
    return {"op_type": "Rename", "input_columns": list(inputs), "output_columns": list(outputs)}


def _part(node):
    if node._end is None and node._begin:
        return {"op_type": "Skip", "count": node._begin}
    return {"op_type": "Take", "count": -1 if node._end is None else node._end}


def _filter(node):
    log.warning("serialize: filter runs Python, which the file does not have: it gives no dataset again")
    names = _names(node, node._at)
    inputs = [] if names == list(node.children[0].columns) else names
    return {
        "op_type": "Filter",
        "predicate": "pyfunc",
        "input_columns": inputs,
        "num_parallel_workers": _workers(),
    }


def _no_filter(entry, child):
    raise refusal("filter runs a function of Python, which no file holds")


def _concat(node):
    sizes = [child.size() for child in node.children]
    known = [size if size and size > 0 else 0 for size in sizes]
    return {
        "op_type": "Concat",
        "children_flag_and_nums": [[0, size] for size in known],
        "children_sizes": known,
        "children_start_end_index": [[-1, -1] for _ in known],
        "sampler": _written_sampler(_samplers.SequentialSampler()),
    }


_WRITERS = {
    _rows.Batch: _batch,
    _rows.Buckets: _buckets,
    _rows.Columns: _columns,
    _rows.Concat: _concat,
    _rows.Filter: _filter,
    _rows.Map: _map,
    _rows.Part: _part,
    _rows.Repeat: lambda node: {"op_type": "Repeat", "count": node._count},
    _rows.Shuffle: lambda node: {
        "op_type": "Shuffle",
        "buffer_size": node._buffer,
        "reset_each_epoch": True,
    },
    _rows.Zip: lambda node: _busy({"op_type": "Zip"}),
}


def _written(dataset):
    if not dataset.children:
        return _written_source(dataset)
    if dataset._node is dataset.children[0]._node:  # sync_wait: a step that changes no row
        return _written(dataset.children[0])
    node = dataset._node
    if type(node) not in _WRITERS:
        raise _not_written(f"{type(node).__name__} (of flat_map, split, callbacks or use_sampler)")
    return _WRITERS[type(node)](node) | {"children": [_written(each) for each in dataset.children]}


def _padding(pad_info):
    return {name: (shape, value) for name, (shape, value) in pad_info.items()}


def _read_batch(entry, child):
    size, drop = entry["batch_size"], entry["drop_remainder"]
    if "pad_info" in entry:
        return child.padded_batch(size, drop, pad_info=_padding(entry["pad_info"]))
    return child.batch(size, drop)


def _read_buckets(entry, child):
    if "settings" not in entry:
        raise refusal("bucket_batch_by_length was written without its bounds, as MindSpore does")
    given = entry["settings"]
    return child.bucket_batch_by_length(
        entry["column_names"],
        given["boundaries"],
        given["sizes"],
        pad_info=_padding(given["pad_info"]),
        pad_to_bucket_boundary=given["to_boundary"],
        drop_remainder=given["drop_remainder"],
    )


def _read_map(entry, child):
    made = [operations.read(each) for each in entry["operations"]]
    return child.map(made, entry["input_columns"] or None, entry["output_columns"] or None)


_READERS = {
    "Batch": _read_batch,
    "BucketBatchByLength": _read_buckets,
    "Concat": lambda entry, child, *more: child.concat(list(more)),
    "Filter": _no_filter,
    "Map": _read_map,
    "Project": lambda entry, child: child.project(entry["columns"]),
    "Rename": lambda entry, child: child.rename(entry["input_columns"], entry["output_columns"]),
    "Repeat": lambda entry, child: child.repeat(entry["count"]),
    "Shuffle": lambda entry, child: child.shuffle(entry["buffer_size"]),
    "Skip": lambda entry, child: child.skip(entry["count"]),
    "Take": lambda entry, child: child.take(entry["count"]),
    "Zip": lambda entry, *children: _dataset.zip(children),
}


def _read(entry):
    if not isinstance(entry, dict) or not isinstance(entry.get("op_type"), str):
        raise refusal(f"a dataset is a dict with 'op_type', not {entry!r}")
    name = entry["op_type"]
    try:
        if name in _READERS:
            if not entry["children"]:
                raise refusal(f"{name} has no children")
            return _READERS[name](entry, *[_read(each) for each in entry["children"]])
        return _read_source(entry)
    except KeyError as error:
        raise refusal(f"{name} lacks {error}") from None


# ---- What scripts call ------------------------------------------------------------------------------------


def serialize(dataset, json_filepath=""):
    """The pipeline as a dict, written to the file, too, where one is named.

    Of Python functions and generators it has the names only, with a warning: deserialize refuses those.
    """
    entry = _sorted(_written(_of_dataset("serialize", dataset)))
    if json_filepath:
        with open(json_filepath, "w", encoding="utf-8") as file:
            json.dump(entry, file, indent=2)
    return entry


def deserialize(input_dict=None, json_filepath=None):
    """The pipeline of a dict, or of a file, that serialize made; None without either."""
    if json_filepath:
        with open(os.fspath(json_filepath), encoding="utf-8") as file:
            input_dict = json.load(file)
    return _read(input_dict) if input_dict else None


def show(dataset, indentation=2):
    """Logs the pipeline as JSON: mindspore.log has it at level INFO (GLOG_v=1)."""
    log.info(json.dumps(serialize(_of_dataset("show", dataset)), indent=indentation))


def compare(pipeline1, pipeline2):
    """Whether both pipelines are written alike."""
    return serialize(pipeline1) == serialize(pipeline2)


def _of_dataset(call, dataset):
    if not isinstance(dataset, _dataset.Dataset):
        raise AttributeError(f"{call}: {dataset!r} is a {type(dataset).__name__}, no Dataset")
    return dataset


def _sorted(value):
    """Names in their order, as MindSpore's are."""
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(each) for each in value] if isinstance(value, list) else value


__all__ = ["compare", "deserialize", "serialize", "show"]
