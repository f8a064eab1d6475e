"""Small programs over mindspore.dataset and what MindSpore 2.7.0 answers: datasets.json.

Recorded by `python tests/parity/datasets.py [GROUP...]` in an environment that has MindSpore 2.7.0 (numpy
1.26, Pillow); tests/with_mindspore/test_dataset_parity.py runs the same programs here. A program is one
expression; an error is recorded by its type.
"""

import json
import pathlib
import sys
import tempfile
import zlib

import source_files
from metric_programs import METRICS
from more_source_programs import MORE_SOURCES
from source_programs import SOURCES
from text_programs import TEXT_PROGRAMS
from vision_programs import IMAGES, TRANSFORMS

RECORDED = pathlib.Path(__file__).with_suffix(".json")

NUMBERS = "ds.NumpySlicesDataset({'a': [1, 2, 3, 4], 'b': [1., 2., 3., 4.]}, shuffle=False)"
TEXTS = "ds.NumpySlicesDataset({'a': [1, 2, 3], 's': ['x', 'yy', 'z']}, shuffle=False)"
PAIRS = "ds.NumpySlicesDataset({'a': [[1, 2], [3, 4], [5, 6]], 'b': [1., 2., 3.]}, shuffle=False)"
LONGER = "ds.GeneratorDataset(lambda: ((np.arange(n),) for n in range(1, 8)), ['c'])"

