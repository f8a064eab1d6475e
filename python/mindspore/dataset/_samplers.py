"""Which rows of a source come: MindSpore's samplers, samplers of one's own, and one behind the other."""

import itertools

import muster.dataset

from mindspore.dataset import _checks


class Sampler:
    """Base class of samplers of one's own: `__iter__` gives row numbers; `dataset_size` is known there."""

    num_samples = None
    child_sampler = None
    dataset_size = 0

    def __init__(self, num_samples=None):
        _checks.whole("num_samples", num_samples, 0, 2**63 - 1, optional=True)
        self.num_samples = num_samples
        self.child_sampler = None
        self.dataset_size = 0

    def __iter__(self):
        raise NotImplementedError(f"{type(self).__name__} must define __iter__, which gives row numbers")

    def reset(self):
        """Called before each pass of an iterator but the first; nothing, unless a class defines it."""

    def chain(self):
        """This one, its child, the child of that, ..."""
        return [self, *(self.child_sampler.chain() if self.child_sampler is not None else [])]

    def add_child(self, sampler):
        """Chooses among the rows that `sampler` gives."""
        if self.child_sampler is not None:
            raise RuntimeError("Cannot add child sampler, this sampler already has a child.")
        if sampler is not None and not isinstance(sampler, Sampler):
            raise TypeError(f"a child sampler is a sampler, not {type(sampler).__name__}")
        self.child_sampler = sampler

    def get_child(self):
        """The sampler among whose rows this one chooses."""
        return self.child_sampler

    def get_num_samples(self):
        """How many rows come; None: as many as there are."""
        child = self.child_sampler.get_num_samples() if self.child_sampler else None
        return self.num_samples if child is None else min(child, self.num_samples or child)

    def is_shuffled(self):
        """Whether the order is random."""
        return bool(self.child_sampler and self.child_sampler.is_shuffled())

    def is_sharded(self):
        """Whether only one part of the rows comes."""
        return bool(self.child_sampler and self.child_sampler.is_sharded())

    def _native(self, rows):
        """The library's own sampler; None: the order is made in Python. `rows`: None where unknown."""
        return None

    def _chosen(self, rows, random, labels):
        """Numbers below `rows`: all that it gives, which may be more or fewer than there are."""
        self.dataset_size = rows
        return [int(at) for at in itertools.islice(iter(self), self.num_samples or None)]

    def _order(self, rows, random, labels=None):
        """The row numbers of one pass."""
        if self.child_sampler is None:
            return _in_range(self._chosen(rows, random, labels), rows)
        below = self.child_sampler._order(rows, random, labels)
        return [below[at] for at in _in_range(self._chosen(len(below), random, None), len(below))]


def _in_range(order, rows):
    for at in order:
        if not 0 <= at < rows:
            raise _checks.PipelineError(f"a sampler gave row {at}: out of range, rows are 0 to {rows - 1}")
    return order


class BuiltinSampler(Sampler):
    """Base class of the samplers here."""


class _Given(Sampler):
    """Anything that gives row numbers when it is iterated over."""

    def __init__(self, numbers, num_samples=None):
        super().__init__(num_samples)
        self._numbers = numbers

    def __iter__(self):
        return iter(self._numbers)


def _number(num_samples, *, name="num_samples"):
    _checks.of_type(name, num_samples, int, optional=True)
    if num_samples is not None and num_samples < 0:
        raise ValueError(f"{name} exceeds the boundary between 0 and 9223372036854775807(INT64_MAX)!")
    return num_samples or None


class SequentialSampler(BuiltinSampler):
    """Rows in their order, from `start_index` on."""

    def __init__(self, start_index=None, num_samples=None):
        _checks.of_type("start_index", start_index, int, optional=True)
        if start_index is not None and start_index < 0:
            raise _checks.PipelineError("start_index should not be negative.")
        super().__init__(_number(num_samples))
        self.start_index = start_index

    def _native(self, rows):
        return muster.dataset.SequentialSampler(self.start_index, self.num_samples)

    def _chosen(self, rows, random, labels):
        begin = self.start_index or 0
        end = rows if self.num_samples is None else min(rows, begin + self.num_samples)
        return list(range(begin, end))


