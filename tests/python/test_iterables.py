"""Model.train, fit and eval over anything that gives batches: a DataLoader, a list, a class with __iter__."""

import numpy
import pytest

import muster
from muster import nn, train


def batch(i, rows=4):
    numbers = numpy.random.default_rng(i)
    return numbers.standard_normal((rows, 6)).astype(numpy.float32), numbers.integers(0, 3, rows).astype(
        numpy.int32
    )


class Batches:
    """Begins anew for each pass, and keeps which passes there were."""

    def __init__(self, count=5):
        self.count = count
        self.begun = 0

    def __len__(self):
        return self.count

    def __iter__(self):
        self.begun += 1
        return (batch(i) for i in range(self.count))


def model(metrics=("accuracy",)):
    muster.set_seed(1)
    net = nn.Dense(6, 3)
    return train.Model(
        net, nn.CrossEntropyLoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9), metrics=set(metrics)
    )


def test_an_evaluation_counts_rows_and_not_batches():
    values, labels = batch(0)
    cut = [(values[:3], labels[:3]), (values[3:], labels[3:])]
    whole = muster.dataset.NumpySlicesDataset((values, labels), ["x", "y"], shuffle=False)
    trained = model(("loss",))
    assert trained.eval(cut) == trained.eval(whole.batch(3))


def weights(trained):
    return [p.asnumpy().tobytes() for p in trained.train_network.trainable_params()]


def trained_over(data, epochs=3):
    made = model()
    made.train(epochs, data)
    return weights(made)


def test_each_epoch_iterates_anew_and_trains_as_a_dataset_does():
    from muster.dataset import NumpySlicesDataset

    rows = tuple(numpy.concatenate(column) for column in zip(*map(batch, range(5)), strict=True))
    expected = trained_over(NumpySlicesDataset(rows, ["x", "y"], shuffle=False).batch(4))
    data = Batches()
    assert trained_over(data) == expected
    assert data.begun == 3
    assert trained_over([batch(i) for i in range(5)]) == expected
    assert trained_over([list(batch(i)) for i in range(5)]) == expected
    assert trained_over([dict(zip("xy", batch(i), strict=True)) for i in range(5)]) == expected
    assert trained_over(lambda: map(batch, range(5))) == expected


def test_eval_and_fit_take_them_too():
    made, data = model(), Batches()
    before = made.eval(data)["accuracy"]
    made.fit(4, data, [batch(i) for i in range(5)])
    assert made.eval(data)["accuracy"] > before
    assert "column_0" in repr(made.explain(data)) or made.explain(data) is not None


class Passes(train.Callback):
    def __init__(self):
        self.steps = []

    def on_train_step_end(self, run_context):
        self.steps.append(run_context.original_args().batch_num)


def test_the_length_is_that_of_a_loader_or_counted():
    seen = Passes()
    model().train(1, Batches(3), [seen])
    model().train(1, lambda: map(batch, range(2)), [seen])
    assert seen.steps == [3, 3, 3, 2, 2]


class Tensorish:
    """What tensors of other libraries are: something that numpy can read."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


def test_tensors_that_offer_numpy_are_taken():
    assert trained_over([tuple(map(Tensorish, batch(i))) for i in range(5)]) == trained_over(Batches())


def test_labels_may_be_int64_as_those_of_pytorch_are():
    assert trained_over([(x, y.astype(numpy.int64)) for x, y in map(batch, range(5))]) == trained_over(
        Batches()
    )


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (map(batch, range(3)), ValueError, "train_dataset is a map, which can be gone through once"),
        (3, TypeError, "train_dataset must be a Dataset, or something to iterate over.* not int"),
        (batch(0)[0], TypeError, "NumpySlicesDataset"),
        ([], ValueError, "train_dataset gives no items"),
        ([batch(0), batch(1)[:1]], ValueError, "train_dataset: item 1 has 1 values, and the first one had 2"),
        (
            [batch(0), ([[1, 2], [3]], batch(1)[1])],
            ValueError,
            "train_dataset: item 1, column_0 .*cannot be made a tensor",
        ),
        ([batch(0), {"x": 1}], ValueError, "item 1 is a dict"),
        ([dict(zip("xy", batch(0), strict=True)), {"x": 1, "z": 2}], ValueError, "item 1 has no 'y'"),
        ([(batch(0)[0],)], ValueError, "two columns"),
    ],
)
def test_what_cannot_be_trained_on_is_named(data, error, message):
    with pytest.raises(error, match=message):
        model().train(2, data)


def test_a_generator_behind_iter_that_is_exhausted_is_named():
    class Once:
        def __init__(self):
            self.items = map(batch, range(3))

        def __iter__(self):
            return self.items

        def __len__(self):
            return 3

    with pytest.raises(ValueError, match="train_dataset gave nothing: it was gone through before"):
        model().train(2, Once())


def test_a_generator_object_of_a_dataset_that_is_exhausted_is_named():
    from muster.dataset import GeneratorDataset

    data = GeneratorDataset((item for item in [(1.0,), (2.0,)]), ["x"])
    assert len([item for (item,) in data]) == 2
    with pytest.raises(ValueError, match="gone through before"):
        next(iter(data))


@pytest.mark.parametrize("said", [2, 5])
def test_a_length_that_is_wrong_is_named(said):
    class Wrong(Batches):
        def __len__(self):
            return said

    with pytest.raises(ValueError, match=f"train_dataset says that it has {said} items"):
        model().train(1, Wrong(3))


def test_an_exception_of_the_loader_is_itself():
    def broken():
        yield batch(0)
        raise ZeroDivisionError("of the loader")

    class Broken(Batches):
        def __iter__(self):
            return broken()

    with pytest.raises(ZeroDivisionError, match="of the loader"):
        model().train(1, Broken())


def test_set_epoch_hears_the_number_of_each_pass():
    class Shuffled(Batches):
        def __init__(self):
            super().__init__()
            self.epochs = []

        def set_epoch(self, epoch):
            self.epochs.append(epoch)

    data = Shuffled()
    made = model()
    made.train(2, data)
    made.train(1, data)
    assert data.epochs == [0, 1, 0, 2]  # each call looks at the first item


def test_a_dataloader_of_pytorch():
    torch = pytest.importorskip("torch")
    x, y = (numpy.concatenate(column) for column in zip(*map(batch, range(5)), strict=True))
    rows = torch.utils.data.TensorDataset(torch.from_numpy(x), torch.from_numpy(y.astype(numpy.int64)))
    assert trained_over(torch.utils.data.DataLoader(rows, batch_size=4)) == trained_over(Batches())


RECOVERING = """
import os, pathlib, random, signal
import numpy
import muster
from muster import nn, train

