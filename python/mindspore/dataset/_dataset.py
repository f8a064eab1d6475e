"""Class Dataset with MindSpore's arguments.

A dataset is described twice: as a pipeline of the library, which runs it where its tensors can hold the rows,
and as nodes of _rows.py, for text, objects and what else only Python holds. The first row of a pass decides.
"""

import enum
import functools

import muster.dataset

from mindspore import _device, _names
from mindspore.dataset import _cache, _checks, _facts, _operations
from muster import _draws, _subclasses


def note_batch_processes(python_multiprocessing) -> None:
    if python_multiprocessing:
        _device.note_once(
            "note: python_multiprocessing of batch() has no effect: its functions run in this process"
        )


class Dataset(_facts.Facts):
    """Rows and what is done to them; every method returns a new one."""

    _class_indexing = None
    _num_classes = None

    def __init__(self, pipeline, node=None, inputs=()):
        self._pipeline = pipeline
        self._make_node = node
        self.children = list(inputs)
        self._passes = 0
        self._counted = None  # the rows of a pass, once somebody asked
        self._is_looked_at = False
        self._conditions = {}
        for each in self.children:
            self._conditions.update(each._conditions)
        if pipeline is None:
            _ = self._node  # names what is wrong here and now

    @functools.cached_property
    def _node(self):
        if self._make_node is None:
            from mindspore.dataset import _rows

            return _rows.Source(self._pipeline.get_col_names(), self._pipeline_rows, self._pipeline_size)
        return self._make_node()

    def _pipeline_rows(self, draw):
        return map(list, self._pipeline.create_tuple_iterator(1, True))

    def _pipeline_size(self):
        try:
            return self._pipeline.get_dataset_size()
        except TypeError as error:
            if isinstance(error, ValueError):
                raise
            return -1  # without end

    @property
    def _columns(self):
        return self._pipeline.get_col_names() if self._pipeline is not None else self._node.columns

    def _derived(self, native, node, *others, kind=None):
        """Another step: `native` changes the pipeline (None: it cannot), `node` makes the step in Python.

        `kind` is the class of the dataset, Dataset by default.
        """
        inputs = [self, *others]
        pipeline = None
        if native is not None and all(each._pipeline is not None for each in inputs):
            try:
                pipeline = native(*[each._pipeline for each in inputs])
            except ValueError as error:
                raise _checks.PipelineError(str(error)) from None

        def make_node():
            from mindspore.dataset import _rows

            return node(_rows, *[each._node for each in inputs])

        return (kind or Dataset)(pipeline, make_node, inputs)

    # ---- What is done to the rows ------------------------------------------------------------------------

    def map(
        self,
        operations,
        input_columns=None,
        output_columns=None,
        column_order=None,
        num_parallel_workers=None,
        *,
        python_multiprocessing=False,
        cache=None,
        callbacks=None,
        max_rowsize=None,
        offload=None,
    ):
        """Applies operations to columns; a function may give anything that numpy holds, text too."""
        _names.refuse("mindspore.dataset.Dataset.map", **_cache.refused(cache))
        inputs = _checks.names("input_columns", input_columns)
        outputs = _checks.names("output_columns", output_columns)
        _checks.of_type("python_multiprocessing", python_multiprocessing, bool)
        _checks.of_type("offload", offload, bool, optional=True)
        workers(num_parallel_workers)
        operations = _operations.flat_operations(operations)
        if callbacks is not None:
            return self._called_back(callbacks).map(operations, inputs, outputs, column_order)
        operations, is_debugged = _operations.with_hooks(operations)
        mapped = self._derived(
            None
            if is_debugged
            else lambda pipeline: pipeline.map(
                _operations.for_pipeline(operations),
                inputs,
                outputs,
                num_parallel_workers,
                python_multiprocessing,
                max_rowsize,
            ),
            lambda rows, child: rows.Map(child, _operations.in_rows(operations), inputs, outputs),
        )
        return mapped if column_order is None else mapped.project(column_order)

    def _called_back(self, callbacks):
        from mindspore.dataset import _callbacks

        return self._derived(None, lambda rows, child: _callbacks.Called(child, callbacks))

    def filter(self, predicate, input_columns=None, num_parallel_workers=None):
        """The rows for which the predicate is true."""
        if not callable(predicate):
            raise TypeError("Predicate should be a Python function or a callable Python object.")
        inputs = _checks.names("input_columns", input_columns)
        workers(num_parallel_workers)
        return self._derived(
            lambda pipeline: pipeline.filter(_operations.Function(predicate, text=_draws.OF_FILTER), inputs),
            lambda rows, child: rows.Filter(child, _operations.guarded(predicate, _draws.OF_FILTER), inputs),
        )

    def batch(
        self,
        batch_size,
        drop_remainder=False,
        num_parallel_workers=None,
        *,
        per_batch_map=None,
        input_columns=None,
        output_columns=None,
        python_multiprocessing=False,
        max_rowsize=None,
        **older,
    ):
        """Stacks rows; `batch_size` may be a function of BatchInfo, `per_batch_map` changes whole columns:
        those of `input_columns` (None: all).
        """
        if "pad_info" in older:
            return self.padded_batch(batch_size, drop_remainder, num_parallel_workers, older.pop("pad_info"))
        column_order = older.pop("column_order", None)
        if older:
            raise TypeError(f"Dataset.batch() got an unexpected keyword argument '{next(iter(older))}'")
        batch_size = _checks.batch_size_of(batch_size)
        _checks.of_type("drop_remainder", drop_remainder, bool)
        workers(num_parallel_workers)
        _checks.of_type("python_multiprocessing", python_multiprocessing, bool)
        _checks.of_type("max_rowsize", max_rowsize, int, list, optional=True)
        _checks.function_of("per_batch_map", per_batch_map)
        note_batch_processes(python_multiprocessing)
        inputs, outputs = (
            _checks.names("input_columns", input_columns),
            _checks.names("output_columns", output_columns),
        )
        if per_batch_map is None and outputs is not None:
            raise ValueError("Output_columns is specified but per_batch_map is not (only valid with it).")
        if per_batch_map is None and inputs is not None:
            raise ValueError("per_batch_map and input_columns need to be passed in together.")
        plain = per_batch_map is None and not callable(batch_size)
        batched = self._derived(
            (lambda pipeline: pipeline.batch(batch_size, drop_remainder)) if plain else None,
            lambda rows, child: rows.Batch(
                child,
                batch_size,
                drop_remainder,
                per_batch_map and _operations.guarded(per_batch_map, _draws.OF_BATCH),
                inputs,
                outputs,
            ),
        )
        return batched if column_order is None else batched.project(column_order)

    def padded_batch(self, batch_size, drop_remainder=False, num_parallel_workers=None, pad_info=None):
        """Stacks rows, each filled up to (shape, value) of `pad_info`; {}: to the largest of the batch."""
        if pad_info is None:
            return self.batch(batch_size, drop_remainder, num_parallel_workers)
        batch_size = _checks.batch_size_of(batch_size)
        _checks.of_type("drop_remainder", drop_remainder, bool)
        padding = _checks.padding(pad_info)
        return self._derived(
            None, lambda rows, child: rows.Batch(child, batch_size, drop_remainder, padding=padding)
        )

    def bucket_batch_by_length(
        self,
        column_names,
        bucket_boundaries,
        bucket_batch_sizes,
        element_length_function=None,
        pad_info=None,
        pad_to_bucket_boundary=False,
        drop_remainder=False,
    ):
        """Batches of rows of like length."""
        _checks.of_type("column_names", column_names, list)
        columns = _checks.names("column_names", column_names, optional=False)
        _checks.of_type("bucket_boundaries", bucket_boundaries, list, tuple)
        _checks.of_type("bucket_batch_sizes", bucket_batch_sizes, list, tuple)
        _checks.buckets(list(bucket_boundaries), list(bucket_batch_sizes))
        if element_length_function is None and len(columns) != 1:
            raise ValueError(
                "If element_length_function is not specified, exactly one column name should be passed."
            )
        if element_length_function is not None and not callable(element_length_function):
            raise TypeError("element_length_function object is not callable.")
        _checks.of_type("pad_to_bucket_boundary", pad_to_bucket_boundary, bool)
        _checks.of_type("drop_remainder", drop_remainder, bool)
        settings = {
            "boundaries": list(bucket_boundaries),
            "sizes": list(bucket_batch_sizes),
            "length": element_length_function,
            "pad_info": _checks.padding(pad_info),
            "to_boundary": pad_to_bucket_boundary,
            "drop_remainder": drop_remainder,
        }
        return self._derived(None, lambda rows, child: rows.Buckets(child, columns, settings))

    def flat_map(self, func):
        """The rows of the dataset that `func` makes of each row."""
        if not callable(func):
            raise TypeError("func must be a function.")

        def node_of(made):
            if not isinstance(made, Dataset):
                raise TypeError(f"flat_map: Callback must return a Dataset, not {type(made).__name__}")
            return made._node

        first = next(self._looked_at(), None)
        if first is None:
            raise _checks.PipelineError("flat_map: there are no rows")
        columns = node_of(func(*first)).columns
        return self._derived(None, lambda rows, child: rows.FlatMap(child, func, columns, node_of))

    def project(self, columns):
        """Only the named columns."""
        names = _checks.names("columns", columns, optional=False)
        return self._derived(
            lambda pipeline: pipeline.project(names),
            lambda rows, child: rows.Columns(child, [child.index(name, "project") for name in names], names),
        )

    def rename(self, input_columns, output_columns):
        """Other names for some columns."""
        old = _checks.names("input_columns", input_columns, optional=False)
        new = _checks.names("output_columns", output_columns, optional=False)
        if len(old) != len(new):
            raise ValueError("Number of column in input_columns and output_columns is not equal.")

        def node(rows, child):
            renamed = dict(_facts.zip_columns(old, new))
            for name in old:
                child.index(name, "rename")
            names = [renamed.get(name, name) for name in child.columns]
            if len(set(names)) != len(names):
                raise _checks.PipelineError(f"rename: two columns would have one name: {names}")
            return rows.Columns(child, range(len(names)), names)

        return self._derived(lambda pipeline: pipeline.rename(old, new), node)

    # ---- Which rows come ---------------------------------------------------------------------------------

    def shuffle(self, buffer_size):
        """Each row is drawn from the next `buffer_size` that have not come yet."""
        _checks.whole("buffer_size", buffer_size, 2)
        if self._conditions:
            raise RuntimeError(
                f"No shuffle after sync operators: put it before sync_wait({next(iter(self._conditions))!r})"
            )
        return self._derived(
            lambda pipeline: pipeline.shuffle(buffer_size),
            lambda rows, child: rows.Shuffle(child, buffer_size),
        )

    def repeat(self, count=None):
        """All rows `count` times; without end by default."""
        _checks.of_type("count", count, int, optional=True)
        if count is not None and count != -1 and not 1 <= count <= _checks.INT32_MAX:
            raise ValueError("count should be either -1 or positive integer, range[1, INT32_MAX].")
        return self._derived(
            lambda pipeline: pipeline.repeat(count), lambda rows, child: rows.Repeat(child, count or -1)
        )

    def take(self, count=-1):
        """At most the first `count` rows."""
        _checks.of_type("count", count, int)
        if count != -1 and not 0 < count <= _checks.INT32_MAX:
            raise ValueError(
                f"count should be either -1 or within the required interval of (0, 2147483647], got {count}."
            )
        end = None if count == -1 else count
        return self._derived(
            lambda pipeline: pipeline.take(count), lambda rows, child: rows.Part(child, 0, end)
        )

    def skip(self, count):
        """All but the first `count` rows."""
        _checks.whole("count", count, 0)
        return self._derived(
            lambda pipeline: pipeline.skip(count), lambda rows, child: rows.Part(child, count, None)
        )

    def concat(self, datasets):
        """The rows of this dataset, then those of the others."""
        others = _datasets(datasets, "concat")
        return self._derived(
            lambda pipeline, *more: pipeline.concat(list(more)),
            lambda rows, *nodes: rows.Concat(list(nodes)),
            *others,
            kind=ConcatDataset,
        )

    def __add__(self, datasets):
        return self.concat(datasets)

    def zip(self, datasets):
        """The columns of this dataset and of the others side by side."""
        if not isinstance(datasets, Dataset | tuple):
            raise TypeError(
                f"Invalid datasets, expected Dataset object or tuple of Dataset, but got {datasets}!"
            )
        return zip((self, *_datasets(datasets, "zip")))

    def split(self, sizes, randomize=True):
        """Parts of the rows: of so many rows each, or of such shares. Each pass has the same parts."""
        _checks.of_type("randomize", randomize, bool)
        total = self.get_dataset_size()
        counts = _checks.split_sizes(sizes, total)
        return tuple(self._parts(counts, randomize))

    def _parts(self, counts, randomize):
        from mindspore.dataset import _random, config

        order = list(range(sum(counts)))
        if randomize:
            order = _random.stream(config.get_seed(), len(order)).permutation(len(order)).tolist()
        begin = 0
        for count in counts:
            yield self._rows_numbered(order[begin : begin + count], randomize)
            begin += count

    def _rows_numbered(self, numbers, randomize):
        """The rows of these numbers (in this order, where this is a source)."""
        if not randomize:
            return self.skip(numbers[0]).take(len(numbers))
        from mindspore.dataset import _rows

        chosen = frozenset(numbers)

        def rows(draw):
            child = self._node.rows(_rows.Draw(draw.seed, 0))
            return (row for number, row in enumerate(child) if number in chosen)

        return Dataset(None, lambda: _rows.Source(self._columns, rows, len(numbers)), [self])

    def apply(self, apply_func):
        """What `apply_func` makes of this dataset."""
        if not callable(apply_func):
            raise TypeError("apply_func must be a function.")
        made = apply_func(self)
        if not isinstance(made, Dataset):
            raise TypeError("apply_func must return a dataset.")
        return made

    # ---- Conditions, kept for scripts: a callback is called by sync_update --------------------------------

    def sync_wait(self, condition_name, num_batch=1, callback=None):
        """Names a condition; sync_update calls its callback. Rows behind it are made when they are asked for:
        each with what the callbacks of the rows before it left."""
        _checks.of_type("condition_name", condition_name, str)
        _checks.of_type("num_batch", num_batch, int)
        if num_batch < 1:
            raise ValueError("num_batch need to be greater than 0.")
        if callback is not None and not callable(callback):
            raise TypeError("callback should be a function.")
        if condition_name in self._conditions:
            raise RuntimeError("Condition name is already in use.")
        made = self._derived(None, lambda rows, child: child)
        made._conditions[condition_name] = callback
        return made

    def sync_update(self, condition_name, num_batch=None, data=None):
        """Calls the callback of sync_wait with `data`."""
        if num_batch is not None and (not _checks.is_whole(num_batch) or num_batch <= 0):
            raise _checks.PipelineError(f"Sync_update batch size can only be positive integer: {num_batch}")
        if condition_name not in self._conditions:
            raise RuntimeError("Condition name not found.")
        if (callback := self._conditions[condition_name]) is not None:
            callback(data)

    def disable_sync(self):
        """Passes do not wait as it is."""

    # ---- Passes ------------------------------------------------------------------------------------------

    def create_tuple_iterator(self, columns=None, num_epochs=-1, output_numpy=False, do_copy=False):
        """Something to loop over; rows are lists."""
        from mindspore.dataset import _iterators

        _checks.names("columns", columns)
        chosen = self if columns is None else self.project(columns)
        return _iterators.TupleIterator(chosen, num_epochs, output_numpy, do_copy)

    def create_dict_iterator(self, num_epochs=-1, output_numpy=False, do_copy=False):
        """Something to loop over; rows are dicts."""
        from mindspore.dataset import _iterators

        return _iterators.DictIterator(self, num_epochs, output_numpy, do_copy)

    def __iter__(self):
        return self.create_tuple_iterator(num_epochs=1)

    def __len__(self):
        return self.get_dataset_size()

    def _begin_pass(self, as_numpy, number=None):
        return self._rows_of_pass(as_numpy, number)

    def _origins(self):
        """The files or folders that the rows are read from."""
        return [path for child in self.children for path in child._origins()]

    def _rows_of_pass(self, as_numpy, number=None):
        from mindspore.dataset import _iterators

        return _iterators.located(self._unlocated_rows(as_numpy, number), self._origins())

    def _unlocated_rows(self, as_numpy, number=None):
        from mindspore.dataset import _rows, config

        if self._pipeline is None or config.get_error_samples_mode():
            yield from self._python_rows(as_numpy, number)
            return

        rows = iter(self._pipeline.create_tuple_iterator(1, as_numpy))
        try:
            first = next(rows)
        except StopIteration:
            return
        except _rows.NeedsRowsError:
            self._pipeline = None
            yield from self._python_rows(as_numpy, number)
            return
        except ValueError as error:
            raise _checks.pipeline_error(error) from None
        yield first
        del first  # its memory is for a later row
        try:
            yield from rows
        except _rows.NeedsRowsError as error:
            raise _checks.PipelineError(f"a later row has {error}, unlike the first one") from None
        except ValueError as error:
            raise _checks.pipeline_error(error) from None

    def _python_rows(self, as_numpy, number=None):
        from mindspore.dataset import _iterators, _rows, config

        draw = _rows.Draw(config.get_seed(), self._passes, number=number)
        draw.is_look = self._is_looked_at
        self._passes += 1
        rows = self._node.rows(draw)
        if as_numpy:
            return rows
        return ([_iterators.tensor_of(value) for value in row] for row in rows)

    # ---- Files -------------------------------------------------------------------------------------------

    def save(self, file_name, num_files=1, file_type="mindrecord"):
        """Writes the rows as files of MindRecord."""
        from mindspore.mindrecord import _save

        if file_type != "mindrecord":
            raise ValueError(f"{file_type} is not in ('mindrecord').")
        _checks.of_type("file_name", file_name, str)
        _checks.whole("num_files", num_files, 1, 1000)
        _save.save(self, file_name, num_files)

    @property
    def column_names(self):
        """The names of the columns, as get_col_names() gives them."""
        return self.get_col_names()

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        raise AttributeError(_names.sentence(f"mindspore.dataset.Dataset.{name}"))


