"""mindspore.train.dataset_helper: batches for loops by hand."""

from mindspore import _names


class DatasetHelper:
    """Hands out the batches of a dataset, `epoch_num` times: `for batch in helper` is one pass.

    Args:
        dataset: The dataset.
        dataset_sink_mode: False: there is no device that data is sent to ahead, as with MindSpore on a CPU.
        sink_size: -1, or a number above 0, which changes nothing.
        epoch_num: How many passes there will be; -1: any number.
    """

    def __init__(self, dataset, dataset_sink_mode=True, sink_size=-1, epoch_num=1):
        if isinstance(sink_size, bool) or not isinstance(sink_size, int):
            raise TypeError(f"DatasetHelper: sink_size is a whole number, not {sink_size!r}")
        if sink_size < -1 or sink_size == 0:
            raise ValueError(f"DatasetHelper: sink_size is -1 or above 0, not {sink_size}")
        if dataset_sink_mode:
            raise RuntimeError(
                "DatasetHelper: data is not sent ahead to a CPU; write dataset_sink_mode=False, and call the "
                "network with each batch"
            )
        self.dataset = dataset
        self.iter = dataset.create_tuple_iterator(num_epochs=epoch_num)

    def __iter__(self):
        return iter(self.iter)

    def types_shapes(self):
        """The dtypes and the shapes of the columns."""
        return self.dataset.output_types(), self.dataset.output_shapes()

    def stop_send(self) -> None:
        """Nothing is sent ahead."""

    continue_send = release = stop_send


def connect_network_with_dataset(network, dataset_helper):
    """Would take data from a device's queue, which a CPU has not: a RuntimeError, as in MindSpore."""
    raise RuntimeError(
        "connect_network_with_dataset() needs data that is sent ahead, which a CPU does not do"
    )


__all__ = ["DatasetHelper", "connect_network_with_dataset"]
__getattr__ = _names.missing(__name__)
