"""Attributes that a script sets on tensors (`x.tag = 1`), where code gets those tensors or gives them."""

import muster


def tagged(values, **attributes):
    made = muster.Tensor(values)
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def by_scale(x):
    return muster.ops.reduce_sum(x * x.scale)


def test_code_whose_gradients_are_taken_reads_the_attributes_of_its_arguments_at_each_call():
    both = muster.value_and_grad(by_scale)
    found = [both(tagged([1.0, 2.0], scale=scale))[1].tolist() for scale in (2.0, 3.0, 2.0)]
    assert found == [[2.0, 2.0], [3.0, 3.0], [2.0, 2.0]]
    assert len(both.traces) == 2


def test_compiled_code_and_cells_read_the_attributes_of_their_arguments():
    class Net(muster.nn.Cell):
        def construct(self, x):
            return by_scale(x)

    assert float(muster.jit(by_scale)(tagged([1.0, 2.0], scale=2.0)).asnumpy()) == 6.0
    assert float(Net()(tagged([1.0, 2.0], scale=3.0)).asnumpy()) == 9.0


def test_attributes_of_a_list_of_tensors_are_there_too():
    both = muster.value_and_grad(lambda parts: by_scale(parts[0]) + by_scale(parts[1]))
    _, found = both([tagged([1.0], scale=2.0), tagged([1.0], scale=5.0)])
    assert [each.tolist() for each in found] == [[2.0], [5.0]]


def test_results_have_the_attributes_that_code_set_on_them_and_gradients_have_none():
    def noted(x):
        loss = by_scale(x)
        loss.place = x.place
        return loss

    both = muster.value_and_grad(noted)
    for _ in range(2):
        loss, gradient = both(tagged([1.0], scale=2.0, place="here"))
        assert loss.place == "here" and not hasattr(gradient, "place")
