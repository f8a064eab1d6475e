"""What scripts ask a Dataset about its rows, and its copies."""

import copy

from mindspore.dataset import _checks


def zip_columns(*parts):
    """Python's own zip."""
    return zip(*parts, strict=True)


class Facts:
    """The part of class Dataset that tells what there is, and copies it."""

    def __deepcopy__(self, memo):
        """One of its own with the same steps, whose passes begin anew; what its sources read is shared."""
        made = memo[id(self)] = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made.children = [copy.deepcopy(each, memo) for each in self.children]
        made._conditions = dict(self._conditions)
        made._passes = 0
        if self._pipeline is not None:
            made._pipeline = self._pipeline.repeat(1)
        return made

    def get_dataset_size(self):
        """Rows in one pass, which may have to be gone through: the first one, once."""
        if self._counted is None:
            self._counted = self._count()
        return self._counted

    def _count(self):
        from mindspore.dataset import _rows

        if self._pipeline is not None:
            try:
                return self._pipeline.get_dataset_size()
            except _rows.NeedsRowsError:
                self._pipeline = None
            except ValueError as error:  # of the rows, where they are gone through
                raise _checks.pipeline_error(error) from None
        size = self._node.size()
        if size is _rows.UNKNOWN:
            return sum(1 for _ in self._looked_at())
        if size == _rows.ENDLESS:
            raise TypeError("a dataset that repeats without end has no size")
        return size

    def _looked_at(self):
        """The rows of the first pass; it counts as none, and callbacks do not hear of it."""
        passes, self._passes, self._is_looked_at = self._passes, 0, True
        try:
            yield from self._rows_of_pass(True)
        finally:
            self._passes, self._is_looked_at = passes, False

    @property
    def _size_varies(self):
        """Whether only a pass can tell how many rows it has: the next one may have others (Model asks)."""
        from mindspore.dataset import _rows

        return self._pipeline is None and self._node.size() is _rows.UNKNOWN

    def __bool__(self):
        try:
            return self.get_dataset_size() != 0
        except TypeError:  # without end
            return True

    @property
    def dataset_size(self):
        """Rows in one pass."""
        return self.get_dataset_size()

    def get_batch_size(self):
        """Rows in an item."""
        if self._pipeline is not None:
            return self._pipeline.get_batch_size()
        size = getattr(self._node, "rows_of_batch", None)
        if size is not None:
            return -1 if callable(size) else size
        return self.children[0].get_batch_size() if self.children else 1

    def get_repeat_count(self):
        """Repetitions in the last repeat()."""
        if self._pipeline is not None:
            return self._pipeline.get_repeat_count()
        if (count := getattr(self._node, "_count", None)) is not None and type(
            self._node
        ).__name__ == "Repeat":
            return count
        return self.children[0].get_repeat_count() if self.children else 1

    def get_col_names(self):
        """The names of the columns."""
        return list(self._columns)

    def output_shapes(self, estimate=False):
        """The shape of each column in the first row; with `estimate` None where rows differ."""
        _checks.of_type("estimate", estimate, bool)
        rows = self._looked_at()
        first = next(rows, None)
        if first is None:
            raise _checks.PipelineError("output_shapes: there are no rows")
        shapes = [list(getattr(value, "shape", ())) for value in first]
        for row in rows if estimate else ():
            for shape, value in zip_columns(shapes, row):
                if len(shape) != len(value.shape):
                    raise _checks.PipelineError(
                        f"output_shapes: rows of one column have {len(shape)} and {len(value.shape)} "
                        f"dimensions, in {shape} and {list(value.shape)}"
                    )
                for at, size in enumerate(value.shape):
                    if shape[at] != size:
                        shape[at] = None
        return shapes

    def output_types(self):
        """numpy's dtype of each column in the first row."""
        import numpy

        first = next(self._looked_at(), None)
        if first is None:
            raise _checks.PipelineError("output_types: there are no rows")
        dtypes = [getattr(value, "dtype", numpy.dtype(object)) for value in first]
        return [numpy.dtype(each.kind) if each.kind in "US" else each for each in dtypes]

    def get_class_indexing(self):
        """The label of each class, where the source has classes."""
        if self._class_indexing is not None:
            found = self._class_indexing
            return found() if callable(found) else found
        return self.children[0].get_class_indexing() if self.children else {}

    def num_classes(self):
        """How many classes the source has; None: it does not say."""
        if self._class_indexing is not None or not self.children:
            return len(self.get_class_indexing()) or None
        return self.children[0].num_classes()

    def is_shuffled(self):
        """Whether rows come in random order."""
        return any(each.is_shuffled() for each in self.children)

    def is_sharded(self):
        """Whether only one part of the rows comes."""
        return any(each.is_sharded() for each in self.children)

    def reset(self):
        """The next pass is the first one again."""
        self._passes = 0

    def set_init_step(self, init_step):
        """Iterators that are made from then on, and a training of a Model, go on behind so many items: passes
        that these fill are over, and of the one at hand the first items are left out."""
        _checks.whole("init_step", init_step, 0)
        self._init_step = init_step

    def get_init_step(self):
        """The items that set_init_step leaves out, of this dataset or of the only one below it."""
        own = self.__dict__.get("_init_step")
        if own is not None:
            return own
        return self.children[0].get_init_step() if len(self.children) == 1 else 0

    def _go_on(self):
        """Has the next pass be the one that set_init_step begins with: its number, and how many of its items
        are left out."""
        if not (step := self.get_init_step()):
            return 0, 0
        number, left_out = divmod(step, self.get_dataset_size())
        self._count_passes(number)
        return number, left_out

    def _count_passes(self, number):
        """Has the next pass be the one of this number, here and in what this is made of."""
        self._passes = number
        if self._pipeline is not None:
            self._pipeline = self._pipeline.repeat(1)  # which counts its passes anew
            for _ in range(number):
                iter(self._pipeline.create_tuple_iterator(1, True)).close()
        for each in self.children:
            each._count_passes(number)
