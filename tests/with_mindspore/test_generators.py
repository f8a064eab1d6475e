"""Generators of random numbers: seeds and states that scripts set, keep and restore."""

import mindspore as ms
import numpy
import pytest
from mindspore import Generator, Tensor, mint
from mindspore.common import _generators


@pytest.fixture(autouse=True)
def unused():
    """The default generator as it is before a script sets it."""
    yield
    _generators.default_generator._is_used = False


DRAWS = {
    "rand": lambda **of: mint.rand(3, 2, **of),
    "randn": lambda **of: mint.randn(3, 2, **of),
    "randint": lambda **of: mint.randint(0, 1000, (6,), **of),
    "randperm": lambda **of: mint.randperm(50, **of),
    "bernoulli": lambda **of: mint.bernoulli(Tensor([0.5] * 64), **of),
    "normal": lambda **of: mint.normal(1.0, 2.0, (6,), **of),
    "multinomial": lambda **of: mint.multinomial(Tensor([0.2] * 40), 20, **of),
    "uniform_": lambda **of: Tensor([0.0] * 6).uniform_(2.0, 3.0, **of),
    "normal_": lambda **of: Tensor([0.0] * 6).normal_(**of),
    "exponential_": lambda **of: Tensor([0.0] * 6).exponential_(**of),
    "bernoulli_": lambda **of: Tensor([0.0] * 64).bernoulli_(**of),
    "random_": lambda **of: Tensor([0.0] * 6).random_(**of),
    "uniform": lambda **of: Tensor([0.0] * 6).uniform(**of),
}


def values(tensor):
    return tensor.asnumpy().tolist()


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_the_same_seed_and_the_same_state_draw_the_same(draw):
    generator = Generator().manual_seed(7)
    first, second = (values(draw(generator=generator)) for _ in range(2))
    assert first != second
    state = generator.get_state()
    third = values(draw(generator=generator))
    generator.set_state(state)
    assert values(draw(generator=generator)) == third
    assert values(draw(generator=generator.manual_seed(7))) == first
    assert values(draw(generator=Generator().manual_seed(8))) != first


def test_the_default_generator_is_that_of_calls_without_one_once_it_is_set():
    assert ms.manual_seed(3) is ms.default_generator
    assert ms.initial_seed() == 3
    drawn = [values(mint.randn(4)) for _ in range(2)]
    state = ms.get_rng_state()
    assert (state.dtype, state.shape) == (ms.uint8, (16,))
    after = values(mint.rand_like(Tensor([0.0] * 4)))
    ms.set_rng_state(state)
    assert values(mint.rand_like(Tensor([0.0] * 4))) == after
    ms.manual_seed(3)
    assert [values(mint.randn(4)) for _ in range(2)] == drawn
    seed = ms.seed()
    assert isinstance(seed, int) and ms.initial_seed() == seed


def test_without_it_the_seed_of_set_seed_counts():
    ms.set_seed(4)
    one = values(mint.rand(3))
    ms.set_seed(4)
    assert values(mint.rand(3)) == one


def test_draws_have_their_distributions():
    generator = Generator().manual_seed(1)
    uniform, normal = (draw(20000, generator=generator).asnumpy() for draw in (mint.rand, mint.randn))
    assert abs(uniform.mean() - 0.5) < 0.01 and uniform.min() >= 0 and uniform.max() < 1
    assert abs(normal.mean()) < 0.03 and abs(normal.std() - 1) < 0.02
    assert abs(numpy.corrcoef(uniform, normal)[0, 1]) < 0.03
    assert sorted(values(mint.randperm(9, generator=generator))) == list(range(9))


def test_compiled_code_draws_anew_with_each_call():
    generator = Generator().manual_seed(5)

    @ms.jit
    def noisy(x):
        return x + mint.rand(3, generator=generator)

    one, two = values(noisy(Tensor([0.0] * 3))), values(noisy(Tensor([0.0] * 3)))
    generator.manual_seed(5)
    assert one != two and values(noisy(Tensor([0.0] * 3))) == one


@pytest.mark.parametrize(
    ("error", "words", "call"),
    [
        (TypeError, "seed is a whole number, not float", lambda: ms.manual_seed(1.5)),
        (TypeError, "seed is a whole number, not bool", lambda: Generator().manual_seed(True)),
        (ValueError, "64 bits", lambda: ms.manual_seed(2**63)),
        (TypeError, "takes what get_state", lambda: ms.set_rng_state(3)),
        (ValueError, "16 bytes of uint8", lambda: ms.set_rng_state(Tensor([1, 2]))),
        (TypeError, "generator is a mindspore.Generator or None, not int", lambda: mint.rand(2, generator=3)),
    ],
)
def test_what_is_no_seed_no_state_and_no_generator_is_an_error(error, words, call):
    with pytest.raises(error, match=words):
        call()


def test_a_checkpoint_keeps_the_state_of_a_generator(tmp_path):
    generator = Generator().manual_seed(9)
    first = values(mint.rand(2, generator=generator))
    path = str(tmp_path / "state.ckpt")
    ms.save_checkpoint(ms.nn.Dense(1, 1), path, append_dict={"rng": generator})
    second = values(mint.rand(2, generator=generator))
    again = Generator()
    again.set_state(Tensor(ms.load_checkpoint(path)["rng"]))
    assert values(mint.rand(2, generator=again)) == second != first
    assert ms.CheckpointConfig(append_info=[{"rng": generator}]).append_dict["rng"].shape == (16,)