_subclasses.watch_datasets(Dataset)


class ConcatDataset(Dataset):
    """The rows of several datasets, one after the other: what concat() gives."""

    _whole = None  # all rows, where a sampler chooses among them

    def use_sampler(self, sampler):
        """One shard of all the rows (DistributedSampler), or all of them in random order (RandomSampler)."""
        from mindspore.dataset import _samplers

        kinds = (_samplers.DistributedSampler, _samplers.RandomSampler)
        if not isinstance(sampler, kinds):
            raise TypeError(f"The parameter {sampler} of concat must be DistributedSampler or RandomSampler!")
        name = type(sampler).__name__
        if sampler.get_num_samples() is not None:
            raise ValueError(f"The parameter num_samples of {name} is not support to be set!")
        is_random = isinstance(sampler, _samplers.RandomSampler)
        if is_random and sampler.replacement:
            raise ValueError("The parameter replacement of RandomSampler must be False!")
        if not is_random and sampler.is_shuffled():
            raise ValueError("The parameter shuffle of DistributedSampler must be False!")
        shard = () if is_random else (sampler.shard_id, sampler.num_shards)
        if self._whole is None:
            self._whole = self._node
        self._pipeline = self._counted = None
        self._make_node = lambda: _rows_module().Sampled(self._whole, *shard)
        del self._node