PIPELINES = [
    f"rows({NUMBERS})",
    f"rows({TEXTS})",
    f"next({TEXTS}.create_dict_iterator(output_numpy=True))",
    f"[len(list(i)) for i in [{NUMBERS}.create_dict_iterator()] * 2]",
    f"({NUMBERS}.output_types()[1].name, {NUMBERS}.output_shapes(), {NUMBERS}.get_col_names())",
    f"({TEXTS}.output_types()[1].kind, {PAIRS}.output_shapes(), {LONGER}.output_shapes(estimate=True))",
    f"[type(row).__name__ for row in {NUMBERS}]",
    *[
        f"{NUMBERS}.{call}"
        for call in (
            "create_dict_iterator(num_epochs='1')",
            "create_dict_iterator(output_numpy='1')",
            "batch(0)",
            "batch('1')",
            "batch(2, drop_remainder=1)",
            "batch(2, input_columns=['a'])",
            "repeat(0)",
            "take(0)",
            "skip(-1)",
            "shuffle(1)",
            "split([.5, .6])",
            "split([3, 2])",
            "split([])",
            "split(4)",
            "split(['a'])",
            "sync_update('p')",
            "apply(lambda d: 3)",
            "zip(3)",
            "map(3, 'a')",
            "filter(3)",
            "bucket_batch_by_length(['a'], [], [1])",
            "bucket_batch_by_length(['a'], [2, 1], [1, 1, 1])",
            "bucket_batch_by_length(['a'], [1, 2], [1, 1])",
            "bucket_batch_by_length(['a', 'b'], [1, 2], [1, 1, 1])",
        )
    ],
    *[
        f"rows({NUMBERS}.{call})"
        for call in (
            "project(['q'])",
            "rename(['q'], ['z'])",
            "map(lambda x: x, 'zz')",
            "map(lambda x: (x, x), 'a')",
            "map(lambda x: 1 / 0, 'a')",
            "map([lambda x: (x, x + 1), lambda x, y: x + y], 'a')",
            "map(lambda x: str(x), 'a').batch(3)",
            "map(lambda x: x / 2, 'a')",
            "map(lambda x: float(x), 'a')",
            "filter(lambda a: a > 2, ['a'])",
            "filter(lambda a, b: a + b > 4)",
            "take(2).concat(" + NUMBERS + ".skip(3))",
            "take(2) + " + NUMBERS + ".skip(3)",
            "zip(" + PAIRS + ")",
            "zip(" + PAIRS + ".rename(['a', 'b'], ['c', 'd']))",
            "repeat(2).batch(3)",
            "batch(3, drop_remainder=True).repeat(2)",
            "batch(lambda info: info.get_batch_num() + 1)",
            "apply(lambda d: d.batch(2))",
        )
    ],
    f"rows({TEXTS}.batch(2))",
    f"rows({TEXTS}.repeat(2).batch(4))",
    f"rows({PAIRS}.batch(2, per_batch_map=lambda a, b, info: ([x + 1 for x in a], b)))",
    f"rows({NUMBERS}.batch(2, per_batch_map=lambda a, b, i: (b, a), output_columns=['c', 'd']))",
    f"rows({NUMBERS}.batch(2, per_batch_map=lambda a, i: (a,)))",
    f"rows({PAIRS}.batch(2, per_batch_map=lambda a, info: ([x * info.get_batch_num() for x in a],), "
    "input_columns=['a']))",
    f"rows({PAIRS}.padded_batch(2, pad_info={{'a': ([3], 7)}}))",
    f"rows({PAIRS}.padded_batch(2, pad_info={{}}))",
    f"rows({LONGER}.padded_batch(3, pad_info={{'c': ([None], -1)}}))",
    f"rows({LONGER}.batch(2))",
    f"rows({LONGER}.bucket_batch_by_length(['c'], [3, 5], [2, 2, 2], pad_info={{'c': ([None], 0)}}))",
    f"rows({LONGER}.bucket_batch_by_length(['c'], [3, 5], [2, 2, 1], drop_remainder=True, "
    "element_length_function=lambda x: x.shape[0]))",
    "rows(ds.NumpySlicesDataset([1, 2], shuffle=False).flat_map(lambda x: ds.NumpySlicesDataset([int(x), 5], "
    "shuffle=False)))",
    f"[rows(part) for part in {NUMBERS}.split([.5, .5], randomize=False)]",
    f"[part.get_dataset_size() for part in {NUMBERS}.split([3, 1])]",
    f"{NUMBERS}.repeat(3).get_dataset_size(), {NUMBERS}.batch(3).get_batch_size()",
    f"{NUMBERS}.repeat(3).get_repeat_count()",
    f"{NUMBERS}.reset(), {NUMBERS}.get_class_indexing(), len({LONGER})",
    "rows(ds.GeneratorDataset(lambda: [(1.5, 2, True, 'a', b'b', np.float16(1))] * 2, [*'abcdef']))",
    "rows(ds.GeneratorDataset(lambda: ([1, 2] for _ in range(2)), ['a']))",
    "rows(ds.GeneratorDataset(lambda: ([1, 2] for _ in range(2)), ['a', 'b']))",
    "rows(ds.GeneratorDataset([1, 2, 3], ['a', 'b']))",
    "rows(ds.GeneratorDataset([(1, 'p'), (2, 'q')], ['a', 'b'], shuffle=False))",
    "rows(ds.GeneratorDataset(lambda: (1 / 0 for _ in range(2)), ['a']))",
    "rows(ds.GeneratorDataset(lambda: ({'k': 1, 'l': [2]} for _ in range(2)), ['a']))",
    "ds.GeneratorDataset(lambda: (1, 2), ['a'], num_shards=2, shard_id=0)",
    "ds.GeneratorDataset(3, ['a'])",
    "ds.GeneratorDataset([1])",
    "rows(ds.GeneratorDataset([10, 11, 12, 13], ['a'], batch_sampler=[[0, 1], [3]]))",
    "rows(ds.GeneratorDataset([10, 11, 12, 13], ['a'], batch_sampler=[[0, 1], [3]], "
    "collate_fn=lambda rows: (np.array(rows) + 1,)))",
    "ds.NumpySlicesDataset(3)",
    "ds.NumpySlicesDataset([])",
    "ds.NumpySlicesDataset(([1, 2], [3, 4]), ['a'])",
    "ds.NumpySlicesDataset(([1, 2], [3, 4])).get_col_names()",
    "ds.NumpySlicesDataset([[1, 2], [3, 4]]).get_col_names()",
    "rows(ds.PaddedDataset([{'image': np.zeros(1, np.uint8)}, {'image': np.zeros(2, np.uint8)}]))",
]


