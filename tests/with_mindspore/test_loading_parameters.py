"""Parameters of a file in a net whose parameters have other dtypes or shorter names."""

import sys

import pytest
from places import COMPAT_PACKAGES

sys.path.insert(0, str(COMPAT_PACKAGES))

import mindspore as ms
from mindspore import Parameter, Tensor, nn


def net_with(values, dtype):
    net = nn.Cell()
    net.w = Parameter(Tensor(values, dtype), name="w")
    return net


@pytest.mark.parametrize(
    ("of_net", "of_file"),
    [
        (ms.float32, ms.float16),
        (ms.float16, ms.float32),
        (ms.float32, ms.bfloat16),
        (ms.int32, ms.int64),
        (ms.int64, ms.int8),
    ],
)
def test_parameters_of_a_file_take_the_dtype_of_the_net_within_a_kind_of_numbers(of_net, of_file):
    net, values = net_with([0, 0], of_net), {"w": Parameter(Tensor([1, 3], of_file), name="w")}
    with pytest.raises(RuntimeError, match="w is"):
        ms.load_param_into_net(net, values, strict_load=True)
    assert ms.load_param_into_net(net, values) == ([], [])
    assert net.w.dtype == of_net
    assert net.w.asnumpy().tolist() == [1, 3]


@pytest.mark.parametrize(
    ("of_net", "of_file"),
    [(ms.float32, ms.int32), (ms.float32, ms.bool_), (ms.int32, ms.float32), (ms.uint8, ms.int32)],
)
def test_other_kinds_of_numbers_are_not_loaded(of_net, of_file):
    with pytest.raises(RuntimeError, match="w is"):
        ms.load_param_into_net(net_with([0], of_net), {"w": Parameter(Tensor([1], of_file), name="w")})


class Body(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Dense(2, 2), nn.Dense(2, 1)


class Whole(nn.Cell):
    def __init__(self):
        super().__init__()
        self.backbone, self.head = Body(), nn.Dense(1, 3)


def values_of(net):
    return {
        name.rpartition("backbone.")[2]: p.asnumpy().tolist() for name, p in net.parameters_dict().items()
    }


def test_a_part_of_a_network_finds_its_parameters_behind_their_prefix():
    whole, body = Whole(), Body()
    given = whole.parameters_dict()
    assert ms.load_param_into_net(body, given) == ([], list(given))
    assert values_of(body).items() <= values_of(whole).items()


def test_parameters_behind_several_prefixes_are_found_and_those_with_the_names_of_the_net_come_first():
    body = Body()
    given = {
        "first.bias": Tensor([7.0, 8.0]),
        "x.first.weight": Tensor([[1.0, 2.0], [3.0, 4.0]]),
        "x.first.bias": Tensor([0.0, 0.0]),
        "y.last.weight": Tensor([[5.0, 6.0]]),
    }
    assert ms.load_param_into_net(body, given)[0] == ["last.bias"]
    assert body.first.weight.asnumpy().tolist() == [[1, 2], [3, 4]]
    assert body.first.bias.asnumpy().tolist() == [7, 8]
    assert body.last.weight.asnumpy().tolist() == [[5, 6]]


def test_names_with_prefixes_are_not_loaded_strictly_and_shapes_behind_them_have_to_fit():
    body = Body()
    assert ms.load_param_into_net(body, Whole().parameters_dict(), strict_load=True)[0] == [
        parameter.name for parameter in body.get_parameters()
    ]
    with pytest.raises(RuntimeError, match=r"first\.bias is"):
        ms.load_param_into_net(body, {"x.first.bias": Tensor([1.0, 2.0, 3.0])})


@pytest.mark.parametrize("optimizer", [nn.Momentum, nn.Adam, nn.RMSProp, nn.Lamb, nn.Adagrad, nn.FTRL])
def test_the_states_of_an_optimizer_are_no_weights_behind_a_prefix(optimizer):
    body = Body()
    settings = {"momentum": 0.9} if optimizer is nn.Momentum else {}
    states = optimizer(body.trainable_params(), learning_rate=0.1, **settings).parameters_dict()
    states = {name: value for name, value in states.items() if not value.requires_grad}
    before = values_of(body)
    ms.load_param_into_net(body, states)
    assert values_of(body) == before


def test_a_checkpoint_that_is_not_there_is_an_error_that_scripts_catch_by_either_name():
    for kind in (ValueError, FileNotFoundError):
        with pytest.raises(kind, match=r"nowhere\.ckpt"):
            ms.load_checkpoint("nowhere.ckpt")


def test_a_checkpoint_that_cannot_hold_two_parameters_of_one_name_says_so(tmp_path, capfd):
    class Parts(nn.Cell):
        def __init__(self):
            super().__init__(auto_prefix=False)
            self.first, self.last = nn.Dense(2, 2, has_bias=False), nn.Dense(2, 1, has_bias=False)

    ms.save_checkpoint(Body(), str(tmp_path / "body.ckpt"))
    assert "several parameters" not in capfd.readouterr().err
    ms.save_checkpoint(Parts(), str(tmp_path / "parts.ckpt"))
    assert "several parameters have the name weight" in capfd.readouterr().err
    assert ms.load_checkpoint(str(tmp_path / "parts.ckpt"))["weight"].shape == (1, 2)


def test_a_list_of_parameters_is_saved_by_their_names(tmp_path):
    path = str(tmp_path / "net.ckpt")
    net = nn.Dense(2, 3)
    ms.save_checkpoint(list(net.trainable_params()), path)
    assert sorted(ms.load_checkpoint(path)) == ["bias", "weight"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([3], "a list of parameters, or of dicts with 'name' and 'data', and has int 3"),
        ([{"name": "a"}], "a list of parameters, or of dicts"),
        ([{"name": 1, "data": Tensor([1.0])}], "a name in save_obj is a string, not 1"),
        ([{"name": "a", "data": "text"}], "the data of 'a' in save_obj is a tensor, not 'text'"),
    ],
)
def test_what_cannot_be_saved_says_what_a_list_may_have(given, words, tmp_path):
    with pytest.raises(TypeError, match=words):
        ms.save_checkpoint(given, str(tmp_path / "net.ckpt"))


