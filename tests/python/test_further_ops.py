"""The names of mindspore.ops that load when one is used: beside MindSpore 2.7.0, and what has no figures."""

import subprocess
import sys

import pytest
from job import clean_environment
from places import ROOT


@pytest.mark.parametrize("mode", ["--check", "--eager"])
def test_they_agree_with_mindspores_figures(mode):
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests/parity/further_ops.py"), mode],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(" agree\n"), done.stdout


def test_they_load_when_one_is_used_and_are_listed(run_with_mindspore):
    run_with_mindspore("""
        import sys
        assert "mindspore.ops._places" not in sys.modules
        from mindspore.ops import operations as P, functional as F
        from mindspore.ops import argsort
        assert "mindspore.ops._places" in sys.modules
        assert P.IOU is ops.IOU and F.argsort is argsort
        for module in (ops, P, F):
            assert {"argsort", "einsum", "IOU"} <= set(module.__all__)
        try:
            ops.no_such_name
        except AttributeError as error:
            assert "mindspore.ops.no_such_name is not provided" in str(error)
    """)


def test_random_numbers_follow_the_seed_and_their_distributions(run_with_mindspore):
    code = """
        import sys
        ms.set_seed(3)
        uniform, normal = ops.uniform((500,), Tensor(2.0), Tensor(4.0)), ops.StandardNormal()((1000,))
        whole, order = ops.randint(2, 7, (600,)), ops.randperm(30)
        gamma = ops.gamma((2000,), Tensor(3.0), Tensor(2.0))
        poisson = ops.random_poisson((900,), Tensor(50.0))
        chosen = ops.multinomial(Tensor([0.0, 0.3, 0.7]), 400)
        coins = ops.bernoulli(ops.ones((800,)), 0.25)
        once = ops.multinomial(Tensor([0.1, 0.0, 0.7]), 2, False)
        all = (uniform, normal, whole, order, gamma, poisson, chosen, coins, once)
        uniform, normal, whole, order, gamma, poisson, chosen, coins, once = (x.asnumpy() for x in all)
        assert 2 <= uniform.min() and uniform.max() < 4 and abs(uniform.mean() - 3) < 0.1
        assert abs(normal.mean()) < 0.15 and abs(normal.std() - 1) < 0.1
        assert set(whole.tolist()) == {2, 3, 4, 5, 6} and sorted(order.tolist()) == list(range(30))
        assert abs(gamma.mean() - 1.5) < 0.1 and abs(poisson.mean() - 50) < 1 and abs(poisson.var() - 50) < 10
        assert set(chosen.tolist()) == {1, 2} and abs((chosen == 2).mean() - 0.7) < 0.1
        assert abs(coins.mean() - 0.25) < 0.06 and set(once.tolist()) == {0, 2}
        assert (ops.rand(4).asnumpy() != ops.rand(4).asnumpy()).any()
        @ms.jit
        def noisy(x):
            return x + ops.standard_normal((3,)) + ops.standard_normal((3,))
        assert len(set(noisy(ops.zeros((3,))).asnumpy().tolist())) == 3
        print(float(uniform.sum()), float(poisson.sum()), order.tolist(), file=sys.stderr)
    """
    assert run_with_mindspore(code) == run_with_mindspore(code)


def test_custom_ops_of_python_and_c_have_gradients_in_both_modes(run_with_mindspore, tmp_path):
    source = tmp_path / "double.c"
    source.write_text("""
        #include <stdint.h>
        int twice(int n, void **p, int *ndims, int64_t **shapes, const char **types, void *s, void *e) {
          int64_t count = 1;
          for (int i = 0; i < ndims[0]; ++i) count *= shapes[0][i];
          for (int64_t i = 0; i < count; ++i) ((float *)p[1])[i] = 2 * ((float *)p[0])[i];
          return types[0][0] != 'f';
        }
    """)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(tmp_path / "double.so"), str(source)], check=True)
    run_with_mindspore(f"""
        cube = ops.Custom(lambda x: x ** 3, lambda x: x, lambda x: x,
                          bprop=lambda x, out, dout: (3 * x * x * dout,))
        twice = ops.Custom("{tmp_path}/double.so:twice", (2,), ms.float32, "aot")
        x = Tensor([1.0, 2.0])
        def loss(x):
            return cube(x).sum()
        for function in (loss, ms.jit(loss)):
            value, gradient = ms.value_and_grad(function)(x)
            assert value.item() == 9 and gradient.asnumpy().tolist() == [3, 12]
        for function in (twice, ms.jit(lambda x: twice(x))):
            assert function(x).asnumpy().tolist() == [2, 4]
        wrong = ops.Custom(lambda x: x[:1], (2,), ms.float32)
        try:
            wrong(x)
            raise AssertionError
        except (ValueError, RuntimeError) as error:
            assert "is float32 (1,), and it was said to be float32 (2,)" in str(error)
        def broken(x):
            raise KeyError("why")
        try:
            ops.Custom(broken, (2,), ms.float32)(x)
            raise AssertionError
        except KeyError as error:
            assert "why" in str(error)
    """)


def test_print_shows_in_each_run_of_a_graph(run_with_mindspore):
    shown = run_with_mindspore("""
        import sys
        sys.stdout = sys.stderr
        show = ops.Print()
        @ms.jit
        def shown(x):
            show("x is", x)
            return x + 1
        shown(Tensor([1.0]))
        shown(Tensor([2.0]))
    """)
    first, second = (shown.find(f"value= [ {number}.0") for number in (1, 2))  # as MindSpore's Print shows it
    assert 0 < first < second, shown
    assert shown.count("x is") == 2


def test_what_depends_on_elements_says_so_and_runs_op_by_op(run_with_mindspore):
    said = run_with_mindspore("""
        places = ms.jit(lambda x: ops.nonzero(x))(Tensor([1.0, 0.0, 2.0]))
        assert places.asnumpy().tolist() == [[0], [2]]
    """)
    assert "nonzero: the shape of its result depends on the elements" in said


def test_parameters_are_written_by_the_scatter_family(run_with_mindspore):
    run_with_mindspore("""
        p = ms.Parameter(Tensor([[1.0, 2.0], [3.0, 4.0]]), name="p")
        ops.ScatterAdd()(p, Tensor([0, 0], ms.int32), Tensor([[1.0, 1.0], [1.0, 1.0]]))
        assert p.asnumpy().tolist() == [[3, 4], [3, 4]]
        ops.scatter_nd_update(p, Tensor([[1, 0]], ms.int32), Tensor([9.0]))
        assert p.asnumpy().tolist() == [[3, 4], [9, 4]]
        t = Tensor([1.0, 2.0])
        made = ops.tensor_scatter_update(t, Tensor([[0]], ms.int32), Tensor([5.0]))
        assert made.asnumpy().tolist() == [5, 2]
        assert t.asnumpy().tolist() == [1, 2]
    """)