muster.init()
muster.set_seed(1)

def batch(i):
    numbers = numpy.random.default_rng(i)
    x, y = numbers.standard_normal((4, 6)), numbers.integers(0, 3, 4)
    return x.astype(numpy.float32), y.astype(numpy.int32)

class Data:
    def __len__(self): return 10
    def __iter__(self):
        order = list(range(10))
        ORDER.shuffle(order)
        return map(batch, order)
    SET_EPOCH

class Dies(train.Callback):
    def on_train_step_end(self, run_context):
        dies = os.environ.get("DIES") and not pathlib.Path("died").exists()
        if dies and run_context.original_args().cur_step_num == 17:
            while not list(pathlib.Path(os.environ["MS_RECOVERY_PATH"]).glob("*/*/call_0.step_15")):
                pass
            pathlib.Path("died").touch()
            os.kill(os.getpid(), signal.SIGKILL)

ORDER = random.Random(SEED)
net = nn.Dense(6, 3)
model = train.Model(net, nn.CrossEntropyLoss(), nn.Momentum(net.trainable_params(), 0.1, 0.9))
saves = train.CheckpointConfig(save_checkpoint_steps=5, keep_checkpoint_max=1)
model.train(4, Data(), [Dies(), train.ModelCheckpoint(directory="saved", config=saves)])
print("weights", net.weight.asnumpy().tobytes().hex(), flush=True)
"""


def recovering_run(folder, script, **variables):
    import os
    import subprocess

    import job
    from places import BUILD, SEARCH_PATH

    folder.mkdir()
    (folder / "train.py").write_text(script)
    command = [BUILD / "apps/muster/muster", "run", "-n", "1", "--max-restarts", "1", "train.py"]
    environment = {
        **job.clean_environment(),
        "PATH": SEARCH_PATH,
        "MS_RECOVERY_PATH": str(folder / "points"),
        **variables,
    }
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    print(done.stdout, done.stderr)
    assert ("DIES" in variables) == os.path.exists(folder / "died")
    return done


def weights_of(done):
    assert done.returncode == 0
    return [line for line in done.stdout.splitlines() if "weights" in line]


def test_a_training_goes_on_in_the_middle_of_a_pass_whose_order_depends_on_its_number(tmp_path):
    set_epoch = "def set_epoch(self, epoch): ORDER.seed(epoch)"
    script = RECOVERING.replace("SET_EPOCH", set_epoch).replace("SEED", "0")
    unbroken = recovering_run(tmp_path / "unbroken", script)
    broken = recovering_run(tmp_path / "broken", script, DIES="1")
    assert weights_of(broken) == weights_of(unbroken)


def test_a_training_does_not_go_on_over_other_items(tmp_path):
    script = RECOVERING.replace("SET_EPOCH", "").replace("SEED", "None")
    broken = recovering_run(tmp_path / "broken", script, DIES="1")
    said = broken.stdout + broken.stderr
    assert broken.returncode != 0
    assert "in the middle of pass 1" in said and "the first 5 items are others than before" in said
    assert "set_epoch(pass)" in said
