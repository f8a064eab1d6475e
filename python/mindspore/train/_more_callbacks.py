"""Callbacks that are written in Python."""

import contextlib
import json
import os
import signal

import muster
from mindspore import _device
from mindspore.train import serialization
from mindspore.train._callbacks import Callback
from muster import _core, _draws


class InternalCallbackParam(dict):
    """What a callback is told, as a dict whose entries are attributes."""

    def __getattr__(self, name):
        if name in self:
            return self[name]
        raise AttributeError(name)

    def __setattr__(self, name, value):
        self[name] = value


_InternalCallbackParam = InternalCallbackParam


def _loss_of(outputs):
    import numpy

    first = outputs[0] if isinstance(outputs, tuple | list) else outputs
    return float(numpy.mean(first.asnumpy())) if hasattr(first, "asnumpy") else first


class History(Callback):
    """Keeps each epoch's loss and metrics, as `history`, and the numbers of the last training's epochs, as
    `epoch`. Evaluations of fit are no epochs of their own."""

    def __init__(self):
        super().__init__()
        self.history = {}
        self.epoch = None

    def on_train_begin(self, run_context):
        """Counts epochs anew; `history` goes on."""
        self.epoch = {"epoch": []}

    def on_train_epoch_end(self, run_context):
        """Adds an epoch."""
        params = run_context.original_args()
        self.epoch["epoch"].append(params.cur_epoch_num)
        self.history.setdefault("net_output", []).append(_loss_of(params.net_outputs))
        for name, value in (params.eval_results or {}).items():
            self.history.setdefault(name, []).append(value)

    def state_dict(self):
        """What it has kept."""
        return {"epoch": self.epoch, "history": self.history}

    def load_state_dict(self, state):
        """Takes over what state_dict gave."""
        self.epoch, self.history = state["epoch"], state["history"]


class OnRequestExit(Callback):
    """Saves and ends the training, or the evaluation, behind the step in which it is asked to; the process
    then ends as after any training, with 0. Asked is by a signal, or by {"GracefulExit": 1} in a JSON file.
    Where workers share the training, one of them is enough, and all end behind the same step.

    Args:
        save_ckpt: Whether the parameters of the network and the optimizer are saved, as
            DIRECTORY/rank_RANK/NAME_train.ckpt (NAME_eval.ckpt). The next training begins with them; a worker
            that has no file, since there were fewer, with those of worker 0.
        save_mindir: Noted once: there is no MindIR.
        file_name, directory: NAME and DIRECTORY.
        config_file: The JSON file; None: none. One that is not there, or no JSON, asks for nothing.
        sig: The number of the signal.

    Raises:
        TypeError: An argument is not of its kind.
        ValueError: `file_name` is empty, or `sig` is SIGKILL or SIGINT.
    """

    def __init__(
        self,
        save_ckpt=True,
        save_mindir=True,
        file_name="Net",
        directory="./",
        config_file=None,
        sig=signal.SIGTERM,
    ):
        super().__init__()
        for name, value in (("save_ckpt", save_ckpt), ("save_mindir", save_mindir)):
            if not isinstance(value, bool):
                raise TypeError(f"OnRequestExit: {name} must be a bool, not {type(value).__name__}")
        if not isinstance(file_name, str) or not file_name:
            raise ValueError("OnRequestExit: file_name must be a string that is not empty")
        if config_file is not None and not isinstance(config_file, str | os.PathLike):
            raise TypeError(f"OnRequestExit: config_file is a path, not {config_file!r}")
        if sig in (signal.SIGKILL, signal.SIGINT):
            raise ValueError("OnRequestExit: sig must not be SIGKILL or SIGINT")
        self.save_ckpt, self.save_mindir, self.sig = save_ckpt, save_mindir, sig
        self.config_file = config_file
        rank = _core._context()["rank"]
        self._folder = os.path.abspath(directory or ".")
        folder = os.path.join(self._folder, f"rank_{rank}")
        self.train_name = os.path.join(folder, f"{file_name}_train")
        self.eval_name = os.path.join(folder, f"{file_name}_eval")
        self.exit = False  # whether this worker was asked
        self._ends = False  # whether all workers know that one was
        self._trains = False  # a training is under way: evaluations of fit are a part of it
        self._before = None
        self._workers = None
        self._was_odd = False  # the file, when it was last read

    def _note(self, number, frame):
        self.exit = True

    def _listen(self):
        before = signal.signal(self.sig, self._note)
        if before != self._note:
            self._before = before
        workers = _core._context()["world_size"]
        if self._workers is None and workers > 1:
            self._workers = muster.new_group(range(workers))

    def _stop_listening(self):
        signal.signal(self.sig, self._before)

    def _file_asks(self):
        if self.config_file is None:
            return False
        try:
            with open(self.config_file, encoding="utf-8") as file:
                asks = json.load(file).get("GracefulExit") == 1
        except OSError:
            return False
        except (ValueError, AttributeError) as error:
            if self._was_odd:  # for the second time: nobody is just writing it
                _device.note_once(
                    f"warning: OnRequestExit: '{self.config_file}' is not what asks to end, "
                    f'{{"GracefulExit": 1}}: {error}'
                )
            self._was_odd = True
            return False
        self._was_odd = False
        return asks

    def _is_asked(self):
        """Whether any worker is: a collective call of all of them."""
        if self._file_asks():  # False is never written: a signal may have come meanwhile
            self.exit = True
        self._ends = self.exit
        if self._workers is not None:  # a signal that comes meanwhile counts for the next step
            flag = muster.Tensor([int(self.exit)], dtype=muster.int32)
            self._ends = bool(muster.ops.all_reduce(flag, "max", group=self._workers).tolist()[0])
            if self._ends:
                self.exit = True
        return self._ends

    def _save(self, network, name):
        if self.save_mindir:
            _device.note_once("note: OnRequestExit writes no MindIR: the checkpoint has the parameters")
        if not self.save_ckpt:
            return
        os.makedirs(os.path.dirname(name), exist_ok=True)
        serialization.save_checkpoint(muster.Model(network).gather_parameters(), name + ".ckpt")

    def _load(self, network, *names):
        first = os.path.join(self._folder, "rank_0")  # files hold wholes, as good for any worker
        for name in names:
            for each in (name, os.path.join(first, os.path.basename(name))):
                if self.save_ckpt and os.path.isfile(each + ".ckpt"):
                    serialization.load_checkpoint(each + ".ckpt", net=network)
                    return

    def on_train_begin(self, run_context):
        """Listens, and begins with what was saved."""
        self._trains = True
        self._listen()
        self._load(run_context.original_args().train_network, self.train_name)

    def on_train_step_end(self, run_context):
        """Saves and ends, if it was asked to."""
        if not self._is_asked():
            return
        self._save(run_context.original_args().train_network, self.train_name)
        run_context.request_stop()

    def on_train_end(self, run_context):
        """Listens no more."""
        self._trains = False
        self._stop_listening()

    def on_eval_begin(self, run_context):
        """Listens, and evaluates what was saved; in a fit what it has trained."""
        if self._trains:
            return
        self._listen()
        self._load(run_context.original_args().eval_network, self.eval_name, self.train_name)

    def on_eval_step_end(self, run_context):
        """Ends, if it was asked to."""
        if self._is_asked():
            run_context.request_stop()

    def on_eval_end(self, run_context):
        """Saves, if it was asked to end, and listens no more."""
        if self._ends:
            self._save(run_context.original_args().eval_network, self.eval_name)
        if not self._trains:
            self._stop_listening()

    def state_dict(self):
        """Nothing: a worker that comes back after a recovery was not asked to end."""
        return {}

    def load_state_dict(self, state):
        """Nothing is to be done."""