@pytest.mark.parametrize(
    ("error", "words", "arguments"),
    [
        (ValueError, "no entry of the file is left", {"choice_func": lambda name: name.startswith("z")}),
        (ValueError, "no entry of the file is left", {"specify_prefix": "z"}),
        (ValueError, "no entry of the file is left", {"filter_prefix": ["w", "b"]}),
        (ValueError, "choice_func failed", {"choice_func": lambda name: name.startswith(3)}),
        (TypeError, "filter_prefix is a string or a list of strings, not 3", {"filter_prefix": 3}),
        (TypeError, "specify_prefix is a list of strings", {"specify_prefix": ["w", 3]}),
        (ValueError, "filter_prefix has a prefix or more", {"filter_prefix": []}),
        (ValueError, "specify_prefix has a prefix or more", {"specify_prefix": ""}),
    ],
)
def test_a_choice_that_leaves_nothing_of_a_file_is_an_error(error, words, arguments, tmp_path):
    path = str(tmp_path / "net.ckpt")
    ms.save_checkpoint(nn.Dense(2, 3), path)
    with pytest.raises(error, match=words):
        ms.load_checkpoint(path, **arguments)
    # Prefixes override a choice, as in MindSpore.
    chosen = ms.load_checkpoint(path, specify_prefix="w", choice_func=lambda name: name == "bias")
    assert list(chosen) == ["weight"]


def test_parameters_are_loaded_from_a_dict_alone():
    for given in ("", [], None, 3):
        with pytest.raises(TypeError, match="parameter_dict is a dict"):
            ms.load_param_into_net(nn.Dense(2, 3), given)


def test_a_library_loads_parameters_one_by_one_and_behind_their_prefix():
    from mindspore.train.serialization import _load_dismatch_prefix_params, _update_param

    net = nn.Dense(2, 1)
    half = Parameter(Tensor([[1.0, 2.0]], ms.float16), name="net.weight")
    _update_param(net.weight, half, False)
    assert net.weight.dtype == ms.float32 and net.weight.asnumpy().tolist() == [[1.0, 2.0]]
    with pytest.raises(RuntimeError, match=r"weight is Float32 \(1, 2\) in the net and Float16 \(1, 2\)"):
        _update_param(net.weight, half, True)
    left = ["bias"]
    _load_dismatch_prefix_params(net, {"net.bias": Tensor([3.0])}, left, False)
    assert left == [] and net.bias.asnumpy().tolist() == [3.0]