def of_sampler(made, more=""):
    return f"rows(ds.NumpySlicesDataset([0, 1, 2, 3, 4], sampler={made}{more}))"


SAMPLERS = [
    of_sampler("ds.SequentialSampler(1, 3)"),
    of_sampler("[1, 3]"),
    of_sampler("range(3)"),
    of_sampler("ds.SubsetSampler([4, 4, 0], 2)"),
    of_sampler("own([0, 2])"),
    of_sampler("own([9])"),
    of_sampler("behind(ds.SequentialSampler(1, 3), ds.SubsetSampler([4, 3, 2, 1]))"),
    of_sampler("behind(ds.SubsetSampler([0, 1]), own([3, 2, 1]))"),
    of_sampler("ds.DistributedSampler(2, 0, shuffle=False, offset=1)"),
    of_sampler("ds.DistributedSampler(2, 1, shuffle=False, offset=1)"),
    of_sampler("ds.DistributedSampler(2, 1, shuffle=False)"),
    of_sampler("ds.DistributedSampler(3, 2, shuffle=False, num_samples=1)"),
    of_sampler("ds.SequentialSampler()", ", shuffle=True"),
    of_sampler("ds.SequentialSampler()", ", num_samples=2"),
    of_sampler("ds.SequentialSampler()", ", num_shards=2, shard_id=0"),
    "len(rows(ds.NumpySlicesDataset([1, 2, 3, 4], sampler=ds.WeightedRandomSampler([1, 1, 1, 1], 6))))",
    "len(rows(ds.NumpySlicesDataset([1, 2, 3, 4], sampler=ds.RandomSampler(num_samples=9))))",
    "len(rows(ds.NumpySlicesDataset([1, 2, 3, 4], sampler=ds.RandomSampler(True, 3))))",
    "sorted(int(r[0]) for r in ds.NumpySlicesDataset([1, 2, 3, 4], sampler=ds.SubsetRandomSampler([0, 2])))",
    "ds.SequentialSampler('1')",
    "rows(ds.NumpySlicesDataset([1], sampler=ds.SequentialSampler(-1)))",
    "ds.RandomSampler(1)",
    "ds.RandomSampler(num_samples=-1)",
    "ds.DistributedSampler('1', 0)",
    "ds.DistributedSampler(2, 0, offset='1')",
    "rows(ds.NumpySlicesDataset([1], sampler=ds.PKSampler(0)))",
    "ds.PKSampler('1')",
    "ds.SubsetSampler(['a'])",
    "len(rows(ds.NumpySlicesDataset([1, 2, 3], sampler=ds.RandomSampler(True, 5))))",
    "len(rows(ds.GeneratorDataset([1, 2, 3], ['a'], sampler=ds.RandomSampler(True, 5))))",
    "len(rows(ds.NumpySlicesDataset([1, 2, 3, 4], sampler=ds.WeightedRandomSampler([1, 1], 3))))",
    "ds.NumpySlicesDataset([1, 2, 3, 4], sampler=ds.WeightedRandomSampler([1, 1])).get_dataset_size()",
    "unordered(ds.NumpySlicesDataset([1, 2], sampler=ds.WeightedRandomSampler([0, 1])))",
    "rows(ds.NumpySlicesDataset([1, 2, 3], sampler=ds.WeightedRandomSampler([1, 1], 3, False)))",
    "len(rows(ds.NumpySlicesDataset([1, 2, 3], sampler=ds.WeightedRandomSampler([0, 1], 2, False))))",
    "rows(ds.NumpySlicesDataset([1, 2], sampler=ds.WeightedRandomSampler([1, 1, 1])))",
    "rows(ds.NumpySlicesDataset([1], sampler=ds.WeightedRandomSampler([])))",
    "rows(ds.NumpySlicesDataset([1, 2], sampler=ds.WeightedRandomSampler([-1, 2])))",
    "rows(ds.NumpySlicesDataset([1, 2], sampler=ds.WeightedRandomSampler([0, 0])))",
    "ds.WeightedRandomSampler(['a'])",
    "ds.NumpySlicesDataset([1, 2], num_shards=2)",
    "ds.NumpySlicesDataset([1, 2], num_shards=2, shard_id=2)",
    "ds.NumpySlicesDataset([1, 2], num_samples=-1)",
]