class BackupAndRestore(Callback):
    """Saves the parameters as backup.ckpt after epochs or steps, and begins with them where there is one.

    In a job that recovers (MS_ENABLE_RECOVERY=1) it saves, and leaves the beginning to the recovery points:
    they have the step, too.
    """

    def __init__(self, backup_dir, save_freq="epoch", delete_checkpoint=True):
        super().__init__()
        if not isinstance(backup_dir, str) or not backup_dir:
            raise ValueError("BackupAndRestore: backup_dir must be a string that is not empty")
        if save_freq != "epoch" and (not isinstance(save_freq, int) or save_freq < 1):
            raise ValueError(
                f"BackupAndRestore: save_freq must be 'epoch' or an int above 0, not {save_freq!r}"
            )
        if not isinstance(delete_checkpoint, bool):
            raise TypeError("BackupAndRestore: delete_checkpoint must be a bool")
        self._file = os.path.join(backup_dir, "backup.ckpt")
        self._freq, self._deletes = save_freq, delete_checkpoint

    def on_train_begin(self, run_context):
        """Takes the parameters of an earlier training."""
        if not os.path.exists(self._file):
            return
        if _draws.recovers():
            _device.note_once(
                f"note: BackupAndRestore leaves {self._file} as it is: with MS_ENABLE_RECOVERY=1 a training "
                "goes on from its recovery points; load_checkpoint() loads the file"
            )
        else:
            values = serialization.load_checkpoint(self._file)
            serialization.load_param_into_net(run_context.original_args().train_network, values)

    def state_dict(self):
        """Nothing: what it was made with is all."""
        return {}

    def load_state_dict(self, state):
        """Nothing to do."""

    def _save(self, run_context):
        os.makedirs(os.path.dirname(self._file) or ".", exist_ok=True)
        serialization.save_checkpoint(run_context.original_args().train_network, self._file)

    def on_train_step_end(self, run_context):
        """Saves, every `save_freq` steps."""
        if self._freq != "epoch" and run_context.original_args().cur_step_num % self._freq == 0:
            self._save(run_context)

    def on_train_epoch_end(self, run_context):
        """Saves, if it is to do so after epochs."""
        if self._freq == "epoch":
            self._save(run_context)

    def on_train_end(self, run_context):
        """Removes the file of a training that is done."""
        if self._deletes:
            with contextlib.suppress(FileNotFoundError):  # another worker may have removed it
                os.remove(self._file)


def data_sink(fn, dataset, sink_size=1, jit_config=None, input_signature=None):
    """A function that calls `fn` with the next `sink_size` rows of the dataset (of all, over and over)."""
    rows = iter(())

    def sink(*_):
        nonlocal rows
        answer = None
        for _ in range(sink_size if sink_size > 0 else dataset.get_dataset_size()):
            row = next(rows, None)
            if row is None:
                rows = dataset.create_tuple_iterator(num_epochs=1)
                row = next(rows)
            answer = fn(*row)
        return answer

    return sink