class RandomSampler(BuiltinSampler):
    """Rows in random order; with `replacement` a row may come again. No more than the source has."""

    def __init__(self, replacement=False, num_samples=None):
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement must be a boolean value but was: {replacement}.")
        super().__init__(_number(num_samples))
        self.deterministic = False
        self.replacement = replacement
        self.reshuffle_each_epoch = True

    def is_shuffled(self):
        return True

    def _native(self, rows):
        count = self.num_samples
        if count is not None and rows is not None:
            count = min(count, rows)
        return muster.dataset.RandomSampler(self.replacement, count)

    def _chosen(self, rows, random, labels):
        count = min(rows, self.num_samples or rows)
        if self.replacement:
            return random.integers(rows, size=count).tolist()
        return random.permutation(rows)[:count].tolist()


class DistributedSampler(BuiltinSampler):
    """One of `num_shards` parts; `offset`: the part that begins, then parts need not be equally long."""

    def __init__(self, num_shards, shard_id, shuffle=True, num_samples=None, offset=-1):
        for name, value in (("num_shards", num_shards), ("shard_id", shard_id)):
            if not _checks.is_whole(value):
                raise TypeError(f"{name} must be integer but was: {value}.")
        if not isinstance(shuffle, bool):
            raise TypeError(f"shuffle must be a boolean value but was: {shuffle}.")
        if not _checks.is_whole(offset):
            raise TypeError(f"offset must be integer but was: {offset}.")
        if num_shards < 1:
            raise _checks.PipelineError(f"num_shards should be positive, but is {num_shards}")
        if not 0 <= shard_id < num_shards:
            raise _checks.PipelineError(f"shard_id must be 0 to {num_shards - 1}, but is {shard_id}")
        if offset > num_shards:
            raise RuntimeError(f"DistributedSampler: offset should not be more than num_shards {num_shards}")
        super().__init__(_number(num_samples))
        self.num_shards, self.shard_id, self.shuffle, self.offset = num_shards, shard_id, shuffle, offset
        self.seed = 0

    def is_shuffled(self):
        return self.shuffle

    def is_sharded(self):
        return True

    def _native(self, rows):
        if self.offset != -1:
            return None
        return muster.dataset.DistributedSampler(
            self.num_shards, self.shard_id, self.shuffle, self.num_samples
        )

    def _chosen(self, rows, random, labels):
        order = random.permutation(rows).tolist() if self.shuffle else list(range(rows))
        if self.offset == -1:
            each = -(-rows // self.num_shards)
            chosen = [order[(self.num_shards * k + self.shard_id) % rows] for k in range(each)]
        else:
            chosen = order[(self.shard_id - self.offset) % self.num_shards :: self.num_shards]
        return chosen[: self.num_samples]


class SubsetSampler(BuiltinSampler):
    """The rows of these numbers, in this order."""

    def __init__(self, indices, num_samples=None):
        if isinstance(indices, str | bytes) or not hasattr(indices, "__iter__"):
            indices = [indices]
        self.indices = list(indices)
        for at, index in enumerate(self.indices):
            if not _checks.is_whole(index):
                raise TypeError(
                    f"SubsetSampler: Type of indices element must be int, but got list[{at}]: {index}, "
                    f"type: {type(index)}."
                )
        super().__init__(_number(num_samples))

    def get_num_samples(self):
        return min(len(self.indices), self.num_samples or len(self.indices))

    def _native(self, rows):
        return muster.dataset.SubsetSampler([int(at) for at in self.indices], self.num_samples)

    def _chosen(self, rows, random, labels):
        return [int(at) for at in self.indices[: self.num_samples]]


class SubsetRandomSampler(SubsetSampler):
    """The rows of these numbers, in random order."""

    def is_shuffled(self):
        return True

    def _native(self, rows):
        return muster.dataset.SubsetRandomSampler([int(at) for at in self.indices], self.num_samples)

    def _chosen(self, rows, random, labels):
        return [int(self.indices[at]) for at in random.permutation(len(self.indices))[: self.num_samples]]


class IterSampler(Sampler):
    """Anything that gives row numbers when it is iterated over."""

    def __init__(self, sampler, num_samples=None):
        super().__init__(num_samples)
        self.sampler = sampler

    def __iter__(self):
        return iter(self.sampler)


class PKSampler(BuiltinSampler):
    """`num_val` rows of each class, of at most `num_class` classes."""

    def __init__(self, num_val, num_class=None, shuffle=False, class_column="label", num_samples=None):
        if not _checks.is_whole(num_val):
            raise TypeError(f"num_val must be integer but was: {num_val}.")
        if num_val <= 0:
            raise _checks.PipelineError("num_val should not be a negative integer or 0")
        if num_class is not None:
            raise NotImplementedError("Not supported to specify num_class for PKSampler.")
        if not isinstance(shuffle, bool):
            raise TypeError(f"shuffle must be a boolean value but was: {shuffle}.")
        if not isinstance(class_column, str):
            raise TypeError(f"class_column must be a str value but was: {class_column}.")
        super().__init__(_number(num_samples))
        self.num_val, self.shuffle, self.class_column = num_val, shuffle, class_column

    def is_shuffled(self):
        return self.shuffle

    def _native(self, rows):
        return muster.dataset.PKSampler(self.num_val, None, self.shuffle, num_samples=self.num_samples)

    def _chosen(self, rows, random, labels):
        if labels is None:
            raise _checks.PipelineError(
                "PKSampler needs a source with labels, and this one has none (or there is a child)"
            )
        members = {}
        for row, label in enumerate(labels):
            members.setdefault(label, []).append(row)
        chosen = []
        for label in sorted(members):
            of_class = random.permutation(members[label]).tolist() if self.shuffle else members[label]
            chosen += of_class[: self.num_val]
        return chosen[: self.num_samples]


class WeightedRandomSampler(BuiltinSampler):
    """Rows drawn with a probability for each; rows behind those that have weights never come."""

    def __init__(self, weights, num_samples=None, replacement=True):
        self.weights = weights if isinstance(weights, list | tuple) else list(weights)
        for at, weight in enumerate(self.weights):
            if not _checks.is_number(weight):
                raise TypeError(
                    f"type of weights element must be number, but got w[{at}]: {weight}, "
                    f"type: {type(weight)}."
                )
        if not self.weights:
            raise _checks.PipelineError("weights size should not be 0")
        if min(self.weights) < 0:
            raise _checks.PipelineError("weights should not contain negative numbers")
        if not any(self.weights):
            raise _checks.PipelineError("elements of weights should not be all zero")
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement must be a boolean value but was: {replacement}.")
        super().__init__(_number(num_samples))
        self.replacement = replacement

    def is_shuffled(self):
        return True

    def _count(self, rows):
        """How many of `rows` come: as many as there are, or fewer if asked for."""
        weights, count = len(self.weights), min(rows, self.num_samples or rows)
        if weights > rows:
            raise _checks.PipelineError(f"there are {weights} weights for {rows} rows")
        if not self.replacement and count > weights:
            raise _checks.PipelineError(
                f"without replacement there must be a weight for each of num_samples: {weights} weights, "
                f"num_samples {count}"
            )
        return count

    def _native(self, rows):
        if rows is None or not self.replacement or self._count(rows) > len(self.weights):
            return None
        return muster.dataset.WeightedRandomSampler(
            [float(weight) for weight in self.weights], self._count(rows), self.replacement
        )

    def _chosen(self, rows, random, labels):
        import numpy

        share, count = numpy.asarray(self.weights, float), self._count(rows)
        if self.replacement:
            return random.choice(len(share), count, True, share / share.sum()).tolist()
        with numpy.errstate(divide="ignore"):  # the greatest of u^(1/weight) come; those of weight 0 last
            keys = numpy.log(random.random(len(share))) / share
        return numpy.argsort(-keys, kind="stable")[:count].tolist()


class BlockSampler(BuiltinSampler):
    """One shard of the rows of files: as many as the others, one behind the other; or whole files.

    `files`: how many rows each file has. `shuffle`: None, "files" (their order is drawn), "infile" (that of
    the rows in each), "global" (both, and that of the rows of the shard). `by_file` gives whole files.
    """

    def __init__(self, files, num_shards, shard_id, shuffle, num_samples, by_file=False):
        super().__init__(num_samples)
        if by_file and num_shards > len(files):
            raise _checks.PipelineError(
                f"there are {len(files)} files for {num_shards} shards: give fewer shards, or "
                "shard_equal_rows=True"
            )
        self._files, self._shards, self._shard = files, num_shards, shard_id
        self._shuffle, self._by_file = shuffle, by_file

    def is_shuffled(self):
        """Whether the order is random."""
        return self._shuffle is not None

    def is_sharded(self):
        """True."""
        return True

    def _chosen(self, rows, random, labels):
        begins = list(itertools.accumulate(self._files, initial=0))
        order = list(range(len(self._files)))
        if self._shuffle in ("files", "global"):  # the same in all shards: it is drawn first
            order = random.permutation(len(order)).tolist()
        parts = [list(range(begins[at], begins[at + 1])) for at in order]
        if self._shuffle == "infile":
            parts = [random.permutation(part).tolist() for part in parts]
        if self._by_file:
            parts = parts[self._shard :: self._shards]
        numbers = list(itertools.chain(*parts))
        if not self._by_file:
            each = -(-rows // self._shards)
            numbers = [numbers[(self._shard * each + at) % rows] for at in range(each)]
        if self._shuffle == "global":
            numbers = random.permutation(numbers).tolist()
        return numbers[: self.num_samples]


def checked(sampler):
    """The sampler; a TypeError where it is none."""
    if sampler is None:
        raise TypeError("Input sampler can not be None.")
    if not isinstance(sampler, Sampler):
        raise TypeError(f"Input sampler is not an instance of a sampler, but a {type(sampler).__name__}.")
    return sampler


def _is_iterable(sampler):
    """Whether it gives row numbers: by __iter__, or one by one by __getitem__."""
    if isinstance(sampler, str | bytes):
        return False
    return hasattr(sampler, "__iter__") or hasattr(sampler, "__getitem__")


def of(sampler, num_samples=None):
    """What a script gives as `sampler` as a Sampler."""
    if isinstance(sampler, BuiltinSampler):
        return sampler
    if isinstance(sampler, Sampler):
        if num_samples is not None and sampler.num_samples is None:
            sampler.num_samples = num_samples
        return sampler
    if isinstance(sampler, list | tuple):
        return SubsetSampler(sampler, num_samples)
    if isinstance(sampler, int) and not isinstance(sampler, bool):
        return SubsetSampler([sampler], num_samples)
    if isinstance(sampler, muster.dataset.Sampler):
        raise TypeError("a sampler of muster.dataset belongs to its datasets: use one of mindspore.dataset")
    if _is_iterable(sampler):
        return IterSampler(sampler, num_samples)
    raise TypeError(f"Unsupported sampler object of type ({type(sampler)})")


def above(new_sampler, child):
    """The sampler, choosing among the rows that `child` (None: all rows) gives."""
    sampler = of(new_sampler)
    if child is not None:
        sampler.add_child(child)
    return sampler


def chosen(sampler, shuffle, num_samples, num_shards, shard_id):
    """The sampler that a source's arguments say."""
    if num_samples is not None:
        _number(num_samples)
    if shuffle is not None and not isinstance(shuffle, bool):
        raise TypeError(
            f"Argument shuffle with value {shuffle} is not of type [<class 'bool'>], but got "
            f"{type(shuffle)}: shuffle must be a boolean value but was: {shuffle}."
        )
    _checks.shards(num_shards, shard_id)
    if sampler is not None:
        is_own = not isinstance(sampler, BuiltinSampler)
        others = (shuffle, num_shards, shard_id, None if is_own else num_samples)
        if any(other is not None for other in others):
            raise ValueError(
                f"Conflicting arguments during sampler assignments. num_samples: {num_samples}, num_shards: "
                f"{num_shards}, shard_id: {shard_id}, shuffle: {shuffle}."
            )
        return of(sampler, num_samples)
    mixed = True if shuffle is None else shuffle
    if num_shards is not None:
        return DistributedSampler(num_shards, shard_id, mixed, num_samples)
    return RandomSampler(num_samples=num_samples) if mixed else SequentialSampler(num_samples=num_samples)