def _rows_module():
    from mindspore.dataset import _rows

    return _rows


def workers(num_parallel_workers):
    """Checks a number of workers."""
    if num_parallel_workers is not None:
        _checks.of_type("num_parallel_workers", num_parallel_workers, int)
        if not 1 <= num_parallel_workers <= 1024:
            raise ValueError("num_parallel_workers exceeds the boundary between 1 and 1024!")


def _datasets(datasets, what):
    given = (
        [datasets]
        if isinstance(datasets, Dataset)
        else list(datasets)
        if isinstance(datasets, list | tuple)
        else []
    )
    if not given:
        raise TypeError(f"{what} takes a Dataset or several of them, not {datasets!r}")
    for each in given:
        if not isinstance(each, Dataset):
            raise TypeError(f"Invalid dataset, expected Dataset object, but got {type(each)}!")
    return given


def zip(datasets):
    """The columns of all datasets side by side."""
    _checks.of_type("datasets", datasets, tuple)
    if len(datasets) < 2:
        raise ValueError("Can't zip empty or just one dataset!")
    first, *others = _datasets(datasets, "zip")
    return first._derived(
        lambda *pipelines: muster.dataset.zip(list(pipelines)),
        lambda rows, *nodes: rows.Zip(list(nodes)),
        *others,
    )


class Shuffle(enum.StrEnum):
    """How a source of files shuffles: all rows, the files, or the rows within each file."""

    GLOBAL = "global"
    FILES = "files"
    INFILE = "infile"
    ADAPTIVE = "adaptive"
    PARTIAL = "partial"


def shuffle_from(call, shuffle):
    """MindSpore's `shuffle` as a bool or None."""
    if not isinstance(shuffle, Shuffle):
        return shuffle
    _names.refuse(call, shuffle=(shuffle, Shuffle.GLOBAL))
    return True