# Where OpenCV's float32 sums end at another half: within one level.
NEAR = ("AdjustContrast", "AdjustSaturation", "AdjustSharpness", "RandomColor", "RandomSharpness")
PROGRAMS = {
    "pipelines": PIPELINES,
    "samplers": SAMPLERS,
    "metrics": METRICS,
    "images": IMAGES,
    "transforms": TRANSFORMS,
    "texts": TEXT_PROGRAMS,
    "sources": SOURCES,
    "more sources": MORE_SOURCES,
}


def environment(folder):
    """The names that programs use; small files come into `folder`."""
    import mindspore as ms
    import mindspore.dataset as ds
    import mindspore.dataset.text
    import mindspore.train
    import numpy as np

    class Own(ds.Sampler):
        def __init__(self, numbers):
            super().__init__()
            self.numbers = numbers

        def __iter__(self):
            return iter(self.numbers)

    def behind(sampler, child):
        sampler.add_child(child)
        return sampler

    def rows(dataset):
        return list(dataset.create_tuple_iterator(num_epochs=1, output_numpy=True))

    def unordered(dataset):
        return sorted([value.tolist() for value in row] for row in rows(dataset))

    def counted(metric, *batches):
        metric.clear()
        for batch in batches:
            metric.update(*batch)
        return metric.eval()

    def digests(dataset):
        return [
            [(array.dtype.name, array.shape, zlib.crc32(array.tobytes())) for array in row]
            for row in rows(dataset)
        ]

    source_files.write(folder)
    return {
        "FILES": str(folder),
        "digests": digests,
        "unordered": unordered,
        "ms": ms,
        "ds": ds,
        "np": np,
        "own": Own,
        "behind": behind,
        "rows": rows,
        "text": ds.text,
        "vision": ds.vision,
        "transforms": ds.transforms,
        "image": np.random.RandomState(0).randint(0, 256, (11, 13, 3)).astype(np.uint8),
        "large": np.random.RandomState(1).randint(0, 256, (64, 48, 3)).astype(np.uint8),
        "train": ms.train,
        "counted": counted,
        "T": lambda values: ms.Tensor(np.array(values, np.float32)),
        "I": lambda values: np.array(values, np.int32),
        "flagged": tuple(np.random.RandomState(0).randint(0, 2, (2, 2, 3, 5))),
    }


def plain(value):
    """An answer as JSON holds it: arrays with their dtype."""
    import numpy

    if isinstance(value, numpy.ndarray | numpy.generic):
        array = numpy.asarray(value)
        kind = array.dtype.kind if array.dtype.kind in "US" else array.dtype.name
        return {"dtype": kind, "shape": list(array.shape), "is": plain(array.tolist())}
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, bytes):
        return "bytes " + value.decode("latin1")
    return value if isinstance(value, int | float | str | bool | type(None)) else type(value).__name__


def answer(program, names):
    """What the program gives, or the type of its error and all that this type is."""
    try:
        return {"gives": plain(eval(program, names))}
    except Exception as error:
        return {"raises": type(error).__name__, "is": [kind.__name__ for kind in type(error).__mro__]}


def main(wanted):
    names = environment(tempfile.mkdtemp())
    recorded = json.loads(RECORDED.read_text()) if wanted else {}
    for group, programs in PROGRAMS.items():
        if wanted and group not in wanted:
            continue
        recorded[group] = {}
        for program in programs:
            found = answer(program, names)
            found.pop("is", None)
            recorded[group][program] = found
    lines = [f"{json.dumps(group)}: {json.dumps(found)}" for group, found in recorded.items()]
    RECORDED.write_text("{" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
